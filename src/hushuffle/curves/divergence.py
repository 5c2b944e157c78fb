"""From a protocol to the law of its divergence: by the law of one report and by what the shuffler reveals."""

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
"""The accuracy of the binomial tails underneath is tested up to this size."""


_RARE: Final = Fraction(1, 10**7)
"""Flips rarer than this hide nothing among columns of one kind; their ratios overflow there."""


def divergence(protocol: Protocol | MixedProtocol | SplitAndMix) -> PrivacyCurve:
    """Return the divergence of a protocol.

    Raises:
        UnsupportedProtocolError: the randomizer offers no law, or several cannot be mixed behind this shuffler.
        NumericalError: more reports than the accuracy is tested for.

    Source: docs/theory/index.md.
    """
    if protocol.shared is not None:
        return SharedSums(protocol=protocol.shared)
    curves = tuple(_of_target(protocol, target) for target in protocol.targets)
    return curves[0] if len(curves) == 1 else WorstCurve(curves=curves)


def _of_target(protocol: Protocol | MixedProtocol, target: int) -> PrivacyCurve:
    """The divergence for the people of one part."""
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
            "People with different randomizers are understood behind a shuffler that mixes all reports, with a fixed "
            f"number of dummies and no cap, not with: {protocol.shuffler.describe()}."
        )
        raise UnsupportedProtocolError(message)
    alone = Protocol(randomizer=randomizer, shuffler=protocol.shuffler, n=people)
    return MemberCurve.of(protocol.parts, target, protocol.shuffler.dummies, _of_one(alone))


def _of_one(protocol: Protocol) -> PrivacyCurve:
    """All people have the same randomizer."""
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
    """Nothing but messages that say nothing hides the reports."""
    shuffler, k, n = protocol.shuffler, protocol.randomizer.inputs, protocol.n
    law, tossed, kept = shuffler.value_law, shuffler.tossed, shuffler.kept
    if law is None:
        assert tossed is not None
        numbers = 0 if shuffler.dummy_law is None else shuffler.dummy_law.numbers.size
        return TrueAmongUniform.of(k=k, n=n, trials=tossed[0], p=tossed[1], numbers=numbers)
    coins = None if tossed is None else Counts.binomial(*tossed)
    return TrueAmongEach.of(Counts.of(law, kept=kept), k=k, n=n, kept=kept, ratio=law.endless, coins=coins)


def _of_hashes(protocol: Protocol, trials: int, p: float, *, numbers: int = 0) -> PrivacyCurve:
    """Nothing but messages that say nothing hides the buckets."""
    law = protocol.randomizer.law()
    assert law.bucket is not None
    buckets, n = law.bucket.k, protocol.n
    return TrueAmongHashes.of(buckets=buckets, collision=law.collision, n=n, trials=trials, p=p, numbers=numbers)


def _of_fixed(protocol: Protocol) -> PrivacyCurve:
    """The number of dummies is fixed."""
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
    """Reports that are no values, behind a shuffler that reveals no more than how often each occurs."""
    if law.flipped is not None:
        return _of_flips(protocol, law.flipped)
    if law.one_hot is not None and protocol.reveals is Reveals.SUMS:
        coins = protocol.shuffler.secret_coins
        return SecureSums.of(law.one_hot, n=protocol.n, local_epsilon=protocol.randomizer.local_epsilon, coins=coins)
    return FiniteDivergence.of(protocol)


def _certified(reports: int) -> None:
    """Refuse more reports than the accuracy is tested for."""
    if reports > _CERTIFIED:
        message = (
            f"central differential privacy is certified up to {_CERTIFIED:,} reports, got {reports:,}. "
            "The figure for fewer people is an upper bound for more: ask for that n."
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
    """One bit is binary randomized response; what is hardly ever flipped is left to the privacy blanket."""
    n, dummies = protocol.n, protocol.shuffler.dummies
    if bits.width == 1:
        law = Symmetric(k=2, truth=1 - bits.flip, lie=bits.flip)
        return Binary.of(law=law, local_epsilon=protocol.randomizer.local_epsilon, n=n, dummies=dummies)
    return FiniteDivergence.of(protocol) if bits.flip < _RARE else FlippedColumns.of(protocol)


def _of_symmetric(protocol: Protocol, law: Symmetric) -> SearchedCurve:
    reveals, pure = protocol.reveals, protocol.randomizer.local_epsilon
    n, dummies = protocol.n, protocol.shuffler.dummies
    # Rates that no float tells apart: the local figure is 0 up to rounding, and so is the central one.
    blind = float(law.truth) == float(law.lie)
    if reveals is Reveals.SENDERS or (law.lie == 0 and dummies == 0) or blind:
        return Local(law=law, local_epsilon=pure, n=n)
    if law.k == 2:
        return Binary.of(law=law, local_epsilon=pure, n=n, dummies=dummies)
    return Kary.of(law=law, local_epsilon=pure, n=n, dummies=dummies)
