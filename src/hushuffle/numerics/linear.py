"""Systems of sparse linear equations in exact rationals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

Row = dict[int, Fraction]


def solve(equations: Iterable[tuple[Mapping[int, Fraction], Fraction]], *, unknowns: int) -> list[Fraction] | None:
    """Return a solution x of the equations sum_i terms[i] x_i = value, one for each (terms, value); None without any.

    Free unknowns are set to 0. The method is Gauss-Jordan elimination; hundreds of unknowns take about a second.

    >>> [str(x) for x in solve([({0: Fraction(2), 1: Fraction(1)}, Fraction(1)), ({1: Fraction(3)}, Fraction(1))],
    ...                        unknowns=2)]
    ['1/3', '1/3']
    """
    solved: dict[int, tuple[Row, Fraction]] = {}  # by pivot: the rest of its row, scaled to pivot 1, and its value
    for terms, constant in sorted(equations, key=lambda equation: len(equation[0])):
        row, value = {i: c for i, c in terms.items() if c}, constant
        for pivot in [i for i in row if i in solved]:
            factor = row.pop(pivot)
            others, offset = solved[pivot]
            _subtract(row, others, factor)
            value -= factor * offset
        if not row:
            if value:
                return None
            continue
        pivot = min(row, key=lambda i: (row[i].denominator, i))
        scale = row.pop(pivot)
        row, value = {i: c / scale for i, c in row.items()}, value / scale
        for number, (others, offset) in solved.items():
            factor = others.pop(pivot, Fraction(0))
            if factor:
                _subtract(others, row, factor)
                solved[number] = others, offset - factor * value
        solved[pivot] = row, value
    zero = (Row(), Fraction(0))
    return [solved.get(i, zero)[1] for i in range(unknowns)]


def _subtract(row: Row, other: Row, factor: Fraction) -> None:
    """Subtract `factor` times `other` from `row`, dropping zeros."""
    for i, entry in other.items():
        left = row.get(i, Fraction(0)) - factor * entry
        if left:
            row[i] = left
        else:
            row.pop(i, None)
