"""Divergences by looking at every pair, and by adding up a law."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence


def divergence_of_pairs(genuine: Sequence[float], impostor: Sequence[float], k: int) -> float:
    """The k-nearest-neighbour estimate in bits: all distances of every genuine score, sorted."""
    total = 0.0
    for position, score in enumerate(genuine):
        rest = [other for i, other in enumerate(genuine) if i != position]
        among = sorted(abs(score - other) for other in rest)[k - 1]
        across = sorted(abs(score - other) for other in impostor)[k - 1]
        total += math.log2(across / among)
    return total / len(genuine) + math.log2(len(impostor) / (len(genuine) - 1))


def divergence_of_laws(p: Sequence[float], q: Sequence[float]) -> float:
    """Sum of p log2 p/q."""
    return math.fsum(a * math.log2(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def divergence_by_integration(
    genuine: tuple[float, float], impostor: tuple[float, float], *, step: float = 1e-3, reach: float = 12.0
) -> float:
    """D of two normal laws in bits, by adding up their densities on a grid around the first."""

    def log_density(x: float, law: tuple[float, float]) -> float:
        return -0.5 * ((x - law[0]) / law[1]) ** 2 - math.log(law[1]) - 0.5 * math.log(2 * math.pi)

    count = round(2 * reach / step)
    grid = [genuine[0] + genuine[1] * (-reach + step * i) for i in range(count + 1)]
    parts = [math.exp(log_density(x, genuine)) * (log_density(x, genuine) - log_density(x, impostor)) for x in grid]
    return math.fsum(parts) * step * genuine[1] / math.log(2)


def scores_information(p: Sequence[float], q: Sequence[float], n: int) -> float:
    """I(U;S) in bits: n independent scores, that of person U from p, the others from q; U uniform."""
    total = []
    for scores in itertools.product(range(len(p)), repeat=n):
        chances = [
            math.prod(p[score] if position == person else q[score] for position, score in enumerate(scores))
            for person in range(n)
        ]
        mean = math.fsum(chances) / n
        total += [chance / n * math.log2(chance / mean) for chance in chances if chance > 0]
    return math.fsum(total)


def counts_of(n: int, law: Sequence[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every way in which n independent draws from `law` can be counted, with its probability."""
    if len(law) == 1:
        yield (n,), law[0] ** n
        return
    for first in range(n + 1):
        share = math.comb(n, first) * law[0] ** first
        for rest, chance in counts_of(n - first, law[1:]):
            yield (first, *rest), share * chance
