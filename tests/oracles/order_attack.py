"""The inference attack and the learnability of released orders, by plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def most_similar(person: int, near: Sequence[int], privileged: Sequence[float], size: int) -> list[set[int]]:
    """Return the people who surely vote on `person`, and those of whom the rest is drawn."""
    others = sorted((other for other in near if other != person), key=lambda j: abs(privileged[j] - privileged[person]))
    if len(others) <= size:
        return [set(others), set()]
    edge = abs(privileged[others[size - 1]] - privileged[person])
    sure = {j for j in others if abs(privileged[j] - privileged[person]) < edge}
    return [sure, {j for j in others if abs(privileged[j] - privileged[person]) == edge}]


def right(released: Sequence[int], value: int, voters: Sequence[int], k: int) -> Fraction:
    """Return the probability that the majority vote, ties drawn, names `value`."""
    counts = [sum(1 for j in voters if released[j] == label) for label in range(k)]
    winners = [label for label in range(k) if counts[label] == max(counts)]
    return Fraction(1, len(winners)) if value in winners else Fraction(0)


def local_shares(values: Sequence[int], near: Sequence[Sequence[int]], k: int) -> list[list[Fraction]]:
    """Return the share of each value among the people near each person."""
    return [[Fraction(sum(1 for j in row if values[j] == v), len(row)) for v in range(k)] for row in near]


def relative_error(learned: Sequence[Sequence[Fraction]], local: Sequence[Sequence[Fraction]]) -> Fraction:
    """Return the summed total variation over that of the uniform guess."""
    k = len(local[0])

    def gap(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
        return max(sum((p[v] - q[v] for v in range(k) if inside >> v & 1), start=Fraction(0)) for inside in range(2**k))

    guess = [Fraction(1, k)] * k
    wrong = sum((gap(p, q) for p, q in zip(learned, local, strict=True)), start=Fraction(0))
    return wrong / sum((gap(guess, q) for q in local), start=Fraction(0))
