"""Certified bounds of epsilon with few evaluations: slightly wider than the bounds of `dp.epsilon`, but faster."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from hushuffle.curves.base import LARGEST, bracket
from hushuffle.numerics.roots import brent

if TYPE_CHECKING:
    from hushuffle.curves.base import PrivacyCurve
    from hushuffle.model import Bound

_SLACKS: Final = (0.002, 0.01, 0.05, 0.2)
"""Bounds at these relative distances from the approximate epsilon are tried in this order, until one is proven."""

_STEP: Final = 0.03
_LEAST: Final = 1e-6
_RESOLUTION: Final = 3e-4


def near_ends(curve: PrivacyCurve, delta: float, guess: float) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) with delta(epsilon) <= `delta`.

    A search approximates epsilon, without proof. Then a lower and an upper bound near this value are verified on the
    curve. If no bound within a fifth of the value is proven, the result is that of `dp.epsilon`.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle
    >>> from hushuffle.questions.dp.composition import curve_of
    >>> survey = Protocol(randomizer=RandomizedResponse(k=5, epsilon=2.0), shuffler=UniformShuffle(), n=33_000)
    >>> print(near_ends(curve_of(survey), 1e-6, 0.05))
    0.05104 to 0.05125 nats (certified bracket)
    """
    law = curve.near(delta)
    high = min(law.pure, LARGEST)
    root = _crossing(law, delta, min(guess, high / 1.01), high)
    beyond, before = ([root * (1 + sign * slack) for slack in _SLACKS] for sign in (1, -1))
    upper = next((place for place in beyond if place >= law.pure or law.upper(place) <= delta), None)
    lower = next((place for place in before if law.lower(place)[0] > delta), None)
    if upper is None or lower is None:
        return curve.epsilon(delta)
    return bracket(lower, min(upper, law.pure), unit="nats", sources=law.sources)


def _crossing(law: PrivacyCurve, delta: float, guess: float, high: float) -> float:
    """Return the approximate epsilon at which the privacy curve equals delta; the result is not a bound."""

    def excess(exponent: float) -> float:
        place = math.exp(exponent)
        return -1.0 if place >= high else math.log(max(law.likely(place), 1e-300) / delta)

    left = right = math.log(guess)
    step = _STEP
    if excess(left) > 0:
        while excess(right) > 0:
            left, right, step = right, right + step, 2 * step
    else:
        while excess(left) <= 0 and left > math.log(_LEAST):
            left, right, step = left - step, left, 2 * step
    if left <= math.log(_LEAST):
        return _LEAST
    return math.exp(brent(excess, left, right, absolute=_RESOLUTION, relative=0.0))
