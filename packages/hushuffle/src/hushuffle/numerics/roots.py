"""Find where a decreasing function crosses a level, with function values on both sides of the crossing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from hushuffle.errors import NumericalError

_TOLERANCE = 1e-8
_FLOOR = 1e-300
_STRIDES = [_TOLERANCE * 4**step for step in range(30)]


def crossing(function: Callable[[float], float], level: float, *, high: float, guess: float) -> tuple[float, float]:
    """Return (x, y) with function(x) > level >= function(y), x < y within 1e-6 relative, 0 <= x < y <= high.

    The function must be non-increasing and above `level` at 0. The caller must know that it is at most `level` at
    `high`, where it is not evaluated. Rounding errors do no harm, since the function was evaluated at x and y.

    >>> x, y = crossing(lambda t: 1 - t, 0.25, high=1.0, guess=0.1)
    >>> x < 0.75 <= y, round(y, 6)
    (True, 0.75)
    """
    root, left = _root(function, level, high=high, guess=guess)
    return _below(function, level, root, left), _above(function, level, root, high)


def last_above(function: Callable[[float], float], level: float, *, high: float, guess: float) -> float:
    """Return the x of `crossing`, at which the function was evaluated."""
    return _below(function, level, *_root(function, level, high=high, guess=guess))


def first_below(function: Callable[[float], float], level: float, *, high: float, guess: float) -> float:
    """Return the y of `crossing`, at which the function was evaluated unless y is `high`."""
    return _above(function, level, _root(function, level, high=high, guess=guess)[0], high)


def _root(function: Callable[[float], float], level: float, *, high: float, guess: float) -> tuple[float, float]:
    """Return approximately where the function crosses the level, and a point below the crossing."""
    if level < _FLOOR:
        message = f"The target {level!r} is too small for floats. Choose 0, or at least {_FLOOR:g}."
        raise NumericalError(message)

    @cache  # the bounds of a bracket are evaluated twice
    def excess(x: float) -> float:
        value = _FLOOR if x >= high else max(function(x), _FLOOR)
        return math.log(value) - math.log(level)

    left, right = _surround(excess, high, min(max(guess, 1e-12), high))
    root = brent(excess, left, right, absolute=1e-15, relative=_TOLERANCE) if left > 0 else _bisect(excess, right)
    return root, left


def smallest_above(upper: Callable[[float], float], delta: float, *, high: float, guess: float) -> float:
    """Return approximately the smallest epsilon with upper(epsilon) <= delta; `high` must satisfy this."""
    return 0.0 if upper(0.0) <= delta else first_below(upper, delta, high=high, guess=guess)


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


def brent(
    function: Callable[[float], float], left: float, right: float, *, absolute: float, relative: float, most: int = 100
) -> float:
    """Return a root between two points at which the function has opposite signs, or is 0.

    It evaluates the same points as `scipy.optimize.brentq`, whose import takes a quarter of a second.

    Source: R. P. Brent, Algorithms for minimization without derivatives (1973), chapter 4.

    >>> round(brent(lambda x: x * x - 2, 0.0, 2.0, absolute=1e-15, relative=1e-12), 9)
    1.414213562
    """
    before, here, opposite = left, right, left
    at_before, at_here = function(before), function(here)
    if at_before == 0:
        return before
    at_opposite, step, last = at_before, 0.0, 0.0
    for _ in range(most):
        if (at_before < 0) != (at_here < 0):
            opposite, at_opposite = before, at_before
            last = step = here - before
        if abs(at_opposite) < abs(at_here):
            before, here, opposite = here, opposite, here
            at_before, at_here, at_opposite = at_here, at_opposite, at_here
        tolerance, half = (absolute + relative * abs(here)) / 2, (opposite - here) / 2
        if at_here == 0 or abs(half) < tolerance:
            break
        tried = math.inf
        if abs(last) > tolerance and abs(at_here) < abs(at_before):
            if before == opposite:
                tried = -at_here * (here - before) / (at_here - at_before)
            else:
                rise = (at_before - at_here) / (before - here)
                across = (at_opposite - at_here) / (opposite - here)
                numerator = at_opposite * across - at_before * rise
                tried = -at_here * numerator / (across * rise * (at_opposite - at_before))
        short = 2 * abs(tried) < min(abs(last), 3 * abs(half) - tolerance)
        last, step = (step, tried) if short else (half, half)
        before, at_before = here, at_here
        here += step if abs(step) > tolerance else math.copysign(tolerance, half)
        at_here = function(here)
    return here


def _surround(excess: Callable[[float], float], high: float, guess: float) -> tuple[float, float]:
    """Return points around the crossing: steps of growing size from the guess."""
    stride, left, right = 1.02, guess, guess
    while right < high and excess(right) > 0:
        left, right, stride = right, min(right * stride, high), min(stride**2, 16.0)
    if left < right:
        return left, right
    stride = 1.02
    while excess(left) <= 0:
        left, right, stride = left / stride, left, min(stride**2, 16.0)
        if left < 1e-15 * high:
            return 0.0, right
    return left, right


def _bisect(excess: Callable[[float], float], right: float) -> float:
    """Return a crossing in (0, right] by bisection, for a crossing too close to 0 for other methods."""
    left = 0.0
    while right > 1e-18 and right - left > _TOLERANCE * right:
        middle = (left + right) / 2
        left, right = (middle, right) if excess(middle) > 0 else (left, middle)
    return right


def _below(function: Callable[[float], float], level: float, root: float, left: float) -> float:
    """Return a point at or below the root where the function is above the level; at `left` it is known to be."""
    return _walk(lambda x: function(x) > level, level, root, [max(root * (1 - stride), left) for stride in _STRIDES])


def _above(function: Callable[[float], float], level: float, root: float, high: float) -> float:
    """Return a point at or above the root where the function is at most the level; at `high` it is known to be."""
    points = [min(root * (1 + stride), high) for stride in _STRIDES]
    return _walk(lambda x: x >= high or function(x) <= level, level, root, points)


def _walk(arrived: Callable[[float], bool], level: float, root: float, points: list[float]) -> float:
    crossing = next((x for x in points if arrived(x)), None)
    if crossing is None:
        message = (
            f"No figure near {root:g} is certified for the target {level:g}, because of rounding errors. "
            "Choose a larger delta, or a smaller n."
        )
        raise NumericalError(message)
    return crossing
