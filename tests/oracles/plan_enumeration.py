"""Whole small plans enumerated in exact rationals: what a watcher sees, together with what stays hidden.

A stage takes (data, views so far, hidden so far) and returns the law of (its view, its hidden outcome). Coins,
dummies, contents and feedback are followed one by one; only at the end what is hidden is summed over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

View = Hashable
Outcomes = dict[tuple[View, Any], Fraction]
Stage = Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Outcomes]
Law = dict[tuple[Any, ...], Fraction]


def one_message(true: int, targets: int, sigma: Fraction, *, lucky: bool) -> dict[tuple[int, bool], Fraction]:
    """Return the law of (target, whether the tuple arrives) of one source; redirection is uniform over all targets.

    `lucky`: a redirected message that falls on its own target carries the tuple.
    """
    law: dict[tuple[int, bool], Fraction] = defaultdict(Fraction)
    law[true, True] += 1 - sigma
    for target in range(targets):
        law[target, lucky and target == true] += sigma / targets
    return {outcome: chance for outcome, chance in law.items() if chance}


def scrambled(
    truths: Sequence[int],
    targets: int,
    sigma: Fraction,
    *,
    dummies: int = 0,
    cap: int | None = None,
    lucky: bool = True,
) -> Outcomes:
    """Return the law of (messages per target, whether each source's tuple arrived) behind one scrambler."""
    law: Outcomes = defaultdict(Fraction)
    own = [one_message(true, targets, sigma, lucky=lucky) for true in truths]
    for outcome in product(*(message.items() for message in own)):
        chance, counts = Fraction(1), [0] * targets
        for (target, _), share in outcome:
            chance *= share
            counts[target] += 1
        law[tuple(counts), tuple(arrived for (_, arrived), _ in outcome)] += chance
    for _ in range(dummies):
        more: Outcomes = defaultdict(Fraction)
        for (counts_before, arrived), chance in law.items():
            before = list(counts_before)  # type: ignore[call-overload]
            free = [t for t in range(targets) if cap is None or before[t] < cap]
            for target in free:
                after = tuple(count + (t == target) for t, count in enumerate(before))
                more[after, arrived] += chance / len(free)
        law = more
    return dict(law)


def seen_senders(truths: Sequence[int], targets: int, sigma: Fraction, *, lucky: bool = True) -> Outcomes:
    """Return the law of (each source's target, whether its tuple arrived) without scramblers."""
    law: Outcomes = defaultdict(Fraction)
    own = [one_message(true, targets, sigma, lucky=lucky) for true in truths]
    for outcome in product(*(message.items() for message in own)):
        chance = Fraction(1)
        for _, share in outcome:
            chance *= share
        law[tuple(target for (target, _), _ in outcome), tuple(arrived for (_, arrived), _ in outcome)] += chance
    return dict(law)


def noisy_count(count: int, most: int, ratio: Fraction) -> dict[int, Fraction]:
    """Return the law of a count in 0..most with two-sided geometric noise, moved into 0..most.

    Counts that differ by one differ by at most the factor 1/ratio: a pure epsilon of ln(1/ratio) for each step.
    """
    tail = 1 / (1 + ratio)
    law = {}
    for value in range(most + 1):
        far = abs(value - count)
        law[value] = tail * ratio**far * (1 if value in (0, most) else 1 - ratio)
    return law


def noisy_counts(counts: Sequence[int], most: int, ratio: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Return the law of several counts with independent noise."""
    law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for count in counts:
        own = noisy_count(count, most, ratio)
        law = {(*values, value): chance * share for values, chance in law.items() for value, share in own.items()}
    return law


def plan_law(stages: Iterable[Stage], data: Any) -> Law:
    """Return the law of all that a watcher sees."""
    joint: dict[tuple[tuple[Any, ...], tuple[Any, ...]], Fraction] = {((), ()): Fraction(1)}
    for stage in stages:
        after: dict[tuple[tuple[Any, ...], tuple[Any, ...]], Fraction] = defaultdict(Fraction)
        for (views, hidden), chance in joint.items():
            for (view, outcome), share in stage(data, views, hidden).items():
                after[(*views, view), (*hidden, outcome)] += chance * share
        joint = after
    law: Law = defaultdict(Fraction)
    for (views, _), chance in joint.items():
        law[views] += chance
    return dict(law)


def excess(one: Law, other: Law, growth: Fraction) -> Fraction:
    """Return the hockey-stick divergence at e**epsilon = growth."""
    return sum(
        (max(chance - growth * other.get(view, Fraction(0)), Fraction(0)) for view, chance in one.items()), Fraction(0)
    )


def ratio(one: Law, other: Law) -> Fraction:
    """Return the largest likelihood ratio; every view must be possible under both."""
    return max(chance / other[view] for view, chance in one.items())


def outlier_among_many(people: int, sigma: Fraction, growth: Fraction) -> Fraction:
    """Return the divergence of two rounds of k-means with two hidden centroids, at e**epsilon = growth.

    All others sit a little right of the boundary and are sent right in round one. The outlier is far right in
    one dataset, far left in the other. If its tuple arrives right, it drags the right centroid so far away that
    everybody else is sent left in round two; else everybody else stays. The outlier itself is sent as in round one.
    What is seen: how many messages go right in each round.
    """
    others = people - 1
    keep = 1 - sigma / 2
    scale = keep.denominator
    told, lied = keep.numerator, scale - keep.numerator
    right = [comb(others, a) * told**a * lied ** (others - a) for a in range(others + 1)]  # over scale**others
    left = right[::-1]

    def with_own(counts: list[int], own: int) -> list[int]:
        """Add a message that goes right with weight `own`, left with weight scale - own."""
        padded = [0, *counts, 0]
        return [own * padded[a] + (scale - own) * padded[a + 1] for a in range(people + 1)]

    def law(at_right: bool) -> list[list[int]]:
        first_right, first_left = [0, *right], [*right, 0]
        arrived, lost = (first_right, first_left) if at_right else (first_left, first_right)
        own = told if at_right else lied
        moved, stayed = with_own(left if at_right else right, own), with_own(right, own)
        return [
            [told * arrived[a] * moved[b] + lied * lost[a] * stayed[b] for b in range(people + 1)]
            for a in range(people + 1)
        ]

    one, other = law(at_right=True), law(at_right=False)
    total = sum(
        max(growth.denominator * p - growth.numerator * q, 0)
        for row, against in zip(one, other, strict=True)
        for p, q in zip(row, against, strict=True)
    )
    return Fraction(total, growth.denominator * scale ** (2 * people))
