"""The one expectation behind k-ary randomized response: the positive part of a sum of fair signs."""

from __future__ import annotations

import numpy as np

from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats


def positive_part(signs: Floats, slope: float, threshold: Floats, head: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return certified lower and upper ends of E[slope R - threshold]_+, R a sum of `signs` fair signs.

    Arrays broadcast; slope > 0, threshold >= 0. `head` is slope * signs - threshold, the largest value in the
    bracket, and the sum of magnitudes it was computed from. The expectation grows with `signs` (convex order),
    falls with `threshold` and is convex in it.

    Two forms are evaluated, each with its own rounding error, and the better one is taken: from the middle
    (accurate for many signs) and from the head (accurate when slope and threshold are huge and nearly cancel).

    >>> one, two = np.array([1.0]), np.array([2.0])
    >>> [end.round(12).tolist() for end in positive_part(two, 1.0, one, (one, two + one))]
    [[0.25], [0.25]]
    """
    noise = binomial.margin(float(np.max(signs, initial=1.0))) + 16 * EPS
    lower, upper = _from_the_middle(signs, slope, threshold, noise)
    if slope * float(np.max(signs, initial=0.0)) * EPS > 1e-9 * float(np.max(head[0], initial=0.0)):
        other_lower, other_upper = _from_the_head(signs, slope, head, noise)
        lower, upper = np.maximum(lower, other_lower), np.minimum(upper, other_upper)
    return lower, upper


def _from_the_middle(signs: Floats, slope: float, threshold: Floats, noise: float) -> tuple[Floats, Floats]:
    """Sum over the positive signs A >= first: slope first P(A = first) - threshold P(A >= first)."""
    first = np.floor((signs + threshold / slope) / 2) + 1
    gain = slope * first * binomial.pmf(first, signs, 0.5)
    loss = threshold * binomial.upper_tail(first, signs, 0.5)
    error = noise * (gain + loss)
    # `first` may be rounded one too high: then a term that is zero but for rounding was left out.
    skipped = 16 * EPS * slope * signs * binomial.pmf(first - 1, signs, 0.5)
    return np.maximum(gain - loss - error, 0.0), np.maximum(gain - loss, 0.0) + error + skipped


def _from_the_head(signs: Floats, slope: float, head: tuple[Floats, Floats], noise: float) -> tuple[Floats, Floats]:
    """Sum over the negative signs B <= last: head P(B <= last) - 2 slope E[B; B <= last]."""
    most, magnitude = head
    last = np.ceil(most / (2 * slope)) - 1
    gain = np.maximum(most, 0.0) * binomial.lower_tail(last, signs, 0.5)
    loss = slope * signs * binomial.lower_tail(last - 1, np.maximum(signs - 1, 0.0), 0.5)
    # A wrong `last` leaves out a term no larger than the rounding of the head itself.
    error = noise * (gain + loss) + 16 * EPS * magnitude * binomial.lower_tail(last + 1, signs, 0.5)
    return np.maximum(gain - loss - error, 0.0), np.maximum(gain - loss, 0.0) + error
