"""Mutual information, capacity and guessing, by plain loops over every outcome."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Matrix = Sequence[Sequence[float]]


def randomized_response(k: int, epsilon: float) -> list[list[float]]:
    """The k x k matrix of randomized response, written down."""
    total = k - 1 + math.exp(epsilon)
    return [[(math.exp(epsilon) if x == y else 1.0) / total for y in range(k)] for x in range(k)]


def mutual_information(joint: Matrix) -> float:
    """I(U;Y) in bits of the joint law joint[u][y]."""
    by_row = [math.fsum(row) for row in joint]
    by_column = [math.fsum(column) for column in zip(*joint, strict=True)]
    return math.fsum(
        p * math.log2(p / (by_row[u] * by_column[y])) for u, row in enumerate(joint) for y, p in enumerate(row) if p > 0
    )


def sibson(joint: Matrix, order: float) -> float:
    """Sibson's I_a(U;Y) in bits of the joint law joint[u][y], for an order a > 1 or infinite."""
    by_row, total = [math.fsum(row) for row in joint], 0.0
    for column in zip(*joint, strict=True):
        given = [(p, cell / p) for p, cell in zip(by_row, column, strict=True) if p > 0]
        if math.isinf(order):
            total += max(chance for _, chance in given)
        else:
            total += math.fsum(p * chance**order for p, chance in given) ** (1 / order)
    return (1.0 if math.isinf(order) else order / (order - 1)) * math.log2(total)


def through(joint: Matrix, channel: Matrix) -> list[list[float]]:
    """The joint law of (U, Y) from that of (U, X) and Q(y|x)."""
    outputs = range(len(channel[0]))
    return [[math.fsum(p * channel[x][y] for x, p in enumerate(row)) for y in outputs] for row in joint]


def capacity(rows: Matrix, *, gap: float = 1e-12, start: Sequence[float] | None = None) -> float:
    """Blahut-Arimoto: alternate until the largest divergence from the mean is within `gap` bits of the mean one."""
    weights = list(start) if start else [1 / len(rows)] * len(rows)
    while True:
        mean = [math.fsum(w * row[y] for w, row in zip(weights, rows, strict=True)) for y in range(len(rows[0]))]
        divergence = [math.fsum(p * math.log2(p / m) for p, m in zip(row, mean, strict=True) if p > 0) for row in rows]
        reached = math.fsum(w * d for w, d in zip(weights, divergence, strict=True))
        if max(divergence) - reached <= gap:
            return reached
        grown = [w * 2**d for w, d in zip(weights, divergence, strict=True)]
        weights = [g / math.fsum(grown) for g in grown]


def best_success(channel: Sequence[Sequence[Fraction]], people: int, *, reports: int = 1) -> Fraction:
    """The best chance of naming the person, uniform prior, over every assignment of value tuples to people."""
    values, outputs = range(len(channel)), range(len(channel[0]))
    tuples = list(itertools.product(values, repeat=reports))
    answers = list(itertools.product(outputs, repeat=reports))
    best = Fraction(0)
    for held in itertools.combinations_with_replacement(tuples, people):
        success = Fraction(0)
        for answer in answers:
            success += max(math.prod(channel[x][y] for x, y in zip(mine, answer, strict=True)) for mine in held)
        best = max(best, success / people)
    return best


def error_of(joint: Matrix) -> float:
    """The error of the best guess of U from Y."""
    return 1 - math.fsum(max(column) for column in zip(*joint, strict=True))
