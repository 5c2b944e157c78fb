"""Randomized response on numbers, after stochastic rounding to a few levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from hushuffle.mechanisms.randomizers.base import Flags, Integers, Mechanism
from hushuffle.mechanisms.randomizers.randomized_response import RandomizedResponse
from hushuffle.mechanisms.randomizers.report_law import Symmetric
from hushuffle.model import Histogram, NumberGrid
from hushuffle.model.citation import BLANKET, KAIROUZ, WARNER
from hushuffle.model.report_layout import ReportLayout
from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class RoundedResponse(Mechanism):
    """Stochastic rounding of a number between public bounds to a few levels, then randomized response on the levels.

    `encode` rounds numbers to codes 0..levels-1, which `randomize` takes. Guarantees are those of randomized response
    with k = levels. They hold also for a number between two levels: its report distribution is a mixture of those of
    the two levels.

    Args:
        levels: number of equally spaced levels, 2 to 16,384.
        epsilon: epsilon_0 in nats, > 0, `math.inf` allowed.
        low: the smallest number; public.
        high: the largest number; public.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: Balle, Bell, Gascon, Nissim 2019, section 3; docs/theory/numbers.md, Theorem 1 and Theorem 2.

    >>> import hushuffle as hs
    >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
    >>> codes = ages.encode([17.5, 80, 42], rng=hs.reproducible(1))
    >>> codes.tolist(), ages.randomize(codes, rng=hs.reproducible(2)).tolist()
    ([2, 8, 4], [2, 8, 4])
    """

    levels: int
    epsilon: float
    low: float
    high: float
    sources = (BLANKET.at("section 3"), WARNER, KAIROUZ)
    besides_epsilon = "number of levels"

    def __post_init__(self) -> None:
        grid = self.grid
        object.__setattr__(self, "levels", grid.levels)
        object.__setattr__(self, "low", grid.low)
        object.__setattr__(self, "high", grid.high)
        object.__setattr__(self, "epsilon", self.response.epsilon)

    @property
    def grid(self) -> NumberGrid:
        """The grid of levels to which numbers are rounded."""
        return NumberGrid(low=self.low, high=self.high, levels=self.levels)

    @property
    def response(self) -> RandomizedResponse:
        """The randomized response that is applied to a level."""
        return RandomizedResponse(k=self.levels, epsilon=self.epsilon)

    def encode(self, numbers: npt.ArrayLike, *, rng: Randomness) -> Integers:
        """Return the codes of numbers, shape (n,), after stochastic rounding; see `NumberGrid.encode`."""
        return self.grid.encode(numbers, rng=rng)

    @property
    def inputs(self) -> int:
        return self.levels

    @property
    def local_epsilon(self) -> float:
        return self.response.local_epsilon

    @property
    def layout(self) -> ReportLayout:
        return self.response.layout

    def law(self) -> Symmetric:
        return self.response.law()

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        return self.response.randomize(values, rng=rng)

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        return self.response.dummies(count, rng=rng)

    def counts(self, reports: Integers) -> Histogram:
        return self.response.counts(reports)

    def supports(self, reports: Integers, values: Integers) -> Flags:
        return self.response.supports(reports, values)

    def supported(self, reports: Integers) -> Integers:
        return self.response.supported(reports)

    def describe(self) -> str:
        return (
            f"every person rounds a number from {self.low:g} to {self.high:g} stochastically to one of {self.levels:,} "
            f"levels; {self.response.describe()}"
        )
