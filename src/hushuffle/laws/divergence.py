"""From a protocol to the law of its divergence: by capability of the randomizer and by what the shuffler reveals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.laws.base import Divergence
from hushuffle.laws.finite_blanket import FiniteDivergence
from hushuffle.laws.finite_local import FiniteLocal
from hushuffle.laws.symmetric import Binary, Kary, Local
from hushuffle.randomizers import HasSymmetricLaw
from hushuffle.shufflers import Reveals

if TYPE_CHECKING:
    from hushuffle.protocol import Protocol

_CERTIFIED: Final = 2 * 10**9
"""The accuracy of the binomial tails underneath is tested up to this size."""


def divergence(protocol: Protocol) -> Divergence:
    """Return the divergence of a protocol.

    Raises:
        UnsupportedProtocolError: the randomizer offers no law, or the shuffler is not known.
        NumericalError: more reports than the accuracy is tested for.

    Source: theory.md section 1.
    """
    reports = protocol.n + protocol.shuffler.dummies
    if reports > _CERTIFIED:
        message = (
            f"central differential privacy is certified up to {_CERTIFIED:,} reports, got {reports:,}. "
            "The figure for fewer people is an upper bound for more: ask for that n."
        )
        raise NumericalError(message)
    reveals, symmetric = protocol.shuffler.reveals, isinstance(protocol.randomizer, HasSymmetricLaw)
    if reveals is Reveals.NOISY_ORDER:
        message = (
            f"Central differential privacy of {type(protocol.shuffler).__name__} is not available; "
            "UniformShuffle, Scrambler and NoShuffle are."
        )
        raise UnsupportedProtocolError(message)
    if symmetric:
        return _of_symmetric(protocol, reveals)
    return FiniteLocal.of(protocol) if reveals is Reveals.SENDERS else FiniteDivergence.of(protocol)


def _of_symmetric(protocol: Protocol, reveals: Reveals) -> Divergence:
    assert isinstance(protocol.randomizer, HasSymmetricLaw)
    law, pure = protocol.randomizer.symmetric_law(), protocol.randomizer.local_epsilon
    n, dummies = protocol.n, protocol.shuffler.dummies
    if reveals is Reveals.SENDERS or (law.lie == 0 and dummies == 0):
        return Local(law=law, local_epsilon=pure, n=n)
    if law.k == 2:
        return Binary.of(law=law, local_epsilon=pure, n=n, dummies=dummies)
    return Kary.of(law=law, local_epsilon=pure, n=n, dummies=dummies)
