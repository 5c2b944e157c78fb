"""Unary encoding and Hadamard response by enumeration in rationals: tiny sizes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

from oracles.dp_enumeration import Counts, Number, add_report, compositions, hockey_stick

Report = Sequence[Fraction]


def one_hot_rows(k: int, p: Fraction, q: Fraction) -> list[list[Fraction]]:
    """Q(report | x), reports in the order of the integers whose bit x, counted from the lowest, is that of value x."""
    reports = [bits[::-1] for bits in product((0, 1), repeat=k)]
    rows = []
    for x in range(k):
        row = []
        for bits in reports:
            chance = Fraction(1)
            for value, bit in enumerate(bits):
                one = p if value == x else q
                chance *= one if bit else 1 - one
            row.append(chance)
        rows.append(row)
    return rows


def hadamard_rows(k: int, growth: Fraction) -> list[list[Fraction]]:
    """Q(y | x): entry (x + 1, y) of Sylvester's matrix decides whether y is `growth` times as likely."""
    matrix = [[1]]
    while len(matrix) <= k:
        matrix = [row + row for row in matrix] + [row + [-entry for entry in row] for row in matrix]
    likely, unlikely = growth / (growth + 1), 1 / (growth + 1)
    return [[(likely if sign > 0 else unlikely) * Fraction(2, len(row)) for sign in row] for row in matrix[1 : k + 1]]


def worst_delta_with(rows: Sequence[Report], n: int, growth: Fraction, dummies: Sequence[Report]) -> float:
    """The largest delta over neighbouring datasets where reports of these laws are shuffled in."""
    worst = 0.0
    for others in compositions(n - 1, len(rows)):
        law: dict[Counts, Number] = {(0,) * len(rows[0]): 1}
        for report in [*(rows[x] for x, count in enumerate(others) for _ in range(count)), *dummies]:
            law = add_report(law, list(report))
        reached = [add_report(law, list(row)) for row in rows]
        for a, b in permutations(range(len(rows)), 2):
            worst = max(worst, float(hockey_stick(reached[a], reached[b], growth)))
    return worst
