"""Shares of geometric noise, drawn from a table of probabilities in units of 2**-128.

A geometric number is the sum of h independent numbers with the Polya distribution (negative binomial, 1/h):

    w_0 = 1,   w_(k+1) = w_k ratio (k + 1/h)/(k + 1) ,   P(k) = w_k / sum of w .

The ratio is an integer divided by 2**64. Weights are integers, each rounded down, so that the table is the same on
every machine. A random word selects the number; if the word falls on a boundary of the table, a second word decides.

Source: docs/theory/split-and-mix.md, Lemma 6 and Theorem 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.numerics.exact import up

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

SCALE: Final = 2**64
"""The geometric ratio is `ratio` / SCALE."""

_UNIT: Final = 1 << 224
"""Weight of the noise value 0 in the table, before normalization."""

_FAINT: Final = _UNIT >> 120
"""The table excludes noise values with a smaller weight."""

_FINE: Final = 1 << 128
_DIGITS: Final = Context(prec=60)

MOST: Final = 1 << 20
"""Maximum number of noise values in a table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PolyaLaw:
    """Distribution of each of `shares` independent numbers whose sum is geometric: P(sum = a) ~ (ratio/2**64)**a.

    The number k is drawn if a uniform 128-bit integer is in [below[k], below[k + 1]). `high` and `low` are the upper
    and lower 64 bits of `below`, shape (numbers,) each. `distance` is an upper bound on the total variation distance
    from the exact distribution.
    """

    shares: int
    ratio: int
    high: npt.NDArray[np.uint64]
    low: npt.NDArray[np.uint64]
    distance: float

    @classmethod
    def of(cls, *, shares: int, ratio: int) -> PolyaLaw:
        """Return the distribution; `ratio` is the geometric ratio times 2**64, and the table has at most 2**20 numbers.

        >>> law = PolyaLaw.of(shares=10, ratio=2**63)
        >>> [round(chance / 2**128, 6) for chance in law.parts[:3]], law.distance < 1e-33
        ([0.933033, 0.046652, 0.012829], True)
        """
        return _made(shares, ratio)

    @property
    def parts(self) -> tuple[int, ...]:
        """The probability of 0, 1, 2, ... in units of 2**-128: integers that sum to 2**128."""
        below = [(high << 64) + low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]
        return tuple(end - start for start, end in zip(below, [*below[1:], _FINE], strict=True))

    @property
    def chance(self) -> float:
        return self.ratio / SCALE

    @property
    def variance(self) -> float:
        """The variance of one share, before rounding."""
        return self.chance / (1 - self.chance) ** 2 / self.shares

    @property
    def ties(self) -> float:
        """The probability (12 digits) that a person's noise is 0, since two independent numbers are equal."""
        places = self.high.astype(np.float64) / SCALE
        chances = np.diff(places, append=1.0)
        return float(chances @ chances)

    def draw(self, rng: Randomness, size: int) -> npt.NDArray[np.int64]:
        words = rng.words(size)
        after = np.searchsorted(self.high, words, side="right")
        tied = np.flatnonzero(self.high[after - 1] == words)
        if tied.size:
            for place, word in zip(tied.tolist(), rng.words(size, at=tied), strict=True):
                first = int(np.searchsorted(self.high, words[place], side="left"))
                after[place] = first + np.searchsorted(self.low[first : after[place]], word, side="right")
        return after.astype(np.int64) - 1


def ratio_of(epsilon: float, distance: int) -> int:
    """Return 2**64 e**(-epsilon/distance), rounded up to an integer (at most 1 above the exact ceiling).

    >>> round(ratio_of(1.0, 10) / SCALE, 9)
    0.904837418
    """
    ratio = _DIGITS.multiply(_DIGITS.exp(_DIGITS.divide(Decimal(-epsilon), Decimal(distance))), Decimal(SCALE))
    numerator = int(ratio.to_integral_value(rounding="ROUND_CEILING", context=_DIGITS)) + 1
    if numerator >= SCALE:
        _checks.reject("epsilon", "so large that noise is finite", epsilon)
    return numerator


@lru_cache(maxsize=8)
def _made(shares: int, ratio: int) -> PolyaLaw:
    if (SCALE - ratio) * MOST < 48 * SCALE:  # the table would need more than 2**20 numbers
        _too_wide()
    weights, weight = [_UNIT], _UNIT
    while weight >= _FAINT:
        place = len(weights) - 1
        weight = weight * ratio * (place * shares + 1) // ((place + 1) * shares * SCALE)
        weights.append(weight)
        if len(weights) > MOST:
            _too_wide()
    # The last weight is left out, as is what lies beyond it: each step makes at most `ratio` of a weight.
    tail = Fraction(weights.pop() + len(weights), SCALE - ratio) * SCALE
    total, entries = sum(weights), len(weights)
    distance = (tail + entries**2) / _UNIT + Fraction(entries, _FINE)
    sums, below = 0, []
    for weight in weights:
        below.append(sums * _FINE // total)
        sums += weight
    halves = np.array([divmod(part, SCALE) for part in below], dtype=np.uint64)
    high, low = np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1])
    for array in (high, low):
        array.flags.writeable = False
    return PolyaLaw(shares=shares, ratio=ratio, high=high, low=low, distance=up(distance))


def _too_wide() -> NoReturn:
    hint = "Use fewer levels, or a larger epsilon, which needs less noise."
    _checks.reject("levels", f"so few that noise has at most {MOST:,} different values", "<more>", hint)
