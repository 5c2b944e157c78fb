"""Central differential privacy of a protocol: delta for an epsilon, epsilon for a delta."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.laws.base import Divergence, between
from hushuffle.laws.divergence import divergence
from hushuffle.laws.symmetric import Local
from hushuffle.model import Bound, Witness
from hushuffle.numerics.roots import crossing

if TYPE_CHECKING:
    from hushuffle.protocol import Protocol

_LARGEST = 300.0
"""No finite epsilon above this is looked for: e**300 is certainty."""


def delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return a certified bracket of the smallest delta for which the release is (epsilon, delta)-DP.

    Relation: replace one person's value, n fixed. The adversary knows everybody else's value and
    sees everything the shuffler releases. The upper end holds for all pairs of datasets; the lower end
    is attained at the bound's witness.

    Args:
        protocol: the collection.
        epsilon: in nats, finite, >= 0.

    Raises:
        InvalidInputError: epsilon out of range.
        UnsupportedProtocolError: no law for this randomizer and shuffler.

    Source: theory.md section 1.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.delta(survey, epsilon=0.2))
    1.656e-04 (certified bracket)
    """
    level = _checks.non_negative("epsilon", epsilon)
    law = divergence(protocol)
    upper = law.upper(level)
    lower, witness = law.contenders(level).lower(level)
    return between(lower, upper, unit="probability", sources=law.sources, witness=witness, exact=law.exact)


def epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) for which the release is (epsilon, delta)-DP.

    Relation, adversary and ends as for `delta`. At delta = 0 the figure is the pure guarantee, which
    shuffling does not improve.

    Args:
        protocol: the collection.
        delta: in [0, 1).

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: no law for this randomizer and shuffler.
        NumericalError: rounding hides the crossing (never observed above delta = 1e-30).

    Source: theory.md sections 1.1 to 1.3 and 1.6.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.epsilon(survey, delta=1e-6))
    0.05112 to 0.05115 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    law = divergence(protocol)
    if isinstance(law, Local):
        return Bound.exact(law.epsilon_at(level), unit="nats", witness=law.lower(0.0)[1])
    if level == 0:
        return Bound.exact(law.pure, unit="nats", sources=law.sources, witness=law.lower(0.0)[1])
    law = law.focus(level)
    lower, witness = _lower_end(law, level, law.guess())
    few = law.contenders(lower)
    if few is not law:
        lower, witness = _lower_end(few, level, lower)
    upper = _upper_end(law, few, level, lower)
    return between(lower, upper, unit="nats", sources=law.sources, witness=witness)


def local_epsilon(protocol: Protocol) -> Bound:
    """Return epsilon_0 (nats): what holds even if the shuffler is broken or colludes; exact, rounded up.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=10)
    >>> print(hs.dp.local_epsilon(survey))
    2.000 nats (exact)
    """
    return Bound.exact(protocol.randomizer.local_epsilon, unit="nats")


def _upper_end(law: Divergence, few: Divergence, level: float, guess: float) -> float:
    if law.upper(0.0) <= level:
        return 0.0
    if law.pure > _LARGEST and law.upper(_LARGEST) > level:
        return math.inf
    high = min(law.pure, _LARGEST)
    point = crossing(few.upper, level, high=high, guess=guess)[1]
    if law.upper(point) <= level:
        return point
    return crossing(law.upper, level, high=high, guess=point)[1]


def _lower_end(law: Divergence, level: float, guess: float) -> tuple[float, Witness]:
    at_zero, witness = law.lower(0.0)
    if at_zero <= level:
        return 0.0, witness
    if law.pure > _LARGEST and law.lower(_LARGEST)[0] > level:
        return _LARGEST, witness
    point = crossing(lambda e: law.lower(e)[0], level, high=min(law.pure, _LARGEST), guess=guess)[0]
    return point, law.lower(point)[1]
