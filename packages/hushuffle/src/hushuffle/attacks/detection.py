"""Compute the error rates of a matcher: false accepts, false rejects, and how often it names the right person."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.attacks.inference import library
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE
from hushuffle.numerics.trials import clopper_pearson

DETECTION: Final = Citation(
    key="martin1997",
    text="A. Martin, G. Doddington, T. Kamm, M. Ordowski, M. Przybocki, The DET curve in assessment of detection task "
    "performance, Eurospeech (1997)",
)
BOOTSTRAP: Final = Citation(
    key="efron1979", text="B. Efron, Bootstrap methods: another look at the jackknife, Annals of Statistics 7 (1979)"
)

_FEWEST_PEOPLE: Final = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Detection:
    """Error rates if every score at or above a threshold is accepted; arrays have shape (t,), thresholds descend.

    `false_accept[i]` is the share of impostor scores at or above `thresholds[i]`, from 0 to 1; `false_reject[i]` is the
    share of genuine scores below `thresholds[i]`, from 1 to 0. The first threshold is infinity. Thresholds on a
    straight piece of the curve are omitted.
    """

    thresholds: Floats = field(repr=False)
    false_accept: Floats = field(repr=False)
    false_reject: Floats = field(repr=False)

    def reject_at(self, false_accept: float) -> float:
        """Return the smallest false reject rate among thresholds whose false accept rate is at most `false_accept`.

        Raises:
            InvalidInputError: `false_accept` is not a probability.
        """
        allowed = _checks.probability("false_accept", false_accept)
        return float(self.false_reject[self.false_accept <= allowed].min())

    @property
    def equal_error(self) -> float:
        """The rate at which false accepts and false rejects are equal, on straight lines between thresholds."""
        return _crossing(self.false_accept, self.false_reject)


def detection_curve(genuine: npt.ArrayLike, impostor: npt.ArrayLike) -> Detection:
    """Return the detection error tradeoff of scores; a higher score means a better match.

    Args:
        genuine: scores of the same person, shape (n,).
        impostor: scores of different people, shape (m,).

    Raises:
        InvalidInputError: scores are missing or not finite.
        MissingDependencyError: scikit-learn is not installed.

    Source: Martin et al. 1997; Murakami, Takahashi 2021, section 5.2 (figure 7).

    >>> curve = detection_curve([0.9, 0.8, 0.3], [0.1, 0.2, 0.4, 0.5])
    >>> round(curve.equal_error, 4), round(curve.reject_at(0.0), 4)
    (0.3333, 0.3333)
    """
    ours, others = _scores("genuine", genuine), _scores("impostor", impostor)
    metrics = library("sklearn.metrics")
    same = np.concatenate((np.ones(ours.size, dtype=np.bool_), np.zeros(others.size, dtype=np.bool_)))
    accept, hit, thresholds = metrics.roc_curve(same, np.concatenate((ours, others)))
    return Detection(thresholds=thresholds, false_accept=accept, false_reject=1 - hit)


def equal_error_rate(
    genuine: npt.ArrayLike, impostor: npt.ArrayLike, *, confidence: float = 0.95, replicates: int = 400, seed: int = 1
) -> Bound:
    """Return a bootstrap interval for the equal error rate from independent scores; a higher score is a better match.

    Genuine and impostor scores are resampled with replacement `replicates` times; the bounds are percentiles of the
    rate. If all replicates are equal (no error occurred), the upper bound is the largest rate at which n genuine scores
    without error are not surprising.

    Raises:
        InvalidInputError: scores are missing or not finite, or an argument is out of range.

    Source: Efron 1979; Murakami, Takahashi 2021, section 5.2.

    >>> rng = np.random.default_rng(0)
    >>> print(equal_error_rate(rng.normal(2, 1, 500), rng.normal(0, 1, 5000)))  # 0.1587
    0.1460 to 0.1801 (95% interval)
    """
    ours, others = _scores("genuine", genuine), _scores("impostor", impostor)
    cuts = np.unique(ours)
    counts = [np.bincount(_steps(part, cuts), minlength=2 * cuts.size + 1) for part in (ours, others)]
    rng = np.random.default_rng(seed)
    rates = [
        _equal_error(*(rng.multinomial(int(part.sum()), part / part.sum()) for part in counts))
        for _ in range(_checks.integer("replicates", replicates, low=20))
    ]
    return _percentiles(_equal_error(*counts), rates, ours.size, confidence)


def matrix_equal_error_rate(
    scores: npt.ArrayLike, *, confidence: float = 0.95, replicates: int = 400, seed: int = 1
) -> Bound:
    """Return a bootstrap interval for the equal error rate from the scores of all pairs of people, shape (n, n).

    Genuine scores are on the diagonal. People are resampled with replacement, each with their row and column; a person
    who is drawn twice is not their own impostor. The interval covers the choice of people.

    Raises:
        InvalidInputError: `scores` is not a square matrix of finite numbers for at least 20 people, or an argument is
            out of range.

    Source: Efron 1979.

    >>> rng = np.random.default_rng(0)
    >>> print(matrix_equal_error_rate(rng.normal(0, 1, (200, 200)) + 2 * np.eye(200)))  # 0.1587
    0.1350 to 0.1801 (95% interval)
    """
    table = square(scores)
    n = len(table)
    if n < _FEWEST_PEOPLE:
        _checks.reject("scores", f"a matrix for at least {_FEWEST_PEOPLE} people, to resample people", f"<{n} people>")
    same = np.eye(n, dtype=np.bool_).reshape(-1)
    cuts = np.unique(table.diagonal())
    step, size = _steps(table.reshape(-1), cuts), 2 * cuts.size + 1
    rng = np.random.default_rng(seed)

    def rate(times: Floats) -> float:
        pairs = np.outer(times, times).reshape(-1)
        pairs[same] = 0.0
        impostor = np.bincount(step, weights=pairs, minlength=size)
        return _equal_error(np.bincount(step[same], weights=times, minlength=size), impostor)

    draws = _checks.integer("replicates", replicates, low=20)
    # How often each of n units occurs in a sample of n with replacement.
    rates = [rate(np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)) for _ in range(draws)]
    return _percentiles(rate(np.ones(n)), rates, n, confidence)


def square(scores: npt.ArrayLike) -> Floats:
    """Return `scores` as a square matrix of finite numbers for at least 2 people, or raise an error without numbers."""
    array = np.asarray(scores)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or len(array) < 2:
        _checks.reject("scores", "a square matrix for at least 2 people", f"<shape {array.shape}>")
    return _scores("scores", array.reshape(-1)).reshape(array.shape)


def _steps(scores: Floats, cuts: Floats) -> npt.NDArray[np.int64]:
    """Return the step of each score on the real line with cuts: 2 i + 1 at cut i, 2 i in the gap below it."""
    return np.searchsorted(cuts, scores, side="left") + np.searchsorted(cuts, scores, side="right")


def _equal_error(genuine: npt.NDArray[np.number], impostor: npt.NDArray[np.number]) -> float:
    """Return the equal error rate from the weight of genuine and of impostor scores on each step."""
    hit, accept = (np.append(0.0, np.cumsum(part[::-1])) for part in (genuine, impostor))
    return _crossing(accept / accept[-1], 1 - hit / hit[-1])


def _crossing(false_accept: Floats, false_reject: Floats) -> float:
    """Return where a rising and a falling polygon meet."""
    gap = false_accept - false_reject  # from -1 up to 1
    after = int(np.argmax(gap >= 0))
    share = -gap[after - 1] / (gap[after] - gap[after - 1])
    return float(false_accept[after - 1] + share * (false_accept[after] - false_accept[after - 1]))


def _percentiles(rate: float, rates: list[float], n: int, confidence: float) -> Bound:
    sure = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    lower, upper = (float(end) for end in np.quantile(rates, ((1 - sure) / 2, (1 + sure) / 2)))
    if lower == upper:  # nothing scatters, mostly because no error was seen: what n people without error allow
        upper = max(upper, float(betaincinv(1, n, sure)))
    lower, upper = min(lower, rate), max(upper, rate)
    sources = (DETECTION, BOOTSTRAP, PIE.at("section 5.2"))
    return Bound(lower=lower, upper=upper, kind="estimate", unit="probability", confidence=sure, sources=sources)


def _scores(name: str, values: npt.ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        _checks.reject(name, "a list of finite numbers", f"<{array.dtype}, shape {array.shape}>")
    return array.astype(np.float64, copy=False)


Ties = Literal["uniform", "against"]

BINOMIAL: Final = Citation(
    key="clopper1934",
    text="C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the "
    "binomial, Biometrika 26 (1934)",
)


def identification_error(scores: npt.ArrayLike, *, ties: Ties = "uniform", confidence: float = 0.95) -> Bound:
    """Return an interval for the probability that the best-score rule names the wrong person.

    `scores[i, j]`, shape (n, n), says how well the report of person i matches the known data of person j; a higher
    score is better. Every report is attributed to the person with its highest score. `identified` returns the rate. The
    interval (Clopper, Pearson) is for other reports of the same n people; with more people the error increases.

    Args:
        scores: the matrix.
        ties: among equal best scores, a random person ("uniform") or a wrong person ("against") is named.
        confidence: the confidence of the interval.

    Raises:
        InvalidInputError: `scores` is not a square matrix of finite numbers, or an argument is out of range.

    Source: Murakami, Takahashi 2021, section 5.3; Clopper, Pearson 1934.

    >>> print(identification_error(np.eye(100)))
    0 to 0.03622 (95% interval)
    """
    wrong, n = 1 - identified(scores, (1,), ties=ties), len(np.asarray(scores))
    return rate_interval(float(wrong[0]) * n, n, confidence, BINOMIAL, PIE.at("section 5.3"))


def rate_interval(hits: float, trials: int, confidence: float, *sources: Citation) -> Bound:
    """Return the Clopper-Pearson interval of a success probability.

    >>> print(rate_interval(50, 100, 0.95))
    0.3983 to 0.6017 (95% interval)
    """
    sure = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    lower, upper = clopper_pearson(hits, trials, sure)
    return Bound(lower=lower, upper=upper, kind="estimate", unit="probability", confidence=sure, sources=sources)


def identified(scores: npt.ArrayLike, tops: npt.ArrayLike = (1,), *, ties: Ties = "uniform") -> Floats:
    """Return how often the right person is among the t best scores of a report, for each t in `tops`.

    `scores` is described in `identification_error`. If g people score above the right person and e other people equal
    them, the right person is among the t best with probability (t - g)/(e + 1), cut to [0, 1] ("uniform"), or exactly
    if g + e < t ("against"). For t = 1, 2, ..., n this is the cumulative match curve.

    Raises:
        InvalidInputError: `scores` is not a square matrix of finite numbers, a t is outside 1..n, or `ties` is unknown.

    Source: Murakami, Takahashi 2021, section 5.3.

    >>> identified([[3, 1, 1], [2, 2, 0], [5, 4, 3]], (1, 2, 3)).tolist()
    [0.5, 0.6666666666666666, 1.0]
    """
    if ties not in {"uniform", "against"}:
        _checks.reject("ties", '"uniform" or "against"', repr(ties))
    table = square(scores)
    lists = _checks.codes("tops", tops, k=len(table) + 1)
    if not lists.all():
        _checks.reject("tops", f"from 1 to n = {len(table)}", "<0 among them>")
    own = table.diagonal()[:, None]
    above = np.count_nonzero(table > own, axis=1)
    equal = np.count_nonzero(table == own, axis=1) - 1
    if ties == "against":
        return np.array([np.mean(above + equal < top) for top in lists])
    return np.array([np.mean(np.clip((top - above) / (equal + 1), 0.0, 1.0)) for top in lists])
