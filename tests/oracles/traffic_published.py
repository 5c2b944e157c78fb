"""The traffic paper's formulas for a scrambler, term by term in rationals; expectations by enumeration of reports."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product


def theorem_three(targets: int, sources: int, sigma: Fraction, dummies: int) -> Fraction:
    """Return the printed e**epsilon."""
    truth, lie = 1 - sigma, sigma / (targets - 1)
    above = below = Fraction(0)
    for k in range(dummies + 1):
        if k > sources - 1:
            break
        weight = math.comb(dummies, k) * math.comb(sources - 1, k) * truth**k * lie ** (sources - k - 1)
        above += weight * (truth + k * lie**2 / truth)
        below += weight * (lie + k * lie**2 / truth)
    return above / below


def loss(targets: int, sigma: float, growth: float, report: int) -> float:
    """Return equation 2 for the targets 0 and 1."""
    return sigma * (1 - growth) + (1 - sigma) * targets * ((report == 0) - growth * (report == 1))


def positive_part(targets: int, sigma: float, growth: float, reports: int) -> float:
    """Return E[L_1 + ... + L_N]_+ over every tuple of N uniform reports."""
    total = 0.0
    for drawn in product(range(targets), repeat=reports):
        total += max(sum(loss(targets, sigma, growth, report) for report in drawn), 0.0)
    return float(total / targets**reports)


def theorem_four_sum(sources: int, sigma: float, dummies: int, part: dict[int, float]) -> float:
    """Return the printed sum over m of m/(m + d) C(n, m) sigma**m (1 - sigma)**(n - m) `part`[m + d], over sigma n."""
    if sigma == 0:
        return part[dummies + 1] / (dummies + 1)
    total = 0.0
    for m in range(1, sources + 1):
        weight = math.comb(sources, m) * sigma**m * (1 - sigma) ** (sources - m)
        total += m / (m + dummies) * weight * part[m + dummies]
    return total / (sigma * sources)


def hoeffding(spread: float, growth: float, reports: int) -> float:
    """Return Lemma 3's first bound, b = `spread`, a = growth - 1."""
    a = growth - 1
    return spread**2 / (4 * a) * math.exp(-2 * reports * a**2 / spread**2)


def bennett(targets: int, sigma: float, growth: float, reports: int, *, printed: bool) -> float:
    """Return Lemma 3's second bound: as printed, with Lemma 5's b_+, or the one that holds."""
    a = growth - 1
    most = (1 - sigma) * targets + (sigma * a if printed else -sigma * a)
    square = sigma * (2 - sigma) * a**2 + (1 - sigma) ** 2 * targets * (1 + growth**2)
    u = a * most / square
    value = most / math.log(1 + u) * math.exp(-reports * square / most**2 * ((1 + u) * math.log(1 + u) - u))
    return value / (a * reports) if printed else value
