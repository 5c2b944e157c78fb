"""A guesser's success by enumeration, in exact rationals: every dataset, every report, every histogram.

People are given by their value, or by None for a value the guesser does not know (then every value is
tried with weight 1/k). Nothing here uses that unknown people send uniform reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

Law = dict[tuple[int, ...], Fraction]
Person = int | None


def channel(k: int, truth: Fraction) -> list[list[Fraction]]:
    """Write out randomized response as a matrix."""
    lie = (1 - truth) / (k - 1)
    return [[truth if x == y else lie for y in range(k)] for x in range(k)]


def histogram_law(people: Sequence[int], matrix: list[list[Fraction]]) -> Law:
    """Return the law of the reports' histogram, adding one person at a time."""
    k = len(matrix)
    law: Law = {(0,) * k: Fraction(1)}
    for value in people:
        grown: Law = {}
        for histogram, weight in law.items():
            for report in range(k):
                key = tuple(count + (cell == report) for cell, count in enumerate(histogram))
                grown[key] = grown.get(key, Fraction(0)) + weight * matrix[value][report]
        law = grown
    return law


def histogram_law_by_reports(people: Sequence[int], matrix: list[list[Fraction]]) -> Law:
    """Return the same law from every sequence of reports."""
    k, law = len(matrix), Law()
    for reports in product(range(k), repeat=len(people)):
        weight = Fraction(1)
        for value, report in zip(people, reports, strict=True):
            weight *= matrix[value][report]
        key = tuple(reports.count(cell) for cell in range(k))
        law[key] = law.get(key, Fraction(0)) + weight
    return law


def mixed_law(people: Sequence[Person], matrix: list[list[Fraction]]) -> Law:
    """Return the histogram's law when unknown people hold every combination of values with equal weight."""
    k, known = len(matrix), [value for value in people if value is not None]
    unknown = len(people) - len(known)
    mixture: Law = {}
    for values in product(range(k), repeat=unknown):
        for histogram, weight in histogram_law([*known, *values], matrix).items():
            mixture[histogram] = mixture.get(histogram, Fraction(0)) + weight / k**unknown
    return mixture


def success(others: Sequence[Person], matrix: list[list[Fraction]], dummies: int = 0) -> Fraction:
    """Return (1/k) sum_h max_x P(h | target holds x), with uniform dummies among the reports."""
    k = len(matrix)
    rest = mixed_law(others, matrix)
    for _ in range(dummies):
        grown: Law = {}
        for histogram, weight in rest.items():
            for report in range(k):
                key = tuple(count + (cell == report) for cell, count in enumerate(histogram))
                grown[key] = grown.get(key, Fraction(0)) + weight / k
        rest = grown
    best: Law = {}
    for x in range(k):
        seen: Law = {}
        for histogram, weight in rest.items():
            for report in range(k):
                key = tuple(count + (cell == report) for cell, count in enumerate(histogram))
                seen[key] = seen.get(key, Fraction(0)) + weight * matrix[x][report]
        for histogram, weight in seen.items():
            best[histogram] = max(best.get(histogram, Fraction(0)), weight)
    return sum(best.values(), Fraction(0)) / k


def worst_success(m: int, unknown: int, matrix: list[list[Fraction]], dummies: int = 0) -> Fraction:
    """Return the largest success over the values of the m known people."""
    tried = combinations_with_replacement(range(len(matrix)), m)
    return max(success([*known, *[None] * unknown], matrix, dummies) for known in tried)


def total_variation(people: Sequence[int], matrix: list[list[Fraction]], a: int, b: int) -> Fraction:
    """Return the total variation of the histogram's laws when the target holds a or b."""
    first, second = histogram_law([*people, a], matrix), histogram_law([*people, b], matrix)
    keys = first.keys() | second.keys()
    return sum((abs(first.get(h, Fraction(0)) - second.get(h, Fraction(0))) for h in keys), Fraction(0)) / 2
