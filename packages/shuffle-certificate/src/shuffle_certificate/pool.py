"""Upper bounds on delta for any finite randomizer and all datasets, by a pool of reports with a common distribution.

Source: docs/theory/pool.md, Theorem 1, Lemma 2, Corollary 5 and Theorem 9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from flint import arb, arb_poly

from .ends import Law, alone, ball, gains, tilts
from .sums import Grid, Scores, Transform, least, moduli

_TAIL = 1e-7
"""Pool sizes above the mean with a probability below this times delta are treated like an empty pool."""

_HOPELESS = 100.0
"""Bounds above e to this power are useless, so the search stops there."""

_SPARE, _NEGATIVE = 6.0, 0.4
"""Pools in sequence are all empty with probability about e to the power -`_SPARE`, times delta, if there is room. They
count negative scores as `_NEGATIVE` times their size."""

_SIZES, _MANY, _BINS = 64, 3000, 16
"""Pool sizes are grouped into at most 64 bins; if there are 3000 other reports or more, into at most 16."""


@dataclass(frozen=True)
class Pool:
    """The target's two distributions, `people` other people with distributions of `kinds`, and dummies from `dummy`.

    A dummy gives `portion` times as much to the pool as a person. `factor` changes the tilts; any is valid.
    """

    pair: tuple[Law, Law]
    kinds: Sequence[Law]
    common: Law
    people: int
    dummies: int
    dummy: Law
    factor: float = 1.0

    def above(self, growth: Any, delta: float, *, fineness: float, spare: float, sizes: int = 0) -> Any:
        """Return a ball with a number >= delta for all datasets; infinite if the expected pool size is below 1.

        `sizes` is the largest number of bins of pool sizes; 0: as many as suit the number of people.
        """
        others, delta = self.people + self.portion * self.dummies, max(delta, 1e-300)
        weight = sum(self.common, Fraction(0))
        beta = (
            min(Fraction((spare - math.log(delta)) / float(others)), Fraction(4, 5) * weight) if others else Fraction(0)
        )
        if not beta or beta * others < 1:
            return arb(math.inf)
        return self._sequence(growth, delta, [self._share(beta)], fineness, sizes)

    def sliced(self, growth: Any, delta: float, *, fineness: float) -> Any:
        """Return a ball with a number >= delta for all datasets, by pools in sequence (Theorem 9)."""
        others, delta = self.people + self.portion * self.dummies, max(delta, 1e-300)
        if not others or not any(self.common):
            return arb(math.inf)
        away = []
        for part, a, b, *laws in zip(self.common, *self.pair, *self.kinds, strict=True):
            score = (float(a) - float(growth) * float(b)) * len(laws)
            away.append((max(score, -_NEGATIVE * score) / float(sum(laws)) if part else math.inf) + 1e-9)
        deepest = 10 * max(each for each in away if each < math.inf)

        def share(depth: float) -> Law:
            """Return the mass at each report: less of it where the pair's probabilities differ more."""
            parts = (Fraction(round(1000 * min(max(1 - each / depth, 0.0), 0.8)), 1000) for each in away)
            return [part * each for part, each in zip(parts, self.common, strict=True)]

        shares, reports = [share(deepest)], _SPARE - math.log(delta)
        while reports > 0.5:
            low, high = min(away) / 2, deepest
            while high > low * 1.01:
                middle = math.sqrt(low * high)
                low, high = (middle, high) if sum(share(middle)) * others < reports else (low, middle)
            shares.append(share(high))
            reports = reports / 1.3 - 0.3
        return self._sequence(growth, delta, sorted(shares, key=sum), fineness, 0)

    @cached_property
    def portion(self) -> Fraction:
        """Ratio of the largest mean square score of a person to that of a dummy; any number up to `most` is valid."""
        if not self.dummies:
            return Fraction(1)
        most = min(own / part for own, part in zip(self.dummy, self.common, strict=True) if part)
        squares = [(a - b) ** 2 for a, b in zip(*self.pair, strict=True)]
        own, *each = (
            sum((square / mass for square, mass in zip(squares, law, strict=True) if mass), Fraction(0))
            for law in (self.dummy, *self.kinds)
        )
        return min(max(Fraction(float(max(each) / own)) if own else Fraction(1), Fraction(1)), most)

    def _sequence(self, growth: Any, delta: float, shares: Sequence[Law], fineness: float, sizes: int) -> Any:
        """Return the bound by pools in sequence, of which the first j together take `shares[j - 1]` of each report."""
        largest = alone(*self.pair, growth)
        total, reached, before = arb(0), arb(1), Fraction(0)
        for share in shares:
            mass = sum(share, Fraction(0))
            if mass == before:
                continue
            chances = [part * (mass - before) / (1 - part * before) for part in (Fraction(1), self.portion)]
            bins, empty, beyond = self._bins(chances, delta / max(float(reached), delta), sizes)
            bounds = self._bounds(growth, share, bins, fineness)
            total += reached * beyond * largest
            for each, bound in zip(bins, bounds, strict=True):
                total += reached * each.chance * arb.min(bound, largest)
            reached *= empty
            before = mass
        return total + reached * largest

    def _share(self, beta: Fraction) -> Law:
        """Return the pool's mass at each report: a share of `common` where the pair differs least, elsewhere 0."""
        first, second = self.pair
        there = [y for y, part in enumerate(self.common) if part]
        away = {y: (abs(first[y] - second[y]) + (first[y] + second[y]) / 20) / self.common[y] for y in there}
        for level in sorted(set(away.values())):
            taken = {y for y in there if away[y] <= level}
            held = sum((self.common[y] for y in taken), Fraction(0))
            if 2 * beta <= held:
                break
        part = min(beta / held, Fraction(4, 5))
        return [part * self.common[y] if y in taken else Fraction(0) for y in range(len(first))]

    def _bounds(self, growth: Any, share: Law, bins: Sequence[_Bin], fineness: float) -> list[Any]:
        """Return upper bounds on E [sum of N scores]_+, divided by N, for each bin; N reports are outside the pool."""
        mass, part = sum(share, Fraction(0)), self.portion
        gain, odds = gains(*self.pair, growth), ball(part * (1 - mass) / (1 - part * mass))
        # Distributions with the same key are equivalent with respect to the pair and the pool.
        kinds = {frozenset(Counter(zip(*self.pair, share, law, strict=True)).items()): law for law in self.kinds}
        groups = [_scores(gain, share, self.pair, law) for law in kinds.values()]
        if self.dummies:
            groups.append(_scores([odds * g for g in gain], [part * each for each in share], self.pair, self.dummy))
        plans = [plan for place, each in enumerate(bins) for plan in self._vertices(place, each)]
        middle = self._vertices(0, bins[len(bins) // 2])
        people, dummies = (
            sum(float(p.share) * count for p, count in zip(middle, counts, strict=True))
            for counts in ([p.people for p in middle], [p.dummies for p in middle])
        )
        extra = [(dummies, groups[-1][0])] if self.dummies else []
        grid = _grid([[(people, scores), *extra] for scores, _ in groups[: len(kinds)]], fineness, self.factor)
        if grid is None:  # too large for floats
            return [arb(math.inf) for _ in bins]
        here, starts = ([Transform(scores, grid.t, grid.h) for scores, _ in groups] for _ in range(2))
        dummy = len(kinds) if self.dummies else None
        bounds = moduli(lambda _: _powers(here, plans, dummy), _powers(starts, plans, dummy), grid)
        lonely = groups[dummy][1] if dummy is not None else arb(0)
        best = [arb(0) for _ in bins]
        for kind in range(len(kinds)):
            whole = [arb(0) for _ in bins]
            for place, plan in enumerate(plans):
                each = bounds[kind * len(plans) + place] + plan.people * groups[kind][1] + plan.dummies * lonely
                whole[plan.place] += plan.share * each / bins[plan.place].total
            best = [arb.max(*pair) for pair in zip(best, whole, strict=True)]
        return best

    def _vertices(self, place: int, each: _Bin) -> list[_Plan]:
        """Return the extreme numbers of reports that people and dummies can have outside a pool of the bin's size."""
        reports = self.people + self.dummies + 1 - each.size
        if not self.dummies:
            return [_Plan(place, arb(1), reports, 0)]
        least = [max(count - each.size + 1, 0) for count in (self.people, self.dummies)]
        room = reports - sum(least)
        if not room:
            return [_Plan(place, arb(1), *least)]
        part = (each.dummies - least[1]) / room
        return [
            _Plan(place, 1 - part, least[0] + room, least[1]),
            _Plan(place, part, least[0], least[1] + room),
        ]

    def _bins(self, chances: Sequence[Fraction], delta: float, most: int) -> tuple[list[_Bin], Any, Any]:
        """Return bins of pool sizes, and the probabilities of an empty pool and of sizes beyond all bins.

        `chances` are those with which a person's and a dummy's report join the pool. `most`: see `above`.
        """
        groups, others = (self.people, self.dummies), self.people + self.dummies
        mean = sum(count * float(chance) for count, chance in zip(groups, chances, strict=True))
        last = min(math.ceil(mean) + 16, others)
        own, extra = (_binomial(count, ball(chance), last) for count, chance in zip(groups, chances, strict=True))
        while last < others and not float((own * extra)[last]) < _TAIL * delta:
            last = min(last + 16, others)
            own, extra = (_binomial(count, ball(chance), last) for count, chance in zip(groups, chances, strict=True))
        law, taken = own * extra, own * arb_poly([j * mass for j, mass in enumerate(extra.coeffs())])
        width, bins = -(-last // (most or (_SIZES if others < _MANY else _BINS))), list[_Bin]()
        for start in range(0, last, width):
            size = min(start + width, last)
            # The target replaced one of the reports in the pool: `stay` others remain there.
            stays = [(stay, ball(Fraction(1, 1 + stay))) for stay in range(start, size)]
            hidden = sum((part * law[stay] * (others - stay) for stay, part in stays), arb(0)) / (others + 1 - size)
            outside = sum((part * (self.dummies * law[stay] - taken[stay]) for stay, part in stays), arb(0))
            chance = sum((law[stay + 1] for stay, _ in stays), arb(0))
            total = chance * ball((1 - chances[0]) / chances[0]) / hidden
            bins.append(_Bin(size=size, chance=chance, total=total, dummies=outside / hidden))
        rest = 1 - sum((law[number] for number in range(last + 1)), arb(0))
        return bins, law[0], rest.abs_upper() if last < others else arb(0)


@dataclass(frozen=True)
class _Bin:
    """Pool sizes up to `size`, with their probability and the N by which a sum of scores is divided.

    `dummies` is the mean number of dummies outside a pool of this size.
    """

    size: int
    chance: Any
    total: Any
    dummies: Any


@dataclass(frozen=True)
class _Plan:
    """Numbers of people's and dummies' reports outside the pool of bin number `place`; `share` is the case's weight."""

    place: int
    share: Any
    people: int
    dummies: int


def _powers(transforms: Sequence[Transform], plans: Sequence[_Plan], dummy: int | None) -> list[Any]:
    """Return the modulus of the sum's transform for every distribution of a person and every plan."""
    each = [abs(transform.here()) for transform in transforms]
    if dummy is None:
        return [power for value in each for power in _each(value, [plan.people for plan in plans])]
    extra = _each(each[dummy], [plan.dummies for plan in plans])
    return [
        power * other
        for value in each[:dummy]
        for power, other in zip(_each(value, [plan.people for plan in plans]), extra, strict=True)
    ]


def _each(value: Any, exponents: Sequence[int]) -> list[Any]:
    """Return the powers of `value` with these exponents, which are close to each other."""
    ascending = sorted(set(exponents))
    powers = {ascending[0]: value ** ascending[0]}
    for before, after in pairwise(ascending):
        powers[after] = powers[before] * value ** (after - before)
    return [powers[exponent] for exponent in exponents]


def _scores(gain: Sequence[Any], share: Law, pair: tuple[Law, Law], law: Law) -> tuple[Scores, Any]:
    """Return the merged scores of a report outside the pool, and the gain from reports that only the target sends."""
    rest, certain = 1 - sum(share, Fraction(0)), arb(0)
    masses: dict[tuple[Fraction, ...], Fraction] = {}
    gained: dict[tuple[Fraction, ...], Any] = {}
    for g, part, q, first, second in zip(gain, share, law, *pair, strict=True):
        outside = (q - part) / rest
        if outside:
            alike = first, second, outside
            masses[alike] = masses.get(alike, Fraction(0)) + outside
            gained[alike] = g
        else:
            certain += arb.max(g, arb(0))
    return Scores([gained[alike] / ball(alike[2]) for alike in masses], [ball(m) for m in masses.values()]), certain


def _grid(sums: Sequence[Sequence[tuple[float, Scores]]], fineness: float, factor: float) -> Grid | None:
    """Return the nodes for the largest sum with these numbers of scores; None if floats cannot represent it."""

    def log_mean(t: float) -> float:
        return max(math.fsum(count * scores.log_mean(t) for count, scores in parts) for parts in sums)

    def spread(t: float) -> float:
        return math.sqrt(max(math.fsum(count * scores.variance(t) for count, scores in parts) for parts in sums))

    def about(t: float) -> float:
        """Return approximately the logarithm of the bound at tilt t, if moduli decrease like those of a normal sum."""
        if not log_mean(t) < _HOPELESS:
            return math.inf
        exponents = []
        for parts in sums:
            deviation = math.sqrt(math.fsum(count * scores.variance(t) for count, scores in parts))
            exponents.append(
                math.fsum(count * scores.log_mean(t) for count, scores in parts) + _log_tail(t * deviation)
            )
        return max(exponents) - math.log(t)

    reports, first = sum(count for count, _ in sums[0]), sums[0][0][1]
    low, high = tilts(first)
    t = factor * least(about, low / math.sqrt(reports), high)
    return Grid.of(t, log_mean(t), spread(t), fineness) if log_mean(t) < _HOPELESS else None


def _log_tail(x: float) -> float:
    """Return approximately ln of e**(x**2/2) P(normal > x)."""
    return math.log(math.erfc(x / math.sqrt(2))) + x * x / 2 if x < 20 else -math.log(x)


def _binomial(count: int, chance: Any, last: int) -> arb_poly:
    """Return the probabilities of 0, 1, ..., `last` successes in `count` trials."""
    masses = [(1 - chance) ** count]
    for number in range(min(last, count)):
        masses.append(masses[-1] * chance * (count - number) / ((1 - chance) * (number + 1)))
    return arb_poly(masses)
