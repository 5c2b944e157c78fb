"""A shuffle through random buckets, by enumeration: every assignment to buckets, every order inside each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from math import factorial


def orders(n: int, buckets: int) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of every order of n reports."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for assignment in product(range(buckets), repeat=n):
        contents = [tuple(one for one in range(n) if assignment[one] == bucket) for bucket in range(buckets)]
        chance = Fraction(1, buckets**n)
        for content in contents:
            chance /= factorial(len(content))
        for order in _arranged(contents):
            law[order] += chance
    return dict(law)


def _arranged(contents: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    for arrangement in product(*(permutations(content) for content in contents)):
        yield tuple(one for content in arrangement for one in content)
