"""The strong adversary if all other people have the same value c: exact for almost any number of people.

The histogram f of the other people's reports is Multinomial(m; mu at c, nu elsewhere). With n = m + 1,
f(h - e_x) = p_x^{-1} h_x/n Mult(n; h). So G = (1/k) E[max_x h_x/(n p_x)], h ~ Mult(n; p), in V = nu + theta G.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.errors import NumericalError
from hushuffle.numerics import binomial
from hushuffle.numerics.max_load import TOLERANCE, Cells, expected_max_load, expected_max_ratio

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import Symmetric
    from hushuffle.numerics.binomial import Floats

_LOG_TAIL: Final = -45.0
_WINDOW_LIMIT: Final = 1 << 21
_HARDLY_ANY: Final = 0.5


def one_value_rate(m: int, law: Symmetric, *, tolerance: float = TOLERANCE) -> float:
    """Return the success rate G for truthful targets, if all m other people have the same known value; nu > 0.

    `tolerance` is the allowed relative error in addition to rounding (see `expected_max_load`).

    The relative error is below 1e-12 (4e-14 measured against exact rationals, for each of the three methods).

    Raises:
        NumericalError: m is too large for exact evaluation, which is possible up to at least 10**9.

    Source: docs/theory/guessing.md, Theorem 6.

    >>> from fractions import Fraction
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> round(one_value_rate(1, Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4))), 12)
    0.875
    """
    if (m + 1) * (law.k - 1) * law.lie < _HARDLY_ANY:
        return _hardly_any_noise(m + 1, law) / law.k
    if law.k == 3:
        return _three(m + 1, law) / 3
    return expected_max_ratio(m + 1, classes(law), tolerance=tolerance) / law.k


def classes(law: Symmetric) -> tuple[Cells, Cells]:
    """Return the cells of a report of a person with value c: the value c, and the k - 1 other values."""
    return Cells(number=1, probability=law.truth), Cells(number=law.k - 1, probability=law.lie)


def _hardly_any_noise(n: int, law: Symmetric) -> float:
    """Return E[max_x h_x/(n p_x)] when n nu < mu, so that any report elsewhere outweighs all at c.

    J ~ Bin(n, (k-1) nu) of the n reports fall elsewhere, uniformly: mu**(n-1) + E[fullest of k - 1 cells]/(n nu).
    The general method would subtract numbers near 1 here.
    """
    away = float((law.k - 1) * law.lie)
    high = binomial.window(n, away, _LOG_TAIL)[1]
    j = np.arange(1, high + 1)
    fullest = np.array([expected_max_load(int(count), law.k - 1) for count in j])
    nowhere = math.exp((n - 1) * math.log1p(-away))
    return nowhere + float(binomial.pmf(j, n, away) @ fullest) / float(n * law.lie)


def _three(n: int, law: Symmetric) -> float:
    """Return E[max_x h_x/(n p_x)] for k = 3, given the count s elsewhere, which fair coins split."""
    truth, lie = float(law.truth), float(law.lie)
    low, high = binomial.window(n, 2 * lie, _LOG_TAIL)
    if high - low > _WINDOW_LIMIT:
        message = f"All others at one value, n={n}, k=3, take {high - low:.0e} steps. Use a smaller n."
        raise NumericalError(message)
    rest = np.arange(low, high + 1, dtype=np.float64)
    level = (n - rest) * (lie / truth)
    ratio = (level + _above(level, rest)) / (n * lie)
    return 1.0 + float(binomial.pmf(rest, n, 2 * lie) @ (ratio - 1.0))


def _above(level: Floats, coins: Floats) -> Floats:
    """Return E[max(B, s - B) - a]_+, B ~ Bin(s, 1/2), for levels a and numbers of coins s, shape (w,).

    By de Moivre, E[B - s/2; B >= c] = c/2 P(B = c).
    """
    start = np.maximum(np.floor(level) + 1, np.floor(coins / 2) + 1)  # the smallest B > a that is a strict majority
    upper = binomial.upper_tail(start, coins, 0.5)
    strict = start / 2 * binomial.pmf(start, coins, 0.5) + (coins / 2 - level) * upper
    half = np.floor(coins / 2)
    tie = np.where((2 * half == coins) & (half > level), (half - level) * binomial.pmf(half, coins, 0.5), 0.0)
    return np.asarray(2 * strict + tie)
