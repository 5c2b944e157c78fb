"""Noisy sums by shares: what all messages say, which is little more than the noisy sum says.

Upper end. At `pure_part` and beyond the divergence is at most `failure`. Below it is at most that of two laws with this
guarantee, and for one coordinate that of the two noisy sums with twice `failure`.

Lower end. Everybody else holds the lowest number, the target the lowest or the highest in every coordinate. For one
coordinate the noisy sum is looked at, for several whether no noise is negative.

Source: docs/theory/split-and-mix.md, Theorem 7, Theorem 8 and Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.curves.base import SearchedCurve, bracket
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
            found = min(found, self._noisy_sum(epsilon) + 2 * failure + 16 * EPS)  # of a difference of chances
        return min(found * (1 + _HAIR), 1.0)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        if epsilon >= self.protocol.pure_part:
            return 0.0, self._witness
        seen = self._seen * -math.expm1(epsilon - self.protocol.pure_part * (1 - _HAIR))
        if self.protocol.coordinates == 1:
            seen = self._noisy_sum(epsilon)
        return max(seen * (1 - _HAIR) - (1 + math.exp(epsilon)) * self._missed, 0.0), self._witness

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
        """Return the laws of the noisy sum, neighbouring sums put together; those of one coordinate only."""
        del log_tail
        top = self.protocol.top
        if self.protocol.coordinates > 1:
            return ()
        ends = np.unique(np.linspace(0, top, _CELLS).astype(np.int64)).astype(np.float64)
        first = np.diff(self._at_least(ends), prepend=1.0, append=0.0)
        p, q = np.abs(first), np.abs(np.diff(self._at_least(ends - top), prepend=1.0, append=0.0))
        missed = self._missed
        return (DatasetPair(witness=self._witness, p=p, q=q, doubt=_HAIR, p_error=missed, q_error=missed),)

    def _noisy_sum(self, epsilon: float) -> float:
        """Return the divergence of the noise moved by `top` and the noise, at most `pure_part`."""
        top = self.protocol.top
        place = np.floor((top + epsilon / self.protocol.pure_part * top) / 2)
        places = place + np.arange(-1.0, 3.0)  # it is the largest over all places; rounding moves the best one
        found = self._at_least(places - top) - math.exp(epsilon) * self._at_least(places)
        return max(float(found.max()), 0.0)

    @property
    def _seen(self) -> float:
        """The chance that the noise of no coordinate is negative."""
        return (1 + self.protocol.noise.chance) ** -self.protocol.coordinates

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
