"""Certified bounds for any number of values and people: the privacy blanket, and an adversary who ignores a count.

Upper bound. Give the adversary the truthful reports of the known people, and whose they are. The other M ~ Bin(m,
gamma) of the m known people sent a uniform report. With the `unknown` uniform reports and the target's report, N = M +
unknown + 1 reports remain. A truthful target's report is then one of N exchangeable reports, uniform on the k values.
The best guess is the most frequent value, right with probability E[max h]/N = V_S(N; k). Hence G <= E V_S(M + unknown +
1; k).

Lower bound. All known people have the same value c, and the adversary ignores the count of c. The other people's
J ~ Bin(m, (k-1) nu) + Bin(unknown, (k-1)/k) reports of other values are uniform over k - 1 values. A truthful target
whose value is not c is guessed with probability V_S(J + 1; k-1). Hence
G >= (1 - 1/k) E V_S(J + 1; k-1) in the worst case.

V_S falls as N grows, so its values at the first and last count of a bin bound it in the bin.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.numerics import binomial, max_load
from hushuffle.numerics.max_load import TOLERANCE, expected_max_load

if TYPE_CHECKING:
    from hushuffle.numerics.binomial import Floats
    from hushuffle.questions.qif.knowledge import Knowledge

COARSE: Final = 1e-10
"""Relative error allowed in the rates from which bounds are computed; bounds are widened by it."""

_LOG_TAIL: Final = -45.0
_FEW_VALUES: Final = 16
_MOST_BINS: Final = 96


def shuffle_rate(reports: int, k: int, *, tolerance: float = TOLERANCE) -> float:
    """Return V_S(N; k) = E[max h]/N, h ~ Multinomial(N; 1/k, ...): the probability to guess a truthful target's value.

    The N - 1 other reports are uniform. `tolerance` is the allowed relative error in addition to rounding.

    Raises:
        NumericalError: see `expected_max_load`.

    Source: docs/theory/guessing.md, Theorem 4; Jurado et al. 2023, Proposition 20.

    >>> shuffle_rate(3, 2)
    0.75
    """
    return expected_max_load(reports, k, tolerance=tolerance) / reports


def upper_rate(knowledge: Knowledge) -> float:
    """Return an upper bound on the success rate G for truthful targets, for all values of the m known people.

    Rounded up. Binning of M raises V - 1/k by less than a relative 3e-3.

    Raises:
        NumericalError: see `expected_max_load`.

    Source: docs/theory/guessing.md, Theorem 7; Balle, Bell, Gascon, Nissim 2019 (the blanket).
    """
    m, k = knowledge.m, knowledge.law.k
    starts, _, masses, lost = bins(m, float(knowledge.law.gamma), k)
    rates = np.array([shuffle_rate(int(start) + knowledge.unknown + 1, k, tolerance=COARSE) for start in starts])
    return min(1.0, (float(masses @ rates) + lost) * (1 + COARSE + max_load.ACCURACY + 2 * binomial.margin(m)))


def lower_rate(knowledge: Knowledge) -> float:
    """Return a lower bound on the success rate G for truthful targets, if all m known people have one value; k >= 3.

    Rounded down. Binning of J lowers V - 1/k by less than a relative 1e-2.

    Raises:
        NumericalError: see `expected_max_load`.

    Source: docs/theory/guessing.md, Theorem 7.
    """
    m, unknown, k = knowledge.m, knowledge.unknown, knowledge.law.k
    _, own, own_masses, _ = bins(m, (k - 1) * float(knowledge.law.lie), k)
    _, side, side_masses, _ = bins(unknown, (k - 1) / k, k)
    reports = own[:, None] + side[None, :] + 1
    points = np.unique(np.linspace(reports.min(), reports.max(), max(own.size, side.size) + 1).astype(np.int64))
    rates = np.array([shuffle_rate(int(point), k - 1, tolerance=COARSE) for point in points])
    above = rates[np.searchsorted(points, reports)]
    rounding = COARSE + max_load.ACCURACY + 2 * binomial.margin(m) + 2 * binomial.margin(unknown)
    return float(own_masses @ above @ side_masses) * (1 - 1 / k) * (1 - rounding)


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
