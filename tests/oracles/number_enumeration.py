"""Numbers on a grid, by enumeration in rationals: how they are rounded, and what reports follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product


def rounding_law(number: Fraction, low: Fraction, high: Fraction, levels: int) -> list[Fraction]:
    """Probability of each level for a number: the nearer of its two neighbours is likelier; clipped first."""
    step = (high - low) / (levels - 1)
    clipped = min(max(number, low), high)
    return [max(Fraction(0), 1 - abs(clipped - (low + step * level)) / step) for level in range(levels)]


def report_law(rounded: Sequence[Fraction], channel: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """Probability of each report, level by level."""
    return [
        sum((share * row[y] for share, row in zip(rounded, channel, strict=True)), Fraction(0))
        for y in range(len(channel[0]))
    ]


def outcomes(laws: Sequence[Sequence[Fraction]]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every list of reports with its probability."""
    for reports in product(*(range(len(law)) for law in laws)):
        weight = Fraction(1)
        for law, y in zip(laws, reports, strict=True):
            weight *= law[y]
        if weight:
            yield reports, weight


def response_channel(levels: int, truth: Fraction) -> list[list[Fraction]]:
    """Randomized response that reports the own level with this probability."""
    lie = (1 - truth) / (levels - 1)
    return [[truth if x == y else lie for y in range(levels)] for x in range(levels)]


def square_wave_channel(bins: int, width: int, growth: Fraction) -> list[list[Fraction]]:
    """Report y of bin x: `growth` = e**epsilon times as likely up to `width` places from x + width as elsewhere."""
    weights = [
        [growth if abs(y - (x + width)) <= width else Fraction(1) for y in range(bins + 2 * width)] for x in range(bins)
    ]
    return [[weight / sum(row) for weight in row] for row in weights]
