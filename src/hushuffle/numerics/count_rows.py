"""A binomial count in rows: one value each while there are few, neighbours together beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import Floats

LOG_TAIL: Final = -95.0
"""Natural logarithm of what a window leaves outside at each end: e**-95 < 1e-41."""

_MOST: Final = 1500
"""How many values of a count are summed one by one; beyond, neighbours share a row."""

_FINE: Final = 3e-5
"""Rows narrower than this share of the count would gain nothing that a figure shows."""


def row_step(low: int, high: int) -> int:
    """Return how many neighbouring integers of low..high share a row.

    >>> row_step(0, 1000), row_step(170_000_000, 170_200_000)
    (1, 5100)
    """
    return max(1, -(-(high - low + 1) // _MOST), int(_FINE * low))


@dataclass(frozen=True, kw_only=True, eq=False)
class CountRows:
    """Bin(n, p) from `first[i]` to `last[i]` with probability `mass[i]`, known up to `doubt[i]`, shapes (rows,).

    What lies outside the window has probability at most e**-95 on each side.
    """

    first: Floats
    last: Floats
    mass: Floats
    doubt: Floats

    @classmethod
    def of(cls, n: int, chance: float, *, step: int | None = None) -> CountRows:
        """Return the rows; `step` integers share one, by default as many as keep the number of rows small.

        >>> CountRows.of(2, 0.5).mass.round(12).tolist()
        [0.25, 0.5, 0.25]
        """
        low, high = binomial.window(n, chance, LOG_TAIL)
        width = row_step(low, high) if step is None else step
        first = np.arange(low, high + 1, width, dtype=np.float64)
        last = np.minimum(first + width - 1, high)
        if width == 1:
            mass = binomial.pmf(first, n, chance)
            return cls(first=first, last=last, mass=mass, doubt=binomial.margin(n) * mass)
        # Differences of the tail on the row's own side of the mean, so that light rows keep their accuracy.
        below = binomial.lower_tail(last, n, chance), binomial.lower_tail(first - 1, n, chance)
        above = binomial.upper_tail(first, n, chance), binomial.upper_tail(last + 1, n, chance)
        left = last < n * chance
        mass = np.where(left, below[0] - below[1], above[0] - above[1])
        doubt = binomial.margin(n) * np.where(left, below[0] + below[1], above[0] + above[1])
        return cls(first=first, last=last, mass=np.maximum(mass, 0.0), doubt=doubt)

    @property
    def at_most(self) -> Floats:
        """Return the masses rounded up."""
        return self.mass + self.doubt

    @property
    def at_least(self) -> Floats:
        """Return the masses rounded down."""
        return np.maximum(self.mass - self.doubt, 0.0)
