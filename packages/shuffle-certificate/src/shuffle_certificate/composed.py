"""Bounds on delta for several releases together, each with randomness of its own, in ball arithmetic.

Upper bound: upper bounds h(x) on the delta of one release at several x = e**epsilon, with their mirror images
1 - (1 - h(x))/x at 1/x, have a lower convex hull. This hull is the curve of a pair (P, Q): at each corner x, Q has mass
equal to the increase of the slope, and P has x times that mass. Losses ln x of independent releases add up, so their
distribution is a power of a polynomial. What P leaves at infinity, or in faint tails, counts in full.

Lower bound: for the named datasets, each release has the distributions P and Q of explicit events. Each event has an
integer, about its loss ln(P/Q) in small steps. The sum of the integers of all releases is a processing of them, and has
one distribution under all P, and one under all Q: both are powers of polynomials.

Source: docs/theory/composition.md, Lemma 1, Lemma 2, Theorem 3 and Lemma 5.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

from flint import arb, arb_poly, ctx

from .certificate import NotCheckedError

_FINER = 0.01
"""Step of losses in a lower bound, in units of the standard deviation of one release's loss."""

FINE = 0.002
"""Such a step if only one release, or two columns of it, have named datasets."""

_PRECISION = 128
"""Bits of the numbers in a table."""

_STRIDE = 0.015
"""Relative distance of neighbouring points of evaluation in the far tail."""

_CUT = 3e-4
"""Share of delta that all releases together may assign to an infinite loss."""

_FAINT = 1e-24
"""Masses below this share of delta are cut off, and count as infinite losses or against a lower bound."""

_LARGEST = 700.0
"""Largest loss in a table."""

_CHUNK, _SHARED = 8, 200
"""Numbers of points of a table that are evaluated together, the latter if they share much of their work."""

_LONGEST = 1 << 19
"""Largest length of a distribution."""

_FARTHEST = 100_000
"""Losses of events are cut to this number of steps."""

SMALLEST = 1e-30
"""Smallest delta at which several releases are checked."""


class Event(NamedTuple):
    """An event of the named datasets: its loss as a float, any number being valid, and its probabilities as balls."""

    loss: float
    p: Any
    q: Any


@dataclass(frozen=True)
class Effort:
    """How long a bound is improved: until it decides about `delta` if `decides`, and never beyond the time `until`.

    `table`: bounds at many values of epsilon are needed, so that a fast one with small relative error is chosen.
    """

    delta: Any
    until: float
    thorough: bool = False
    decides: bool = True
    table: bool = False

    def check(self, what: str) -> None:
        """Raise an error if the time is over."""
        if time.process_time() > self.until:
            message = f"{what} takes too long"
            raise NotCheckedError(message)


Bound: TypeAlias = Callable[[Any, Effort], Any]
"""Returns a ball with a bound on delta at e**epsilon."""

Named: TypeAlias = Callable[[Any, Effort], tuple[Sequence[Event], Any]]
"""Returns events of the named datasets that suit e**epsilon, and the largest probability that Q lacks in them."""


class Ends(NamedTuple):
    """Bounds for one release: `least` from below for the named datasets, `most` from above for all datasets.

    `named` lists the named datasets, with numbers of repetitions. Upper bounds are constant from epsilon = `pure` on,
    which is None if this is not known. `parts` are releases, with numbers of repetitions, whose composition bounds this
    one from above, if there are such. `many` returns `most` at several values of e**epsilon, if that is faster. With
    `back`, `most` and `many` bound delta only for one order of the datasets, and `back` is for the other order. Losses
    are tabulated in steps of `step` standard deviations.
    """

    least: Bound
    most: Bound
    named: tuple[tuple[Named, int], ...] = ()
    pure: Any = None
    parts: tuple[tuple[Ends, int], ...] = ()
    many: Callable[[Sequence[Any], Effort], Sequence[Any]] | None = None
    back: Ends | None = None
    step: float = 0.03

    def bound(self, above: bool) -> Bound:  # noqa: FBT001 - a side
        """Return `most` if `above`, else `least`."""
        return self.most if above else self.least

    @property
    def tabulated(self) -> bool:
        """Whether bounds come from tables of losses, whose steps cost a part of delta."""
        return bool(self.parts) or sum(count for _, count in self.named) > 1

    def table(self, growths: Sequence[Any], effort: Effort) -> Sequence[Any]:
        """Return `most` at several values of e**epsilon."""
        if self.many is not None:
            return self.many(growths, effort)
        return [self.most(growth, effort) for growth in growths]


def nothing(growth: Any, effort: Effort) -> Any:
    """Return 0, a lower bound on every delta."""
    del growth, effort
    return arb(0)


NEITHER = Ends(nothing, nothing, pure=arb(0))
"""A release that reveals nothing."""


def composed(releases: Sequence[tuple[Ends, int]], what: str, *, finer: float = _FINER) -> Ends:
    """Return the bounds for releases with numbers of repetitions, all with fresh randomness; `what` names them.

    `finer` is the step of losses in a lower bound, in standard deviations of one release's loss.
    """
    if len(releases) == 1 == releases[0][1]:
        return releases[0][0]
    spread = [(part, times * count) for ends, times in releases for part, count in ends.parts or ((ends, 1),)]
    parts = tuple((part, count) for part, count in spread if part.pure is None or part.pure > 0)
    named = tuple((each, times * count) for ends, times in releases for each, count in ends.named)
    above, below = _Above(parts, what), _Below(named, what, finer)
    pure: Any = arb(0)
    for part, count in parts:
        pure = None if pure is None or part.pure is None else pure + part.pure * count
    return Ends(below.least, above.most, named, pure, parts)


def one_by_one(together: Ends, single: Ends, reports: int) -> Bound:
    """Return the smaller upper bound: that of all reports `together`, or one report replaced after the other.

    Source: docs/theory/randomizers.md, Theorem 18.
    """

    def most(growth: Any, effort: Effort) -> Any:
        each = (growth.log() / reports).exp()
        steps = sum((each**i for i in range(reports)), arb(0))
        first = steps * single.most(each, replace(effort, delta=effort.delta / steps))
        return first if effort.decides and first <= effort.delta else arb.min(first, together.most(growth, effort))

    return most


class Masses(NamedTuple):
    """Masses at the integers from `first` on; at most the mass `lost` is not among them."""

    first: int
    poly: Any
    lost: Any

    def times(self, other: Masses, faint: float) -> Masses:
        """Return the masses of the sum of two independent numbers, without faint ones; each has mass at most 1."""
        masses, lost = (self.poly * other.poly).coeffs(), self.lost + other.lost
        low, high = 0, len(masses)
        while low < high and float(masses[low].abs_upper()) < faint:
            lost += masses[low].abs_upper()
            low += 1
        while high > low and float(masses[high - 1].abs_upper()) < faint:
            high -= 1
            lost += masses[high].abs_upper()
        if high - low > _LONGEST:
            message = f"a distribution of more than {_LONGEST:,} losses"
            raise NotCheckedError(message)
        return Masses(self.first + other.first + low, arb_poly(masses[low:high]), lost)


def power(masses: Masses, times: int, faint: float, check: Callable[[], None]) -> Masses:
    """Return the masses of the sum of several independent numbers, all with these masses."""
    total = Masses(0, arb_poly([1]), arb(0))
    while times:
        check()
        if times & 1:
            total = total.times(masses, faint)
        times >>= 1
        if times:
            masses = masses.times(masses, faint)
    return total


# --- upper bounds -------------------------------------------------------------------------------------------------


class _Above:
    """Upper bounds on delta for all datasets, from a dominating pair of each release."""

    def __init__(self, parts: Sequence[tuple[Ends, int]], what: str) -> None:
        self.parts, self.what = parts, what
        self._total: tuple[Any, Masses] | None = None

    def most(self, growth: Any, effort: Effort) -> Any:
        """Return an upper bound on delta at e**epsilon."""
        if not self.parts:
            return arb(0)
        if self._total is None:
            before, ctx.prec = ctx.prec, _PRECISION
            try:
                self._total = self._composed(replace(effort, decides=False, table=True))
            finally:
                ctx.prec = before
        step, masses = self._total
        total, epsilon, turn = masses.lost, growth.log(), (-step).exp()
        start = max(math.floor(float(epsilon / step)) - 2, masses.first)
        fall = (epsilon - step * start).exp()
        for mass in masses.poly.coeffs()[start - masses.first :]:
            total += mass * arb.max(1 - fall, arb(0))
            fall *= turn
        return total

    def _composed(self, effort: Effort) -> tuple[Any, Masses]:
        """Return the step of losses and the distribution of the loss of all releases; its `lost` mass is infinite."""
        delta, count = float(effort.delta), sum(times for _, times in self.parts)
        if delta < SMALLEST:
            message = f"{self.what} are checked from delta = {SMALLEST:g} on"
            raise NotCheckedError(message)
        near = [part.most(arb(1), effort) for part, _ in self.parts]
        # About the standard deviation of a loss with this total variation distance.
        apart = (min(max(float(value.upper()), 1e-15), 1 - 1e-15) for value in near)
        sizes = [2 * NormalDist().inv_cdf((1 + distance) / 2) for distance in apart]
        square = math.fsum(times * size**2 for size, (_, times) in zip(sizes, self.parts, strict=True))
        widths = [part.step for part, _ in self.parts]
        step, place = min(widths) * math.sqrt(square / count), sizes.index(max(sizes))
        if not step:
            message = f"{self.what} have a curve that the checker cannot tabulate"
            raise NotCheckedError(message)
        pure = self.parts[place][0].pure
        fine = arb(step) if pure is None else (pure / math.ceil(float(pure) / step)).upper()
        faint, total = delta * _FAINT, Masses(0, arb_poly([1]), arb(0))
        for (part, times), size in zip(self.parts, sizes, strict=True):
            stride, negligible = max(1, math.floor(part.step * size / float(fine))), delta * _CUT / count
            table = list(self._table(part, fine, stride, negligible, effort))
            back = table if part.back is None else list(self._table(part.back, fine, stride, negligible, effort))
            pair = _dominating(fine, table, back)
            total = total.times(power(pair, times, faint, lambda: effort.check(self.what)), faint)
        return fine, total

    def _table(
        self, part: Ends, step: Any, stride: int, negligible: float, effort: Effort
    ) -> Iterator[tuple[int, Any]]:
        """Yield multiples of `step` with exact upper bounds on delta there, until these are negligible."""
        last = None if part.pure is None else math.ceil(float((part.pure / step).upper()) * (1 - 1e-12))
        chunk = _CHUNK if part.many is None else _SHARED
        index, farthest = 0, math.floor(_LARGEST / float(step))
        while True:
            places = list[int]()
            while len(places) < chunk and (not places or places[-1] < min(farthest, last or farthest)):
                places.append(index)
                index = min(index + max(stride, math.floor(_STRIDE * index)), last or farthest)
            effort.check(f"a table of {self.what}")
            for place, value in zip(places, part.table([(step * each).exp() for each in places], effort), strict=True):
                least = arb.min(value, arb(1)).upper()
                yield place, least
                if float(least) <= negligible or place >= min(farthest, last or farthest):
                    return


def _dominating(step: Any, table: Sequence[tuple[int, Any]], back: Sequence[tuple[int, Any]]) -> Masses:
    """Return the losses under P of a pair whose curve lies above these upper bounds, in multiples of `step`.

    `back` has the upper bounds for the datasets in the other order. A corner is dropped unless the slope certainly
    rises there: a chord between other points still lies above.
    """
    points, others = ([((step * index).exp(), value, index) for index, value in each] for each in (table, back))
    mirrored = [(1 / x, 1 - (1 - value) / x, -index) for x, value, index in others if index]
    every = [(arb(0), arb(1), None), *mirrored[::-1], *points]
    hull: list[tuple[Any, Any, int | None]] = []
    for point in every:
        while len(hull) > 1 and not _slope(hull[-1], point) >= _slope(hull[-2], hull[-1]):
            hull.pop()
        hull.append(point)
    slopes = [_slope(left, right) for left, right in pairwise(hull)] + [arb(0)]
    while len(slopes) > 1 and not slopes[-2] <= 0:  # rounding
        hull.pop()
        slopes[-2:] = [arb(0)]
    if len(hull) == 1:  # the bounds say nothing
        return Masses(0, arb_poly([0]), arb(1))
    masses: dict[int, Any] = {}
    for (x, _, index), before, after in zip(hull[1:], slopes, slopes[1:], strict=False):
        assert index is not None
        masses[index] = x * (after - before)
    first = min(masses)
    return Masses(first, arb_poly([masses.get(index, arb(0)) for index in range(first, max(masses) + 1)]), hull[-1][1])


def _slope(left: tuple[Any, Any, Any], right: tuple[Any, Any, Any]) -> Any:
    return (right[1] - left[1]) / (right[0] - left[0])


# --- lower bounds -------------------------------------------------------------------------------------------------


class _Below:
    """Lower bounds on delta for the named datasets, the same in each repetition of a release."""

    def __init__(self, named: Sequence[tuple[Named, int]], what: str, finer: float) -> None:
        self.there, self.what, self.finer = named, what, finer

    def least(self, growth: Any, effort: Effort) -> Any:
        """Return a lower bound on delta at e**epsilon; releases without named datasets are left out."""
        there, count = self.there, sum(times for _, times in self.there)
        if not there:
            message = f"the checker has no distribution of the named datasets of {self.what}"
            raise NotCheckedError(message)
        if float(effort.delta) < SMALLEST:
            message = f"{self.what} are checked from delta = {SMALLEST:g} on"
            raise NotCheckedError(message)
        mean = (growth.log() / count).exp()
        events = [named(mean, effort) for named, _ in there]
        square = math.fsum(times * _square(each) for (each, _), (_, times) in zip(events, there, strict=True))
        step = self.finer * math.sqrt(square / count) or 1.0
        faint = float(effort.delta) * _FAINT / float(growth)
        first = second = Masses(0, arb_poly([1]), arb(0))
        for (each, lacking), (_, times) in zip(events, there, strict=True):
            check = lambda: effort.check(f"a lower bound on {self.what}")  # noqa: E731
            p, q = (power(masses, times, faint, check) for masses in _rounded(each, lacking, step))
            first, second = first.times(p, faint), second.times(q, faint)
        mine, theirs, total = first.poly.coeffs(), second.poly.coeffs(), -growth * second.lost
        for place, mass in enumerate(mine, first.first - second.first):
            gain = mass - growth * theirs[place] if 0 <= place < len(theirs) else mass
            if gain.lower() > 0:
                total += gain
        return total


def _square(events: Sequence[Event]) -> float:
    """Return about the variance of the loss."""
    weights = [(float(event.p), min(max(event.loss, -60.0), 60.0)) for event in events]
    mean = math.fsum(p * loss for p, loss in weights)
    return max(math.fsum(p * loss * loss for p, loss in weights) - mean * mean, 1e-30)


def _rounded(events: Sequence[Event], lacking: Any, step: float) -> tuple[Masses, Masses]:
    """Return the distributions of the rounded losses of events under both datasets."""
    sums: dict[int, list[Any]] = defaultdict(lambda: [arb(0), arb(0)])
    for loss, p, q in events:
        place = sums[round(min(max(loss / step, -_FARTHEST), _FARTHEST))]
        place[0] += p
        place[1] += q
    first = min(sums)
    if max(sums) - first > _LONGEST:
        message = f"a distribution of more than {_LONGEST:,} losses"
        raise NotCheckedError(message)
    everywhere = range(first, max(sums) + 1)
    p, q = ([sums[index][side] if index in sums else arb(0) for index in everywhere] for side in (0, 1))
    return Masses(first, arb_poly(p), arb(0)), Masses(first, arb_poly(q), lacking)
