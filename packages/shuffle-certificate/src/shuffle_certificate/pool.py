"""Upper bounds on delta for any finite randomizer and all datasets, by a pool of reports with a common distribution.

Source: docs/theory/pool.md, Theorem 1, Lemma 2, Corollary 5 and Theorem 9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

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
    """The target's two distributions, `people` other people with distributions of `kinds`, and dummies from `dummy`."""

    pair: tuple[Law, Law]
    kinds: Sequence[Law]
    common: Law
    people: int
    dummies: int
    dummy: Law

    def above(self, growth: Any, delta: float, *, fineness: float, spare: float, sizes: int = 0) -> Any:
        """Return a ball with a number >= delta for all datasets; infinite if the expected pool size is below 1.

        `sizes` is the largest number of bins of pool sizes; 0: as many as suit the number of people.
        """
        others, delta = self.people + self.dummies, max(delta, 1e-300)
        weight = sum(self.common, Fraction(0))
        beta = min(Fraction((spare - math.log(delta)) / others), Fraction(4, 5) * weight) if others else Fraction(0)
        if not beta or beta * others < 1:
            return arb(math.inf)
        return self._sequence(growth, delta, [self._share(beta)], fineness, sizes)

    def sliced(self, growth: Any, delta: float, *, fineness: float) -> Any:
        """Return a ball with a number >= delta for all datasets, by pools in sequence (Theorem 9)."""
        others, delta = self.people + self.dummies, max(delta, 1e-300)
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

    def _sequence(self, growth: Any, delta: float, shares: Sequence[Law], fineness: float, sizes: int) -> Any:
        """Return the bound by pools in sequence, of which the first j together take `shares[j - 1]` of each report."""
        others, largest = self.people + self.dummies, alone(*self.pair, growth)
        total, reached, before = arb(0), arb(1), Fraction(0)
        for share in shares:
            mass = sum(share, Fraction(0))
            if mass == before:
                continue
            pooled = ball((mass - before) / (1 - before))
            masses, beyond = _pooled(others, pooled, delta / max(float(reached), delta), sizes)
            bounds = self._bounds(growth, share, [size for size, _ in masses], fineness)
            total += reached * beyond * largest
            for (_, chance), bound in zip(masses, bounds, strict=True):
                total += reached * chance * arb.min(bound, largest)
            reached *= (1 - pooled) ** others
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

    def _bounds(self, growth: Any, share: Law, sizes: list[int], fineness: float) -> list[Any]:
        """Return upper bounds on (1/N) E [sum of N scores]_+ for each pool size; N reports are outside the pool."""
        gain = gains(*self.pair, growth)
        kinds = {_signature(self.pair, law, share): law for law in self.kinds}
        groups = [
            _scores(gain, share, self.pair, law) for law in (*kinds.values(), *([self.dummy] if self.dummies else []))
        ]
        plans = [plan for size in sizes for plan in self._vertices(size)]
        middle = self._vertices(sizes[len(sizes) // 2])
        people, dummies = (
            sum(float(p.share) * count for p, count in zip(middle, counts, strict=True))
            for counts in ([p.people for p in middle], [p.dummies for p in middle])
        )
        extra = [(dummies, groups[-1][0])] if self.dummies else []
        grid = _grid([[(people, scores), *extra] for scores, _ in groups[: len(kinds)]], fineness)
        if grid is None:  # too large for floats
            return [arb(math.inf) for _ in sizes]
        here, starts = ([Transform(scores, grid.t, grid.h) for scores, _ in groups] for _ in range(2))
        dummy = len(kinds) if self.dummies else None
        bounds = moduli(lambda _: _powers(here, plans, dummy), _powers(starts, plans, dummy), grid)
        lonely = groups[dummy][1] if dummy is not None else arb(0)
        best = dict.fromkeys(sizes, arb(0))
        for kind in range(len(kinds)):
            whole = dict.fromkeys(sizes, arb(0))
            for place, plan in enumerate(plans):
                each = bounds[kind * len(plans) + place] + plan.people * groups[kind][1] + plan.dummies * lonely
                whole[plan.size] += plan.share * each / (plan.people + plan.dummies)
            best = {size: arb.max(best[size], whole[size]) for size in sizes}
        return [best[size] for size in sizes]

    def _vertices(self, size: int) -> list[_Plan]:
        """Return the extreme numbers of reports that people and dummies can have outside a pool of this size."""
        reports = self.people + self.dummies + 1 - size
        if not self.dummies:
            return [_Plan(size, arb(1), reports, 0)]
        least = [max(count - size + 1, 0) for count in (self.people, self.dummies)]
        room = reports - sum(least)
        if not room:
            return [_Plan(size, arb(1), *least)]
        mean = Fraction(self.people * reports, self.people + self.dummies)
        part = (mean - least[0]) / room
        return [
            _Plan(size, ball(part), least[0] + room, least[1]),
            _Plan(size, ball(1 - part), least[0], least[1] + room),
        ]


@dataclass(frozen=True)
class _Plan:
    """Numbers of people's and dummies' reports outside a pool of `size`; `share` is the weight of this case."""

    size: int
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


def _signature(pair: tuple[Law, Law], law: Law, share: Law) -> frozenset[Any]:
    """Return a key that is equal for distributions that are equivalent with respect to the pair and the pool."""
    return frozenset(Counter(zip(*pair, share, law, strict=True)).items())


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


def _grid(sums: Sequence[Sequence[tuple[float, Scores]]], fineness: float) -> Grid | None:
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
    t = least(about, low / math.sqrt(reports), high)
    return Grid.of(t, log_mean(t), spread(t), fineness) if log_mean(t) < _HOPELESS else None


def _log_tail(x: float) -> float:
    """Return approximately ln of e**(x**2/2) P(normal > x)."""
    return math.log(math.erfc(x / math.sqrt(2))) + x * x / 2 if x < 20 else -math.log(x)


def _pooled(others: int, weight: Any, delta: float, bins: int) -> tuple[list[tuple[int, Any]], Any]:
    """Return the largest pool size and the probability of each bin of sizes, and the probability of larger sizes."""
    mean, masses, total = others * float(weight), list[tuple[int, Any]](), (1 - weight) ** others
    mass, number = total, 0
    while number < others and not (number > mean and float(mass) < _TAIL * delta):
        mass = mass * weight * (others - number) / ((1 - weight) * (number + 1))
        number += 1
        total += mass
        masses.append((number, mass))
    width = -(-len(masses) // (bins or (_SIZES if others < _MANY else _BINS)))
    ranges = [masses[start : start + width] for start in range(0, len(masses), width)]
    joined = [(part[-1][0], sum((each for _, each in part), arb(0))) for part in ranges]
    return joined, (1 - total).abs_upper() if number < others else arb(0)
