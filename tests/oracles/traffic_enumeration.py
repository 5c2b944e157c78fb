"""Message targets, floods and scramblers, enumerated step by step in exact rationals."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

Counts = tuple[int, ...]
Law = dict[Counts, Fraction]


def first_target(true: int, targets: int, sigma: Fraction, convention: str) -> list[Fraction]:
    """Return the law of where one message goes."""
    law = [Fraction(0)] * targets
    law[true] += 1 - sigma
    choices = [t for t in range(targets) if convention == "uniform" or t != true]
    for t in choices:
        law[t] += sigma / len(choices)
    return law


def flooded(true: int, targets: int, sigma: Fraction, flood: int, convention: str) -> dict[Counts, Fraction]:
    """Return the law of the sorted targets of the message and `flood` distinct further ones."""
    law: dict[Counts, Fraction] = defaultdict(Fraction)
    for first, chance in enumerate(first_target(true, targets, sigma, convention)):
        others = [t for t in range(targets) if t != first]
        orders = list(permutations(others, flood))
        for order in orders:
            law[tuple(sorted((first, *order)))] += chance / len(orders)
    return dict(law)


def scrambled(
    truths: tuple[int, ...], targets: int, sigma: Fraction, dummies: int, cap: int | None, convention: str
) -> Law:
    """Return the law of how many messages each target gets: the sources one by one, then the dummies one by one."""
    law: Law = {(0,) * targets: Fraction(1)}
    for true in truths:
        law = _step(law, [first_target(true, targets, sigma, convention)] * len(law))
    for _ in range(dummies):
        rows = []
        for counts in law:
            free = [t for t in range(targets) if cap is None or counts[t] < cap]
            rows.append([Fraction(1, len(free)) if t in free else Fraction(0) for t in range(targets)])
        law = _step(law, rows)
    return law


def _step(law: Law, rows: list[list[Fraction]]) -> Law:
    result: Law = defaultdict(Fraction)
    for (counts, chance), row in zip(law.items(), rows, strict=True):
        for target, share in enumerate(row):
            if share:
                moved = (*counts[:target], counts[target] + 1, *counts[target + 1 :])
                result[moved] += chance * share
    return dict(result)


def neighbours(targets: int, sources: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return every ordered pair of inputs that differ in the first source's target; the others are unordered."""
    others = list(combinations_with_replacement(range(targets), sources - 1))
    return [((a, *rest), (b, *rest)) for a, b in permutations(range(targets), 2) for rest in others]


def largest_ratio(
    targets: int, sources: int, sigma: Fraction, dummies: int, cap: int | None, convention: str
) -> Fraction:
    """Return the largest likelihood ratio of any output under any two neighbouring inputs."""
    worst = Fraction(0)
    laws: dict[tuple[int, ...], Law] = {}
    for one, other in neighbours(targets, sources):
        for truths in (one, other):
            key = tuple(sorted(truths))
            if key not in laws:
                laws[key] = scrambled(truths, targets, sigma, dummies, cap, convention)
        here, there = laws[tuple(sorted(one))], laws[tuple(sorted(other))]
        worst = max(worst, *(chance / there[counts] for counts, chance in here.items()))
    return worst


def largest_divergence(
    targets: int, sources: int, sigma: Fraction, dummies: int, cap: int | None, convention: str, growth: Fraction
) -> Fraction:
    """Return the largest hockey-stick divergence at e**epsilon = growth between two neighbouring inputs."""
    worst = Fraction(0)
    laws: dict[tuple[int, ...], Law] = {}
    for one, other in neighbours(targets, sources):
        for truths in (one, other):
            key = tuple(sorted(truths))
            if key not in laws:
                laws[key] = scrambled(truths, targets, sigma, dummies, cap, convention)
        here, there = laws[tuple(sorted(one))], laws[tuple(sorted(other))]
        excess = sum(
            (max(chance - growth * there.get(counts, Fraction(0)), Fraction(0)) for counts, chance in here.items()),
            Fraction(0),
        )
        worst = max(worst, excess)
    return worst
