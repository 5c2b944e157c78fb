"""Error rates of a matcher by counting at every threshold, and ranks by sorting people."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction


def error_rates(genuine: Sequence[float], impostor: Sequence[float], threshold: float) -> tuple[Fraction, Fraction]:
    """(false accepts, false rejects) when scores >= threshold are accepted."""
    accepted = sum(score >= threshold for score in impostor)
    rejected = sum(score < threshold for score in genuine)
    return Fraction(accepted, len(impostor)), Fraction(rejected, len(genuine))


def equal_error(genuine: Sequence[float], impostor: Sequence[float]) -> Fraction:
    """Where the polygon through all operating points meets the diagonal."""
    points = [(Fraction(0), Fraction(1))]
    points += [error_rates(genuine, impostor, t) for t in sorted({*genuine, *impostor}, reverse=True)]
    for (accept, reject), (more, less) in itertools.pairwise(points):
        if more >= less:
            share = (reject - accept) / ((reject - accept) + (more - less))
            return accept + share * (more - accept)
    raise AssertionError


def chance_in_top(scores: Sequence[Sequence[float]], top: int) -> Fraction:
    """The chance that a report's own person is among the `top` best, equal scores in every order alike."""
    total = Fraction(0)
    for person, row in enumerate(scores):
        good = tried = 0
        for order in itertools.permutations(range(len(row))):
            if all(row[a] >= row[b] for a, b in itertools.pairwise(order)):
                tried += 1
                good += person in order[:top]
        total += Fraction(good, tried)
    return total / len(scores)
