"""What trials tell of a probability: the interval of Clopper and Pearson."""

from __future__ import annotations

from scipy.special import betainccinv, betaincinv


def clopper_pearson(hits: float, trials: int, confidence: float) -> tuple[float, float]:
    """Return an interval that holds the probability of a hit with `confidence` at least, half of the risk on each side.

    Shared hits (ties) may be fractions.

    Source: C. J. Clopper, E. S. Pearson, Biometrika 26 (1934).

    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> low, round(high, 5)
    (0.0, 0.03622)
    """
    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betainccinv(hits + 1, trials - hits, tail)) if hits < trials else 1.0
    return low, high
