"""Hockey-stick divergence at e**level between two normal distributions of variance 1 whose means differ by `shift`.

Source: Dong, Roth, Su 2022, Corollary 1 (the curve of a Gaussian mechanism).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr

from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.roots import about

_HALVINGS = 70


def excess(shift: Floats | float, level: Floats | float) -> Floats:
    """Return the integral of [P - e**level Q]_+ for normal distributions `shift` >= 0 apart; shapes broadcast.

    About ten digits are correct.

    >>> excess(1.0, np.array([0.0, 1.0])).round(6).tolist()
    [0.382925, 0.126937]
    """
    apart, height = np.broadcast_arrays(np.asarray(shift, dtype=np.float64), np.asarray(level, dtype=np.float64))
    distance = np.where(apart > 0, apart, 1.0)
    near = distance / 2 - height / distance
    first, second = log_ndtr(near), height + log_ndtr(near - distance)
    seen = (first > -740) & np.isfinite(second)
    value = np.exp(first) * -np.expm1(np.where(seen, np.minimum(second - first, 0.0), 0.0))
    value = np.where(np.isfinite(second), value, np.exp(first))
    divergence: Floats = np.where(apart > 0, value, np.maximum(-np.expm1(np.minimum(height, 700.0)), 0.0))
    return divergence


def shift_between(level: Floats | float, value: Floats | float) -> Floats:
    """Return the shift at which `excess` at `level` >= 0 equals `value` in [0, 1]: 0 for value 0, infinity for value 1.

    >>> shift_between(1.0, 0.126936).round(4).item()
    1.0
    """
    height, wanted = np.broadcast_arrays(np.asarray(level, dtype=np.float64), np.asarray(value, dtype=np.float64))
    exponent = _halved(lambda x: excess(np.exp(x), height) - wanted, np.full(wanted.shape, -60.0), 12.0)
    shift: Floats = np.where(wanted <= 0, 0.0, np.where(wanted >= 1, np.inf, np.exp(exponent)))
    return shift


def level_between(shift: float, value: float) -> float:
    """Return the level >= 0 at which `excess` at `shift` equals `value` in (0, 1); 0 if `excess` at level 0 is smaller.

    >>> round(level_between(1.0, 0.126936), 4)
    1.0
    """
    if float(excess(shift, 0.0)) <= value:
        return 0.0
    high, guess = shift**2 / 2 + 40 * shift, shift * math.sqrt(-math.log(value))
    return about(lambda x: float(excess(shift, x)), value, high=high, guess=guess, relative=1e-9, least=0.0)


def _halved(rising: Callable[[Floats], Floats], low: Floats, high: float) -> Floats:
    """Return where a rising function crosses 0 between `low` and `high`, by bisection."""
    left, right = low, np.full(low.shape, high)
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        below = rising(middle) < 0
        left, right = np.where(below, middle, left), np.where(below, right, middle)
    return np.asarray((left + right) / 2)
