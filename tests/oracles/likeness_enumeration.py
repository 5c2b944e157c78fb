"""A privacy blanket for one dataset: the bound term by term, in rationals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Law = Sequence[Fraction]


def likeness_bound(target: tuple[Law, Law], growth: Fraction, reference: Law, likeness: Sequence[Fraction]) -> Fraction:
    """The bound if other client i reports from `reference` with probability `likeness[i]`, whatever its other law.

    It enumerates which clients do, and all sequences of their reports and the target's.
    """
    alone = [_among(target, growth, reference, number) for number in range(1, len(likeness) + 2)]
    total = Fraction(0)
    for alike in itertools.product((False, True), repeat=len(likeness)):
        chances = (part if inside else 1 - part for part, inside in zip(likeness, alike, strict=True))
        total += math.prod(chances, start=Fraction(1)) * alone[sum(alike)]
    return total


def _among(target: tuple[Law, Law], growth: Fraction, reference: Law, number: int) -> Fraction:
    """Divergence of the target's report shuffled among `number - 1` reports from `reference`, by its definition."""
    total = Fraction(0)
    for reports in itertools.combinations_with_replacement(range(len(reference)), number):
        orders = set(itertools.permutations(reports))
        first, second = (
            sum(math.prod((reference[y] for y in order[1:]), start=law[order[0]]) for order in orders) for law in target
        )
        total += max(Fraction(0), first - growth * second)
    return total
