"""One slow twin of all releases: whatever is described is enumerated, for all datasets and all neighbouring pairs.

A message is a vector of counts, written as one whole number whose digits to the base `BASE` are the counts. Report y of
several is the vector with a single 1 at y; a report that is added up is its vector of bits. So a multiset of reports is
the sum of their messages, and the sums of bits are too: what is released is one whole number.

A law gives every outcome a whole number of parts of a `total`. Nothing is rounded, and nothing is cleverer than
the definitions: messages of independent people are added up outcome by outcome.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial, reduce
from operator import mul
from typing import Any, Final, Literal

BASE: Final = 1 << 16
"""No count is as large."""


@dataclass(frozen=True)
class Law:
    """The probability of an outcome is its number of parts over the `total`."""

    parts: Mapping[Any, int]
    total: int


def law(chances: Mapping[Any, Fraction | int]) -> Law:
    """The law with these probabilities, which sum to 1."""
    shares = {outcome: Fraction(chance) for outcome, chance in chances.items() if chance}
    total = math.lcm(*(share.denominator for share in shares.values()))
    parts = {outcome: share.numerator * (total // share.denominator) for outcome, share in shares.items()}
    assert sum(parts.values()) == total, "probabilities sum to 1"
    return Law(parts, total)


NOTHING: Final = Law({0: 1}, 1)
"""No message at all, for certain."""


def report(y: int) -> int:
    """The message that is report y of several."""
    return 1 << 16 * y


def bits(vector: Sequence[int]) -> int:
    """The message that is this vector."""
    return sum(bit * BASE**place for place, bit in enumerate(vector))


def plus(first: Law, second: Law) -> Law:
    """The sum of two independent numbers."""
    found: dict[int, int] = {}
    for one, p in first.parts.items():
        for other, q in second.parts.items():
            found[one + other] = found.get(one + other, 0) + p * q
    return Law(found, first.total * second.total)


def together(laws: Iterable[Law]) -> Law:
    """The sum of independent numbers."""
    return reduce(plus, laws, NOTHING)


def side_by_side(laws: Sequence[Law]) -> Law:
    """Independent outcomes, each told by itself."""
    found: dict[tuple[Any, ...], int] = {}
    for outcomes in itertools.product(*(each.parts.items() for each in laws)):
        found[tuple(outcome for outcome, _ in outcomes)] = math.prod(part for _, part in outcomes)
    return Law(found, math.prod(each.total for each in laws))


def mixture(cases: Iterable[tuple[Fraction, Law]]) -> Law:
    """One of several laws by chance; which one is not told."""
    found: dict[Any, Fraction] = {}
    for chance, case in cases:
        for outcome, part in case.parts.items():
            found[outcome] = found.get(outcome, Fraction(0)) + chance * Fraction(part, case.total)
    return law(found)


def processed(given: Law, map_: Callable[[Any], Any]) -> Law:
    """What becomes of an outcome by a map."""
    found: dict[Any, int] = {}
    for outcome, part in given.parts.items():
        found[map_(outcome)] = found.get(map_(outcome), 0) + part
    return Law(found, given.total)


# --- a release is data --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Messages that depend on no value: so many from one law, or so many of `each` message, drawn for each."""

    count: Law
    of: Law | None = None
    each: tuple[int, ...] = ()

    @property
    def law(self) -> Law:
        """Of the sum of its messages."""
        if self.of is None:
            return together(processed(self.count, partial(mul, message)) for message in self.each)
        return mixture(
            (Fraction(part, self.count.total), together([self.of] * number))
            for number, part in self.count.parts.items()
        )


@dataclass(frozen=True)
class Group:
    """People who are alike: the law of a report for each value, and what each sends beside every report."""

    people: int
    device: tuple[Law, ...]
    own: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Multiset:
    """How often each report occurs; or, where messages are vectors of bits, their sums.

    With `most` a count from `most` on is released as `most`.
    """

    most: int | None = None


@dataclass(frozen=True)
class Capped:
    """A multiset. So many dummies come one after the other: each is uniform over the reports below the cap."""

    cap: int
    dummies: int
    reports: int


@dataclass(frozen=True)
class Senders:
    """Every report with its sender."""


@dataclass(frozen=True)
class Order:
    """Place reference[i] has the report of reference[tau[i]], tau as likely as `ratio` to the power of its distance.

    The distance is the number of inversions, or of displaced items.
    """

    reference: tuple[int, ...]
    ratio: Fraction
    distance: Literal["kendall", "hamming"]


@dataclass(frozen=True)
class Release:
    """Groups of people (one after the other, for an order), what is added, and what is seen.

    A report (not what is sent beside it) is dropped with probability 1 - keep, silently.
    """

    groups: tuple[Group, ...]
    sources: tuple[Source, ...] = ()
    keep: Fraction = Fraction(1)
    view: Multiset | Capped | Senders | Order = Multiset()

    def person(self, group: int, value: int) -> Law:
        """The sum of what one person of the group sends for one report."""
        kept = self.groups[group].device[value]
        if self.keep < 1:
            kept = mixture([(self.keep, kept), (1 - self.keep, NOTHING)])
        return together([kept, *(source.law for source in self.groups[group].own)])


@dataclass(frozen=True)
class Memory:
    """Everybody draws a report once and sends it, or a report on it (`instantaneous`), in each of so many waves.

    The target's value changes at most `changes` times. A new value gets a new report, one held before its old report.
    """

    waves: int
    instantaneous: tuple[tuple[int, Law], ...] | None = None
    changes: int = 0


@dataclass(frozen=True)
class Round:
    """One release, in which the target, one person of the group `target`, gives so many of the reports.

    So many others of that group (`helpers`) tell the adversary all they send.
    """

    release: Release
    target: int = 0
    reports: int = 1
    helpers: int = 0


@dataclass(frozen=True)
class Question:
    """About rounds, each with fresh randomness, for each of the `targets`; or about waves of one release (`memory`)."""

    targets: tuple[tuple[Round, ...], ...]
    memory: Memory | None = None


@dataclass(frozen=True)
class Pair:
    """What is released under two neighbouring datasets, and which ones: others' values, the target's two."""

    first: Law
    second: Law
    others: object
    target: object

    def hockey_stick(self, growth: Fraction) -> Fraction:
        """Sum of [P - growth Q]_+, growth = e**epsilon."""
        p_unit = growth.denominator * self.second.total
        q_unit = growth.numerator * self.first.total
        other = self.second.parts
        gaps = (p_unit * part - q_unit * other.get(outcome, 0) for outcome, part in self.first.parts.items())
        return Fraction(sum(gap for gap in gaps if gap > 0), p_unit * self.first.total)

    def largest_ratio(self) -> Fraction | None:
        """The largest P/Q; None: infinite."""
        other = self.second.parts
        if any(outcome not in other for outcome in self.first.parts):
            return None
        scale = Fraction(self.second.total, self.first.total)
        return max(Fraction(part, other[outcome]) for outcome, part in self.first.parts.items()) * scale


# --- all neighbouring pairs ---------------------------------------------------------------------------------------


def pairs(release: Release, target: int, reports: int = 1) -> Iterator[Pair]:
    """All neighbouring pairs of one release: one person of the group `target` gives so many of its reports."""
    if isinstance(release.view, Order):
        yield from _in_order(release, target, reports)
        return
    people = [group.people - (reports if place == target else 0) for place, group in enumerate(release.groups)]
    assert people[target] >= 0, "the target is there"
    own = [release.person(target, value) for value in range(len(release.groups[target].device))]
    choices = list(itertools.combinations_with_replacement(range(len(own)), reports))
    if isinstance(release.view, Senders):  # what others send is the same under both
        yield from _of_laws({held: side_by_side([own[value] for value in held]) for held in choices}, "any")
        return
    targets = {held: together([own[value] for value in held]) for held in choices}
    added = together(source.law for source in release.sources)
    for others in itertools.product(
        *(
            itertools.combinations_with_replacement(range(len(group.device)), count)
            for group, count in zip(release.groups, people, strict=True)
        )
    ):
        laws = [release.person(place, value) for place, held in enumerate(others) for value in held]
        base = together([added, *laws])
        yield from _of_laws({held: _seen(plus(base, own), release.view) for held, own in targets.items()}, others)


def _of_laws(laws: Mapping[Any, Law], others: object) -> Iterator[Pair]:
    for (a, first), (b, second) in itertools.permutations(laws.items(), 2):
        yield Pair(first, second, others, (a, b))


def _seen(messages: Law, view: Multiset | Capped) -> Law:
    if isinstance(view, Capped):
        return _capped(messages, view)
    return messages if view.most is None else processed(messages, lambda sums: _cut(sums, view.most))


def _cut(sums: int, most: int | None) -> int:
    assert most is not None
    cut, place = 0, 1
    while sums:
        sums, count = divmod(sums, BASE)
        cut, place = cut + min(count, most) * place, place * BASE
    return cut


def _capped(messages: Law, view: Capped) -> Law:
    """Add the dummies one after the other."""
    for _ in range(view.dummies):
        cases: dict[int, Fraction] = {}
        for sums, part in messages.parts.items():
            below = [y for y in range(view.reports) if sums // report(y) % BASE < view.cap]
            for y in below:
                more = Fraction(part, messages.total * len(below))
                cases[sums + report(y)] = cases.get(sums + report(y), Fraction(0)) + more
        messages = law(cases)
    return messages


def _in_order(release: Release, target: int, reports: int) -> Iterator[Pair]:
    """As `pairs`: datasets are lists, and the target may be any people of the group."""
    assert isinstance(release.view, Order)
    assert not release.sources, "an order has no place for dummies"
    order, group_of = release.view, [place for place, group in enumerate(release.groups) for _ in range(group.people)]
    everybody = range(len(group_of))
    likely = orders(len(group_of), order.ratio, order.distance)

    @cache
    def seen(values: tuple[int, ...]) -> Law:
        sent = side_by_side([release.person(group_of[i], values[i]) for i in everybody])
        found: dict[tuple[int, ...], int] = {}
        for tau, chance in likely.parts.items():
            for messages, part in sent.parts.items():
                place_of = {order.reference[i]: messages[order.reference[tau[i]]] for i in everybody}
                released = tuple(place_of[i] for i in everybody)
                found[released] = found.get(released, 0) + chance * part
        return Law(found, likely.total * sent.total)

    values = [range(len(release.groups[group_of[i]].device)) for i in everybody]
    for own in itertools.combinations([i for i in everybody if group_of[i] == target], reports):
        for first, second in itertools.product(itertools.product(*values), repeat=2):
            differ = [i for i in everybody if first[i] != second[i]]
            if differ and set(differ) <= set(own):
                yield Pair(seen(first), seen(second), first, second)


def orders(people: int, ratio: Fraction, distance: str) -> Law:
    """The law of Mallows over permutations of 0..people - 1."""
    weights: dict[Any, Fraction] = {}
    for tau in itertools.permutations(range(people)):
        wrong = (a > b for a, b in itertools.combinations(tau, 2))
        moved = (item != place for place, item in enumerate(tau))
        weights[tau] = ratio ** sum(wrong if distance == "kendall" else moved)
    whole = sum(weights.values())
    return law({tau: weight / whole for tau, weight in weights.items()})


def without_helpers(release: Release, target: int, helpers: int) -> Release:
    """What is left to an adversary to whom so many people told all they sent: it is known, and subtracted."""
    group = release.groups[target]
    left = replace(group, people=group.people - helpers)
    return replace(release, groups=(*release.groups[:target], left, *release.groups[target + 1 :]))


# --- waves of memoized reports ------------------------------------------------------------------------------------


def waves(release: Release, target: int, memory: Memory) -> Iterator[Pair]:
    """All neighbouring pairs of waves of the same people's kept reports; the target's value may change.

    When it changes, and when it returns to which earlier value, is the same in both datasets.
    """
    assert not release.sources, "nothing fresh is added to a wave"
    assert release.keep == 1, "nothing of a wave is left out"
    group = release.groups[target]
    values, shown = range(len(group.device)), isinstance(release.view, Senders)
    coin = None if memory.instantaneous is None else dict(memory.instantaneous)

    @cache
    def sent(history: tuple[int, ...]) -> Law:
        """What one person sends, wave by wave: a list of messages."""
        held = sorted(set(history))
        cases = []
        for kept in itertools.product(*(group.device[value].parts.items() for value in held)):
            memorised = {value: message for value, (message, _) in zip(held, kept, strict=True)}
            chance = math.prod(
                (Fraction(part, group.device[value].total) for value, (_, part) in zip(held, kept, strict=True)),
                start=Fraction(1),
            )
            now = [memorised[value] for value in history]
            cases.append((chance, side_by_side([Law({m: 1}, 1) if coin is None else coin[m] for m in now])))
        return mixture(cases)

    histories = [
        history
        for history in itertools.product(values, repeat=memory.waves)
        if sum(a != b for a, b in itertools.pairwise(history)) <= memory.changes
    ]
    for others in itertools.combinations_with_replacement(values, 0 if shown else group.people - 1):
        base = reduce(
            _wave_by_wave, (sent((value,) * memory.waves) for value in others), Law({(0,) * memory.waves: 1}, 1)
        )
        laws = {history: _wave_by_wave(base, sent(history)) for history in histories}
        for first, second in itertools.permutations(histories, 2):
            if _pattern(first) == _pattern(second):
                yield Pair(laws[first], laws[second], others, (first, second))


def _wave_by_wave(first: Law, second: Law) -> Law:
    """The sums of two people's messages in each wave."""
    found: dict[tuple[int, ...], int] = {}
    for one, p in first.parts.items():
        for other, q in second.parts.items():
            seen = tuple(map(int.__add__, one, other))
            found[seen] = found.get(seen, 0) + p * q
    return Law(found, first.total * second.total)


def _pattern(history: Sequence[int]) -> tuple[int, ...]:
    return tuple(history.index(value) for value in history)


# --- the answer ---------------------------------------------------------------------------------------------------


class Twin:
    """The truth about one question: exact figures, and the pair of datasets where they are attained."""

    def __init__(self, question: Question) -> None:
        self._targets = [[distinct(_of_round(each, question.memory)) for each in rounds] for rounds in question.targets]

    def delta(self, growth: Fraction) -> tuple[Fraction, Pair | None]:
        """The largest divergence, and the pair (None for several rounds).

        In several rounds the datasets of each, but not its place, are chosen in view of what was released before.
        """
        found: list[tuple[Fraction, Pair | None]] = []
        for rounds in self._targets:
            if len(rounds) == 1:
                found += [(pair.hockey_stick(growth), pair) for pair in rounds[0]]
            else:
                found += [(adaptive([_tables(each) for each in way], growth), None) for way in _ways(rounds)]
        return max(found, key=lambda one: one[0], default=(Fraction(0), None))

    def pure(self) -> Fraction | None:
        """The growth from which on delta is 0: e**epsilon of the pure guarantee; None: infinite."""
        worst = Fraction(1)
        for rounds in self._targets:
            ratio = Fraction(1)
            for each in rounds:
                ratios = [pair.largest_ratio() for pair in each]
                if None in ratios:
                    return None
                ratio *= max((one for one in ratios if one is not None), default=Fraction(1))
            worst = max(worst, ratio)
        return worst

    @property
    def work(self) -> int:
        """About how many steps one figure takes."""
        return max(
            math.prod(sum(len(pair.first.parts) for pair in each) for each in rounds) * math.factorial(len(rounds))
            for rounds in self._targets
        )


def _of_round(each: Round, memory: Memory | None) -> Iterator[Pair]:
    if memory is not None:
        assert (each.reports, each.helpers) == (1, 0), "waves are for one report"
        return waves(each.release, each.target, memory)
    return pairs(without_helpers(each.release, each.target, each.helpers), each.target, each.reports)


def distinct(given: Iterable[Pair]) -> list[Pair]:
    """The pairs whose laws differ from each other's: outcomes of one likelihood ratio are one outcome."""
    found: dict[object, Pair] = {}
    for pair in given:
        merged = _by_ratio(pair)
        key = tuple(
            sorted((Fraction(p, merged.first.total), Fraction(q, merged.second.total)) for p, q in _joint(merged))
        )
        found.setdefault(key, merged)
    return list(found.values())


def _joint(pair: Pair) -> list[tuple[int, int]]:
    outcomes = {**pair.first.parts, **pair.second.parts}
    return [(pair.first.parts.get(outcome, 0), pair.second.parts.get(outcome, 0)) for outcome in outcomes]


def _by_ratio(pair: Pair) -> Pair:
    """Put outcomes of the same likelihood ratio together."""
    first: dict[object, int] = {}
    second: dict[object, int] = {}
    for p, q in _joint(pair):
        common = math.gcd(p, q)
        ratio = (p // common, q // common)
        if p:
            first[ratio] = first.get(ratio, 0) + p
        if q:
            second[ratio] = second.get(ratio, 0) + q
    return replace(pair, first=Law(first, pair.first.total), second=Law(second, pair.second.total))


Table = tuple[tuple[Fraction, Fraction], ...]


def _tables(each: Sequence[Pair]) -> list[Table]:
    return [
        tuple((Fraction(p, pair.first.total), Fraction(q, pair.second.total)) for p, q in _joint(pair) if p)
        for pair in each
    ]


def _ways(rounds: Sequence[list[Pair]]) -> list[list[list[Pair]]]:
    """All orders of the rounds."""
    ways: list[list[list[Pair]]] = []
    for way in itertools.permutations(rounds):
        if not any(all(a is b or a == b for a, b in zip(way, other, strict=True)) for other in ways):
            ways.append(list(way))
    return ways


def adaptive(rounds: Sequence[list[Table]], growth: Fraction) -> Fraction:
    """The largest divergence if each round's pair of datasets may depend on what was released before.

    With p and q the probabilities of the past: the largest sum over outcomes of what the rest makes of it.
    """

    @cache
    def rest(place: int, level: Fraction) -> Fraction:
        if place == len(rounds):
            return max(Fraction(0), 1 - level)
        sums = (sum((p * rest(place + 1, level * q / p) for p, q in table), Fraction(0)) for table in rounds[place])
        return max(sums, default=max(Fraction(0), 1 - level))

    return rest(0, growth)
