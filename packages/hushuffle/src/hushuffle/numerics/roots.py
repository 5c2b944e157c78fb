"""Find where a decreasing function crosses a level, with function values on both sides of the crossing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from hushuffle.errors import NumericalError

EDGE: Final = 1e-8
"""Relative distance of the evaluated points from a crossing."""

CLOSER: Final = 0.4
"""Part of the relative distance from a crossing that is tried first if the slope is known."""

_FLOOR: Final = 1e-300
_MOST: Final = 200
_PATIENCE: Final = 10
"""Number of evaluations after which every second point halves the interval that contains the crossing."""


def last_above(
    function: Callable[[float], float],
    level: float,
    *,
    high: float,
    guess: float,
    relative: float = EDGE,
    slope: float = 0.0,
) -> float:
    """Return an x with function(x) > level, within `relative` of where the function crosses the level, or 0.

    The function must be non-increasing. The caller must know that it is above `level` at 0 and at most `level` at
    `high`, where it is not evaluated. Rounding errors do no harm, since the function was evaluated at x. With a
    `slope`, the approximate one of sqrt(-ln(function)) near the crossing, fewer evaluations suffice.

    >>> round(last_above(lambda t: 1 - t, 0.25, high=1.0, guess=0.1), 6)
    0.75
    """
    return _edge(function, level, high=high, guess=guess, side=0, relative=relative, slope=slope)


def first_below(
    function: Callable[[float], float],
    level: float,
    *,
    high: float,
    guess: float,
    relative: float = EDGE,
    slope: float = 0.0,
) -> float:
    """Return a y with function(y) <= level, near the crossing as in `last_above`; y is `high` or was evaluated."""
    return _edge(function, level, high=high, guess=guess, side=1, relative=relative, slope=slope)


def about(
    function: Callable[[float], float], level: float, *, high: float, guess: float, relative: float, least: float
) -> float:
    """Return the predicted crossing, to about `relative`; the function need not have been evaluated there.

    The result is at least `least`, whether there is a crossing above it or not.
    """
    return _edge(function, level, high=high, guess=max(guess, least), side=-1, relative=relative, least=least)


def _edge(
    function: Callable[[float], float],
    level: float,
    *,
    high: float,
    guess: float,
    side: int,
    relative: float,
    least: float = 0.0,
    slope: float = 0.0,
) -> float:
    """Return the point next to the crossing at which the function is above the level (side 0), or not (side 1).

    The depth sqrt(-ln(function)) of a tail is nearly linear, so a few points predict the crossing. The search ends when
    the prediction that includes the last point agrees with it. Side -1 is the prediction itself.
    """
    if level < _FLOOR:
        message = f"The target {level!r} is too small for floats. Choose 0, or at least {_FLOOR:g}."
        raise NumericalError(message)
    ends, points, x = [0.0, high], list[tuple[float, float]](), min(max(guess, 1e-12), high)
    for turn in range(_MOST):
        value = 0.0 if x >= high else function(x)
        ends[value <= level] = x
        points = [*points[-2:], (x, _depth(value))]
        root, error = _predicted(points, _depth(level), side, slope)
        near = error <= relative * root / 4
        if side < 0 and (near or ends[1] <= least):
            return min(max(root, least), high) if near else least
        if ends[1] - ends[0] <= relative * ends[1]:
            break
        if near and abs(ends[side] - root) <= 2 * relative * root:
            break
        x = root * (1 + (2 * side - 1) * relative * (CLOSER if slope else float(near)))
        if not ends[0] < x < ends[1] or (turn > _PATIENCE and turn % 2):
            left, right = ends
            x = math.sqrt(left * right) if left > 0 and right > 2 * left else (left + right) / 2
            if left == 0:
                x = max(right / 16, least)
        if x in ends:
            break
    return ends[side]


def _depth(value: float) -> float:
    """Return a decreasing function of a positive value, nearly linear along the tail of a normal distribution."""
    logarithm = math.log(max(value, _FLOOR))
    return math.sqrt(-logarithm) if logarithm < 0 else -logarithm


def _predicted(points: list[tuple[float, float]], depth: float, side: int, slope: float) -> tuple[float, float]:
    """Return where up to three points (x, depth) predict the depth, and the approximate error of the prediction."""
    last, at_last = points[-1]
    if len(points) == 1 and slope > 0:
        line = last + (depth - at_last) / slope
        return line, abs(line - last) / 10
    if len(points) == 1:
        share = depth / at_last if depth > 0 and at_last > 0 else (2.0 if depth > at_last else 0.5)
        return last * min(max(share, 0.25), 4.0), abs(share - 1) * last if side < 0 else math.inf
    before, at_before = points[-2]
    if at_last == at_before:
        return math.nan, math.inf
    line = last + (depth - at_last) * (before - last) / (at_before - at_last)
    if len(points) == 2:
        return line, abs(line - last) * abs(line - before) / abs(line) if line else math.inf
    first, at_first = points[0]
    if at_first in (at_last, at_before):
        return line, math.inf
    slope = (before - last) / (at_before - at_last)
    bend = ((first - before) / (at_first - at_before) - slope) / (at_first - at_last)
    curved = line + bend * (depth - at_last) * (depth - at_before)
    return curved, abs(curved - line) * abs(curved - first) / abs(curved) if curved else math.inf


def halved(holds: Callable[[float], bool], *, good: float, bad: float, times: int = 40) -> float:
    """Return a point at which `holds` is true, after `times` steps of bisection from `good` (true) to `bad`."""
    for _ in range(times):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def farthest(holds: Callable[[int], bool], *, good: int, bad: int) -> int:
    """Return the integer nearest to `bad` for which `holds` is true; it is true at `good` and false at `bad`.

    >>> farthest(lambda n: n * n >= 10, good=100, bad=0)
    4
    """
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
