"""A privacy curve that remembers its computed points, and interpolates between enough of them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.base import LARGEST, PrivacyCurve, bracket
from hushuffle.curves.pairs.known_curve import KnownCurve
from hushuffle.model import Bound

_CLOSE: Final = 1e-3
"""If the bounds differ by less than this fraction, a single point between the bounds is evaluated."""


class EvaluatedCurve:
    """The bounds on delta of `curve` at the epsilons computed so far; `least` is the smallest delta of interest.

    >>> import hushuffle as hs
    >>> from hushuffle.curves.search import privacy_curve
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> known = EvaluatedCurve(privacy_curve(local), points=3, least=1e-9)
    >>> round(known.point(0.5).upper, 4), known.table().epsilons.round(2).tolist()
    (0.2876, [0.0, 0.5, 0.5, 1.0, 1.0])
    """

    def __init__(self, curve: PrivacyCurve, *, points: int, least: float) -> None:
        self.curve, self.points, self.least = curve, points, least
        self.known: dict[float, Bound] = {}

    @cached_property
    def last(self) -> Bound:
        """The epsilon at which the curve falls to `least`, or almost to its limit if that is larger."""
        bound = self.curve.epsilon(self.least)
        if math.isfinite(bound.upper) and bound.upper <= LARGEST:
            return bound
        rest = self.point(LARGEST).upper
        return self.curve.epsilon(min(1.01 * rest, 1 - 1e-12)) if rest < 1 else Bound.exact(LARGEST, unit="nats")

    @property
    def end(self) -> float:
        return min(self.last.upper, LARGEST)

    def point(self, level: float) -> Bound:
        """Return the bounds on delta at the epsilon `level` (nats, >= 0), computed once."""
        if level not in self.known:
            self.known[level] = self.curve.delta(level)
        return self.known[level]

    def table(self, until: float = 0.0) -> KnownCurve:
        """The interpolated curve, after evaluating further points if there are too few, up to `least` or `until`."""
        ends = [(0.0, self.end)] + [(self.end, until)] * (until > self.end)
        for start, end in ends:
            for level in np.linspace(start, end, self.points).tolist():
                self.point(level)
        if self.curve.pure <= LARGEST:
            self.point(self.curve.pure)
        levels = sorted(self.known)
        bounds = [self.known[level] for level in levels]
        lower, upper = np.array([each.lower for each in bounds]), np.array([each.upper for each in bounds])
        return KnownCurve(epsilons=np.array(levels), lower=lower, upper=upper)

    def crossing(self, level: float) -> Bound:
        """Interpolated bounds on epsilon at the delta `level`, after evaluating one more point near each bound."""
        table, wanted, last = self.table(), math.sqrt(-math.log(level)), 0.0
        for ends in (table.upper, table.lower):
            deep = np.sqrt(-np.log(np.clip(ends, 1e-300, 1.0)))  # nearly a straight line
            place = min(float(np.interp(wanted, np.maximum.accumulate(deep), table.epsilons)), self.end)
            if abs(place - last) > _CLOSE * place:
                self.point(place)
            last = place
        lower, upper = self.table().epsilon(np.array(level))
        return bracket(float(lower), float(upper), unit="nats", sources=self.curve.sources)
