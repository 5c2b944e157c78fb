"""E[max] of multinomial counts in exact rationals, three slow ways."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product


def by_enumeration(n: int, k: int) -> Fraction:
    """Throw every sequence of balls."""
    total = sum(max(throw.count(cell) for cell in range(k)) for throw in product(range(k), repeat=n))
    return Fraction(total, k**n)


def by_partitions(n: int, k: int) -> Fraction:
    """Sum over integer partitions of n into at most k parts (Jurado et al. 2023, equations 22 to 24)."""
    total = 0
    for partition in partitions(n, k, n):
        parts = [*partition, *[0] * (k - len(partition))]
        ways = math.factorial(n) * math.factorial(k)
        for part in parts:
            ways //= math.factorial(part)
        for value in set(parts):
            ways //= math.factorial(parts.count(value))
        total += ways * max(parts)
    return Fraction(total, k**n)


def by_counting(n: int, k: int) -> Fraction:
    """Count the throws with max <= m, by adding one cell at a time, for every m."""
    total = 0
    for m in range(n):
        ways = [1] + [0] * n
        for _ in range(k):
            ways = [sum(ways[s - i] * math.comb(s, i) for i in range(min(m, s) + 1)) for s in range(n + 1)]
        total += k**n - ways[n]
    return Fraction(total, k**n)


def max_ratio(n: int, probabilities: Sequence[Fraction]) -> Fraction:
    """Return E[max_x h_x/(n p_x)], by every histogram."""
    total = Fraction(0)
    for counts in histograms(n, len(probabilities)):
        weight = Fraction(math.factorial(n))
        for count, p in zip(counts, probabilities, strict=True):
            weight *= p**count / math.factorial(count)
        total += weight * max(count / (n * p) for count, p in zip(counts, probabilities, strict=True))
    return total


def partitions(n: int, parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write n as at most `parts` falling numbers <= largest."""
    if n == 0:
        yield ()
    elif parts:
        for first in range(min(n, largest), 0, -1):
            for rest in partitions(n - first, parts - 1, first):
                yield (first, *rest)


def histograms(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """Yield every (h_0, ..., h_{k-1}) of whole numbers >= 0 with sum n."""
    if k == 1:
        yield (n,)
        return
    for first in range(n, -1, -1):
        for rest in histograms(n - first, k - 1):
            yield (first, *rest)
