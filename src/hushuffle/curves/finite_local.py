"""Central DP where nothing hides the sender: the divergence of one report, exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hushuffle.curves.certified_epsilon import SearchedCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.exact_loss import exact_pairs
from hushuffle.mechanisms.randomizers import HasValueLaws, ValueLaws, require
from hushuffle.model import Witness
from hushuffle.numerics.binomial import EPS

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol


@dataclass(frozen=True, kw_only=True, eq=False)
class FiniteLocal(SearchedCurve):
    """max over pairs of sum_y [Q(y|a) - e**eps Q(y|b)]_+, up to the rounding of the sums."""

    laws: tuple[ValueLaws, ...]
    local_epsilon: float
    n: int
    exact = True
    proof = "the report is seen with its sender, so the local figure is the central one"

    @classmethod
    def of(cls, protocol: Protocol) -> FiniteLocal:
        """Return the divergence of a protocol whose shuffler reveals the senders.

        Raises:
            UnsupportedProtocolError: the randomizer's pairs of values are not known.

        >>> import hushuffle as hs
        >>> from hushuffle.mechanisms.randomizers import BitFlipping
        >>> columns = hs.Protocol(randomizer=BitFlipping(width=2, p=0.25), shuffler=hs.NoShuffle(), n=9)
        >>> round(FiniteLocal.of(columns).upper(1.0), 6)
        0.392607
        """
        laws = require(protocol.randomizer, HasValueLaws, for_what="Central differential privacy").value_laws()
        return cls(laws=laws, local_epsilon=protocol.randomizer.local_epsilon, n=protocol.n)

    @property
    def pure(self) -> float:
        return self.local_epsilon

    @property
    def certain(self) -> float:  # type: ignore[override]
        return certain(self.laws, self.pure)

    def upper(self, epsilon: float) -> float:
        return 0.0 if epsilon >= self.pure else self._worst(epsilon, 1)[0]

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        value, *place = self._worst(epsilon, -1)
        return 0.0 if epsilon >= self.pure else value, self._witness(*place)

    def _witness(self, i: int, a: int, b: int) -> Witness:
        labels = self.laws[i].labels
        return Witness(family="any dataset", others=(self.n - 1,), target=(labels[a], labels[b]))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Return the pairs that are worst in one round at small and at middling epsilon."""
        pairs: list[DatasetPair] = []
        for i, a, b in dict.fromkeys(self._worst(level, -1)[1:] for level in (0.0, self.guess())):
            rows = self.laws[i].rows
            pairs += exact_pairs(self._witness(i, a, b), (rows[a], rows[b]), (), log_tail=log_tail)
        return tuple(pairs)

    def _worst(self, epsilon: float, side: int) -> tuple[float, int, int, int]:
        """Return the largest divergence, rounded up (`side` = 1) or down (-1), and its law and rows."""
        found = []
        for i, law in enumerate(self.laws):
            for a, b in law.pairs:
                first, second = law.rows[a], law.rows[b]
                rounding = side * 8 * EPS * (first + np.exp(epsilon) * second)
                gain = (first - second) - np.expm1(epsilon) * second + rounding
                found.append((min(float(np.maximum(gain, 0.0).sum()), 1.0), i, a, b))
        return max(found)


def certain(laws: tuple[ValueLaws, ...], pure: float) -> float:
    """Return the largest chance of a report that the other value of a pair cannot give; 0 if `pure` is finite."""
    if math.isfinite(pure):  # a probability that floats round to 0 is not certain to be 0
        return 0.0
    chances = [float(law.rows[a][law.rows[b] == 0].sum()) for law in laws for a, b in law.pairs]
    return max(chances) * (1 - 64 * EPS)
