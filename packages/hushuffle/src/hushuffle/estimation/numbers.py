"""Estimates of numbers from reports: mean, distribution and quantiles, with their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.estimation.distribution import LARGEST, cumulative_ends, quantile_ends, smoothed_shares, thresholds
from hushuffle.estimation.expectations import Expectations
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Histogram, NumberGrid, Transcript, released_reports

_QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
_NOTHING: Final = 1e-9  # relative to the range: a smaller bias is a rounding error of floats


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberEstimate:
    """Estimates about the numbers of n people, which lie on `grid`.

    The bias of `mean` is at most `bias`, which is 0 if unbiased scores are practical (randomized response, square wave,
    discrete Laplace). `standard_error` is that of the mean over all randomness, with the people's numbers fixed.
    Estimates are not clipped to the bounds. The expected variance is never too small; it is too large by at most a
    quarter of a squared step over n. `counts`, shape (reports,), is how often each report occurred, including
    `dummies`. `scores`, shape (reports,), is what each report adds to n times (mean - `low`).

    Source: docs/theory/numbers.md, Theorem 3, Theorem 7, Theorem 8 and Theorem 9.
    """

    grid: NumberGrid
    n: int
    mean: float
    standard_error: float
    bias: float = 0.0
    counts: Histogram = field(repr=False)
    dummies: int = 0
    reports: Expectations = field(repr=False)
    scores: Floats = field(repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the mean (normal approximation, any bias included), inside the bounds."""
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error + self.bias
        low, high = np.clip([self.mean - half, self.mean + half], self.grid.low, self.grid.high).tolist()
        return low, high

    @cached_property
    def shares(self) -> Floats:
        """The estimated distribution over levels, shape (levels,); smoothed, so biased and without intervals.

        The method is expectation-maximisation with smoothing (Li et al. 2020).
        """
        return smoothed_shares(self.reports, self.counts.counts, n=self.n, dummies=self.dummies)

    def cumulative(self, confidence: float = 0.95) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return codes of levels, shape (m,), and intervals, shape (m, 2), each at `confidence`; m <= 64.

        The lower bound is for the share of people whose number is below the next level. The upper bound is for the
        share whose number is at most this level. So the interval also holds for the unrounded numbers.
        """
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        codes = thresholds(self.grid.levels)
        return codes, self._ends(codes, level)

    def quantile(self, share: float) -> float:
        """The quantile `share` of the smoothed distribution, in which each level is spread to its neighbours."""
        wanted, points = _checks.probability("share", share), self.grid.points
        edges = np.array([self.grid.low, *(points[1:] + points[:-1]) / 2, self.grid.high])
        return float(np.interp(wanted, [0.0, *np.cumsum(self.shares[:-1]), 1.0], edges))

    def quantile_intervals(self, shares: npt.ArrayLike, confidence: float = 0.95) -> Floats:
        """Return an interval for each quantile of the people's numbers, shape (m, 2), each at `confidence`.

        Quantile p is the smallest number that at least a share p of the people do not exceed. The bounds are levels, so
        an interval is at least two levels wide: for many people, take more levels.
        """
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        wanted = [
            _checks.probability("shares", share, low_open=True, high_open=True)
            for share in np.atleast_1d(np.asarray(shares, dtype=np.float64)).tolist()
        ]
        points, last = self.grid.points, self.grid.levels - 1
        intervals = [
            (self.grid.low if low < 0 else points[low], self.grid.high if high > last else points[high])
            for low, high in quantile_ends(self._ends, self.grid.levels, wanted, level)
        ]
        return np.array(intervals, dtype=np.float64).reshape(-1, 2)

    def _ends(self, codes: npt.NDArray[np.int64], confidence: float) -> Floats:
        """Return intervals for the shares up to the levels `codes`, shape (codes, 2), each at `confidence`."""
        law, counts, n, dummies = self.reports, self.counts.counts, self.n, self.dummies
        return cumulative_ends(law, counts, self.shares, n=n, dummies=dummies, codes=codes, confidence=confidence)

    def moved(self, fakes: int) -> tuple[float, float]:
        """Return how far `fakes` fake reports among the n can move the expected mean: down and up (poisoning gain).

        The bounds, in the numbers' unit, hold for any fake reports and any honest values. A bias is additional.

        Source: docs/theory/numbers.md, Theorem 9.

        >>> import hushuffle as hs
        >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
        >>> survey = hs.Protocol(randomizer=ages, shuffler=hs.UniformShuffle(), n=100)
        >>> found = hs.estimate_numbers(np.full(100, 5), protocol=survey, grid=ages.grid)
        >>> [round(far, 2) for far in found.moved(1)]
        [1.45, 1.45]
        """
        share = _checks.integer("fakes", fakes, low=0, high=self.n) / self.n
        least, most = float(self.scores.min()), float(self.scores.max())
        return share * (self.grid.high - self.grid.low - least), share * most

    def facts(self, confidence: float = 0.95) -> dict[str, Any]:
        """Return mean, quantiles and smoothed shares as JSON values; quantiles are clipped to their intervals.

        Quantiles are left out if there are too many levels for their intervals.
        """
        quantiles = []
        if self.grid.levels <= LARGEST:
            ends = self.quantile_intervals(_QUANTILES, confidence)
            for share, (low, high) in zip(_QUANTILES, ends.tolist(), strict=True):
                value = min(max(self.quantile(share), low), high)
                quantiles.append({"share": share, "value": value, "low": low, "high": high})
        low, high = self.interval(confidence)
        return {
            "mean": self.mean,
            "standard_error": self.standard_error,
            "bias": self.bias,
            "low": low,
            "high": high,
            "quantiles": quantiles,
            "levels": self.grid.points.tolist(),
            "smoothed": self.shares.tolist(),
        }


def estimate_numbers(
    reports: Transcript | npt.NDArray[np.int64] | Histogram, *, protocol: Protocol, grid: NumberGrid
) -> NumberEstimate:
    """Estimate the mean of n people's numbers, with its error; the result also gives distribution and quantiles.

    Args:
        reports: a `Transcript`, its reports as an array, or how often each report occurred (a `Histogram`).
        protocol: the protocol that produced them, with a value for each level.
        grid: the grid that encoded the numbers, in the unit of the result.

    Raises:
        InvalidInputError: the number of reports is not n + dummies, or there are not as many values as levels.
        UnsupportedProtocolError: the randomizer's reports cannot be counted one by one.

    Source: docs/theory/numbers.md, Theorem 3.

    >>> import hushuffle as hs
    >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
    >>> survey = hs.Protocol(randomizer=ages, shuffler=hs.UniformShuffle(), n=10_000)
    >>> rng, numbers = hs.reproducible(1), np.linspace(10, 90, 10_000)
    >>> reports = survey.collect(ages.encode(numbers, rng=rng), rng=rng)
    >>> found = hs.estimate_numbers(reports, protocol=survey, grid=ages.grid)
    >>> round(found.mean, 2), round(found.standard_error, 2)
    (50.91, 0.4)
    >>> round(found.quantile(0.5), 1), found.quantile_intervals(0.5).tolist()
    (51.0, [[40.0, 60.0]])
    """
    scores = LevelScores.of(protocol.randomizer, grid, protocol.n)
    counts, dummies = _counted(reports, protocol, scores.reports.blanket.size)
    n, seen = protocol.n, counts.counts
    total = float(seen @ scores.score) - dummies * scores.of_dummies(scores.score)
    # Two upper bounds on a person's part of the variance: by the spread of all scores, by the scores at the levels.
    squares = float(seen @ scores.score**2) - dummies * scores.of_dummies(scores.score**2)
    ends = [squares / n - (total / n) ** 2]
    least, most = float(scores.variance.min()), float(scores.variance.max())
    if scores.spread is not None:
        at_levels = (float(seen @ scores.spread) - dummies * scores.of_dummies(scores.spread)) / n
        ends.append(min(max(at_levels, least), most) + grid.step**2 / 4)
    variance = max(min(ends), least) / n + scores.added(dummies, n)
    return NumberEstimate(
        grid=grid,
        n=n,
        mean=grid.low + total / n,
        standard_error=math.sqrt(variance),
        bias=scores.bias,
        counts=counts,
        dummies=dummies,
        reports=scores.reports,
        scores=scores.score,
    )


def mean_error(protocol: Protocol, *, grid: NumberGrid, numbers: npt.ArrayLike | None = None) -> float:
    """Return the error of the estimated mean, over all randomness, for `numbers` or for the worst-case numbers.

    It is the standard error or, if the mean has a bias, a bound on the root mean square error. If the number of
    dummies is random, the variance is its expectation over that number.

    Raises:
        InvalidInputError: there are not n numbers, or not as many values as levels.
        UnsupportedProtocolError: the randomizer's reports cannot be counted one by one.

    Source: docs/theory/numbers.md, Theorem 3 and Theorem 4.

    >>> import hushuffle as hs
    >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
    >>> survey = hs.Protocol(randomizer=ages, shuffler=hs.UniformShuffle(), n=10_000)
    >>> round(hs.mean_error(survey, grid=ages.grid), 3)
    0.559
    >>> round(hs.mean_error(survey, grid=ages.grid, numbers=[40] * 10_000), 3)
    0.369
    """
    scores = LevelScores.of(protocol.randomizer, grid, protocol.n)
    if numbers is None:
        person = scores.worst()
    else:
        places = grid.positions(numbers)
        if places.size != protocol.n:
            _checks.reject("numbers", f"n = {protocol.n:,} numbers", f"<{places.size:,}>")
        person = float(scores.at(np.clip(np.asarray(numbers, dtype=np.float64), grid.low, grid.high)).mean())
    return math.sqrt(
        person / protocol.n + scores.added(protocol.shuffler.expected_dummies, protocol.n) + scores.bias**2
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelScores:
    """A score for each report, whose expectation is the report's level minus the lowest level, up to `bias`.

    `score` has shape (reports,). `variance`, shape (levels,), is the variance of the score of a report of each level.
    `spread`, shape (reports,), has that variance as its expectation; None if no such scores exist.
    """

    grid: NumberGrid
    score: Floats
    variance: Floats
    spread: Floats | None
    reports: Expectations
    bias: float

    @classmethod
    def of(cls, randomizer: Mechanism, grid: NumberGrid, n: int) -> LevelScores:
        if randomizer.inputs != grid.levels:
            rule = f"a grid of {randomizer.inputs:,} levels, one for each value of the randomizer"
            _checks.reject("grid", rule, f"<{grid.levels:,} levels>")
        reports = Expectations.of(randomizer)
        levels = grid.points - grid.low
        score = reports.scores(levels)
        score = reports.near_scores(levels, n=n) if score is None else score
        mean = reports.expected(score)
        variance = np.maximum(reports.expected(score**2) - mean**2, 0.0)
        bias = float(np.abs(mean - levels).max())
        bias = 0.0 if bias < _NOTHING * levels[-1] else bias
        return cls(
            grid=grid, score=score, variance=variance, spread=reports.scores(variance), reports=reports, bias=bias
        )

    def of_dummies(self, score: Floats) -> float:
        return float(self.reports.blanket @ score)

    def added(self, dummies: float, n: int) -> float:
        """Return the variance that `dummies` dummies add to the estimated mean."""
        return dummies * (self.of_dummies(self.score**2) - self.of_dummies(self.score) ** 2) / n**2

    def at(self, numbers: Floats) -> Floats:
        """Return the variance of one report's score, including rounding, for each of `numbers` inside the bounds."""
        place = (numbers - self.grid.low) / self.grid.step
        below = np.clip(place.astype(np.int64), 0, self.grid.levels - 2)
        share = place - below
        levels = (1 - share) * self.variance[below] + share * self.variance[below + 1]
        return levels + self.grid.step**2 * share * (1 - share)

    def worst(self) -> float:
        """Return the largest variance of one report's score over all numbers; it is a parabola between two levels."""
        step, rise = self.grid.step, np.diff(self.variance)
        share = np.clip(0.5 + rise / (2 * step**2), 0.0, 1.0)
        inside = self.variance[:-1] + share * rise + step**2 * share * (1 - share)
        return float(inside.max())


def _counted(
    reports: Transcript | npt.NDArray[np.int64] | Histogram, protocol: Protocol, outputs: int
) -> tuple[Histogram, int]:
    """Return how often each report occurred, and how many dummies are among them."""
    if isinstance(reports, Histogram):
        counts = reports
    else:
        array = released_reports(reports)
        counts = Histogram(counts=np.bincount(_checks.codes("reports", array, k=outputs), minlength=outputs))
    if counts.k != outputs:
        _checks.reject("reports", f"counts of {outputs:,} reports", counts.k)
    drawn, dummies = protocol.shuffler.dummy_law, counts.total - protocol.n
    if drawn is None and dummies != protocol.shuffler.dummies:
        rule = f"n + dummies = {protocol.n + protocol.shuffler.dummies:,} reports"
        _checks.reject("reports", rule, f"{counts.total:,}")
    if drawn is not None and dummies not in drawn:
        _checks.reject(
            "reports",
            f"n = {protocol.n:,} reports plus a number of dummies possible under {drawn!r}",
            f"{counts.total:,}",
        )
    return counts, dummies
