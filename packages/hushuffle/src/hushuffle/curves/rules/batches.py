"""Several reports of one person in one shuffle: neighbouring datasets differ in all reports of one person.

The number m of the person's reports is the same in both datasets.

Upper bound. Divide the N reports into m batches of at least N/m (rounded down), with one report of the person in each,
and shuffle every batch by itself. The multiset of all reports is a post-processing of the batches, which are m rounds
that hide one report each. A person with fewer reports reveals no more, since other people's reports may take the place
of the missing reports.

A second upper bound replaces one report after the other (group privacy). It is often smaller for few people.

Lower bound. All m reports have one value in the first dataset and another in the second; all other people have one
value. In addition the lower bound of one report is used, with the person's other reports fixed.

Source: docs/theory/composition.md, Theorem 8 and Lemma 9; docs/theory/randomizers.md, Theorem 18.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from hushuffle.curves.base import LARGEST, Laws, PrivacyCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.secure_sums import SecureSums
from hushuffle.curves.pairs.composition import Cache, ComposedCurve, total_pure, upper_delta, upper_epsilon
from hushuffle.curves.question import Feature, Question, Rounds, Rule, Solve
from hushuffle.mechanisms.release import ReleaseGroup
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation, Witness
from hushuffle.numerics.roots import first_below, last_above

_TAIL: Final = -60.0
"""Events rarer than about e**-60 may be missing from a lower bound."""

_WIDEST: Final = 16
"""Largest number of bits per report for which a lower bound with several reports is computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonCurve(PrivacyCurve):
    """Privacy curve of a person with at most `reports` reports in one shuffle.

    The composition of `batches`, and group privacy from `single`, the curve of one report, give upper bounds. `hidden`
    gives datasets for the lower bound (None: only the lower bound of one report is used).
    """

    batches: Laws
    single: PrivacyCurve
    reports: int
    hidden: FiniteDivergence | SecureSums | None
    cache: Cache = field(default_factory=dict, repr=False)
    proof = "a shuffle for each report of a person, or group privacy (upper bound), explicit datasets (lower bound)"

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return self.single.sources

    @property
    def parts(self) -> Laws:
        return self.batches

    @property
    def pure(self) -> float:
        return min(total_pure(self.batches), self.reports * self.single.pure)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return self.single.certain

    def pure_bound(self) -> Bound:
        """Sum of the batches' pure epsilons, exact if that of one report is exact and equals that of each batch.

        Under a cap the pure epsilon of one report is smaller than that of its batch, which has no cap.
        """
        report = self.single.pure_bound()
        if report.kind == "exact" and all(report.upper == batch.pure for batch, _ in self.batches):
            return Bound.exact(self.pure, unit="nats", sources=self.sources, witness=report.witness)
        return bracket(report.lower, self.pure, unit="nats", sources=self.sources, witness=report.witness)

    def upper(self, epsilon: float) -> float:
        batches = upper_delta(self.batches, epsilon=epsilon, cache=self.cache)
        return min(batches, one_by_one(self.single.upper, epsilon, self.reports))

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        bounds = [(pair.divergence(epsilon), pair.witness) for pair in self._alike]
        # At an epsilon of at least its pure epsilon, one report has divergence 0.
        report = self.single.lower(epsilon) if epsilon < self.single.pure else (0.0, self.single.lower(0.0)[1])
        return max([*bounds, report], key=lambda end: end[0])

    def likely(self, epsilon: float) -> float:
        return self.lower(epsilon)[0] if self._alike else self.upper(epsilon)

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        alike = [pair.divergence(epsilon) for pair in self._alike if pair.witness == witness]
        return max(alike, default=self.single.lower_at(witness, epsilon))

    def epsilon(self, delta: float) -> Bound:
        if delta == 0:
            return self.pure_bound()
        return self.below(min(upper_epsilon(self.batches, delta=delta), self.grouped(delta)), delta)

    def grouped(self, delta: float) -> float:
        """Return the upper bound on epsilon (nats) by group privacy alone, which is fast."""
        near, high = self.single.near(delta / self.reports), self.reports * self.single.pure
        most = min(high, LARGEST)
        if high > most and one_by_one(near.upper, most, self.reports) > delta:
            return high
        if one_by_one(near.upper, 0.0, self.reports) <= delta:
            return 0.0
        guess = self.reports * near.guess()
        return first_below(lambda level: one_by_one(near.upper, level, self.reports), delta, high=most, guess=guess)

    def below(self, upper: float, delta: float) -> Bound:
        """Return the bracket of epsilon between explicit datasets and the upper bound `upper` (nats)."""
        lower, witness = 0.0, self.single.lower(0.0)[1]
        for pair in self._alike:
            if pair.divergence(lower) > delta:
                high = min(upper, LARGEST) * (1 + 1e-9)
                lower, witness = last_above(pair.divergence, delta, high=high, guess=high / 2), pair.witness
        if math.isinf(upper) or (lower < self.single.pure and self.single.lower(lower)[0] > delta):
            alone = self.single.epsilon(delta)
            if alone.lower > lower and alone.witness is not None:
                lower, witness = alone.lower, alone.witness
        return bracket(lower, upper, unit="nats", sources=self.sources, witness=witness, exact=math.isinf(lower))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        pairs = () if self.hidden is None else self.hidden.alike(self.reports, log_tail=log_tail)
        alike = f"all {self.reports:,} reports of the target alike"
        named = ((pair, f"{pair.witness.family}, {alike}") for pair in pairs)
        return tuple(replace(pair, witness=replace(pair.witness, family=family)) for pair, family in named)

    @cached_property
    def _alike(self) -> tuple[DatasetPair, ...]:
        return tuple(way for pair in self.datasets(log_tail=_TAIL) for way in (pair, pair.swapped()))


def one_by_one(upper: Callable[[float], float], epsilon: float, reports: int) -> float:
    """Return an upper bound on delta if `reports` reports are replaced one by one; `upper` bounds delta of one report.

    >>> round(one_by_one(lambda epsilon: 1e-6, 2.0, 2), 9)  # (1 + e) 1e-6
    3.718e-06
    """
    each = epsilon / reports * (1 - 1e-15)
    return math.fsum(math.exp(i * each) for i in range(reports)) * upper(each) * (1 + 1e-12 * reports)


def _reduce(question: Question) -> Rounds:
    release, times = question.release, question.reports
    if release.view in (Reveals.SENDERS, Reveals.NOISY_ORDER):
        group = ReleaseGroup(people=1, device=question.device)
        seen = question.about(groups=(group,), view=Reveals.SENDERS, sources=())
        return Rounds(question=replace(seen, reports=1), times=times)
    (group,) = release.groups
    batch = question.about(
        groups=(ReleaseGroup(people=group.people // times, device=group.device),),
        sources=tuple(source.divided(times) for source in release.sources),
        view=Reveals.MULTISET if release.view is Reveals.CAPPED_MULTISET else release.view,
    )
    return Rounds(question=replace(batch, reports=1), times=times)


def _divisible(question: Question) -> bool:
    """Whether the messages of each value can be divided: a random number of the shuffler's cannot."""
    sources = question.release.sources
    return all(source.from_people or not source.each for source in sources) or Feature.SUMS in question.features


def _build(question: Question, solve: Solve) -> PrivacyCurve:
    if question.release.view is Reveals.SENDERS:
        return ComposedCurve(laws=[(solve(_reduce(question).question), question.reports)])
    return of_person(question, solve)


def of_person(question: Question, solve: Solve) -> PersonCurve:
    """Return the curve of a person with several reports, in a release without senders."""
    rounds, single = _reduce(question), solve(replace(question, reports=1))
    batches, hidden = [(solve(rounds.question), rounds.times)], _hidden(question, single)
    return PersonCurve(batches=batches, single=single, reports=question.reports, hidden=hidden)


def _hidden(question: Question, single: PrivacyCurve) -> FiniteDivergence | SecureSums | None:
    """A curve whose `alike` lists datasets with several reports of the target; None if none is available."""
    if isinstance(single, SecureSums):
        return single
    if question.features & {Feature.SUMS, Feature.CAP, Feature.OWN, Feature.EACH, Feature.RANDOM}:
        return None
    bits = question.law.flipped
    if bits is not None and bits.width > _WIDEST:
        return None
    (group,) = question.release.groups
    others = ReleaseGroup(people=group.people - question.reports + 1, device=group.device)
    return FiniteDivergence.of(replace(question.release, groups=(others,), view=Reveals.MULTISET))


RULE: Final = Rule(
    name="a batch for each report",
    statement="The release is computed from one shuffle for each report of the person, with shares of the messages.",
    page="composition.md, Theorem 8",
    on=frozenset({Feature.REPORTS}),
    beside=frozenset(
        {Feature.SENDERS, Feature.ORDER, Feature.CAP, Feature.SUMS, Feature.OWN, Feature.EACH, Feature.RANDOM}
    ),
    applies=_divisible,
    reduce=_reduce,
    build=_build,
    exact=False,
    limits="There is no bound for several reports of one person with this mechanism. Take one report of each person. "
    "For several numbers of one person in one sum, use `coordinates`, or add the numbers up first.",
)
