"""The best number of buckets of local hashing, at a fixed theta or at a fixed Bayes error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.estimation.readout import frequency_variance
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.questions.pie.calibration import epsilon_for_error

LARGEST: Final = 2 * 10**9
"""Maximum number of buckets of local hashing."""

_STEPS: Final = 8
"""Numbers of buckets tried for each doubling."""


def variance_by_buckets(
    theta: float, *, k: int, n: int, buckets: npt.ArrayLike, frequency: float = 0.0
) -> npt.NDArray[np.float64]:
    """Return the variance of an estimated frequency for each number of buckets, at a fixed theta, shape (m,).

    At a fixed theta, and so at a fixed bound on alpha, the variance falls towards p (1-theta)/(n theta) as g grows.

    Args:
        theta: the probability that the bucket is truthful, 0 < theta <= 1.
        k: number of values.
        n: number of people.
        buckets: numbers of buckets, shape (m,), from 2 to 2 * 10**9.
        frequency: the true frequency p of the value.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Murakami, Takahashi 2021, Proposition 4.7 and Theorem 4.8, for the collision probability of the hashes
    actually used; docs/theory/estimation.md, Theorem 2.

    >>> import hushuffle as hs
    >>> hs.pie.variance_by_buckets(0.5, k=1000, n=100, buckets=[2, 16, 128], frequency=0.1).round(4).tolist()
    [0.039, 0.0035, 0.0013]
    """
    share, sizes = _checks.probability("frequency", frequency), np.atleast_1d(np.asarray(buckets)).tolist()
    hashings = [LocalHashing.from_theta(k=k, g=g, theta=theta) for g in sizes]
    return np.array([_variance(hashing, n, share) for hashing in hashings])


def best_hashing_for_theta(
    theta: float, *, k: int, n: int, frequency: float = 0.0, largest: int = LARGEST
) -> LocalHashing:
    """Return the local hashing of least variance at a fixed theta, with at most `largest` buckets.

    By Theorem 4.8 the best number of buckets is `largest`; collisions of the hash family can make a smaller number
    better. The search tries about eight numbers of buckets per factor of two.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Murakami, Takahashi 2021, Theorem 4.8.

    >>> import hushuffle as hs
    >>> hs.pie.best_hashing_for_theta(0.5, k=1000, n=10_000, largest=10**6).g
    1000000
    """
    most, share = _limits(largest, frequency)
    return _best(_sizes(most), lambda g: LocalHashing.from_theta(k=k, g=g, theta=theta), n, share)


def best_hashing_for_error(
    bayes_error: float, *, k: int, n: int, frequency: float, largest: int = LARGEST
) -> LocalHashing:
    """Return the local hashing of least variance with at least this Bayes error, for one report and a uniform prior.

    Theorem 4.8 fixes theta. Here the exact error is fixed: j theta + 1 - theta <= n (1 - error) for j = min(n, k, g).
    Fewer buckets than people allow a larger theta. If g <= n (1 - error), no noise is necessary, since g buckets
    distinguish at most g people. A hash without noise is best for frequent values; many buckets are best for rare
    values (see `frequency`). Without noise the bucket is visible (epsilon_0 = math.inf): only which of its about k/g
    values is true stays hidden.

    Raises:
        InvalidInputError: an argument out of range, or an error of 1 - 1/n or more.

    Source: docs/theory/identity.md, Theorem 3; docs/theory/estimation.md, Theorem 2.

    >>> import hushuffle as hs
    >>> hs.pie.best_hashing_for_error(0.92, k=10_500_393, n=1_370_637, frequency=1e-3).g
    109650
    """
    most, share = _limits(largest, frequency)
    k, n = _checks.integer("k", k, low=2), _checks.integer("n", n, low=1)
    allowed = math.floor(n * (1 - Fraction(_checks.probability("bayes_error", bayes_error))))
    candidates = {*_sizes(most), *(g for g in (allowed, allowed + 1, min(n, k)) if 2 <= g <= most)}

    def build(g: int) -> LocalHashing:
        return LocalHashing(k=k, g=g, epsilon=epsilon_for_error(bayes_error, n=n, k=k, g=g))

    return _best(candidates, build, n, share)


def _limits(largest: int, frequency: float) -> tuple[int, float]:
    return _checks.integer("largest", largest, low=2, high=LARGEST), _checks.probability("frequency", frequency)


def _sizes(most: int) -> set[int]:
    """Return 2, ..., most, about eight for each doubling, the powers of two among them."""
    steps = math.ceil(_STEPS * math.log2(most))
    return {most, *(min(round(2 ** (step / _STEPS)), most) for step in range(_STEPS, steps))}


def _best(sizes: Iterable[int], build: Callable[[int], LocalHashing], n: int, frequency: float) -> LocalHashing:
    return min((build(g) for g in sorted(sizes)), key=lambda hashing: _variance(hashing, n, frequency))


def _variance(hashing: LocalHashing, n: int, frequency: float) -> float:
    return float(frequency_variance(Protocol(randomizer=hashing, shuffler=UniformShuffle(), n=n)).worst(frequency))
