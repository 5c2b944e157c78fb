"""Central DP of shuffled randomized response by enumerating datasets and outputs.

Numbers are whatever `truth` is: exact rationals, or floats where rationals would be slow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

Counts = tuple[int, ...]
Number = Fraction | float
Law = Mapping[Counts, Number]


def channel(k: int, truth: Number) -> list[list[Number]]:
    lie = (1 - truth) / (k - 1)
    return [[truth if x == y else lie for y in range(k)] for x in range(k)]


def add_report(law: Law, report: list[Number]) -> dict[Counts, Number]:
    """Law of the counts with one more report of the given law."""
    following: dict[Counts, Number] = {}
    for counts, mass in law.items():
        for y, chance in enumerate(report):
            key = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
            following[key] = following.get(key, 0) + mass * chance
    return following


def counts_law(people: Counts, rows: list[list[Number]], dummies: int = 0) -> dict[Counts, Number]:
    """Law of the released counts when `people[x]` people hold x, plus uniform dummies."""
    k = len(rows)
    law: dict[Counts, Number] = {(0,) * k: 1}
    reports = [rows[x] for x, number in enumerate(people) for _ in range(number)]
    uniform: list[Number] = [Fraction(1, k)] * k
    for report in [*reports, *[uniform] * dummies]:
        law = add_report(law, report)
    return law


def hockey_stick(first: Law, second: Law, growth: Number) -> Number:
    """Sum of [P - growth Q]_+, growth = e**epsilon."""
    return sum(max(0, mass - growth * second.get(key, 0)) for key, mass in first.items())


def compositions(n: int, k: int) -> Iterator[Counts]:
    """All ways to write n as k counts."""
    for bars in itertools.combinations(range(n + k - 1), k - 1):
        edges = (-1, *bars, n + k - 1)
        yield tuple(edges[i + 1] - edges[i] - 1 for i in range(k))


def delta_at(others: Counts, k: int, truth: Number, growth: Number, dummies: int = 0) -> Number:
    """The larger of the two divergences when the target's value is 0 or 1."""
    rows = channel(k, truth)
    base = counts_law(others, rows, dummies)
    first, second = add_report(base, rows[0]), add_report(base, rows[1])
    return max(hockey_stick(first, second, growth), hockey_stick(second, first, growth))


def worst_delta(n: int, k: int, truth: Number, growth: Number, dummies: int = 0) -> Number:
    """The largest divergence over all neighbouring datasets of n people.

    Values 0 and 1 stand for the target's two values: every other pair is a renaming of them. Datasets
    that differ only in how the other k - 2 values are named are tried once.
    """
    tried = {(*others[:2], *sorted(others[2:])) for others in compositions(n - 1, k)}
    return max(delta_at(others, k, truth, growth, dummies) for others in tried)


def blanket_delta(n: int, k: int, truth: float, growth: float, dummies: int = 0) -> float:
    """The privacy blanket bound, term by term."""
    lie = (1 - truth) / (k - 1)
    theta, gamma, total = truth - lie, k * lie, 0.0
    for m in range(n):
        reports = m + 1 + dummies
        in_blanket = math.comb(n - 1, m) * gamma**m * (1 - gamma) ** (n - 1 - m)
        for pair in range(reports + 1):
            at_pair = math.comb(reports, pair) * (2 / k) ** pair * (1 - 2 / k) ** (reports - pair)
            for a in range(pair + 1):
                gain = k * theta * (a - growth * (pair - a)) + gamma * reports * (1 - growth)
                total += in_blanket * at_pair * math.comb(pair, a) / 2**pair * max(0.0, gain) / reports
    return total
