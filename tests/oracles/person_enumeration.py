"""Several reports of one person in one shuffle, by enumerating datasets and multisets of reports."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from oracles.dp_enumeration import Counts, Law, Number, add_report, compositions, hockey_stick
from oracles.finite_enumeration import Matrix, multisets

Pair = tuple[Law, Law]


def reached(rows: Matrix, others: Counts, own: Sequence[int], dummies: int = 0) -> Law:
    """Law of the counts of reports: `others[x]` reports of others at x, and the person's own values."""
    law: Law = multisets(rows, others, dummies)
    for value in own:
        law = add_report(law, list(rows[value]))
    return law


def neighbours(rows: Matrix, reports: int, most: int, dummies: int = 0) -> Iterator[Pair]:
    """All pairs of datasets of so many reports in which one person's, `most` or fewer, differ."""
    values = range(len(rows))
    for given in range(1, most + 1):
        for others in compositions(reports - given, len(rows)):
            laws = [
                reached(rows, others, own, dummies) for own in itertools.combinations_with_replacement(values, given)
            ]
            yield from itertools.permutations(laws, 2)


def worst_delta(rows: Matrix, reports: int, most: int, growth: Number, dummies: int = 0) -> Number:
    """The largest divergence over all of them."""
    return max(hockey_stick(first, second, growth) for first, second in neighbours(rows, reports, most, dummies))
