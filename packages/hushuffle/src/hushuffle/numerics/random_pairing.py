"""Random bipartite pairings: a bound on the number of connected components.

There are n nodes on the left and n on the right, with m places each. A uniform permutation joins each of the nm
places on the left to a place on the right. With c connected components and q colours, q**c colourings have one colour
in each component, and each colour has equally many nodes on the left and on the right. Summing over these numbers k,

    E q**c = sum over k_1 + ... + k_q = n of (n! / prod k_i!)**2 prod (m k_i)! / (nm)! .

With t_k = (mk)!/k!**2 this is the coefficient of z**n in (sum t_k z**k)**q, over t_n. Let r nodes have other colours
than a most frequent one. r = 1 and r = 2 are counted; otherwise for any x > 0

    terms of r <= (t_(n-r)/t_n) x**-r (1 + sum of t_k x**k over 1 <= k <= min(r, n-r))**(q-1) .

t_k x**k and t_(n-r) x**-r are log-convex in k and r, so that over a range none is above the larger of its two ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import gammaln

from hushuffle.numerics.binomial import EPS, Floats

_LISTED: Final = 32
"""This many terms are summed one by one, further terms over ranges that double."""

_TRIED: Final = 48
"""Number of values of x that are tried for each range; the bound holds for any x."""

_ROUNDING: Final = 4e-13
"""Bound on the relative error of a sum of a few logarithms of factorials."""

_LARGEST: Final = 600.0
"""A bound above e**600 is replaced by infinity."""


def colourings(nodes: int, places: int, colours: int, *, near: bool = False) -> float:
    """Return an upper bound of E[q**(c - 1)] - 1, where c is the number of connected components of a random pairing.

    n = `nodes` >= 2, m = `places` >= 3, q = `colours` >= 2. With `near`, each colouring has weight (r/n)**2, where r
    nodes of a side do not have the most frequent colour.

    Source: docs/theory/split-and-mix.md, Lemma 2 and Lemma 3.

    >>> round(colourings(100, 8, 2**20) / 1e-10, 4), round(colourings(100, 8, 2**20, near=True) / 1e-14, 4)
    (26.1005, 26.1005)
    """
    first = Fraction(colours - 1, math.comb(places * nodes, places)) * (1 if near else nodes**2)
    if nodes == 2:
        return _up(first)
    pairs = Fraction(2 * (colours - 1) * (colours - 2), math.comb(2 * places, places)) + (colours - 1)
    second = pairs * math.comb(nodes, 2) ** 2 / math.comb(places * nodes, 2 * places)
    listed = first + second * (Fraction(4, nodes**2) if near else 1)
    return _up(listed) + sum(_range(nodes, places, colours, *ends, near=near) for ends in _ranges(nodes))


def _ranges(nodes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of r that cover 3 to n - 1, doubling from both sides."""
    middle = nodes // 2
    yield from _doubling(3, middle)
    for least, most in _doubling(1, nodes - max(middle, 2) - 1):
        yield nodes - most, nodes - least


def _doubling(first: int, last: int) -> Iterator[tuple[int, int]]:
    start = first
    while start <= last:
        end = start if start < _LISTED else min(2 * start, last)
        yield start, end
        start = end + 1


def _range(nodes: int, places: int, colours: int, least: int, most: int, *, near: bool) -> float:
    """Return an upper bound on the terms of r from `least` to `most`, with the best x tried."""
    most_alike = min(most, nodes - least)
    whole, single = _log_ways(np.array([nodes, 1.0]), places).tolist()
    left = _log_ways(np.array([nodes - least, nodes - most], dtype=np.float64), places) - whole
    steps = np.array([least, most], dtype=np.float64)
    high = math.log(most + 1) + 1 - single - math.log(colours - 1)
    low = min(float((left / steps).min()), high - 1)
    logs = np.linspace(low, high, _TRIED)
    kinds = np.array(list(_doubling(1, most_alike)), dtype=np.float64)
    ends = _log_ways(kinds, places)[..., None] + kinds[..., None] * logs
    pieces = np.log(kinds[:, 1] - kinds[:, 0] + 1)[:, None] + ends.max(axis=1)
    others = np.exp(np.minimum(np.logaddexp.reduce(pieces, axis=0) + math.log(colours - 1), _LARGEST))
    own = (left[:, None] - steps[:, None] * logs).max(axis=0) + math.log(most - least + 1)
    weight = 2 * math.log(most / nodes) if near else 0.0
    margin = _ROUNDING * (float(gammaln(places * nodes + 1.0)) + colours.bit_length())
    best = float((own + others).min()) + weight + margin
    return math.exp(best) if best < _LARGEST else math.inf


def _log_ways(sizes: Floats, places: int) -> Floats:
    """Return log t_k = log((mk)!/k!**2)."""
    logs: Floats = gammaln(places * sizes + 1) - 2 * gammaln(sizes + 1)
    return logs


def _up(value: Fraction) -> float:
    """Return a float that is at least `value`, with a margin for rounding."""
    if value >= Fraction(10) ** 300:
        return math.inf
    return max(float(value) * (1 + 4 * EPS), 5e-324)
