"""Tests of sampled counts against a law, and exact moments of an estimate by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy import stats

FALSE_ALARM = 1e-7
"""By the limiting law; at least 25 expected per cell keep the true rate below 1e-6."""


def chi_square_excess(observed: npt.ArrayLike, expected: npt.ArrayLike) -> float:
    """Statistic minus critical value, negative if the sample fits; arrays (samples, cells) or (cells,).

    Cells with fewer than 25 expected are put together; a cell with none expected must be empty.
    """
    seen, wanted = np.atleast_2d(np.asarray(observed, float)), np.atleast_2d(np.asarray(expected, float))
    statistic, freedom = 0.0, 0
    for counts, means in zip(seen, wanted, strict=True):
        if np.any(counts[means == 0] > 0):
            return float("inf")
        large = means >= 25
        pooled = [*zip(counts[large], means[large], strict=True), (counts[~large].sum(), means[~large].sum())]
        cells = [(c, m) for c, m in pooled if m > 0]
        statistic += sum((c - m) ** 2 / m for c, m in cells)
        freedom += len(cells) - 1
    return statistic - float(stats.chi2.isf(FALSE_ALARM, max(freedom, 1)))


def largest_z(cases: int) -> float:
    """|z| that none of `cases` standard normal numbers exceeds, but with probability FALSE_ALARM."""
    return NormalDist().inv_cdf(1 - FALSE_ALARM / (2 * cases))


def mean_square_range(trials: int, cases: int) -> tuple[float, float]:
    """Range of the mean of `trials` squared standard normal numbers, for each of `cases`, but with FALSE_ALARM."""
    tail = FALSE_ALARM / (2 * cases)
    return float(stats.chi2.ppf(tail, trials)) / trials, float(stats.chi2.isf(tail, trials)) / trials


def estimate_moments(
    channel: Sequence[Sequence[Fraction]], values: Sequence[int], target: int, *, dummies: int = 0
) -> tuple[Fraction, Fraction]:
    """Mean and variance of the unbiased estimate of the frequency of `target`, over every outcome.

    Randomized response `channel`, people holding `values`, and `dummies` uniform reports.
    """
    k, n = len(channel), len(values)
    truth, lie = channel[0][0], channel[0][1]
    laws = [channel[x] for x in values] + [[Fraction(1, k)] * k] * dummies
    mean = square = Fraction(0)
    for outcome in itertools.product(range(k), repeat=len(laws)):
        weight = Fraction(1)
        for law, y in zip(laws, outcome, strict=True):
            weight *= law[y]
        real = Fraction(outcome.count(target)) - n * lie - Fraction(dummies, k)
        estimate = real / (n * (truth - lie))
        mean += weight * estimate
        square += weight * estimate**2
    return mean, square - mean**2
