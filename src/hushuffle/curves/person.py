"""Several reports of one person in one shuffle: neighbours differ in all of them, how many they are stays.

Upper end. Cut the N reports into m batches of N/m or more, one report of the person in each, and shuffle every batch
by itself: the multiset of all reports is made from those of the batches, which are m rounds that hide one report each.
What a person with fewer reports gives away is no more: other people's reports may stand in for those that are missing.

Lower end. All m reports at one value, or all at another, everybody else at one value: the law of what tells the two
datasets apart; and the lower end of one report alone, the person's others fixed.

Source: docs/theory/composition.md, Theorem 8 and Lemma 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from hushuffle.curves.base import LARGEST, Laws, PrivacyCurve, bracket
from hushuffle.curves.composed import ComposedCurve
from hushuffle.curves.composition import Made, total_pure, upper_delta, upper_epsilon
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.divergence import divergence
from hushuffle.curves.finite_blanket import FiniteDivergence
from hushuffle.curves.secure_sums import SecureSums
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import NoShuffle, Reveals, Scrambler
from hushuffle.model import Bound, Citation, Witness
from hushuffle.numerics.roots import crossing

if TYPE_CHECKING:
    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.split_and_mix import SplitAndMix

_TAIL: Final = -60.0
"""Events rarer than about e**-60 may be missing from a lower end."""

_WIDEST: Final = 16
"""Beyond so many bits per report the datasets of a lower end take too long."""


def person_curve(protocol: Protocol | MixedProtocol | SplitAndMix, reports: int) -> PrivacyCurve:
    """Return the curve of a protocol of n reports, of which one person gives at most so many.

    Raises:
        UnsupportedProtocolError: the randomizer offers no law; people with different randomizers and several reports.
        NumericalError: more reports than the accuracy is tested for.
    """
    single, most = divergence(protocol), min(reports, protocol.n)
    if most == 1:
        return single
    if protocol.shared is not None:
        message = (
            "Several numbers of one person in one sum are not understood: take `coordinates`, or add them up first."
        )
        raise UnsupportedProtocolError(message)
    protocol = Protocol(randomizer=protocol.randomizer, shuffler=protocol.shuffler, n=protocol.n)
    reveals = protocol.reveals
    if reveals in (Reveals.SENDERS, Reveals.NOISY_ORDER):
        seen = divergence(replace(protocol, shuffler=NoShuffle(), n=1))
        if reveals is Reveals.SENDERS:
            return ComposedCurve(laws=[(seen, most)])
        return PersonCurve(batches=[(seen, most)], single=single, reports=most, hidden=_hidden(protocol, single, most))
    shuffler = protocol.shuffler.divided(most)
    batch = divergence(replace(protocol, shuffler=shuffler, n=protocol.n // most))
    return PersonCurve(batches=[(batch, most)], single=single, reports=most, hidden=_hidden(protocol, single, most))


def _hidden(protocol: Protocol, single: PrivacyCurve, reports: int) -> FiniteDivergence | SecureSums | None:
    """Return what knows datasets with several reports of the target; None if there is none, or it takes too long."""
    if isinstance(single, SecureSums):
        return single
    shuffler = protocol.shuffler
    if protocol.reveals in (Reveals.SUMS, Reveals.CAPPED_MULTISET) or shuffler.dummy_law or shuffler.tossed:
        return None
    bits = protocol.randomizer.law().flipped
    if bits is not None and bits.width > _WIDEST:
        return None
    hidden = replace(protocol, shuffler=Scrambler(dummies=shuffler.dummies), n=protocol.n - reports + 1)
    return FiniteDivergence.of(hidden)


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonCurve(PrivacyCurve):
    """At most so many `reports` of each person among others'.

    `batches` are those whose composition lies above, `single` is the curve of one report, and `hidden` knows the
    others at whom a lower end is looked for (None: that of one report is all there is).
    """

    batches: Laws
    single: PrivacyCurve
    reports: int
    hidden: FiniteDivergence | SecureSums | None
    made: Made = field(default_factory=dict, repr=False)
    proof = "as many separate shuffles as a person has reports (upper bound), explicit datasets (lower bound)"

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return self.single.sources

    @property
    def parts(self) -> Laws:
        return self.batches

    @property
    def pure(self) -> float:
        return total_pure(self.batches)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return self.single.certain

    def pure_bound(self) -> Bound:
        """Return the sum of the batches' own: attained, where one report attains its batch's, if all are that report.

        Under a cap one report has a smaller figure than its batch, which has none.
        """
        one = self.single.pure_bound()
        if one.kind == "exact" and all(one.upper == batch.pure for batch, _ in self.batches):
            return Bound.exact(self.pure, unit="nats", sources=self.sources, witness=one.witness)
        return bracket(one.lower, self.pure, unit="nats", sources=self.sources, witness=one.witness)

    def upper(self, epsilon: float) -> float:
        return upper_delta(self.batches, epsilon=epsilon, made=self.made)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        found = [(pair.divergence(epsilon), pair.witness) for pair in self._alike]
        # Beyond its own pure guarantee one report says nothing.
        one = self.single.lower(epsilon) if epsilon < self.single.pure else (0.0, self.single.lower(0.0)[1])
        return max([*found, one], key=lambda end: end[0])

    def epsilon(self, delta: float) -> Bound:
        if delta == 0:
            return self.pure_bound()
        upper = upper_epsilon(self.batches, delta=delta)
        lower, witness = 0.0, self.single.lower(0.0)[1]
        for pair in self._alike:
            if pair.divergence(lower) > delta:
                high = min(upper, LARGEST) * (1 + 1e-9)
                lower, witness = crossing(pair.divergence, delta, high=high, guess=high / 2)[0], pair.witness
        if math.isinf(upper) or (lower < self.single.pure and self.single.lower(lower)[0] > delta):
            alone = self.single.epsilon(delta)
            if alone.lower > lower and alone.witness is not None:
                lower, witness = alone.lower, alone.witness
        return bracket(lower, upper, unit="nats", sources=self.sources, witness=witness, exact=math.isinf(lower))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        pairs = () if self.hidden is None else self.hidden.alike(self.reports, log_tail=log_tail)
        return tuple(replace(pair, witness=self._named(pair.witness)) for pair in pairs)

    @cached_property
    def _alike(self) -> tuple[DatasetPair, ...]:
        """The pairs, both ways round."""
        return tuple(way for pair in self.datasets(log_tail=_TAIL) for way in (pair, pair.swapped()))

    def _named(self, witness: Witness) -> Witness:
        return replace(witness, family=f"{witness.family}, all {self.reports:,} reports of the target alike")
