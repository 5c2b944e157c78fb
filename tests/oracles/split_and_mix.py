"""Sums by shares, enumerated: every way to share, every release; and every way to pair shares up with people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from math import comb, factorial

Law = dict[tuple[int, ...], Fraction]
"""Probability of each release: how often each residue occurs among the messages."""


def person(value: int, *, messages: int, modulus: int) -> Law:
    """The messages of one person: all but one are any residues, the last makes the sum right."""
    found: Counter[tuple[int, ...]] = Counter()
    for first in product(range(modulus), repeat=messages - 1):
        sent = [*first, (value - sum(first)) % modulus]
        found[tuple(sent.count(residue) for residue in range(modulus))] += 1
    return {counts: Fraction(ways, modulus ** (messages - 1)) for counts, ways in found.items()}


def mixed(laws: Sequence[tuple[Fraction, Law]]) -> Law:
    found: Law = {}
    for weight, law in laws:
        for counts, chance in law.items():
            found[counts] = found.get(counts, Fraction(0)) + weight * chance
    return found


def together(laws: Sequence[Law]) -> Law:
    """The release of people whose messages have these laws, independent: their counts added up."""
    found = laws[0]
    for law in laws[1:]:
        added: Law = {}
        for counts, chance in found.items():
            for more, other in law.items():
                total = tuple(a + b for a, b in zip(counts, more, strict=True))
                added[total] = added.get(total, Fraction(0)) + chance * other
        found = added
    return found


def release(values: Sequence[int], *, messages: int, modulus: int, noise: Sequence[Fraction] = (Fraction(1),)) -> Law:
    """The shuffled messages of people with these values, each with noise of this law on 0, 1, ... added."""
    shares = [person(value, messages=messages, modulus=modulus) for value in range(modulus)]
    own = [
        mixed([(chance, shares[(value + more) % modulus]) for more, chance in enumerate(noise) if chance])
        for value in values
    ]
    return together(own)


def ideal(total: int, *, people: int, messages: int, modulus: int) -> Law:
    """All messages of all people uniform, given their sum."""
    uniform = [Fraction(1, modulus)] * modulus
    free = release([0] * people, messages=messages, modulus=modulus, noise=uniform)
    right = {
        counts: chance
        for counts, chance in free.items()
        if sum(residue * count for residue, count in enumerate(counts)) % modulus == total % modulus
    }
    whole = sum(right.values())
    return {counts: chance / whole for counts, chance in right.items()}


def distance(p: Law, q: Law) -> Fraction:
    """Total variation."""
    return sum((abs(p.get(at, Fraction(0)) - q.get(at, Fraction(0))) for at in {*p, *q}), Fraction(0)) / 2


def chi_square(p: Law, q: Law) -> Fraction:
    return sum((p.get(at, Fraction(0)) ** 2 / chance for at, chance in q.items()), Fraction(0)) - 1


def hockey_stick(p: Law, q: Law, growth: Fraction) -> Fraction:
    return sum((max(chance - growth * q.get(at, Fraction(0)), Fraction(0)) for at, chance in p.items()), Fraction(0))


def pieces(people: int, messages: int) -> Iterator[list[tuple[frozenset[int], frozenset[int]]]]:
    """Yield, for every way to pair up left and right places, the connected pieces: people on the left and right."""
    places = range(people * messages)
    for order in permutations(places):
        piece = list(range(2 * people))
        for left, right in zip(places, order, strict=True):
            one, other = piece[left // messages], piece[people + right // messages]
            piece = [one if at == other else at for at in piece]
        yield [
            (
                frozenset(at for at in range(people) if piece[at] == name),
                frozenset(at for at in range(people) if piece[people + at] == name),
            )
            for name in set(piece)
        ]


def excess(people: int, messages: int, modulus: int) -> Fraction:
    """E q**(pieces - 1) - 1, from the power of a series: q times a piece of each kind."""
    ways = [Fraction(factorial(messages * size), factorial(size) ** 2) for size in range(people + 1)]
    power = [Fraction(1)]
    for size in range(1, people + 1):
        terms = ((part * (modulus + 1) - size) * ways[part] * power[size - part] for part in range(1, size + 1))
        power.append(sum(terms, Fraction(0)) / size)
    return power[people] / (modulus * ways[people]) - 1


def spread(people: int, messages: int, modulus: int, changed: int) -> Fraction:
    """E of the colourings per colour in which neither side's `changed` first people have all the same colour."""
    total = Fraction(0)
    for sizes in _sizes(people, modulus):
        ways, chance = factorial(people), factorial(messages * people)
        for size in sizes:
            ways //= factorial(size)
        fitting = Fraction(1, chance)
        for size in sizes:
            fitting *= factorial(messages * size)
        alike = Fraction(sum(comb(size, changed) for size in sizes), comb(people, changed))
        total += ways**2 * fitting * (1 - alike) ** 2
    return total / modulus


def _sizes(people: int, colours: int) -> Iterator[tuple[int, ...]]:
    if colours == 1:
        yield (people,)
        return
    for first in range(people + 1):
        for rest in _sizes(people - first, colours - 1):
            yield (first, *rest)


def urn(people: int, total: int) -> dict[tuple[int, ...], Fraction]:
    """The shares of people given their sum: in proportion to prod Gamma(a_i + 1/people)/a_i!."""
    share = Fraction(1, people)
    weights = {}
    for numbers in _sizes(total, people):
        weight = Fraction(1)
        for number in numbers:
            for place in range(number):
                weight *= (place + share) / (place + 1)
        weights[numbers] = weight
    whole = sum(weights.values(), Fraction(0))
    return {numbers: weight / whole for numbers, weight in weights.items()}


def drawn(people: int, start: dict[tuple[int, ...], Fraction], steps: int) -> dict[tuple[int, ...], Fraction]:
    """The law of (numbers after so many steps of the urn, who was drawn as 0 or 1), as one tuple."""
    share = Fraction(1, people)
    law = {(*numbers, *([0] * people)): chance for numbers, chance in start.items()}
    for _ in range(steps):
        after: dict[tuple[int, ...], Fraction] = {}
        for state, chance in law.items():
            total = sum(state[:people])
            for one in range(people):
                changed = list(state)
                changed[one], changed[people + one] = state[one] + 1, 1
                key = tuple(changed)
                after[key] = after.get(key, Fraction(0)) + chance * (state[one] + share) / (total + 1)
        law = after
    return law
