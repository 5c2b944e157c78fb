"""The Mallows shuffle by enumeration of all permutations: laws, distances, and the privacy of the whole mechanism."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

Order = tuple[int, ...]


def distance(tau: Sequence[int], kind: str) -> int:
    """Count the pairs in the wrong order ("kendall"), or the displaced items ("hamming")."""
    if kind == "hamming":
        return sum(item != place for place, item in enumerate(tau))
    return sum(tau[i] > tau[j] for i, j in itertools.combinations(range(len(tau)), 2))


def law(n: int, theta: float, kind: str) -> dict[Order, float]:
    """Return the probability of every permutation of 0..n-1."""
    weights = {tau: math.exp(-theta * distance(tau, kind)) for tau in itertools.permutations(range(n))}
    total = math.fsum(weights.values())
    return {tau: weight / total for tau, weight in weights.items()}


def insertion(code: Sequence[int]) -> list[int]:
    """Insert item after item so that `code[i]` of the earlier ones follow item i."""
    items: list[int] = []
    for item, behind in enumerate(code):
        items.insert(item - behind, item)
    return items


def released(reference: Sequence[int], tau: Sequence[int], reports: Sequence[object]) -> tuple[object, ...]:
    """Return z with z[reference[i]] = reports[reference[tau[i]]]."""
    return tuple(reports[reference[tau[rank]]] for rank, _ in sorted(enumerate(reference), key=lambda item: item[1]))


def worst_log_ratio(reference: Sequence[int], group: Sequence[int], kind: str) -> int:
    """Return the largest log-ratio of a release over theta, when the members' reports change places.

    All reports are different (equal ones are a post-processing). A release belongs to one permutation then, so the
    log-ratio at theta is theta times a difference of distances.
    """
    n, worst = len(reference), 0
    people = tuple(range(n))
    before = {released(reference, tau, people): distance(tau, kind) for tau in itertools.permutations(range(n))}
    for moved in itertools.permutations(group):
        held = list(people)
        for member, other in zip(group, moved, strict=True):
            held[member] = other
        for tau in itertools.permutations(range(n)):
            release = released(reference, tau, held)
            worst = max(worst, before[release] - distance(tau, kind))
    return worst


def sensitivity(reference: Sequence[int], group: Sequence[int], kind: str) -> int:
    """Return Delta of one group: m(m-1)/2 + 2 sum of min(below, above) for Kendall, m (or 0) for Hamming."""
    ranks = sorted(list(reference).index(member) for member in group)
    if kind == "hamming":
        return len(ranks) if len(ranks) > 1 else 0
    total = len(ranks) * (len(ranks) - 1) // 2
    for rank in range(ranks[0], ranks[-1]):
        if rank not in ranks:
            below = sum(member < rank for member in ranks)
            total += 2 * min(below, len(ranks) - below)
    return total


def kendall_moments(n: int, theta: float) -> tuple[float, float]:
    """Return mean and variance of the number of inversions, by sums over every insertion."""
    mean = variance = 0.0
    for size in range(1, n + 1):
        weights = [math.exp(-theta * v) for v in range(size)]
        total = math.fsum(weights)
        first = math.fsum(v * w for v, w in enumerate(weights)) / total
        mean += first
        variance += math.fsum(v * v * w for v, w in enumerate(weights)) / total - first**2
    return mean, variance


def derangements(n: int) -> int:
    """Return how many permutations of n items move every item."""
    return 1 if n == 0 else n * derangements(n - 1) + (-1) ** n


def hamming_law(n: int, theta: float) -> list[float]:
    """Return the law of the number of displaced items, 0..n: proportional to C(n, h) !h e**(-theta h)."""
    moved = 1
    weights = []
    for h in range(n + 1):
        moved = 1 if h == 0 else h * moved + (-1) ** h
        weights.append(math.exp(math.log(math.comb(n, h)) + math.log(moved) - theta * h) if moved else 0.0)
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def mean_displacement(n: int, theta: float, kind: str) -> list[float]:
    """Return P(|tau(i) - i| = d) for a place i chosen at random, d = 0..n-1."""
    found = [0.0] * n
    for tau, probability in law(n, theta, kind).items():
        for place, item in enumerate(tau):
            found[abs(item - place)] += probability / n
    return found
