"""Bounds for one dataset, term by term in rationals: a blanket chosen for it, and pools that values join unequally."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

Law = Sequence[Fraction]


def likeness_bound(target: tuple[Law, Law], growth: Fraction, reference: Law, likeness: Sequence[Fraction]) -> Fraction:
    """The bound if other client i reports from `reference` with probability `likeness[i]`, whatever its other law.

    It enumerates which clients do, and all sequences of their reports and the target's.
    """
    alone = [_among(target, growth, reference, number) for number in range(1, len(likeness) + 2)]
    return sum((chance * alone[sum(alike)] for alike, chance in _subsets(likeness)), Fraction(0))


def pools_bound(
    target: tuple[Law, Law], growth: Fraction, others: Sequence[Law], weights: Sequence[Fraction], slices: Sequence[Law]
) -> list[Fraction]:
    """Terms of the bound if slices together take `weights[i]` times `slices[j]` of the law of client i, j = 0, 1, ...

    The last term is that of empty slices. It enumerates which clients are in the first slice that is not empty, and
    all reports of the clients outside.
    """
    terms, before = list[Fraction](), Fraction(0)
    for taken in slices:
        after = sum(taken, Fraction(0))
        each = [outside(target, growth, own, taken, before) for own in zip(others, weights, strict=True)]
        joined = [weight * (after - before) / (1 - weight * before) for weight in weights]
        part = Fraction(0)
        for inside, chance in _subsets(joined):
            places = [i for i, hidden in enumerate(inside) if not hidden]
            sums = {Fraction(0): Fraction(1)}
            for i in places:
                sums = _with(sums, *each[i])
            part += (
                chance
                * sum((max(value, Fraction(0)) * mass for value, mass in sums.items()), Fraction(0))
                / (1 + sum(inside))
            )
        terms.append(part * math.prod((1 - weight * before for weight in weights), start=Fraction(1)))
        before = after
    alone = sum((max(near - growth * far, Fraction(0)) for near, far in zip(*target, strict=True)), Fraction(0))
    return [*terms, alone * math.prod((1 - weight * before for weight in weights), start=Fraction(1))]


def outside(
    target: tuple[Law, Law], growth: Fraction, own: tuple[Law, Fraction], taken: Law, before: Fraction
) -> tuple[Law, Law]:
    """Law of a client's report outside slices, and scores of the reports; earlier slices took `before` in all."""
    law, weight = own
    left = [mass - weight * part for mass, part in zip(law, taken, strict=True)]
    more = (sum(taken) - before) * weight
    scores = [more * (near - growth * far) / mass for near, far, mass in zip(*target, left, strict=True)]
    return [mass / (1 - weight * sum(taken)) for mass in left], scores


def _with(sums: dict[Fraction, Fraction], law: Law, scores: Law) -> dict[Fraction, Fraction]:
    """Law of a sum with one more score."""
    following = Counter[Fraction]()
    for (value, mass), (chance, score) in itertools.product(sums.items(), list(zip(law, scores, strict=True))):
        following[value + score] += mass * chance  # type: ignore[assignment]
    return following  # type: ignore[return-value]


def _subsets(chances: Sequence[Fraction]) -> Iterator[tuple[tuple[bool, ...], Fraction]]:
    """All subsets, and their probabilities if each client is in it independently with its own probability."""
    for inside in itertools.product((False, True), repeat=len(chances)):
        each = (part if there else 1 - part for part, there in zip(chances, inside, strict=True))
        yield inside, math.prod(each, start=Fraction(1))


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
