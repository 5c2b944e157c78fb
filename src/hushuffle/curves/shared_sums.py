"""Noisy sums by shares: what all messages say, which is little more than the noisy sum says.

Upper end. At `pure_part` and beyond the divergence is at most `failure`. Below it is at most that of two laws with this
guarantee, and that of the two noisy sums, of as many independent ones as there are coordinates, with twice `failure`.

Lower end. Everybody else holds the lowest number, the target the lowest or the highest in every coordinate. For one
coordinate the noisy sum is looked at, for several the sum of the cells that their noisy sums are in.

Source: docs/theory/split-and-mix.md, Theorem 7, Theorem 8 and Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.base import SearchedCurve, bracket
from hushuffle.curves.composition import Made, upper_delta
from hushuffle.curves.dataset_pair import DatasetPair
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
"""More than rounding does to a figure, relatively."""

_CELLS: Final = 128
"""Sums are put together into so many cells where rounds are composed."""

_SUMMED: Final = 4096
"""Sums of the cells of several coordinates, about; none is known worse than by so many hairs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedSums(SearchedCurve):
    """All messages of a `SplitAndMix`, against a reader who works with all people but those needed.

    >>> import hushuffle as hs
    >>> steps = hs.SplitAndMix(low=0, high=100, n=1000, epsilon=1.0, delta=1e-9)
    >>> curve = SharedSums(protocol=steps)
    >>> print(curve.epsilon(1e-9), "|", curve.delta(0.5))
    1.000 nats (certified bracket) | 0.2212 (certified bracket)
    """

    protocol: SplitAndMix
    made: Made = field(default_factory=dict, repr=False)
    sources = (ISHAI, SHARES, OPTIMAL)
    proof = "messages with equal sums are nearly alike (upper bound), explicit datasets (lower bound)"

    @property
    def pure(self) -> float:
        """Some messages may never come of some numbers."""
        return math.inf

    def guess(self) -> float:
        return self.protocol.pure_part

    def upper(self, epsilon: float) -> float:
        failure, private = self.protocol.failure, self.protocol.pure_part
        if epsilon >= private:
            return failure
        rest = -math.expm1(epsilon - private) / (1 + math.exp(-private))  # (e**private - e**epsilon)/(1 + e**private)
        found = failure + (1 - failure) * rest
        if self.protocol.coordinates == 1:
            told = self.noisy_sum(epsilon) + 16 * EPS  # of a difference of chances
        elif self.protocol.distance < self.protocol.coordinates * self.protocol.top:
            told = 1.0  # of which coordinates differ by how much nothing is used
        else:
            told = upper_delta([(_Coordinate(sums=self), self.protocol.coordinates)], epsilon=epsilon, made=self.made)
        found = min(found, told + 2 * failure)
        return min(found * (1 + _HAIR), 1.0)

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
            found = super().epsilon(delta)
            low, high = min(found.lower, private), min(found.upper, private)
            return bracket(low, high, unit="nats", sources=self.sources, witness=self._witness)
        seen = max(self._seen - self._missed - delta, 0.0) / (self._seen * math.exp(-private) + self._missed)
        low = min(math.log(max(seen, 1.0)) * (1 - _HAIR), private)
        return Bound(lower=low, upper=math.inf, kind="lower", unit="nats", sources=self.sources, witness=self._witness)

    def pure_bound(self) -> Bound:
        return self.epsilon(0.0)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Return the laws of the noisy sum, or of the sum of the cells that those of several coordinates are in."""
        del log_tail
        return (self._cells,) if self._whole else ()

    @property
    def _whole(self) -> int:
        """In how many coordinates the two vectors that are farthest apart differ by `top`."""
        return sum(part // self.protocol.top for part in self.protocol.farthest_pair)

    @cached_property
    def _cells(self) -> DatasetPair:
        top, coordinates = self.protocol.top, self._whole  # the others are not looked at
        cells = min(_CELLS, max(_SUMMED // coordinates, 2))
        # Below 1 all losses are alike, and from there on cells rise by about the same: their sum tells nearly all.
        ends = np.unique(np.linspace(1, top, cells).astype(np.int64)).astype(np.float64)
        first = np.diff(self._at_least(ends), prepend=1.0, append=0.0)
        p, q = np.abs(first), np.abs(np.diff(self._at_least(ends - top), prepend=1.0, append=0.0))
        p, q, missed = _power(p, coordinates), _power(q, coordinates), self._missed
        doubt = _HAIR * (1 if coordinates == 1 else _SUMMED)
        return DatasetPair(witness=self._witness, p=p, q=q, doubt=doubt, p_error=missed, q_error=missed)

    def noisy_sum(self, epsilon: float) -> float:
        """Return the divergence of the noise of a coordinate moved by `top` and the noise, below its own epsilon."""
        top = self.protocol.top
        place = np.floor((top + epsilon / self.protocol.pure_part * self.protocol.distance) / 2)
        places = place + np.arange(-1.0, 3.0)  # it is the largest over all places; rounding moves the best one
        found = self._at_least(places - top) - math.exp(epsilon) * self._at_least(places)
        return max(float(found.max()), 0.0)

    @property
    def _seen(self) -> float:
        """The chance that the noise of no coordinate in which the two differ goes back towards the other."""
        changed = sum(-(-part // self.protocol.top) for part in self.protocol.farthest_pair)
        return (1 + self.protocol.noise.chance) ** -changed

    @property
    def _missed(self) -> float:
        """What sums modulo q and noise of tables may change in the chance of an event."""
        return self.protocol.coordinates * WRAP + self.protocol.rounding

    @property
    def _witness(self) -> Witness:
        return Witness(
            family="all others at the lowest number", others=(self.protocol.n - 1,), target=(0, self.protocol.top)
        )

    def _at_least(self, places: Floats) -> Floats:
        """Return the probability that the noise of the people needed is at least `places`, same shape."""
        slope = -self.protocol.pure_part / self.protocol.distance  # the logarithm of the ratio, to its last digit
        above = places >= 1
        far: Floats = np.exp(slope * np.where(above, places, 1 - places)) / (1 + self.protocol.noise.chance)
        return np.where(above, far, 1 - far)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Coordinate(SearchedCurve):
    """The noisy sum of one coordinate of several, as it should be, moved by `top`: what upper ends are composed of."""

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
    """Return the law of the sum of so many independent numbers 0, 1, ... with these chances."""
    found, power = np.ones(1), chances
    while times:
        if times & 1:
            found = np.convolve(found, power)
        times >>= 1
        if times:
            power = np.convolve(power, power)
    return found
