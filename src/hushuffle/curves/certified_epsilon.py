"""From a curve to epsilon: both ends solved for, each certified by evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hushuffle.curves.base import PrivacyCurve, between
from hushuffle.model import Bound, Witness
from hushuffle.numerics.roots import crossing

LARGEST: Final = 300.0
"""No finite epsilon above this is looked for: e**300 is certainty."""


class SearchedCurve(PrivacyCurve):
    """A curve whose epsilon is found by evaluating both ends; what it starts from need not be right."""

    def guess(self) -> float:
        """Return an epsilon of the right size for ordinary delta, to start a search from."""
        return self.pure / 4

    def focus(self, delta: float) -> SearchedCurve:  # noqa: ARG002 - not every curve can profit
        """Return `near(delta)`."""
        return self

    def contenders(self, epsilon: float) -> SearchedCurve:  # noqa: ARG002
        """Return the datasets that matter near `epsilon`: a search aid, whose upper end is no bound."""
        return self

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        del often
        return self.focus(delta)

    def epsilon(self, delta: float) -> Bound:
        """Return the bracket.

        Raises:
            NumericalError: rounding hides the crossing.

        >>> from fractions import Fraction
        >>> from hushuffle.curves.one_logo import AllAlike
        >>> pair = AllAlike.of(width=2, flip=Fraction(1, 4), n=1000, others=0, target=(0, 3))
        >>> print(pair.epsilon(1e-3))
        0.1245 to 0.1246 nats (certified bracket)
        """
        if delta == 0:
            return self.pure_bound()
        law = self.focus(delta)
        lower, witness = _lower_end(law, delta, law.guess())
        few = law.contenders(lower)
        if few is not law:
            lower, witness = _lower_end(few, delta, lower)
        upper = _upper_end(law, few, delta, lower)
        return between(lower, upper, unit="nats", sources=law.sources, witness=witness)

    def _sharpest(self, epsilon: float) -> tuple[float, Witness]:
        return self.contenders(epsilon).lower(epsilon)


def smallest_above(upper: Callable[[float], float], delta: float, *, high: float, guess: float) -> float:
    """Return about the smallest epsilon with upper(epsilon) <= delta, evaluated; `high` is known to do."""
    return 0.0 if upper(0.0) <= delta else crossing(upper, delta, high=high, guess=guess)[1]


def _upper_end(law: PrivacyCurve, few: PrivacyCurve, delta: float, guess: float) -> float:
    if law.upper(0.0) <= delta:
        return 0.0
    if law.pure > LARGEST and law.upper(LARGEST) > delta:
        return law.pure
    high = min(law.pure, LARGEST)
    point = crossing(few.upper, delta, high=high, guess=guess)[1]
    return point if law.upper(point) <= delta else crossing(law.upper, delta, high=high, guess=point)[1]


def _lower_end(law: PrivacyCurve, delta: float, guess: float) -> tuple[float, Witness]:
    at_zero, witness = law.lower(0.0)
    if at_zero <= delta:
        return 0.0, witness
    if law.pure > LARGEST and law.lower(LARGEST)[0] > delta:
        return LARGEST, witness
    point = crossing(lambda e: law.lower(e)[0], delta, high=min(law.pure, LARGEST), guess=guess)[0]
    return point, law.lower(point)[1]
