"""Bounds on delta for few reports with few distinct values: exact sums over all counts of reports.

Source: docs/theory/blanket.md, Theorem 1 and Corollary 2; docs/theory/index.md, Lemma 3.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from .ends import FAINT, Law, ball, masses_of

MOST = 150_000
"""The largest number of counts that is enumerated."""

PATIENT = 20 * MOST
"""The largest number of counts that is enumerated if no other method gives a bound."""

RARE = 1e-32
"""Counts with a smaller probability are left out; upper bounds include them in full."""

Counts = tuple[int, ...]


def number_of(reports: int, kinds: int) -> int:
    """Return the number of possible histograms of `reports` reports with `kinds` distinct values."""
    return math.comb(reports + kinds - 1, kinds - 1)


def counts_of(reports: int, kinds: int) -> Iterator[Counts]:
    """Yield all possible histograms of `reports` reports with `kinds` distinct values."""
    if kinds == 1:
        yield (reports,)
        return
    for first in range(reports + 1):
        for rest in counts_of(reports - first, kinds - 1):
            yield (first, *rest)


def classes(*laws: Law) -> list[tuple[tuple[Fraction, ...], int]]:
    """Return the distinct columns of the matrix with these distributions as rows, and how often each column occurs."""
    counts: dict[tuple[Fraction, ...], int] = defaultdict(int)
    for column in zip(*laws, strict=True):
        counts[column] += 1
    return list(counts.items())


class FewAbove:
    """The privacy blanket's upper bound on delta, as in `ends.blanket_above`, by enumeration of all histograms."""

    def __init__(self, pair: tuple[Law, Law], common: Law, *, people: int, dummies: int) -> None:
        self.kinds = classes(*pair, common)
        self.people, self.dummies, self.weight = people, dummies, sum(common, Fraction(0))

    @property
    def counts(self) -> float:
        """Approximate number of histograms to enumerate; infinite if the distributions have no common part."""
        if not self.weight:
            return math.inf
        inside = [float(column[-1] * times) for column, times in self.kinds if column[-1]]
        if not self.dummies:
            return _cells([*inside, 1 - float(self.weight)], self.people + 1)
        reports = 1 + self.dummies + self.people * float(self.weight)
        numbers = _width(self.people, float(self.weight))
        return numbers * _cells([p / float(self.weight) for p in inside], math.ceil(reports))

    def __call__(self, growth: Any) -> Any:
        """Return a ball that contains a number >= delta."""
        gain = [times * (ball(a) - growth * ball(b)) for (a, b, _), times in self.kinds]
        part = [times * column[-1] for column, times in self.kinds]
        certain = sum((arb.max(g, arb(0)) for g, p in zip(gain, part, strict=True) if not p), arb(0))
        inside = [(g / ball(p), p) for g, p in zip(gain, part, strict=True) if p]
        if not self.dummies:
            n = self.people + 1
            return certain + Walk([*inside, (arb(0), 1 - self.weight)]).mean(n) / n
        walk = Walk([(x * ball(self.weight), p / self.weight) for x, p in inside])
        first, masses = masses_of(self.people, self.weight)
        total = certain + walk.most * FAINT * (self.people + 1)
        for covered, chance in enumerate(masses, first):
            reports = covered + 1 + self.dummies
            total += chance * walk.mean(reports) / reports
        return total


class Walk:
    """Enumerates the histograms of independent scores, except histograms of tiny probability."""

    def __init__(self, scores: Sequence[tuple[Any, Fraction]]) -> None:
        positive = sorted((score for score in scores if score[1]), key=lambda score: score[1])
        self.x, self.most = [x for x, _ in positive], arb(0)
        for x in self.x:
            self.most = arb.max(self.most, x)
        rest, self.chances = Fraction(1), list[Fraction]()
        for _, p in positive:
            self.chances.append(min(p / rest, Fraction(1)))
            rest -= p

    def mean(self, reports: int, *, whole: bool = True) -> Any:
        """Return a ball for E [sum of `reports` scores]_+; with `whole`, it includes a bound on omitted histograms."""
        self._known: dict[tuple[int, int], tuple[int, list[Any]]] = {}
        self._left_out = 0
        total = self._from(0, reports, arb(1), arb(0))
        return total + self.most * reports * (RARE * self._left_out) if whole else total

    def _from(self, place: int, left: int, chance: Any, value: Any) -> Any:
        if place == len(self.x) - 1:
            whole = value + self.x[place] * left
            return chance * whole if whole.upper() > 0 else arb(0)
        if (place, left) not in self._known:
            self._known[place, left] = masses_of(left, self.chances[place])
        first, masses = self._known[place, left]
        total = arb(0)
        self._left_out += 1
        for count, mass in enumerate(masses, first):
            here = chance * mass
            if here < RARE:
                self._left_out += 1
            else:
                total += self._from(place + 1, left - count, here, value + self.x[place] * count)
        return total


def _width(trials: int, chance: float) -> float:
    return min(trials + 1.0, 24 * math.sqrt(trials * chance * (1 - chance)) + 16)


def _cells(chances: Sequence[float], reports: int) -> float:
    """Return the approximate number of counts."""
    return math.prod(_width(reports, chance) for chance in sorted(chances)[:-1]) / 2.0 ** min(
        max(len(chances) - 2, 0), 1000
    )


class FewAlike:
    """A lower bound on delta if all other reports have the same distribution, by enumeration of their histograms."""

    def __init__(self, pair: tuple[Law, Law], others: Sequence[tuple[int, Law]]) -> None:
        self.alike = len(others) == 1
        self.kinds = classes(*pair, others[0][1]) if self.alike else []
        self.reports = 1 + sum(count for count, _ in others)

    @property
    def feasible(self) -> bool:
        """Whether there are few enough counts to enumerate."""
        return self.alike and _cells([float(c[-1] * times) for c, times in self.kinds if c[-1]], self.reports) <= MOST

    def __call__(self, growth: Any) -> Any:
        """Return a ball that contains a number <= delta."""
        gained = [(ball(a) - growth * ball(b), held, times) for (a, b, held), times in self.kinds]
        certain = sum((arb.max(gain * times, arb(0)) for gain, held, times in gained if not held), arb(0))
        walk = Walk([(gain / ball(held), held * times) for gain, held, times in gained if held])
        return certain + walk.mean(self.reports, whole=False) / self.reports


class FewBelow:
    """The exact divergence for one pair of datasets, by enumeration of all histograms of reports."""

    def __init__(self, pair: tuple[Law, Law], others: Sequence[tuple[int, Law]]) -> None:
        self.kinds = classes(*pair, *(law for _, law in others))
        self.sizes = [count for count, _ in others]

    @property
    def feasible(self) -> bool:
        """Whether there are few enough counts to enumerate."""
        return math.prod(number_of(size, len(self.kinds)) for size in self.sizes) <= MOST

    def __call__(self, growth: Any) -> Any:
        """Return a ball that contains the divergence."""
        laws = [[ball(column[place] * times) for column, times in self.kinds] for place in range(2 + len(self.sizes))]
        chances: dict[Counts, Any] = defaultdict(lambda: arb(0))
        tables = [_law(law, size) for law, size in zip(laws[2:], self.sizes, strict=True)]
        for parts in product(*tables):
            counts = tuple(map(sum, zip(*(counts for counts, _ in parts), strict=True)))
            chance = arb(1)
            for _, each in parts:
                chance *= each
            chances[counts or (0,) * len(self.kinds)] += chance
        first, second = laws[:2]
        gain: dict[Counts, Any] = defaultdict(lambda: arb(0))
        for counts, chance in chances.items():
            for y, (a, b) in enumerate(zip(first, second, strict=True)):
                gain[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += chance * (a - growth * b)
        return sum((value for value in gain.values() if value.lower() > 0), arb(0))


def _law(law: Sequence[Any], reports: int) -> list[tuple[Counts, Any]]:
    """Return all counts of `reports` independent reports, with their probabilities."""
    powers = [[p**count / math.factorial(count) for count in range(reports + 1)] for p in law]
    outcomes, ways = [], math.factorial(reports)
    for counts in counts_of(reports, len(law)):
        chance = arb(ways)
        for place, count in enumerate(counts):
            chance *= powers[place][count]
        outcomes.append((counts, chance))
    return outcomes
