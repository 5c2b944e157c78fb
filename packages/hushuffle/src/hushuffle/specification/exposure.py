"""`Exposure`: how many reports one person sends, in how many rounds; `Column`: what is exposed, and its guarantee."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.question import Question
from hushuffle.curves.search import solve, trail
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.model import Bound, number
from hushuffle.numerics.exact import times_upwards
from hushuffle.questions import dp
from hushuffle.questions.dp.composition import wave_question
from hushuffle.specification import People, Specification, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.order_setup import coins


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The number of reports of one person: at most `reports` in each of `rounds` rounds, all with fresh randomness.

    >>> print(Exposure(reports=5, rounds=12).words)
    all 12 rounds, with up to 5 reports of each person in each
    """

    reports: int = 1
    rounds: int = 1
    changes: int = 0
    values: int = 1

    fixed_dummies: ClassVar[str] = ""
    """Why the number of dummies cannot be varied; "" if it can."""

    @classmethod
    def of(cls, specification: Specification, *, k: int = sys.maxsize) -> Exposure:
        reports, rounds = specification.population.most, specification.rounds or 1
        if not specification.memoised:
            return cls(reports=reports, rounds=rounds)
        changes = specification.changes or 0
        return Memoized(reports=reports, rounds=rounds, changes=changes, values=min(1 + changes, k))

    @property
    def alone(self) -> bool:
        return self.reports == self.rounds == 1

    @property
    def total(self) -> int:
        """The largest number of reports of one person that are drawn with fresh randomness."""
        return self.reports * self.composed

    @property
    def drawn_again(self) -> bool:
        """Whether a person has several memoized reports; shuffling does not hide that these reports differ."""
        return False

    @property
    def composed(self) -> int:
        """The number of rounds that must be composed, as if all reports were fresh, to cover all rounds.

        Raises `SpecificationError` if reports are memoized and values may change, since there is no such number.
        """
        return self.rounds

    @property
    def words(self) -> str:
        """The reports and rounds that the guarantee covers, in words."""
        each = f"up to {self.reports:,} reports of each person"
        if self.rounds == 1:
            return each if self.reports > 1 else "one report of each person"
        return f"all {self.rounds:,} rounds{f', with {each} in each' if self.reports > 1 else ''}"

    @property
    def stays(self) -> str:
        """A phrase for how often a value with memoized reports changes: "never changes", "changes once at most"."""
        if self.changes == 0:
            return "never changes"
        return "changes once at most" if self.changes == 1 else f"changes {self.changes:,} times at most"

    @property
    def condition(self) -> str:
        """The condition on values under which memoized reports have their figures, as the end of a topic, or ""."""
        return ""

    @property
    def public(self) -> str:
        """A sentence on facts about a person's value that are public because reports are memoized, or ""."""
        return ""

    stored: ClassVar[tuple[str, ...]] = ()
    """What respondents read about memoized reports."""

    shown: ClassVar[tuple[str, ...]] = ()
    """What memoized reports do not protect."""

    def assumed(self, people: int) -> tuple[tuple[str, str], ...]:  # noqa: ARG002 - memoized reports assume more
        """What is assumed in addition, by the key of an assumption."""
        return ()

    taking_part: ClassVar[str] = "take part"
    """A verb phrase for the people among whom a report hides."""

    @property
    def answer(self) -> str:
        """What an adversary guesses from all reports of one person."""
        return "one of your answers"

    @property
    def one_round(self) -> Exposure | None:
        """The exposure in one of several rounds; None: it is that in all rounds."""
        return replace(self, rounds=1) if self.rounds > 1 else None

    @property
    def drawn(self) -> str:
        """How the reports of several rounds are drawn, in words; "" for one round."""
        return "fresh reports in every round" if self.rounds > 1 else ""

    @property
    def facts(self) -> dict[str, str]:
        """The number of rounds, and how the reports of several rounds are drawn."""
        return {"rounds": f"{self.rounds:,}", "reports": "one round" if self.rounds == 1 else self.each_round}

    @property
    def each_round(self) -> str:
        """How the reports of a round differ from those of the last."""
        return "fresh in every round"

    @property
    def seen(self) -> str:
        """The beginning of a sentence, which says what an observer of the release sees."""
        if self.alone:
            return "the release"
        return f"the releases of {self.words}," if self.rounds > 1 else f"a release with {self.words}"

    @property
    def named(self) -> str:
        """Subject and verb of a sentence about reports whose sender is known."""
        if self.alone:
            return "Even with your name on it, your report changes"
        reports = f"all {self.total:,} {'different ' if self.drawn_again else ''}reports that you may send"
        return f"Even with your name on them, {reports} change"

    def once(self, protocol: Protocol) -> Protocol | PrivacyCurve:
        """One round as a protocol or privacy curve for composition; it covers all reports of one person."""
        return protocol if self.reports == 1 else dp.per_person(protocol, reports=self.reports)

    def question(self, protocol: Protocol | MixedProtocol) -> Question:
        """The question about all reports of one person together."""
        return Question.of(protocol, self.reports, rounds=self.rounds)

    def guarantee(self, protocol: Protocol | MixedProtocol, *, delta: float) -> tuple[Bound, str]:
        """Central epsilon (nats) of all reports of one person together, and the argument that proves it."""
        question = self.question(protocol)
        curve = solve(question)
        return curve.epsilon(delta), f"{curve.proof}. Theorems: {trail(question)}"

    def curve(self, protocol: Protocol | MixedProtocol) -> PrivacyCurve:
        """The privacy curve of all reports of one person together."""
        return solve(self.question(protocol))

    def epsilon(self, protocol: Protocol | MixedProtocol, *, delta: float, tolerance: float = 0.0) -> Bound:
        """Central epsilon (nats) of all reports of one person together; `tolerance` as for `dp.epsilon`."""
        curve = self.curve(protocol)
        return curve.within(delta, tolerance) if tolerance else curve.epsilon(delta)

    def change_shows(self, protocol: Protocol) -> Bound | None:  # noqa: ARG002 - memoized reports show changes
        """The probability that the releases of two rounds show a change of one value; None: fresh reports hide it."""
        return None

    def memoized(self, k: int) -> tuple[Exposure, ...]:
        """Memoized reports of k values in the same rounds: without changes, with one, and with the `changes`."""
        counts = sorted({0, 1, self.changes})
        return tuple(
            Memoized(reports=self.reports, rounds=self.rounds, changes=each, values=min(each + 1, k)) for each in counts
        )

    def compared_with_fresh(self, k: int) -> tuple[Exposure, ...]:  # noqa: ARG002 - memoized reports depend on it
        """What the report on these reports compares with fresh reports."""
        return ()

    def together(self, protocols: Sequence[Protocol], *, delta: float) -> Bound:
        """Central epsilon (nats) of all columns together; memoized reports require a single column."""
        return dp.compose([(self.once(protocol), self.rounds) for protocol in protocols], delta=delta)

    def local(self, protocol: Protocol | MixedProtocol) -> Bound:
        """Local epsilon (nats) of all reports of one person, which is the sum over the reports."""
        single = dp.local_epsilon(protocol, reports_per_person=self.reports)
        return Bound.exact(times_upwards(single.upper, self.total // self.reports), unit="nats")


@dataclass(frozen=True, kw_only=True)
class Memoized(Exposure):
    """The reports of one person that are not fresh.

    A person has one memoized report for each of at most `values` values, and sends the report of the current value in
    every round; the value changes at most `changes` times.

    >>> print(Memoized(rounds=12, changes=1).words)
    all 12 rounds, for people whose value changes once at most
    """

    fixed_dummies: ClassVar[str] = "Memoized reports are analysed only with the number of dummies in the specification."

    @property
    def total(self) -> int:
        return self.reports * (self.values if self.drawn_again else 1)

    @property
    def drawn_again(self) -> bool:
        return self.changes > 0

    @property
    def composed(self) -> int:
        if self.drawn_again:
            hint = f"A local epsilon of targets.epsilon / {self.total:,} meets the target for any number of people."
            unfit("changes", "must be 0 for this command", f"{self.changes:,}", hint)
        return 1

    @property
    def words(self) -> str:
        return super().words if self.rounds == 1 else f"all {self.rounds:,} rounds, for people whose value {self.stays}"

    @property
    def condition(self) -> str:
        often = "once" if self.changes == 1 else f"{self.changes:,} times"
        return f", if no value changes more than {often}" if self.changes else ", if values never change"

    @property
    def public(self) -> str:
        if self.changes == 0:
            return " The value never changes, and this is public."
        return f" It {self.stays}; the rounds in which it changes or returns to an earlier value are public, too."

    stored: ClassVar[tuple[str, ...]] = (
        "It stores the result and sends it every time. If your answer changes, it draws a new result, and a "
        "comparison of two releases may reveal the change.",
    )
    shown: ClassVar[tuple[str, ...]] = (
        "Whether a person's value changes, and when: reports are memoized, so two releases show it.",
    )

    def assumed(self, people: int) -> tuple[tuple[str, str], ...]:
        everyone = (
            f" All {people:,} people take part in every round, and their values stay: people who join, leave or change "
            "their value do not protect others."
        )
        stored = " They memoize one report for each value, and send the same report whenever the person has this value."
        value = f" Each person's value {self.stays}."
        return ("participation", everyone), ("devices", stored), ("no_repeats", value)

    taking_part: ClassVar[str] = "take part in all rounds and keep their values"

    @property
    def answer(self) -> str:
        return super().answer if self.changes else "your answer"

    @property
    def one_round(self) -> None:
        return None

    @property
    def drawn(self) -> str:
        return f"memoized reports, for people whose value {self.stays}" if self.rounds > 1 else ""

    @property
    def each_round(self) -> str:
        return f"memoized, value {self.stays}"

    @property
    def named(self) -> str:
        if self.changes or self.alone:
            return super().named
        return "Even with your name on it, the report that you send every time changes"

    def question(self, protocol: Protocol | MixedProtocol) -> Question:
        return wave_question(protocol, self.rounds, changes=self.values - 1)

    def change_shows(self, protocol: Protocol) -> Bound:
        return dp.change_shows(protocol)

    def compared_with_fresh(self, k: int) -> tuple[Exposure, ...]:
        return self.memoized(k)

    def together(self, protocols: Sequence[Protocol], *, delta: float) -> Bound:
        return self.epsilon(protocols[0], delta=delta)


ONCE: Final = Exposure()


class Column:
    """One column of a deployment; the people are read once, from data relative to `folder`."""

    def __init__(self, specification: Specification, folder: Path) -> None:
        self.specification: Final = specification
        self.folder: Final = folder
        self.delta: Final = specification.targets.delta

    @cached_property
    def people(self) -> People:
        """The people; which records of a person are kept is as random as the rest of the run."""
        return self.specification.population.read(self.folder, rng=coins(self.specification.run.seed))

    @cached_property
    def exposure(self) -> Exposure:
        return Exposure.of(self.specification, k=self.people.k)

    @cached_property
    def protocol(self) -> Protocol:
        """Raises `UnsupportedProtocolError` for a Mallows shuffle, which is computed from data."""
        return self.behind(None)

    def behind(self, shuffler: Shuffler | None) -> Protocol:
        """Return the protocol with another shuffler (None: that of the specification)."""
        return build_protocol(self.specification, n=self.people.n, k=self.people.k, shuffler=shuffler)

    def central(self, protocol: Protocol) -> Bound:
        """Central epsilon (nats) of all reports of one person together, at the delta of the targets."""
        return self.exposure.epsilon(protocol, delta=self.delta)


_MOST: Final = 1000.0
_NAMES: Final = {10**6: "a million", 10**9: "a billion", 10**12: "a trillion"}


def factor(epsilon: float) -> str:
    """The largest factor by which epsilon changes odds, in words; "" if it exceeds 1,000.

    >>> factor(0.5), factor(104.0)
    ('a factor 1.649', '')
    """
    return "" if epsilon > math.log(_MOST) else f"a factor {number(math.exp(epsilon), up=True)}"


def chance(delta: float) -> str:
    """A small probability in words, rounded up.

    >>> chance(1e-6), chance(3e-7), chance(0.02), chance(0.7)
    ('one in a million', 'one in 3,333,333', 'one in 50', '0.7')
    """
    if delta > 0.5 or delta < 1e-18:
        return f"{delta:g}"
    times = math.floor(1 / delta * (1 + 1e-12))
    return f"one in {_NAMES.get(times, f'{times:,}')}"
