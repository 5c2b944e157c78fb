"""The expected maximal load E[max_i h_i] of n balls in k cells, exact up to floats at any size.

P(max <= m) = (Poisson(n/k) pmf cut at m)^{*k}[n] / Poisson(n)[n], since the counts are independent Poisson
variables given their sum. The trapezoidal rule computes the convolution power from characteristic functions on about
9.6 sqrt(n) nodes; unless k is small, only nodes near 0 matter. A cumulative sum over the counts gives every m at once.
The same method computes max_x h_x/p_x for cells of unequal probabilities p_x, with a cut for each class of equal cells.

Two cells have a closed form, three a sum of O(sqrt(n)) binomial terms.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import Floats, deviation
from hushuffle.numerics.exact import complex_log1p

Complex = npt.NDArray[np.complex128]

ACCURACY: Final = 1e-12
"""Relative error bound of the functions here; callers that certify a bound enlarge it by this factor."""

WORK_LIMIT: Final = 400_000_000
"""Largest work, nodes times counts, that is attempted: some ten seconds."""

WINDOW_LIMIT: Final = 1 << 21
"""Largest number of counts in memory at once."""

_TAIL: Final = 42.0
"""The probability outside the window of counts is below e**-42."""

TOLERANCE: Final = 2e-13
"""Largest relative contribution of omitted nodes to a result."""

_BLOCK: Final = 1 << 17
_POWERS_UP_TO: Final = 16
_SUM_BLOCK: Final = 1 << 20


def expected_max_load(n: int, k: int, *, tolerance: float = TOLERANCE) -> float:
    """Return the expected largest count of k values among n people, if each has a uniformly random value.

    The result divided by n is the uninformed adversary's success rate for a shuffle without noise. The relative error
    is below 1e-12. Measured errors are 5e-15 against exact rationals (n <= 12, k <= 5, and some cases up to n = 150),
    and 2e-15 against the methods for two and three cells up to n = 10**6. It takes milliseconds at n = 10**6, k =
    10**3, a second at n = 10**9 for any k, and at most some ten seconds and 300 MB.

    Args:
        n: balls (people), >= 1.
        k: cells (values), >= 1.
        tolerance: allowed relative error of the numerical integration, in addition to rounding. For 4 <= k <= 10 and
            n > 10**6, the computation with 1e-9 is some 20 times faster than with the default.

    Raises:
        InvalidInputError: an argument out of range.
        NumericalError: the work exceeds `WORK_LIMIT`, or the window of counts `WINDOW_LIMIT`:
            n > 10**13 for k = 3, n > 10**10 for k = 4, n > 10**11 for 5 <= k < 10.

    Source: docs/theory/sums.md, Theorem 6; Jurado et al. 2023, equations 11, 13 and 22 to 24.

    >>> import hushuffle as hs
    >>> hs.qif.max_load(3, 2)
    2.25
    >>> round(hs.qif.max_load(1_000_000, 1_000), 6)
    1104.090418
    """
    balls = _checks.integer("n", n, low=1, high=2**50)
    cells = _checks.integer("k", k, low=1, high=2**50)
    if cells == 1 or balls == 1:
        return float(balls)
    if cells == 2:
        return balls / 2 + balls * _central(balls // 2) / 2
    if cells == 3:
        return _three(balls)
    alike = (Cells(number=cells, probability=Fraction(1, cells)),)
    return balls / cells * expected_max_ratio(balls, alike, tolerance=tolerance)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A class of `number` cells with probability `probability` > 0 each."""

    number: int
    probability: Fraction


def expected_max_ratio(n: int, classes: tuple[Cells, ...], *, tolerance: float = TOLERANCE) -> float:
    """Return E[max_x h_x/(n p_x)] >= 1, h ~ Multinomial(n; p), where the cells form one or a few classes.

    The relative error is below 1e-12 (4e-14 measured against exact rationals, and a direct sum up to n = 10**8).

    Source: docs/theory/sums.md, Theorem 6.

    >>> uneven = (Cells(number=1, probability=Fraction(3, 4)), Cells(number=1, probability=Fraction(1, 4)))
    >>> round(expected_max_ratio(1, uneven), 12)
    2.0
    """
    number = sum(cells.number for cells in classes)
    # By Bernstein's inequality, P(Bin(n, p) > n p + reach) <= e**-_TAIL / number.
    reaches = [deviation(math.log(number) + _TAIL, float(n * cells.probability)) for cells in classes]
    _refuse_beyond(WINDOW_LIMIT, sum(reaches), n, number)
    # Every cut is at most tolerance/4 from where it should be, in units of the result, so that half is left for nodes.
    tails = tuple(_Tail.of(n, cells, reach, tolerance / 4) for cells, reach in zip(classes, reaches, strict=True))
    steps = _Steps.of(tails)
    # Poisson(n) has mass below 1e-17 of its mode at this distance from it: aliasing is negligible.
    period = 2 * math.ceil(4.8 * math.sqrt(n) + 12) + 1
    nodes = _nodes_needed(n, period, steps, tolerance / 2)
    _refuse_beyond(WORK_LIMIT, nodes * steps.widths.size, n, number)
    total = np.zeros_like(steps.widths)
    chunk = max(1, _BLOCK // steps.widths.size)
    for start in range(0, nodes, chunk):
        index = np.arange(start, min(start + chunk, nodes), dtype=np.float64)
        total += np.where(index == 0, 1.0, 2.0) @ steps.transform(2 * np.pi * index / period)
    mode = math.exp(-float(_stirling_error(np.array([float(n)]))[0])) / math.sqrt(2 * math.pi * n)
    return 1.0 + float(steps.widths @ (1.0 - total / (period * mode)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tail:
    """The Poisson(mean) counts above the mean of one class of cells, in w blocks of equally many neighbouring counts.

    `above` is the first count of each block minus the mean, exact, shape (w,); `mass` has shape (w, counts).
    """

    number: int
    mean: float
    above: Floats
    mass: Floats

    @classmethod
    def of(cls, n: int, cells: Cells, reach: float, wide: float) -> Self:
        """Return blocks that are at most `wide` times the mean, or of one count."""
        mean = n * cells.probability
        first = math.floor(mean) + 1
        last = min(n, math.ceil(float(mean) + reach))
        above = float(first - mean) + np.arange(max(last - first + 1, 0), dtype=np.float64)
        counts = first + np.arange(above.size, dtype=np.float64)
        mass = np.exp(-_stirling_error(counts) - _deviance(counts, above, float(mean)))
        size = max(1, math.floor(mean * wide))
        mass = np.pad(mass / np.sqrt(2 * np.pi * counts), (0, -mass.size % size)).reshape(-1, size)
        return cls(number=cells.number, mean=float(mean), above=above[::size], mass=mass)

    def sums(self, angles: Floats) -> Complex:
        """Return sums of mass e**(i angle (count - mean)) over the blocks from the j-th on, shape (angles, w + 1)."""
        size = self.above.size
        if self.mass.shape[1] > 1:
            within, begins = angles[:, None] * np.arange(self.mass.shape[1]), np.exp(1j * angles[:, None] * self.above)
            wholes = begins * (np.cos(within) @ self.mass.T + 1j * (np.sin(within) @ self.mass.T))
            return np.pad(np.cumsum(wholes[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
        fine = max(1, math.isqrt(size))
        coarse = -(-size // fine)
        steps = np.exp(1j * angles[:, None] * np.arange(fine))
        strides = np.exp(1j * angles[:, None] * (np.arange(coarse) * fine + (self.above[0] if size else 0.0)))
        mass = np.pad(self.mass[:, 0], (0, coarse * fine - size)).reshape(coarse, fine)
        # Summed first in blocks, then over blocks: rounding grows only with the square root of the number of counts.
        blocks = np.cumsum((strides[:, :, None] * (steps[:, None, :] * mass))[:, :, ::-1], axis=2)[:, :, ::-1]
        later = np.zeros((angles.size, coarse + 1), dtype=np.complex128)
        np.cumsum(blocks[:, ::-1, 0], axis=1, out=later[:, -2::-1])
        blocks += later[:, 1:, None]
        return np.pad(blocks.reshape(angles.size, -1)[:, :size], ((0, 0), (0, 1)))

    @cached_property
    def _outer(self) -> tuple[Floats, Floats]:
        """Total mass, and largest difference of neighbouring masses, from each block on, shapes (w,)."""
        falls = -np.diff(self.mass.ravel(), append=0.0)[::-1]
        beyond = np.cumsum(self.mass.sum(axis=1)[::-1])[::-1]
        return beyond, np.maximum.accumulate(falls)[::-1][:: self.mass.shape[1]]

    def largest(self, angles: Sequence[float]) -> Floats:
        """Return upper bounds on |characteristic function of the blocks below the j-th|, shape (angles, w + 1).

        Each bound holds for all angles from one of `angles` to pi.

        The masses m_i above the mean fall. Their differences rise once, fall, and end in a jump by the last mass. Two
        summations by parts give |sum of m_i z**i from the j-th on| <= (m_j + min(m_j, S/|1 - z|))/|1 - z| with
        S = 2 (largest difference + last mass).
        """
        chords = [2 * math.sin(angle / 2) for angle in angles]
        chord = np.array(chords)[:, np.newaxis]
        (beyond, steepest), mass = self._outer, self.mass[:, 0]
        parts = (mass + np.minimum(mass, 2 * (steepest + self.mass[-1:, 0]) / chord)) / chord
        smooth = np.array([math.exp(-self.mean * one * one / 2) for one in chords])[:, np.newaxis]
        bound = np.minimum(smooth + np.minimum(beyond, parts), 1 - beyond)
        return np.hstack([bound, np.ones((len(chords), 1))])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Steps:
    """The distribution function P(max_x h_x/(n p_x) <= t), t >= 1, as steps: step l has width `widths[l]`, shape (L,).

    On step l, class c is cut just below its `cuts[c][l]`-th count above the mean.
    """

    tails: tuple[_Tail, ...]
    widths: Floats
    cuts: tuple[npt.NDArray[np.intp], ...]

    @classmethod
    def of(cls, tails: tuple[_Tail, ...]) -> Self:
        ends = [tail.above / tail.mean for tail in tails]
        edges = np.unique(np.concatenate([np.zeros(1), *ends]))
        cuts = tuple(np.searchsorted(end, edges[:-1], side="right") for end in ends)
        return cls(tails=tails, widths=np.diff(edges), cuts=cuts)

    def transform(self, angles: Floats) -> Floats:
        """Return Re prod_c (characteristic function of class c, cut and centred)**number, shape (angles, L)."""
        product: Complex | None = None
        for tail, cut in zip(self.tails, self.cuts, strict=True):
            exponent, above = _centred_exponent(angles, tail.mean)[:, None], tail.sums(angles)
            if tail.number <= _POWERS_UP_TO:
                factor = _power(np.exp(exponent) - above, tail.number)
            else:  # many factors near 1: from their differences to 1, so that errors do not add up
                factor = np.exp(tail.number * complex_log1p(_expm1(exponent) - above))
            # With one class, every count is a step of its own.
            factor = factor[:, :-1] if len(self.tails) == 1 else factor[:, cut]
            product = factor if product is None else product * factor
        assert product is not None
        return product.real

    def largest(self, angles: Sequence[float]) -> Floats:
        """Return upper bounds on |transform| over all angles from one of `angles` in (0, pi] to pi, shape (angles, L).

        Each bound is the product of `_Tail.largest` over all cells.
        """
        logarithm = np.zeros((len(angles), self.widths.size))
        for tail, cut in zip(self.tails, self.cuts, strict=True):
            logarithm += tail.number * np.log(np.maximum(tail.largest(angles), 1e-300))[:, cut]
        return np.exp(logarithm)


def _refuse_beyond(limit: float, work: float, n: int, number: int) -> None:
    if work > limit:
        message = (
            f"the expected maximum load of n={n} in {number} cells would take {work:.1e} steps, more than {limit:.0e}. "
            "Ask for a smaller n: E[max]/n falls with n, so the value there is an upper bound."
        )
        raise NumericalError(message)


def _nodes_needed(n: int, period: int, steps: _Steps, tolerance: float) -> int:
    """Return the number of nodes from angle 0 on such that omitted nodes contribute at most `tolerance` in total."""
    half, each = (period - 1) // 2, 2.2 * math.sqrt(2 * math.pi * n) / period
    starts = np.unique(np.geomspace(1, half, 64).astype(np.int64)).tolist()

    def beyond(start: int, end: int) -> float:
        """Return a bound on the contribution of the nodes from `start` on, before `end`."""
        return each * (end - start) * float(steps.widths @ steps.largest([2 * math.pi * start / period])[0])

    # Far out, one bound suffices for all nodes.
    dropped = tolerance / 4
    place = bisect_left(starts, x=True, key=lambda start: beyond(start, half + 1) <= dropped)
    needed = [*starts, half + 1][place]
    for start in reversed(starts[:place]):
        dropped += beyond(start, needed)
        if dropped > tolerance:
            break
        needed = start
    return int(needed)


def _centred_exponent(angles: Floats, mean: float) -> Complex:
    """Return ln E e**(i angle (Poisson(mean) - mean)) = mean (e**(i angle) - 1 - i angle), shape (angles,)."""
    small = np.abs(angles) < 0.5
    t = np.where(small, angles, 0.0)
    series = np.ones_like(t)
    for j in range(8, 0, -1):  # sin t - t = -t**3/6 (1 - t**2/20 (1 - t**2/42 (...)))
        series = 1 - t * t / ((2 * j + 2) * (2 * j + 3)) * series
    lag = np.where(small, -(t**3) / 6 * series, np.sin(angles) - angles)
    return mean * (-2 * np.sin(angles / 2) ** 2 + 1j * lag)


def _expm1(z: Complex) -> Complex:
    """Return e**z - 1 without cancellation near z = 0."""
    real = np.expm1(z.real) * np.cos(z.imag) - 2 * np.sin(z.imag / 2) ** 2
    return np.asarray(real + 1j * np.exp(z.real) * np.sin(z.imag))


def _power(base: Complex, exponent: int) -> Complex:
    """Return base**exponent by squaring: cheaper than logarithms, and accurate for few factors."""
    result: Complex | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        base = base * base if exponent else base
    assert result is not None
    return result


def _central(m: int) -> float:
    """Return C(2m, m)/4**m."""
    if m < 500:
        return math.comb(2 * m, m) / (1 << 2 * m)
    y = 1 / m
    return math.exp(-y / 8 + y**3 / 192 - y**5 / 640) / math.sqrt(math.pi * m)


def _three(n: int) -> float:
    """Return E[max] for three cells: n/3 + 3 sum_{x > n/3} (x - n/3) P(h_1 = x is a maximum, ties shared).

    Given h_1 = x > n/3 the others exceed x with probability 2 T(x), T(x) = P(Bin(n-x, 1/2) > x), and
    one of them ties with 2 P(Bin(n-x, 1/2) = x); T is a sum of positive terms from the far end.
    """
    first = n // 3 + 1
    last = binomial.window(n, 1 / 3, -_TAIL - 2)[1]
    _refuse_beyond(WORK_LIMIT, 16 * (last - first), n, 3)
    excess, beyond = 0.0, 0.0
    for end in range(last + 1, first, -_SUM_BLOCK):
        x = np.arange(max(first, end - _SUM_BLOCK), end, dtype=np.float64)
        rest = n - x
        # T(x) = T(x+1) + P(Bin(rest-1, 1/2) = x+1) + P(Bin(rest-1, 1/2) = x)/2
        growth = binomial.pmf(x + 1, rest - 1, 0.5) + binomial.pmf(x, rest - 1, 0.5) / 2
        tail = beyond + np.cumsum(growth[::-1])[::-1]
        wins = 1 - 2 * tail - binomial.pmf(x, rest, 0.5)
        distance = (3 * (x - n // 3) - n % 3) / 3
        excess += float((distance * binomial.pmf(x, n, 1 / 3)) @ wins)
        beyond = float(tail[0])
    return n / 3 + 3 * excess


def _deviance(x: Floats, above: Floats, mean: float) -> Floats:
    """Return x ln(x/mean) - above, above = x - mean >= 0, without cancellation when x is near mean."""
    v = above / (x + mean)
    near = v < 0.1
    w = np.where(near, v, 0.0)
    series = np.zeros_like(w)
    for j in range(9, 0, -1):  # x ln(x/mean) - above = above v + 2 x sum_{j >= 1} v**(2j+1)/(2j+1)
        series = (series + 1 / (2 * j + 1)) * w * w
    return np.where(near, above * w + 2 * x * w * series, x * np.log(x / mean) - above)


_STIRLING_ERRORS: Final = np.array(
    [
        *(0.0, 0.08106146679532726, 0.0413406959554093, 0.02767792568499834, 0.020790672103765093),
        *(0.016644691189821193, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096),
        *(0.009255462182712733, 0.00833056343336287, 0.007573675487951841, 0.00694284010720953),
        *(0.006408994188004207, 0.0059513701127588475, 0.005554733551962801),
    ]
)


def _stirling_error(x: Floats) -> Floats:
    """Return ln(x!) - ln(sqrt(2 pi x) (x/e)**x), x >= 1 whole numbers."""
    small = x < _STIRLING_ERRORS.size
    y = 1 / np.where(small, 16.0, x)
    z = y * y
    series = y * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * 691 / 360360)))))
    return np.where(small, _STIRLING_ERRORS[np.where(small, x, 0).astype(np.intp)], series)
