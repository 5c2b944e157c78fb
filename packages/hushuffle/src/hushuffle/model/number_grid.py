"""`NumberGrid`: equally spaced levels between public bounds, and the rounding of numbers to levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

PARTS: Final = 1 << 16
"""Number of positions between two levels: a number moves to the nearest position before stochastic rounding."""

LARGEST: Final = 1 << 14
"""The largest number of levels for which positions fit into 31 bits."""


class Coins(Protocol):
    """The randomness of stochastic rounding: `secure()`, `reproducible(seed)` or `keyed(...)`."""

    def integers(self, high: int, size: int, /) -> npt.NDArray[np.int64]:
        """Return uniform integers from 0 to high - 1, shape (size,)."""


@dataclass(frozen=True, kw_only=True)
class NumberGrid(_checks.ByName):
    """`levels` equally spaced numbers from `low` to `high`; level number i has code i.

    Stochastic rounding moves a number between two levels to the upper level with a probability that equals its distance
    from the lower level, in steps. So the expected level is the number (to 1/131,072 of a step). Numbers outside the
    bounds are replaced by the nearer bound. The bounds must be public: bounds computed from the answers would reveal
    the smallest and the largest answer.

    Args:
        low: the smallest number, in any unit.
        high: the largest number, > low, in the same unit.
        levels: 2 to 16,384.

    Raises:
        InvalidInputError: an argument is out of range, or floats cannot distinguish the levels.

    Source: Balle, Bell, Gascon, Nissim 2019, section 3; docs/theory/numbers.md, Theorem 1.

    >>> import hushuffle as hs
    >>> grid = hs.NumberGrid(low=0, high=100, levels=5)
    >>> grid.points.tolist(), grid.encode([0, 60, 60, 250], rng=hs.reproducible(1)).tolist()
    ([0.0, 25.0, 50.0, 75.0, 100.0], [0, 2, 2, 4])
    """

    low: float
    high: float
    levels: int

    def __post_init__(self) -> None:
        low, high = (_checks.finite(name, getattr(self, name)) for name in ("low", "high"))
        levels = _checks.integer("levels", self.levels, low=2, high=LARGEST)
        if not (low < high and math.isfinite(high - low)):
            _checks.reject("high", f"above low = {low:g}, with a finite difference", f"{high:g}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "levels", levels)
        if not bool(np.all(np.diff(self.points) > 0)):
            _checks.reject("levels", "so small that floats between low and high can represent them", levels)

    @property
    def step(self) -> float:
        """The distance between neighbouring levels."""
        return (self.high - self.low) / (self.levels - 1)

    @property
    def points(self) -> npt.NDArray[np.float64]:
        """The levels, shape (levels,)."""
        return np.linspace(self.low, self.high, self.levels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels as text, one label for each level."""
        short = tuple(f"{point:.10g}" for point in self.points)
        return short if len(set(short)) == self.levels else tuple(repr(float(point)) for point in self.points)

    @property
    def top(self) -> int:
        """The position (see `positions`) of `high`; the position of `low` is 0."""
        return (self.levels - 1) * PARTS

    def encode(self, numbers: npt.ArrayLike, *, rng: Coins) -> npt.NDArray[np.int64]:
        """Return the codes 0..levels-1 of numbers, shape (n,), by stochastic rounding.

        With per-record randomness (`hs.keyed`), every call rounds the number of a record in the same way. Pass the same
        `rng` to `randomize` afterwards, which uses the random bits after those of the rounding.

        Raises:
            InvalidInputError: `numbers` is not a one-dimensional array of numbers, or a number is not finite.
        """
        return self.rounded(self.positions(numbers), rng=rng)

    def positions(self, numbers: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return positions on a finer grid, 0..`top`, shape (n,); `top` + 1: below `low`, `top` + 2: above `high`."""
        try:
            array = np.asarray(numbers, dtype=np.float64)
        except OverflowError:
            _checks.reject("numbers", "finite numbers that floats can hold", "<a larger one>")
        except (TypeError, ValueError):
            _checks.reject("numbers", "a one-dimensional array of numbers", "<something else>")
        if array.ndim != 1:
            _checks.reject("numbers", "a one-dimensional array of numbers", f"<shape {array.shape}>")
        lost = int(np.count_nonzero(~np.isfinite(array)))
        if lost:
            _checks.reject("numbers", "finite numbers", f"<{lost:,} of {array.size:,} are not>")
        inside = (np.clip(array, self.low, self.high) - self.low) / (self.high - self.low)
        places = np.rint(inside * self.top).astype(np.int64)
        places[array < self.low] = self.top + 1
        places[array > self.high] = self.top + 2
        return places

    def outside(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return, for each position, whether its number was outside the bounds, shape (n,)."""
        return positions > self.top

    def inside(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return positions of any shape; those outside the bounds are replaced by the position of the nearer bound."""
        bounds = np.where(positions == self.top + 1, 0, self.top)
        return np.where(self.outside(positions), bounds, positions)

    def rounded(self, positions: npt.NDArray[np.int64], *, rng: Coins) -> npt.NDArray[np.int64]:
        """Return the codes of the levels to which positions, shape (n,), are stochastically rounded."""
        inside = self.inside(positions)
        upwards = rng.integers(PARTS, inside.size) < inside % PARTS
        return inside // PARTS + upwards
