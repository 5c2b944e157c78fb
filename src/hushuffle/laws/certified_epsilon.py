"""From a divergence to epsilon: both ends solved for, each certified by evaluation.

Source: theory.md section 1.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hushuffle.laws.base import Divergence, between
from hushuffle.laws.noisy_order import NoisyOrder
from hushuffle.laws.symmetric import Local
from hushuffle.model import Bound, Witness
from hushuffle.numerics.roots import crossing

LARGEST: Final = 300.0
"""No finite epsilon above this is looked for: e**300 is certainty."""


def certified_epsilon(law: Divergence, delta: float) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) at which the divergence is at most delta, in [0, 1).

    Raises:
        NumericalError: rounding hides the crossing.

    >>> from fractions import Fraction
    >>> from hushuffle.laws.one_logo import AllAlike
    >>> pair = AllAlike.of(width=2, flip=Fraction(1, 4), n=1000, others=0, target=(0, 3))
    >>> print(certified_epsilon(pair, 1e-3))
    0.1245 to 0.1246 nats (certified bracket)
    """
    if isinstance(law, NoisyOrder):
        low, high = certified_epsilon(law.hidden, delta), law.pure
        return between(low.lower, high, unit="nats", sources=law.sources, witness=low.witness, exact=low.lower == high)
    if isinstance(law, Local):
        return Bound.exact(law.epsilon_at(delta), unit="nats", witness=law.lower(0.0)[1])
    if delta == 0:
        return law.pure_bound()
    law = law.focus(delta)
    lower, witness = _lower_end(law, delta, law.guess())
    few = law.contenders(lower)
    if few is not law:
        lower, witness = _lower_end(few, delta, lower)
    upper = _upper_end(law, few, delta, lower)
    return between(lower, upper, unit="nats", sources=law.sources, witness=witness)


def smallest_above(upper: Callable[[float], float], delta: float, *, high: float, guess: float) -> float:
    """Return about the smallest epsilon with upper(epsilon) <= delta, evaluated; `high` is known to do."""
    return 0.0 if upper(0.0) <= delta else crossing(upper, delta, high=high, guess=guess)[1]


def _upper_end(law: Divergence, few: Divergence, delta: float, guess: float) -> float:
    if law.upper(0.0) <= delta:
        return 0.0
    if law.pure > LARGEST and law.upper(LARGEST) > delta:
        return law.pure
    high = min(law.pure, LARGEST)
    point = crossing(few.upper, delta, high=high, guess=guess)[1]
    return point if law.upper(point) <= delta else crossing(law.upper, delta, high=high, guess=point)[1]


def _lower_end(law: Divergence, delta: float, guess: float) -> tuple[float, Witness]:
    at_zero, witness = law.lower(0.0)
    if at_zero <= delta:
        return 0.0, witness
    if law.pure > LARGEST and law.lower(LARGEST)[0] > delta:
        return LARGEST, witness
    point = crossing(lambda e: law.lower(e)[0], delta, high=min(law.pure, LARGEST), guess=guess)[0]
    return point, law.lower(point)[1]
