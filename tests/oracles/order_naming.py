"""Who sent the report at one place of a Mallows release, by enumeration of all orders and all answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from oracles.mallows_enumeration import law


def senders(n: int, theta: float, kind: str) -> list[list[float]]:
    """Return for each rank the probability of each rank's report there: row place, column sender."""
    chances = [[0.0] * n for _ in range(n)]
    for tau, chance in law(n, theta, kind).items():
        for place, sender in enumerate(tau):
            chances[place][sender] += chance
    return chances


def best_naming(n: int, theta: float, kind: str, channel: Sequence[Sequence[float]]) -> float:
    """Return the best chance to name the sender from a place and the report there, over places and answers."""
    best = 0.0
    for row in senders(n, theta, kind):
        for answers in itertools.product(range(len(channel)), repeat=n):
            right = math.fsum(
                max(row[person] * channel[answers[person]][report] for person in range(n))
                for report in range(len(channel[0]))
            )
            best = max(best, right)
    return best


def most_bits(n: int, theta: float, kind: str, channel: Sequence[Sequence[float]]) -> float:
    """Return the most bits that the place (each equally likely) and the report there say about the sender."""
    rows, most = senders(n, theta, kind), 0.0
    for answers in itertools.product(range(len(channel)), repeat=n):
        joint = [
            [[row[person] * channel[answers[person]][report] / n for report in range(len(channel[0]))] for row in rows]
            for person in range(n)
        ]
        bits = 0.0
        for person in range(n):
            for place in range(n):
                for report in range(len(channel[0])):
                    both = joint[person][place][report]
                    seen = math.fsum(joint[other][place][report] for other in range(n))
                    if both > 0:
                        bits += both * math.log2(both / (seen / n))
        most = max(most, bits)
    return most
