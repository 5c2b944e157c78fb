"""Where a falling function crosses a level, with both sides certified by evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from hushuffle.errors import NumericalError

_TOLERANCE = 1e-9
_FLOOR = 1e-300


def crossing(function: Callable[[float], float], level: float, *, high: float, guess: float) -> tuple[float, float]:
    """Return (x, y) with function(x) > level >= function(y), x < y within 1e-8 relative, 0 <= x < y <= high.

    The function must fall (weakly) from above `level` at 0, and be known to be at most `level` at `high`
    (where it is not evaluated). Small wiggles of rounding are tolerated: both ends returned were evaluated.

    Raises:
        NumericalError: no such pair of points was found.

    >>> x, y = crossing(lambda t: 1 - t, 0.25, high=1.0, guess=0.1)
    >>> x < 0.75 <= y, round(y, 6)
    (True, 0.75)
    """

    def excess(x: float) -> float:
        value = _FLOOR if x >= high else max(function(x), _FLOOR)
        return math.log(value) - math.log(level)

    left, right = _surround(excess, high, min(max(guess, 1e-12), high))
    root = float(brentq(excess, left, right, xtol=1e-15, rtol=_TOLERANCE)) if left > 0 else _bisect(excess, right)
    return _step(function, level, root, left, high, -1), _step(function, level, root, right, high, +1)


def _surround(excess: Callable[[float], float], high: float, guess: float) -> tuple[float, float]:
    """Widen by factors of 2 from the guess until the crossing lies between."""
    left = right = guess
    while excess(right) > 0:
        left, right = right, 2 * right
        if right >= high:
            return left, high
    if left < right:
        return left, right
    while excess(left) <= 0:
        right, left = left, left / 2
        if left < 1e-15 * high:
            return 0.0, right
    return left, right


def _bisect(excess: Callable[[float], float], right: float) -> float:
    """Return a crossing in (0, right]: so close to 0 that halving is all that is left."""
    left = 0.0
    while right > 1e-18 and right - left > _TOLERANCE * right:
        middle = (left + right) / 2
        left, right = (middle, right) if excess(middle) > 0 else (left, middle)
    return right


def _step(
    function: Callable[[float], float], level: float, root: float, limit: float, high: float, direction: int
) -> float:
    """Walk from the root to its side until the function is on the right side of the level."""
    stride = _TOLERANCE
    for _ in range(40):
        x = root * (1 + direction * stride)
        x = max(x, limit) if direction < 0 else min(x, limit)
        if direction > 0 and x >= high:
            return high
        value = function(x)
        if (value > level) if direction < 0 else (value <= level):
            return x
        stride *= 4
    message = (
        f"no certified crossing of {level:g} near {root:g}: rounding hides it. "
        "Ask for a larger delta, or for a smaller n."
    )
    raise NumericalError(message)
