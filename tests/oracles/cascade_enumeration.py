"""Scramblers one after the other, some of them corrupted, enumerated message by message in exact rationals.

A message is (mark, target). The mark is what the adversary can tell it by: whose it is ("person 0"), that the
adversary made it ("own"), or its place in what the last honest scrambler sent ("out 3"). The view at the end is the
batches that reach the targets: every message with its mark and its target. What a corrupted scrambler does rests on
marks alone: targets are sealed until the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, permutations, product
from math import factorial, prod

from oracles.traffic_enumeration import first_target

Message = tuple[str, int]
Batches = tuple[tuple[Message, ...], ...]
Law = dict[Batches, Fraction]
Act = int | str
"""What a corrupted scrambler sends: the number of a message that it got (of all batches), or "own"."""
Tamper = Callable[[tuple[tuple[str, ...], ...]], tuple[tuple[Act, ...], ...]]
"""From the marks of what it got, by batch, to what it sends, by batch."""


@dataclass(frozen=True)
class Hop:
    """One scrambler. `tamper` None: it keeps to the rules; corrupted, its order and dummies are known."""

    dummies: int
    honest: bool = True
    tamper: Tamper | None = None


def view(truths: tuple[int, ...], targets: int, sigma: Fraction, hops: tuple[Hop, ...], convention: str) -> Law:
    """Return the law of the adversary's view, the sources' own targets being `truths`."""
    law: Law = defaultdict(Fraction)
    laws = [first_target(true, targets, sigma, convention) for true in truths]
    for places in product(range(targets), repeat=len(truths)):
        chance = prod((laws[j][t] for j, t in enumerate(places)), start=Fraction(1))
        law[tuple((f"person {j}", t) for j, t in enumerate(places)),] += chance
    for hop in hops:
        following: Law = defaultdict(Fraction)
        for state, chance in law.items():
            for sent, share in (_honest if hop.honest else _corrupted)(state, hop, targets):
                following[sent] += chance * share
        law = following
    return {state: chance for state, chance in law.items() if chance}


def _honest(state: Batches, hop: Hop, targets: int) -> Iterator[tuple[Batches, Fraction]]:
    """Every batch gets dummies and a uniformly random order; what the adversary made he recognises."""
    outputs = [list(_mixed(batch, hop.dummies, targets)) for batch in state]
    for picked in product(*outputs):
        share = prod((chance for _, chance in picked), start=Fraction(1))
        numbers = iter(range(10**6))
        yield (
            tuple(
                tuple((mark if mark == "own" else f"out {next(numbers)}", target) for mark, target in batch)
                for batch, _ in picked
            ),
            share,
        )


def _mixed(batch: tuple[Message, ...], dummies: int, targets: int) -> Iterator[tuple[tuple[Message, ...], Fraction]]:
    for drawn in product(range(targets), repeat=dummies):
        inside = [("own" if mark == "own" else "", target) for mark, target in batch]
        inside += [("", target) for target in drawn]
        orders = factorial(len(inside))
        for order, copies in Counter(permutations(inside)).items():
            yield order, Fraction(copies, orders * targets**dummies)


def _corrupted(state: Batches, hop: Hop, targets: int) -> Iterator[tuple[Batches, Fraction]]:
    if hop.tamper is None:
        for drawn in product(range(targets), repeat=hop.dummies * len(state)):
            own = [("own", target) for target in drawn]
            cut = [tuple(own[hop.dummies * b : hop.dummies * (b + 1)]) for b in range(len(state))]
            yield tuple(batch + more for batch, more in zip(state, cut, strict=True)), Fraction(1, targets ** len(own))
        return
    got = [message for batch in state for message in batch]
    sent = hop.tamper(tuple(tuple(mark for mark, _ in batch) for batch in state))
    yield tuple(tuple(("own", 0) if act == "own" else got[int(act)] for act in batch) for batch in sent), Fraction(1)


def honest(dummies: int) -> Hop:
    """Return a scrambler that keeps its secrets."""
    return Hop(dummies=dummies)


def corrupted(tamper: Tamper | None = None, *, dummies: int = 0) -> Hop:
    """Return one whose order and dummies are known, and which sends what `tamper` says."""
    return Hop(dummies=dummies, honest=False, tamper=tamper)


def divergence(one: Law, other: Law, growth: Fraction) -> Fraction:
    """Return the hockey-stick divergence of two laws at e**epsilon = growth."""
    return sum((max(p - growth * other.get(key, Fraction(0)), Fraction(0)) for key, p in one.items()), Fraction(0))


def selections(numbers: range) -> Iterator[tuple[int, ...]]:
    """Yield every subset."""
    yield from chain.from_iterable(combinations(numbers, size) for size in range(len(numbers) + 1))


def splits(numbers: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield every partition of a set into non-empty batches."""
    if not numbers:
        yield ()
        return
    first, *rest = numbers
    for mates in selections(range(len(rest))):
        block = (first, *(rest[i] for i in mates))
        for others in splits(tuple(one for one in rest if one not in block)):
            yield (block, *others)


def adaptive(
    true: int, other: int, *, targets: int, sigma: Fraction, first: int, later: int, convention: str, growth: Fraction
) -> Fraction:
    """Return the largest divergence for one source that a corrupted scrambler between two honest ones gets.

    The first honest one added `first` dummies, the next adds `later` to each batch. The corrupted one sends any number
    of what it got, sees at which targets the batch arrives, and decides how many to send next: a tree of decisions. All
    places look alike to it, so that only numbers matter.
    """
    laws = [first_target(t, targets, sigma, convention) for t in (true, other)]
    held: dict[tuple[int, ...], tuple[Fraction, Fraction]] = {}
    for places in product(range(targets), repeat=1 + first):
        even = Fraction(1, targets**first * (1 + first))
        held[places] = (
            sum((laws[0][t] for t in places), Fraction(0)) * even,
            sum((laws[1][t] for t in places), Fraction(0)) * even,
        )
    return _best(held, targets=targets, later=later, growth=growth)


def _best(
    held: dict[tuple[int, ...], tuple[Fraction, Fraction]], *, targets: int, later: int, growth: Fraction
) -> Fraction:
    stop = max(sum((p - growth * q for p, q in held.values()), Fraction(0)), Fraction(0))
    left = len(next(iter(held)))
    values = [stop]
    for size in range(1, left + 1):
        seen: dict[tuple[int, ...], dict[tuple[int, ...], tuple[Fraction, Fraction]]] = {}
        for places, (p, q) in held.items():
            for drawn in product(range(targets), repeat=later):
                arrived = tuple(sorted((*places[:size], *drawn)))
                rest = seen.setdefault(arrived, {})
                before = rest.get(places[size:], (Fraction(0), Fraction(0)))
                share = Fraction(1, targets**later)
                rest[places[size:]] = (before[0] + p * share, before[1] + q * share)
        values.append(
            sum((_best(rest, targets=targets, later=later, growth=growth) for rest in seen.values()), Fraction(0))
        )
    return max(values)
