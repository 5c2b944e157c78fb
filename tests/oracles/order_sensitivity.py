"""Order privacy from its definitions: every order, every neighbour, every release.

An order is a tuple; z[j] = y[order[j]]. Items are ranks: `tau` is read as a word of ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

Order = tuple[int, ...]
Law = dict[Order, float]


def orders(n: int) -> Iterator[Order]:
    return itertools.permutations(range(n))


def after(outer: Sequence[int], inner: Sequence[int]) -> Order:
    """i -> outer(inner(i))."""
    return tuple(outer[i] for i in inner)


def inverse(order: Sequence[int]) -> Order:
    back = [0] * len(order)
    for place, item in enumerate(order):
        back[item] = place
    return tuple(back)


def kendall(one: Sequence[int], other: Sequence[int]) -> int:
    """Pairs of items that stand in another order in one list than in the other."""
    here, there = inverse(one), inverse(other)
    pairs = itertools.combinations(range(len(one)), 2)
    return sum((here[a] < here[b]) != (there[a] < there[b]) for a, b in pairs)


def hamming(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def footrule(one: Sequence[int], other: Sequence[int]) -> int:
    """How far each item moves, added up."""
    here, there = inverse(one), inverse(other)
    return sum(abs(here[item] - there[item]) for item in range(len(one)))


def spearman(one: Sequence[int], other: Sequence[int]) -> int:
    here, there = inverse(one), inverse(other)
    return sum((here[item] - there[item]) ** 2 for item in range(len(one)))


DISTANCES: dict[str, Callable[[Sequence[int], Sequence[int]], int]] = {
    "kendall": kendall,
    "hamming": hamming,
    "footrule": footrule,
    "spearman": spearman,
}


def neighbours(order: Order, group: Sequence[int]) -> Iterator[Order]:
    """Every order equal to `order` outside the places in `group`."""
    places = sorted(group)
    for values in itertools.permutations([order[place] for place in places]):
        changed = list(order)
        for place, value in zip(places, values, strict=True):
            changed[place] = value
        yield tuple(changed)


def sensitivity(reference: Order, group: Sequence[int], distance: str) -> int:
    """max over sigma ~ sigma' and releases z of |d(s, reference) - d(s', reference)|.

    The records arrive as sigma(y) (place j holds item sigma[j]); the drawn list s = reference o tau releases
    z[reference[i]] = u[s[i]]. s and s' are the lists that turn sigma(y) and sigma'(y) into the same z.
    By symmetry sigma may be the identity, and then z runs over everything as s does.
    """
    measure, far = DISTANCES[distance], 0
    start = tuple(range(len(reference)))
    for drawn in orders(len(reference)):
        here = measure(drawn, reference)
        for changed in neighbours(start, group):
            # u'[place] = changed[place]: the item that s reads at s[i] now lies at inverse(changed)[s[i]].
            there = measure(after(inverse(changed), drawn), reference)
            far = max(far, abs(here - there))
    return far


def sensitivity_at_places(reference: Order, group: Sequence[int], tau_distance: Callable[[Order], int]) -> int:
    """The same with another distance, a function of the list s drawn for the release."""
    far = 0
    start = tuple(range(len(reference)))
    for drawn in orders(len(reference)):
        for changed in neighbours(start, group):
            far = max(far, abs(tau_distance(drawn) - tau_distance(after(inverse(changed), drawn))))
    return far


def mallows(reference: Order, theta: float, distance: str) -> Law:
    """The law of the released order: z[j] = y[order[j]], by normalizing over all n! lists."""
    weights: Law = {}
    for tau in orders(len(reference)):
        drawn = after(reference, tau)
        order = [0] * len(reference)
        for i, person in enumerate(reference):
            order[person] = drawn[i]
        weights[tuple(order)] = math.exp(-theta * DISTANCES[distance](drawn, reference))
    total = math.fsum(weights.values())
    return {order: weight / total for order, weight in weights.items()}


def releases(law: Law, records: Sequence[int]) -> dict[tuple[int, ...], float]:
    """The law of z for fixed records."""
    out: dict[tuple[int, ...], float] = {}
    for order, p in law.items():
        z = tuple(records[person] for person in order)
        out[z] = out.get(z, 0.0) + p
    return out


def alpha(law: Law, groups: Sequence[Sequence[int]], records: Sequence[int]) -> float:
    """max over neighbours sigma ~ sigma' and releases z of ln P[A(sigma(y)) = z] / P[A(sigma'(y)) = z]."""
    n = len(records)
    known = {order: releases(law, [records[i] for i in order]) for order in orders(n)}
    worst = 0.0
    for order, group in itertools.product(orders(n), groups):
        for changed in neighbours(order, group):
            one, other = known[order], known[changed]
            worst = max(worst, *(math.log(p / other[z]) if other.get(z) else math.inf for z, p in one.items()))
    return worst


def randomized_response(k: int, epsilon: float) -> list[list[float]]:
    total = math.exp(epsilon) + k - 1
    return [[(math.exp(epsilon) if x == y else 1.0) / total for y in range(k)] for x in range(k)]


def best_chance(
    law: Law, channel: Sequence[Sequence[float]], values: Sequence[int], wanted: Sequence[int]
) -> tuple[float, float]:
    """(chance of winning, of losing) of the best adversary of Theorem 4.2: names |wanted| places of z,
    and wins if more than half of them hold records of `wanted`. The law of the order ignores the records."""
    return best_chance_of(lambda _: law, channel, values, wanted)


def best_chance_of(
    law_given: Callable[[tuple[int, ...]], Law],
    channel: Sequence[Sequence[float]],
    values: Sequence[int],
    wanted: Sequence[int],
) -> tuple[float, float]:
    """The same where the law of the order may look at the records."""
    n, k = len(values), len(wanted)
    choices = list(itertools.combinations(range(n), k))
    won: dict[tuple[int, ...], list[float]] = {}
    for records in itertools.product(range(len(channel[0])), repeat=n):
        likelihood = math.prod(channel[x][y] for x, y in zip(values, records, strict=True))
        for order, p in law_given(records).items():
            z = tuple(records[person] for person in order)
            tally = won.setdefault(z, [0.0] * len(choices))
            for place, choice in enumerate(choices):
                if sum(order[j] in wanted for j in choice) > k / 2:
                    tally[place] += likelihood * p
    best = math.fsum(max(tally) for tally in won.values())
    return best, 1 - best


def by_sorting(records: tuple[int, ...]) -> Law:
    """The order of a mechanism that sorts the records (ties by person): it looks at them."""
    return {tuple(sorted(range(len(records)), key=lambda person: (records[person], person))): 1.0}


def odds_shift(
    prior: dict[tuple[int, ...], float], channel: Sequence[Sequence[float]], law: Law, group: Sequence[int] | None
) -> float:
    """Definition A.1, or with `group` the left side of Theorem 4.1: how far log odds about any x_i move.

    With `group` the adversary knows, beforehand and afterwards, everybody's record outside the group and the
    bag of records inside it.
    """
    n, k = len(next(iter(prior))), len(channel)
    before: dict[tuple[object, int, int], float] = {}
    behind: dict[tuple[object, object, int, int], float] = {}
    for values, chance in prior.items():
        for records in itertools.product(range(len(channel[0])), repeat=n):
            joint = chance * math.prod(channel[x][y] for x, y in zip(values, records, strict=True))
            known: object = None
            if group is not None:
                known = (
                    tuple(sorted(records[i] for i in group)),
                    tuple(records[i] for i in range(n) if i not in group),
                )
            for i in range(n):
                before[known, i, values[i]] = before.get((known, i, values[i]), 0.0) + joint
            for z, p in releases(law, records).items():
                for i in range(n):
                    spot = (known, z, i, values[i])
                    behind[spot] = behind.get(spot, 0.0) + joint * p
    worst = 0.0
    for (knew, z_seen, i, a), p in behind.items():
        for b in range(k):
            q = behind.get((knew, z_seen, i, b), 0.0)
            was, other = before.get((knew, i, a), 0.0), before.get((knew, i, b), 0.0)
            if p > 0 and other > 0:
                worst = max(worst, abs(math.log(p / was) - math.log(q / other)) if q > 0 else math.inf)
    return worst


def belief_change(prior: dict[Order, Fraction], likelihood: dict[Order, Fraction], i: int, j: int) -> Fraction:
    """Posterior over prior probability that sigma(i) = j, after a release with the given likelihoods."""
    event = [order for order in prior if order[i] == j]
    before = sum((prior[order] for order in event), Fraction(0))
    total = sum((prior[order] * likelihood[order] for order in prior), Fraction(0))
    after_it = sum((prior[order] * likelihood[order] for order in event), Fraction(0)) / total
    return after_it / before
