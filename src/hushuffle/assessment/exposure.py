"""How much of one person is asked: several reports in one shuffle, several rounds; what that comes to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hushuffle.model import Bound
from hushuffle.numerics.exact import times_upwards
from hushuffle.questions import dp
from hushuffle.questions.dp.composition import curve_of
from hushuffle.specification._base import unfit

if TYPE_CHECKING:
    from hushuffle.curves.base import PrivacyCurve
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.specification import Specification


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """At most so many `reports` of each person in each of so many `rounds`, all with fresh coins.

    `memoised`: instead one report for each of the `values` that a person has, at most, which is kept and sent again in
    every round; the value changes `changes` times, at most.

    >>> print(Exposure(reports=5, rounds=12).words)
    all 12 rounds, with up to 5 reports of each person in each
    >>> print(Exposure(rounds=12, memoised=True, changes=1).words)
    all 12 rounds, for people whose value changes once at most
    """

    reports: int = 1
    rounds: int = 1
    memoised: bool = False
    changes: int = 0
    values: int = 1

    @classmethod
    def of(cls, specification: Specification, *, k: int = sys.maxsize) -> Exposure:
        """Return what a specification asks of each person, who has one of k values."""
        return cls(
            reports=specification.population.most,
            rounds=specification.rounds or 1,
            memoised=specification.memoised is True,
            changes=specification.changes or 0,
            values=specification.reports_kept(k) or 1,
        )

    @property
    def alone(self) -> bool:
        """Whether each person gives one report, once."""
        return self.reports == self.rounds == 1

    @property
    def total(self) -> int:
        """How many reports are drawn of one person in all, at most."""
        return self.reports * (self.values if self.memoised else self.rounds)

    @property
    def drawn_again(self) -> bool:
        """Whether a person keeps several reports, one for each value held: no crowd hides that they differ."""
        return self.memoised and self.changes > 0

    @property
    def composed(self) -> int:
        """How many rounds with fresh reports are as much as all rounds.

        Raises:
            SpecificationError: none: it is known for memoised reports of values that stay.
        """
        if self.drawn_again:
            hint = f"Whatever the crowd, a local epsilon of targets.epsilon/{self.total:,} will do."
            unfit("changes", "must be 0 for this", f"{self.changes:,}", hint)
        return 1 if self.memoised else self.rounds

    @property
    def words(self) -> str:
        """What a guarantee covers, in plain words."""
        each = f"up to {self.reports:,} reports of each person"
        if self.rounds == 1:
            return each if self.reports > 1 else "one report of each person"
        if self.memoised:
            return f"all {self.rounds:,} rounds, for people whose value {self.stays}"
        return f"all {self.rounds:,} rounds{f', with {each} in each' if self.reports > 1 else ''}"

    @property
    def stays(self) -> str:
        """What a value does whose reports are kept, to go after it."""
        if self.changes == 0:
            return "stays"
        return "changes once at most" if self.changes == 1 else f"changes {self.changes:,} times at most"

    @property
    def seen(self) -> str:
        """What somebody sees, to go before a verb."""
        if self.alone:
            return "it"
        return f"the releases of {self.words}," if self.rounds > 1 else f"a release with {self.words}"

    @property
    def named(self) -> str:
        """The same with one's name on it, with its verb."""
        if self.alone:
            return "Even with your name on it, your report changes"
        if self.memoised and self.changes == 0:
            return "Even with your name on it, the report that you send every time changes"
        reports = f"all {self.total:,} {'different ' if self.memoised else ''}reports that you may send"
        return f"Even with your name on them, {reports} change"

    def once(self, protocol: Protocol) -> Protocol | PrivacyCurve:
        """Return one round of what one person gives, to be composed."""
        return protocol if self.reports == 1 else dp.per_person(protocol, reports=self.reports)

    def guarantee(self, protocol: Protocol, *, delta: float) -> tuple[Bound, str]:
        """Return the central epsilon (nats) of all of them together, and the argument for it."""
        if self.memoised:
            bound = dp.waves(protocol, waves=self.rounds, delta=delta, changes=self.values - 1)
            if self.changes:
                return bound, "local epsilons of the different reports added up (upper bound), one round (lower bound)"
            return bound, f"all rounds are made of the reports of one; {curve_of(protocol).proof}"
        curve = curve_of([(self.once(protocol), self.rounds)])
        return curve.epsilon(delta), curve.proof

    def epsilon(self, protocol: Protocol, *, delta: float) -> Bound:
        """Return the central epsilon (nats) of all of them together."""
        return self.guarantee(protocol, delta=delta)[0]

    def together(self, protocols: Sequence[Protocol], *, delta: float) -> Bound:
        """Return the central epsilon (nats) of all columns together; there is one where reports are memoised."""
        if self.memoised:
            return self.epsilon(protocols[0], delta=delta)
        return dp.compose([(self.once(protocol), self.rounds) for protocol in protocols], delta=delta)

    def local(self, protocol: Protocol) -> Bound:
        """Return the local epsilon (nats) of all of them together: the sum."""
        one = dp.local_epsilon(protocol, reports_per_person=self.reports)
        return Bound.exact(times_upwards(one.upper, self.total // self.reports), unit="nats")


ONCE: Final = Exposure()
"""One report of each person, once."""
