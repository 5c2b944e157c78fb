"""Thresholds and published epsilons of randomized response, with 400 decimal digits."""

from __future__ import annotations

import mpmath

SCALE = 2**64
DIGITS = 400


def threshold(k: int, epsilon: float) -> int:
    """floor(2**64 (e**epsilon - 1)/(k + e**epsilon - 1)); below 2**64, since epsilon is finite."""
    with mpmath.workdps(DIGITS):
        growth = mpmath.expm1(mpmath.mpf(epsilon))
        return min(int(mpmath.floor(SCALE * growth / (k + growth))), SCALE - 1)


def epsilon_excess(k: int, coin: int, claimed: float) -> float:
    """`claimed` minus ln(mu/nu) of the mechanism with threshold `coin`, mu and nu written out."""
    with mpmath.workdps(DIGITS):
        theta = mpmath.mpf(coin) / SCALE
        lie = (1 - theta) / k
        return float(mpmath.mpf(claimed) - mpmath.log((theta + lie) / lie))
