"""Binomial distributions in ball arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, fmpq

FAINT = 1e-40
"""Counts with a smaller probability are left out."""


def ball(number: Fraction | int) -> Any:
    """Return the ball of a rational number."""
    return arb(fmpq(number.numerator, number.denominator))


def masses_of(trials: int, chance: Fraction) -> tuple[int, list[Any]]:
    """Return the first non-negligible count of Bin(trials, chance), and the probabilities from that count on."""
    if chance in {0, 1}:
        return (trials if chance else 0), [arb(1)]
    p, q = ball(chance), ball(1 - chance)
    mode = min(trials, int((trials + 1) * chance))
    up, down = [arb.bin(arb(trials), mode) * p**mode * q ** (trials - mode)], list[Any]()
    last = up[0]
    for u in range(mode, trials):
        last = last * p * (trials - u) / (q * (u + 1))
        if float(last) < FAINT:
            break
        up.append(last)
    last = up[0]
    for u in range(mode, 0, -1):
        last = last * q * u / (p * (trials - u + 1))
        if float(last) < FAINT:
            break
        down.append(last)
    return mode - len(down), down[::-1] + up
