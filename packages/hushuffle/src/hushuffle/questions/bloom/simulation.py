"""The likelihood ratio of one flipped filter by hypergeometric functions: the published helpers, corrected.

A filter has y_d ones before and y after flipping; f(y|y_d) is the pmf of Bin(y_d, q) + Bin(m - y_d, p); z = (q/p)**2;

    R(y) = f(y|y_d + 1)/f(y|y_d) = (p/q) E[z**xi_1]/E[z**xi_2],
    xi_1 ~ hypergeometric(m, y_d + 1, y),  xi_2 ~ hypergeometric(m, y_d, y).

`epsilon` does not use these functions, since it sums exact probabilities; they exist because buffling names them.

Source: buffling, part II; docs/theory/randomizers.md, Theorem 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.model import Bound
from hushuffle.numerics import binomial
from hushuffle.questions.bloom.transition import BUFFLING

Floats = npt.NDArray[np.float64]

_TOLERANCE: Final = 1e-13
_SHALLOW: Final = 64
_DEEPEST: Final = 1 << 22


def ratio_of_hypergeometric_mgf(
    *, count_input_ones: int, count_output_ones: npt.ArrayLike, p: float, bits: int
) -> Floats:
    """Return E[z**xi_1]/E[z**xi_2] for each output count; the likelihood ratio is p/(1-p) times this number.

    z = ((1-p)/p)**2. xi_1 and xi_2 are the numbers of ones among y of m bits, of which y_d + 1 and y_d are ones. If y_d
    + y < m, Gauss' continued fraction gives the result. Otherwise buffling's formula is 0/0, and the result follows
    from R(y|y_d) = 1/R(m - y|m - y_d - 1) for the likelihood ratio R.

    Args:
        count_input_ones: y_d, from 0 to bits - 1.
        count_output_ones: y, integers from 0 to bits, any shape.
        p: probability of a flip, in (0, 1/2).
        bits: m.

    Raises:
        InvalidInputError: an argument out of range.

    Source: buffling, part II, section 2.

    >>> import hushuffle as hs
    >>> hs.bloom.ratio_of_hypergeometric_mgf(count_input_ones=1, count_output_ones=[0, 1, 2], p=0.25,
    ...     bits=2).round(6).tolist()
    [1.0, 1.8, 9.0]
    """
    m = _checks.integer("bits", bits, low=1)
    held = _checks.integer("count_input_ones", count_input_ones, low=0, high=m - 1)
    chance = _checks.probability("p", p, low_open=True)
    if not chance < 0.5:
        _checks.reject("p", "< 1/2", chance)
    shape = np.shape(count_output_ones)
    ones = _checks.codes("count_output_ones", np.ravel(count_output_ones), k=m + 1).astype(np.float64)
    z = ((1 - chance) / chance) ** 2
    plain = held + ones < m
    result = np.empty_like(ones)
    result[plain] = _plain(held, ones[plain], z, m)
    result[~plain] = z / _plain(m - held - 1, m - ones[~plain], z, m)
    return result.reshape(shape)


def evaluate_gauss_continued_fraction(
    a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, z: float, *, tolerance: float = _TOLERANCE
) -> Floats:
    """Return 2F1(a+1, b; c+1; z)/2F1(a, b; c; z), shapes broadcast, for integers a < 0, b <= 0 and c >= 1, and z >= 0.

    The result is 1/(1 + k_0 z/(1 + k_1 z/(1 + ...))) with all k_i >= 0, and 0 from some i on. The fractions cut off at
    depths T and T + 1 bracket it, so T is doubled until they agree to `tolerance`. No fixed T suffices: near half-full
    filters of m bits, the necessary T grows like the square root of m.

    Raises:
        InvalidInputError: an argument out of range.
        NumericalError: more than 4 million terms are needed.

    Source: Gauss 1813; buffling, part II, section 3 (whose last display repeats the first coefficients).

    >>> import hushuffle as hs
    >>> hs.bloom.evaluate_gauss_continued_fraction(-2, -1, 1, 9.0).round(6).tolist()  # (1 + 9/2)/(1 + 18)
    0.289474
    """
    rate = _checks.non_negative("z", z)
    wanted = _checks.positive("tolerance", tolerance)
    first, second, third = (np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(a, b, c))
    whole = all(bool(np.all(value == np.floor(value))) for value in (first, second, third))
    if not (whole and bool(np.all((first < 0) & (second <= 0) & (third >= 1)))):
        _checks.reject("a, b, c", "integers with a < 0, b <= 0 and c >= 1", "<other numbers>")
    last = float(np.max(np.minimum(-2 * second, -2 * first - 1), initial=0.0))  # the first i at which all k_i are 0
    depth = _SHALLOW
    while depth < last:
        even, odd = (_cut(first, second, third, rate, terms) for terms in (depth, depth + 1))
        if bool(np.all(np.abs(even - odd) <= wanted * np.minimum(even, odd))):
            return (even + odd) / 2
        depth *= 2
        if depth > _DEEPEST:
            message = f"Gauss' continued fraction needs more than {_DEEPEST:,} terms. Use a smaller filter."
            raise NumericalError(message)
    return _cut(first, second, third, rate, int(last))


def _plain(held: int, ones: Floats, z: float, m: int) -> Floats:
    left = m - held - ones
    return left / (m - held) / evaluate_gauss_continued_fraction(-held - 1.0, -ones, left, z)


def _cut(a: Floats, b: Floats, c: Floats, z: float, depth: int) -> Floats:
    tail = np.ones(np.broadcast_shapes(a.shape, b.shape, c.shape))
    for i in range(depth - 1, -1, -1):
        half = (i + 1) // 2
        k = (b - c - half) * (a + half) if i % 2 else (a - c - half) * (b + half)
        # Where a coefficient is 0 the fraction ends, and the coefficients beyond it do not matter.
        tail = 1 + np.maximum(k, 0.0) / ((c + i) * (c + i + 1)) * z / tail
    return 1 / tail


UNIT = "nats, probabilistic DP of one pair of datasets"
"""Unit of a simulated epsilon; `Guarantee` does not accept it."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class SimulatedEpsilon:
    """A simulated epsilon: `point`, `standard_error` and `interval`, from `draws` draws of each of the two datasets."""

    point: float
    standard_error: float
    interval: Bound
    draws: int

    def __str__(self) -> str:
        return f"{self.point:.4g} with standard error {self.standard_error:.2g}: {self.interval}"


def evaluate_privacy_for_one_bloom_filter(
    *, count_input_ones: int, bits: int, p: float, delta: float, n_simu: int = 100_000, seed: int = 0
) -> SimulatedEpsilon:
    """Return the simulated epsilon between a filter with `count_input_ones` ones and a filter with one more.

    `filling_epsilon` is the exact value for one dataset; `epsilon` is the largest over all datasets.

    Args:
        count_input_ones: ones before flipping, from 0 to bits - 1.
        bits: number of bits.
        p: probability of a flip, in (0, 1/2).
        delta: in (0, 1).
        n_simu: number of draws in each direction, at least 2.
        seed: seed of the simulation, which reads no private data.

    Raises:
        InvalidInputError: an argument out of range.

    Source: buffling, part II, section 1, its sign corrected.

    >>> import hushuffle as hs
    >>> print(hs.bloom.evaluate_privacy_for_one_bloom_filter(count_input_ones=0, bits=20, p=0.1, delta=0.01))
    2.197 with standard error 0: 2.198 nats, probabilistic DP of one pair of datasets (95% interval)
    """
    level, draws = _levels(delta, n_simu)
    rng = np.random.default_rng(seed)

    def losses(ones: int) -> Floats:
        counts = rng.binomial(ones, 1 - p, size=draws) + rng.binomial(bits - ones, p, size=draws)
        seen, place = np.unique(counts, return_inverse=True)
        ratios = ratio_of_hypergeometric_mgf(count_input_ones=count_input_ones, count_output_ones=seen, p=p, bits=bits)
        return (np.log(ratios) + math.log(p / (1 - p)))[place]

    ratio_of_hypergeometric_mgf(count_input_ones=count_input_ones, count_output_ones=[0], p=p, bits=bits)
    return _figure(losses(count_input_ones), losses(count_input_ones + 1), level)


def evaluate_privacy_for_bloom_filter(
    *, filters: int, bits: int, p: float, delta: float, n_simu: int = 100_000, seed: int = 0
) -> SimulatedEpsilon:
    """Return the simulated epsilon of several filters for the published pair: all columns 0...0, or one of them 1...1.

    `published_pair_epsilon` is the exact value for this pair; `epsilon` holds for all pairs. The arguments are those of
    `evaluate_privacy_for_one_bloom_filter`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: buffling, part III, section 1, its sign corrected; docs/theory/randomizers.md, Theorem 20.

    >>> import hushuffle as hs
    >>> print(hs.bloom.evaluate_privacy_for_bloom_filter(filters=2, bits=1000, p=0.25, delta=0.01).interval)
    0.1596 to 0.1639 nats, probabilistic DP of one pair of datasets (95% interval)
    """
    level, draws = _levels(delta, n_simu)
    k, m = _checks.integer("filters", filters, low=1, high=62), _checks.integer("bits", bits, low=1)
    chance = _checks.probability("p", p, low_open=True)
    if not chance < 0.5:
        _checks.reject("p", "< 1/2", chance)
    rng, ones = np.random.default_rng(seed), np.arange(k + 1)
    near, far = binomial.pmf(ones, k, chance), binomial.pmf(ones, k, 1 - chance)
    weight = ((1 - chance) / chance) ** (2.0 * ones - k) / m
    before = rng.multinomial(m, near, size=draws)
    after = rng.multinomial(m - 1, near, size=draws) + rng.multinomial(1, far, size=draws)
    return _figure(np.log(before @ weight), np.log(after @ weight), level)


def _levels(delta: float, n_simu: int) -> tuple[float, int]:
    return _checks.probability("delta", delta, low_open=True, high_open=True), _checks.integer("n_simu", n_simu, low=2)


def _figure(under_first: Floats, under_second: Floats, delta: float) -> SimulatedEpsilon:
    """Return the larger of the two quantiles, each with an interval of order statistics at half the error."""
    ends = [_quantile(-under_first, 1 - delta), _quantile(under_second, 1 - delta)]
    low, point, high = (max(end[i] for end in ends) for i in range(3))
    error = (high - low) / (2 * NormalDist().inv_cdf(1 - (1 - _CONFIDENCE) / 4))
    interval = Bound(lower=low, upper=high, kind="estimate", unit=UNIT, sources=(BUFFLING,), confidence=_CONFIDENCE)
    return SimulatedEpsilon(point=point, standard_error=error, interval=interval, draws=under_first.size)


def _quantile(draws: Floats, level: float) -> tuple[float, float, float]:
    """Return order statistics below, at and above a quantile, surrounding it with probability 1 - 0.05/2 (binomial)."""
    ordered, n = np.sort(draws), draws.size
    error = (1 - _CONFIDENCE) / 4
    ends = np.searchsorted(binomial.lower_tail(np.arange(n + 1), n, level), (error, 1 - error))
    low, high = int(ends[0]), int(ends[1]) + 1
    below = float(ordered[low - 1]) if low >= 1 else -math.inf
    above = float(ordered[high - 1]) if high <= n else math.inf
    return below, float(ordered[min(math.ceil(level * n), n) - 1]), above
