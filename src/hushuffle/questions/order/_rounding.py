"""Conservative rounding, and the citation of the paper, for all modules of `questions.order`."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from hushuffle.model import Citation

_STEPS: Final = 4  # floats: math.exp and two operations after it are off by less


def up(value: Fraction) -> float:
    """Return the smallest float >= `value`, or infinity if `value` is above the largest float.

    >>> Fraction(up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def down(value: Fraction) -> float:
    """Return the largest float <= `value`, for `value` from 0 to the largest float.

    >>> Fraction(down(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def raised(value: float) -> float:
    """Return a float slightly above `value` >= 0, to allow for the rounding errors in `value`.

    >>> 0 < raised(1.0) - 1.0 < 1e-15
    True
    """
    for _ in range(_STEPS):
        value = math.nextafter(value, math.inf)
    return value


def lowered(value: float) -> float:
    """Return a float slightly below `value` >= 0 but at least 0, to allow for the rounding errors in `value`.

    >>> 0 < 1.0 - lowered(1.0) < 1e-15
    True
    """
    for _ in range(_STEPS):
        value = math.nextafter(value, 0.0)
    return value


MEEHAN: Final = Citation(
    key="meehan2022",
    text="C. Meehan, A. Roy Chowdhury, K. Chaudhuri, S. Jha, Privacy implications of shuffling, ICLR (2022)",
)
EXACT: Final = Citation(
    key="order-sensitivity",
    text="The exact sensitivity of an order",
    where="docs/theory/order.md, Theorems 2 and 4",
)
