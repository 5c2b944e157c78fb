"""Columns of flipped bits in small crowds: a privacy blanket that depends on the dataset.

Another column with bit pattern z reports as if it had pattern y with probability (p/q)**d at least, where d is the
Hamming distance of z and y: it *resembles* y. The bound reveals the reports of all columns that do not resemble y. The
target is then among B others that all report as y does, B being a sum of independent Bernoulli variables. With H_y(N)
the divergence among N such reports,

    delta(eps) <= E H_y(1 + B) .

The adversary knows the dataset, so y may depend on it. The expected numbers of reports y, q**k E B, add up to the
number of other columns. So if thresholds T_y satisfy q**k sum of T_y <= n - 1, every dataset has a y with E B >= T_y,
and the largest bound over all y, with E B = T_y, is valid for every dataset.

Source: docs/theory/crowds.md, Theorem 3 and Corollary 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle.curves.laws.flipped_pairs import CommonPool, PairFamily
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.roots import halved
from hushuffle.numerics.score_sums import positive_part

_FEW: Final = (6.5, 5.0, 4.0, 3.0, 1.5, 0.0)
_MANY: Final = (8.0, 6.5, 5.5, 5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0, 0.6, 0.3, 0.0)
"""Boundaries of the bins of B, in standard deviations below its mean."""

_SINGLE: Final = 30.0
"""Mean of B below which each bin has one number."""

_FINE: Final = 0.01
_ROUGH: Final = 0.05
"""Smoothing of a sum, in its standard deviations, with many bins and with few."""

_HALVINGS: Final = 8
"""Number of halvings of the interval of the logarithm of a threshold."""

_STRIDE: Final = 1.2
"""Step of epsilon, in units of the logarithm of the part of all columns that thresholds need."""

_CLOSE: Final = 0.03
"""Logarithm of that part from which no further step is taken."""

_STEPS: Final = 4
"""Largest number of steps towards the epsilon for which thresholds are chosen: where they need just all columns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """All bit patterns y of one type: `number` of them, each with this `threshold`. `family` has only this type."""

    family: PairFamily
    number: int
    threshold: float = 1.0

    @classmethod
    def every(cls, width: int, flip: Fraction, distance: int) -> list[Reference]:
        """Return all types of bit patterns, for a target's pair at this Hamming distance.

        >>> [each.number for each in Reference.every(3, Fraction(1, 4), 2)]
        [1, 1, 2, 2, 1, 1]
        """
        none, rest = CommonPool.none(width=width, distance=distance), width - distance
        return [
            cls(
                family=PairFamily.tabulated(width=width, flip=flip, distance=distance, pool=none, only=(ones, apart)),
                number=math.comb(distance, ones) * math.comb(rest, apart),
            )
            for ones in range(distance + 1)
            for apart in range(rest + 1)
        ]

    def among(self, people: int, epsilon: float, *, fine: bool) -> float:
        """Return an upper bound on E H(1 + B) over all B of `people` columns with a mean of at least `threshold`."""
        numbers, weights = alike(people, self.threshold, _MANY if fine else _FEW)
        smoothing = _FINE if fine else _ROUGH
        return positive_part(self.family.scores(epsilon), numbers, weights / numbers, smoothing=smoothing)

    def fitted(self, people: int, epsilon: float, level: float) -> Reference:
        """Return the type with about the smallest threshold with a bound of at most `level`, or with `people`."""

        def small(logarithm: float) -> bool:
            return replace(self, threshold=math.exp(logarithm)).among(people, epsilon, fine=False) <= level

        return replace(self, threshold=math.exp(halved(small, good=math.log(people), bad=0.0, times=_HALVINGS)))


@dataclass(frozen=True, kw_only=True, eq=False)
class LikenessBlankets:
    """Upper bound on delta for a target among `people` other columns of `width` flipped bits.

    Thresholds are chosen for a delta of about `level`. Any choice gives an upper bound at every epsilon.
    """

    width: int
    flip: Fraction
    people: int
    level: float = 1e-6
    cache: dict[int, tuple[float, tuple[Reference, ...]]] = field(default_factory=dict)

    def upper(self, epsilon: float, distances: Iterable[int] = ()) -> float:
        """Return an upper bound on delta over pairs at the Hamming distances `distances` (empty: all).

        >>> blankets = LikenessBlankets(width=6, flip=Fraction(1, 10), people=9_999, level=1e-6)
        >>> blankets.upper(6.6, (6,)) < 1e-6
        True
        """
        if self.people == 0:
            return 1.0
        worst = 0.0
        for distance in distances or range(self.width, 0, -1):
            if epsilon >= distance * self._bit * (1 + 1e-12):
                continue
            references = self.references(distance)[1]
            local = references[0].family.local(epsilon)
            rough = [each.among(self.people, epsilon, fine=False) for each in references]
            for i in sorted(range(len(rough)), key=lambda i: -rough[i]):
                if min(rough[i], local) > worst:
                    worst = max(worst, min(references[i].among(self.people, epsilon, fine=True), rough[i], local))
        return min(worst * (1 + 1e-9), 1.0)

    def references(self, distance: int) -> tuple[float, tuple[Reference, ...]]:
        """Return an epsilon, and types of bit patterns with thresholds that are reached by one of them in any dataset.

        At this epsilon the bound for pairs at this distance is about `level`.
        """
        if distance not in self.cache:
            pure = distance * self._bit
            epsilon = min(self.references(self.width)[0], pure) if distance < self.width else pure / 2
            every, part = Reference.every(self.width, self.flip, distance), 1.0
            for _ in range(_STEPS):
                every = [each.fitted(self.people, epsilon, self.level) for each in every]
                total = sum(each.number * each.threshold for each in every)
                part = float((1 - self.flip) ** self.width) * total / self.people
                if abs(math.log(part)) < _CLOSE:
                    break
                epsilon = min(max(epsilon + _STRIDE * math.log(part), 0.0), pure)
            whole = (1 - 1e-12) / part
            scaled = (replace(each, threshold=min(each.threshold * whole, float(self.people))) for each in every)
            self.cache[distance] = epsilon, tuple(scaled)
        return self.cache[distance]

    @property
    def _bit(self) -> float:
        """Local epsilon of one bit."""
        return math.log((1 - self.flip) / self.flip)


def alike(people: int, threshold: float, ends: tuple[float, ...] = _MANY) -> tuple[Floats, Floats]:
    """Return bins of 1 + B, each with its smallest number, and the weights for which a falling function is largest.

    B is any sum of `people` independent Bernoulli variables with mean at least `threshold`. Bins begin at `ends`
    standard deviations below the mean. Shapes (bins,).

    >>> numbers, weights = alike(4, 2.0)
    >>> numbers.tolist(), weights.round(4).tolist()  # P(B = 0) <= 1/16, P(B <= 1) <= 5/16
    ([1.0, 2.0, 3.0], [0.0625, 0.25, 0.6875])
    """
    spread = math.sqrt(threshold * max(1 - threshold / people, 0.0))
    lows = np.unique(np.maximum(np.floor(threshold - spread * np.array(ends)), 0.0))
    if threshold < _SINGLE:
        lows = np.arange(math.floor(threshold) + 1.0)
    # P(B < low) is at most that of a binomial number with this mean, if low <= threshold (Hoeffding).
    below = binomial.lower_tail(lows - 1, people, min(threshold / people, 1.0)) * (1 + 1e-9)
    below[0] = 0.0
    weights = np.diff(np.append(below, 1.0)) + 4 * EPS
    return 1 + lows, weights
