"""The distribution of numbers from reports: smoothed shares of levels, and intervals for shares up to a level."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.estimation.expectations import PENALTIES, Expectations, Floats

_STEPS: Final = 10_000
_GAIN: Final = 1e-3  # of the log-likelihood in a step: below it nothing more is learnt (Li et al. 2020)
_SHOWN: Final = 64
LARGEST: Final = 1024
"""Levels for intervals, at most: they are planned with a matrix."""


def smoothed_shares(reports: Expectations, counts: npt.NDArray[np.int64], *, n: int, dummies: int) -> Floats:
    """Return shares of the levels, shape (levels,), by expectation-maximisation with smoothing.

    Every step takes the conditional expectation of who is on which level, then the mean of each level and its
    neighbours with weights 1, 2, 1. Dummies are a part of known weight.

    Source: Li, Wang, Lopuhaa-Zwakenberg, Skoric, Li 2020, section 5.5; docs/theory/numbers.md, Theorem 7.
    """
    shares, before = np.full(reports.levels, 1 / reports.levels), -np.inf
    for _ in range(_STEPS):
        mean = np.maximum(n * reports.law(shares) + dummies * reports.blanket, np.finfo(np.float64).tiny)
        likelihood = float(counts @ np.log(mean))
        if likelihood - before < _GAIN:
            break
        before = likelihood
        shares = _smooth(shares * reports.expected(counts / mean))
    return shares


def _smooth(weights: Floats) -> Floats:
    """Return weighted means with the neighbours, in all 1."""
    sums, parts = 2 * weights, np.full(weights.size, 2.0)
    sums[1:] += weights[:-1]
    sums[:-1] += weights[1:]
    parts[1:] += 1
    parts[:-1] += 1
    means = np.maximum(sums / parts, 0.0)
    return np.asarray(means / means.sum())


def thresholds(levels: int) -> npt.NDArray[np.int64]:
    """Return the codes of levels at which shares are told: all but the last, or 64 of them.

    >>> thresholds(4).tolist(), thresholds(1000).size
    ([0, 1, 2], 64)
    """
    return np.unique(np.linspace(0, levels - 2, min(levels - 1, _SHOWN)).round().astype(np.int64))


def cumulative_ends(
    reports: Expectations,
    counts: npt.NDArray[np.int64],
    shares: Floats,
    *,
    n: int,
    dummies: int,
    codes: npt.NDArray[np.int64],
    confidence: float,
) -> Floats:
    """Return intervals for the shares of people up to the levels `codes`, shape (codes, 2), each at `confidence`.

    Scores of reports whose expectation is nowhere above the indicator of "up to this level" give the lower end, scores
    whose expectation is nowhere below it the upper one: neither has a bias to the wrong side, whatever the distribution
    is. Which scores are taken depends on n, the dummies and the confidence alone. `shares` serve for variances.

    Source: docs/theory/numbers.md, Theorem 8.
    """
    if reports.levels > LARGEST:
        message = f"Intervals of shares and quantiles need at most {LARGEST:,} levels, not {reports.levels:,}."
        raise UnsupportedProtocolError(message)
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
        coin = np.maximum(jumps[:-1], jumps[1:]) ** 2 / 4  # at most: of the coin that rounds
        each = held @ (matrix @ scores**2 - mean**2 + coin)
        others = dummies * (reports.blanket @ scores**2 - (reports.blanket @ scores) ** 2)
        ends.append(total / n - z * np.sqrt(np.maximum(n * each + others, 0.0)) / n)
    return np.clip(np.stack([ends[0], 1 - ends[1]], axis=1), 0.0, 1.0)


def _scores_below(matrix: Floats, codes: npt.NDArray[np.int64], *, n: int, z: float) -> Floats:
    """Return scores, shape (reports, codes), whose expectations are at most the indicators of levels up to each code.

    They come from ramps that fall from 1 to 0 before the level, by least squares with a penalty, less what they are
    too large by. Of several ramps and penalties that is taken whose error and loss, levels alike, are least.
    """
    levels, places = matrix.shape[0], np.arange(matrix.shape[0])[:, None]
    weight = np.maximum(matrix.mean(axis=0), np.finfo(np.float64).tiny)
    values, vectors = np.linalg.eigh((matrix / weight) @ matrix.T)
    indicator = (places <= codes).astype(np.float64)
    best, chosen = np.full(codes.size, np.inf), np.zeros((matrix.shape[1], codes.size))
    for length in [0, *(1 << step for step in range(levels.bit_length() - 1))]:
        ramp = (1 + np.cos(np.pi * np.clip((places - codes + length) / (length + 1), 0, 1))) / 2
        for penalty in PENALTIES:
            inverse = (vectors / (np.maximum(values, 0) + penalty * values[-1])) @ vectors.T
            scores = (matrix / weight).T @ (inverse @ ramp)
            scores -= np.maximum((matrix @ scores - indicator).max(axis=0), 0)
            mean = matrix @ scores
            variance = np.maximum(matrix @ scores**2 - mean**2, 0).max(axis=0)
            loss = z * np.sqrt(variance / n) + (indicator - mean).mean(axis=0)
            better = loss < best
            best[better], chosen[:, better] = loss[better], scores[:, better]
    return chosen
