"""Estimate the distribution of numbers from reports: a smoothed estimate, and intervals for cumulative shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.estimation.expectations import PENALTIES, Expectations

_STEPS: Final = 10_000
_GAIN: Final = 1e-3  # gain of log-likelihood per step at which iteration stops (Li et al. 2020)
_SHOWN: Final = 64
_COARSE: Final = 0.1  # part of the allowed errors for finding where a quantile's bound lies
LARGEST: Final = 1024
"""Largest number of levels for which intervals are computed: they need a dense matrix."""


def smoothed_shares(reports: Expectations, counts: Integers, *, n: int, dummies: int) -> Floats:
    """Return shares of the levels, shape (levels,), by expectation-maximisation with smoothing.

    Every step takes the conditional expectation of the number of people at each level. It then averages each level
    with its neighbours by weights 1, 2, 1. Dummies are a mixture component of known weight.

    Source: Li, Wang, Lopuhaa-Zwakenberg, Skoric, Li 2020, section 5.5; docs/theory/numbers.md, Theorem 7.
    """
    shares, before = np.full(reports.levels, 1 / reports.levels), -np.inf
    for _ in range(_STEPS):
        mean = np.maximum(n * reports.law(shares) + dummies * reports.blanket, np.finfo(np.float64).tiny)
        likelihood = float(counts @ np.log(mean))
        if likelihood - before < _GAIN:
            break
        before = likelihood
        weights = shares * reports.expected(counts / mean)
        sums, parts = 2 * weights, np.full(weights.size, 2.0)
        sums[1:] += weights[:-1]
        sums[:-1] += weights[1:]
        parts[1:] += 1
        parts[:-1] += 1
        means = np.maximum(sums / parts, 0.0)
        shares = np.asarray(means / means.sum())
    return shares


def thresholds(levels: int) -> Integers:
    """Return the codes of the levels at which cumulative shares are estimated: all except the last, but at most 64.

    >>> thresholds(4).tolist(), thresholds(1000).size
    ([0, 1, 2], 64)
    """
    return np.unique(np.linspace(0, levels - 2, min(levels - 1, _SHOWN)).round().astype(np.int64))


def cumulative_ends(
    reports: Expectations, counts: Integers, shares: Floats, *, n: int, dummies: int, codes: Integers, confidence: float
) -> Floats:
    """Return intervals for the shares of people up to the levels `codes`, shape (codes, 2), each at `confidence`.

    Scores whose expectation is at most the indicator of "up to this level" give the lower bound. Scores whose
    expectation is at least the indicator give the upper bound. So for any distribution, neither bound is biased
    inwards. The scores depend only on n, the dummies and the confidence; `shares` only determine the variances.

    Source: docs/theory/numbers.md, Theorem 8.
    """
    if reports.levels > LARGEST:
        _checks.unsupported(
            f"Intervals of shares and quantiles need at most {LARGEST:,} levels; the grid has {reports.levels:,}."
        )
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    ends = []
    for matrix, held, wanted in (
        (reports.whole_matrix(), shares, codes),
        (reports.whole_matrix()[::-1], shares[::-1], reports.levels - 2 - codes),
    ):
        scores = _scores_below(matrix, wanted, n=n + dummies, z=z)
        total = counts @ scores - dummies * (reports.blanket @ scores)
        mean = matrix @ scores
        jumps = np.abs(np.diff(mean, axis=0, prepend=mean[:1], append=mean[-1:]))
        coin = np.maximum(jumps[:-1], jumps[1:]) ** 2 / 4  # largest variance that stochastic rounding adds
        each = held @ (matrix @ scores**2 - mean**2 + coin)
        others = dummies * (reports.blanket @ scores**2 - (reports.blanket @ scores) ** 2)
        ends.append(total / n - z * np.sqrt(np.maximum(n * each + others, 0.0)) / n)
    return np.clip(np.stack([ends[0], 1 - ends[1]], axis=1), 0.0, 1.0)


def quantile_ends(
    ends: Callable[[Integers, float], Floats], levels: int, wanted: Sequence[float], confidence: float
) -> list[tuple[int, int]]:
    """Return codes (low, high) of levels that bound each wanted quantile; -1 and `levels` stand for the grid's limits.

    `ends(codes, confidence)` returns intervals for the shares of people up to the levels `codes`, shape (codes, 2).
    Up to 64 thresholds find where a bound lies, with a tenth of the allowed errors; then all levels there are examined.

    Source: docs/theory/numbers.md, Theorem 8 and Corollary 10.
    """
    codes, rest = thresholds(levels), 1 - confidence
    coarse = ends(codes, confidence if codes.size == levels - 1 else 1 - _COARSE * rest)
    starts, stops = np.r_[-1, codes], np.r_[codes, levels - 1]
    lower = [int(np.argmax([*(coarse[:, 1] >= share), True])) for share in wanted]
    upper = [codes.size - int(np.argmax([*(coarse[::-1, 0] < share), True])) for share in wanted]
    if codes.size == levels - 1:
        return [(below - 1, above + 1) for below, above in zip(lower, upper, strict=True)]
    inside = [np.arange(starts[place] + 1, stops[place] + 1) for place in lower]
    inside += [np.arange(max(starts[place], 0), stops[place]) for place in upper]
    close = np.unique(np.concatenate(inside).clip(0, levels - 2))
    fine = ends(close, 1 - (1 - _COARSE) * rest)
    levels_of = []
    for share, first, last in zip(wanted, lower, upper, strict=True):
        here = close[(close > starts[first]) & (close <= stops[first])]
        reached = here[fine[np.searchsorted(close, here), 1] >= share]
        low = int(reached[0]) - 1 if reached.size else int(min(stops[first], levels - 2))
        here = close[(close >= starts[last]) & (close < stops[last])]
        short = here[fine[np.searchsorted(close, here), 0] < share]
        high = int(short[-1]) + 2 if short.size else int(max(starts[last], 0)) + 1
        levels_of.append((low, high))
    return levels_of


def _scores_below(matrix: Floats, codes: Integers, *, n: int, z: float) -> Floats:
    """Return scores, shape (reports, codes), whose expectations are at most the indicators of levels up to each code.

    By penalized least squares, they approximate ramps that fall from 1 to 0 before the level; their largest excess is
    subtracted. The ramp and the penalty have the least error and loss, averaged over levels.
    """
    levels, places = matrix.shape[0], np.arange(matrix.shape[0])[:, None]
    weight = np.maximum(matrix.mean(axis=0), np.finfo(np.float64).tiny)
    values, vectors = np.linalg.eigh((matrix / weight) @ matrix.T)
    indicator = (places <= codes).astype(np.float64)
    best, chosen = np.full(codes.size, np.inf), np.zeros((matrix.shape[1], codes.size))
    for length in [0, *(1 << step for step in range(levels.bit_length() - 1))]:
        ramp = (1 + np.cos(np.pi * np.clip((places - codes + length) / (length + 1), 0, 1))) / 2
        parts = vectors.T @ ramp
        for penalty in PENALTIES:
            inverse = 1 / (np.maximum(values, 0) + penalty * values[-1])
            scores = (matrix / weight).T @ (vectors @ (parts * inverse[:, None]))
            scores -= np.maximum((matrix @ scores - indicator).max(axis=0), 0)
            mean = matrix @ scores
            variance = np.maximum(matrix @ scores**2 - mean**2, 0).max(axis=0)
            loss = z * np.sqrt(variance / n) + (indicator - mean).mean(axis=0)
            better = loss < best
            best[better], chosen[:, better] = loss[better], scores[:, better]
    return chosen
