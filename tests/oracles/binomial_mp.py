"""Binomial probabilities in 40-digit arithmetic, straight from factorials."""

from __future__ import annotations

import mpmath


def pmf(x: int, n: int, p: float | mpmath.mpf) -> mpmath.mpf:
    with mpmath.workdps(40):
        chance = mpmath.mpf(p)
        log_choose = mpmath.loggamma(n + 1) - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1)
        return mpmath.exp(log_choose + x * mpmath.log(chance) + (n - x) * mpmath.log(1 - chance))


def upper_tail(x: int, n: int, p: float | mpmath.mpf) -> mpmath.mpf:
    """Sum the terms from x upwards until they no longer count (x must lie above the mean)."""
    with mpmath.workdps(40):
        odds = mpmath.mpf(p) / (1 - mpmath.mpf(p))
        term = pmf(x, n, p)
        total, first, position = mpmath.mpf(0), term, x
        while position <= n and term > first * mpmath.mpf(10) ** -25:
            total += term
            term *= odds * (n - position) / (position + 1)
            position += 1
        return total
