"""One column of secure sums with discrete Laplace noise of the servers: its privacy curve in one order of datasets.

X is the sum of the others' bits, of the servers' fair random bits and of the noise, with probabilities f. Each part has
a log-concave distribution, so X has one. With the target's bit as in `Column`, A = p - e**eps q and B = e**eps - 1,

    HS_eps = max over u of  A f(u) - B P(X > u).

A geometric number is added by a recursion with positive terms, so probabilities have small relative errors. The noise
alone bounds ratios of neighbouring probabilities by 1/ratio, so epsilon is finite at delta = 0.

Upper bound. In each block y .. y + b of the number of others with the column's value, the bits of b people are
revealed. A large crowd is cut to `_CROWD` people, and the curve without noise is an upper bound too.

Source: docs/theory/secure-sums.md, Theorem 4 and Theorem 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.curves.base import PrivacyCurve, UpperCurve
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, Floats, margin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hushuffle.mechanisms.shufflers import LaplaceNoise

_CROWD: Final = 1_000_000
"""Largest number of people whose bits are added up term by term."""

_WORK, _CELLS = 3e9, 4e6
"""Numbers of multiplications and of cells for the tables of one column, from which the number of blocks follows."""

_BLOCKS: Final = (8, 200)
"""Smallest and largest number of blocks."""

_HAIR: Final = 1e-8
"""Relative margin, larger than the effect of rounding the probabilities of a bit."""

_LOST: Final = 8 * math.exp(LOG_TAIL)
"""Mass that a table omits: two tails of each of three binomials, and of the noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyColumn(UpperCurve):
    """Privacy curve of a column with `noise` added to its sum; `quiet` is the curve without noise.

    >>> from hushuffle.curves.laws.secure_sums import Column
    >>> from hushuffle.mechanisms.shufflers import LaplaceNoise
    >>> column = {"truth": Fraction(3, 4), "lie": Fraction(1, 4), "n": 1000}
    >>> quiet = Column(**column)
    >>> column = NoisyColumn(**column, noise=LaplaceNoise(ratio=0.9), quiet=quiet)
    >>> round(column.pure, 4), round(quiet.upper(0.03), 5), round(column.upper(0.03), 5)
    (0.0526, 0.0044, 0.00168)
    """

    truth: Fraction
    lie: Fraction
    n: int
    noise: LaplaceNoise
    quiet: PrivacyCurve
    coins: int = 0
    proof = "every composition of the other people in blocks, term by term"
    tables: dict[tuple[int, int], tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @property
    def pure(self) -> float:
        gap, more = float(self.truth - self.lie), (1 - self.noise.ratio) / self.noise.ratio
        return math.log1p(gap * more / (1 + float(self.lie) * more)) * (1 + 16 * EPS / (1 - self.noise.ratio))

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        n = min(self.n, _CROWD)
        width = 14 * math.sqrt(n + self.coins)
        blocks = min(_WORK / width**2, _CELLS / (width + 2 * self.noise.reach(LOG_TAIL)))
        block = -(-n // int(min(max(blocks, _BLOCKS[0]), _BLOCKS[1])))
        starts = ((ones, max(n - ones - block, 0)) for ones in range(0, n, block))
        return min(self._divergence(starts, epsilon), self.quiet.upper(epsilon))

    def _divergence(self, others: Iterable[tuple[int, int]], epsilon: float) -> float:
        """Upper bound on the divergence if `others` have the column's value, and do not have it."""
        high, gap, b_lie = 0.0, float(self.truth - self.lie), math.expm1(epsilon) * float(self.lie)
        a, b = gap - b_lie + 4 * EPS * (gap + b_lie), math.expm1(epsilon)
        for ones, zeros in others:
            if (ones, zeros) not in self.tables:
                self.tables[ones, zeros] = self._table(ones, zeros)
            at, above = self.tables[ones, zeros]
            doubt = 4 * (margin(ones) + margin(zeros) + margin(self.coins)) + self.noise.doubt(2 * at.size) + _HAIR
            high = max(high, float((a * (1 + doubt) * at - b * (1 - doubt) * above).max()) + a * _LOST)
        return high

    def _table(self, ones: int, zeros: int) -> tuple[Floats, Floats]:
        """Probabilities of X at the sums from its mode on, in a window, and of larger sums; shape (sums,) each."""
        groups = (ones, float(self.truth)), (zeros, float(self.lie)), (self.coins, 0.5)
        at = self.noise.added(binomial.window_sum(groups, LOG_TAIL)[0], LOG_TAIL)
        at = at[max(int(at.argmax()) - 1, 0) :]  # below the mode the gain rises with u
        return at, np.append(at[:0:-1].cumsum()[::-1], 0.0)
