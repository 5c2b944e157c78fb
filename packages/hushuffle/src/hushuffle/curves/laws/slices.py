"""Upper bound on delta in small crowds: pools of common reports in sequence, called slices.

The module `pooled` reveals everything if its pool is empty, so its pool holds some 20 reports, which then hide nothing.
Here slices P_1, ..., P_J of reports are set apart. Together they take less of each report than every other person and
dummy does. The adversary is given the first slice that holds another report. This slice often holds only one report,
and all reports outside it hide the target. With T_j = |P_1| + ... + |P_j|, R other reports and
M_j ~ Bin(R, |P_j|/(1 - T_(j-1))),

    delta(eps) <= sum over j of (1 - T_(j-1))**R E_{M_j >= 1} max (1/N) E [sum of N scores]_+
                  + (1 - T_J)**R delta_0(eps) ,    N = R + 1 - M_j.

Scores are those of `pooled`, with the distribution of a report outside the first j slices. The slices depend on the
target's pair of values and epsilon. They first take reports that both values give alike, up to e**epsilon.

Source: docs/theory/pool.md, Theorem 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from hushuffle.curves.laws.kinds import Kinds, Places, gain, local, parts
from hushuffle.curves.laws.mixed_sums import MixedSums
from hushuffle.curves.laws.pooled import MOST, Pooled, Spots, rounded, wanted
from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.numerics.binomial import Floats

ROOM: Final = 200.0
"""Expected number of reports from the privacy blanket from which one pool is as good: within 0.3 % of epsilon."""

_BINS: Final = (-1.5, -0.5, 0.3, 1.0, 1.7, 2.5, 4.0, 7.0, 12.0, 25.0)
"""Boundaries of the bins of the number of reports in a slice, in standard deviations from its mean."""

_NEGATIVE: Final = 0.4
"""Weight of a negative score relative to a positive one: tilting makes negative scores matter less."""

_LEAST: Final = 0.01
"""Part of all probabilities that counts as a score, so that scores have small relative rounding errors."""

_LEVELS: Final = 100
"""Number of levels to which slices are filled."""

_TRACE: Final = 1e-5
"""Part of delta that one bin of a slice may add without further evaluation."""

_CELLS: Final = 1 << 20
"""Largest number of pairs, times types of people, times classes, for which slices are evaluated."""

_ROWS: Final = 12
"""Largest number of values of all groups together for which slices are evaluated if there are several groups."""

_TOGETHER: Final = 1 << 17
"""Approximate number of the same cells that are evaluated together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Slices:
    """The first j slices together have probability `masses[j - 1]`; `spots[j - 1]` has the sizes of slice j.

    `floors[j - 1]` has logarithms of bounds on E[sum of N scores]_+ that are negligible, shape (bins,).
    """

    masses: tuple[float, ...]
    spots: tuple[Spots, ...]
    floors: tuple[Floats, ...]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, sizes: tuple[int, ...], portions: tuple[float, ...], most: float, level: float) -> Slices:
        """Return slices with total probability at most `most` that are all empty with probability of about `level`.

        `sizes` are the numbers of other reports of the groups, `portions` their shares of slices relative to group 0.

        >>> [round(99 * mass, 1) for mass in Slices.of((99,), (1.0,), 0.5, 1e-6).masses]
        [1.0, 2.1, 3.8, 6.2, 9.9, 15.5, 19.8]
        """
        total = math.fsum(map(math.prod, zip(sizes, portions, strict=True)))
        goal, reports, masses = min(wanted(level, total), most), 1.0, []
        while reports / total < goal * (1 - 1e-3):
            masses.append(reports / total)
            reports = 1.5 * reports + 0.6
        before, masses = [0.0, *masses], [*masses, goal]
        spots = [
            Spots.of(sizes, tuple(part * (mass - last) / (1 - part * last) for part in portions), _BINS)
            for mass, last in zip(masses, before, strict=True)
        ]
        reached = np.cumprod([1.0, *(each.empty for each in spots[:-1])]).tolist()
        floors = [
            np.log(max(_TRACE * level, 1e-300) / np.maximum(part * each.weights, 1e-300) * each.totals)
            for part, each in zip(reached, spots, strict=True)
        ]
        return cls(masses=tuple(masses), spots=tuple(spots), floors=tuple(floors))

    def total(self, bounds: Sequence[Floats], local: float) -> float:
        """Return the bound on delta from logarithms of bounds on E[sum of N scores]_+ for each slice and bin.

        If all slices are empty, the term is `local`, the divergence of one unshuffled report.
        """
        value = local
        for spots, bound in zip(reversed(self.spots), reversed(bounds), strict=True):
            value = spots.mean(bound - np.log(spots.totals), local, empty=value)
        return value

    def close(
        self, sums: Sequence[MixedSums], local: float, coarse: Sequence[Floats] = (), *, enough: float = 0.0
    ) -> float:
        """Return the bound on delta for one pair from its `sums`, or one that is at most `enough`.

        The `coarse` bounds of the slices that matter most are replaced first.
        """
        bounds = [*coarse] or [np.full(floor.shape, np.inf) for floor in self.floors]
        matter = [float((bound - floor).max()) for bound, floor in zip(bounds, self.floors, strict=True)]
        for j in np.argsort(matter)[::-1].tolist():
            bounds[j] = np.minimum(bounds[j], sums[j].raised(self.floors[j]))
            if enough and self.total(bounds, local) <= enough:
                break
        return self.total(bounds, local)


def upper(pool: Pooled, places: Places, epsilon: float, level: float, goal: float = 0.0) -> float:
    """Return an upper bound on delta for the target's pairs of values `places`, likely worst pairs first.

    `level` is the approximate delta for which slices are chosen. The result is infinite if there are too many pairs.
    With a `goal`, it is at least about `goal`, and infinite if one pair has a bound above `goal`.
    """
    law = pool.laws[0]
    if law.rows.size * len(places) > _CELLS or (len(pool.sizes) > 1 and len(law.rows) > _ROWS):
        return math.inf
    slices = Slices.of(pool.sizes, pool.portions, MOST * law.weight * (1 - 1e-9), level)
    ends = [np.minimum(local(near, far, epsilon), 1.0) for _, near, far in parts(pool.laws, places)]
    alone = dict(zip(places, np.concatenate(ends).tolist(), strict=True))
    if math.prod(spots.empty for spots in slices.spots) * max(alone.values()) > level:
        return math.inf
    ordered = tuple(dict.fromkeys([*(place for place in reversed(pool.ahead) if place in alone), *places]))
    worst = ordered[0]
    sums = _sums(pool, worst, epsilon, slices)
    value, tilts = slices.close(sums, alone[worst]), [each.best for each in sums]
    value = max(value, goal * (1 - 2e-9))
    step = max(1, _TOGETHER // law.rows.size)
    for start in range(1, len(ordered), step):
        if value > goal > 0:
            break
        part = ordered[start : start + step]
        quick = zip(part, _coarse(pool, part, epsilon, slices, tilts, damped=False), strict=True)
        part = tuple(place for place, coarse in quick if slices.total(coarse, alone[place]) > value)
        for place, coarse in zip(part, _coarse(pool, part, epsilon, slices, tilts), strict=True):
            if slices.total(coarse, alone[place]) > value:
                close = slices.close(_sums(pool, place, epsilon, slices), alone[place], coarse, enough=value)
                value, worst = (close, place) if close > value else (value, worst)
    pool.ahead.extend({worst} - {*pool.ahead})
    return math.inf if value > goal > 0 else min(value * (1 + 1e-9), 1.0)


def _coarse(
    pool: Pooled, places: Places, epsilon: float, slices: Slices, tilts: list[float], *, damped: bool = True
) -> Iterator[tuple[Floats, ...]]:
    """Yield coarse bounds for each pair with these tilts."""
    if len(pool.sizes) > 1:
        for place in places:
            sums = zip(_sums(pool, place, epsilon, slices), tilts, strict=True)
            yield tuple(each.coarse(tilt, damped=damped)[0] for each, tilt in sums)
        return
    for part, _, _ in parts(pool.laws, places):
        law, pairs = pool.laws[part[0][0]], [pair for _, pair in part]
        cases = list(zip(law.every, filled(law, pairs, epsilon, slices.masses), strict=True))
        near, far = np.array([law.pairs[pair] for pair in pairs]).T
        bounds = []
        for j, (spots, tilt) in enumerate(zip(slices.spots, tilts, strict=True)):
            each = []
            for rows, share in ((one.rows, share[:, j, None]) for one, share in cases):
                kinds = Kinds.of(rows[near], rows[far], (rows - share) / (1 - share.sum(axis=-1, keepdims=True)))
                alike = MixedSums(groups=(kinds,), epsilon=epsilon, counts=spots.counts, shares=spots.shares)
                each.append(alike.coarse(tilt, damped=damped).reshape(len(part), len(rows), -1).max(axis=1))
            bounds.append(np.max(each, axis=0))
        yield from zip(*bounds, strict=True)


def _sums(pool: Pooled, place: tuple[int, int], epsilon: float, slices: Slices) -> list[MixedSums]:
    """Return the sums of scores of one pair, for each slice."""
    shares = [each[0] for each in filled(pool.laws[place[0]], place[1:], epsilon, slices.masses)]
    return [
        MixedSums(
            groups=pool.outside(place, share), epsilon=epsilon, counts=spots.counts, shares=spots.shares, every=True
        )
        for share, spots in zip(zip(*shares, strict=True), slices.spots, strict=True)
    ]


def filled(law: ValueLaws, pairs: Sequence[int], epsilon: float, masses: Sequence[float]) -> list[Floats]:
    """Return what the first j slices together take of each class, j = 1, 2, ..., shape (pairs, slices, classes).

    The result has one array for each of `law.every`. The slices fill the common distribution like water, up
    to a share MOST, from the classes with the smallest scores. The share of a report depends only on the pair's and
    the common probabilities of this report, so it is valid for every value of a type.
    """
    common, score = law.weight * law.blanket, _scores(law, pairs, epsilon)
    held = score[:, 0, common > 0]
    depths = np.geomspace(held.min(axis=-1) / 2, held.max(axis=-1) / (1 - MOST) * 2, _LEVELS, axis=1)
    levels = np.pad(_share(depths[..., None], score) @ common, ((0, 0), (1, 0)))
    depths = np.pad(depths, ((0, 0), (1, 0)))
    place = np.clip((levels[..., None] < np.array(masses)).sum(axis=1), 1, _LEVELS)
    low, high, before, after = (
        np.take_along_axis(of, at, axis=1)[..., None] for of in (depths, levels) for at in (place - 1, place)
    )
    part = (np.array(masses)[:, None] - before) / (after - before)
    shares = []
    for each in law.every:
        score = _scores(each, pairs, epsilon)
        first, last = _share(low, score), _share(high, score)
        shares.append(each.weight * each.blanket * (first + part * (last - first)))
    return shares


def _scores(law: ValueLaws, pairs: Sequence[int], epsilon: float) -> Floats:
    """Return |score| of each class relative to the common distribution, rounded; infinite without common reports.

    The shape is (pairs, 1, classes).
    """
    a, b = np.array([law.pairs[pair] for pair in pairs]).T[..., None]
    value, size = gain(law.rows[a], law.rows[b], epsilon)
    common = law.weight * law.blanket
    there = common > 0
    score = np.where(value < 0, -_NEGATIVE * value, value) + _LEAST * (size + common)
    return rounded(np.where(there, score / np.where(there, common, 1.0), np.inf))


def _share(depth: Floats, score: Floats) -> Floats:
    """Return the share of the common distribution that is filled in classes with these scores."""
    return np.clip(1 - score / np.maximum(depth, 1e-300), 0.0, MOST)
