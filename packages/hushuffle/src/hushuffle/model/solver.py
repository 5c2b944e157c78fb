"""The search of all calibrations: the value of a parameter at which a requirement is only just met, and its neighbour.

A calibration is a `Parameter` (what may vary) and a `Requirement` (what must hold). The requirement is evaluated at
the answer, so an answer never rests on the assumption that the parameter acts in one direction only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from hushuffle.model.bound import Bound

D = TypeVar("D")

RESOLUTION: Final = 1e-4
"""Relative resolution of a search, which is about the width of the certified brackets."""

_HAIR: Final = 1e-6
"""A figure that exceeds the limit by this fraction is accepted where the excess proves the limit itself."""

_FAR: Final = 50.0
_BEYOND: Final = 1.1
_JUMP: Final = 1.0
"""Largest step, in the logarithm of the parameter, by which a search follows the slope of its excess."""

_ROUGH: Final = 1e-3
"""Relative resolution of a search among estimates."""

_SLACK: Final = 0.05
"""Bounds are tables: an excess that falls by less than this, where it should rise, contradicts nothing."""


@dataclass(frozen=True, kw_only=True)
class Parameter(Generic[D]):
    """A number that may vary from `easiest` to `hardest`, and `apply`, which returns the deployment with this number.

    The requirement is easiest to meet at `easiest`; the search looks for the value nearest to `hardest`. It begins at
    `start` (default: `hardest`) and moves by factors of `stride` (infinity: straight to a limit) until one value meets
    the requirement and another misses it. Between them it ends at the relative `resolution`, or at neighbouring
    integers if `whole`. `outside` is the number reported as the neighbour of `hardest`. Limits of a parameter that is
    not whole are above 0.
    """

    name: str
    apply: Callable[[float], D]
    easiest: float
    hardest: float
    start: float | None = None
    stride: float = math.inf
    whole: bool = False
    resolution: float = RESOLUTION
    outside: float = math.nan


@dataclass(frozen=True, kw_only=True)
class Requirement(Generic[D]):
    """What a deployment must meet: its `figure`, which an assessment shows, is at most `limit`.

    `excess` guides the search: if it is at most 0, the figure is at most `limit` (default: the figure's upper bound
    minus the limit). It should be nearly linear in the logarithm of the parameter. The excess of a `verdict` is minus
    or plus infinity, and has no figure. `estimate` approximates the excess in less time: it says where to begin.
    """

    excess: Callable[[D], float] | None = None
    estimate: Callable[[D], float] | None = None
    figure: Callable[[D], Bound] | None = None
    limit: float = math.inf


def log_excess(value: float, limit: float) -> float:
    """Return ln(value / limit), clipped to [-50, 50]; it is at most 0 only if `value` is at most `limit`."""
    if value <= limit:
        return -_FAR if value <= 0 else max(math.log(value / limit), -_FAR)
    return max(min(math.log(value / limit), _FAR), 1e-15) if limit > 0 else _FAR


def verdict(holds: Callable[[D], bool]) -> Requirement[D]:
    """Return the requirement that `holds` is true."""
    return Requirement(excess=lambda deployment: -math.inf if holds(deployment) else math.inf)


@dataclass(frozen=True, kw_only=True)
class Solution:
    """The value of a parameter that meets a requirement, and a neighbouring value `beyond` that misses it.

    If the parameter `ends` at `value`, no neighbour misses it. `bound` is the figure at `value`, at most the limit, and
    `beyond_bound` that at `beyond` (None: the requirement has no figure, or there is no neighbour). `evaluations`
    counts the values that were tried. `monotone` is False if two of them contradict that the requirement becomes harder
    to meet in one direction: `value` meets it all the same, but a value farther in this direction may meet it too.
    """

    parameter: str
    value: float
    bound: Bound | None
    beyond: float
    beyond_bound: Bound | None
    evaluations: int
    ends: bool = False
    monotone: bool = True


def solve(
    parameter: Parameter[D], requirement: Requirement[D], *, tell: Callable[[str, float], None] = lambda *_: None
) -> Solution | None:
    """Return the value nearest to `hardest` that meets the requirement; None if not even `easiest` meets it.

    The requirement was evaluated at the returned value and at its neighbour. `tell` receives the value that is tried
    and the approximate share of the search that is done.

    >>> square = Parameter(name="side", apply=float, easiest=1, hardest=100, whole=True, resolution=0)
    >>> solution = solve(square, Requirement(excess=lambda side: side * side - 500))
    >>> solution.value, solution.beyond, solution.monotone
    (22, 23, True)
    """
    begun, slope = 0.0, 0.0
    if requirement.estimate is not None:
        rough, begun = replace(parameter, resolution=max(parameter.resolution, _ROUGH)), 0.5
        first = _SolverSearch(rough, Requirement(excess=requirement.estimate), lambda at, done: tell(at, begun * done))
        if (near := first.solution()) is not None:
            parameter, slope = replace(parameter, start=near.value, stride=1 + rough.resolution), first.slope
    search = _SolverSearch(parameter, requirement, lambda at, done: tell(at, begun + (1 - begun) * done), slope)
    return search.solution()


class _SolverSearch(Generic[D]):
    """One search. It counts from 1 where whole values begin at 0 or below, so that logarithms exist."""

    def __init__(
        self, parameter: Parameter[D], requirement: Requirement[D], tell: Callable[[str, float], None], slope: float = 0
    ) -> None:
        self._parameter, self._requirement, self._tell, self._guess = parameter, requirement, tell, slope
        low, high = sorted((parameter.easiest, parameter.hardest))
        self._shift = max(1 - low, 0) if parameter.whole else 0
        self._limits = low + self._shift, high + self._shift
        self._easiest, self._hardest = parameter.easiest + self._shift, parameter.hardest + self._shift
        self._excesses: dict[float, float] = {}
        self._figures: dict[float, Bound] = {}
        self._ends: dict[bool, float] = {}
        self._widest, self._stride = 0.0, parameter.stride

    def solution(self) -> Solution | None:
        start = self._parameter.start
        good = bad = self._hardest if start is None else self._within(start + self._shift)
        while self._excess(good) > 0:
            if good == self._easiest:
                return None
            bad, good = good, self._toward(good, self._easiest)
        while bad == good:
            if good == self._hardest:
                return self._verified(good, None)
            bad = self._toward(good, self._hardest)
            if self._excess(bad) <= 0:
                good = bad
        return self._verified(*self._narrowed(good, bad))

    @property
    def slope(self) -> float:
        """By how much the excess changes, relative to the logarithm of the place, near the least excesses; or 0."""
        (_, first, here), *rest = self._nearest or [(0.0, 0.0, 1.0)]
        return abs((first - rest[0][1]) / (here - rest[0][2])) if rest else self._guess

    @property
    def _nearest(self) -> list[tuple[float, float, float]]:
        """Up to three different finite excesses, those nearest to 0 first: |excess|, excess, logarithm of the place."""
        finite = {excess: place for place, excess in self._excesses.items() if abs(excess) < _FAR}
        return sorted((abs(excess), excess, math.log(place)) for excess, place in finite.items())[:3]

    @property
    def _root(self) -> float:
        """The logarithm of the place where the nearest excesses predict an excess of 0; nan if there are too few."""
        near = self._nearest
        weights = [math.prod(other / (other - own) for _, other, _ in near if other != own) for _, own, _ in near]
        return sum(weight * place for weight, (*_, place) in zip(weights, near, strict=True)) if near[1:] else math.nan

    def _deployment(self, place: float) -> D:
        return self._parameter.apply(place - self._shift)

    def _excess(self, place: float) -> float:
        if place not in self._excesses:
            self._tell(f"trying {self._parameter.name} = {place - self._shift:,.6g}", self._share())
            excess, limit = self._requirement.excess, self._requirement.limit
            self._excesses[place] = (
                self._figure(place).upper - limit if excess is None else excess(self._deployment(place))
            )
        self._ends[self._excesses[place] <= 0] = place
        return self._excesses[place]

    def _share(self) -> float:
        """Return the approximate share of the search that is done, by the distance of the values next to the answer."""
        if len(self._ends) < 2:
            return 0.0
        finest = max(self._parameter.resolution, 1e-15)
        apart = max(abs(math.log(self._ends[True] / self._ends[False])), finest)
        self._widest = max(self._widest, apart, 2 * finest)
        return 0.9 * math.log(self._widest / apart) / math.log(self._widest / finest)

    def _within(self, place: float) -> float:
        place = min(max(place, self._limits[0]), self._limits[1])
        return int(place) if self._parameter.whole else place

    def _toward(self, place: float, limit: float) -> float:
        stride = self._stride
        if self._requirement.estimate is not None:  # the first steps are small
            self._stride = stride**4
            if (slope := self.slope) > 0:  # a little beyond the root
                stride = max(stride, math.exp(min(_BEYOND * abs(self._excesses[place]) / slope, _JUMP)))
        if limit > place:
            return self._within(max(place * stride, place + 1) if self._parameter.whole else place * stride)
        return self._within(min(place // stride, place - 1) if self._parameter.whole else place / stride)

    def _narrowed(self, good: float, bad: float) -> tuple[float, float]:
        """Narrow the interval from `good`, which meets the requirement, to `bad`, which misses it."""
        whole, turn, finest = self._parameter.whole, 0, self._parameter.resolution
        while abs(width := math.log(bad / good)) > finest and not (whole and abs(bad - good) <= 1):
            # The predicted place, and a little beyond as seen from the nearer end, so that both bounds move.
            share, beyond = (self._root - math.log(good)) / width, 0.2 * finest / abs(width)
            share += beyond if abs(self._excesses[good]) < abs(self._excesses[bad]) else -beyond
            if turn % 4 == 3 or not 0 < share < 1:
                share = 0.5
            point = good * (bad / good) ** share
            if whole:
                point = min(max(round(point), min(good, bad) + 1), max(good, bad) - 1)
            elif point in (good, bad) and (point := good * (bad / good) ** 0.5) in (good, bad):
                break
            good, bad = (point, bad) if self._excess(point) <= 0 else (good, point)
            turn += 1
        return good, bad

    def _verified(self, good: float, bad: float | None) -> Solution | None:
        """Return the solution at `good`, or at a value nearby where the figures differ from the excess."""
        figure = there = None
        if self._requirement.figure is not None:
            self._tell("the figure at the answer", 0.9)
            while not self._meets(good):
                if good == self._easiest:
                    return None
                bad, good = good, self._next(good, self._easiest)
            while bad is not None and (there := self._figure(bad)).upper <= self._requirement.limit:
                good, bad = bad, None if bad == self._hardest else self._next(bad, self._hardest)
            figure = self._figure(good)
            ends = (min(end, self._requirement.limit) for end in (figure.lower, figure.upper))
            figure = replace(figure, lower=next(ends), upper=next(ends))
        places = sorted(self._excesses, reverse=self._easiest > self._hardest)
        pairs = itertools.pairwise(self._excesses[place] for place in places)
        return Solution(
            parameter=self._parameter.name,
            value=good - self._shift,
            bound=figure,
            beyond=self._parameter.outside if bad is None else bad - self._shift,
            beyond_bound=None if bad is None else there,
            evaluations=len(self._excesses.keys() | self._figures.keys()),
            ends=bad is None,
            monotone=all(later >= before or before - later <= _SLACK for before, later in pairs),
        )

    def _meets(self, place: float) -> bool:
        above, limit = self._figure(place).upper, self._requirement.limit
        return above <= limit or (above <= limit * (1 + _HAIR) and self._excess(place) <= 0)

    def _figure(self, place: float) -> Bound:
        assert self._requirement.figure is not None
        if place not in self._figures:
            self._figures[place] = self._requirement.figure(self._deployment(place))
        return self._figures[place]

    def _next(self, place: float, limit: float) -> float:
        sign, step = math.copysign(1, limit - place), self._parameter.resolution
        return self._within(place + sign * (max(1, int(place * step)) if self._parameter.whole else place * step))
