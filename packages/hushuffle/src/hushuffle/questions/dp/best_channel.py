"""Search by convex programs for the randomizer with the smallest error for n people; then certify its epsilon."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import MissingDependencyError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import MatrixRandomizer, Mechanism
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Bound, Channel
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.normal_pair import shift_between
from hushuffle.numerics.row_programme import RowProgramme, least_squares, spreads, together
from hushuffle.questions.dp.calibration import LARGEST_LOCAL
from hushuffle.questions.dp.central import epsilon as central_epsilon

Loss: TypeAlias = Literal["shares", "distribution", "absolute", "squared", "match"]

_WANTED: Final[Mapping[str, Callable[[int], Floats]]] = {
    "shares": np.eye,
    "distribution": lambda k: np.tril(np.ones((k - 1, k))),
}
"""The matrix that maps the k shares to the estimated quantities, shape (quantities, k), for each name of a loss."""

_COSTS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "absolute": np.abs,
    "squared": np.square,
    "match": lambda away: (away != 0).astype(np.float64),
}
"""The cost of a single report as a function of its distance from the value, for each name of a loss."""

LARGEST_K: Final = 16
"""Maximum number of values (the convex programs take too long for more)."""

_TRIES: Final = 8
_CLOSE: Final = 5e-3
"""The search stops when the upper bound is below the target by at most this fraction of it."""

_NEAR: Final = 0.95
_HAIR: Final = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """A randomizer designed for n people, its certified central epsilon, and its error.

    `bound` is central epsilon at `delta` after a uniform shuffle of n people; its upper bound is at most `epsilon`.
    `error`: for "shares" and "distribution" the standard error of least squares for n people with evenly spread values
    (the root mean square over the k shares, or over the k - 1 cumulative shares). For other losses it is the expected
    loss of one report, averaged over the values.
    """

    randomizer: MatrixRandomizer
    bound: Bound
    error: float
    n: int
    epsilon: float
    delta: float
    loss: str | Floats

    def error_of(self, randomizer: Mechanism) -> float:
        """Return the error of another randomizer for the same n people; infinite if shares cannot be estimated from it.

        Raises:
            InvalidInputError: its number of values is not k, or its number of reports does not fit the losses.
            UnsupportedProtocolError: its matrix is too large.
        """
        k = self.randomizer.inputs
        if randomizer.inputs != k:
            _checks.reject("randomizer", f"for k = {k} values", f"<{randomizer.inputs} values>")
        return _Objective.of(self.loss, k, self.n).error(np.asarray(randomizer.channel().matrix, dtype=np.float64))

    def __str__(self) -> str:
        return (
            f"{self.randomizer.outputs} reports of {self.randomizer.inputs} values: epsilon {self.bound} at "
            f"delta = {self.delta:g}, local epsilon {self.randomizer.local_epsilon:.4g}, error {self.error:.4g}"
        )


def design(
    *, n: int, k: int, epsilon: float, delta: float, local_epsilon_max: float, loss: Loss | npt.ArrayLike = "shares"
) -> Design:
    """Return a randomizer of small error for n people that meets a central and a local epsilon.

    Central epsilon after a uniform shuffle is certified, independently of the search; local epsilon holds if the
    shuffler is compromised. The search minimizes the error under a convex limit on an approximate (Gaussian) central
    epsilon, and changes this limit until the certified upper bound meets the target. For losses of single reports, the
    error is within a few thousandths of the minimum under the limit. For "shares" and "distribution", the search starts
    from the best combination of many candidate reports, and ends at a local minimum. For unordered values the gain over
    `RandomizedResponse` and `SubsetSelection` is small or zero.

    Args:
        n: number of people.
        k: number of values, 2 to 16.
        epsilon: the target for central epsilon in nats, above 0, at most 40.
        delta: in (0, 1).
        local_epsilon_max: upper limit of the local epsilon in nats, above 0, at most 40. The search stays below
            ln(n), since above it fewer than one other person is expected to send the same report.
        loss: "shares": error of the estimated shares. "distribution": error of their cumulative sums (ordered values).
            "absolute", "squared" or "match": error of a single report, which is one of the k values: its distance to
            the true value in steps, the square, or 1 if they differ. Or an array of costs >= 0, shape (k, reports).

    Raises:
        InvalidInputError: an argument out of range, or an unknown loss.
        MissingDependencyError: without `pip install "hushuffle[design]"`.
        NumericalError: the solver finds no solution.

    Source: docs/theory/curves.md, Remark 5, Lemma 7, Lemma 8 and Theorem 9.

    >>> import hushuffle as hs
    >>> found = hs.design(n=10_000, k=2, epsilon=0.1, delta=1e-6, local_epsilon_max=1.0)
    >>> found.bound.upper <= 0.1, round(found.randomizer.local_epsilon, 3), round(found.error, 5)
    (True, 1.0, 0.0096)
    """
    people = _checks.integer("n", n, low=2)
    values = _checks.integer("k", k, low=2, high=LARGEST_K)
    target = _checks.positive("epsilon", epsilon)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    cap = _checks.positive("local_epsilon_max", local_epsilon_max)
    for name, value in (("epsilon", target), ("local_epsilon_max", cap)):
        if value > LARGEST_LOCAL:
            _checks.reject(name, f"at most {LARGEST_LOCAL:g}", value, "A larger epsilon guarantees nothing.")
    task = _Objective.of(loss, values, people)
    if importlib.util.find_spec("cvxpy") is None or importlib.util.find_spec("clarabel") is None:
        message = "`design` solves convex programmes. Install its dependencies with: pip install 'hushuffle[design]'"
        raise MissingDependencyError(message)

    search = _ChannelSearch(task=task, n=people, delta=level, cap=min(cap, max(math.log(people), target)))
    designs: list[tuple[float, MatrixRandomizer, Bound]] = []
    spread = people * float(shift_between(target, level)) ** 2
    for _ in range(_TRIES):
        randomizer, bound, tight = search.at(spread)
        if bound.upper <= target:
            error = task.error(np.asarray(randomizer.channel().matrix, dtype=np.float64))
            designs.append((error, randomizer, bound))
            if bound.upper >= target * (1 - _CLOSE) or not tight:
                break
        # Epsilon grows approximately like the square root of the spread.
        spread *= ((1 - _CLOSE / 2) * target / max(bound.upper, target / 10)) ** 2
    if not designs:
        hint = "Use a larger epsilon, or more people."
        _checks.reject("epsilon", "a target that some channel meets", target, hint)
    error, randomizer, bound = min(designs, key=lambda each: each[0])
    return Design(
        randomizer=randomizer, bound=bound, error=error, n=people, epsilon=target, delta=level, loss=task.loss
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Objective:
    """The objective: the variance of n people's estimate of `wanted` @ shares, or the expected cost of one report."""

    loss: str | Floats
    n: int
    k: int
    wanted: Floats | None = None
    costs: Floats | None = None

    @classmethod
    def of(cls, loss: npt.ArrayLike, k: int, n: int) -> _Objective:
        if isinstance(loss, str):
            if loss in _WANTED:
                return cls(loss=loss, n=n, k=k, wanted=_WANTED[loss](k))
            if loss in _COSTS:
                return cls(loss=loss, n=n, k=k, costs=_COSTS[loss](np.subtract.outer(np.arange(k), np.arange(k)) * 1.0))
            _checks.reject("loss", f"one of {', '.join((*_WANTED, *_COSTS))}, or a matrix", repr(loss))
        try:
            costs = np.array(loss, dtype=np.float64)
        except (TypeError, ValueError):
            costs = np.zeros(0)
        if costs.ndim != 2 or len(costs) != k or costs.shape[1] < 2 or not bool(np.isfinite(costs).all()):
            _checks.reject(
                "loss", f"a matrix of finite costs, k = {k} rows and two columns or more", f"<shape {costs.shape}>"
            )
        if bool((costs < 0).any()):
            _checks.reject("loss", "a matrix of costs >= 0", "<negative costs>")
        costs.flags.writeable = False
        return cls(loss=costs, n=n, k=k, costs=costs)

    def error(self, rows: Floats) -> float:
        if self.wanted is not None:
            return math.sqrt(least_squares(rows, self.wanted) / (self.n * len(self.wanted)))
        costs = np.asarray(self.costs)
        if rows.shape != costs.shape:
            _checks.reject(
                "randomizer", f"one of {costs.shape[1]} reports, as the losses are", f"<{rows.shape[1]} reports>"
            )
        return float((rows * costs).sum() / self.k)


class _ChannelSearch:
    """Computes the best channels for successive spreads; each search starts from the previous channel."""

    def __init__(self, *, task: _Objective, n: int, delta: float, cap: float) -> None:
        self.task, self.n, self.delta = task, n, delta
        # A hair below, so that it holds for the rounded probabilities as well.
        self.ratio = math.exp(cap) * (1 - _HAIR)
        self.start: Floats | None = None
        self.spread = 0.0

    def at(self, spread: float) -> tuple[MatrixRandomizer, Bound, bool]:
        """The best randomizer of this spread, its central epsilon, and whether the spread binds."""
        task = self.task
        mirror = task.wanted is not None
        programme = RowProgramme(spread=spread, ratio=self.ratio, wanted=task.wanted, costs=task.costs, mirror=mirror)
        if self.start is None:
            if task.costs is None:
                self.start = programme.mixed(_reports(task.k, spread, self.ratio))
            else:
                self.start = np.full_like(task.costs, 1 / task.costs.shape[1])
        # A little less spread: drawing the rows together costs next to nothing, and far less than a search.
        near = self.spread * _NEAR < spread <= self.spread
        self.start, self.spread = programme.inside(self.start) if near else programme.best(self.start), spread
        rows = programme.full(self.start)
        randomizer = MatrixRandomizer(channel=Channel(matrix=together(rows) if mirror else rows))
        protocol = Protocol(randomizer=randomizer, shuffler=UniformShuffle(), n=self.n)
        tight = float(spreads(rows).max()) > spread * (1 - _CLOSE)
        return randomizer, central_epsilon(protocol, delta=self.delta), tight


def _reports(k: int, spread: float, ratio: float) -> Floats:
    """Reports that support sets of values, shape (k, reports): runs of values, and sets of a suitable size.

    One of each pair of mirror images. Those for single values are the reports of k-ary randomized response with the
    spread or the ratio, so that it is among the mixtures.
    """
    more = (
        (spread + math.sqrt(spread**2 + 4 * spread)) / 2
        if k == 2
        else (spread + math.sqrt(spread**2 + 8 * spread * k)) / 4
    )
    factor, values = min(1 + more, ratio), np.arange(k)
    runs = [(values >= i) & (values < j) for i, j in product(range(k), range(1, k + 1)) if i < j <= k - i and j - i < k]
    size, coins = max(round(k / (1 + factor)), 1), np.random.default_rng(0)  # which sets are tried is no secret
    sets = [coins.permutation(k) < size for _ in range(4 * k)] if size > 1 else []
    columns = [np.where(own, level, 1.0) for own in runs for level in (factor, math.sqrt(factor))]
    columns += [np.where(own, factor, 1.0) for own in sets]
    return np.array([column / column.mean() for column in columns]).T / k
