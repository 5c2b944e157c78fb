"""Success rates of the strong adversary: certified bounds for any values, and the exact rate if all have one value.

Upper bound. Give the adversary the truthful reports of the known people, and whose they are. The other M ~ Bin(m,
gamma) of the m known people sent a uniform report. With the `unknown` uniform reports and the target's report, N = M +
unknown + 1 reports remain. A truthful target's report is then one of N exchangeable reports, uniform on the k values.
The best guess is the most frequent value, right with probability E[max h]/N = V_S(N; k). Hence G <= E V_S(M + unknown +
1; k).

Lower bound. All known people have the same value c, and the adversary ignores the count of c. The other people's J ~
Bin(m, (k-1) nu) + Bin(unknown, (k-1)/k) reports of other values are uniform over k - 1 values. A truthful target whose
value is not c is guessed with probability V_S(J + 1; k-1). Hence G >= (1 - 1/k) E V_S(J + 1; k-1) in the worst case.

V_S falls as N grows, so its values at the first and last count of a bin bound it in the bin.

One value. All other people have the value c, and the rate is exact for almost any number of people. The histogram f
of the other people's reports is Multinomial(m; mu at c, nu elsewhere). With n = m + 1,
f(h - e_x) = p_x^{-1} h_x/n Mult(n; h). So G = (1/k) E[max_x h_x/(n p_x)], h ~ Mult(n; p), in V = nu + theta G.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.errors import NumericalError
from hushuffle.numerics import binomial, max_load
from hushuffle.numerics.max_load import TOLERANCE, Cells, expected_max_load, expected_max_ratio

if TYPE_CHECKING:
    import numpy.typing as npt

    from hushuffle.mechanisms.randomizers import Symmetric
    from hushuffle.numerics.binomial import Floats
    from hushuffle.questions.qif.knowledge import Knowledge

COARSE: Final = 1e-10
"""Relative error allowed in the rates from which bounds are computed; bounds are widened by it."""

_LOG_TAIL: Final = -45.0
_FEW_VALUES: Final = 16
_MOST_BINS: Final = 96
_WINDOW_LIMIT: Final = 1 << 21
_APART: Final = 8
"""Every eighth point shows whether a lower bound may be useful."""

_HARDLY_ANY: Final = 0.5


@lru_cache(maxsize=2048)
def shuffle_rate(reports: int, k: int, *, tolerance: float = TOLERANCE) -> float:
    """Return V_S(N; k) = E[max h]/N, h ~ Multinomial(N; 1/k, ...), for N - 1 uniform reports and a truthful target.

    Source: docs/theory/guessing.md, Theorem 4; Jurado et al. 2023, Proposition 20.

    >>> shuffle_rate(3, 2)
    0.75
    """
    return expected_max_load(reports, k, tolerance=tolerance) / reports


def upper_rate(knowledge: Knowledge) -> float:
    """Return an upper bound on G, rounded up, for all known values; bins raise V - 1/k by less than 3e-3 (relative).

    Source: docs/theory/guessing.md, Theorem 7; Balle, Bell, Gascon, Nissim 2019 (the blanket).
    """
    m, k = knowledge.m, knowledge.law.k
    starts, _, masses, lost = bins(m, float(knowledge.law.gamma), k)
    rates = np.array([shuffle_rate(int(start) + knowledge.unknown + 1, k, tolerance=COARSE) for start in starts])
    return min(1.0, (float(masses @ rates) + lost) * (1 + COARSE + max_load.ACCURACY + 2 * binomial.margin(m)))


def lower_rate(knowledge: Knowledge, *, wanted: float = 0.0) -> float:
    """Return a lower bound on G, rounded down, if all m have one value, k >= 3; bins lower V - 1/k by less than 1e-2.

    If a few bins show that it is at most `wanted`, the result is 0.

    Source: docs/theory/guessing.md, Theorem 7.
    """
    m, unknown, k = knowledge.m, knowledge.unknown, knowledge.law.k
    _, own, own_masses, _ = bins(m, (k - 1) * float(knowledge.law.lie), k)
    _, side, side_masses, _ = bins(unknown, (k - 1) / k, k)
    reports = own[:, None] + side[None, :] + 1
    points = np.unique(np.linspace(reports.min(), reports.max(), max(own.size, side.size) + 1).astype(np.int64))

    def mean(points: npt.NDArray[np.int64], places: npt.NDArray[np.intp]) -> float:
        rates = np.array([shuffle_rate(int(point), k - 1, tolerance=COARSE) for point in points])
        return float(own_masses @ rates[places] @ side_masses) * (1 - 1 / k)

    sparse = points[::_APART]
    if mean(sparse, np.searchsorted(sparse, reports, side="right") - 1) <= wanted:
        return 0.0
    rounding = COARSE + max_load.ACCURACY + 2 * binomial.margin(m) + 2 * binomial.margin(unknown)
    return mean(points, np.searchsorted(points, reports)) * (1 - rounding)


def bins(trials: int, chance: float, k: int) -> tuple[Floats, Floats, Floats, float]:
    """Divide Bin(trials, chance) into bins; return their first and last counts, their masses, and the omitted mass."""
    low, high = binomial.window(trials, chance, _LOG_TAIL)
    # The window spans about 18/sqrt(M) of V_S - 1/k. For few values a point takes longer, and the bound is wider.
    resolution = 4_500 if k < _FEW_VALUES else 30_000
    wanted = max(2, min(_MOST_BINS, math.ceil(resolution / math.sqrt(low + 1))))
    edges = np.unique(np.linspace(low, high + 1, min(wanted, high - low + 1) + 1).astype(np.int64))
    starts, ends = edges[:-1].astype(np.float64), edges[1:].astype(np.float64) - 1
    below = binomial.lower_tail(np.append(starts[0] - 1, ends), trials, chance)
    masses = np.maximum(np.diff(below), 0.0).astype(np.float64)
    return starts, np.asarray(ends), masses, 2 * math.exp(_LOG_TAIL)


def one_value_rate(m: int, law: Symmetric, *, tolerance: float = TOLERANCE) -> float:
    """Return G if all m others have one known value, nu > 0; the relative error is below 1e-12.

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
    """E[max_x h_x/(n p_x)] if n nu < mu: any report elsewhere, J ~ Bin(n, (k-1) nu), outweighs all at c.

    The result is mu**(n-1) + E[fullest of k - 1 cells]/(n nu); the general method would subtract numbers near 1.
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
        message = (
            f"The exact rate for all others at one value (n={n}, k=3) takes {high - low:.0e} steps. Use a smaller n."
        )
        raise NumericalError(message)
    rest = np.arange(low, high + 1, dtype=np.float64)
    level = (n - rest) * (lie / truth)
    ratio = (level + _above(level, rest)) / (n * lie)
    return 1.0 + float(binomial.pmf(rest, n, 2 * lie) @ (ratio - 1.0))


def _above(level: Floats, coins: Floats) -> Floats:
    """Return E[max(B, s - B) - a]_+, B ~ Bin(s, 1/2), shape (w,); de Moivre: E[B - s/2; B >= c] = c/2 P(B = c)."""
    start = np.maximum(np.floor(level) + 1, np.floor(coins / 2) + 1)  # the smallest B > a that is a strict majority
    upper = binomial.upper_tail(start, coins, 0.5)
    strict = start / 2 * binomial.pmf(start, coins, 0.5) + (coins / 2 - level) * upper
    half = np.floor(coins / 2)
    tie = np.where((2 * half == coins) & (half > level), (half - level) * binomial.pmf(half, coins, 0.5), 0.0)
    return np.asarray(2 * strict + tie)
