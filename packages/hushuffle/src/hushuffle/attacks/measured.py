"""Lower bounds on epsilon from trials of two inputs: some trials choose an event, the other trials count it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.model import Bound, Citation
from hushuffle.numerics.trials import least_log_ratio

AUDIT: Final = Citation(
    key="jagielski2020",
    text="M. Jagielski, J. Ullman, A. Oprea, Auditing differentially private machine learning, NeurIPS (2020)",
)
_THRESHOLDS: Final = 400
_ENOUGH: Final = 500
_CAUTION: Final = 10.0
_KNOWN: Final = 1.0
"""An event is chosen if its estimate exceeds the others by so many variances, from counts or from known likelihoods."""
_LIE: Final = 0.01
_TESTS: Final = 60


@dataclass(frozen=True, kw_only=True)
class OneSided:
    """Reports that occurred only for input `first` in training, and their number in `trials` other trials per input.

    `hits` are these numbers of the first and second input; `example` is one of the reports, if reports may be shown.
    """

    first: str
    second: str
    hits: tuple[int, int]
    trials: int
    example: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The result of trials: `epsilon` is the measured lower bound (nats), at `delta`, against a claim.

    `first` and `second` are the two inputs. The event happened `hits[0]` times in `trials` trials of the first input,
    and `hits[1]` times in as many trials of the second. `for_a_lie` is the approximate number of trials that would
    refute a claim that is 1 % too low with probability 1/2.

    `false_positives` and `false_negatives`, shape (thresholds,), are the error rates of tests that decide for the first
    input if the score reaches a threshold. With the same confidence, the error of all these rates is at most `off`
    (Dvoretzky, Kiefer, Wolfowitz 1956; Massart 1990). `one_sided` counts reports that occur for one input only.
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
    one_sided: tuple[OneSided, ...] = ()
    rare: tuple[tuple[str, str, int], ...] = ()
    """Reports seen for one input only, if reports may be shown: report, input, and count among all trials."""

    @property
    def refuted(self) -> bool:
        """Whether the claim is below the measured lower bound."""
        return self.epsilon.lower > self.claimed


def measure(
    scores: tuple[Floats, Floats],
    *,
    claimed: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: tuple[str, str] = ("first", "second"),
    chosen: float = 0.2,
    ratios: bool = False,
) -> Measurement:
    """Return a lower bound on epsilon from trials of two neighbouring inputs.

    `scores[0]` and `scores[1]`, each of shape (trials,), are one number for each trial of the first and of the second
    input; a larger score is evidence for the first input. The trials must be independent, and a score must depend only
    on its own trial. The first trials of both inputs choose the event: a threshold, and the input that it indicates.
    The other trials count the event.

    Args:
        scores: one number for each trial, as described above.
        claimed: the epsilon (nats) that is claimed.
        delta: the delta of the claim.
        confidence: the confidence of the lower bound.
        names: the names of the two inputs.
        chosen: share of the trials that choose the event; it is raised, up to half, to get at least 500 such trials.
        ratios: whether scores are (nearly) log likelihood ratios, with which fewer trials suffice to choose the event.

    Raises:
        InvalidInputError: there are fewer than four trials, a score is nan, or an argument is out of range.

    Source: Jagielski, Ullman, Oprea 2020.

    >>> told = np.repeat([1.0, 0.0], [7500, 2500])[np.random.default_rng(1).permutation(10_000)]
    >>> found = measure((told, 1 - told), claimed=0.9)
    >>> found.refuted, round(found.epsilon.lower, 2)  # ln 3 = 1.0986
    (True, 1.06)
    """
    _checks.non_negative("claimed", claimed)
    _checks.probability("delta", delta, high_open=True)
    _checks.probability("confidence", confidence, low_open=True, high_open=True)
    size = min(len(scores[0]), len(scores[1]))
    if size < 4:
        _checks.reject("scores", "of four trials or more", size)
    if any(bool(np.isnan(told).any()) for told in scores):
        _checks.reject("scores", "numbers", "<nan among them>")
    _checks.probability("chosen", chosen, low_open=True, high_open=True)
    first = min(max(int(size * chosen), _ENOUGH), max(size // 2, int(size * chosen)))  # trials that choose the event
    train = np.concatenate([scores[0][:first], scores[1][:first]])
    test = (scores[0][first:size], scores[1][first:size])
    trials = size - first
    event, _ = _event(train, trials, delta, confidence, ratios=ratios)
    hits = event.count(test[0]), event.count(test[1])
    more, less = hits if event.for_first else hits[::-1]
    lower = least_log_ratio(more, less, trials, delta=delta, confidence=confidence)
    names = names if event.for_first else names[::-1]
    hits = hits if event.for_first else hits[::-1]
    thresholds = np.unique(np.quantile(train, np.linspace(0, 1, _TESTS), method="nearest"))
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
        for_a_lie=_needed(more / trials, less / trials, delta, claimed, confidence) * size / trials,
        false_positives=1 - _below(test[1], thresholds),
        false_negatives=_below(test[0], thresholds),
        off=math.sqrt(math.log(4 / (1 - confidence)) / (2 * trials)),
    )


def with_one_sided(found: Measurement, kinds: OneSided, *, confidence: float) -> Measurement:
    """Return the measurement with one more event, reports that occur for one input only.

    The result is the larger lower bound of all events. The probability of error is divided among the events;
    `confidence` is the confidence for this event.
    """
    combined = replace(found, one_sided=(*found.one_sided, kinds))
    lower = least_log_ratio(*kinds.hits, kinds.trials, delta=combined.delta, confidence=confidence)
    if lower <= combined.epsilon.lower:
        return combined
    return replace(
        combined,
        epsilon=replace(combined.epsilon, lower=lower),
        first=kinds.first,
        second=kinds.second,
        hits=kinds.hits,
        trials=kinds.trials,
    )


def promise(first: Floats, second: Floats, *, trials: int, delta: float, confidence: float) -> float:
    """Return the approximate e**epsilon that the best event of these scores will prove in `trials` other trials.

    Raises:
        InvalidInputError: there are no scores.
    """
    size = min(first.size, second.size)
    if size == 0:
        _checks.reject("scores", "of one trial or more", 0)
    return _event(np.concatenate([first[:size], second[:size]]), trials, delta, confidence, ratios=False)[1]


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A score of `threshold` at least (for the first input) or at most (for the second)."""

    threshold: float
    for_first: bool

    def count(self, scores: Floats) -> int:
        chosen = scores >= self.threshold if self.for_first else scores <= self.threshold
        return int(np.count_nonzero(chosen))


def _event(train: Floats, trials: int, delta: float, confidence: float, *, ratios: bool) -> tuple[_Event, float]:
    """Return the event with the largest expected lower bound, and e to that bound; `train`: first, second input."""
    both = np.unique(train)
    close = np.geomspace(1, both.size, _THRESHOLDS // 4).astype(np.int64) - 1  # rare events, at either end
    even = np.linspace(0, both.size - 1, min(both.size, _THRESHOLDS)).astype(np.int64)
    thresholds = both[np.unique(np.concatenate([even, close, both.size - 1 - close]))]
    scores, shares = _shares(train, ratios=ratios)
    under = shares[:, np.searchsorted(scores, thresholds, side="right")]
    above = shares[:, -1:] - shares[:, np.searchsorted(scores, thresholds, side="left")]
    spread = NormalDist().inv_cdf(confidence) ** 2 / trials + (_KNOWN if ratios else _CAUTION) / (train.size // 2)
    best, event = -1.0, None
    for (more, less), for_first in ((above, True), (under[::-1], False)):
        promised = _promised(more, less + 2 / train.size, delta, spread)
        place = int(promised.argmax())
        if promised[place] > best:
            best = float(promised[place])
            event = _Event(threshold=float(thresholds[place]), for_first=for_first)
    assert event is not None
    return event, best


def _shares(train: Floats, *, ratios: bool) -> tuple[Floats, Floats]:
    """Return sorted scores, and each input's share among the lowest 0, 1, ... trials; ratios count for both."""
    half, order = train.size // 2, np.argsort(train)
    first = np.repeat([1.0, 0.0], half)
    if ratios:
        with np.errstate(over="ignore"):
            first = 1 / (1 + np.exp(-train))
    weights = np.stack([first, 1 - first])[:, order] / half
    return train[order], np.concatenate([np.zeros((2, 1)), weights.cumsum(axis=1)], axis=1)


def _promised(p: Floats, q: Floats, delta: float, spread: float) -> Floats:
    """Return the approximate lower bound on e**epsilon that events with these shares will prove, shape (events,)."""
    over = np.maximum(p - delta, 0.0)
    seen = over**2 - spread * p * (1 - p)
    root = np.sqrt(np.maximum((over * q) ** 2 - (q**2 - spread * q * (1 - q)) * seen, 0.0))
    return np.where(seen > 0, seen / np.maximum(over * q + root, np.finfo(float).tiny), 0.0)


def _below(scores: Floats, thresholds: Floats) -> Floats:
    return np.searchsorted(np.sort(scores), thresholds, side="left") / scores.size


def _needed(p: float, q: float, delta: float, claimed: float, confidence: float) -> float:
    """Return the approximate number of counted trials that refute a claim 1 % too low with probability 1/2."""
    if p <= delta or q <= 0 or claimed <= 0 or not math.isfinite(claimed):
        return math.inf
    spread = p * (1 - p) / (p - delta) ** 2 + (1 - q) / q
    return 2 * (NormalDist().inv_cdf(confidence) / (_LIE * claimed)) ** 2 * spread
