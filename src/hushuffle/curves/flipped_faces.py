"""Columns of flipped bits in small crowds: an empty pool is followed by a pool of half the columns.

Where n p**k is about 1 the pool that all logos share (`flipped_columns`) is empty too often. But of the two values of
a bit, one is held by at least half of the columns. If the first pool is empty, the others are given away, and these,
a *face* of the cube of logos, share more: a second pool, and so on. With m_0 = n - 1 others, m_(j+1) half of m_j,

    delta(eps) <= sum over j of P(M_0 = ... = M_(j-1) = 0) E_{M_j >= 1} max (1/N) E [sum of N scores]_+ + ... ,

N = m_j + 1 - M_j, the maximum over the logos of the face (and over the faces), and delta_0(eps) for the last empty
pool. What earlier pools took is missing from the laws of later ones.

Where many columns hold the one logo that hides worst, these alone hide the target; where fewer do, the maximum is over
compositions with no more of them.

Source: docs/theory/crowds.md, Theorem 1 and Corollary 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.flipped_pairs import OneLogo, chances, classes, ways
from hushuffle.curves.kinds import Kinds
from hushuffle.curves.mixed_sums import MixedSums
from hushuffle.curves.pooled import MOST, Spots
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats

_FIXED: Final = 2
"""So many bits are fixed at most, one after the other."""

_ROOM: Final = (8.0, 20.0)
"""Expected sizes of a pool that are tried, if there is so much."""

_HALF: Final = 0.6
"""If there is less, this share of it is tried as well."""

_BINS: Final = (-1.5, -0.5, 0.3, 1.0, 2.5, 7.0, 12.0)
"""Ends of the bins of M, in standard deviations."""

_SHARES: Final = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
"""Shares of all columns that one logo may have."""

_FAR: Final = 60.0
"""If a bound is so far above what is wanted it is not looked at which logo the columns hold."""

_HOMES: Final = 8
_EVERY: Final = 4
"""Neither with fewer columns than that, nor with more bits than this, where it gains nothing."""

_ROUGH: Final = 0.05
"""Smoothing of the divergence with all others alike, in standard deviations of the sum."""

_HALVINGS: Final = 12
"""Steps of the search for an epsilon to choose pools at."""

_FAINT: Final = 1e-3
"""A rest that adds less than this share of the divergence is not bounded with more care."""

Sides = tuple[int, ...]
"""The values of the bits that are fixed, all of them among those in which the target's pair differs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Face:
    """The logos with the bits `sides`: for a pair at `distance`, what was taken of every report, and what is left.

    Axes: how many of the other bits in which the pair differs are 1 in the report, how many of the bits in which it
    is equal, and each fixed bit. `rest` is the chance of no pool yet.
    """

    chances: Floats
    distance: int
    sides: Sides
    taken: Floats
    rest: float

    @classmethod
    def whole(cls, *, width: int, flip: Fraction, distance: int) -> Face:
        """Return all logos."""
        taken = np.zeros((distance + 1, width - distance + 1))
        return cls(chances=chances(width, flip), distance=distance, sides=(), taken=taken, rest=1.0)

    def half(self, side: int) -> Face:
        """Return the logos that have `side` at one bit more."""
        taken = np.stack([self.taken[:-1], self.taken[1:]], axis=-1)
        return replace(self, sides=(*self.sides, side), taken=taken)

    def without(self, share: Floats) -> Face:
        """Return what is left after a pool that takes `share` of each report."""
        return replace(self, taken=self.taken + share, rest=self.rest - self.mass(share))

    def mass(self, share: Floats) -> float:
        """Return the sum of `share` over all reports."""
        return float((share * self._logos).sum())

    def shares(self, people: int) -> list[Floats]:
        """Return pools to try for so many columns, those first that are farthest from the target's pair."""
        distance, equal = self._ones
        away = np.minimum(distance, self.distance - distance) + equal
        # What every logo of the face has in common: all free bits, and the fixed ones that differ, were flipped.
        flipped = (
            self._free + self._equal + sum((bit != side) for bit, side in zip(self._bits, self.sides, strict=True))
        )
        left = np.maximum(MOST * self.chances[flipped] - self.taken, 0.0)
        found: list[Floats] = []
        for low in range(int(away.max()), -1, -1):
            share = np.where(away >= low, left, 0.0)
            size = people * self.mass(share) / self.rest
            parts = {min(room / size, 1.0) for room in _ROOM} if size > 0 else set()
            parts |= {_HALF} if 0 < size < _ROOM[-1] else set()
            found += [part * share for part in sorted(parts)]
        return found

    def kinds(self) -> Kinds:
        """Return the laws of the logos of this face outside the pools, and those of the target."""
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

    @property
    def _bits(self) -> list[Floats]:
        """The axes of the fixed bits, to be broadcast."""
        return list(np.ogrid[tuple(slice(size) for size in self.taken.shape)])[2:]

    @property
    def _ones(self) -> tuple[Floats, Floats]:
        """How many bits of a report are 1 among those in which the pair differs, and among the others."""
        i, u, *bits = np.ogrid[tuple(slice(size) for size in self.taken.shape)]
        return i + sum(bits) + 0 * u, u + 0 * i

    @property
    def _logos(self) -> Floats:
        logos = np.multiply.outer(ways(self._free), ways(self._equal))
        return logos.reshape(*logos.shape, *(1 for _ in self.sides))


@dataclass(frozen=True, kw_only=True)
class _Home:
    """A kind: `most` others of it hide the target as well as `alone`; else so many are outside the pool at most."""

    kind: int
    most: int
    alone: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rung:
    """A pool for one face: laws and numbers of the columns outside it, chance of none inside, what follows then."""

    kinds: Kinds
    spots: Spots
    empty: float
    after: Face

    @classmethod
    def of(cls, face: Face, share: Floats, people: int) -> _Rung:
        weight = face.mass(share) / face.rest
        spots, after = Spots.of((people,), weight, _BINS), face.without(share)
        empty = float(binomial.pmf(0.0, people, weight)) * (1 + 1e-9)
        return cls(kinds=after.kinds(), spots=spots, empty=empty, after=after)

    def hidden(self, epsilon: float, local: float, home: _Home | None = None) -> float:
        """Return an upper end where somebody is in the pool, and of what lies outside all bins.

        With a `home`, if so many columns of that kind at most are outside the pool.
        """
        totals = self.spots.totals
        if home is None:
            sums = MixedSums.alike(self.kinds, epsilon, totals)
        else:
            # So many columns are of any kind, the rest of any other one: these are the vertices.
            own = np.minimum(totals, float(home.most))
            groups, counts = (self.kinds, _without(self.kinds, home.kind)), np.stack([own, totals - own], axis=-1)
            sums = MixedSums(groups=groups, epsilon=epsilon, counts=counts[:, None, :], shares=np.ones((own.size, 1)))
        logs = sums.raised(np.full(totals.shape, -np.inf)) - np.log(totals)
        inside = replace(self.spots, spare=max(self.spots.spare - self.empty, 0.0) + 8 * EPS * self.empty)
        return inside.mean(logs, local)


@dataclass(frozen=True, kw_only=True, eq=False)
class FacePools:
    """The upper end for `people` other columns of `width` flipped bits.

    Pools are chosen where the divergence is about `level` (None: at the first epsilon asked for); any choice gives an
    upper end.
    """

    width: int
    flip: Fraction
    people: int
    level: float | None = None
    made: dict[tuple[int, Sides], _Rung | None] = field(default_factory=dict)

    def upper(self, epsilon: float, distances: Iterable[int] = ()) -> float:
        """Return an upper end of the divergence over the pairs of logos at `distances`, or at all of them.

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
        """About the epsilon at which the divergence is `level`, if no pool cost anything."""
        kinds = Face.whole(width=self.width, flip=self.flip, distance=self.width).kinds()
        low, high = 0.0, self.width * math.log((1 - self.flip) / self.flip)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if _alike(kinds, self.people + 1, middle) > (self.level or 0.0) else (low, middle)
            )
        return high

    def _bound(self, face: Face, people: int, epsilon: float, local: float) -> float:
        """Return an upper end if so many other columns are known to be in `face`."""
        if people == 0 or local == 0:
            return local
        key = face.distance, face.sides
        if key not in self.made:
            self.made[key] = self._chosen(face, people, epsilon if self.level is None else self._middle)
        rung, value, empty, after = self.made[key], 0.0, 1.0, face
        if rung is not None:
            value, empty, after = rung.hidden(epsilon, local), rung.empty, rung.after
        if self._last(face) or empty * local <= _FAINT * value:
            return min(value + empty * local, local)
        # One of the two values of a bit is held by half of the columns.
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
        """Return the logo that all others hold when the bound is largest, and how many of them hide well.

        Only among logos that no symmetry turns into others; of some numbers the least that does, or else all.
        """
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

        number, value, low, high = self.people, alone(self.people), 0, len(_SHARES)
        while low < high:
            middle = (low + high) // 2
            fewer = math.ceil(_SHARES[middle] * self.people)
            found = alone(fewer)
            if found <= goal:
                number, value, high = fewer, found, middle
            else:
                low = middle + 1
        return _Home(kind=places[worst], most=number, alone=value)

    def _chosen(self, face: Face, people: int, epsilon: float) -> _Rung | None:
        """Return what seems the best pool at this epsilon; None if it is better to have half of the columns at once."""
        kinds, last = face.kinds(), self._last(face)
        local = kinds.local(epsilon)
        rest = local if last else min(_alike(kinds, (people + 1) // 2 + 1, epsilon), local)
        best, least = None, rest
        for share in face.shares(people):
            rung = _Rung.of(face, share, people)
            value = rung.hidden(epsilon, local) + rung.empty * rest
            if value < least:
                best, least = rung, value
        return best

    def _last(self, face: Face) -> bool:
        """Return whether no more bit is fixed."""
        return len(face.sides) == min(_FIXED, face.distance)


def _alike(kinds: Kinds, count: int, epsilon: float) -> float:
    """Return a bound of the divergence of a report among `count` of the kinds, if nobody need be in a pool."""
    log = float(MixedSums.alike(kinds, epsilon, np.array([float(count)])).raised(np.full(1, -np.inf))[0])
    return math.exp(min(log - math.log(count), 0.0))


def _without(kinds: Kinds, left: int) -> Kinds:
    """Return the kinds but for one."""
    parts = [kinds.part(kind) for kind in range(kinds.starts.size) if kind != left]
    return Kinds.listed([(part.near, part.far, part.own) for part in parts])
