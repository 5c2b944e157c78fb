"""Compute how far Sybil clients can move an estimated share (poisoning), and how a limit on 1 bits restricts them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hushuffle import _checks
from hushuffle.estimation.readout import counted, readout
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, number
from hushuffle.numerics import binomial

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import Mechanism

USUAL: Final = 100
"""Default assumption: one in this number of clients is a Sybil client, or colludes."""


@dataclass(frozen=True, kw_only=True)
class PoisoningGain:
    """Maximal poisoning gain: how far `fakes` of the n clients can move the expected estimate of any value's share.

    Shares are of all n clients; the true share counts honest clients only. `honest` bounds the rise if Sybil clients
    follow the protocol with chosen values. `raised` and `lowered` (both >= 0) bound the change with arbitrary reports;
    an adversary who knows the mechanism attains them. The same reports raise at most `at_once` values that far at once.
    """

    fakes: int
    n: int
    honest: Bound
    raised: Bound
    lowered: Bound
    at_once: int

    def __str__(self) -> str:
        return f"{self.fakes:,} Sybil clients of {self.n:,}: {self.words}"

    @property
    def words(self) -> str:
        """The maximal poisoning gain in words."""
        raised, honest, lowered = (number(end.upper, up=True) for end in (self.raised, self.honest, self.lowered))
        return f"any share up by at most {raised} ({honest} if they follow the protocol), or down by at most {lowered}"


def poisoning_gain(protocol: Protocol | MixedProtocol, *, fakes: int, reports_per_person: int = 1) -> PoisoningGain:
    """Return how far Sybil clients can move any value's estimated share (maximal poisoning gain): exact bounds.

    If groups of people have different randomizers, the bounds are attained if each Sybil client joins the group that
    it chooses. The gain is then that of the weighted share, which `estimate` estimates.

    Sybil clients know the mechanism and every client's value, collude, and send any report that the collection
    counts. The bounds hold for any values of honest clients. Sybil clients send as many messages as clients may.
    The standard error of an estimate is additional.

    Args:
        protocol: the collection; its n includes Sybil clients, and counts reports if a client sends several.
        fakes: number of Sybil clients among the n, from 0.
        reports_per_person: the largest number of the n reports that one client sends.

    Raises:
        InvalidInputError: a number is out of range, or there are more fake reports than n.
        UnsupportedProtocolError: the randomizer's reports cannot be counted.
        NumericalError: reports hardly depend on the values.

    Source: docs/theory/estimation.md, Theorem 9; docs/theory/histograms.md, Theorem 8; Cao, Jia, Gong 2021 (input and
    output poisoning).

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.RandomizedResponse(k=10, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10_000
    ... )
    >>> gain = hs.poisoning_gain(survey, fakes=100)
    >>> print(gain.words)
    any share up by at most 0.06238 (0.01000 if they follow the protocol), or down by at most 0.005820
    """
    _checks.of_type("protocol", protocol, Protocol, MixedProtocol)
    users = _checks.integer("fakes", fakes, low=0)
    each = _checks.integer("reports_per_person", reports_per_person, low=1)
    if users * each > protocol.n:
        reports = "" if each == 1 else f" with {each:,} reports each"
        _checks.reject("fakes", f"at most the n = {protocol.n:,} of the collection", f"{users:,}{reports}")
    share = Fraction(users * each, protocol.n)
    own, parts = protocol.shuffler.value_law is not None, protocol.parts
    read = counted(protocol)[0] if own or len(parts) > 1 else readout(parts[0][1])
    extremes = read.extremes(besides=protocol.shuffler.most_messages)
    return PoisoningGain(
        fakes=users,
        n=protocol.n,
        honest=_exact(share * extremes.truthful),
        raised=_exact(share * extremes.most),
        lowered=_exact(share * -extremes.least),
        at_once=extremes.at_once,
    )


def usual_fakes(n: int) -> int:
    """Return the assumed number of Sybil or colluding clients among n clients: one in a hundred, at least 1.

    >>> usual_fakes(33_000), usual_fakes(7)
    (330, 1)
    """
    return max(1, n // USUAL)


def _exact(value: Fraction) -> Bound:
    return Bound.exact(float(value), unit="")


def refused(randomizer: Mechanism, *, most_ones: int) -> Bound:
    """Return the probability that an honest one-hot encoding has more 1 bits than servers accept, for any value.

    At least one of n reports is refused with probability at most n times this probability p. Refusals add
    (1 + e**epsilon) n p to delta. A Sybil client can then raise at most `most_ones` shares at once.

    Args:
        randomizer: a one-hot encoding of k bits.
        most_ones: the limit, 0 to k.

    Raises:
        InvalidInputError: `most_ones` is out of range.
        UnsupportedProtocolError: another randomizer.

    Source: docs/theory/secure-sums.md, Theorem 9.

    >>> import hushuffle as hs
    >>> encoding = hs.UnaryEncoding(k=100, epsilon=8.0, encoding="symmetric")
    >>> print(refused(encoding, most_ones=4), refused(encoding, most_ones=20))
    0.1026 (exact) 1.355e-15 (exact)
    """
    law = randomizer.law().one_hot
    if law is None:
        _checks.unsupported(f"A limit on ones needs a one-hot encoding, not {type(randomizer).__name__}.")
    most = _checks.integer("most_ones", most_ones, low=0, high=law.k)
    truthful, raised = float(law.own), float(law.raised)
    own, rest = (float(binomial.upper_tail(most + place, law.k - 1, raised)) for place in (0, 1))
    return Bound.exact(truthful * own + (1 - truthful) * rest, unit="probability")
