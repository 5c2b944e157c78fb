"""How much of one person is asked: several reports in one shuffle, several rounds; what that comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hushuffle.model import Bound
from hushuffle.numerics.exact import times_upwards
from hushuffle.questions import dp
from hushuffle.questions.dp.composition import curve_of

if TYPE_CHECKING:
    from hushuffle.curves.base import PrivacyCurve
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.specification import Specification


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """At most so many `reports` of each person in each of so many `rounds`, all with fresh coins.

    >>> print(Exposure(reports=5, rounds=12).words)
    all 12 rounds, with up to 5 reports of each person in each
    """

    reports: int = 1
    rounds: int = 1

    @classmethod
    def of(cls, specification: Specification) -> Exposure:
        """Return what a specification asks of each person."""
        return cls(reports=specification.population.most, rounds=specification.rounds or 1)

    @property
    def alone(self) -> bool:
        """Whether each person gives one report, once."""
        return self.reports == self.rounds == 1

    @property
    def total(self) -> int:
        """How many reports one person gives in all, at most."""
        return self.reports * self.rounds

    @property
    def words(self) -> str:
        """What a guarantee covers, in plain words."""
        each = f"up to {self.reports:,} reports of each person"
        if self.rounds == 1:
            return each if self.reports > 1 else "one report of each person"
        return f"all {self.rounds:,} rounds{f', with {each} in each' if self.reports > 1 else ''}"

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
        reports = f"all {self.total:,} reports that you may send"
        return f"Even with your name on them, {reports} change"

    def once(self, protocol: Protocol) -> Protocol | PrivacyCurve:
        """Return one round of what one person gives, to be composed."""
        return protocol if self.reports == 1 else dp.per_person(protocol, reports=self.reports)

    def curve(self, protocol: Protocol) -> PrivacyCurve:
        """Return the curve of all of them together."""
        return curve_of([(self.once(protocol), self.rounds)])

    def epsilon(self, protocol: Protocol, *, delta: float) -> Bound:
        """Return the central epsilon (nats) of all of them together."""
        return self.curve(protocol).epsilon(delta)

    def local(self, protocol: Protocol) -> Bound:
        """Return the local epsilon (nats) of all of them together: the sum."""
        one = dp.local_epsilon(protocol, reports_per_person=self.reports)
        return Bound.exact(times_upwards(one.upper, self.rounds), unit="nats")


ONCE: Final = Exposure()
"""One report of each person, once."""
