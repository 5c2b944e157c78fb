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
divergence of one unshuffled report. The maximum is over the types of all people, see `mixed_sums`. People with another
randomizer are one more group. Revealing reports outside the pool only helps the adversary, so M is binned at its
largest value.

The noisier a report is, the more it hides. So groups with more noise, and dummies, join the pool with a larger
probability than others: `portions` times beta. Their odds, beta/(1 - beta), are then larger by some factor. Their
scores are multiplied by this factor, and N counts them with this factor.

Source: docs/theory/pool.md, Theorem 1, Lemma 2 and Corollary 5, after Balle, Bell, Gascon, Nissim 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.curves.laws.kinds import Kinds, Others, Places, every_place, gain, local, parts
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

_POWERS: Final = (1.0, 0.75, 0.5, 0.25)
"""The ideal portions to these powers are tried."""

_ENOUGH: Final = 30.0
"""Expected number of reports from what all have in common that is enough for a pool."""

_CELLS: Final = 1 << 22
"""Largest number of cells of the cached tables of report distributions, and of tables of scores."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spots:
    """Bins of the number of reports outside the pool of common reports, most probable bin first.

    Bin b has probability `weights[b]`. At vertex v, which has weight `shares[b, v]`, `counts[b, v, g]` of these reports
    are of group g. The mean of the vertices' bounds is divided by `totals[b]`, shape (bins,): by N if all odds are
    equal. `empty` is the probability that the pool is empty, `beyond` that M exceeds all bins.
    """

    empty: float
    beyond: float
    counts: Floats
    shares: Floats
    weights: Floats
    totals: Floats

    @classmethod
    @lru_cache(maxsize=128)
    def of(cls, sizes: tuple[int, ...], chances: tuple[float, ...], ends: tuple[float, ...] = _BINS) -> Spots:
        """Divide M into bins, with boundaries at `ends` standard deviations from the mean.

        Each of the `sizes`[g] reports of group g is in the pool with probability `chances`[g]. If these are equal,
        M ~ Bin(R, chances[0]), where R >= 1 is the sum of the sizes. Other groups' odds are relative to the first's.

        >>> spots = Spots.of((9, 5), (0.2, 0.2), ends=(0.0,))
        >>> spots.counts[0].tolist(), spots.shares[0].round(3).tolist()  # M <= 3: 12 reports outside
        ([[9.0, 3.0], [7.0, 5.0]], [0.357, 0.643])
        >>> spots.totals.round(9).tolist(), Spots.of((9, 5), (0.2, 1 / 3), ends=(0.0,)).totals.round(3).tolist()
        ([12.0], [14.669])
        """
        total, groups = sum(sizes), np.array(sizes, dtype=np.float64)
        mean = float(groups @ chances)
        cuts = np.unique(np.clip(np.ceil(mean + math.sqrt(mean) * np.array(ends)), 0, total)).astype(np.int64)
        last = int(cuts[-1])
        numbers, mass, beyond = np.arange(last + 1.0), np.ones(1), 0.0
        each = [binomial.pmf(numbers, size, chance) for size, chance in zip(sizes, chances, strict=True)]
        for law, size, chance in zip(each, sizes, chances, strict=True):
            beyond += float(mass @ binomial.upper_tail(last + 1 - numbers[: mass.size], size, chance))
            mass = np.convolve(mass, law)[: last + 1]
        # Expected number of each group's reports in the pool, times the probability of M.
        pooled = [
            reduce(_convolved, [law * numbers if law is own else law for law in each], np.ones(1)) for own in each
        ]
        cuts = cuts[cuts > 0]
        starts = np.append(0, cuts[:-1])
        # The target replaced one of M reports, so that a number of M - 1 others remain in the pool.
        stay = chances[0] / (1 - chances[0]) / numbers[1:]
        outside = total + 1 - cuts

        def binned(terms: Floats) -> Floats:
            return np.add.reduceat(terms, starts, axis=-1) if cuts.size else np.zeros((*terms.shape[:-1], 0))

        weights = binned(mass[1:])
        hidden = binned(stay * mass[:-1] * (total - numbers[:-1])) / outside
        means = binned(stay * (groups[:, None] * mass[:-1] - np.stack(pooled)[:, :-1])) / hidden
        low = np.maximum(groups - (cuts[:, None] - 1), 0.0)
        room = outside - low.sum(axis=1)
        counts = low[:, None, :] + room[:, None, None] * np.eye(groups.size)
        shares = (means.T - low) / np.where(room > 0, room, 1.0)[:, None]
        shares[room == 0] = np.eye(groups.size)[0]
        shares = np.maximum(shares, 0.0) + 8 * EPS * float(groups.max()) if groups.size > 1 else np.ones_like(shares)
        order = np.argsort(-weights)
        return cls(
            empty=float(mass[0]) * (1 + 1e-9),
            beyond=beyond * (1 + 1e-9),
            counts=counts[order],
            shares=shares[order],
            weights=weights[order] * (1 + 1e-9),
            totals=(weights / hidden)[order],
        )

    def mean(self, logs: Floats, local: float, empty: float | None = None) -> float:
        """Return the mean over all bins of e**`logs`, limited to `local`.

        The term of an empty pool is `empty` (default: `local`), that of a pool beyond all bins `local`.
        """
        inside = float(self.weights @ np.minimum(np.exp(np.minimum(logs, 1.0)), local))
        return self.empty * (local if empty is None else empty) + self.beyond * local + inside


def wanted(delta: float, others: float, spare: float = SPARE) -> float:
    """Return the probability with which reports join a pool that is to be empty with probability delta/e**spare."""
    return (spare - math.log(max(delta, 1e-300))) / others


def odds(portions: tuple[float, ...], weight: float) -> list[float]:
    """Return the odds of each group relative to the first's if the pool takes `weight` times its portion.

    With several slices, `weight` is what they take together.

    >>> odds((1.0, 2.0), 0.25)
    [1.0, 3.0]
    """
    own = [portion / (1 - portion * weight) for portion in portions]
    return [each / own[0] for each in own]


def _inverse(numbers: Floats) -> Floats:
    """Return 1/`numbers`, and 0 where `numbers` is 0."""
    return np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0)


def _convolved(first: Floats, second: Floats) -> Floats:
    return np.convolve(first, second)[: second.size]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """Upper bound on delta from a pool of common reports, for a target among `people` and `dummies`.

    `complete` must be set in all `laws`. A report of group g is in the pool with `portions`[g] times the probability of
    a report of a group with portion 1. In `laws`, the portion times `weight` times `blanket` is at most the probability
    of every report of the group. `worst` lists the pairs whose bound exceeded the bounds of earlier pairs, `ahead`
    those with the largest bounds by slices (see the module `slices`).
    """

    laws: tuple[ValueLaws, ...]
    people: Others
    dummies: int
    portions: tuple[float, ...]
    cache: dict[tuple[int, int, float], tuple[Kinds, ...]] = field(default_factory=dict)
    worst: list[tuple[int, int]] = field(default_factory=list)
    ahead: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, laws: tuple[ValueLaws, ...], people: Others, dummies: int) -> Pooled:
        """Return the pool in which groups with more noise have larger portions.

        These are inverse to the mean square score of the group's report in the dataset that seems worst, or closer to
        1 if all groups would have too little in common.
        """
        alike = (1.0,) * sum(map(bool, (*people.sizes, dummies)))
        plain = cls(laws=laws, people=people, dummies=dummies, portions=alike)
        if len(alike) == 1 or not plain.usable():
            return plain
        ideal, free = plain.ideal(), np.full(len(alike), np.inf)
        for law in (each for one in laws for each in one.every):
            common = law.weight * law.blanket
            there = common > 0
            free = np.minimum(free, [float((each[there] / common[there]).min()) for each in plain.shared(law)])
        for power in _POWERS:
            portions = tuple((ideal**power).tolist())
            divided = [plain.divided(law, portions) for law in laws]
            least = min(each.weight for law in divided for each in law.every)
            pool = replace(plain, laws=tuple(law.weighing(least) for law in divided), portions=portions)
            if pool.hiding * pool.laws[0].weight >= _ENOUGH:
                return pool
        return replace(plain, portions=tuple(np.minimum(ideal, free * (1 - 1e-9)).clip(min=1.0).tolist()))

    def shared(self, law: ValueLaws) -> list[Floats]:
        """Return what all values of each group have in common, and the distribution of dummies."""
        common = [law.shared[group] if law.shared else law.weight * law.blanket for _, group in self.people.present]
        return [*common, law.blanket] if self.dummies else common

    def divided(self, law: ValueLaws, portions: tuple[float, ...]) -> ValueLaws:
        """Return `law` with what the groups have in common after division of their probabilities by `portions`."""
        common = np.min([each / part for each, part in zip(self.shared(law), portions, strict=True)], axis=0)
        weight = float(common.sum()) * (1 - 1e-9)
        blanket = law.blanket if self.dummies or not weight else common * (1 - 1e-9) / weight
        return replace(law, blanket=blanket, weight=weight, also=law.also and self.divided(law.also, portions))

    def ideal(self) -> Floats:
        """Return portions inverse to each group's largest mean square score, for the pair that seems worst, at least 1.

        They minimize the largest mean square of the sum of scores at epsilon = 0.
        """
        worst, best = -1.0, np.ones(len(self.sizes))
        for part, near, far in parts(self.laws, every_place(self.laws)):
            law = self.laws[part[0][0]]
            squares = np.stack([((near - far) ** 2 @ _inverse(own).T).max(axis=1) for own in self._rows(law)], axis=1)
            signal = _inverse(_inverse(squares) @ np.array(self.sizes))
            pair = int(np.where((squares > 0).all(axis=1), signal, -1.0).argmax())
            if signal[pair] > worst and bool((squares[pair] > 0).all()):
                worst, best = float(signal[pair]), squares[pair].max() / squares[pair]
        return best

    def _rows(self, law: ValueLaws) -> list[Floats]:
        """Return each group's report distributions, and that of dummies, shapes (rows, classes)."""
        rows = [law.rows[law.groups[group]] for _, group in self.people.present]
        return [*rows, law.blanket[None]] if self.dummies else rows

    @property
    def others(self) -> int:
        """Number of reports apart from the target's."""
        return self.people.people + self.dummies

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of other reports of each group; the dummies are the last group."""
        return tuple(size for size in (*self.people.sizes, self.dummies) if size)

    @property
    def hiding(self) -> float:
        """Number of other reports; dummies count by what they give to the pool."""
        return math.fsum(map(math.prod, zip(self.sizes, self.portions, strict=True)))

    def weight(self, level: float) -> float:
        """Return the probability that a person's report is in the pool, for a delta of about `level`."""
        return min(wanted(level, self.hiding), MOST * self.laws[0].weight)

    def usable(self) -> bool:
        """Return whether all `laws` are complete and the largest pool holds at least one report on average."""
        return all(law.complete for law in self.laws) and self.hiding * MOST * self.laws[0].weight >= 1

    def upper(self, places: Places, epsilon: float, level: float | None, goal: float = 0.0) -> float:
        """Return an upper bound on delta for the target's pairs of values `places`, likely worst pairs first.

        `level` is the delta for which pools are chosen (None: searched). A bound above a `goal` is infinite.
        """
        if level is not None:
            return self.over_all(places, epsilon, level, goal)
        first = self.over_all(places, epsilon, DEEPEST)
        level = math.exp(-_LEVELS * math.ceil(-math.log(max(first, 1e-290)) / _LEVELS))
        return min(first, self.over_all(places, epsilon, level)) if 0 < first < 1 else first

    def square(self, place: tuple[int, int], epsilon: float, level: float | None) -> float:
        """Return the largest mean square of the mean of N scores over all types of the only group, at the mean N."""
        level = DEEPEST if level is None else level
        (kinds,) = self._kinds(place, level)
        with np.errstate(over="ignore"):
            squares = gain(kinds.near, kinds.far, epsilon)[0] ** 2 * _inverse(kinds.own)
        return float(np.add.reduceat(squares, kinds.starts).max() / (self.others * (1 - self.weight(level)) + 1))

    def over_all(self, places: Places, epsilon: float, level: float, goal: float = 0.0) -> float:
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
            value = spots.mean(logarithms - np.log(spots.totals), most) * (1 + 1e-9)
            if value > goal > 0:
                return math.inf
            if number == 0 and len(places) > 1:
                bounds = self._screened(places, epsilon, level, sums.best)
        return min(spots.mean(logarithms - np.log(spots.totals), most) * (1 + 1e-9), 1.0)

    def _screened(self, places: Places, epsilon: float, level: float, tilt: float) -> Floats:
        """Return logarithms of coarse upper bounds on E[sum of N scores]_+ for each pair, shape (pairs, bins).

        A bound is infinite if `tilt` times a score is large, as for reports that other values lack.
        """
        law, weight, spots = self.laws[0], self.weight(level), self._spots(self.weight(level))
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
            score = tilt * gain(near, far, epsilon)[0]
            moments = (
                _moments(more * score, pooled, portion * weight, own)
                for own, portion, more in zip(self._rows(law), self.portions, odds(self.portions, weight), strict=True)
            )
            logs, spreads, reach = (np.stack(part, axis=1) for part in zip(*moments, strict=True))
            total = np.einsum("bvg,pg->pbv", spots.counts, logs).max(axis=2)
            variance = np.einsum("bvg,pg->pbv", spots.counts, spreads).min(axis=(1, 2))[:, None]
            width = 2 * reach.max(axis=1, keepdims=True)
            with np.errstate(over="ignore"):  # an infinite bound
                kernel = log_damped(tilt, variance / tilt**2, width / tilt, blur=0.2)
            bounds.append(total + (kernel + rounding)[:, None])
        return np.concatenate(bounds)

    def _spots(self, weight: float) -> Spots:
        return Spots.of(self.sizes, tuple(portion * weight for portion in self.portions), _BINS)

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
        weight, groups = float(share.sum()), list[Kinds]()
        for own, portion, more in zip(self._rows(law), self.portions, odds(self.portions, weight), strict=True):
            left = (own - portion * share) / (1 - portion * weight)
            groups.append(Kinds.of(more * law.rows[a], more * law.rows[b], left))
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
        rough = np.flatnonzero(~(reach < 5))
        for block in np.array_split(rough, -(-rough.size * inverse.size // _CELLS) or 1):
            each = scaled[block, :, None] * inverse
            over = np.where(each == 0, 0.0, (np.expm1(each) / each - 1) * steep[block, :, None]).sum(axis=1)
            grown[block] = mean[block] + over.max(axis=1)
        logs = np.where(mean > -1, np.log1p(grown), np.inf)
    logs[np.isnan(logs)] = np.inf
    return logs, np.where(np.isfinite(spread) & (mean > -1), spread, 0.0), np.fmin(reach, 1e9)
