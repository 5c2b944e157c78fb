"""A random number of dummies, by enumerating everything: values, reports, and how many dummies there are.

The release is the multiset of reports, whose size says the number of dummies. Dummies follow the blanket's law.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction

from oracles.dp_enumeration import Counts, Number, add_report, compositions, hockey_stick
from oracles.finite_enumeration import Matrix, multisets

Numbers = Mapping[int, Fraction]
"""The probability of each number of dummies."""


def release(rows: Matrix, others: Counts, own: int, numbers: Numbers) -> dict[Counts, Number]:
    """The law of the released counts when the target's value is `own`."""
    law: dict[Counts, Number] = {}
    for dummies, chance in numbers.items():
        for counts, mass in add_report(multisets(rows, others, dummies), list(rows[own])).items():
            law[counts] = law.get(counts, 0) + chance * mass
    return law


def worst_delta(rows: Matrix, n: int, growth: Number, numbers: Numbers) -> Number:
    """The largest divergence over all pairs of neighbouring datasets, both ways."""
    return max(
        hockey_stick(release(rows, others, a, numbers), release(rows, others, b, numbers), growth)
        for others in compositions(n - 1, len(rows))
        for a, b in itertools.permutations(range(len(rows)), 2)
    )


def twice(rows: Matrix, n: int, growth: Number, numbers: Numbers) -> Number:
    """The same for two rounds, each with its own number of dummies; the others' values may change between them."""
    worst: Number = 0
    for a, b in itertools.permutations(range(len(rows)), 2):
        rounds = [
            (release(rows, others, a, numbers), release(rows, others, b, numbers))
            for others in compositions(n - 1, len(rows))
        ]
        for (p, q), (s, t) in itertools.combinations_with_replacement(rounds, 2):
            found = sum(max(0, p[x] * s[y] - growth * q.get(x, 0) * t.get(y, 0)) for x in p for y in s)
            worst = max(worst, found)
    return worst


def instance_delta(rows: Matrix, people: Counts, growth: Number, numbers: Numbers) -> Number:
    """The largest divergence between one dataset and its neighbours, both ways."""
    worst: Number = 0
    for a in (value for value, count in enumerate(people) if count):
        others = tuple(count - (value == a) for value, count in enumerate(people))
        first = release(rows, others, a, numbers)
        for b in (value for value in range(len(rows)) if value != a):
            second = release(rows, others, b, numbers)
            worst = max(worst, hockey_stick(first, second, growth), hockey_stick(second, first, growth))
    return worst


def guess(rows: Matrix, n: int, known: Counts, numbers: Numbers) -> Number:
    """The chance that the target's uniform value is guessed by who knows some others; the rest are uniform."""
    k = len(rows)
    joint: dict[tuple[Counts, int], Number] = {}
    for rest in compositions(n - 1 - sum(known), k):
        weight = Fraction(math.factorial(sum(rest)), math.prod(map(math.factorial, rest)) * k ** sum(rest))
        others = tuple(one + two for one, two in zip(known, rest, strict=True))
        for own in range(k):
            for counts, mass in release(rows, others, own, numbers).items():
                joint[counts, own] = joint.get((counts, own), 0) + weight * mass / k
    return sum(max(joint.get((counts, own), 0) for own in range(k)) for counts in {counts for counts, _ in joint})


def worst_guess(rows: Matrix, n: int, m: int, numbers: Numbers) -> Number:
    """The same for the m others that are worst to be known."""
    return max(guess(rows, n, known, numbers) for known in compositions(m, len(rows)))


def guess_by_frequencies(rows: Matrix, n: int, shares: list[Fraction], numbers: Numbers) -> Number:
    """The chance of a right guess where everybody holds x with probability shares[x]."""
    joint: dict[tuple[Counts, int], Number] = {}
    for others in compositions(n - 1, len(rows)):
        weight = Fraction(math.factorial(n - 1))
        for count, share in zip(others, shares, strict=True):
            weight *= share**count / math.factorial(count)
        for own, share in enumerate(shares):
            for counts, mass in release(rows, others, own, numbers).items():
                joint[counts, own] = joint.get((counts, own), 0) + weight * share * mass
    keys = {counts for counts, _ in joint}
    return sum(max(joint.get((counts, own), 0) for own in range(len(rows))) for counts in keys)
