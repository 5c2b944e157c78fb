"""Audiences of people who meet publishers in proportion to an exponential activity: by numerical integration."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.integrate import quad


def share_in_exactly(shares: Sequence[float], chosen: int) -> float:
    """Return the share of people in exactly the audiences of set bits of `chosen`."""
    rates = [share / (1 - share) for share in shares]

    def density(activity: float) -> float:
        value = math.exp(-activity)
        for place, rate in enumerate(rates):
            missed = math.exp(-rate * activity)
            value *= 1 - missed if chosen >> place & 1 else missed
        return value

    value, _ = quad(density, 0, math.inf, epsabs=1e-12, epsrel=1e-10, limit=400)
    return float(value)
