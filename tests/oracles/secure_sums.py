"""Sums of vectors of bits, by enumerating every dataset, and the vector of every person; no column by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from oracles.dp_enumeration import Counts, Number, compositions, hockey_stick

Law = Mapping[Counts, Number]


def vectors(k: int, value: int, kept: Number, raised: Number) -> dict[Counts, Number]:
    """Law of one person's report: the bit of the value is 1 with probability `kept`, each other with `raised`."""
    law: dict[Counts, Number] = {}
    for bits in itertools.product((0, 1), repeat=k):
        mass: Number = 1
        for place, bit in enumerate(bits):
            chance = kept if place == value else raised
            mass = mass * (chance if bit else 1 - chance)
        law[bits] = mass
    return law


def added(law: Law, report: Law) -> dict[Counts, Number]:
    """Law of the sums with one more vector."""
    following: dict[Counts, Number] = {}
    for (sums, mass), (bits, chance) in itertools.product(law.items(), report.items()):
        key = tuple(one + bit for one, bit in zip(sums, bits, strict=True))
        following[key] = following.get(key, 0) + mass * chance
    return following


def sums_law(people: Sequence[int], kept: Number, raised: Number, noise: Sequence[Law] = ()) -> dict[Counts, Number]:
    """Law of the sums when `people[x]` people hold x, and of noise vectors that are added to them."""
    k = len(people)
    law: dict[Counts, Number] = {(0,) * k: 1}
    for value, number in enumerate(people):
        for _ in range(number):
            law = added(law, vectors(k, value, kept, raised))
    for one in noise:
        law = added(law, one)
    return law


def every_delta(
    k: int, n: int, kept: Number, raised: Number, growth: Number, noise: Sequence[Law] = ()
) -> Iterator[tuple[Number, Counts, tuple[int, int]]]:
    """Yield the divergence, the others and the target's two values, for every pair of neighbouring datasets."""
    for others in compositions(n - 1, k):
        base = sums_law(others, kept, raised, noise)
        reached = [added(base, vectors(k, value, kept, raised)) for value in range(k)]
        for a, b in itertools.permutations(range(k), 2):
            yield hockey_stick(reached[a], reached[b], growth), others, (a, b)


def worst_of_a_person(
    k: int, n: int, reports: int, kept: Number, raised: Number, growth: Number, noise: Sequence[Law] = ()
) -> Number:
    """The largest divergence of n vectors where one person's, so many or fewer of them, differ."""
    worst: Number = 0
    for given in range(1, reports + 1):
        for others in compositions(n - given, k):
            base = sums_law(others, kept, raised, noise)
            reached = []
            for own in itertools.combinations_with_replacement(range(k), given):
                law: Law = base
                for value in own:
                    law = added(law, vectors(k, value, kept, raised))
                reached.append(law)
            worst = max(worst, *(hockey_stick(*pair, growth) for pair in itertools.permutations(reached, 2)))
    return worst


def worst_delta(k: int, n: int, kept: Number, raised: Number, growth: Number, noise: Sequence[Law] = ()) -> Number:
    """The largest of them."""
    return max(found for found, _, _ in every_delta(k, n, kept, raised, growth, noise))
