"""The one expectation behind k-ary randomized response: the positive part of a sum of fair signs."""

from __future__ import annotations

import numpy as np

from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats


def positive_part(signs: Floats, slope: float, threshold: Floats) -> tuple[Floats, Floats]:
    """Return E[slope R - threshold]_+ for R a sum of `signs` fair signs, and a bound of its rounding error.

    `signs` and `threshold` broadcast; slope > 0, threshold >= 0. Grows with `signs` (convex order),
    falls with `threshold` and is convex in it.

    >>> positive_part(np.array([2.0]), 1.0, np.array([1.0]))[0].tolist()
    [0.25]
    """
    first = np.floor((signs + threshold / slope) / 2) + 1
    gain = slope * first * binomial.pmf(first, signs, 0.5)
    loss = threshold * binomial.upper_tail(first, signs, 0.5)
    error = (binomial.margin(float(np.max(signs, initial=1.0))) + 16 * EPS) * (gain + loss)
    return np.maximum(gain - loss, 0.0), error
