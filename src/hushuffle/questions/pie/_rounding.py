"""From 120 digits to floats, in the direction that is safe."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hushuffle.curves.capacity import WIDE, to_decimal

_SLACK = Decimal(10) ** -60  # far more than the 120-digit arithmetic loses, far less than a float shows


def up(value: Decimal | Fraction) -> float:
    """Return a float >= `value`, at most the second one above it.

    >>> up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    wide = _wide(value)
    raised = WIDE.add(wide, WIDE.multiply(WIDE.abs(wide), _SLACK))
    nearest = float(raised)
    return nearest if Decimal(nearest) >= raised else math.nextafter(nearest, math.inf)


def down(value: Decimal | Fraction) -> float:
    """Return a float <= `value`, at most the second one below it.

    >>> down(Fraction(1, 10)) <= Fraction(1, 10)
    True
    """
    return 0.0 - up(WIDE.minus(_wide(value)))  # 0.0 - 0.0 is 0.0, not -0.0


def _wide(value: Decimal | Fraction) -> Decimal:
    return to_decimal(value) if isinstance(value, Fraction) else value
