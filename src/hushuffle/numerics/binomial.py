"""Binomial probabilities and tails, accurate in relative terms far into the tails.

Floats throughout; `margin(n)` is the relative error that the tests hold every function here to
(against 40-digit arithmetic, n up to 10**9, probabilities down to 10**-200). Callers that
certify a bound inflate by it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, xlog1py, xlogy

Floats = npt.NDArray[np.float64]

EPS: Final = float(np.finfo(np.float64).eps)

_EXACT_UP_TO = 32
_NOT_SMALL = 0.01


def margin(n: float) -> float:
    """Return the relative error to allow for in `pmf`, `upper_tail` and `lower_tail` at n trials."""
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
    at_edge = np.exp(xlogy(x1, p) + xlog1py(x0, -p))
    return np.where(inside, np.where(edge, at_edge, smooth), 0.0)


def upper_tail(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> Floats:
    """Return P(Bin(n, p) >= x), shapes broadcast.

    >>> float(upper_tail(9, 10, 0.5)) == 11 / 1024
    True
    """
    count, trials = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    inside = (count > 0) & (count <= trials)
    a, b = np.where(inside, count, 1.0), np.where(inside, trials - count + 1, 1.0)
    return np.where(inside, betainc(a, b, p), np.where(count <= 0, 1.0, 0.0))


def lower_tail(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> Floats:
    """Return P(Bin(n, p) <= x), shapes broadcast.

    >>> float(lower_tail(1, 10, 0.5)) == 11 / 1024
    True
    """
    count, trials = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    inside = (count >= 0) & (count < trials)
    a, b = np.where(inside, count + 1, 1.0), np.where(inside, trials - count, 1.0)
    # The same function, and nine times as fast; what is rounded in 1 - p is below the margin unless p is small.
    tail = betainc(b, a, 1 - p) if p >= _NOT_SMALL else betaincc(a, b, p)
    return np.where(inside, tail, np.where(count < 0, 0.0, 1.0))


def shortfall(x: npt.ArrayLike, n: npt.ArrayLike, p: float) -> tuple[Floats, Floats]:
    """Return E[x - Bin(n, p)]_+ and a bound of its rounding error, shapes broadcast.

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


def window(n: int, p: float, log_tail: float) -> tuple[int, int]:
    """Return (low, high) with P(Bin(n, p) < low) and P(Bin(n, p) > high) each at most e**log_tail.

    By Bernstein's inequality, so safe rather than tight.

    >>> window(10_000, 0.5, -30.0)
    (4602, 5398)
    """
    mean, variance, reach = n * p, n * p * (1 - p), -log_tail
    # The inequality solved for the deviation x.
    x = reach / 3 + math.sqrt((reach / 3) ** 2 + 2 * reach * variance)
    return max(0, math.floor(mean - x)), min(n, math.ceil(mean + x))


def deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x / mean) + mean - x, without cancellation when x is near mean."""
    d = (x - mean) / mean
    near = np.abs(d) < 0.1
    small = np.where(near, d, 0.0)
    # Near the mean by its power series.
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


def _stirling_table() -> Floats:
    """Tabulate the Stirling error where its series is not accurate; entry 0 is unused."""
    values = [0.0]
    values += [
        math.log(math.factorial(x)) - (0.5 * math.log(2 * math.pi * x) + x * math.log(x) - x)
        for x in range(1, _EXACT_UP_TO)
    ]
    return np.array(values)


_STIRLING_TABLE: Final = _stirling_table()
