"""Every rule of the accountant against the slow twin: both sides are enumerated for drawn questions.

A rule that equates must agree, and one that bounds must not be below. Broken rules are found.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pytest

import hushuffle as hs
from drawn_releases import Device, Drawn, binomial, draw
from hushuffle.curves.question import Between, Feature, Mean, Memory, Question, Rounds, Rule, Same, Worst
from hushuffle.curves.rules import RULES, batches, count_seen, memoized, simple
from hushuffle.curves.search import LAWS, solve, steps, trail
from hushuffle.errors import HushuffleError
from hushuffle.mechanisms.release import Release
from hushuffle.mechanisms.shufflers import Reveals, Source, Trials
from oracles import releases as twin

GROWTHS: Final = (Fraction(1), Fraction(5, 4), Fraction(3))
SEEDS: Final = 12_000
LEAST: Final = 12
"""Questions on which each rule is tested at least."""

HAIR: Final = Fraction(1, 10**12)
"""Relative: numbers of dummies have probabilities in units of 2**-64."""

_WORK: Final = 8_000


class TooMuchError(Exception):
    """The twin has no words for this release, or would take too long."""


def in_words_of_the_twin(release: Release, drawn: Drawn) -> twin.Release:
    """The release as the twin reads it; what a device does is looked up in the drawn description."""
    devices = {id(device.mechanism): device for device in drawn.devices}
    again = drawn.question.memory.instantaneous if drawn.question.memory else None
    if again is not None:
        coin = tuple(tuple(Fraction(law.parts.get(m, 0), law.total) for m, _ in again) for _, law in again)
        devices[id(drawn.instantaneous)] = replace(drawn.devices[0], mechanism=drawn.instantaneous, rows=coin)
        joint = release.groups[0].device
        if id(joint) not in devices:  # both randomizers as one matrix
            permanent = devices[id(Release.of(drawn.protocol).groups[0].device)]
            rows = _all_waves(permanent.rows, coin, joint.channel().matrix.shape[1])
            devices[id(joint)] = replace(drawn.devices[0], rows=rows)
    summed = release.view is Reveals.SUMS
    first: Device = devices[id(release.groups[0].device)]
    capped = release.view is Reveals.CAPPED_MULTISET
    own = tuple(_source(source, first, release.n) for source in release.sources if source.from_people)
    groups = tuple(
        twin.Group(group.people, devices[id(group.device)].laws(summed=summed), own) for group in release.groups
    )
    added = tuple(_source(source, first, 1) for source in release.sources if not source.from_people and not capped)
    view: Any = {
        Reveals.MULTISET: twin.Multiset(),
        Reveals.SUMS: twin.Multiset(),
        Reveals.SENDERS: twin.Senders(),
        Reveals.CAPPED_MULTISET: twin.Capped(release.n, release.dummies, len(first.rows[0])),
        Reveals.NOISY_ORDER: drawn.question.targets[0][0].release.view,
    }[release.view]
    return twin.Release(groups, added, Fraction(release.keep), view)


def _all_waves(
    permanent: Sequence[Sequence[Fraction]], coin: Sequence[Sequence[Fraction]], columns: int
) -> tuple[tuple[Fraction, ...], ...]:
    """How often each report occurs in all waves, for each value; the number of waves follows from that of columns."""
    reports = range(len(coin[0]))
    times = next(times for times in itertools.count(1) if math.comb(times + len(reports) - 1, times) == columns)
    each = [defaultdict[tuple[int, ...], Fraction](Fraction) for _ in coin]
    for held, row in enumerate(coin):
        for sent in itertools.product(reports, repeat=times):
            each[held][tuple(sorted(sent))] += math.prod((row[y] for y in sent), start=Fraction(1))
    kinds = list(itertools.combinations_with_replacement(reports, times))
    return tuple(
        tuple(sum((p * law[kind] for p, law in zip(row, each, strict=True)), Fraction(0)) for kind in kinds)
        for row in permanent
    )


def _source(source: Source, device: Device, people: int) -> twin.Source:
    if source.law.endless:
        raise TooMuchError
    if isinstance(source.count, Trials):
        count = binomial(source.count.number // people, Fraction(source.count.p))
    else:
        count = twin.law(
            dict(
                zip(source.table.numbers.tolist(), (Fraction(part, 2**64) for part in source.table.parts), strict=True)
            )
        )
    if source.each:
        return twin.Source(count, each=tuple(map(twin.report, range(len(device.rows)))))
    return twin.Source(count, device.dummy_law())


def rounds(question: Question, drawn: Drawn, times: int = 1) -> twin.Question:
    helpers = 0
    if question.release.honest is not None:
        helpers = question.release.n - max(question.release.honest, question.reports)
    release = in_words_of_the_twin(question.release, drawn)
    times *= 1 if question.memory is not None else question.rounds
    each = [(twin.Round(release, target, question.reports, helpers),) * times for target in question.targets]
    if question.memory is None:
        return twin.Question(tuple(each))
    if question.features & {Feature.ORDER, Feature.CAP}:  # in the twin, waves show multisets or senders
        raise TooMuchError
    again = drawn.question.memory.instantaneous if drawn.question.memory else None
    memory = twin.Memory(question.rounds, again if question.memory.again else None, question.memory.values - 1)
    return twin.Question(tuple(each), memory)


class Asked:
    """Divergences of a question and of what a rule makes of it, from the enumeration."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn

    def delta(self, question: Question, growth: Fraction, times: int = 1) -> Fraction:
        enumerated = twin.Twin(rounds(question, self.drawn, times))
        if times > 1 and enumerated.work > _WORK:
            raise TooMuchError
        return enumerated.delta(growth)[0]

    def mean(self, mean: Mean, growth: Fraction) -> Fraction:
        """The mean over the number at one pair of datasets, the same for all numbers; the worst pair."""
        total: list[Fraction] = []
        for number, part in zip(mean.law.numbers.tolist(), mean.law.parts, strict=True):
            question = mean.at(number)
            (target,) = question.targets
            release = in_words_of_the_twin(question.release, self.drawn)
            found = [pair.hockey_stick(growth) for pair in twin.pairs(release, target, question.reports)]
            total = total or [Fraction(0)] * len(found)
            total = [sum_ + Fraction(part, 2**64) * each for sum_, each in zip(total, found, strict=True)]
        return max(total, default=Fraction(0))

    def ends(self, rule: Rule, question: Question, growth: Fraction) -> tuple[Fraction, Fraction]:
        """Bounds on the divergence of the question according to the rule."""
        made = rule.reduce(question)
        if isinstance(made, Between):
            return self.delta(made.below, growth), self.delta(made.above, growth)
        if isinstance(made, Mean):
            upper = self.mean(made, growth)
        elif isinstance(made, Rounds):
            upper = self.delta(made.question, growth, made.times)
        else:
            assert isinstance(made, Same | Worst)
            upper = max(self.delta(part, growth) for part in made.parts)
        return upper if rule.exact else Fraction(0), upper


def asked_about(drawn: Drawn) -> Question:
    """The question that was drawn; rounds of two different releases are not one question."""
    memory, same = drawn.question.memory, len(set(map(id, drawn.rounds)))
    if memory is None:
        return Question.of(drawn.protocol, drawn.reports, rounds=len(drawn.rounds) if same == 1 else 1)
    values = min(memory.changes, memory.waves - 1) + 1
    kept = Memory(values=values, again=drawn.instantaneous)
    return Question.of(drawn.protocol, drawn.reports, rounds=memory.waves, memory=kept)


def size(question: Question) -> tuple[int, int, int]:
    """What every rule must make smaller: features (some weigh less, memory more), targets, people."""
    light = {Feature.SENDERS, Feature.RANDOM, Feature.ROUNDS}
    weight = 2 * len(question.features) - len(question.features & light) + (question.memory is not None)
    return weight, len(question.targets), question.release.n


def applying(rule: Rule, seeds: range) -> Iterator[tuple[Drawn, Question]]:
    """Drawn questions, and questions that rules make of them, to which the rule applies."""
    for seed in seeds:
        try:
            drawn = draw(seed)
            waiting = [asked_about(drawn)]
        except HushuffleError:
            continue
        while waiting:
            question = waiting.pop()
            if rule.covers(question):
                yield drawn, question
            for other in RULES:
                if other.covers(question):
                    parts = other.reduce(question).parts
                    assert all(size(part) < size(question) for part in parts), f"{other.name} makes nothing simpler"
                    waiting += parts


def checked(rule: Rule, seeds: range, *, most: int = LEAST + 2) -> tuple[int, list[str]]:
    """Number of questions that tell the direction of the rule (for a bound: it is not attained), and where it is wrong.

    Equations are told by every question. It stops where the rule is wrong.
    """
    tested, wrong = 0, []
    for drawn, question in applying(rule, seeds):
        asked, telling = Asked(drawn), rule.exact
        try:
            for growth in GROWTHS:
                truth = asked.delta(question, growth)
                low, high = asked.ends(rule, question, growth)
                telling = telling or truth < high
                if not low * (1 - HAIR) - HAIR <= truth <= high * (1 + HAIR) + HAIR:
                    wrong.append(f"seed {drawn.seed}, growth {growth}: {float(low)} <= {float(truth)} <= {float(high)}")
        except TooMuchError:
            continue
        tested += telling
        if wrong or tested >= most:
            break
    return tested, wrong


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_both_sides_of_a_rule_are_as_it_says(rule: Rule) -> None:
    tested, wrong = checked(rule, range(SEEDS))
    assert not wrong
    assert tested >= LEAST, f"only {tested} questions"


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_both_sides_of_a_rule_are_as_it_says_for_more_questions(rule: Rule) -> None:
    assert checked(rule, range(SEEDS), most=100)[1] == []


def _whole_sources(question: Question) -> Rounds:
    """Several reports, with the messages of all in each batch: the reduction of an earlier version."""
    made = batches.RULE.reduce(question)
    assert isinstance(made, Rounds)
    return replace(made, question=made.question.about(sources=question.release.sources))


def _messages_of_all(question: Question) -> Same:
    """Colluding people are left out, and their messages are not."""
    made = simple.COLLUDING.reduce(question)
    assert isinstance(made, Same)
    sources = tuple(replace(source, from_people=False) for source in question.release.sources)
    return Same(question=made.question.about(sources=sources))


def _reversed(question: Question) -> Between:
    made = simple.ORDER.reduce(question)
    assert isinstance(made, Between)
    return Between(above=made.below, below=made.above)


def _at_the_median(question: Question) -> Same:
    (part,) = count_seen.RULE.reduce(question).parts
    return Same(question=part)


def _one_report(question: Question) -> Between:
    """Values change, and only one of the memoized reports is seen."""
    ends = memoized.REVEALED.reduce(question)
    assert isinstance(ends, Between)
    return replace(ends, above=replace(ends.above, rounds=1))


def _one_fresh_round(question: Question) -> Between:
    ends = memoized.FRESH.reduce(question)
    assert isinstance(ends, Between)
    return replace(ends, above=replace(ends.above, rounds=1))


@pytest.mark.parametrize(
    ("rule", "reduce"),
    [
        (batches.RULE, _whole_sources),
        (simple.COLLUDING, _messages_of_all),
        (simple.ORDER, _reversed),
        (count_seen.RULE, _at_the_median),
        (memoized.REVEALED, _one_report),
        (memoized.FRESH, _one_fresh_round),
    ],
    ids=[
        "sources not divided",
        "messages of colluding people",
        "the wrong way round",
        "median instead of mean",
        "reports before a change left out",
        "one round for all",
    ],
)
def test_a_broken_rule_is_found(rule: Rule, reduce: Callable[[Question], Any]) -> None:
    _, wrong = checked(replace(rule, reduce=reduce), range(SEEDS))
    assert wrong


def _the_question_itself(question: Question) -> Between:
    """The smaller crowd as a lower bound, and the question as its own upper bound."""
    (group,) = question.release.groups
    half = question.about(groups=(replace(group, people=-(-group.people // 2)),))
    return Between(above=question, below=half)


def test_a_rule_that_makes_nothing_simpler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(
        name="circular",
        statement="",
        page="",
        on=frozenset(),
        applies=lambda question: len(question.release.groups) == 1 and question.release.n > 1,
        reduce=_the_question_itself,
    )
    monkeypatch.setitem(globals(), "RULES", (*RULES, rule))
    with pytest.raises(AssertionError, match="circular makes nothing simpler"):
        checked(rule, range(200))


def test_the_search_uses_every_rule_and_every_law() -> None:
    used = set()
    for seed in range(4_000):
        try:
            drawn = draw(seed)
            waiting = [asked_about(drawn)]
            while waiting:
                question = waiting.pop()
                for answer in steps(question):
                    used.add(answer.name)
                    waiting += answer.relation(question)[1]
        except HushuffleError:
            continue
    assert {answer.name for answer in (*RULES, *LAWS)} - used == {"shares of a sum"}  # split-and-mix is not drawn


def test_a_rule_that_bounds_gives_no_lower_bound() -> None:
    """Without a curve of its own, a rule with `exact=False` gives the upper bound of the simpler question only."""
    rule = replace(simple.OWN_MESSAGES, exact=False)
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.BlanketMessages(p=0.5), n=20)
    curve, same = rule.curve(Question.of(survey), solve), hs.dp.epsilon(survey, delta=1e-2)
    bound = curve.epsilon(1e-2)
    assert (bound.kind, bound.lower, bound.upper) == ("upper", 0.0, same.upper)
    assert (curve.delta(0.1).kind, curve.delta(0.1).upper) == ("upper", hs.dp.delta(survey, epsilon=0.1).upper)
    assert curve.delta(2.0).upper == 0.0
    assert curve.epsilon(0.0).upper == hs.dp.epsilon(survey, delta=0.0).upper


@pytest.mark.parametrize(("seeds", "least"), [(500, 100), pytest.param(1_500, 300, marks=pytest.mark.slow)])
def test_the_twin_reads_the_release_of_the_accountant(seeds: int, least: int) -> None:
    """What is drawn for the twin and what the accountant is asked are one question, read from one `Release`."""
    compared = 0
    for seed in range(seeds):
        try:
            drawn = draw(seed)
            question = asked_about(drawn)
            trail(question)  # raises for what has no answer
            read = rounds(question, drawn)
        except (HushuffleError, TooMuchError):
            continue
        if len(set(map(id, drawn.rounds))) == 2:
            continue
        one, other = twin.Twin(read), twin.Twin(drawn.question)
        if max(one.work, other.work) > _WORK:
            continue
        compared += 1
        for growth in GROWTHS:
            first, second = one.delta(growth)[0], other.delta(growth)[0]
            assert abs(first - second) <= HAIR, drawn.seed
    assert compared > least, compared
