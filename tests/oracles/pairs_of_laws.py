"""What can be learned of a pair of laws, by going through outputs and tests: divergence, tests, guesses, beliefs.

A pair is a list of (p, q), one for each output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

Pair = Sequence[tuple[float, float]]


def delta(pairs: Sequence[Pair], growth: float) -> float:
    return max(sum(max(0.0, p - growth * q) for p, q in pair) for pair in pairs)


def false_negatives(pairs: Sequence[Pair], false_positives: float) -> float:
    """The largest convex function below every test of every pair: a chord between two tests, which may be mixed."""
    tests = {(0.0, 1.0), (1.0, 0.0)}
    for pair in pairs:
        positive, negative = 0.0, 1.0
        for p, q in sorted(pair, key=lambda output: -output[0] / output[1] if output[1] else -float("inf")):
            positive, negative = positive + q, negative - p
            tests.add((positive, negative))
    best = 1.0
    for x, y in tests:
        for other_x, other_y in tests:
            if x <= false_positives <= other_x:
                share = (false_positives - x) / (other_x - x) if other_x > x else 0.0
                best = min(best, y + share * (other_y - y), y if other_x == x else 1.0)
    return max(best, 0.0)


def guess(pairs: Sequence[Pair], prior: float) -> float:
    """How often the more probable of the two datasets is right."""
    return max(sum(max(prior * p, (1 - prior) * q) for p, q in pair) for pair in pairs)


def believed(pairs: Sequence[Pair], prior: float, belief: float) -> float:
    """The chance, the first dataset being true, that it is believed more than so much."""
    return max(
        sum(p for p, q in pair if p > 0 and prior * p / (prior * p + (1 - prior) * q) > belief) for pair in pairs
    )


def renyi(pairs: Sequence[Pair], alpha: float) -> float:
    """The largest Rényi divergence of order alpha."""
    moments = (sum(p**alpha * q ** (1 - alpha) for p, q in pair) for pair in pairs)
    return math.log(max(moments)) / (alpha - 1)


def gdp(pairs: Sequence[Pair]) -> float:
    """The least mu for which the best test of two unit Gaussians mu apart is at least as good as each best test."""
    normal, largest = NormalDist(), 0.0
    for pair in pairs:
        positive, negative = 0.0, 1.0
        for p, q in sorted(pair, key=lambda output: -output[0] / output[1])[:-1]:
            positive, negative = positive + q, negative - p
            if 0 < positive < 1 and 0 < negative < 1:
                largest = max(largest, normal.inv_cdf(1 - positive) - normal.inv_cdf(negative))
    return largest
