"""What a guesser can do at most, where the exact figure is not known: two bounds that hold for every guesser."""

from __future__ import annotations

import math
from dataclasses import replace

from hushuffle.curves.capacity import BRAUN
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Bound
from hushuffle.questions import pie

_ROUNDING = 2.0**-50


def bounded_vulnerability(protocol: Protocol, *, epsilon: float, delta: float) -> Bound:
    """Return an upper bound on guessing the target's value, uniform beforehand, whatever is known of the others.

    The smaller of two. With the target's report seen next to its name, and no other report depending on the target's
    value: sum_y max_x Q(y|x)/k; what a shuffler releases says no more. And for an (epsilon, delta)-differentially
    private release, P_x(S) <= e**epsilon P_0(S) + delta, so that sum_x P_x(guess is x)/k <= e**epsilon/k +
    (1 - 1/k) delta.

    Args:
        protocol: what is collected and how.
        epsilon: central epsilon in nats that is certified at `delta`; may be infinite.
        delta: its delta.

    Raises:
        UnsupportedProtocolError: the randomizer offers no law that `pie.bayes_error` reads.

    Source: Braun, Chatzikokolakis, Palamidessi 2009; docs/theory/guessing.md, Theorem 9.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.LocalHashing(k=1000, g=4, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10_000
    ... )
    >>> bound = bounded_vulnerability(survey, epsilon=hs.dp.epsilon(survey, delta=1e-6).upper, delta=1e-6)
    >>> print(bound)
    at most 0.001031 (upper bound)
    """
    k = protocol.randomizer.inputs
    # To name a value among k is to name a person among k who hold one value each.
    named = 1 - pie.bayes_error(replace(protocol, n=k, shuffler=NoShuffle())).lower
    released = math.exp(min(epsilon, 700.0)) / k + (1 - 1 / k) * delta
    most = min(1.0, min(named, released) * (1 + _ROUNDING))
    return Bound(lower=min(1 / k, most), upper=most, kind="upper", unit="probability", sources=(BRAUN,))
