"""Which messages go to their own target on purpose: the coins of one message, enumerated in exact rationals.

A message is on purpose with the probability by which its own target is ahead of any other one. All others are drawn
from what the messages of all values have in common.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations

Sample = tuple[tuple[int, ...], bool]


def sampled(true: int, targets: int, sigma: Fraction, flood: int, convention: str) -> dict[Sample, Fraction]:
    """Return the law of (sorted targets, on purpose) of one message and its flood."""
    first: list[tuple[int, bool, Fraction]] = []
    if convention == "uniform":
        first.append((true, True, 1 - sigma))
        first += [(t, False, sigma / targets) for t in range(targets)]
    else:
        elsewhere = sigma / (targets - 1)
        for t in range(targets):
            if t != true:
                first.append((t, False, elsewhere))
        # Of the honest ones as many are set aside as any other target gets.
        first += [(true, False, elsewhere), (true, True, 1 - sigma - elsewhere)]
    law: dict[Sample, Fraction] = defaultdict(Fraction)
    for start, meant, chance in first:
        orders = list(permutations([t for t in range(targets) if t != start], flood))
        for order in orders:
            law[tuple(sorted((start, *order))), meant] += chance / len(orders)
    return {key: chance for key, chance in law.items() if chance}
