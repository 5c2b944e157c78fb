"""Upper bound on delta for any finite randomizers, from a pool of reports that all values have in common.

People with the same report distribution are of one type. Dummies form a group of their own. Every other report is put
in a *pool* with probability beta, and is then drawn from one distribution that all values have in common. If M >= 1
reports are in the pool, one of them is chosen at random, and the target's report takes its place among the reports
outside the pool of the same type. The adversary is given the number of reports of each type outside the pool (the
target's report counts for the type that it joined). It is also given the shuffled reports of each type, and those of
the pool, separately. The pool is then independent of the target's value, and the true release is a post-processing of
what the adversary is given. With R other reports (of people and dummies), M ~ Bin(R, beta), N = R + 1 - M,

    delta(eps) <= P(M = 0) delta_0(eps) + E_{M >= 1} max (1/N) E [sum of N scores]_+ .

A score is (Q_a - e**eps Q_b)/Q_c under Q_c, the distribution of a report of type c outside the pool. delta_0 is the
divergence of one unshuffled report. The maximum is over the types of all people, see `mixed_sums`. Of d dummies, d N/R
are outside the pool on average (a replaced dummy counts as outside). People with another randomizer are one more group.
Revealing reports outside the pool only helps the adversary, so M is binned at its largest value.

Source: docs/theory/pool.md, Theorem 1, Lemma 2 and Corollary 5, after Balle, Bell, Gascon, Nissim 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.curves.laws.kinds import Kinds, Others, gain, local, parts
from hushuffle.curves.laws.mixed_sums import MixedSums
from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.score_sums import log_damped

MOST: Final = 0.8
"""Largest share of the values' common distribution that a pool takes; more would increase rounding errors."""

EASY: Final = 0.5
"""Preferred largest share of the values' common distribution that a pool takes."""

SPARE: Final = 6.0
"""Negative logarithm of the share of delta that an empty pool should cost: e**-6, at most e**-3."""

DEEPEST: Final = 1e-9
"""Delta for which the first pool is chosen if no delta is given."""

_BINS: Final = (-1.5, -0.5, 0.3, 1.0, 1.7, 2.5, 4.0, 7.0, 12.0)
"""Boundaries of the bins of M (reports in the pool), in standard deviations from its mean."""

_LEVELS: Final = 2.0
"""Pools are chosen only for delta = e**-2, e**-4, ..., so that many evaluations share them."""

_CELLS: Final = 1 << 22
"""Largest number of cells of the cached tables of report distributions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spots:
    """Bins of the number of reports outside the pool of common reports, most probable bin first.

    Bin b has probability `weights[b]`. At vertex v, which has weight `shares[b, v]`, `counts[b, v, g]` of these reports
    are of group g. `empty` is the probability that the pool is empty, `beyond` that M exceeds all bins.
    """

    empty: float
    beyond: float
    counts: Floats
    shares: Floats
    weights: Floats

    @classmethod
    def of(cls, sizes: tuple[int, ...], weight: float, ends: tuple[float, ...] = _BINS) -> Spots:
        """Divide M ~ Bin(R, weight) into bins, with boundaries at `ends` standard deviations from the mean.

        R >= 1 is the sum of the groups' `sizes`.

        >>> spots = Spots.of((9, 5), 0.2, ends=(0.0,))
        >>> spots.counts[0].tolist(), spots.shares[0].round(3).tolist()  # M <= 3: 12 reports outside
        ([[9.0, 3.0], [7.0, 5.0]], [0.357, 0.643])
        """
        total, groups = sum(sizes), np.array(sizes, dtype=np.float64)
        mean = total * weight
        cuts = np.unique(np.clip(np.ceil(mean + math.sqrt(mean) * np.array(ends)), 0, total)).astype(np.int64)
        last = int(cuts[-1])
        mass = binomial.pmf(np.arange(last + 1.0), total, weight) * (1 + 1e-9)
        beyond = float(binomial.upper_tail(last + 1, total, weight)) * (1 + 1e-9)
        cuts = cuts[cuts > 0]
        weights = np.add.reduceat(mass, np.append(1, cuts[:-1] + 1)) if cuts.size else np.zeros(0)
        order = np.argsort(-weights)
        cuts, weights = cuts[order].astype(np.float64), weights[order]
        outside = total + 1 - cuts
        low = np.maximum(groups - (cuts[:, None] - 1), 0.0)
        room = outside - low.sum(axis=1)
        counts = low[:, None, :] + room[:, None, None] * np.eye(groups.size)
        shares = (groups * outside[:, None] / total - low) / np.where(room > 0, room, 1.0)[:, None]
        shares[room == 0] = np.eye(groups.size)[0]
        shares = np.maximum(shares, 0.0) + 8 * EPS * float(groups.max()) if groups.size > 1 else np.ones_like(shares)
        return cls(empty=float(mass[0]), beyond=beyond, counts=counts, shares=shares, weights=weights)

    @property
    def totals(self) -> Floats:
        """Number of reports outside the pool in each bin, shape (bins,)."""
        return np.asarray(self.counts[:, 0].sum(axis=1))

    def mean(self, logs: Floats, local: float, empty: float | None = None) -> float:
        """Return the mean over all bins of e**`logs`, limited to `local`.

        The term of an empty pool is `empty` (default: `local`), that of a pool beyond all bins `local`.
        """
        inside = float(self.weights @ np.minimum(np.exp(np.minimum(logs, 1.0)), local))
        return self.empty * (local if empty is None else empty) + self.beyond * local + inside


def wanted(delta: float, others: int, spare: float = SPARE) -> float:
    """Return the probability with which reports join a pool that is to be empty with probability delta/e**spare."""
    return (spare - math.log(max(delta, 1e-300))) / others


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """Upper bound on delta from a pool of common reports, for a target among `people` and `dummies`.

    `complete` must be set in all `laws`. `worst` lists the pairs whose bound exceeded the bounds of earlier pairs,
    `ahead` those with the largest bounds by slices (see the module `slices`).
    """

    laws: tuple[ValueLaws, ...]
    people: Others
    dummies: int
    cache: dict[tuple[int, int, float], tuple[Kinds, ...]] = field(default_factory=dict)
    spots: dict[float, Spots] = field(default_factory=dict)
    worst: list[tuple[int, int]] = field(default_factory=list)
    ahead: list[tuple[int, int]] = field(default_factory=list)

    @property
    def others(self) -> int:
        """Number of reports apart from the target's."""
        return self.people.people + self.dummies

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of other reports of each group; the dummies are the last group."""
        return tuple(size for size in (*(size for size, _ in self.people.groups), self.dummies) if size)

    def weight(self, level: float) -> float:
        """Return the probability that a report is in the pool, for a delta of about `level`."""
        return min(wanted(level, self.others), MOST * self.laws[0].weight)

    def usable(self) -> bool:
        """Return whether all `laws` are complete and the largest pool holds at least one report on average."""
        return all(law.complete for law in self.laws) and self.others * MOST * self.laws[0].weight >= 1

    def upper(self, places: tuple[tuple[int, int], ...], epsilon: float, level: float | None) -> float:
        """Return an upper bound on delta for the target's pairs of values `places`, likely worst pairs first.

        `level` is the delta for which pools are chosen (None: searched).
        """
        if level is not None:
            return self.over_all(places, epsilon, level)
        first = self.over_all(places, epsilon, DEEPEST)
        level = math.exp(-_LEVELS * math.ceil(-math.log(max(first, 1e-290)) / _LEVELS))
        return min(first, self.over_all(places, epsilon, level)) if 0 < first < 1 else first

    def over_all(self, places: tuple[tuple[int, int], ...], epsilon: float, level: float) -> float:
        """Return an upper bound on delta for the pairs `places`, with pools chosen for a delta of about `level`."""
        spots = self._spots(self.weight(level))
        most = min(max(float(local(near, far, epsilon).max()) for _, near, far in parts(self.laws, places)), 1.0)
        logarithms, bounds = np.full(spots.weights.shape, -np.inf), np.full((len(places), 1), np.inf)
        for number, place in enumerate(places if spots.weights.size else ()):
            if bool((bounds[number] <= logarithms).all()):
                continue
            sums = MixedSums(
                groups=self._kinds(place, level), epsilon=epsilon, counts=spots.counts, shares=spots.shares
            )
            raised = sums.raised(logarithms)
            if place not in self.worst and bool((raised > logarithms).any()):
                self.worst.append(place)
            logarithms = raised
            if number == 0 and len(places) > 1:
                bounds = self._screened(places, epsilon, level, sums.best)
        return min(spots.mean(logarithms - np.log(spots.totals), most) * (1 + 1e-9), 1.0)

    def _screened(self, places: tuple[tuple[int, int], ...], epsilon: float, level: float, tilt: float) -> Floats:
        """Return logarithms of coarse upper bounds on E[sum of N scores]_+ for each pair, shape (pairs, bins).

        A bound is infinite if `tilt` times a score is large, as for reports that other values lack.
        """
        law, weight, spots = self.laws[0], self.weight(level), self._spots(self.weight(level))
        owns = [law.rows[law.groups[group]] for size, group in self.people.groups if size]
        owns += [law.blanket[None]] if self.dummies else []
        common, largest = law.weight * law.blanket, float(spots.counts.sum(axis=2).max())
        rounding = 256 * EPS * common.size * largest * tilt * (1 + math.exp(epsilon))
        # Any `fewest + 1` classes hold enough of the common distribution for the pool.
        fewest = int(np.searchsorted(EASY * np.cumsum(np.sort(common)), weight * (1 + 1e-9)))
        if len(self.laws) > 1 or law.also or fewest == common.size:
            return np.full((len(places), 1), np.inf)
        bounds = []
        for _, near, far in parts(self.laws, places):
            away = _away(near, far, common)
            pooled = away <= np.partition(away, fewest, axis=1)[:, [fewest]]
            moments = (_moments(tilt * gain(near, far, epsilon)[0], pooled, weight, own) for own in owns)
            logs, spreads, reach = (np.stack(part, axis=1) for part in zip(*moments, strict=True))
            total = np.einsum("bvg,pg->pbv", spots.counts, logs).max(axis=2)
            variance = np.einsum("bvg,pg->pbv", spots.counts, spreads).min(axis=(1, 2))[:, None]
            width = 2 * reach.max(axis=1, keepdims=True)
            with np.errstate(over="ignore"):  # an infinite bound
                kernel = log_damped(tilt, variance / tilt**2, width / tilt, blur=0.2)
            bounds.append(total + (kernel + rounding)[:, None])
        return np.concatenate(bounds)

    def _spots(self, weight: float) -> Spots:
        if weight not in self.spots:
            self.spots[weight] = Spots.of(self.sizes, weight)
        return self.spots[weight]

    def _kinds(self, place: tuple[int, int], level: float) -> tuple[Kinds, ...]:
        """Return the types' distributions outside the pool, for each group of other people and for dummies."""
        key = (*place, level)
        if key not in self.cache:
            law = self.laws[place[0]]
            a, b = law.pairs[place[1]]
            if (len(self.cache) + 1) * law.rows.size > _CELLS:
                self.cache.clear()
            self.cache[key] = self.outside(place, [_pool(each, a, b, self.weight(level)) for each in law.every])
        return self.cache[key]

    def outside(self, place: tuple[int, int], shares: Sequence[Floats]) -> tuple[Kinds, ...]:
        """Return the types' distributions outside the pool, for each group of other people and for dummies.

        `shares` is what the pool takes of each class, for the law of `place` and for those in its fields `also`.
        """
        law = self.laws[place[0]]
        a, b = law.pairs[place[1]]
        groups = self._behind(law, a, b, shares[0])
        for other, share in zip(law.every[1:], shares[1:], strict=True):
            groups = [part.joined(more) for part, more in zip(groups, self._behind(other, a, b, share), strict=True)]
        return tuple(groups)

    def _behind(self, law: ValueLaws, a: int, b: int, share: Floats) -> list[Kinds]:
        rest = 1 - float(share.sum())
        groups = [
            Kinds.of(law.rows[a], law.rows[b], (law.rows[law.groups[group]] - share) / rest)
            for size, group in self.people.groups
            if size
        ]
        if self.dummies:
            groups.append(Kinds.of(law.rows[a], law.rows[b], ((law.blanket - share) / rest)[None, :]))
        return groups


def _pool(law: ValueLaws, a: int, b: int, weight: float) -> Floats:
    """Return the probability that a pool of this weight takes of each class, shape (classes,).

    It prefers classes in which the target's two probabilities differ least. It takes the same share of the common
    distribution in all classes where the pair's probabilities are alike, so it is valid for every value of a type.
    """
    common = law.weight * law.blanket
    there, away = common > 0, _away(law.rows[a], law.rows[b], common)
    order = np.argsort(away)
    fits = np.flatnonzero(weight <= EASY * np.cumsum(common[order]))
    taken = away <= away[order[fits[0]]] if fits.size else there
    return np.where(taken, min(weight / float(common[taken].sum()), MOST) * common, 0.0)


def _away(near: Floats, far: Floats, common: Floats) -> Floats:
    """Return how much a pair's probabilities differ, relative to the common distribution; rounded to eleven digits."""
    there = common > 0
    safe = np.where(there, common, 1.0)
    return rounded(np.where(there, (np.abs(near - far) + 0.05 * (near + far)) / safe, np.inf))


def rounded(numbers: Floats) -> Floats:
    """Return `numbers` rounded to eleven digits, so that numbers that differ by rounding errors become equal."""
    digits, power = np.frexp(numbers)
    return np.asarray(np.ldexp(np.round(digits, 11), power))


def _moments(
    steep: Floats, pooled: npt.NDArray[np.bool_], weight: float, owns: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return bounds for all types of a group, shape (pairs,), on x = `steep`/q, where q is the type's `Kinds.own`.

    The bounds are at least ln E[e**x], at most the variance of x with probabilities times e**x, and at least |x|.
    q is own/(1 - weight), and in classes `pooled` at least 1 - EASY of it. q (e**(g/q) - 1 - g/q) falls with q > 0.
    """
    with np.errstate(all="ignore"):  # what is not finite is replaced at the end
        inverse, scaled, mean = (1 - weight) / owns.T, steep * np.where(pooled, 1 / (1 - EASY), 1.0), steep.sum(axis=1)
        reach = (np.abs(scaled) * inverse.max(axis=1)).max(axis=1)
        square, cube = (steep * scaled) @ inverse, (steep * scaled**2) @ inverse**2
        # |x| <= z < 5: e**x - 1 - x - x**2/2 - x**3/6 <= x**2 (z**2/24)/(1 - z/5).
        rest = np.where(reach < 5, reach**2 / 24 / (1 - reach / 5), np.inf)
        grown = mean + ((0.5 + rest)[:, None] * square + cube / 6).max(axis=1)
        least = square.min(axis=1) - np.where(pooled, steep * scaled, 0.0) @ inverse.max(axis=1)
        most = np.maximum(-mean, mean + square.max(axis=1) * np.exp(reach))
        spread = np.exp(-reach) * least / (1 + grown) - (most / (1 + mean)) ** 2
        logs = np.where(mean > -1, np.log1p(grown), np.inf)
    logs[np.isnan(logs)] = np.inf
    return logs, np.where(np.isfinite(spread) & (mean > -1), spread, 0.0), np.fmin(reach, 1e9)
