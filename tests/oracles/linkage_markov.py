"""Matching by Markov model, by plain loops over full matrices and over every path of hidden values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Matrix = list[list[float]]


def profile(trace: Sequence[int], k: int, floor: float) -> tuple[list[float], Matrix]:
    """Visit vector and transition matrix by counting, zeros replaced by `floor`, nothing renormalised."""
    visits = [sum(1 for event in trace if event == x) / len(trace) for x in range(k)]
    moves = list(itertools.pairwise(trace))
    rows = []
    for a in range(k):
        left = [b for before, b in moves if before == a]
        rows.append([left.count(b) / len(left) if left else 0.0 for b in range(k)])
    return [p or floor for p in visits], [[p or floor for p in row] for row in rows]


def normalised(profiled: tuple[list[float], Matrix]) -> tuple[list[float], Matrix]:
    """The same weights, the vector and every row divided by its sum."""
    first, rows = profiled
    return [p / math.fsum(first) for p in first], [[p / math.fsum(row) for p in row] for row in rows]


def log_likelihood(trace: Sequence[int], profiled: tuple[list[float], Matrix]) -> float:
    """Log of pi(y_1) Lambda(y_1, y_2) ... as the paper writes it."""
    first, rows = profiled
    return math.fsum([math.log(first[trace[0]]), *(math.log(rows[a][b]) for a, b in itertools.pairwise(trace))])


def hidden_log_likelihood(emissions: Sequence[Sequence[float]], profiled: tuple[list[float], Matrix]) -> float:
    """Log of the sum over every path x_1..x_t of pi(x_1) Lambda ... Q(y_1|x_1) ..., emissions[s][x] = Q(y_s|x)."""
    first, rows = profiled
    terms = []
    for path in itertools.product(range(len(first)), repeat=len(emissions)):
        weight = first[path[0]]
        for a, b in itertools.pairwise(path):
            weight *= rows[a][b]
        for law, x in zip(emissions, path, strict=True):
            weight *= law[x]
        terms.append(weight)
    return math.log(math.fsum(terms))


def chance_of_rank(row: Sequence[float], genuine: int, top: int) -> float:
    """Chance that `genuine` is among the `top` best scores, ties in an order drawn at random."""
    better = sum(1 for score in row if score > row[genuine])
    tied = sum(1 for score in row if score == row[genuine])
    return min(max(top - better, 0) / tied, 1.0)


def binomial_tail(successes: int, trials: int, p: float) -> float:
    """P(Binomial(trials, p) >= successes) = 1 - P(fewer), term by term, exactly."""
    chance = Fraction(p)
    below = sum(
        math.comb(trials, s) * chance**s * (1 - chance) ** (trials - s) for s in range(min(successes, trials + 1))
    )
    return float(1 - below)
