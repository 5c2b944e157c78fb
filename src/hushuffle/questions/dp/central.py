"""Central differential privacy of a protocol: delta for an epsilon, epsilon for a delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.curves.divergence import divergence
from hushuffle.model import Bound

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

LARGE_EPSILON = 5.0
"""Above this the guarantee is a weak promise by itself."""


def delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return a certified bracket of the smallest delta for which the release is (epsilon, delta)-DP.

    Relation: replace one person's value, n fixed. The adversary knows everybody else's value and
    sees everything the shuffler releases. The upper bound holds for all pairs of datasets; the lower bound
    is attained at the bound's witness.

    Args:
        protocol: the collection.
        epsilon: in nats, finite, >= 0.

    Raises:
        InvalidInputError: epsilon out of range.
        UnsupportedProtocolError: no law for this randomizer and shuffler.

    Source: docs/theory/two-values.md, docs/theory/blanket.md, docs/theory/datasets.md.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.delta(survey, epsilon=0.2))
    1.656e-04 (certified bracket)
    """
    level = _checks.non_negative("epsilon", epsilon)
    return divergence(protocol).delta(level)


def epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) for which the release is (epsilon, delta)-DP.

    Relation, adversary and ends as for `delta`. At delta = 0 the figure is the pure guarantee, which
    shuffling does not improve. Where a shuffler reveals a noisy order, the ends are the uniform shuffle's lower one and
    epsilon_0: both hold by post-processing. What such an order hides is another question (`hushuffle.order`).

    Args:
        protocol: the collection.
        delta: in [0, 1).

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: no law for this randomizer and shuffler.
        NumericalError: rounding hides the crossing (never observed above delta = 1e-30).

    Source: docs/theory/two-values.md, docs/theory/blanket.md, docs/theory/datasets.md, docs/theory/pool.md.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.epsilon(survey, delta=1e-6))
    0.05112 to 0.05115 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    return divergence(protocol).epsilon(level)


def local_epsilon(protocol: Protocol) -> Bound:
    """Return epsilon_0 (nats): what holds even if the shuffler is broken or colludes; exact, rounded up.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=10)
    >>> print(hs.dp.local_epsilon(survey))
    2.000 nats (exact)
    """
    return Bound.exact(protocol.randomizer.local_epsilon, unit="nats")
