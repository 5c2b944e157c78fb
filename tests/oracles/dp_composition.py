"""Several rounds of shuffled reports by enumerating every dataset, output and choice of the adversary.

A pair of laws is a tuple of (p, q), one for each output.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from oracles import dp_enumeration as single
from oracles import finite_enumeration as finite

Number = Fraction | float
Pair = tuple[tuple[Number, Number], ...]


def round_pairs(n: int, k: int, truth: Number) -> list[Pair]:
    """The laws of the released counts for all neighbouring datasets: 0 and 1 stand for the target's two values."""
    rows = single.channel(k, truth)
    pairs: list[Pair] = []
    for others in single.compositions(n - 1, k):
        base = single.counts_law(others, rows)
        first, second = single.add_report(base, rows[0]), single.add_report(base, rows[1])
        pair = tuple((mass, second[key]) for key, mass in first.items())
        pairs += [pair, tuple((q, p) for p, q in pair)]
    return merged(pairs)


def finite_pairs(rows: finite.Matrix, n: int, dummies: int = 0) -> list[Pair]:
    """The same for any finite channel without zeros, dummies from its blanket."""
    pairs: list[Pair] = []
    for others in single.compositions(n - 1, len(rows)):
        base = finite.multisets(rows, others, dummies)
        reached = [single.add_report(base, list(row)) for row in rows]
        for first, second in itertools.permutations(reached, 2):
            pairs.append(tuple((mass, second[key]) for key, mass in first.items()))
    return merged(pairs)


def composed(first: single.Law, second: single.Law, times: int, growth: Number) -> Number:
    """Sum of [P - growth Q]_+ over `times` releases of one pair of datasets, by all sequences of outputs."""
    (pair,) = merged([tuple((mass, second.get(key, 0)) for key, mass in first.items())])
    return hockey_stick([pair] * times, growth)


def merged(pairs: Sequence[Pair]) -> list[Pair]:
    """The same pairs with outputs of equal likelihood ratio put together, each once."""
    seen: dict[Pair, None] = {}
    for pair in pairs:
        groups: dict[Number, tuple[Number, Number]] = {}
        for p, q in pair:
            ratio = p / q if isinstance(p, Fraction) else round(float(p / q), 12)
            kept = groups.get(ratio, (0, 0))
            groups[ratio] = kept[0] + p, kept[1] + q
        seen[tuple(sorted(groups.values(), key=lambda group: group[0] / group[1]))] = None
    return list(seen)


def hockey_stick(pairs: Sequence[Pair], growth: Number) -> Number:
    """Sum of [P - growth Q]_+ over all sequences of outputs, the datasets fixed in advance."""
    total: Number = 0
    for outputs in itertools.product(*pairs):
        p = math.prod((p for p, _ in outputs), start=Fraction(1))
        q = math.prod((q for _, q in outputs), start=Fraction(1))
        total += max(0, p - growth * q)
    return total


def choices(rounds: Sequence[list[Pair]]) -> Iterator[tuple[Pair, ...]]:
    return itertools.product(*rounds)


def worst_fixed(rounds: Sequence[list[Pair]], growth: Number) -> Number:
    """The largest divergence with the datasets of all rounds fixed in advance."""
    return max(hockey_stick(pairs, growth) for pairs in choices(rounds))


def worst_adaptive(rounds: Sequence[list[Pair]], growth: Number) -> Number:
    """The largest divergence when each round's datasets may depend on what was released before.

    Backwards: with p and q the probabilities of the past, max over pairs of the sum over outputs of the rest.
    """

    @functools.cache
    def rest(place: int, level: Number) -> Number:
        if place == len(rounds):
            return max(0, 1 - level)
        return max(sum(p * rest(place + 1, level * q / p) for p, q in pair) for pair in rounds[place])

    return rest(0, growth)


def worst_panel(rounds: Sequence[tuple[list[Pair], list[Pair]]], growth: Number, most: int) -> Number:
    """The same when the target takes part in at most `most` rounds, chosen in view of what was released before.

    For every round the pairs with the target, and those without: two equal laws for each dataset of the others.
    """

    @functools.cache
    def rest(place: int, level: Number, left: int) -> Number:
        if place == len(rounds):
            return max(0, 1 - level)
        taken, missed = rounds[place]
        choices = [(pair, left) for pair in missed] + [(pair, left - 1) for pair in taken if left]
        return max(sum(p * rest(place + 1, level * q / p, after) for p, q in pair) for pair, after in choices)

    return rest(0, growth, most)


def without_target(n: int, k: int, truth: Number) -> list[Pair]:
    """The laws of the counts of n people, none of whom is the target."""
    rows = single.channel(k, truth)
    return [
        tuple((mass, mass) for mass in single.counts_law(others, rows).values()) for others in single.compositions(n, k)
    ]


def worst_adaptive_on_levels(rounds: Sequence[list[Pair]], growths: Sequence[float]) -> np.ndarray:
    """`worst_adaptive` at several levels, the outputs of a round side by side in arrays."""
    levels = np.asarray(growths, dtype=float)
    best: np.ndarray = np.maximum(0.0, 1 - levels)
    if not rounds:
        return best
    for pair in rounds[0]:
        p, q = np.array(pair, dtype=float).T
        rest = worst_adaptive_on_levels(rounds[1:], (levels[:, None] * (q / p)).ravel())
        best = np.maximum(best, rest.reshape(levels.size, p.size) @ p)
    return best
