"""What trials of two inputs say of epsilon: an event chosen on half of them, counted on the other half."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Bound, Citation
from hushuffle.numerics.trials import clopper_pearson

Floats: TypeAlias = npt.NDArray[np.float64]

AUDIT: Final = Citation(
    key="jagielski2020",
    text="M. Jagielski, J. Ullman, A. Oprea, Auditing differentially private machine learning, NeurIPS (2020)",
)
_THRESHOLDS: Final = 400
_LIE: Final = 0.01
_TESTS: Final = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """What the trials say: `epsilon` is the measured lower end (nats), at `delta`, against a claim.

    `first` and `second` are the two inputs; the event happened `hits[0]` times in `trials` of the first, `hits[1]`
    times in as many of the second. `for_a_lie` is about how many trials in all would refute a claim that is 1 % too
    low, half of the time.

    `false_positives` and `false_negatives`, shape (thresholds,), are the shares of errors of the tests that take the
    first input where the score reaches a threshold. All of them together are off by at most `off`, with the same
    confidence (Dvoretzky, Kiefer, Wolfowitz 1956; Massart 1990).
    """

    claimed: float
    delta: float
    epsilon: Bound
    first: str
    second: str
    hits: tuple[int, int]
    trials: int
    for_a_lie: float
    false_positives: Floats
    false_negatives: Floats
    off: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is below the measured lower end."""
        return self.epsilon.lower > self.claimed


def measure(
    scores: tuple[Floats, Floats],
    *,
    claimed: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: tuple[str, str] = ("first", "second"),
) -> Measurement:
    """Return what trials of two neighbouring inputs say of epsilon.

    `scores[0]` and `scores[1]`, each of shape (trials,), are one number for each trial of the first and of the second
    input, larger where the output speaks for the first. They must be independent trials, and a score may depend on its
    own trial only. The first half of either chooses the event (a threshold, and which input it speaks for).

    Args:
        scores: of the trials, as above.
        claimed: the epsilon (nats) that is claimed.
        delta: of the claim.
        confidence: with which the lower end holds.
        names: of the two inputs.

    Raises:
        InvalidInputError: fewer than four trials, scores that are nan, or an argument out of range.

    Source: Jagielski, Ullman, Oprea 2020.

    >>> told = np.repeat([1.0, 0.0], [7500, 2500])[np.random.default_rng(1).permutation(10_000)]
    >>> found = measure((told, 1 - told), claimed=0.9)
    >>> found.refuted, round(found.epsilon.lower, 1)  # ln 3 = 1.0986
    (True, 1.0)
    """
    _checks.non_negative("claimed", claimed)
    _checks.probability("delta", delta, high_open=True)
    _checks.probability("confidence", confidence, low_open=True, high_open=True)
    size = min(len(scores[0]), len(scores[1]))
    if size < 4:
        _checks.reject("scores", "of four trials or more", size)
    if any(bool(np.isnan(told).any()) for told in scores):
        _checks.reject("scores", "numbers", "<nan among them>")
    half = size // 2
    train = (np.sort(scores[0][:half]), np.sort(scores[1][:half]))
    test = (scores[0][half:size], scores[1][half:size])
    event = _event(train, delta, confidence)
    hits = event.count(test[0]), event.count(test[1])
    trials = size - half
    more, less = hits if event.for_first else hits[::-1]
    lower = _certified(more, less, trials, delta, confidence)
    names = names if event.for_first else names[::-1]
    hits = hits if event.for_first else hits[::-1]
    thresholds = np.unique(np.quantile(np.concatenate(train), np.linspace(0, 1, _TESTS), method="nearest"))
    return Measurement(
        claimed=claimed,
        delta=delta,
        epsilon=Bound(
            lower=lower, upper=math.inf, kind="estimate", unit="nats", sources=(AUDIT,), confidence=confidence
        ),
        first=names[0],
        second=names[1],
        hits=hits,
        trials=trials,
        for_a_lie=_needed(more / trials, less / trials, claimed, confidence),
        false_positives=1 - _below(test[1], thresholds),
        false_negatives=_below(test[0], thresholds),
        off=math.sqrt(math.log(4 / (1 - confidence)) / (2 * trials)),
    )


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A score of `threshold` at least (for the first input) or at most (for the second)."""

    threshold: float
    for_first: bool

    def count(self, scores: Floats) -> int:
        chosen = scores >= self.threshold if self.for_first else scores <= self.threshold
        return int(np.count_nonzero(chosen))


def _event(train: tuple[Floats, Floats], delta: float, confidence: float) -> _Event:
    """Return the event with the largest certified epsilon on the training half, sorted scores."""
    both = np.unique(np.concatenate(train))
    places = np.unique(np.linspace(0, both.size - 1, min(both.size, _THRESHOLDS)).astype(np.int64))
    half = train[0].size
    best, chosen = -1.0, _Event(threshold=float(both[-1]), for_first=True)
    for threshold in both[places]:
        above = [half - int(np.searchsorted(scores, threshold, side="left")) for scores in train]
        below = [int(np.searchsorted(scores, threshold, side="right")) for scores in train]
        for more, less, for_first in ((above[0], above[1], True), (below[1], below[0], False)):
            shown = _certified(more, less, half, delta, confidence)
            if shown > best:
                best, chosen = shown, _Event(threshold=float(threshold), for_first=for_first)
    return chosen


def _below(scores: Floats, thresholds: Floats) -> Floats:
    """Return the share of scores below each threshold."""
    return np.searchsorted(np.sort(scores), thresholds, side="left") / scores.size


def _certified(more: int, less: int, trials: int, delta: float, confidence: float) -> float:
    """Return the lower end of epsilon that two counts of an event show: p <= e**epsilon q + delta."""
    p, _ = clopper_pearson(more, trials, confidence)
    _, q = clopper_pearson(less, trials, confidence)
    return math.log((p - delta) / q) if p - delta > q else 0.0


def _needed(p: float, q: float, claimed: float, confidence: float) -> float:
    """Return about how many trials in all show a claim that is 1 % too low, half of the time."""
    if p <= 0 or q <= 0 or claimed <= 0 or not math.isfinite(claimed):
        return math.inf
    from scipy.special import ndtri  # noqa: PLC0415 - slow to load

    spread = (1 - p) / p + (1 - q) / q
    return 4 * (float(ndtri((1 + confidence) / 2)) / (_LIE * claimed)) ** 2 * spread
