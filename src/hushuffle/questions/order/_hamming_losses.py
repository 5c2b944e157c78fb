"""How many members a group loses under the Hamming-Mallows law: certified ends of its upper tail.

The law is a mixture. F items are frozen, P(F = f) proportional to x**f / f!, x = e**theta - 1, f = 0..n, and the other
r = n - f are permuted uniformly. Of the r free items s lie in the group, with a hypergeometric law, and the number of
its places that go to others is hypergeometric again: s draws out of r, of which r - s lie outside. All terms are
positive, so that nothing cancels.

Source: the mixture is argued in `shufflers._mallows_laws`; theory.md section 5 has a triple sum for the same law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.shufflers._mallows_laws import CERTAIN, frozen_law

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MOST: Final = 20_000
"""Most people: log-factorials are known to 5e-11 up to here."""

_DOUBT: Final = 4e-9
"""Relative error of a sum: a term has eighteen log-factorials in it, and as many roundings of 3e-11 between them."""

_TRACE: Final = 1e-18
"""Numbers of frozen and of free items rarer than this are left to the upper end."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """The law of the number lost by a group of `size` out of n, which is never above `most`."""

    n: int
    size: int
    theta: float
    most: int

    def beyond(self, lost: int) -> tuple[float, float]:
        """Return certified ends of P(more than `lost` are lost).

        >>> ends = Losses(n=2, size=1, theta=0.0, most=1).beyond(0)
        >>> ends[0] <= 0.5 <= ends[1]
        True
        """
        return (0.0, 0.0) if lost >= self.most else _failure(self.n, self.size, self.theta, lost)


@lru_cache(maxsize=4096)
def _failure(n: int, size: int, theta: float, lost: int) -> tuple[float, float]:
    first, cumulative = frozen_law(n, theta) if theta < CERTAIN else (n, (1,))
    logs, total, outside, before = _log_factorials(n), 0.0, 0.0, 0
    for free, upto in zip(range(n - first, -1, -1), cumulative, strict=False):
        chance, before = (upto - before) / cumulative[-1], upto
        if chance < _TRACE:
            outside += chance
            continue
        total += chance * _failure_of_free(n, size, free, lost, logs)
    lower, upper = total * (1 - _DOUBT), total * (1 + _DOUBT) + outside * (1 + _DOUBT) + (n + 1) * _TRACE
    return lower, min(upper, 1.0)


def _failure_of_free(n: int, size: int, free: int, lost: int, logs: Floats) -> float:
    """Return P(more than `lost` are lost) if `free` of the n items are permuted uniformly."""
    inside = np.arange(max(0, free - (n - size)), min(size, free) + 1)
    where = _log_hypergeometric(inside, n, size, free, logs)
    keep = (where > math.log(_TRACE)) & (np.minimum(inside, free - inside) > lost)
    inside, where = inside[keep], where[keep]
    if not inside.size:
        return 0.0
    # Rows: members among the free items; columns: how many of their places go to others.
    gone = np.arange(lost + 1, int(np.minimum(inside, free - inside).max()) + 1)
    rows, columns = inside[:, None], gone[None, :]
    possible = columns <= np.minimum(rows, free - rows)
    taken = np.where(possible, columns, 0)
    chance = np.exp(_log_hypergeometric(taken, free, free - rows, rows, logs))
    tails = np.where(possible, chance, 0.0).sum(axis=1)
    return float(np.exp(where) @ tails)


def _log_hypergeometric(
    x: Counts,
    n: int,
    good: int | Counts,
    draws: int | Counts,
    logs: Floats,
) -> Floats:
    """Return ln P(x good ones among `draws` out of n, of which `good` are good)."""

    def binomial(top: int | Counts, bottom: int | Counts) -> Floats:
        return logs[top] - logs[bottom] - logs[np.subtract(top, bottom)]

    return binomial(good, x) + binomial(np.subtract(n, good), np.subtract(draws, x)) - binomial(n, draws)


@lru_cache(maxsize=8)
def _log_factorials(n: int) -> Floats:
    """Return ln k! for k = 0..n, with a compensated sum: off by 4e-16 per logarithm and one rounding."""
    values, total, rest = np.zeros(n + 1), 0.0, 0.0
    for k in range(2, n + 1):
        term = math.log(k) + rest
        larger = total + term
        rest = term - (larger - total)
        total = larger
        values[k] = total
    values.flags.writeable = False
    return values
