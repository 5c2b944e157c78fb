"""How far fake reports move a mean estimate, by trying all of them; rationals.

A mechanism is its matrix: a list of rows, one for each value, of the probabilities of its reports; `supports[y]` is the
set of values that report y speaks for. The estimator counts supporting reports, less those that are expected of other
values, over what an own value adds; both probabilities are read off the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product


@dataclass(frozen=True)
class Moves:
    """Least and largest difference of a mean estimate and the honest share: with any reports, and with any values."""

    least: Fraction
    most: Fraction
    honest_least: Fraction
    honest_most: Fraction
    together: int


def moves(
    matrix: Sequence[Sequence[Fraction]], supports: Sequence[frozenset[int]], honest: Sequence[int], fakes: int
) -> Moves:
    """Try all reports, and all values, of `fakes` people beside `honest` ones, for every value as the target."""
    k, n = len(matrix), len(honest) + fakes
    true, false = _supported(matrix, supports, 0, 0), _supported(matrix, supports, 1, 0)
    for value, other in product(range(k), repeat=2):
        assert _supported(matrix, supports, value, other) == (true if value == other else false)

    def mean(target: int, from_fakes: Fraction) -> Fraction:
        """The mean estimate if so many fake reports support the target."""
        from_honest = sum((_supported(matrix, supports, value, target) for value in honest), start=Fraction(0))
        return ((from_honest + from_fakes) / n - false) / (true - false)

    by_reports, by_values = [], []
    for target in range(k):
        share = Fraction(sum(value == target for value in honest), n)
        by_reports += [
            mean(target, Fraction(sum(target in supports[report] for report in sent))) - share
            for sent in product(range(len(supports)), repeat=fakes)
        ]
        for held in product(range(k), repeat=fakes):
            expected = sum((_supported(matrix, supports, value, target) for value in held), start=Fraction(0))
            by_values.append(mean(target, expected) - share)
    return Moves(min(by_reports), max(by_reports), min(by_values), max(by_values), max(map(len, supports)))


def moves_by_matrix(
    matrix: Sequence[Sequence[Fraction]], honest: Sequence[int], fakes: int
) -> tuple[Fraction, Fraction]:
    """Return the least and largest difference where a square matrix is inverted: any reports, any target."""
    k, n = len(matrix), len(honest) + fakes
    inverse = _inverse(matrix)
    found = []
    for sent in product(range(k), repeat=fakes):
        expected = [Fraction(sent.count(y)) + sum((matrix[z][y] for z in honest), start=Fraction(0)) for y in range(k)]
        for target in range(k):
            mean = sum((expected[y] * inverse[y][target] for y in range(k)), start=Fraction(0)) / n
            found.append(mean - Fraction(sum(z == target for z in honest), n))
    return min(found), max(found)


def _inverse(matrix: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """Return V with QV = 1, by elimination."""
    k = len(matrix)
    rows = [[*row, *(Fraction(x == y) for y in range(k))] for x, row in enumerate(matrix)]
    for place in range(k):
        pivot = next(row for row in range(place, k) if rows[row][place])
        rows[place], rows[pivot] = rows[pivot], rows[place]
        rows[place] = [entry / rows[place][place] for entry in rows[place]]
        for other in range(k):
            if other != place:
                factor = rows[other][place]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place], strict=True)]
    return [row[k:] for row in rows]


def _supported(
    matrix: Sequence[Sequence[Fraction]], supports: Sequence[frozenset[int]], value: int, target: int
) -> Fraction:
    """Return the probability that the report of `value` supports `target`."""
    chances = (chance for chance, held in zip(matrix[value], supports, strict=True) if target in held)
    return sum(chances, start=Fraction(0))
