"""Noisy sums from shuffled shares: privacy curve of all messages, which reveal little more than the noisy sum.

Upper bound. All messages are (`pure_part`, `failure`)-differentially private, two figures of `SplitAndMix`. There are
two bounds for a smaller epsilon. The first is the divergence of binary randomized response with pure epsilon
`pure_part`, plus `failure`. The second is that of the noisy sums (one for each coordinate), plus twice `failure`.

Lower bound. All other people have the lowest number. The target has the lowest or the highest number in every
coordinate. For one coordinate the statistic is the noisy sum. For several coordinates each noisy sum is rounded to the
index of a cell, and the statistic is the sum of these indices.

Source: docs/theory/split-and-mix.md, Theorem 7, Theorem 8 and Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.base import PrivacyCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.pairs.composition import Cache, upper_delta
from hushuffle.mechanisms.split_and_mix import WRAP, SplitAndMix
from hushuffle.model import Bound, Citation, Witness
from hushuffle.numerics.binomial import EPS, Floats

SHARES: Final = Citation(
    key="balle2020",
    text="B. Balle, J. Bell, A. Gascon, K. Nissim, Private summation in the multi-message shuffle model, CCS (2020)",
)
ISHAI: Final = Citation(
    key="ishai2006",
    text="Y. Ishai, E. Kushilevitz, R. Ostrovsky, A. Sahai, Cryptography from anonymity, FOCS (2006)",
)
OPTIMAL: Final = Citation(
    key="kairouz2015",
    text="P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential privacy, ICML (2015)",
)

_HAIR: Final = 1e-12
"""Relative margin, larger than the rounding errors of a figure."""

_CELLS: Final = 128
"""Largest number of cells into which noisy sums are merged for the composition of rounds."""

_SUMMED: Final = 4096
"""Approximate number of sums of cell indices of several coordinates; their error is at most this times `_HAIR`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedSums(PrivacyCurve):
    """Privacy curve of all messages of a `SplitAndMix`, if only the required number of people are honest.

    >>> import hushuffle as hs
    >>> steps = hs.SplitAndMix(low=0, high=100, n=1000, epsilon=1.0, delta=1e-9)
    >>> curve = SharedSums(protocol=steps)
    >>> print(curve.epsilon(1e-9), "|", curve.delta(0.5))
    1.000 nats (certified bracket) | 0.2212 (certified bracket)
    """

    protocol: SplitAndMix
    cache: Cache = field(default_factory=dict, repr=False)
    sources = (ISHAI, SHARES, OPTIMAL)
    proof = "messages with equal sums are nearly alike (upper bound), explicit datasets (lower bound)"

    @property
    def pure(self) -> float:
        """Infinite, since some messages can result from one number of the target but not from another."""
        return math.inf

    def guess(self) -> float:
        return self.protocol.pure_part

    def upper(self, epsilon: float) -> float:
        failure, private = self.protocol.failure, self.protocol.pure_part
        if epsilon >= private:
            return failure
        rest = -math.expm1(epsilon - private) / (1 + math.exp(-private))  # (e**private - e**epsilon)/(1 + e**private)
        bound = failure + (1 - failure) * rest
        if self.protocol.coordinates == 1:
            revealed = self.noisy_sum(epsilon) + 16 * EPS  # rounding of a difference of probabilities
        elif self.protocol.distance < self.protocol.coordinates * self.protocol.top:
            revealed = 1.0  # no bound for how the difference is divided
        else:
            revealed = upper_delta(
                [(_Coordinate(sums=self), self.protocol.coordinates)], epsilon=epsilon, cache=self.cache
            )
        bound = min(bound, revealed + 2 * failure)
        return min(bound * (1 + _HAIR), 1.0)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        if epsilon >= self.protocol.pure_part:
            return 0.0, self._witness
        seen = self._seen * -math.expm1(epsilon - self.protocol.pure_part * (1 - _HAIR))
        if self.protocol.coordinates == 1:
            seen = self.noisy_sum(epsilon)
        seen = max(seen * (1 - _HAIR) - (1 + math.exp(epsilon)) * self._missed, 0.0)
        if self.protocol.coordinates > 1 and self._whole:
            seen = max(seen, self._cells.divergence(epsilon))
        return seen, self._witness

    def epsilon(self, delta: float) -> Bound:
        private = self.protocol.pure_part
        if delta >= self.protocol.failure:
            bound = super().epsilon(delta)
            low, high = min(bound.lower, private), min(bound.upper, private)
            return bracket(low, high, unit="nats", sources=self.sources, witness=self._witness)
        seen = max(self._seen - self._missed - delta, 0.0) / (self._seen * math.exp(-private) + self._missed)
        low = min(math.log(max(seen, 1.0)) * (1 - _HAIR), private)
        return Bound(lower=low, upper=math.inf, kind="lower", unit="nats", sources=self.sources, witness=self._witness)

    def pure_bound(self) -> Bound:
        return self.epsilon(0.0)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        del log_tail
        return (self._cells,) if self._whole else ()

    @property
    def _whole(self) -> int:
        """Number of coordinates in which the two vectors at the largest distance differ by `top`."""
        return sum(part // self.protocol.top for part in self.protocol.farthest_pair)

    @cached_property
    def _cells(self) -> DatasetPair:
        top, coordinates = self.protocol.top, self._whole  # the other coordinates are ignored
        cells = min(_CELLS, max(_SUMMED // coordinates, 2))
        # Below 1 all losses are equal; from 1 on the loss grows almost equally per cell, so the sum loses little.
        ends = np.unique(np.linspace(1, top, cells).astype(np.int64)).astype(np.float64)
        first = np.diff(self._at_least(ends), prepend=1.0, append=0.0)
        p, q = np.abs(first), np.abs(np.diff(self._at_least(ends - top), prepend=1.0, append=0.0))
        p, q, missed = _power(p, coordinates), _power(q, coordinates), self._missed
        doubt = _HAIR * (1 if coordinates == 1 else _SUMMED)
        return DatasetPair(witness=self._witness, p=p, q=q, doubt=doubt, p_error=missed, q_error=missed)

    def noisy_sum(self, epsilon: float) -> float:
        """Divergence between a coordinate's noise shifted by `top` and the unshifted noise."""
        top = self.protocol.top
        place = np.floor((top + epsilon / self.protocol.pure_part * self.protocol.distance) / 2)
        places = place + np.arange(-1.0, 3.0)  # the maximum over all places; rounding may move it
        differences = self._at_least(places - top) - math.exp(epsilon) * self._at_least(places)
        return max(float(differences.max()), 0.0)

    @property
    def _seen(self) -> float:
        """Probability that no coordinate in which the two vectors differ has noise towards the other vector."""
        changed = sum(-(-part // self.protocol.top) for part in self.protocol.farthest_pair)
        return (1 + self.protocol.noise.chance) ** -changed

    @property
    def _missed(self) -> float:
        """Largest change of an event's probability due to sums modulo q and to noise drawn from rounded tables."""
        return self.protocol.coordinates * WRAP + self.protocol.rounding

    @property
    def _witness(self) -> Witness:
        return Witness(
            family="all others at the lowest number", others=(self.protocol.n - 1,), target=(0, self.protocol.top)
        )

    def _at_least(self, places: Floats) -> Floats:
        """Probability that the total noise of the required people is at least `places`, same shape."""
        slope = -self.protocol.pure_part / self.protocol.distance  # logarithm of neighbouring probabilities' ratio
        above = places >= 1
        far: Floats = np.exp(slope * np.where(above, places, 1 - places)) / (1 + self.protocol.noise.chance)
        return np.where(above, far, 1 - far)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Coordinate(PrivacyCurve):
    """Privacy curve of the ideal noisy sum of one coordinate, shifted by `top`: a factor of composed upper bounds."""

    sums: SharedSums
    sources = SharedSums.sources
    proof = SharedSums.proof

    @property
    def pure(self) -> float:
        return self.sums.protocol.pure_part / self.sums.protocol.distance * self.sums.protocol.top * (1 + _HAIR)

    def upper(self, epsilon: float) -> float:
        return 0.0 if epsilon >= self.pure else self.sums.noisy_sum(epsilon) * (1 + _HAIR) + 16 * EPS

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return 0.0, self.sums.lower(epsilon)[1]


def _power(chances: Floats, times: int) -> Floats:
    """Distribution of the sum of `times` independent numbers 0, 1, ... with probabilities `chances`."""
    total, power = np.ones(1), chances
    while times:
        if times & 1:
            total = np.convolve(total, power)
        times >>= 1
        if times:
            power = np.convolve(power, power)
    return total
