"""Sampling from Mallows distributions centred at the identity: P(tau) proportional to e**(-theta d(tau, identity)).

Kendall: d counts inversions. Items 0, 1, 2, ... are inserted one after the other; V_i earlier items come after item i.
The V_i are independent, P(V_i = v) is proportional to q**v for v = 0..i, q = e**-theta, since inversions add up and
every permutation has one such code. The binary digits of a variable with P(v) proportional to q**v on 0..2**K - 1 are
independent, and digit k is 1 with probability 1/(1 + e**(theta 2**k)). So V_i is drawn digit by digit, for the
smallest K with 2**K > i, and redrawn until it is at most i (each draw succeeds with probability >= 1/2).

Hamming: d counts displaced items. With x = e**theta - 1, e**(theta [i fixed]) = 1 + x [i fixed]; multiplied out over i,
this gives the sampler: draw F with P(F = f) proportional to x**f / f! for f = 0..n (a Poisson distribution truncated
at n), keep F uniformly chosen items in place, and permute all other items uniformly (some may keep their places).

Accuracy. The probability of every Bernoulli trial is accurate to 2**-80 (a draw is repeated with probability <= 1/2),
and the total variation distance of F from its exact distribution is at most 2**-100. So that of the permutation is at
most n (log2(n) + 1) 2**-78, which is 1e-15 for ten million people. An inverse distribution function in floats would
have an error of about 1e-16 n per draw, in total 1e-16 n**2.

Source: docs/theory/order.md, Theorems 8 and 9; D. E. Knuth, The Art of Computer Programming 3, section 5.1.1
(inversion tables); the digits and the frozen items are argued above.
"""

from __future__ import annotations

from bisect import bisect_right
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import Integers
from hushuffle.mechanisms.shufflers._decoding import decode
from hushuffle.randomness import SCALE, Randomness

_DIGITS: Final = 80
"""Number of bits of a probability: a trial compares 16 random bits with the first 16, and if equal 64 more."""

_PRECISION: Final = 80
"""Number of decimal digits of the logarithms for thresholds and weights."""

CERTAIN: Final = 300.0
"""If theta is at least this, no item moves, except with probability n**2 e**-600."""

BLOCK: Final = 1 << 16
"""Number of items that are drawn in one step, so that they fit into the processor's cache."""

_FAINT: Final = 1 << 20
"""Smaller weights are ignored; the unit is 2**-200 of the largest weight."""


def kendall(n: int, theta: float, times: int, rng: Randomness) -> Integers:
    """Draw permutations, shape (times, n), from the Kendall-Mallows distribution about the identity; theta >= 0."""
    if theta == 0:
        return np.stack([rng.permutation(n) for _ in range(times)])
    limits = digit_limits(theta, max(n - 1, 0).bit_length())
    if not limits:
        return np.tile(np.arange(n, dtype=np.int64), (times, 1))
    # The counts of several permutations, one after the other, are those of a permutation that permutes in blocks of n.
    items = decode(inversion_counts(n, limits, rng, times).ravel()).reshape(times, n)
    return items - n * np.arange(times)[:, None]


def inversion_counts(n: int, limits: tuple[int, ...], rng: Randomness, times: int = 1) -> Integers:
    """Draw inversion counts V_0..V_{n-1}, shape (times, n); digit k is 1 with probability limits[k] / 2**80."""
    code, block = np.empty((n, times), dtype=np.int64), max(1, BLOCK // times)
    for start in range(0, n, block):
        items = np.arange(start, min(start + block, n), dtype=np.int64).repeat(times)
        drawn = _propose(items, limits, rng)
        again = np.flatnonzero(drawn > items)
        while again.size:
            redrawn = _propose(items[again], limits, rng)
            drawn[again] = redrawn
            again = again[redrawn > items[again]]
        code[start : start + block] = drawn.reshape(-1, times)
    return code.T


def _propose(items: Integers, limits: tuple[int, ...], rng: Randomness) -> Integers:
    """Draw a count from 0..2**K - 1 for each of the ascending `items`; 2**K is the next power of two above the item."""
    drawn = np.zeros(items.size, dtype=np.int64)
    for digit, limit in enumerate(limits):
        # Only the counts of items from 2**digit on have this digit.
        first = int(np.searchsorted(items, 1 << digit))
        if first == items.size:
            break
        drawn[first:] |= _coins(limit, items.size - first, rng).astype(np.int64) << digit
    return drawn


def _coins(limit: int, size: int, rng: Randomness) -> npt.NDArray[np.bool_]:
    """Draw `size` Bernoulli trials, each True with probability limit / 2**80 exactly (limit <= 2**79)."""
    high, low = divmod(limit, SCALE)
    bits = rng.words(-(-size // 4)).view(np.uint16)[:size]
    result: npt.NDArray[np.bool_] = bits < np.uint16(high)
    open_ = np.flatnonzero(bits == np.uint16(high))
    if open_.size:  # in most calls there are none
        result[open_] = rng.words(open_.size) < np.uint64(low)
    return result


@lru_cache(maxsize=64)
def digit_limits(theta: float, digits: int) -> tuple[int, ...]:
    """Return floor(2**80 / (1 + e**(theta 2**k))) for k = 0..digits-1, without zeros at the end."""
    limits: list[int] = []
    with localcontext(_context(theta)):
        for digit in range(digits):
            exponent = Decimal(theta) * 2**digit
            limit = 0 if exponent > _DIGITS else int(Decimal(2**_DIGITS) / (1 + exponent.exp()))
            if limit == 0:
                break
            limits.append(limit)
    return tuple(limits)


def hamming(n: int, theta: float, times: int, rng: Randomness) -> Integers:
    """Draw permutations, shape (times, n), from the Hamming-Mallows distribution about the identity; theta >= 0."""
    result = np.tile(np.arange(n, dtype=np.int64), (times, 1))
    for row in result:
        order = rng.permutation(n)
        free = order[: n - frozen(n, theta, rng)]
        # The first items of a uniform permutation are a uniform set in uniform order.
        row[np.sort(free)] = free
    return result


def frozen(n: int, theta: float, rng: Randomness) -> int:
    """Draw the number of items that are kept in place, 0..n."""
    if theta >= CERTAIN:
        return n
    first, cumulative = frozen_law(n, theta)
    words = [int(word) for word in rng.words(4)]
    ticket = sum(word << (64 * place) for place, word in enumerate(words)) * cumulative[-1] >> 256
    return first + bisect_right(cumulative, ticket)


@lru_cache(maxsize=16)
def frozen_law(n: int, theta: float) -> tuple[int, tuple[int, ...]]:
    """Return the distribution of F, the items kept in place: P(F <= first + j) = cumulative[j] / cumulative[-1].

    Weights are proportional to x**f / f!, x = e**theta - 1. Rounding and omitted weights change the distribution by at
    most 2**-160 in total (n <= 10**9; theta below 300).

    >>> first, cumulative = frozen_law(2, 1.0986122886681098)  # x = 2: weights 1, 2, 2
    >>> first, [round(weight / cumulative[-1], 12) for weight in cumulative]
    (0, [0.2, 0.6, 1.0])
    """
    with localcontext(_context(theta)):
        x = Decimal(theta).exp() - 1
        mode = n if x >= n else int(x)
        # Fixed point with at least 200 bits of x, however small it is.
        places = max(0, 200 - 4 * x.adjusted()) if x else 0
        scaled = int(x * 2**places)
    above, weight, f = [1 << 200], 1 << 200, mode
    while f < n and weight >= _FAINT:
        f += 1
        weight = weight * scaled // (f << places)
        above.append(weight)
    below, weight, f = [], 1 << 200, mode
    while f > 0 and weight >= _FAINT:
        weight = (weight * f << places) // scaled
        below.append(weight)
        f -= 1
    return f, tuple(accumulate([*reversed(below), *above]))


def _context(theta: float) -> Context:
    """Return a context with enough digits for e**theta - 1."""
    lost = max(0, -Decimal(theta).adjusted()) if theta else 0
    return Context(prec=_PRECISION + lost, Emin=-(10**15), Emax=10**15)
