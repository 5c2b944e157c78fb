"""Select the privacy curve of a protocol, by its randomizer's distribution and by what its shuffler reveals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hushuffle.curves.base import PrivacyCurve, SearchedCurve
from hushuffle.curves.blanket_messages import TrueAmongUniform
from hushuffle.curves.capped import Capped
from hushuffle.curves.finite_blanket import FiniteDivergence
from hushuffle.curves.flipped_columns import FlippedColumns
from hushuffle.curves.local import FiniteLocal, Local, NoisyOrder
from hushuffle.curves.mixed import MemberCurve, WorstCurve
from hushuffle.curves.mixture import Mixture
from hushuffle.curves.secure_sums import SecureSums
from hushuffle.curves.shared_sums import SharedSums
from hushuffle.curves.symmetric import Binary, Kary
from hushuffle.curves.true_hashes import TrueAmongHashes
from hushuffle.curves.value_dummies import Counts, TrueAmongEach
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Bits, ReportLaw, Symmetric, symmetric_law
from hushuffle.mechanisms.shufflers import NoShuffle, Reveals, Scrambler

if TYPE_CHECKING:
    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.split_and_mix import SplitAndMix

_CERTIFIED: Final = 2 * 10**9
"""Largest number of reports up to which the accuracy of the binomial tails is tested."""


_RARE: Final = Fraction(1, 10**7)
"""Flip probability below which the bound for flipped columns overflows, and the privacy blanket is used instead."""


def divergence(protocol: Protocol | MixedProtocol | SplitAndMix) -> PrivacyCurve:
    """Return the privacy curve of a protocol, with certified bounds on delta(epsilon).

    Raises:
        UnsupportedProtocolError: the randomizer's report distribution is unknown, or this shuffler does not support
            people with different randomizers.
        NumericalError: there are more reports than the accuracy is tested for.

    Source: docs/theory/index.md.
    """
    if protocol.shared is not None:
        return SharedSums(protocol=protocol.shared)
    curves = tuple(_of_target(protocol, target) for target in protocol.targets)
    return curves[0] if len(curves) == 1 else WorstCurve(curves=curves)


def _of_target(protocol: Protocol | MixedProtocol, target: int) -> PrivacyCurve:
    """Return the privacy curve of the people in part number `target`, who share a randomizer."""
    people, randomizer = protocol.parts[target]
    if len(protocol.parts) == 1 or protocol.shuffler.reveals is Reveals.SENDERS:
        return _of_one(Protocol(randomizer=randomizer, shuffler=protocol.shuffler, n=people))
    _certified(protocol.n + (0 if protocol.shuffler.dummy_law else protocol.shuffler.dummies))
    if protocol.shuffler.reveals is Reveals.NOISY_ORDER:
        hidden = replace(protocol, shuffler=Scrambler(dummies=protocol.shuffler.dummies))
        seen = Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=people)
        return NoisyOrder(hidden=_of_target(hidden, target), seen=_of_one(seen))
    shuffler = protocol.shuffler
    drawn = shuffler.dummy_law is not None or shuffler.tossed is not None
    if shuffler.reveals is not Reveals.MULTISET or drawn:
        message = (
            "People with different randomizers need a shuffler that mixes all reports, with a fixed number of dummies "
            f"and no cap. This shuffler is different: {protocol.shuffler.describe()}."
        )
        raise UnsupportedProtocolError(message)
    alone = Protocol(randomizer=randomizer, shuffler=protocol.shuffler, n=people)
    return MemberCurve.of(protocol.parts, target, protocol.shuffler.dummies, _of_one(alone))


def _of_one(protocol: Protocol) -> PrivacyCurve:
    """Return the privacy curve of a protocol in which all people have the same randomizer."""
    protocol = protocol.secret
    if protocol.truthful and (protocol.shuffler.value_law or protocol.shuffler.tossed):
        return _of_true_reports(protocol)
    drawn, tossed = protocol.shuffler.dummy_law, protocol.shuffler.tossed
    if drawn is None:
        return _of_fixed(protocol)
    if tossed is not None and protocol.hashed:
        return _of_hashes(protocol, *tossed, numbers=drawn.numbers.size)
    return Mixture.of(drawn, lambda dummies: _of_fixed(protocol.with_dummies(dummies)))


def _of_true_reports(protocol: Protocol) -> PrivacyCurve:
    """Return the privacy curve of truthful reports that only dummies or blanket messages hide."""
    shuffler, k, n = protocol.shuffler, protocol.randomizer.inputs, protocol.n
    law, tossed, retention = shuffler.value_law, shuffler.tossed, shuffler.kept
    if law is None:
        assert tossed is not None
        numbers = 0 if shuffler.dummy_law is None else shuffler.dummy_law.numbers.size
        return TrueAmongUniform.of(k=k, n=n, trials=tossed[0], p=tossed[1], numbers=numbers)
    coins = None if tossed is None else Counts.binomial(*tossed)
    return TrueAmongEach.of(Counts.of(law, kept=retention), k=k, n=n, kept=retention, ratio=law.endless, coins=coins)


def _of_hashes(protocol: Protocol, trials: int, p: float, *, numbers: int = 0) -> PrivacyCurve:
    """Return the privacy curve of truthful hash buckets that only dummies or blanket messages hide."""
    law = protocol.randomizer.law()
    assert law.bucket is not None
    buckets, n = law.bucket.k, protocol.n
    return TrueAmongHashes.of(buckets=buckets, collision=law.collision, n=n, trials=trials, p=p, numbers=numbers)


def _of_fixed(protocol: Protocol) -> PrivacyCurve:
    """Return the privacy curve of a protocol whose number of dummies is fixed."""
    _certified(protocol.n + protocol.shuffler.dummies)
    reveals, law = protocol.reveals, protocol.randomizer.law()
    if reveals is Reveals.NOISY_ORDER:
        hidden = replace(protocol, shuffler=Scrambler(dummies=protocol.shuffler.dummies))
        seen = replace(protocol, shuffler=NoShuffle())
        return NoisyOrder(hidden=divergence(hidden), seen=divergence(seen))
    if reveals is Reveals.CAPPED_MULTISET:
        return _of_capped(protocol)
    if law.symmetric is not None:
        return _of_symmetric(protocol, law.symmetric)
    if protocol.hashed and reveals is Reveals.MULTISET:
        return _of_hashes(protocol, protocol.shuffler.dummies, 1.0)
    if reveals is Reveals.SENDERS:
        return FiniteLocal.of(protocol)
    return _of_reports(protocol, law)


def _of_reports(protocol: Protocol, law: ReportLaw) -> PrivacyCurve:
    """Return the privacy curve of reports that are not values, if the shuffler reveals their counts or bit sums."""
    if law.flipped is not None:
        return _of_flips(protocol, law.flipped)
    if law.one_hot is not None and protocol.reveals is Reveals.SUMS:
        coins = protocol.shuffler.secret_coins
        return SecureSums.of(law.one_hot, n=protocol.n, local_epsilon=protocol.randomizer.local_epsilon, coins=coins)
    return FiniteDivergence.of(protocol)


def _certified(reports: int) -> None:
    """Raise `NumericalError` if there are more reports than the accuracy is tested for."""
    if reports > _CERTIFIED:
        message = (
            f"central differential privacy is certified up to {_CERTIFIED:,} reports, got {reports:,}. "
            "The figure for fewer people is an upper bound for more: use a smaller n."
        )
        raise NumericalError(message)


def _of_capped(protocol: Protocol) -> PrivacyCurve:
    law = symmetric_law(protocol.randomizer, for_what="A scrambler with a cap")
    n, dummies = protocol.n, protocol.shuffler.dummies
    return Capped(
        law=law,
        local_epsilon=protocol.randomizer.local_epsilon,
        n=n,
        dummies=dummies,
        uncapped=_of_symmetric(replace(protocol, shuffler=Scrambler(dummies=dummies)), law),
    )


def _of_flips(protocol: Protocol, bits: Bits) -> PrivacyCurve:
    """Return the privacy curve of bit-flipped columns: one bit is binary randomized response.

    Columns whose bits are flipped more rarely than `_RARE` use the privacy blanket.
    """
    n, dummies = protocol.n, protocol.shuffler.dummies
    if bits.width == 1:
        law = Symmetric(k=2, truth=1 - bits.flip, lie=bits.flip)
        return Binary.of(law=law, local_epsilon=protocol.randomizer.local_epsilon, n=n, dummies=dummies)
    return FiniteDivergence.of(protocol) if bits.flip < _RARE else FlippedColumns.of(protocol)


def _of_symmetric(protocol: Protocol, law: Symmetric) -> SearchedCurve:
    reveals, pure = protocol.reveals, protocol.randomizer.local_epsilon
    n, dummies = protocol.n, protocol.shuffler.dummies
    # Two probabilities that round to the same float: local and central epsilon are both 0 up to rounding.
    blind = float(law.truth) == float(law.lie)
    if reveals is Reveals.SENDERS or (law.lie == 0 and dummies == 0) or blind:
        return Local(law=law, local_epsilon=pure, n=n)
    if law.k == 2:
        return Binary.of(law=law, local_epsilon=pure, n=n, dummies=dummies)
    return Kary.of(law=law, local_epsilon=pure, n=n, dummies=dummies)
