"""Numbers from reports about them: the mean, unbiased, with its error over rounding and randomizing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Histogram, NumberGrid, Transcript

Floats = npt.NDArray[np.float64]

_EXACT: Final = 1e-9  # what expected scores may miss, relative to the largest of them


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberEstimate:
    """What reports say about n people's numbers, which lie on `grid`.

    `mean` is unbiased, `standard_error` that of the mean over all coins, the people's numbers held fixed: neither is
    clipped to the bounds. On average the variance is not too small, and too large by at most a quarter of a squared
    step over n. `counts`, shape (reports,), is how often each report came.
    """

    grid: NumberGrid
    n: int
    mean: float
    standard_error: float
    counts: Histogram = field(repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends of an interval for the mean (normal approximation), inside the bounds.

        Raises:
            InvalidInputError: a confidence outside (0, 1).
        """
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        low, high = np.clip([self.mean - half, self.mean + half], self.grid.low, self.grid.high).tolist()
        return low, high


def estimate_numbers(
    reports: Transcript | npt.NDArray[np.int64] | Histogram, *, protocol: Protocol, grid: NumberGrid
) -> NumberEstimate:
    """Return the mean of n people's numbers, with its error.

    Args:
        reports: a `Transcript`, its reports as an array, or how often each report came (a `Histogram`).
        protocol: the protocol that produced them, with a value for each level.
        grid: what turned numbers into codes, in the unit of the result.

    Raises:
        InvalidInputError: the number of reports is not n + dummies, or there are not as many values as levels.
        NumericalError: reports hardly depend on the numbers, so that no float tells these apart.
        UnsupportedProtocolError: the randomizer's reports cannot be counted one by one.

    Source: docs/theory/numbers.md, Theorem 3.

    >>> import hushuffle as hs
    >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
    >>> survey = hs.Protocol(randomizer=ages, shuffler=hs.UniformShuffle(), n=10_000)
    >>> rng, numbers = hs.reproducible(1), np.linspace(10, 90, 10_000)
    >>> reports = survey.collect(ages.encode(numbers, rng=rng), rng=rng)
    >>> found = estimate_numbers(reports, protocol=survey, grid=ages.grid)
    >>> round(found.mean, 2), round(found.standard_error, 2)
    (50.91, 0.4)
    """
    scores = Scores.of(protocol.randomizer, grid)
    counts, dummies = _counted(reports, protocol, scores.blanket.size)
    n, seen = protocol.n, counts.counts
    total = float(seen @ scores.score) - dummies * scores.of_dummies(scores.score)
    # Two upper ends of what a person adds to the variance: the spread of all scores, and that of scores at the levels.
    squares = float(seen @ scores.score**2) - dummies * scores.of_dummies(scores.score**2)
    ends = [squares / n - (total / n) ** 2]
    least, most = float(scores.variance.min()), float(scores.variance.max())
    if scores.spread is not None:
        at_levels = (float(seen @ scores.spread) - dummies * scores.of_dummies(scores.spread)) / n
        ends.append(min(max(at_levels, least), most) + grid.step**2 / 4)
    variance = max(min(ends), least) / n + scores.added(dummies, n)
    return NumberEstimate(grid=grid, n=n, mean=grid.low + total / n, standard_error=math.sqrt(variance), counts=counts)


def mean_error(protocol: Protocol, *, grid: NumberGrid, numbers: npt.ArrayLike | None = None) -> float:
    """Return the standard error of the estimated mean, over all coins: for these numbers, or for the worst ones.

    Where the number of dummies is random, the variance is its mean over it.

    Raises:
        InvalidInputError: there are not n numbers, or not as many values as levels.
        NumericalError: reports hardly depend on the numbers, so that no float tells these apart.
        UnsupportedProtocolError: the randomizer's reports cannot be counted one by one.

    Source: docs/theory/numbers.md, Theorem 3 and Theorem 4.

    >>> import hushuffle as hs
    >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
    >>> survey = hs.Protocol(randomizer=ages, shuffler=hs.UniformShuffle(), n=10_000)
    >>> round(mean_error(survey, grid=ages.grid), 3)
    0.559
    >>> round(mean_error(survey, grid=ages.grid, numbers=[40] * 10_000), 3)
    0.369
    """
    scores = Scores.of(protocol.randomizer, grid)
    if numbers is None:
        person = scores.worst()
    else:
        places = grid.positions(numbers)
        if places.size != protocol.n:
            _checks.reject("numbers", f"n = {protocol.n:,} numbers", f"<{places.size:,}>")
        person = float(scores.at(np.clip(np.asarray(numbers, dtype=np.float64), grid.low, grid.high)).mean())
    return math.sqrt(person / protocol.n + scores.added(protocol.shuffler.expected_dummies, protocol.n))


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """A number for each report, whose expectation is the level that it is about, less the lowest one.

    `score` has shape (reports,), `variance` (levels,): that of the score of one report of each level. `spread`, shape
    (reports,), has it as its expectation; None: no scores do. `blanket` is the law of dummies, shape (reports,).
    """

    grid: NumberGrid
    score: Floats
    variance: Floats
    spread: Floats | None
    blanket: Floats

    @classmethod
    def of(cls, randomizer: Mechanism, grid: NumberGrid) -> Scores:
        """Return the scores of a randomizer's reports."""
        if randomizer.inputs != grid.levels:
            _checks.reject("grid", f"of {randomizer.inputs:,} levels, as many as values", f"<{grid.levels:,} levels>")
        reports = Expectations.of(randomizer)
        levels = grid.points - grid.low
        score = reports.scores(levels)
        if score is None:
            message = "reports hardly depend on the numbers: no float tells them apart. Use a larger epsilon."
            raise NumericalError(message)
        variance = np.maximum(reports.expected(score**2) - levels**2, 0.0)
        return cls(grid=grid, score=score, variance=variance, spread=reports.scores(variance), blanket=reports.blanket)

    def of_dummies(self, score: Floats) -> float:
        """Return the expected score of a dummy."""
        return float(self.blanket @ score)

    def added(self, dummies: float, n: int) -> float:
        """Return what so many dummies add to the variance of the mean."""
        return dummies * (self.of_dummies(self.score**2) - self.of_dummies(self.score) ** 2) / n**2

    def at(self, numbers: Floats) -> Floats:
        """Return the variance of one report's score, rounding included, for each of some numbers inside the bounds."""
        place = (numbers - self.grid.low) / self.grid.step
        below = np.clip(place.astype(np.int64), 0, self.grid.levels - 2)
        share = place - below
        levels = (1 - share) * self.variance[below] + share * self.variance[below + 1]
        return levels + self.grid.step**2 * share * (1 - share)

    def worst(self) -> float:
        """Return the largest variance of one report's score over all numbers: between two levels it is a parabola."""
        step, rise = self.grid.step, np.diff(self.variance)
        share = np.clip(0.5 + rise / (2 * step**2), 0.0, 1.0)
        inside = self.variance[:-1] + share * rise + step**2 * share * (1 - share)
        return float(inside.max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Expectations:
    """What one report says on average; `blanket` is the law of dummies, shape (reports,).

    `matrix` is Q(y|x), shape (levels, reports). None: randomized response, which tells the truth on purpose with
    probability `told`.
    """

    blanket: Floats
    matrix: Floats | None = None
    told: float = 1.0

    @classmethod
    def of(cls, randomizer: Mechanism) -> Expectations:
        """Return those of a randomizer whose reports can be counted one by one."""
        law = randomizer.law()
        if law.symmetric is not None:
            k = law.symmetric.k
            return cls(blanket=np.full(k, 1 / k), told=float(law.symmetric.theta))
        if law.support is not None:
            message = (
                "Estimates of numbers need randomized response, or reports that are counted one by one, which "
                f"{type(randomizer).__name__} does not offer."
            )
            raise UnsupportedProtocolError(message)
        return cls(
            blanket=np.asarray(law.blanket().law, dtype=np.float64),
            matrix=np.asarray(law.channel().matrix, dtype=np.float64),
        )

    def expected(self, scores: Floats) -> Floats:
        """Return the expectation of scores, shape (reports,), of a report of each level, shape (levels,)."""
        if self.matrix is None:
            return np.asarray(self.told * scores + (1 - self.told) * scores.mean(axis=0))
        return np.asarray(self.matrix @ scores)

    def scores(self, targets: Floats) -> Floats | None:
        """Return scores, shape (reports,), whose expectations are `targets`, shape (levels,); None: there are none.

        Of several solutions it is that of the least square where all levels are equally frequent.
        """
        if self.matrix is None:
            return np.asarray((targets - (1 - self.told) * targets.mean(axis=0)) / self.told)
        weight = np.sqrt(np.maximum(self.matrix.mean(axis=0), np.finfo(np.float64).tiny))
        found = np.linalg.lstsq(self.matrix / weight, targets, rcond=1e-13)[0] / weight
        missed = np.abs(self.matrix @ found - targets).max()
        return np.asarray(found) if missed <= _EXACT * max(float(np.abs(targets).max()), 1e-300) else None


def _counted(
    reports: Transcript | npt.NDArray[np.int64] | Histogram, protocol: Protocol, outputs: int
) -> tuple[Histogram, int]:
    """Return how often each report came, and how many dummies are among them."""
    if isinstance(reports, Histogram):
        counts = reports
    else:
        array = reports.reports if isinstance(reports, Transcript) else np.atleast_1d(reports)
        counts = protocol.randomizer.counts(array)
    if counts.k != outputs:
        _checks.reject("reports", f"counts of {outputs:,} reports", counts.k)
    drawn, dummies = protocol.shuffler.dummy_law, counts.total - protocol.n
    if drawn is None and dummies != protocol.shuffler.dummies:
        rule = f"n + dummies = {protocol.n + protocol.shuffler.dummies:,} reports"
        _checks.reject("reports", rule, f"{counts.total:,}")
    if drawn is not None and dummies not in drawn:
        _checks.reject("reports", f"n = {protocol.n:,} reports and dummies of {drawn!r}", f"{counts.total:,}")
    return counts, dummies
