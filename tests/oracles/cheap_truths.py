"""What no figure may contradict, in rationals: the law of one report, and tests that hardly anybody else sets off.

A report is described by classes: for each pair of the target's values (a, b) a list of (P, Q, C), the chances of each
class with the target at a, at b, and for another person who holds a value c. No code is shared with the project.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

Classes = Sequence[tuple[Fraction, Fraction, Fraction]]


def growth_of(epsilon: float) -> Fraction:
    """e**epsilon, to the accuracy of floats (e**709 at most)."""
    return Fraction(math.exp(min(epsilon, 709.0)))


def flipped_bits(width: int, flip: Fraction) -> Classes:
    """a and b differ in all bits, c = b: classes by the number of bits flipped of a."""
    powers = [Fraction(1)], [Fraction(1)]
    for _ in range(width):
        powers[0].append(powers[0][-1] * flip)
        powers[1].append(powers[1][-1] * (1 - flip))
    rows = []
    for j in range(width + 1):
        ways = math.comb(width, j)
        first, second = ways * powers[0][j] * powers[1][width - j], ways * powers[0][width - j] * powers[1][j]
        rows.append((first, second, second))
    return rows


def randomized_response(k: int, truth: Fraction) -> Classes:
    """Classes a, b, c, everything else; for k = 2 everybody else is at b."""
    lie = (1 - truth) / (k - 1)
    if k == 2:
        return [(truth, lie, lie), (lie, truth, truth)]
    return [(truth, lie, lie), (lie, truth, lie), (lie, lie, truth), ((k - 3) * lie,) * 3]


def matrix(rows: Sequence[Sequence[float]]) -> list[Classes]:
    """All pairs of rows, the others at any row."""
    exact = [[Fraction(mass) for mass in row] for row in rows]
    places = range(len(exact))
    return [
        list(zip(exact[a], exact[b], exact[c], strict=True)) for a in places for b in places if a != b for c in places
    ]


def local_delta(laws: Iterable[Classes], growth: Fraction) -> Fraction:
    """The divergence of one report seen with its sender: an upper end for any shuffle, the truth for n = 1."""
    return max(sum((max(Fraction(0), p - growth * q) for p, q, _ in law), Fraction(0)) for law in laws)


def least_delta(laws: Iterable[Classes], growth: Fraction, others: int) -> Fraction:
    """A lower end with so many other reports, each in every class at most as often as c's (or a dummy's).

    The test accepts if any report is in a set of classes; the others set it off with at most the sum of their chances.
    """
    return max(sum((max(Fraction(0), p - growth * (q + others * c)) for p, q, c in law), Fraction(0)) for law in laws)
