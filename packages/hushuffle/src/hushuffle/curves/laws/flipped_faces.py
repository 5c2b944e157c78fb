"""Columns of flipped bits in small crowds: if the pool of common reports is empty, a pool of half the columns follows.

If n p**k is about 1, the pool that all bit patterns share (`flipped_columns`) is empty too often. But at least half of
the columns have the same value of a given bit. If the first pool is empty, the bound reveals the columns with the other
value of that bit. The remaining columns, a *face* of the cube of bit patterns, have more in common and allow a second
pool, and so on. With m_0 = n - 1 other columns and m_(j+1) half of m_j,

    delta(eps) <= sum over j of P(M_0 = ... = M_(j-1) = 0) E_{M_j >= 1} max (1/N) E [sum of N scores]_+ + ... ,

where N = m_j + 1 - M_j. The maximum is over the bit patterns of the face (and over the faces). The last term is
delta_0(eps) times P(all pools are empty). The report distributions of later pools lack what earlier pools took.

If many columns have the bit pattern that hides worst, these columns alone hide the target. If fewer columns have it,
the maximum is over compositions with at most that number.

Source: docs/theory/crowds.md, Theorem 1 and Corollary 2.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.laws.flipped_pairs import OneLogo, chances, classes, ways
from hushuffle.curves.laws.kinds import Kinds
from hushuffle.curves.laws.mixed_sums import MixedSums
from hushuffle.curves.laws.pooled import MOST, Spots
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.roots import halved

_FIXED: Final = 2
"""Largest number of bits that are fixed, one after the other."""

_ROOM: Final = (8.0, 20.0)
"""Expected numbers of reports in a pool that are tried, if the columns have enough in common."""

_HALF: Final = 0.6
"""Share of the largest pool that is tried as well, if that pool is smaller than the expected sizes above."""

_BINS: Final = (-1.5, -0.5, 0.3, 1.0, 2.5, 7.0, 12.0)
"""Boundaries of the bins of M (reports in the pool), in standard deviations from its mean."""

_SHARES: Final = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Tested shares of columns with one bit pattern."""

_FAR: Final = 60.0
"""Ratio of the bound to the target delta above which the columns' bit patterns are not examined further."""

_HOMES: Final = 8
_EVERY: Final = 4
"""The columns' bit patterns are examined only with at least `_HOMES` columns and at most `_EVERY` bits."""

_ROUGH: Final = 0.05
"""Smoothing of the divergence if all other columns have one bit pattern, in standard deviations of the sum."""

_HALVINGS: Final = 12
"""Number of halvings in the search for the epsilon at which pools are chosen."""

_FAINT: Final = 1e-3
"""Share of the divergence below which the term of an empty pool is not bounded more tightly."""

Sides = tuple[int, ...]
"""Values of the fixed bits; the target's two bit patterns differ in each fixed bit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Face:
    """All bit patterns whose fixed bits are `sides`; the target's two patterns have Hamming distance `distance`.

    `taken` is the probability of each report that earlier pools took. Its axes: the number of ones among the bits that
    are not fixed and in which the pair differs, the number of ones among the bits in which the pair is equal, and each
    fixed bit. `rest` is the probability that a report is in no earlier pool. `chances`: see the function `chances`.
    """

    chances: Floats
    distance: int
    sides: Sides
    taken: Floats
    rest: float

    @classmethod
    def whole(cls, *, width: int, flip: Fraction, distance: int) -> Face:
        taken = np.zeros((distance + 1, width - distance + 1))
        return cls(chances=chances(width, flip), distance=distance, sides=(), taken=taken, rest=1.0)

    def half(self, side: int) -> Face:
        taken = np.stack([self.taken[:-1], self.taken[1:]], axis=-1)
        return replace(self, sides=(*self.sides, side), taken=taken)

    def without(self, share: Floats) -> Face:
        """The face after one more pool, which takes probability `share` of each report."""
        return replace(self, taken=self.taken + share, rest=self.rest - self.mass(share))

    def mass(self, share: Floats) -> float:
        logos = np.multiply.outer(ways(self._free), ways(self._equal))
        return float((share * logos.reshape(*logos.shape, *(1 for _ in self.sides))).sum())

    def shares(self, people: int) -> list[Floats]:
        """The pools to try for `people` columns; pools of reports far from the target's pair come first."""
        i, u, *bits = np.ogrid[tuple(slice(size) for size in self.taken.shape)]
        ones = i + sum(bits)  # among the bits in which the pair differs; `u` counts those among the other bits
        away = np.minimum(ones, self.distance - ones) + u
        # Common to all bit patterns of the face: at most all free bits, and the fixed bits that differ, were flipped.
        flipped = self._free + self._equal + sum((bit != side) for bit, side in zip(bits, self.sides, strict=True))
        left = np.maximum(MOST * self.chances[flipped] - self.taken, 0.0)
        shares: list[Floats] = []
        for low in range(int(away.max()), -1, -1):
            share = np.where(away >= low, left, 0.0)
            size = people * self.mass(share) / self.rest
            parts = {min(room / size, 1.0) for room in _ROOM} if size > 0 else set()
            parts |= {_HALF} if 0 < size < _ROOM[-1] else set()
            shares += [part * share for part in sorted(parts)]
        return shares

    def kinds(self) -> Kinds:
        """Distributions of a report outside the pools, for all bit patterns of this face and the target."""
        return Kinds.listed(
            [
                classes(self.chances, self.distance, w, v, taken=self.taken, rest=self.rest, sides=self.sides)
                for w in range(self._free + 1)
                for v in range(self._equal + 1)
            ]
        )

    @property
    def _free(self) -> int:
        return self.distance - len(self.sides)

    @property
    def _equal(self) -> int:
        return int(self.taken.shape[1]) - 1


@dataclass(frozen=True, kw_only=True)
class _Home:
    """A column type of which any `most` columns, or more, alone bound the divergence by `alone`."""

    kind: int
    most: int
    alone: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rung:
    """A pool of common reports for one face: distributions (`kinds`) and numbers (`spots`) of columns outside it.

    `after` is the face that follows if the pool is empty.
    """

    kinds: Kinds
    spots: Spots
    after: Face

    @classmethod
    def of(cls, face: Face, share: Floats, people: int) -> _Rung:
        after = face.without(share)
        return cls(kinds=after.kinds(), spots=Spots.of((people,), (face.mass(share) / face.rest,), _BINS), after=after)

    def hidden(self, epsilon: float, local: float, home: _Home | None = None) -> float:
        """Upper bound on the part of delta due to a pool that is not empty (or whose size is in no bin).

        With `home`, at most `home.most` columns of that type are assumed outside the pool.
        """
        totals = self.spots.totals
        if home is None:
            sums = MixedSums.alike(self.kinds, epsilon, totals)
        else:
            # Vertices: `own` columns are of any type, the rest of any type other than `home.kind`.
            own = np.minimum(totals, float(home.most))
            groups, counts = (self.kinds, _without(self.kinds, home.kind)), np.stack([own, totals - own], axis=-1)
            sums = MixedSums(groups=groups, epsilon=epsilon, counts=counts[:, None, :], shares=np.ones((own.size, 1)))
        return self.spots.mean(sums.raised(np.full(totals.shape, -np.inf)) - np.log(totals), local, empty=0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class FacePools:
    """Upper bound on delta for a target among `people` other columns of `width` flipped bits.

    Pools are chosen for a delta of about `level` (None: at the first epsilon). Any choice gives an upper bound.
    """

    width: int
    flip: Fraction
    people: int
    level: float | None = None
    cache: dict[tuple[int, Sides], _Rung | None] = field(default_factory=dict)

    def upper(self, epsilon: float, distances: Iterable[int] = ()) -> float:
        """Upper bound on delta over pairs at the Hamming distances `distances` (empty: all).

        >>> pools = FacePools(width=2, flip=Fraction(1, 10), people=999)
        >>> round(pools.upper(1.15), 4)
        0.0001
        """
        worst = 0.0
        for distance in distances or range(self.width, 0, -1):
            face = Face.whole(width=self.width, flip=self.flip, distance=distance)
            worst = max(worst, self._bound(face, self.people, epsilon, face.kinds().local(epsilon)))
        return min(worst * (1 + 1e-9), 1.0)

    @cached_property
    def _middle(self) -> float:
        """Approximate epsilon at which the divergence is `level`, if the use of pools increased no bound."""
        kinds = Face.whole(width=self.width, flip=self.flip, distance=self.width).kinds()
        high = self.width * math.log((1 - self.flip) / self.flip)

        def small(epsilon: float) -> bool:
            return _alike(kinds, self.people + 1, epsilon) <= (self.level or 0.0)

        return halved(small, good=high, bad=0.0, times=_HALVINGS)

    def _bound(self, face: Face, people: int, epsilon: float, local: float) -> float:
        """Upper bound on delta if `people` other columns are in `face`; `local` is the local divergence."""
        if people == 0 or local == 0:
            return local
        key = face.distance, face.sides
        if key not in self.cache:
            self.cache[key] = self._chosen(face, people, epsilon if self.level is None else self._middle)
        rung, value, empty, after = self.cache[key], 0.0, 1.0, face
        if rung is not None:
            value, empty, after = rung.hidden(epsilon, local), rung.spots.empty, rung.after
        if self._last(face) or empty * local <= _FAINT * value:
            return min(value + empty * local, local)
        # At least half of the columns have the same value of the next bit.
        rest = max(self._bound(after.half(side), (people + 1) // 2, epsilon, local) for side in (0, 1))
        whole = min(value + empty * rest, local)
        if face.sides or rung is None or people < _HOMES or self.width > _EVERY:
            return whole
        goal = whole / 4 if self.level is None else self.level
        if whole <= goal or value > _FAR * goal:
            return whole
        home = self._home(face, epsilon, goal)
        return min(whole, max(home.alone, rung.hidden(epsilon, local, home) + empty * rest))

    def _home(self, face: Face, epsilon: float, goal: float) -> _Home:
        """The column type with the largest bound if all others have it, and how many keep the divergence to `goal`."""
        kinds, equal = face.kinds(), self.width - face.distance
        corners = [(ones, apart) for ones in (0, face.distance) for apart in {0, equal}]
        places = {corner: corner[0] * (equal + 1) + corner[1] for corner in corners}
        worst = max(corners, key=lambda corner: _alike(kinds.part(places[corner]), self.people + 1, epsilon))

        def alone(number: int) -> float:
            pair = OneLogo.of(
                width=self.width,
                flip=self.flip,
                n=number + 1,
                distance=face.distance,
                ones=worst[0],
                apart=worst[1],
            )
            return pair.below(epsilon, _ROUGH)

        numbers = [*(math.ceil(share * self.people) for share in _SHARES), self.people]
        number = numbers[bisect_left(numbers, -goal, hi=len(_SHARES), key=lambda fewer: -alone(fewer))]
        return _Home(kind=places[worst], most=number, alone=alone(number))

    def _chosen(self, face: Face, people: int, epsilon: float) -> _Rung | None:
        """The pool with the smallest estimated bound at `epsilon`; None if halving at once seems better."""
        kinds, last = face.kinds(), self._last(face)
        local = kinds.local(epsilon)
        rest = local if last else min(_alike(kinds, (people + 1) // 2 + 1, epsilon), local)
        best, least = None, rest
        for share in face.shares(people):
            rung = _Rung.of(face, share, people)
            value = rung.hidden(epsilon, local) + rung.spots.empty * rest
            if value < least:
                best, least = rung, value
        return best

    def _last(self, face: Face) -> bool:
        return len(face.sides) == min(_FIXED, face.distance)


def _alike(kinds: Kinds, count: int, epsilon: float) -> float:
    """Upper bound on the divergence of a report among `count` reports of types `kinds`, without a pool."""
    log = float(MixedSums.alike(kinds, epsilon, np.array([float(count)])).raised(np.full(1, -np.inf))[0])
    return math.exp(min(log - math.log(count), 0.0))


def _without(kinds: Kinds, left: int) -> Kinds:
    parts = [kinds.part(kind) for kind in range(kinds.starts.size) if kind != left]
    return Kinds.listed([(part.near, part.far, part.own) for part in parts])
