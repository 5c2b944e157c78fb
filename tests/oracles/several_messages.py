"""Histograms from several messages of each person, by going through every outcome in fractions.

A person's messages are a law over vectors of counts. Nothing here knows a formula of the library.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

Law = dict[tuple[int, ...], Fraction]
"""Vectors of counts, and their probabilities."""


def unit(value: int, k: int) -> tuple[int, ...]:
    return tuple(int(place == value) for place in range(k))


def together(laws: Iterable[Law], k: int) -> Law:
    """The law of the sum of independent vectors."""
    whole: Law = {(0,) * k: Fraction(1)}
    for law in laws:
        new: Law = {}
        for (first, p), (second, q) in itertools.product(whole.items(), law.items()):
            key = tuple(a + b for a, b in zip(first, second, strict=True))
            new[key] = new.get(key, Fraction(0)) + p * q
        whole = new
    return whole


def response(value: int, k: int, theta: Fraction) -> Law:
    """The report: the value with probability theta, else uniform."""
    return {unit(y, k): (1 - theta) / k + theta * (y == value) for y in range(k)}


def uniform_messages(k: int, p: Fraction, trials: int) -> Law:
    """By each coin one message, uniform over the values."""
    coin = {(0,) * k: 1 - p, **{unit(y, k): p / k for y in range(k)}}
    return together([coin] * trials, k)


def fakes(k: int, p: Fraction) -> Law:
    """For each value one message by a coin."""
    return together([{(0,) * k: 1 - p, unit(y, k): p} for y in range(k)], k)


def person(value: int, k: int, *, extra: Law, theta: Fraction = Fraction(1), kept: Fraction = Fraction(1)) -> Law:
    """All messages of one person, whose report is kept with a probability."""
    own = {key: kept * p for key, p in response(value, k, theta).items()}
    own[(0,) * k] = 1 - kept
    return together([own, extra], k)


def hockey_stick(first: Law, second: Law, growth: Fraction) -> Fraction:
    gaps = (p - growth * second.get(key, Fraction(0)) for key, p in first.items())
    return sum((gap for gap in gaps if gap > 0), Fraction(0))


def worst(
    n: int, k: int, growth: Fraction, *, messages: Callable[[int], Law], besides: Law | None = None
) -> tuple[Fraction, Fraction]:
    """The smallest and the largest divergence over all others' values and both orders of each pair.

    `messages` gives the law of a person of a value, `besides` of what the shuffler adds.
    """
    found = []
    extra = [] if besides is None else [besides]
    laws = [messages(value) for value in range(k)]
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        rest = together([*(laws[other] for other in others), *extra], k)
        releases = [together([rest, law], k) for law in laws]
        found += [hockey_stick(releases[a], releases[b], growth) for a, b in itertools.permutations(range(k), 2)]
    return min(found), max(found)


def moments(law: Law, k: int) -> Iterator[tuple[Fraction, Fraction]]:
    """The mean and the variance of each count."""
    for place in range(k):
        mean = sum((p * key[place] for key, p in law.items()), Fraction(0))
        yield mean, sum((p * (key[place] - mean) ** 2 for key, p in law.items()), Fraction(0))


def hashed(value: int | None, hashes: list[tuple[int, ...]], g: int) -> Law:
    """One message: a hash, each one a tuple of the values' buckets, and the value's bucket under it; None: any bucket.

    Places are hash by hash, and bucket by bucket in each.
    """
    size, law = len(hashes) * g, dict[tuple[int, ...], Fraction]()
    for number, hash_ in enumerate(hashes):
        for bucket in range(g) if value is None else (hash_[value],):
            law[unit(number * g + bucket, size)] = Fraction(1, len(hashes) * (g if value is None else 1))
    return law
