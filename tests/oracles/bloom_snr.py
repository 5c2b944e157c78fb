"""Signal-to-noise ratio in exact rationals: B c = a by elimination."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from oracles.bloom_reach import flip_law, inverted, times


def best_coefficients(counts: Sequence[Fraction], p: Fraction, before: int, after: int) -> list[Fraction]:
    """Return a c with B c = a; the last entry is 0."""
    size = len(counts)
    law = flip_law((size - 1).bit_length(), p)
    released = times(law, counts)
    covariance = [
        [
            (released[i] if i == j else Fraction(0)) - sum(law[i][x] * counts[x] * law[x][j] for x in range(size))
            for j in range(size)
        ]
        for i in range(size)
    ]
    signal = [law[x][after] - law[x][before] for x in range(size)]
    inner = [row[:-1] for row in covariance[:-1]]
    return [*times(inverted(inner), signal[:-1]), Fraction(0)]


def ratio(counts: Sequence[Fraction], p: Fraction, before: int, after: int) -> Fraction:
    """Return a.B^+ a = a.c."""
    law = flip_law((len(counts) - 1).bit_length(), p)
    best = best_coefficients(counts, p, before, after)
    return sum(((law[x][after] - law[x][before]) * best[x] for x in range(len(counts))), Fraction(0))


def ratio_of(counts: Sequence[float], p: float, before: int, after: int, coefficients: Sequence[float]) -> float:
    """Return (a.c)**2 / (c.B c) for given coefficients."""
    size = len(counts)
    law = [[float(each) for each in row] for row in flip_law((size - 1).bit_length(), Fraction(p))]
    mean_square = math.fsum(counts[x] * law[x][y] * coefficients[y] ** 2 for x in range(size) for y in range(size))
    square_mean = math.fsum(
        counts[x] * math.fsum(law[x][y] * coefficients[y] for y in range(size)) ** 2 for x in range(size)
    )
    shift = math.fsum((law[after][y] - law[before][y]) * coefficients[y] for y in range(size))
    return shift**2 / (mean_square - square_mean)


def printed_ones(k: int, p: Fraction, y: int, z: int) -> Fraction:
    """Return the paper's double sum over the logos with y and with z ones."""
    law = flip_law(k, p)
    return sum(
        (law[i][j] for i in range(1 << k) if i.bit_count() == y for j in range(1 << k) if j.bit_count() == z),
        Fraction(0),
    )


def by_hypergeometric(k: int, p: Fraction, y: int, z: int) -> Fraction:
    """Return the same by the number of ones in common: C(k,y) C(k,z) pairs of logos, not (k-1)!."""
    odds = (1 - p) / p
    mean = sum(
        (
            Fraction(math.comb(y, common) * math.comb(k - y, z - common), math.comb(k, z)) * odds ** (2 * common)
            for common in range(max(0, y + z - k), min(y, z) + 1)
        ),
        Fraction(0),
    )
    return math.comb(k, y) * math.comb(k, z) * (1 - p) ** k * odds ** (-y - z) * mean
