"""Logarithms of rationals, rounded upwards: a published epsilon is never below the implemented one."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np

_PRECISION: Final = Context(prec=60)


def log_upwards(ratio: Fraction, *, times: int = 1) -> float:
    """Return times * ln(ratio), ratio >= 1, rounded up to a float.

    >>> log_upwards(Fraction(3), times=2)
    2.1972245773362196
    """
    with localcontext(_PRECISION):
        value = times * (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        # One part in 10**40, and 10**-50 for ratios next to 1, cover the rounding of quotient and logarithm.
        ceiling = value * (1 + Decimal(10) ** -40) + (Decimal(10) ** -50 if ratio > 1 else 0)
        nearest = float(ceiling)
        return nearest if Decimal(nearest) >= ceiling else float(np.nextafter(nearest, np.inf))
