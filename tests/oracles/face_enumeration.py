"""Pools one after the other, each for half of the columns before: the bound for one dataset, term by term."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Law = list[Fraction]


def faces_bound(
    rows: dict[int, Law], others: Sequence[int], target: tuple[Law, Law], growth: Fraction, parts: Sequence[Fraction]
) -> Fraction:
    """The bound with a pool of `parts[0]` of what all `rows` share, then one of `parts[1]` for half of them, ...

    `rows` are the laws of the logos that the others may hold; the halves differ in bit 0, then in bit 1, ...
    """
    return _bound(rows, list(others), target, growth, list(parts), 0)


def _bound(
    rows: dict[int, Law], others: list[int], target: tuple[Law, Law], growth: Fraction, parts: list[Fraction], bit: int
) -> Fraction:
    outputs = range(len(target[0]))
    gain = [target[0][y] - growth * target[1][y] for y in outputs]
    local = sum((max(Fraction(0), value) for value in gain), Fraction(0))
    if not parts:
        return local
    taken = [parts[0] * min(law[y] for law in rows.values()) for y in outputs]
    beta = sum(taken, Fraction(0))
    outside = {logo: [(law[y] - taken[y]) / (1 - beta) for y in outputs] for logo, law in rows.items()}
    total = Fraction(0)
    # Who is in the pool once the target has taken the place of one of its members.
    for pooled in itertools.product((False, True), repeat=len(others)):
        left = [outside[z] for z, inside in zip(others, pooled, strict=True) if not inside]
        chance = beta ** (sum(pooled) + 1) * (1 - beta) ** (len(left) - 1)
        mean = Fraction(0)
        for reports in itertools.product(outputs, repeat=len(left)):
            mass = math.prod((law[y] for law, y in zip(left, reports, strict=True)), start=Fraction(1))
            scores = (gain[y] / law[y] for law, y in zip(left, reports, strict=True))
            mean += mass * max(Fraction(0), sum(scores, Fraction(0)))
        total += chance / (sum(pooled) + 1) * mean
    side = int(2 * sum(z >> bit & 1 for z in others) > len(others))
    half = {logo: law for logo, law in outside.items() if logo >> bit & 1 == side}
    kept = [z for z in others if z >> bit & 1 == side]
    return total + (1 - beta) ** len(others) * _bound(half, kept, target, growth, parts[1:], bit + 1)
