"""`Question`: how private is one person in a release? Rules reduce questions to simpler ones, laws answer the simplest.

A rule is a theorem that bounds the privacy curve of one question by the curves of others. It removes one `Feature`.
A law computes the privacy curve of a question that has no feature that the law does not know.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, Self, TypeAlias

from hushuffle import _checks
from hushuffle.curves.base import Envelope, PrivacyCurve
from hushuffle.curves.pairs.composition import ComposedCurve
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.release import Release
from hushuffle.mechanisms.shufflers import Reveals

if TYPE_CHECKING:
    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.mechanisms.randomizers import Mechanism, ReportLaw
    from hushuffle.mechanisms.shufflers import DummyLaw
    from hushuffle.mechanisms.split_and_mix import SplitAndMix

_CERTIFIED: Final = 2 * 10**9
"""Largest number of reports up to which the accuracy of the binomial tails is tested."""


class Feature(Enum):
    """A property that the simplest question (one randomizer, fixed number of dummies, counts seen) does not have."""

    SHARES = "shares of a sum"
    COLLUDING = "colluding people"
    TARGETS = "people of several groups to protect"
    MEMORY = "memoized reports"
    ROUNDS = "several rounds"
    REPORTS = "several reports of one person"
    GROUPS = "people with different randomizers"
    SENDERS = "reports seen with their senders"
    ORDER = "a noisy order of the reports"
    CAP = "a cap on equal reports"
    SUMS = "sums of the reports' vectors"
    OWN = "messages that people send in addition"
    EACH = "messages of each value"
    RANDOM = "a random number of dummies"
    THINNED = "reports dropped at random"


_VIEWS: Final = {
    Reveals.SENDERS: Feature.SENDERS,
    Reveals.NOISY_ORDER: Feature.ORDER,
    Reveals.CAPPED_MULTISET: Feature.CAP,
    Reveals.SUMS: Feature.SUMS,
}


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Each person has one memoized report for each of at most `values` values, and sends it in every round.

    Args:
        values: the largest number of values of one person in all rounds.
        again: the randomizer that every round applies to the memoized report; None: the report itself is sent.
    """

    values: int = 1
    again: Mechanism | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """How private are the people of the groups `targets`, if each of them sends at most `reports` of the reports?

    The adversary knows all other people's values. Neighbouring datasets replace all reports of one person. There are
    `rounds` releases of the same people, with fresh randomness in each, or with the memoized reports of `memory`.
    """

    release: Release
    targets: tuple[int, ...] = (0,)
    reports: int = 1
    rounds: int = 1
    memory: Memory | None = None

    @classmethod
    def of(
        cls,
        protocol: Protocol | MixedProtocol | SplitAndMix,
        reports: int = 1,
        *,
        rounds: int = 1,
        memory: Memory | None = None,
    ) -> Self:
        """The question about n reports in each round, at most `reports` of one person."""
        most = min(reports, protocol.n)
        return cls(release=Release.of(protocol), targets=protocol.targets, reports=most, rounds=rounds, memory=memory)

    @cached_property
    def features(self) -> frozenset[Feature]:
        """The features that a rule or a law must support."""
        release = self.release
        there = {
            Feature.SHARES: release.shares is not None,
            Feature.COLLUDING: release.honest is not None,
            Feature.TARGETS: len(self.targets) > 1,
            Feature.MEMORY: self.memory is not None,
            Feature.ROUNDS: self.rounds > 1 and self.memory is None,
            Feature.REPORTS: self.reports > 1,
            Feature.GROUPS: len(release.groups) > 1,
            Feature.THINNED: release.keep < 1,
            Feature.OWN: any(source.from_people for source in release.sources),
            Feature.EACH: any(source.each for source in release.sources),
            Feature.RANDOM: any(
                source.random for source in release.sources if not source.each and not source.from_people
            ),
        }
        view = _VIEWS.get(release.view)
        return frozenset({feature for feature, has in there.items() if has} | ({view} if view else set()))

    @property
    def device(self) -> Mechanism:
        return self.release.groups[self.targets[0]].device

    @property
    def law(self) -> ReportLaw:
        return self.device.law()

    def about(self, **changes: object) -> Self:
        """The same question about a release with these fields changed."""
        return replace(self, release=replace(self.release, **changes))  # type: ignore[arg-type]

    def alone(self) -> Self:
        """The same question about a release of the people of the target's group only."""
        (target,) = self.targets
        return replace(self.about(groups=(self.release.groups[target],)), targets=(0,))

    def refuse(self, reason: str) -> NoReturn:
        _checks.unsupported(f"{reason} This release: {self.release.describe()}.")

    def certify(self) -> None:
        reports = self.release.n + self.release.dummies
        if reports > _CERTIFIED:
            message = (
                f"Central differential privacy is certified for at most {_CERTIFIED:,} reports, but there are "
                f"{reports:,}. Use a smaller n: its epsilon and delta are upper bounds for a larger n."
            )
            raise NumericalError(message)

    def describe(self) -> str:
        parts = [self.release.describe()]
        parts += [f"{self.reports:,} reports of one person"] if self.reports > 1 else []
        parts += [f"{self.rounds:,} rounds"] if self.rounds > 1 else []
        if self.memory is not None:
            again = "" if self.memory.again is None else ", randomized again in every round"
            parts += [f"memoized reports of {self.memory.values:,} values of one person{again}"]
        if len(self.release.groups) > 1 == len(self.targets):
            parts += [f"the target is one of the {self.release.groups[self.targets[0]].people:,}"]
        return "; ".join(parts)


Solve: TypeAlias = Callable[[Question], PrivacyCurve]


# --- what a rule returns ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Same:
    """The curve is that of another question, or at most as large."""

    question: Question
    sign: ClassVar[str] = ""

    @property
    def parts(self) -> tuple[Question, ...]:
        """The questions that the explanation shows."""
        return (self.question,)


@dataclass(frozen=True, kw_only=True)
class Worst:
    """The curve is the largest of several questions' curves."""

    parts: tuple[Question, ...]
    sign: ClassVar[str] = "largest:"


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A public random number decides which question is asked: delta is the mean over that number."""

    law: DummyLaw
    at: Callable[[int], Question]
    sign: ClassVar[str] = "mean:"

    @property
    def parts(self) -> tuple[Question, ...]:
        """The question at the median number."""
        return (self.at(self.law.middle),)


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The curve is at most that of the composition of `times` independent releases."""

    question: Question
    times: int

    @property
    def sign(self) -> str:
        return f"<= {self.times:,} times:"

    @property
    def parts(self) -> tuple[Question, ...]:
        return (self.question,)


@dataclass(frozen=True, kw_only=True)
class Between:
    """The curve is at most that of `above` and at least that of `below`, up to a relative rounding error."""

    above: Question
    below: Question
    slack: float = 0.0

    @property
    def sign(self) -> str:
        return "=" if self.above == self.below else "between:"

    @property
    def parts(self) -> tuple[Question, ...]:
        return (self.above,) if self.above == self.below else (self.above, self.below)


Reduction: TypeAlias = Same | Worst | Mean | Rounds | Between


@dataclass(frozen=True, kw_only=True)
class DerivationStep:
    """The base class of rules and laws, which answer questions.

    Args:
        name: the name in explanations.
        statement: the theorem in one sentence.
        page: page and number of the proof, in docs/theory.
        beside: the features that a question may have in addition.
        partial: whether other theorems may give a better upper or lower bound, so that they are used as well.
    """

    name: str
    statement: str
    page: str
    beside: frozenset[Feature] = frozenset()
    partial: bool = False

    @abstractmethod
    def covers(self, question: Question) -> bool:
        """Return whether the theorem is about this question."""

    @abstractmethod
    def curve(self, question: Question, solve: Solve) -> PrivacyCurve:
        """Return the privacy curve of a question; `solve` answers simpler questions."""

    def relation(self, question: Question) -> tuple[str, tuple[Question, ...]]:
        """Return how the curve compares with those of simpler questions, and these questions."""
        del question
        return "", ()


@dataclass(frozen=True, kw_only=True)
class Rule(DerivationStep):
    """A theorem that reduces a question with the features `on` to questions with fewer features.

    Args:
        reduce: returns the simpler questions.
        build: returns the curve, given the question and a function that answers simpler questions; by default the
            curve of the simpler question, of its rounds, or the bounds of two questions above and below.
        exact: whether the curve equals what the reduction says; otherwise that is an upper bound.
        applies: whether the further conditions of the theorem hold.
        limits: the error message for a question that has `on` and that no rule covers.
    """

    on: frozenset[Feature]
    reduce: Callable[[Question], Reduction]
    build: Callable[[Question, Solve], PrivacyCurve] | None = None
    exact: bool = True
    applies: Callable[[Question], bool] = lambda _: True
    limits: str = ""

    def covers(self, question: Question) -> bool:
        return self.on <= question.features <= self.on | self.beside and self.applies(question)

    def curve(self, question: Question, solve: Solve) -> PrivacyCurve:
        if self.build is not None:
            return self.build(question, solve)
        match self.reduce(question):
            case Same(question=simpler):
                return solve(simpler) if self.exact else Envelope(above=(solve(simpler),))
            case Rounds(question=one, times=times):
                return ComposedCurve(laws=[(solve(one), times)])
            case Between(above=above, below=below, slack=slack):
                curve = solve(above)
                return curve if below == above else Envelope(above=(curve,), below=(solve(below),), slack=slack)
        message = f"the rule {self.name!r} needs a function `build`"
        raise AssertionError(message)

    def relation(self, question: Question) -> tuple[str, tuple[Question, ...]]:
        reduction = self.reduce(question)
        return reduction.sign or ("=" if self.exact else "<="), reduction.parts


@dataclass(frozen=True, kw_only=True)
class Law(DerivationStep):
    """A computation of the privacy curve of a question with no other features than those in `beside`.

    Args:
        fits: whether the law is for the target's randomizer and these messages.
        of: returns the privacy curve.
    """

    fits: Callable[[Question], bool]
    of: Callable[[Question], PrivacyCurve]
    any_size: bool = False

    def covers(self, question: Question) -> bool:
        return question.features <= self.beside and self.fits(question)

    def curve(self, question: Question, solve: Solve) -> PrivacyCurve:
        del solve
        if not self.any_size:
            question.certify()
        return self.of(question)
