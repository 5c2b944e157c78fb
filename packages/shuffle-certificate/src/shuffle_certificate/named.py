"""Distributions of explicit neighbouring datasets after a shuffle, as lists of events, in ball arithmetic.

The target has `reports` reports, all with one value or all with another; the values of all other people are given.

Source: docs/theory/composition.md, Lemma 5 and Lemma 9; docs/theory/blanket.md, Corollary 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from flint import arb, arb_poly

from .certificate import Certificate, NotCheckedError, Plain
from .composed import Effort, Event, Masses, power
from .ends import FAINT, Law, ball, masses_of
from .few import RARE, classes

_CELLS = 40_000
"""Largest approximate number of histograms of reports that are listed one by one."""

_WINDOW = 6000.0
"""Approximate largest standard deviation of a sum of integer scores."""

_HAIR = Fraction(1, 10**9)
_COMPARED = 5 * 10**7

_SHARPEST = 60
"""Largest integer score of a report."""

Others = Sequence[tuple[int, Law]]


def events_of(
    pair: tuple[Law, Law], others: Others, reports: int, growth: Any, effort: Effort
) -> tuple[Sequence[Event], Any]:
    """Return events of the release, and a bound on the probability that they lack under the second dataset.

    The number of each possible report is an event if there are few such numbers; otherwise it is a sum of scores.
    """
    crowd = [(count, law) for count, law in others if count]
    if not crowd and reports == 1:
        return [_event(a * times, b * times) for (a, b), times in classes(*pair)], arb(0)
    merged = _merged([*pair, *(law for _, law in crowd)])
    for laws in ([*pair, *(law for _, law in crowd)], merged) if len(crowd) == 1 == reports else ():
        listed = _Listed((laws[0], laws[1]), laws[2], crowd[0][0] + 1)
        if listed.cells <= _CELLS:
            return listed.events()
    crowd = [(count, law) for (count, _), law in zip(crowd, merged[2:], strict=True)]
    return _scored((merged[0], merged[1]), crowd, reports, float(growth) ** (1 / reports), effort)


def _merged(laws: Sequence[Law]) -> list[Law]:
    """Return the distributions after reports with equal likelihood ratio are merged, which is a processing."""
    alike: dict[Fraction | None, list[Fraction]] = {}
    for column in zip(*laws, strict=True):
        ratio = column[0] / column[1] if column[1] else None if column[0] else Fraction(-1)
        before = alike.get(ratio, [Fraction(0)] * len(column))
        alike[ratio] = [a + b for a, b in zip(before, column, strict=True)]
    return [list(row) for row in zip(*alike.values(), strict=True)]


def _event(p: Fraction, q: Fraction) -> Event:
    loss = math.inf if not q else -math.inf if not p else math.log(p) - math.log(q)
    return Event(loss, ball(p), ball(q))


class _Listed:
    """All histograms of `reports` reports if the other people's reports are alike.

    A histogram of reports of the others' distribution is weighted by the mean likelihood ratio of its reports.
    """

    def __init__(self, pair: tuple[Law, Law], law: Law, reports: int) -> None:
        self.reports = reports
        kinds = sorted(((a, b, held), times) for (a, b, held), times in classes(*pair, law))
        self.apart = [_event(a * times, b * times) for (a, b, held), times in kinds if not held and a + b]
        hidden = sorted((held * times, a / held, b / held) for (a, b, held), times in kinds if held)
        self.ratios = [(ball(a), ball(b)) for _, a, b in hidden]
        rest, self.chances = Fraction(1), list[Fraction]()
        for held, _, _ in hidden:
            self.chances.append(min(held / rest, Fraction(1)))
            rest -= held
        self.cells = math.prod(
            min(reports + 1.0, 20 * math.sqrt(reports * p * (1 - p)) + 12) for p in [float(h) for h, *_ in hidden][:-1]
        )
        self._left_out = 0
        self._known: dict[tuple[int, int], tuple[int, list[Any]]] = {}

    def events(self) -> tuple[Sequence[Event], Any]:
        """Return the events, and a bound on the probability that the second dataset gives to the omitted ones."""
        listed = [*self.apart, *self._from(0, self.reports, arb(1), arb(0), arb(0))]
        largest = max(float(b.upper()) for _, b in self.ratios) * (1 + 1e-9)
        return listed, arb(largest) * (RARE * self._left_out)

    def _from(self, place: int, left: int, chance: Any, first: Any, second: Any) -> Iterator[Event]:
        a, b = self.ratios[place]
        if place == len(self.ratios) - 1:
            mine, theirs = first + a * left, second + b * left
            p, q = float(mine), float(theirs)
            loss = math.inf if not q else -math.inf if not p else math.log(p / q)
            yield Event(loss, chance * mine / self.reports, chance * theirs / self.reports)
            return
        if (place, left) not in self._known:
            self._known[place, left] = masses_of(left, self.chances[place])
        start, masses = self._known[place, left]
        self._left_out += 1
        for count, mass in enumerate(masses, start):
            here = chance * mass
            if here < RARE:
                self._left_out += 1
            else:
                yield from self._from(place + 1, left - count, here, first + a * count, second + b * count)


def _scored(
    pair: tuple[Law, Law], others: Others, reports: int, growth: float, effort: Effort
) -> tuple[Sequence[Event], Any]:
    """Return the sums over all reports of integer scores, about the likelihood ratio of a report of the target."""
    kinds = classes(*pair, *(law for _, law in others))
    counts = [count for count, _ in others]
    laws = [[column[place] * times for column, times in kinds] for place in range(2 + len(counts))]
    scores = _scores(laws, counts, reports, growth)
    least = min(scores)
    polys = list[Masses]()
    for law in laws:
        masses = [arb(0)] * (max(scores) - least + 1)
        for score, part in zip(scores, law, strict=True):
            masses[score - least] += ball(part)
        polys.append(Masses(0, arb_poly(masses), arb(0)))
    check = lambda: effort.check("a distribution of the named datasets")  # noqa: E731
    crowd = Masses(0, arb_poly([1]), arb(0))
    for count, poly in zip(counts, polys[2:], strict=True):
        crowd = crowd.times(power(poly, count, FAINT, check), FAINT)
    first, second = (crowd.times(power(poly, reports, FAINT, check), FAINT) for poly in polys[:2])
    low = min(first.first, second.first)
    p, q = ([arb(0)] * (each.first - low) + each.poly.coeffs() for each in (first, second))
    p, q = (each + [arb(0)] * (max(len(p), len(q)) - len(each)) for each in (p, q))
    listed = list[Event]()
    for mine, theirs in zip(p, q, strict=True):
        mass, other = float(mine), float(theirs)
        if mass > 0 or other > 0:
            loss = math.log(mass / other) if mass > 0 < other else math.inf if mass > 0 else -math.inf
            listed.append(Event(loss, mine, theirs))
    return listed, second.lost


def _scores(laws: Sequence[Law], counts: Sequence[int], reports: int, growth: float) -> list[int]:
    """Return an integer for each report; any integers are valid, and good ones preserve the likelihood ratio."""
    first, second = ([float(part) for part in law] for law in laws[:2])
    if len(first) == 2:
        return [0, 1] if first[1] > second[1] else [1, 0]
    crowd = sum(counts)
    mean = [
        math.fsum(count * float(law[y]) for count, law in zip(counts, laws[2:], strict=True)) / max(crowd, 1)
        for y in range(len(first))
    ]
    seen = [y for y, part in enumerate(mean) if part > 0] or list(range(len(first)))
    weights = mean if crowd else [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    x = {y: (first[y] - growth * second[y]) / weights[y] for y in seen}
    base = x[max(seen, key=lambda y: weights[y])]
    shifted = {y: value - base for y, value in x.items()}
    size = max(map(abs, shifted.values())) or 1.0
    deviation = math.sqrt(math.fsum(weights[y] * shifted[y] ** 2 for y in seen)) / size or 1.0
    most = max(2, min(_SHARPEST, math.floor(_WINDOW / math.sqrt(crowd + reports) / deviation)))

    def doubt(scale: int) -> float:
        return math.fsum(weights[y] * (shifted[y] / size - round(shifted[y] / size * scale) / scale) ** 2 for y in seen)

    scale = min(range(max(most // 2, 1), most + 1), key=doubt)
    scores = {y: round(shifted[y] / size * scale) for y in seen}
    high, low = 3 * max(*scores.values(), 1), 3 * min(*scores.values(), -1)
    return [scores.get(y, high if first[y] > second[y] else low) for y in range(len(first))]


def common_part(rows: Sequence[Law], dummy: Law | None) -> Law:
    """Return the common part of all values' report distributions; with dummies, a multiple of the dummies' one."""
    least = [min(column) for column in zip(*rows, strict=True)]
    if dummy is None:
        return least
    weight = min(part / given for part, given in zip(least, dummy, strict=True) if given)
    return [weight * given for given in dummy]


def named_rows(plain: Plain, truth: Fraction) -> tuple[Mapping[int, Law], Law]:
    """Return the report distributions of the datasets' values, all other reports merged, and their common part."""
    named = sorted({*plain.target, *(x for x, _ in plain.others)})
    if len(named) > 16:
        message = "others at more than 16 values"
        raise NotCheckedError(message)
    lie, k = (1 - truth) / (plain.randomizer.k - 1), plain.randomizer.k
    least = [*[lie] * len(named), (k - len(named)) * lie]
    rows: dict[int, Law] = {
        x: [truth if y == place else part for y, part in enumerate(least)] for place, x in enumerate(named)
    }
    return rows, least


def different_pairs(rows: tuple[Law, ...], common: Law) -> list[tuple[int, int]]:
    """Return pairs of values; of several pairs that are equal up to renaming reports and values, only the first."""
    if len(rows) ** 3 * len(common) > _COMPARED:
        message = f"a matrix whose {len(rows):,} values take more than a minute to compare in pairs"
        raise NotCheckedError(message)
    pairs: dict[Any, tuple[int, int]] = {}
    numbers: dict[Fraction, int] = {}
    named = [[numbers.setdefault(entry, len(numbers)) for entry in row] for row in (*rows, common)]
    for a, b in itertools.permutations(range(len(rows)), 2):
        alike = {tuple(sorted(zip(named[a], named[b], named[-1], row, strict=True))) for row in named[:-1]}
        pairs.setdefault(frozenset(alike), (a, b))
    return list(pairs.values())


def finite(method: Callable[[Any], Any], growth: Any) -> Any:
    """Return a bound, 1 if it is infinite or needs too many nodes."""
    with suppress(OverflowError):
        value = method(growth)
        if value.is_finite():
            return value
    return arb(1)


def widened(certificate: Certificate) -> tuple[Fraction, Fraction | None]:
    """Return the bounds on epsilon to check; for an epsilon stated as exact, they are wider by a relative 10**-9."""
    hair = _HAIR if certificate.exact else Fraction(0)
    upper = certificate.upper
    return certificate.lower * (1 - hair), None if upper is None else upper * (1 + hair)
