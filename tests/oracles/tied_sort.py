"""A shuffle by keys with ties, by enumeration: every choice of keys, every order among those that tie."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product


def orders(n: int, keys: int) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of every order of n items that get one of so many keys each, ties broken uniformly."""
    law: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for drawn in product(range(keys), repeat=n):
        ascending = [
            order
            for order in permutations(range(n))
            if all(drawn[order[place]] <= drawn[order[place + 1]] for place in range(n - 1))
        ]
        for order in ascending:
            law[order] += Fraction(1, keys**n * len(ascending))
    return dict(law)
