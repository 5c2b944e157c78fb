"""Central DP of people with different randomizers in one shuffle, by enumerating datasets and multisets of reports."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from oracles.dp_enumeration import Counts, Law, Number, add_report, compositions, hockey_stick
from oracles.finite_enumeration import Matrix

Group = tuple[int, Matrix]
"""So many people, and the probabilities of their reports by value."""


def others_laws(groups: Sequence[Group], dummies: Sequence[Sequence[Number]]) -> Iterator[Law]:
    """Yield the law of the counts of the reports of these people and dummies, for every dataset."""
    outputs = len(groups[0][1][0])
    for held in itertools.product(*(compositions(count, len(rows)) for count, rows in groups)):
        law: dict[Counts, Number] = {(0,) * outputs: 1}
        for values, (_, rows) in zip(held, groups, strict=True):
            for value, number in enumerate(values):
                for _ in range(number):
                    law = add_report(law, list(rows[value]))
        for dummy in dummies:
            law = add_report(law, list(dummy))
        yield law


def worst_delta(
    groups: Sequence[Group], target: int, growth: Number, dummies: Sequence[Sequence[Number]] = ()
) -> float:
    """The largest divergence over all neighbouring datasets that differ in a person of the group `target`."""
    others = [(count - (place == target), rows) for place, (count, rows) in enumerate(groups)]
    rows, worst = groups[target][1], 0.0
    for base in others_laws(others, dummies):
        reached = [add_report(base, list(row)) for row in rows]
        for a, b in itertools.permutations(range(len(rows)), 2):
            worst = max(worst, float(hockey_stick(reached[a], reached[b], growth)))
    return worst
