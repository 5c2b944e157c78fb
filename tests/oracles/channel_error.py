"""What one person's report tells, by plain sums over people and reports in rationals: no matrix algebra."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Rows = Sequence[Sequence[Fraction]]


def spread(rows: Rows) -> Fraction:
    """Return the largest sum over y of (Q_a - Q_b)**2/Q_x."""
    return max(
        sum(((p - q) ** 2 / r for p, q, r in zip(first, second, third, strict=True)), Fraction(0))
        for first in rows
        for second in rows
        for third in rows
    )


def variance(rows: Rows, coefficients: Rows) -> Fraction:
    """Return the variance of the mean over one person of each value of the coefficient of the report, added up.

    `coefficients` has a row for each wanted quantity and a column for each report.
    """
    total = Fraction(0)
    for wanted in coefficients:
        for row in rows:
            mean = sum((p * c for p, c in zip(row, wanted, strict=True)), Fraction(0))
            total += sum((p * (c - mean) ** 2 for p, c in zip(row, wanted, strict=True)), Fraction(0))
    return total / len(rows) ** 2


def solved(matrix: Rows, right: Rows) -> list[list[Fraction]]:
    """Return X with matrix @ X = right, by elimination."""
    lines = [[*left, *values] for left, values in zip(matrix, right, strict=True)]
    size = len(lines)
    for place in range(size):
        pivot = next(row for row in range(place, size) if lines[row][place])
        lines[place], lines[pivot] = lines[pivot], lines[place]
        lines[place] = [entry / lines[place][place] for entry in lines[place]]
        for row in range(size):
            if row != place:
                factor = lines[row][place]
                lines[row] = [a - factor * b for a, b in zip(lines[row], lines[place], strict=True)]
    return [line[size:] for line in lines]


def least_squares(rows: Rows, wanted: Rows) -> list[list[Fraction]]:
    """Return the coefficients of least squares: those of weighted normal equations, shape (quantities, reports)."""
    k, means = len(rows), [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
    normal = [
        [sum((p * q / m for p, q, m in zip(first, second, means, strict=True)), Fraction(0)) for second in rows]
        for first in rows
    ]
    weighted = [[p / m for p, m in zip(row, means, strict=True)] for row in rows]
    inverse = solved(normal, weighted)
    return [
        [sum((line[x] * inverse[x][y] for x in range(k)), Fraction(0)) for y in range(len(means))] for line in wanted
    ]
