"""Shuffled, flipped columns by enumeration, in exact rationals: datasets, releases, ratios, quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from oracles.dp_enumeration import Counts, add_report, compositions, hockey_stick


def channel(filters: int, p: Fraction) -> list[list[Fraction]]:
    """Law of the flipped logo for every logo."""
    return [
        [
            math.prod((p if (x ^ y) >> i & 1 else 1 - p) for i in range(filters)) * Fraction(1)
            for y in range(1 << filters)
        ]
        for x in range(1 << filters)
    ]


def release(rows: list[list[Fraction]], columns: Sequence[int]) -> dict[Counts, Fraction]:
    """Law of the logo counts when the columns hold these logos."""
    law: dict[Counts, Fraction] = {(0,) * len(rows[0]): Fraction(1)}
    for column in columns:
        law = {key: Fraction(mass) for key, mass in add_report(law, list(rows[column])).items()}
    return law


def pair_delta(
    rows: list[list[Fraction]], others: Sequence[int], target: tuple[int, int], growth: Fraction
) -> Fraction:
    """The larger of the two divergences of a pair of datasets."""
    first, second = (release(rows, [*others, value]) for value in target)
    return Fraction(max(hockey_stick(first, second, growth), hockey_stick(second, first, growth)))


def worst(filters: int, bits: int, p: Fraction, growth: Fraction) -> tuple[Fraction, tuple[int, ...], tuple[int, int]]:
    """The worst pair of all: delta, the other columns, the target's two logos. Up to renaming, the first is 0."""
    rows, best = channel(filters, p), (Fraction(-1), (), (0, 0))
    found: tuple[Fraction, tuple[int, ...], tuple[int, int]] = best
    for counts in compositions(bits - 1, 1 << filters):
        others = tuple(logo for logo, number in enumerate(counts) for _ in range(number))
        base = release(rows, others)
        reached = [add_report(base, list(row)) for row in rows]
        for second in range(1, 1 << filters):
            for a, b in ((0, second), (second, 0)):
                value = Fraction(hockey_stick(reached[a], reached[b], growth))
                if value > found[0]:
                    found = value, others, (a, b)
    return found


def filling_law(bits: int, ones: int, p: Fraction) -> list[Fraction]:
    """Law of the number of ones after flipping."""
    law = [Fraction(1)]
    for bit in range(bits):
        rise = 1 - p if bit < ones else p
        law = [
            (law[y] * (1 - rise) if y < len(law) else Fraction(0)) + (law[y - 1] * rise if y else Fraction(0))
            for y in range(len(law) + 1)
        ]
    return law


def hypergeometric_ratio(bits: int, ones: int, seen: int, z: Fraction) -> Fraction:
    """E[z**xi_1]/E[z**xi_2] from the hypergeometric probabilities."""

    def mean(held: int) -> Fraction:
        reach = range(max(0, held + seen - bits), min(held, seen) + 1)
        return sum((math.comb(held, i) * math.comb(bits - held, seen - i) * z**i for i in reach), Fraction(0))

    return mean(ones + 1) / mean(ones)


def published_figure(bits: int, ones: int, p: Fraction, delta: Fraction, *, sign: int) -> float:
    """max(sign * (delta quantile of ln R), (1 - delta) quantile of ln R') exactly; sign -1 corrected, +1 as printed."""
    return _larger_quantile(filling_law(bits, ones, p), filling_law(bits, ones + 1, p), delta, sign)


def published_pair_figure(filters: int, bits: int, p: Fraction, delta: Fraction, *, sign: int) -> float:
    """The same for several filters: all columns at 0...0, one of them at 1...1 instead."""
    rows, last = channel(filters, p), (1 << filters) - 1
    first, second = release(rows, [0] * bits), release(rows, [0] * (bits - 1) + [last])
    return _larger_quantile(list(first.values()), [second[key] for key in first], delta, sign)


def _larger_quantile(first: list[Fraction], second: list[Fraction], delta: Fraction, sign: int) -> float:
    losses = [math.log(b / a) for a, b in zip(first, second, strict=True)]

    def quantile(law: list[Fraction], level: Fraction) -> float:
        total = Fraction(0)
        for loss, mass in sorted(zip(losses, law, strict=True)):
            total += mass
            if total >= level:
                return loss
        return max(losses)

    return max(sign * quantile(first, delta), quantile(second, 1 - delta))
