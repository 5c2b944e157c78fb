"""What the program prints for a written specification holds the truth by enumeration, several features at once."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pytest

import hushuffle as hs
from drawn_releases import Device, Figure, Shuffled, of_channel, response, shuffled, subset, unary, wrong
from hushuffle.assessment.calibrate import calibrate
from hushuffle.assessment.choose import choose
from hushuffle.assessment.explore import explore
from hushuffle.errors import HushuffleError
from hushuffle.specification import parse
from oracles import releases as twin

pytestmark = pytest.mark.usefixtures("no_charts")
SHUFFLERS: Final = ("uniform", "no shuffle", "dummies", "blanket messages", "fakes", "sums")
TIMES: Final = ("once", "once", "rounds", "memoized", "changes")


@dataclass(frozen=True)
class Written:
    """A specification as text, and what the twin needs to know of it."""

    text: str
    device: Device
    made: Shuffled
    people: int
    reports: int
    rounds: int
    memory: twin.Memory | None
    features: frozenset[str]
    kind: str
    state: tuple[Any, ...]

    def truth(self, device: Device | None = None) -> twin.Twin:
        own, made = (self.device, self.made) if device is None else (device, self.shuffled_with(device))
        group = twin.Group(self.people * self.reports, own.laws(summed=made.summed), made.own)
        release = twin.Release((group,), made.sources, made.keep, made.view)
        each = twin.Round(release, 0, self.reports, made.helpers)
        again = 1 if self.memory is not None else self.rounds
        return twin.Twin(twin.Question(((each,) * again,), self.memory))

    def shuffled_with(self, device: Device) -> Shuffled:
        """The same shuffler in the twin's words where the device has other noise: so have its dummies."""
        rng = random.Random()  # noqa: S311
        rng.setstate(self.state)
        return shuffled(rng, self.kind, device, self.people * self.reports, self.reports)

    def with_epsilon(self, local_epsilon: float) -> Device:
        """The device with another local epsilon."""
        if self.device.kind == "one-hot":
            return unary(len(self.device.rows), Fraction(math.exp(local_epsilon / 2)), "symmetric")
        changed = self.device.mechanism.with_epsilon(local_epsilon)
        return of_channel(changed, "with another epsilon", uniform=self.device.kind == "randomized response")

    def among(self, people: int, dummies: int, local_epsilon: float) -> twin.Twin:
        """The same release of other numbers, where nothing but dummies is added to the reports."""
        device = self.with_epsilon(local_epsilon)
        sources = (twin.Source(twin.law({dummies: 1}), device.dummy_law()),) if dummies else ()
        release = twin.Release((twin.Group(people, device.laws(summed=False)),), sources, view=self.made.view)
        again = 1 if self.memory is not None else self.rounds
        return twin.Twin(twin.Question(((twin.Round(release, 0, self.reports),) * again,), self.memory))


def write(seed: int, *, targets: str = "", shufflers: tuple[str, ...] = SHUFFLERS) -> Written:
    """A survey with several features at once, of so few people that all datasets can be enumerated."""
    rng = random.Random(seed)  # noqa: S311
    kind, times = rng.choice(shufflers), rng.choice(TIMES)
    k, people = rng.choice([2, 2, 3]), rng.randint(2, 3)
    growth = rng.choice([Fraction(3, 2), Fraction(2), Fraction(4)])
    reports = rng.choice([1, 1, 2]) if people == 2 and k == 2 else 1
    if kind == "fakes":
        device, written = response(k, None), 'kind = "randomized-response", epsilon = "inf"'
    elif kind == "sums" or rng.random() < 0.2:
        k = 2
        device, written = unary(k, growth, "symmetric"), f'kind = "unary-encoding", epsilon = {2 * math.log(growth)!r}'
        written += ', encoding = "symmetric"'
    elif rng.random() < 0.2:
        device, written = subset(k, 1, growth), f'kind = "subset-selection", w = 1, epsilon = {math.log(growth)!r}'
    else:
        device, written = response(k, growth), f'kind = "randomized-response", epsilon = {math.log(growth)!r}'
    state = rng.getstate()
    made = shuffled(rng, kind, device, people * reports, reports)
    rounds = 1 if times == "once" else 2
    memory, more = None, ""
    if times in ("memoized", "changes"):
        changes = int(times == "changes")
        memory, more = twin.Memory(rounds, None, changes), f"memoised = true\nchanges = {changes}\n"
    text = f"""
        rounds = {rounds}
        {more}
        population = {{ n = {people * reports}, k = {k}{f", reports_per_person = {reports}" if reports > 1 else ""} }}
        randomizer = {{ {written} }}
        shuffler = {{ {shuffler_text(made.shuffler)} }}
        targets = {{ delta = 0.0137{targets} }}
    """
    features = made.features | {times, device.kind, kind} | ({"several reports"} if reports > 1 else set())
    return Written(text, device, made, people, reports, rounds, memory, frozenset(features), kind, state)


def shuffler_text(shuffler: Any) -> str:
    if isinstance(shuffler, hs.Scrambler):
        return f'kind = "scrambler", dummies = {shuffler.dummies}'
    if isinstance(shuffler, hs.BlanketMessages):
        return (
            f'kind = "blanket-messages", p = {shuffler.p!r}, trials = {shuffler.trials}, honest = {shuffler.honest!r}'
        )
    if isinstance(shuffler, hs.FakesPerValue):
        return f'kind = "fakes-per-value", p = {shuffler.p!r}, honest = {shuffler.honest!r}'
    if isinstance(shuffler, hs.SecureAggregation):
        noise = f"coins = {shuffler.coins}, servers = {shuffler.servers}, honest = {shuffler.honest}"
        return f'kind = "secure-aggregation", {noise}'
    return f'kind = "{"none" if isinstance(shuffler, hs.NoShuffle) else "uniform"}"'


def printed(report: Any) -> Iterator[Figure]:
    """The central epsilon of an assessment."""
    for finding in report.findings:
        if finding.question == "central-dp":
            yield Figure("assess", "epsilon", 0.0137, finding.bound.lower, finding.bound.upper)


@dataclass
class Tally:
    asked: int
    refused: Counter[str]
    features: set[tuple[str, str]]
    wrong: list[str]


def assessed(seeds: Sequence[int], *, verb: str) -> Tally:
    tally = Tally(0, Counter(), set(), [])
    shufflers = ("uniform", "no shuffle", "dummies") if verb == "explore" else SHUFFLERS
    for seed in seeds:
        survey = write(seed, targets="" if verb in ("assess", "explore") else ", epsilon = 0.9", shufflers=shufflers)
        try:
            found = list(ASKED[verb](survey))
        except HushuffleError as refusal:
            tally.refused[f"{type(refusal).__name__}: {str(refusal)[:60]}"] += 1
            continue
        for figure, truth in found:
            tally.asked += 1
            tally.features.update(itertools.combinations(sorted(survey.features), 2))
            tally.wrong += [f"{verb} {seed}: {words}: {survey.text}" for words in wrong(figure, truth)]
    return tally


def _assess(survey: Written) -> Iterator[tuple[Figure, twin.Twin]]:
    for figure in printed(hs.assess(parse(survey.text))):
        yield figure, survey.truth()


def _calibrate(survey: Written) -> Iterator[tuple[Figure, twin.Twin]]:
    """What is proposed is drawn again, and has the figure that is printed beside it."""
    choice = calibrate(parse(survey.text))
    assert choice.written is not None
    for point in (choice.written, choice.proposed):
        device = survey.with_epsilon(point.local_epsilon)
        yield Figure("calibrate", "epsilon", 0.0137, point.central.lower, point.central.upper), survey.truth(device)


def _choose(survey: Written) -> Iterator[tuple[Figure, twin.Twin]]:
    people, k = survey.people, len(survey.device.rows)
    wished = {"population": {"n": people, "k": k}, "targets": {"delta": 0.0137, "epsilon": 0.9, "local_epsilon": 3.0}}
    for row in choose(wished).rows:
        specification = parse(row.specification)
        shuffler = specification.shuffler.build()
        if not isinstance(shuffler, hs.UniformShuffle):
            continue
        device = of_channel(specification.randomizer.build(k=k), "chosen")
        release = twin.Release((twin.Group(people, device.laws(summed=False)),))
        (figure,) = printed(hs.assess(specification))
        yield figure, twin.Twin(twin.Question(((twin.Round(release),),)))


def _explore(survey: Written) -> Iterator[tuple[Figure, twin.Twin]]:
    """Points of the grid with the deployment's own values, among so few people that the twin can enumerate them."""
    k = len(survey.device.rows)
    (central,) = (row for row in explore(parse(survey.text)).adversaries if row.key == "central")
    truths = dict[tuple[int, float, float], twin.Twin]()
    for point in central.points:
        place = point.people, point.dummies, point.epsilon
        if point.k != k or point.people > 4 or point.dummies > 2:
            continue
        if place not in truths:
            truths[place] = survey.among(point.people, int(point.dummies), point.epsilon)
        yield Figure("explore", "epsilon", point.delta, point.bound.lower, point.bound.upper), truths[place]


ASKED: Final = {"assess": _assess, "calibrate": _calibrate, "choose": _choose, "explore": _explore}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures do not rest on charts, scenarios and the number of stops of sliders, which take most of the time."""
    monkeypatch.setattr("hushuffle.assessment.explore._PER_DECADE", 1)
    monkeypatch.setattr("hushuffle.assessment.explore._EPSILONS", (1.0, 2.0))
    monkeypatch.setattr("hushuffle.assessment.explore._OTHER_K", ())


@pytest.mark.parametrize(
    ("verb", "seeds", "least"), [("assess", range(60), 35), ("calibrate", range(7), 6), ("explore", (0, 2, 7), 50)]
)
def test_what_a_verb_prints_of_a_specification_holds_the_truth(verb: str, seeds: Sequence[int], least: int) -> None:
    tally = assessed(seeds, verb=verb)
    assert tally.wrong == []
    assert tally.asked >= least, tally.refused


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
@pytest.mark.parametrize("verb", ASKED)
def test_thousands_of_specifications(verb: str, block: int) -> None:
    size = {"assess": 100, "calibrate": 30, "choose": 5, "explore": 3}[verb]
    assert assessed(range(1000 + size * block, 1000 + size * (block + 1)), verb=verb).wrong == []
