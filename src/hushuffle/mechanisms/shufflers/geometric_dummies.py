"""A geometric number of dummies without a maximum, for guarantees with delta = 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.shufflers.dummy_law import SCALE

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

_LOG_TAIL = -95.0
"""Logarithm of the tail probability that a table omits."""


@dataclass(frozen=True, kw_only=True)
class GeometricDummies:
    """A geometric number of dummies: 0, 1, 2, ..., each number `ratio` times as likely as the previous one.

    One random word decides whether a further dummy is added, so `ratio` is rounded down to a multiple of 2**-64.

    Raises:
        InvalidInputError: `ratio` is outside (0, 1).

    Source: Murakami, Sei, Eriguchi 2025; docs/theory/histograms.md, Corollary 6.

    >>> GeometricDummies(ratio=0.5).mean
    1.0
    """

    ratio: float

    def __post_init__(self) -> None:
        chance = _checks.probability("ratio", self.ratio, low_open=True, high_open=True)
        object.__setattr__(self, "ratio", self._parts(chance) / SCALE)

    @staticmethod
    def _parts(chance: float) -> int:
        return int(Fraction(chance) * SCALE)

    fewest: ClassVar[int] = 0
    random: ClassVar[bool] = True

    @property
    def mean(self) -> float:
        """The expected number of dummies."""
        return self.ratio / (1 - self.ratio)

    @property
    def variance(self) -> float:
        """The variance of the number of dummies."""
        return self.ratio / (1 - self.ratio) ** 2

    @property
    def endless(self) -> float:
        """The ratio of successive probabilities, since the distribution has no largest number."""
        return self.ratio

    def masses(self) -> tuple[npt.NDArray[np.float64], float]:
        """Return the probabilities of 0, 1, 2, ..., and the total probability of all omitted numbers."""
        last = math.ceil(_LOG_TAIL / math.log(self.ratio))
        return (1 - self.ratio) * self.ratio ** np.arange(last + 1.0), math.exp(_LOG_TAIL)

    def reached(self, chance: float) -> int:
        """Return the smallest number d such that P(number of dummies >= d) is at most `chance`."""
        number = max(math.ceil(math.log(chance) / math.log(self.ratio)), 0)
        return number if self.ratio**number <= chance else number + 1

    def draws(self, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
        """Draw `count` numbers, shape (count,): each grows by 1 as long as a random word is below the ratio."""
        numbers, left, parts = np.zeros(count, dtype=np.int64), np.arange(count), np.uint64(self._parts(self.ratio))
        while left.size:
            left = left[rng.words(count, at=left) < parts]
            numbers[left] += 1
        return numbers
