"""(eta, delta)-preservation: by enumeration, and by the printed sum for Hamming (with its errors removed)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from oracles.mallows_enumeration import derangements, law


def failure(n: int, theta: float, kind: str, subset: Sequence[int], eta: Fraction) -> float:
    """Return P(fewer than eta |S| of the places in S get an item of S), over all permutations."""
    inside = set(subset)
    return math.fsum(
        probability
        for tau, probability in law(n, theta, kind).items()
        if sum(tau[place] in inside for place in inside) < eta * len(inside)
    )


def hamming_sum(n: int, size: int, theta: float, eta: Fraction) -> float:
    """Return the same for Hamming by counting permutations: docs/theory/order.md."""
    lost = size - math.ceil(eta * size)
    scale = math.fsum(math.comb(n, h) * derangements(h) * math.exp(-theta * h) for h in range(n + 1))
    return math.fsum(math.exp(-theta * h) * _count(n, size, h, lost) for h in range(2 * lost + 2, n + 1)) / scale


def _count(n: int, size: int, h: int, lost: int) -> int:
    total = 0
    for j in range(lost + 1, min(size, h // 2) + 1):
        inner = sum(
            math.comb(size - j, i)
            * _arrangements(i, j)
            * math.comb(n - size - j, h - 2 * j - i)
            * _arrangements(h - 2 * j - i, j)
            for i in range(min(size - j, h - 2 * j) + 1)
            if h - 2 * j - i <= n - size - j
        )
        total += math.comb(size, j) * (math.comb(n - size, j) if j <= n - size else 0) * inner
    return total


@cache
def _arrangements(p: int, m: int) -> int:
    if m == 0:
        return derangements(p)
    if p == 0:
        return math.factorial(m)
    return math.factorial(m) * sum(
        math.comb(p, q) * math.comb(m, q) * _arrangements(p - q, q) for q in range(min(p, m) + 1)
    )
