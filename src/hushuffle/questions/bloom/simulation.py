"""The published procedures, by simulated quantiles of the privacy loss: for comparison, never certified.

They estimate "probabilistic" differential privacy: with probability 1 - delta the loss is at most epsilon. That implies
(epsilon, delta)-differential privacy, but is not the smallest epsilon; and the datasets are given, not the worst.

With R = P(release of D')/P(release of D), the figure is the larger of -(delta quantile of ln R under D) and the
(1 - delta) quantile of ln R under D'. The paper prints it without the minus, which understates epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from hushuffle import _checks
from hushuffle.model import Bound
from hushuffle.questions.bloom._columns import BUFFLING
from hushuffle.questions.bloom.ratios import ratio_of_hypergeometric_mgf

Floats = npt.NDArray[np.float64]

UNIT = "nats, probabilistic DP of one pair of datasets"
"""The unit of such a figure: not "nats", so that no `Guarantee` can be made of it."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class SimulatedEpsilon:
    """`point`, its `standard_error`, and the `interval` (an estimate) that `draws` draws in each direction allow."""

    point: float
    standard_error: float
    interval: Bound
    draws: int

    def __str__(self) -> str:
        return f"{self.point:.4g} with standard error {self.standard_error:.2g}: {self.interval}"


def evaluate_privacy_for_one_bloom_filter(
    *, count_input_ones: int, bits: int, p: float, delta: float, n_simu: int = 100_000, seed: int = 0
) -> SimulatedEpsilon:
    """Return the simulated epsilon of one filter with `count_input_ones` ones against one with one more.

    Compare `filling_epsilon`, exact, and `epsilon`, the worst over all fillings.

    Args:
        count_input_ones: ones before flipping, from 0 to bits - 1.
        bits: number of bits.
        p: probability of a flip, in (0, 1/2).
        delta: in (0, 1).
        n_simu: number of draws in each direction, at least 2.
        seed: of the (non-private) simulation.

    Raises:
        InvalidInputError: an argument out of range.

    Source: the paper, part II, section 1, its sign corrected.

    >>> print(evaluate_privacy_for_one_bloom_filter(count_input_ones=0, bits=20, p=0.1, delta=0.01))
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

    Compare `published_pair_epsilon`, exact, and `epsilon`, which holds for all pairs. Arguments as in
    `evaluate_privacy_for_one_bloom_filter`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: the paper, part III, section 1, its sign corrected; theory.md section 2.2.

    >>> print(evaluate_privacy_for_bloom_filter(filters=2, bits=1000, p=0.25, delta=0.01).interval)
    0.1596 to 0.1639 nats, probabilistic DP of one pair of datasets (95% interval)
    """
    level, draws = _levels(delta, n_simu)
    k, m = _checks.integer("filters", filters, low=1, high=62), _checks.integer("bits", bits, low=1)
    chance = _checks.probability("p", p, low_open=True)
    if not chance < 0.5:
        _checks.reject("p", "< 1/2", chance)
    rng, ones = np.random.default_rng(seed), np.arange(k + 1)
    near, far = binom.pmf(ones, k, chance), binom.pmf(ones, k, 1 - chance)
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
    """Return the order statistics below, at and above a quantile; they surround it with probability 1 - 0.05/2.

    Number r of n draws (from 1) is below the quantile unless fewer than r draws are: binomial, whatever the law.
    """
    ordered, n = np.sort(draws), draws.size
    error = (1 - _CONFIDENCE) / 4
    low, high = int(binom.ppf(error, n, level)), int(binom.ppf(1 - error, n, level)) + 1
    below = float(ordered[low - 1]) if low >= 1 else -math.inf
    above = float(ordered[high - 1]) if high <= n else math.inf
    return below, float(ordered[min(math.ceil(level * n), n) - 1]), above
