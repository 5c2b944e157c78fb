"""Fake users: how far reports of people who want to move an estimated share can move it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hushuffle import _checks
from hushuffle.curves.readout import counted, readout
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, number

USUAL: Final = 100
"""One person in so many is taken for fake, or for a colluder, where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class PoisoningGain:
    """How far `fakes` of the n people can move the expected estimate of a value's share, by whichever reports.

    Shares are of all n people; the true one counts honest people only. `honest` raises it at most if fake users
    follow the protocol with values of their choice, `raised` and `lowered` (both >= 0) with reports of their choice:
    exact, somebody who knows the mechanism reaches them. The same reports raise at most `at_once` values so far at
    once.
    """

    fakes: int
    n: int
    honest: Bound
    raised: Bound
    lowered: Bound
    at_once: int

    def __str__(self) -> str:
        return f"{self.fakes:,} fake users of {self.n:,}: {self.words}"

    @property
    def words(self) -> str:
        """How far they move a share."""
        raised, honest, lowered = (number(end.upper, up=True) for end in (self.raised, self.honest, self.lowered))
        return f"any share up by at most {raised} ({honest} if they follow the protocol), or down by at most {lowered}"


def poisoning_gain(protocol: Protocol, *, fakes: int, reports_per_person: int = 1) -> PoisoningGain:
    """Return how far fake users can move the expected estimate of any value's share, at most; both ends are exact.

    They know the mechanism and everybody's value, work together, and send what the collection can count. The bounds
    hold whatever honest people hold. Where people may send further messages, fake users send as many as they may. An
    estimate moves by chance besides: its standard error is another matter.

    Args:
        protocol: the collection; its n counts fake users too, and reports where a person gives several.
        fakes: how many of the n are fake, from 0.
        reports_per_person: how many of the n reports each of them gives, at most.

    Raises:
        InvalidInputError: a number out of range, or more fake reports than n.
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
    _checks.of_type("protocol", protocol, Protocol)
    users = _checks.integer("fakes", fakes, low=0)
    each = _checks.integer("reports_per_person", reports_per_person, low=1)
    if users * each > protocol.n:
        reports = "" if each == 1 else f" with {each:,} reports each"
        _checks.reject("fakes", f"at most the n = {protocol.n:,} of the collection", f"{users:,}{reports}")
    share = Fraction(users * each, protocol.n)
    own = protocol.shuffler.value_law is not None
    read = counted(protocol)[0] if own else readout(protocol.randomizer)
    extremes = read.extremes(besides=protocol.shuffler.most_messages)
    return PoisoningGain(
        fakes=users,
        n=protocol.n,
        honest=_exact(share),
        raised=_exact(share * extremes.most),
        lowered=_exact(share * -extremes.least),
        at_once=extremes.at_once,
    )


def usual_fakes(n: int) -> int:
    """Return the number of fake users, or of colluders, that is looked at where none is given: one in a hundred.

    >>> usual_fakes(33_000), usual_fakes(7)
    (330, 1)
    """
    return max(1, n // USUAL)


def _exact(value: Fraction) -> Bound:
    return Bound.exact(float(value), unit="")
