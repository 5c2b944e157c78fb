"""Unary encoding by enumeration in rationals: tiny sizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product


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
