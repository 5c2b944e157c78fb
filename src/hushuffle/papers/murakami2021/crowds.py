"""People with known frequencies of values, and the errors of the estimates from one collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.estimation import estimate, heavy_hitters
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.randomness import reproducible

_TOP: Final = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """n people with one value each: `counts` by value, shape (k,); `top`: the most frequent values, in order."""

    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    top: npt.NDArray[np.int64]
    source: str

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.counts / self.values.size, dtype=np.float64)


def crowd(values: npt.NDArray[np.int64], k: int, source: str) -> Crowd:
    counts = np.bincount(values, minlength=k)
    return Crowd(values=values, counts=counts, top=np.argsort(-counts, kind="stable")[:_TOP], source=source)


def zipf(n: int, k: int, exponent: float, seed: int) -> Crowd:
    """Return n people who draw from k values, the x-th with probability proportional to x**-exponent.

    >>> zipf(1000, 50, 1.0, seed=1).counts.sum()
    np.int64(1000)
    """
    weights = np.cumsum(np.arange(1, k + 1, dtype=np.float64) ** -exponent)
    draws = np.random.default_rng(seed).random(n) * weights[-1]
    values = np.minimum(np.searchsorted(weights, draws, side="right"), k - 1).astype(np.int64)
    return crowd(values, k, f"simulated: {n:,} people, {k:,} values, the x-th proportional to x**-{exponent:g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """`predicted` contains the exact expectations of the squared errors; `shares` below the threshold are 0."""

    top: float
    every: float
    top_kept: float
    every_kept: float
    predicted: tuple[float, float]
    shares: npt.NDArray[np.float64]


def losses(people: Crowd, randomizer: Mechanism, seed: int) -> Losses:
    protocol = Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=people.values.size)
    # Counting ignores the order of reports, so no shuffle is needed here.
    estimated = estimate(protocol.collect(people.values, rng=reproducible(seed)), protocol=protocol)
    significant = heavy_hitters(estimated, protocol=protocol)
    thresholded = np.zeros(estimated.k)
    thresholded[significant.values] = significant.frequencies
    shares, top = people.shares, people.top
    wrong, wrong_kept = (estimated.frequencies - shares) ** 2, (thresholded - shares) ** 2
    variance = estimated.variance_intercept + estimated.variance_slope * shares
    return Losses(
        top=float(wrong[top].sum()),
        every=float(wrong.sum()),
        top_kept=float(wrong_kept[top].sum()),
        every_kept=float(wrong_kept.sum()),
        predicted=(float(variance[top].sum()), float(variance.sum())),
        shares=thresholded[top],
    )
