"""Hiding among one's own kind: the upper end for any finite randomizers, dummies a group of their own.

Every other report is put in a *pool* with probability beta, and is then drawn from one law that all values share.
If M >= 1 of them are in the pool, the target takes the place of one of these, chosen at random, among the reports
outside the pool of that one's own kind. The adversary is told how many reports of each kind are outside the pool, the
target counting as one of the kind it joined, and gets the shuffled reports of each kind, and of the pool, apart. The
pool then says nothing about the target, and all of it together can be turned into the true release. So with R others
(people and dummies), M ~ Bin(R, beta), N = R + 1 - M,

    delta(eps) <= P(M = 0) delta_0(eps) + E_{M >= 1} max (1/N) E [sum of N scores]_+ ,

a score being (Q_a - e**eps Q_b)/Q_c with law Q_c, the law of a report of kind c outside the pool, delta_0 the
divergence of a report that nothing hides, and the maximum over all kinds that the people may be of, see `mixed_sums`.
Of d dummies d - (how many of them are in the pool, the one that was replaced not counted) are outside, d N/R on
average; people with another randomizer are one more group. To give away some reports outside the pool only helps the
adversary, so M is binned at its largest value.

Source: docs/theory/pool.md, Theorem 1, Lemma 2 and Corollary 5, after Balle, Bell, Gascon, Nissim 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hushuffle.curves.kinds import Kinds, local
from hushuffle.curves.mixed_sums import MixedSums
from hushuffle.curves.others import Others
from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats

MOST: Final = 0.8
"""Share of what all values have in common that a pool takes at most (more would blow up rounding)."""

EASY: Final = 0.5
"""The same where there is choice."""

SPARE: Final = 6.0
"""An empty pool should cost e**-6 of the divergence asked for, at most e**-3."""

DEEPEST: Final = 1e-9
"""Divergence that the first pool is made for when nothing is said about it."""

_BINS: Final = (-1.5, -0.5, 0.3, 1.0, 1.7, 2.5, 4.0, 7.0, 12.0)
"""Ends of the bins of M, in standard deviations."""

_LEVELS: Final = 2.0
"""Pools are made for divergences e**-2, e**-4, ...: a curve asks for many."""

_CELLS: Final = 1 << 22
"""Cells of the tables of kinds that are kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spots:
    """Numbers of reports outside the pool with their probabilities, likeliest first.

    `counts[b, v, g]` of them are of group g at vertex v, `shares[b, v]` its share; `weights[b]` is the probability of
    the bin, `spare` that of no pool, or of an M out of range.
    """

    spare: float
    counts: Floats
    shares: Floats
    weights: Floats

    @classmethod
    def of(cls, sizes: tuple[int, ...], weight: float, ends: tuple[float, ...] = _BINS) -> Spots:
        """Bin M ~ Bin(R, weight), R >= 1 the sum of the groups' `sizes`, at `ends` standard deviations from its mean.

        >>> spots = Spots.of((9, 5), 0.2, ends=(0.0,))
        >>> spots.counts[0].tolist(), spots.shares[0].round(3).tolist()  # M <= 3: 12 reports outside
        ([[9.0, 3.0], [7.0, 5.0]], [0.357, 0.643])
        """
        total, groups = sum(sizes), np.array(sizes, dtype=np.float64)
        mean = total * weight
        cuts = np.unique(np.clip(np.ceil(mean + math.sqrt(mean) * np.array(ends)), 0, total)).astype(np.int64)
        last = int(cuts[-1])
        mass = binomial.pmf(np.arange(last + 1.0), total, weight) * (1 + 1e-9)
        spare = float(mass[0]) + float(binomial.upper_tail(last + 1, total, weight)) * (1 + 1e-9)
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
        return cls(spare=spare, counts=counts, shares=shares, weights=weights)

    @property
    def totals(self) -> Floats:
        """How many reports are outside the pool in each bin, shape (bins,)."""
        return np.asarray(self.counts[:, 0].sum(axis=1))

    def mean(self, logs: Floats, local: float) -> float:
        """Return the mean of what `logs` are the logarithms of, shape (bins,), none above `local`."""
        return self.spare * local + float(self.weights @ np.minimum(np.exp(np.minimum(logs, 1.0)), local))


def wanted(delta: float, others: int, spare: float = SPARE) -> float:
    """Return the weight of a pool that is empty with probability e**-spare delta among so many others."""
    return (spare - math.log(max(delta, 1e-300))) / others


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """The upper end for other `people` and `dummies` behind a pool; the laws must be complete.

    `worst` gathers the pairs that were worse than those looked at before them.
    """

    laws: tuple[ValueLaws, ...]
    people: Others
    dummies: int
    made: dict[tuple[int, int, float], tuple[Kinds, ...]] = field(default_factory=dict)
    spots: dict[float, Spots] = field(default_factory=dict)
    worst: list[tuple[int, int]] = field(default_factory=list)

    @property
    def others(self) -> int:
        """How many reports beside the target's."""
        return self.people.people + self.dummies

    def weight(self, level: float) -> float:
        """Return the weight of the pools for divergences of about `level`: what is wanted, or as much as there is."""
        return min(wanted(level, self.others), MOST * self.laws[0].weight)

    def usable(self) -> bool:
        """Whether the largest pool holds somebody at all."""
        return all(law.complete for law in self.laws) and self.others * MOST * self.laws[0].weight >= 1

    def upper(self, places: tuple[tuple[int, int], ...], epsilon: float, level: float | None) -> float:
        """Return the upper end over the pairs at `places`, those first that are likely to be worst.

        `level` is the size of divergence that the pools are made for (None: found).
        """
        if level is not None:
            return self.over_all(places, epsilon, level)
        first = self.over_all(places, epsilon, DEEPEST)
        level = math.exp(-_LEVELS * math.ceil(-math.log(max(first, 1e-290)) / _LEVELS))
        return min(first, self.over_all(places, epsilon, level)) if 0 < first < 1 else first

    def over_all(self, places: tuple[tuple[int, int], ...], epsilon: float, level: float) -> float:
        """Return the upper end over the pairs at `places` with pools made for divergences of about `level`."""
        spots, most = self._spots(self.weight(level)), self._local(places, epsilon)
        known, tried = np.full(spots.weights.shape, -np.inf), (0.0, math.inf)
        for place in places if spots.weights.size else ():
            sums = MixedSums(
                groups=self._kinds(place, level), epsilon=epsilon, counts=spots.counts, shares=spots.shares
            )
            if place == places[0]:
                tried = sums.best
            if place == places[0] or not sums.below(known, *tried):
                raised = sums.raised(known)
                if place not in self.worst and bool((raised > known).any()):
                    self.worst.append(place)
                known = raised
        return min(spots.mean(known - np.log(spots.totals), most) * (1 + 1e-9), 1.0)

    def _local(self, places: tuple[tuple[int, int], ...], epsilon: float) -> float:
        """Return the largest divergence of a report that nothing hides, rounded up."""
        found = []
        for i, law in enumerate(self.laws):
            pairs = np.array([law.pairs[j] for index, j in places if index == i]).reshape(-1, 2)
            each = local(law.rows[pairs[:, 0]], law.rows[pairs[:, 1]], epsilon)
            found.append(float(each.max(initial=0.0)))
        return min(max(found), 1.0)

    def _spots(self, weight: float) -> Spots:
        if weight not in self.spots:
            sizes = tuple(size for size in (*(size for size, _ in self.people.groups), self.dummies) if size)
            self.spots[weight] = Spots.of(sizes, weight)
        return self.spots[weight]

    def _kinds(self, place: tuple[int, int], level: float) -> tuple[Kinds, ...]:
        """Return the kinds of each group of people, if there are others, and of dummies, if any, behind the pool."""
        key = (*place, level)
        if key not in self.made:
            law = self.laws[place[0]]
            a, b = law.pairs[place[1]]
            groups = self._behind(law, a, b, self.weight(level))
            if law.also is not None:
                rare = self._behind(law.also, a, b, self.weight(level))
                groups = [one.joined(other) for one, other in zip(groups, rare, strict=True)]
            if (len(self.made) + 1) * law.rows.size > _CELLS:
                self.made.clear()
            self.made[key] = tuple(groups)
        return self.made[key]

    def _behind(self, law: ValueLaws, a: int, b: int, weight: float) -> list[Kinds]:
        share = _pool(law, a, b, weight)
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
    """Return what a pool of this weight takes of each class, where the target's reports differ least.

    The same share of what all values have in common wherever the pair's probabilities are alike: so it is the same for
    all values that a kind stands for.
    """
    common = law.weight * law.blanket
    there = common > 0
    safe = np.where(there, common, 1.0)
    away = np.where(there, (np.abs(law.rows[a] - law.rows[b]) + 0.05 * (law.rows[a] + law.rows[b])) / safe, np.inf)
    digits, power = np.frexp(away)
    away = np.ldexp(np.round(digits, 11), power)
    order = np.argsort(away)
    fits = np.flatnonzero(weight <= EASY * np.cumsum(common[order]))
    taken = away <= away[order[fits[0]]] if fits.size else there
    return np.where(taken, min(weight / float(common[taken].sum()), MOST) * common, 0.0)
