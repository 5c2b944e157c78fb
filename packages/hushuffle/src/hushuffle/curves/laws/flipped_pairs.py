"""Columns of flipped bits: the target's pair of bit patterns, and all types of columns that other people may have.

Up to symmetry (permuting or complementing bits) the target's pair is a = 0...0 and b = 1...1 on h bits, and both are 0
on the other r = k - h bits. The type of another column is (w, v): w of the h bits and v of the r bits are 1 in it. A
report falls in a class by the number of ones in each of the four groups of bits. Within a class all reports have the
same probability.

A *pool* takes the same part from the distribution of every column: at most p**k from each bit pattern, since every
column has at least that probability. `own` is the distribution of a report given that it is not in the pool.

Let n columns be released, all other columns having bit pattern c. Relative to n reports from Q_c, the two distributions
of the release have densities (1/n) sum of Q_a/Q_c and (1/n) sum of Q_b/Q_c over the n reports. So

    delta(eps) = (1/n) E [sum of n scores]_+ ,  scores (Q_a - e**eps Q_b)/Q_c under Q_c .

Source: docs/theory/pool.md, Corollary 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.curves.base import ReportCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.kinds import Kinds
from hushuffle.curves.laws.pooled import EASY, MOST, odds
from hushuffle.curves.pairs.exact_loss import exact_pairs
from hushuffle.model import Witness
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.score_sums import positive_part
from hushuffle.numerics.score_tests import OtherReports, advantage

_FINE: Final = 0.005
_COARSE: Final = 0.02
"""Smoothing in standard deviations of the sum: `_FINE` for bounds, `_COARSE` for rankings."""

_FINER: Final = 0.4
"""Ratio of the smoothing of upper bounds to that of lower bounds: upper bounds lose more by smoothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonPool:
    """A pool of common reports: `share` is the probability that it takes of each bit pattern, `weight` the total.

    `share[d, s]` is for patterns with d ones among the h bits in which the target's pair differs, s among the others.
    """

    share: Floats
    weight: float

    @classmethod
    def none(cls, *, width: int, distance: int) -> CommonPool:
        return cls(share=np.zeros((distance + 1, width - distance + 1)), weight=0.0)

    @classmethod
    def of(cls, *, width: int, flip: Fraction, distance: int, wanted: float, enough: float) -> CommonPool:
        """A pool of weight `wanted`, else of at least `enough`, else the largest; far from patterns a and b.

        >>> pool = CommonPool.of(width=2, flip=Fraction(1, 4), distance=2, wanted=0.01, enough=0.01)
        >>> pool.share[:, 0].round(6).tolist(), round(pool.weight, 6)
        ([0.0, 0.005, 0.0], 0.01)
        """
        least, d, s = float(flip**width), np.arange(distance + 1)[:, None], np.arange(width - distance + 1)
        logos = np.outer(ways(distance), ways(width - distance))
        away = np.minimum(d, distance - d) + s
        inside = [least * float(logos[away >= low].sum()) for low in range(int(away.max()), -1, -1)]
        goals = ((EASY, wanted), (MOST, wanted), (MOST, enough))
        fits = [i for limit, goal in goals for i, mass in enumerate(inside) if goal <= limit * mass]
        best = fits[0] if fits else len(inside) - 1
        share = np.where(away >= away.max() - best, min(wanted / inside[best], MOST) * least, 0.0)
        return cls(share=share, weight=float((logos * share).sum()))


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFamily(Kinds):
    """All types of other columns: each has `ones` ones where the target's pair differs, and `apart` where it agrees."""

    width: int
    distance: int
    ones: npt.NDArray[np.int64]
    apart: npt.NDArray[np.int64]

    @classmethod
    def tabulated(
        cls, *, width: int, flip: Fraction, distance: int, pool: CommonPool, only: tuple[int, int] | None = None
    ) -> PairFamily:
        """Tabulates the report distributions of all column types, or only of `only` = (ones, apart).

        >>> family = PairFamily.tabulated(
        ...     width=2, flip=Fraction(1, 4), distance=2, pool=CommonPool.none(width=2, distance=2)
        ... )
        >>> family.ones.tolist(), family.part(0).near.tolist()
        ([0, 1, 2], [0.5625, 0.375, 0.0625])
        """
        kinds = [(w, v) for w in range(distance + 1) for v in range(width - distance + 1)] if only is None else [only]
        table = chances(width, flip)
        every = Kinds.listed([classes(table, distance, w, v, taken=pool.share, rest=1 - pool.weight) for w, v in kinds])
        return cls(
            width=width,
            distance=distance,
            near=every.near,
            far=every.far,
            own=every.own,
            starts=every.starts,
            ones=np.array([w for w, _ in kinds]),
            apart=np.array([v for _, v in kinds]),
        )

    def logo(self, kind: int) -> int:
        """A bit pattern of type number `kind`; the target's pair differs in the lowest `distance` bits."""
        return (1 << int(self.ones[kind])) - 1 | ((1 << int(self.apart[kind])) - 1) << self.distance


def dummies_kind(*, width: int, flip: Fraction, distance: int, pool: CommonPool, portion: float = 1.0) -> Kinds:
    """Distribution of a uniform dummy outside the pool, as the only type of its group.

    It gives `portion` times as much to the pool as a column, and is weighted by its odds of being in the pool.
    """
    table, rest = chances(width, flip), width - distance
    d, s = np.ogrid[: distance + 1, : rest + 1]
    logos = np.outer(ways(distance), ways(rest))
    own = logos * (0.5**width - portion * pool.share) / (1 - portion * pool.weight)
    logos = logos * odds((1.0, portion), pool.weight)[1]
    near, far = logos * table[d + s], logos * table[distance - d + s]
    return Kinds.of(near.ravel(), far.ravel(), own.reshape(1, -1))


@dataclass(frozen=True, kw_only=True, eq=False)
class OneLogo(ReportCurve):
    """Privacy curve of one pair of datasets in one order: all other columns have one bit pattern.

    The target's first `distance` bits are 0...0 in the first dataset and 1...1 in the second. The others' pattern has
    `ones` ones among these bits and `apart` ones among the rest. For the reversed order `ones` is `distance - ones`.
    """

    family: PairFamily
    n: int
    exact = False
    proof = "all others alike: a sum of independent scores, from its characteristic function"

    @classmethod
    def of(cls, *, width: int, flip: Fraction, n: int, distance: int, ones: int, apart: int) -> OneLogo:
        """Tabulates the report distributions for n columns.

        >>> pair = OneLogo.of(width=2, flip=Fraction(1, 4), n=1, distance=2, ones=0, apart=0)
        >>> round(pair.upper(1.0), 6)
        0.392607
        """
        pool = CommonPool.none(width=width, distance=distance)
        family = PairFamily.tabulated(width=width, flip=flip, distance=distance, pool=pool, only=(ones, apart))
        pure = distance * math.log((1 - flip) / flip) * (1 + 1e-15)
        return cls(family=family, n=n, local_epsilon=pure)

    @property
    def witness(self) -> Witness:
        """The bits are complemented so that the others' pattern is 0."""
        other, last = self.family.logo(0), (1 << self.family.distance) - 1
        where = "one of the target's bit patterns" if other in (0, last) else "a third bit pattern"
        return Witness(family=f"all others at {where}", others=(self.n - 1,), target=(other, other ^ last))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        target, others = (self.family.near, self.family.far), ((self.n - 1, self.family.own),)
        return exact_pairs(self.witness, target, others, log_tail=log_tail)

    def upper(self, epsilon: float) -> float:
        return self.below(epsilon)

    def below(self, epsilon: float, smoothing: float = _FINE) -> float:
        """Upper bound on the divergence of this pair."""
        count = np.array([float(self.n)])
        value = positive_part(self.family.scores(epsilon), count, 1 / count, smoothing=_FINER * smoothing)
        return min(value, self.family.local(epsilon))

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.at(epsilon), self.witness

    def at(self, epsilon: float, smoothing: float = _FINE) -> float:
        """Lower bound on the divergence of this pair."""
        gain, size = self.family.gain(epsilon)
        crowd = OtherReports(counts=(self.n - 1,), masses=self.family.own[None, :])
        target, growth = (self.family.near, self.family.far), math.exp(epsilon)
        if self.n == 1:
            return float(np.maximum(gain - 1e-14 * size, 0.0).sum()) * (1 - 1e-14)
        scores = self.family.scores(epsilon)
        return min(max(advantage(scores, crowd, target, growth, smoothing=smoothing), 0.0), 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class AllAlike(ReportCurve):
    """Privacy curve of one pair of datasets in both orders: all other columns have one bit pattern."""

    directions: tuple[OneLogo, OneLogo]
    proof = OneLogo.proof

    @classmethod
    def of(cls, *, width: int, flip: Fraction, n: int, others: int, target: tuple[int, int]) -> AllAlike:
        apart, other = target[0] ^ target[1], target[0] ^ others
        distance, ones, rest = apart.bit_count(), (other & apart).bit_count(), (other & ~apart).bit_count()
        forward, backward = (
            OneLogo.of(width=width, flip=flip, n=n, distance=distance, ones=held, apart=rest)
            for held in (ones, distance - ones)
        )
        return cls(directions=(forward, backward), local_epsilon=forward.pure)

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


def chances(width: int, flip: Fraction) -> Floats:
    """Probability of a report that differs from the column in d given bits, for d = 0 to `width`."""
    return np.array([float(flip**d * (1 - flip) ** (width - d)) for d in range(width + 1)])


def classes(
    table: Floats, distance: int, w: int, v: int, *, taken: Floats, rest: float, sides: tuple[int, ...] = ()
) -> tuple[Floats, Floats, Floats]:
    """Return Q_a, Q_b and the distribution of another column's report over the classes, shape (classes,) each.

    A class: numbers of ones in groups of w, h - w, v and r - v bits, and each fixed bit. `sides`: the column's fixed
    bits. `taken`: probability of each report in earlier pools; `rest`: that of being in none.
    """
    free = distance - len(sides)
    sizes = (w, free - w, v, table.size - 1 - distance - v, *(1 for _ in sides))
    i, j, u, s, *bits = np.ogrid[tuple(slice(size + 1) for size in sizes)]
    logos = np.ones(())
    for size in sizes:
        logos = np.multiply.outer(logos, ways(size))
    other, ones = sum((bit != side) for bit, side in zip(bits, sides, strict=True)), i + j + sum(bits)
    own = logos * (table[w - i + j + v - u + s + other] - taken[(i + j, u + s, *bits)]) / rest
    near, far = logos * table[ones + u + s], logos * table[distance - ones + u + s]
    return near.ravel(), far.ravel(), own.ravel()


def ways(size: int) -> Floats:
    return np.array([math.comb(size, x) for x in range(size + 1)], dtype=np.float64)
