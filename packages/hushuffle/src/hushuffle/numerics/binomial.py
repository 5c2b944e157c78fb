"""Binomial probabilities, tails, grouped counts and sums of fair signs, with small relative error far into the tails.

All functions compute in floats. Tests check that relative errors are at most `margin(n)`, against 40-digit arithmetic,
for n up to 10**9 and probabilities down to 10**-200. Certified bounds are widened by `margin(n)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import scipy  # scipy's modules are imported on first use

Floats = npt.NDArray[np.float64]
T = TypeVar("T", float, Floats)

EPS: Final = float(np.finfo(np.float64).eps)

LOG_TAIL: Final = -95.0
"""Natural logarithm of the probability outside a window, on each side: e**-95 < 1e-41."""

_SINGLE: Final = 1500
"""Number of counts that are summed one by one; above it, neighbouring counts share a row."""

_NARROW: Final = 3e-5
"""Rows narrower than this fraction of the count would not change a displayed figure."""

_SMALL_TABLE: Final = 200_000
"""A table of fair signs may always have this many entries."""

_TOGETHER: Final = 64
"""Number of binomials that are added up together: as many as fit a cache."""

_EXACT_UP_TO = 32
_NOT_SMALL = 0.01


def margin(n: float) -> float:
    """Return the relative error bound of `pmf`, `upper_tail` and `lower_tail` at n trials."""
    return 256 * EPS * (4 + math.sqrt(max(n, 1.0)))


def pmf(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> Floats:
    """Return P(Bin(n, p) = x), shapes broadcast; 0 outside 0..n.

    Source: C. Loader, Fast and accurate computation of binomial probabilities (2000).

    >>> round(float(pmf(3, 10, 0.5)), 12) == 120 / 1024
    True
    """
    count, trials = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    rest = trials - count
    inside = (count >= 0) & (rest >= 0)
    if p in (0.0, 1.0):
        return np.where(inside & ((count if p == 0.0 else rest) == 0), 1.0, 0.0)
    x1, x0 = np.where(inside, count, 0.0), np.where(inside, rest, 0.0)
    total = x1 + x0
    edge = (x1 == 0) | (x0 == 0)
    safe1, safe0, safe = np.where(edge, 1.0, x1), np.where(edge, 1.0, x0), np.where(edge, 2.0, total)
    inner = (
        stirling_error(safe)
        - stirling_error(safe1)
        - stirling_error(safe0)
        - deviance(safe1, safe * p)
        - deviance(safe0, safe * (1 - p))
    )
    smooth = np.exp(inner) * np.sqrt(safe / (2 * np.pi * safe1 * safe0))
    at_edge = np.exp(scipy.special.xlogy(x1, p) + scipy.special.xlog1py(x0, -p))
    return np.where(inside, np.where(edge, at_edge, smooth), 0.0)


def upper_tail(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> Floats:
    """Return P(Bin(n, p) >= x); shapes broadcast.

    >>> float(upper_tail(9, 10, 0.5)) == 11 / 1024
    True
    """
    count, trials = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    inside = (count > 0) & (count <= trials)
    a, b = np.where(inside, count, 1.0), np.where(inside, trials - count + 1, 1.0)
    return np.where(inside, scipy.special.betainc(a, b, p), np.where(count <= 0, 1.0, 0.0))


def lower_tail(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> Floats:
    """Return P(Bin(n, p) <= x); shapes broadcast.

    >>> float(lower_tail(1, 10, 0.5)) == 11 / 1024
    True
    """
    count, trials = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    inside = (count >= 0) & (count < trials)
    a, b = np.where(inside, count + 1, 1.0), np.where(inside, trials - count, 1.0)
    # This function is nine times faster; the rounding of 1 - p is within the margin unless p is small.
    tail = scipy.special.betainc(b, a, 1 - p) if p >= _NOT_SMALL else scipy.special.betaincc(a, b, p)
    return np.where(inside, tail, np.where(count < 0, 0.0, 1.0))


def runs(low: Floats, size: int, trials: Floats, p: float) -> Floats:
    """Return P(Bin(trials[i], p) = low[i] + j) for j < size, shape (B, size); 0 < p < 1.

    Each probability is that before it, times a ratio. The relative error is at most `margin(trials)` + 4 size EPS.

    >>> runs(np.array([0.0]), 4, np.array([2.0]), 0.5).tolist()
    [[0.25, 0.5, 0.25, 0.0]]
    """
    places = low[:, None] + np.arange(size, dtype=np.float64)
    table = np.maximum(trials[:, None] - places + 1, 0.0) / np.maximum(places, 1.0) * (p / (1 - p))
    table[:, 0] = pmf(low, trials, p)
    return np.cumprod(table, axis=1, out=table)


def mixed(trials: Floats, p: float, weights: Floats, log_tail: float) -> tuple[int, Floats, float]:
    """Return the sum over i of weights[i] P(Bin(trials[i], p) = x) from the first x on, and a bound on relative errors.

    `weights` have shape (B, columns), the sums (columns, counts); 0 < p < 1. Of each binomial, both tails beyond
    probability e**log_tail are omitted.

    >>> mixed(np.array([1.0, 2.0]), 0.5, np.array([[0.5], [0.5]]), -30.0)[1].round(12).tolist()
    [[0.375, 0.5, 0.125]]
    """
    reach = deviation(-log_tail, trials * p * (1 - p))
    low, high = np.maximum(np.floor(trials * p - reach), 0.0), np.minimum(np.ceil(trials * p + reach), trials)
    first, size = int(low.min()), int((high - low).max()) + 1
    total = np.zeros((weights.shape[1], int(low.max()) - first + size))
    for begin in range(0, trials.size, _TOGETHER):
        part = slice(begin, begin + _TOGETHER)
        table = runs(low[part], size, trials[part], p)
        for row, column in np.argwhere(weights[part]).tolist():
            start = int(low[begin + row]) - first
            total[column, start : start + size] += weights[begin + row, column] * table[row]
    return first, total, margin(float(trials.max())) + (8 * size + 2 * trials.size) * EPS


def between(cuts: Floats, trials: Floats, p: float) -> tuple[Floats, Floats]:
    """Return P(cuts[j] < Bin(trials, p) <= cuts[j + 1]) and the sum of the two tails whose difference it is.

    `cuts` are ascending along the last axis, shape (..., R + 1); `trials` has shape (..., 1). Each row uses
    the tails on its side of the mean, so that small masses keep their accuracy.

    >>> between(np.array([-1.0, 0.0, 2.0]), np.array([2.0]), 0.5)[0].tolist()
    [0.25, 0.75]
    """
    left = cuts[..., 1:] < trials * p
    count, tails = np.broadcast_to(trials, cuts.shape), []
    for side, tail, shift in ((left, lower_tail, 0), (~left, upper_tail, 1)):
        needed = np.zeros(cuts.shape, dtype=np.bool_)
        needed[..., 1:] |= side
        needed[..., :-1] |= side
        values = np.zeros(cuts.shape)
        values[needed] = tail(cuts[needed] + shift, count[needed], p)
        tails.append(values)
    below, above = tails
    mass = np.where(left, below[..., 1:] - below[..., :-1], above[..., :-1] - above[..., 1:])
    return mass, np.where(left, below[..., 1:] + below[..., :-1], above[..., :-1] + above[..., 1:])


def shortfall(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> tuple[Floats, Floats]:
    """Return E[x - Bin(n, p)]_+ and a bound on its rounding error; shapes broadcast.

    >>> round(float(shortfall(1, 2, 0.5)[0]), 12)
    0.25
    """
    level, trials = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    edge = np.maximum(trials - level, 0.0) * p * pmf(level, trials, p)
    drift = (level - trials * p) * lower_tail(level, trials, p)
    error = (margin(float(np.max(trials, initial=1.0))) + 8 * EPS) * (edge + np.abs(drift))
    inside = (level > 0) & (level < trials)
    value = np.where(inside, np.maximum(edge + drift, 0.0), np.where(level <= 0, 0.0, level - trials * p))
    return value, np.where(level <= 0, 0.0, error + 4 * EPS * np.abs(level))


def deviation(reach: float, variance: T, *, largest: float = 1.0) -> T:
    """Return x such that a sum exceeds its mean by x with probability at most e**-reach (Bernstein's inequality).

    The terms of the sum are independent; each exceeds its mean by at most `largest`.
    """
    first = largest * reach / 3
    square = first**2 + 2 * reach * variance
    return first + (math.sqrt(square) if isinstance(square, float) else np.sqrt(square))


def window(n: int, p: float, log_tail: float) -> tuple[int, int]:
    """Return (low, high) with P(Bin(n, p) < low) and P(Bin(n, p) > high) each at most e**log_tail.

    The bounds are from Bernstein's inequality, so they are valid but not tight.

    >>> window(10_000, 0.5, -30.0)
    (4602, 5398)
    """
    mean, x = n * p, deviation(-log_tail, n * p * (1 - p))
    return max(0, math.floor(mean - x)), min(n, math.ceil(mean + x))


def window_sum(groups: Iterable[tuple[int, float]], log_tail: float) -> tuple[Floats, float]:
    """Return the distribution of a sum of binomials (trials, chance), each in its window, and a bound on each error.

    The computed probabilities omit cases with a binomial outside its window. The bound on such a case is the
    probability to be outside this window, times the largest mass of any other binomial.

    >>> law, missing = window_sum([(2, 0.5), (1, 0.5)], -30.0)
    >>> law.round(12).tolist(), missing
    ([0.125, 0.375, 0.375, 0.125], 0.0)
    """
    law, outside, highest = np.ones(1), list[float](), list[float]()
    for trials, chance in groups:
        low, high = window(trials, chance, log_tail)
        own = pmf(np.arange(low, high + 1.0), trials, chance)
        law = np.convolve(law, own)
        outside.append(((low > 0) + (high < trials)) * math.exp(log_tail))
        highest.append(min(2 * float(own.max()), 1.0))  # twice, to cover rounding
    places = range(len(outside))
    missing = sum(outside[one] * min([1.0, *(highest[other] for other in places if other != one)]) for one in places)
    return law, missing


def beside_traces(mass: Floats, limit: float) -> npt.NDArray[np.bool_]:
    """Return which of the cells remain if the least probable ones, up to `limit` in total, are removed; same shape.

    >>> beside_traces(np.array([0.5, 0.1, 0.2]), 0.25).tolist()
    [True, False, True]
    """
    ascending = np.sort(mass, axis=None)
    removed = int(np.searchsorted(np.cumsum(ascending), limit, side="right"))
    return mass >= ascending[removed] if removed < mass.size else np.zeros(mass.shape, dtype=np.bool_)


def row_step(low: int, high: int) -> int:
    """Return how many consecutive integers between `low` and `high` are grouped into one row of a table.

    >>> row_step(0, 1000), row_step(170_000_000, 170_200_000)
    (1, 5100)
    """
    return max(1, -(-(high - low + 1) // _SINGLE), int(_NARROW * low))


@dataclass(frozen=True, kw_only=True, eq=False)
class CountRows:
    """Bin(n, p) grouped into rows `first[i]` to `last[i]` of probability `mass[i]` +- `doubt[i]`, shapes (rows,).

    Counts in no row have probability at most e**-95 on each side, if `of` is not given another limit.
    """

    first: Floats
    last: Floats
    mass: Floats
    doubt: Floats

    @classmethod
    def of(cls, n: int, chance: float, *, step: int | None = None, log_tail: float = LOG_TAIL) -> CountRows:
        """Return the rows of Bin(n, chance), without tails of probability e**`log_tail`.

        `step` counts share a row (default: enough for a small number of rows).

        >>> CountRows.of(2, 0.5).mass.round(12).tolist()
        [0.25, 0.5, 0.25]
        """
        low, high = window(n, chance, log_tail)
        width = row_step(low, high) if step is None else step
        first = np.arange(low, high + 1, width, dtype=np.float64)
        last = np.minimum(first + width - 1, high)
        if width == 1:
            mass = pmf(first, n, chance)
            return cls(first=first, last=last, mass=mass, doubt=margin(n) * mass)
        mass, tails = between(np.append(first - 1, high), np.array([float(n)]), chance)
        return cls(first=first, last=last, mass=np.maximum(mass, 0.0), doubt=margin(n) * tails)

    @property
    def at_most(self) -> Floats:
        return self.mass + self.doubt

    @property
    def at_least(self) -> Floats:
        return np.maximum(self.mass - self.doubt, 0.0)


def fair_signs(signs: Floats, slope: float, threshold: Floats, head: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return certified lower and upper bounds on E[slope R - threshold]_+, R a sum of `signs` fair signs.

    Arrays broadcast; slope > 0, threshold >= 0. `head` contains the largest value slope * signs - threshold, and the
    sum of the magnitudes from which it was computed. The expectation grows with `signs` (convex order), and is
    decreasing and convex in `threshold`.

    Two formulas with different rounding errors are evaluated, and the better bounds are returned. The sum from the
    middle is accurate for many signs; the sum from the head is accurate if huge slope and threshold nearly cancel.

    >>> one, two = np.array([1.0]), np.array([2.0])
    >>> [end.round(12).tolist() for end in fair_signs(two, 1.0, one, (one, two + one))]
    [[0.25], [0.25]]
    """
    noise = margin(float(np.max(signs, initial=1.0))) + 16 * EPS
    lower, upper = _from_the_middle(signs, slope, threshold, noise)
    if _cancels(signs, slope, head):
        other_lower, other_upper = _from_the_head(signs, slope, head, noise)
        lower, upper = np.maximum(lower, other_lower), np.minimum(upper, other_upper)
    return lower, upper


def _cancels(signs: Floats, slope: float, head: tuple[Floats, Floats]) -> bool:
    """Return whether the largest value of slope R - threshold is a small difference of two large numbers."""
    return slope * float(np.max(signs, initial=0.0)) * EPS > 1e-9 * float(np.max(head[0], initial=0.0))


def _from_the_middle(signs: Floats, slope: float, threshold: Floats, noise: float) -> tuple[Floats, Floats]:
    """Return both bounds by a sum over positive signs: slope first P(A = first) - threshold P(A >= first)."""
    first = np.floor((signs + threshold / slope) / 2) + 1
    runs, run = _runs(first, np.broadcast_to(signs, first.shape))
    at, number = first.ravel()[runs], np.broadcast_to(signs, first.shape).ravel()[runs]
    mass = pmf(at, number, 0.5)
    gain = slope * first * mass[run]
    loss = threshold * upper_tail(at, number, 0.5)[run]
    error = noise * (gain + loss)
    # `first` may be one too high by rounding: then the omitted term is zero up to rounding.
    before = np.where(at == number + 1, 0.5**number, mass * at / np.maximum(number - at + 1, 1.0))  # P(A = first - 1)
    skipped = 16 * EPS * slope * signs * before[run]
    return np.maximum(gain - loss - error, 0.0), np.maximum(gain - loss, 0.0) + error + skipped


def _runs(first: Floats, two: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where a pair differs from the pair before it, and for each pair the index of its run.

    Cells lie row by row, so that most are like their neighbours: tails are the dear part, and are taken once for each.

    >>> _runs(np.array([3.0, 3.0, 4.0, 3.0]), np.array([7.0, 7.0, 7.0, 7.0]))[1].tolist()
    [0, 0, 1, 2]
    """
    flat, other = first.ravel(), two.ravel()
    new = np.ones(flat.size, dtype=np.bool_)
    new[1:] = (flat[1:] != flat[:-1]) | (other[1:] != other[:-1])
    return np.flatnonzero(new), (np.cumsum(new) - 1).reshape(first.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class FairTable:
    """One of the bounds of `fair_signs` for the same numbers of signs and many thresholds, from a table.

    Row i is about Bin(s, 1/2) = A from s // 2 on, for the i-th different number s of signs: bounds on A P(A) (`gain`)
    and P(A or more) (`tail`), upper and lower if `above`, else lower and upper, without tails of e**`log_tail`. For
    each of `signs`, shape (B,), count A is at `start` + A, and the row is 0 from the count `stop` on.
    """

    signs: Floats
    most: int  # the place of the largest number of signs
    start: npt.NDArray[np.int64]
    stop: Floats
    gain: Floats
    tail: Floats
    above: bool

    @classmethod
    def of(cls, signs: Floats, *, above: bool, log_tail: float = LOG_TAIL) -> FairTable | None:
        """Return the table for these numbers of signs; None if a hundred direct evaluations would be cheaper.

        >>> two = np.array([2.0])
        >>> [round(FairTable.of(two, above=above).mean(np.ones(1), np.ones(1)), 12) for above in (False, True)]
        [0.25, 0.25]
        """
        numbers, row = np.unique(signs, return_inverse=True)
        first = np.floor(numbers / 2)
        last = np.minimum(np.ceil(numbers / 2 + deviation(-log_tail, numbers / 4)), numbers)
        size = int((last - first).max(initial=0.0)) + 3  # two zeros after the last entry
        if numbers.size * size > 50 * signs.size + _SMALL_TABLE:
            return None
        noise = margin(float(numbers.max(initial=1.0))) + (16 + 4 * size) * EPS
        sign = 1 if above else -1
        gain, tail = np.empty((2, numbers.size, size))
        for begin in range(0, numbers.size, _TOGETHER):
            part = slice(begin, begin + _TOGETHER)
            mass = runs(first[part], size, numbers[part], 0.5)
            counts: Floats = first[part, None] + np.arange(size)
            mass[counts > last[part, None]] = 0.0
            # Rows are summed from the far tail, so that small tails keep their digits.
            np.multiply(np.cumsum(mass[:, ::-1], axis=1)[:, ::-1], 1 - sign * noise, out=tail[part])
            # Rounding may hide that the count before adds; and counts beyond the table were omitted.
            counts *= mass
            counts *= 1 + sign * noise
            counts += sign * 2 * math.exp(log_tail) * numbers[part, None]
            counts[:, 1:] += sign * 16 * EPS * numbers[part, None] * mass[:, :-1]
            gain[part] = counts
        start = (size * np.arange(numbers.size) - first.astype(np.int64))[row.ravel()]
        stop = last[row.ravel()] + 2
        most = int(np.argmax(signs)) if signs.size else 0
        return cls(signs=signs, most=most, start=start, stop=stop, gain=gain.ravel(), tail=tail.ravel(), above=above)

    def cancels(self, threshold: Floats) -> bool:
        """Return whether sums may lose their digits at these thresholds, so that `fair_signs` is needed."""
        if not self.signs.size:
            return False
        most = float(self.signs[self.most])
        return EPS * most > 1e-9 * (most - float(threshold[self.most]))

    def mean(self, weight: Floats, threshold: Floats) -> float:
        """Return a bound on the sum of `weight` E[R - threshold]_+; shapes (B,), weights >= 0."""
        place = (self.signs + threshold) / 2 + 1
        index = np.minimum(place, self.stop, out=place).astype(np.int64)
        index += self.start
        value, loss = self.gain.take(index), self.tail.take(index)
        loss *= threshold
        value -= loss
        value *= weight
        slack: float = EPS * (16 + value.size) * (1 if self.above else -1)
        return float((value if self.above else np.maximum(value, 0.0)).sum()) * (1 + slack)


def _from_the_head(signs: Floats, slope: float, head: tuple[Floats, Floats], noise: float) -> tuple[Floats, Floats]:
    """Return both bounds by the sum over negative signs B <= last: head P(B <= last) - 2 slope E[B; B <= last]."""
    most, magnitude = head
    last = np.ceil(most / (2 * slope)) - 1
    gain = np.maximum(most, 0.0) * lower_tail(last, signs, 0.5)
    loss = slope * signs * lower_tail(last - 1, np.maximum(signs - 1, 0.0), 0.5)
    # A wrong `last` omits a term no larger than the rounding error of `head`.
    error = noise * (gain + loss) + 16 * EPS * magnitude * lower_tail(last + 1, signs, 0.5)
    return np.maximum(gain - loss - error, 0.0), np.maximum(gain - loss, 0.0) + error


def positive_mean(trials: Floats, chance: float, *, slope: float, offset: Floats) -> Floats:
    """Return a lower bound on E[offset + slope A]_+, A ~ Bin(trials, chance), in the shape of `trials`; slope not 0.

    >>> positive_mean(np.array([2.0]), 0.5, slope=1.0, offset=np.array([-1.0])).round(12).tolist()
    [0.25]
    """
    mean = trials * chance
    if slope > 0:
        start = np.floor(-offset / slope) + 1
        tail = upper_tail(start, trials, chance)
        edge = np.maximum(start, 0.0) * (1 - chance) * pmf(start, trials, chance)
    else:
        stop = np.ceil(offset / -slope) - 1
        tail = lower_tail(stop, trials, chance)
        edge = -(trials - stop) * chance * pmf(stop, trials, chance)
    # `edge` is E[A - mean; A in the set], by summation by parts.
    drift, swing = (offset + slope * mean) * tail, slope * edge
    rounding = (margin(float(np.max(trials, initial=1.0))) + 16 * EPS) * (np.abs(drift) + np.abs(swing))
    spilled = 16 * EPS * (np.abs(offset) + abs(slope) * mean) * tail
    rounded_down: Floats = np.maximum(drift + swing - rounding - spilled, 0.0)
    return rounded_down


def deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x / mean) + mean - x, without cancellation when x is near mean."""
    d = (x - mean) / mean
    near = np.abs(d) < 0.1
    small = np.where(near, d, 0.0)
    # Power series for x near the mean.
    series = np.zeros_like(small)
    for j in range(18, 1, -1):
        series *= -small
        series += 1 / (j * (j - 1))
    far = np.where(near, 1.0, x / mean)
    return mean * np.where(near, series * small * small, far * np.log(far) - far + 1)


def stirling_error(x: Floats) -> Floats:
    """Return ln(x!) - ln(sqrt(2 pi x) (x / e)**x) for integers x >= 1."""
    small = x < _EXACT_UP_TO
    table = _STIRLING_TABLE[np.where(small, x, 0).astype(np.int64)]
    y = 1 / np.where(small, 1e9, x)
    z = y * y
    series = y * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188)))))
    return np.where(small, table, series)


_STIRLING_TABLE: Final = np.array(
    [0.0]
    + [
        math.log(math.factorial(x)) - (0.5 * math.log(2 * math.pi * x) + x * math.log(x) - x)
        for x in range(1, _EXACT_UP_TO)
    ]
)
"""The Stirling error for small x, where the series is not accurate."""
