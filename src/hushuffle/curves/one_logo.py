"""Bit flipping: the exact divergence of a pair of logos when all other columns hold one and the same logo.

With n columns, all others at c, the two laws of the release have densities (1/n) sum of Q_a/Q_c, and of Q_b/Q_c, over
the n reports, relative to n reports from Q_c. So

    delta(eps) = (1/n) E [sum of n scores]_+ ,  scores (Q_a - e**eps Q_b)/Q_c under Q_c .

Source: docs/theory/datasets.md, Theorem 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle.curves.certified_epsilon import SearchedCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.exact_loss import exact_pairs
from hushuffle.curves.flipped_pairs import PairFamily, Pool
from hushuffle.model import Witness
from hushuffle.numerics.score_sums import Crowd, advantage, positive_part

_FINE: Final = 0.005
_COARSE: Final = 0.02
"""Smoothing in standard deviations of the sum: for a figure, and to see which one matters."""

_FINER: Final = 0.4
"""Upper ends lose more by smoothing: theirs, over that of lower ends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OneLogo(SearchedCurve):
    """The target at 0...0 or at 1...1 on `distance` bits; others with `ones` of these, and `apart` of the rest, 1.

    One direction only: the first value against the second. The other direction is the kind with
    `distance - ones` ones.
    """

    family: PairFamily
    n: int
    local_epsilon: float
    exact = False
    proof = "all others alike: a sum of independent scores, from its characteristic function"

    @classmethod
    def of(cls, *, width: int, flip: Fraction, n: int, distance: int, ones: int, apart: int) -> OneLogo:
        """Tabulate it.

        >>> pair = OneLogo.of(width=2, flip=Fraction(1, 4), n=1, distance=2, ones=0, apart=0)
        >>> round(pair.upper(1.0), 6)
        0.392607
        """
        pool = Pool.none(width=width, distance=distance)
        family = PairFamily.of(width=width, flip=flip, distance=distance, pool=pool, only=(ones, apart))
        pure = distance * math.log((1 - flip) / flip) * (1 + 1e-15)
        return cls(family=family, n=n, local_epsilon=pure)

    @property
    def pure(self) -> float:
        return self.local_epsilon

    @property
    def witness(self) -> Witness:
        """Return the pair of neighbouring datasets, logos renamed so that the others hold 0."""
        other, last = self.family.logo(0), (1 << self.family.distance) - 1
        name = "all others at one of the target's logos" if other in (0, last) else "all others at a third logo"
        return Witness(family=name, others=(self.n - 1,), target=(other, other ^ last))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        target, others = (self.family.near, self.family.far), ((self.n - 1, self.family.own),)
        return exact_pairs(self.witness, target, others, log_tail=log_tail)

    def upper(self, epsilon: float) -> float:
        return self.below(epsilon)

    def below(self, epsilon: float, smoothing: float = _FINE) -> float:
        """Return an upper end of the divergence."""
        count = np.array([float(self.n)])
        value = positive_part(self.family.scores(epsilon), count, 1 / count, smoothing=_FINER * smoothing)
        return min(value, self.family.local(epsilon))

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.at(epsilon), self.witness

    def at(self, epsilon: float, smoothing: float = _FINE) -> float:
        """Return a lower end of the divergence."""
        gain, size = self.family.gain(epsilon)
        crowd = Crowd(counts=(self.n - 1,), masses=self.family.own[None, :])
        target, growth = (self.family.near, self.family.far), math.exp(epsilon)
        if self.n == 1:
            return float(np.maximum(gain - 1e-14 * size, 0.0).sum()) * (1 - 1e-14)
        scores = self.family.scores(epsilon)
        return min(max(advantage(scores, crowd, target, growth, smoothing=smoothing), 0.0), 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class AllAlike(SearchedCurve):
    """The target at one of two logos, all others at one logo: both directions."""

    directions: tuple[OneLogo, OneLogo]
    local_epsilon: float
    proof = OneLogo.proof

    @classmethod
    def of(cls, *, width: int, flip: Fraction, n: int, others: int, target: tuple[int, int]) -> AllAlike:
        """Tabulate it; logos are integers 0 to 2**width - 1."""
        apart, other = target[0] ^ target[1], target[0] ^ others
        distance, ones, rest = apart.bit_count(), (other & apart).bit_count(), (other & ~apart).bit_count()
        one, two = (
            OneLogo.of(width=width, flip=flip, n=n, distance=distance, ones=held, apart=rest)
            for held in (ones, distance - ones)
        )
        return cls(directions=(one, two), local_epsilon=one.pure)

    @property
    def pure(self) -> float:
        return self.local_epsilon

    def guess(self) -> float:
        return min(self.pure / 2, 1.0)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        likely, other = sorted(self.directions, key=lambda one: -one.below(epsilon, _COARSE))
        best = likely.upper(epsilon)
        rest = other.below(epsilon, _COARSE)
        return best if rest <= best else max(best, other.upper(epsilon))

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return max(self.directions, key=lambda one: one.at(epsilon, _COARSE)).lower(epsilon)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return self.directions[0].datasets(log_tail=log_tail)
