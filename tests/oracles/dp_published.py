"""Published bounds of shuffling, and what they bound, term by term: sums over everything, no shortcuts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable


def losses(k: int, truth: float, growth: float) -> list[tuple[float, float]]:
    """(value, probability) of the loss of one uniform report: the report is a, is b, is something else."""
    lie = (1 - truth) / (k - 1)
    others = [(k * lie * (1 - growth), (k - 2) / k)] if k > 2 else []
    return [(k * (truth - growth * lie), 1 / k), (k * (lie - growth * truth), 1 / k), *others]


def expected_positive_part(values: list[tuple[float, float]], reports: int) -> float:
    """E[L_1 + ... + L_N]_+ by enumerating how often each value occurs."""
    total = 0.0
    for counts in itertools.product(range(reports + 1), repeat=len(values) - 1):
        last = reports - sum(counts)
        if last < 0:
            continue
        times = (*counts, last)
        ways = math.factorial(reports)
        chance, loss = 1.0, 0.0
        for count, (value, probability) in zip(times, values, strict=True):
            ways //= math.factorial(count)
            chance *= probability**count
            loss += count * value
        total += ways * chance * max(loss, 0.0)
    return total


def over_blanket(n: int, weight: float, term: Callable[[int], float], dummies: int = 0) -> float:
    """E term(M + 1 + dummies), M ~ Bin(n - 1, weight)."""
    return sum(math.comb(n - 1, m) * weight**m * (1 - weight) ** (n - 1 - m) * term(m + 1 + dummies) for m in range(n))


def printed_bennett(values: list[tuple[float, float]], epsilon: float, reports: int) -> float:
    """Refinement of Theorem 4 of Ladjel et al. 2021, as printed: b_+/(a (m+d) ln(1 + a b_+/c)) exp(...)."""
    a, most = math.expm1(epsilon), max(value for value, _ in values)
    c = sum(probability * value**2 for value, probability in values)
    u = a * most / c
    rate = c / most**2 * ((1 + u) * math.log(1 + u) - u)
    return most / (a * reports * math.log(1 + u)) * math.exp(-reports * rate)


def clones_pair(n: int, local_epsilon: float, growth: float) -> float:
    """Divergence of (A + D, C - A + 1 - D): C ~ Bin(n - 1, e**-eps0), A ~ Bin(C, 1/2), D a coin of binary RR."""
    truth, total = 1 / (1 + math.exp(-local_epsilon)), 0.0
    weight = math.exp(-local_epsilon)
    for c in range(n):
        mass = math.comb(n - 1, c) * weight**c * (1 - weight) ** (n - 1 - c)

        def fair(a: int, c: int = c) -> float:
            return math.comb(c, a) / 2**c if 0 <= a <= c else 0.0

        for a in range(c + 2):
            first = truth * fair(a - 1) + (1 - truth) * fair(a)
            second = (1 - truth) * fair(a - 1) + truth * fair(a)
            total += mass * max(0.0, first - growth * second)
    return total
