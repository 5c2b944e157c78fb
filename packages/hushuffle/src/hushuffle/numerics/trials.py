"""Confidence intervals for a probability, and for the ratio of two probabilities, from Bernoulli trials."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betainccinv, betaincinv

from hushuffle.numerics.roots import last_above

Floats: TypeAlias = npt.NDArray[np.float64]

_SHARE: Final = 0.05
"""Share of the error probability of a lower bound that is spent on the interval of the second probability."""

_CELLS: Final = 64
_BLOCKS: Final = 128
_WIDE: Final = 5.0


def clopper_pearson(hits: float, trials: int, confidence: float) -> tuple[float, float]:
    """Return a confidence interval for the probability of a hit, with half of the error probability on each side.

    The number of hits may be a fraction, if hits are shared (ties).

    Source: C. J. Clopper, E. S. Pearson, Biometrika 26 (1934).

    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> low, round(high, 5)
    (0.0, 0.03622)
    """
    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betainccinv(hits + 1, trials - hits, tail)) if hits < trials else 1.0
    return low, high


def least_log_ratio(more: int, less: int, trials: int, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Return a lower confidence bound x >= 0 on ln((p - delta)/q): p > e**x q + delta holds with `confidence`.

    An event of probability p happened `more` times in `trials`, and an event of probability q `less` times in the same
    number of trials. For each x, the test computes the probability of counts at least as extreme if p = e**x q + delta,
    for the worst q of an interval; the result is the largest x at which it is small. Counts (more', less') are at least
    as extreme if more' is at least the value of `_telling` for less'. Between the points of a grid of q, p is taken at
    the upper and q at the lower point, which can only raise the probability.

    Source: R. J. Buehler, Confidence intervals for the product of two binomial parameters, JASA 52 (1957); R. L.
    Berger, D. D. Boos, P values maximized over a confidence set for the nuisance parameter, JASA 89 (1994).

    >>> round(least_log_ratio(7_500, 2_500, 10_000), 2)  # ln 3 = 1.10
    1.07
    """
    risk, doubt = 1 - confidence, NormalDist().inv_cdf(max(confidence, 0.6)) ** 2 / trials
    p, q = more / trials - delta, (less + 1) / trials
    seen = p**2 - doubt * (p + delta)
    if p <= 0 or seen <= 0:
        return 0.0
    ratio = seen / (p * q + math.sqrt(max((p * q) ** 2 - (q**2 - doubt * q) * seen, 0.0)))
    low, high = clopper_pearson(less, trials, 1 - _SHARE * risk)
    grid = np.linspace(low, high, _CELLS + 1)
    spread = _WIDE * math.sqrt(trials * high * (1 - low))
    ends = np.linspace(max(trials * low - spread, 0.0), min(trials * high + spread, trials), _BLOCKS + 1)
    starts = np.unique(np.concatenate([[0], np.floor(ends).astype(np.int64)]))
    below = _at_least(starts, trials, grid[:-1, None])
    mass = below - np.column_stack([below[:, 1:], np.zeros(len(below))])
    needed = np.ceil(trials * _telling((starts + 1) / trials, ratio, delta, doubt) - 1e-6)

    def rare(x: float) -> float:
        first = np.minimum(math.exp(x) * grid[1:] + delta, 1.0)[:, None]
        return 1 - float((mass * _at_least(needed, trials, first)).sum(axis=1).max())

    level = 1 - (1 - _SHARE) * risk
    if rare(0.0) <= level:
        return 0.0
    return last_above(rare, level, high=1 - math.log(grid[1]), guess=math.log(max(ratio, 1.0)))


def _telling(q: Floats, ratio: float, delta: float, doubt: float) -> Floats:
    """Return the p at which p - delta - ratio q is sqrt(doubt) standard deviations of counts; p grows with q."""
    mean = delta + ratio * q
    return mean + doubt / 2 + np.sqrt(doubt * mean + doubt**2 / 4 + doubt * ratio**2 * q)


def _at_least(hits: npt.NDArray[Any], trials: int, chance: Floats) -> Floats:
    inner = np.clip(hits, 1, trials)
    return np.where(hits <= 0, 1.0, np.where(hits > trials, 0.0, betainc(inner, trials - inner + 1, chance)))
