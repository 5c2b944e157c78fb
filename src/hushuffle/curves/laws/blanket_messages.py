"""Truthful reports among uniform dummies: exact privacy curve from the counts of the target's two values a and b.

These two counts are a sufficient statistic. With S dummies at a or b, A ~ Bin(S, 1/2) of them are at a. The target's
report adds one count: the counts are (A + 1, S - A) if its value is a, and (A, S - A + 1) if it is b. The likelihood
ratio is (count of a)/(count of b). Summed over S:

    delta(epsilon) = E (1/N) E[(1 + e**epsilon) R_N - (e**epsilon - 1) N]_+ ,   N = S + 1, R_N the sum of N fair signs.

The other people's values do not matter, so every pair of neighbouring datasets is the worst one. The term decreases
with S (more dummies hide more), so the smallest and the largest S of a row bound the term for the whole row.

Source: docs/theory/histograms.md, Theorem 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.symmetric_pairs import AT_FIRST, AT_THIRD
from hushuffle.model import Bound, Witness
from hushuffle.model.citation import LUO
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, Floats, fair_signs

_TINY = 5e-324
_ROWS = 256
_CELLS = 256
"""Largest number of rows, and of events in each row, of an explicit pair of datasets; neighbours are merged."""

_LIGHT = 1e-40
"""An explicit pair of datasets omits rows that are less probable than this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueAmongUniform(PrivacyCurve):
    """Privacy curve of n truthful reports among Bin(trials, p) dummies that are uniform over k values.

    `rows`: distribution of the number of dummies at two given values, wrong by at most `slack` (rounded tables).
    """

    k: int
    n: int
    trials: int
    chance: float
    rows: CountRows
    slack: float
    sources = (LUO,)
    proof = "an exact sum over all counts of the target's two values"

    @classmethod
    def of(cls, *, k: int, n: int, trials: int, p: float, numbers: int = 0) -> TrueAmongUniform:
        """`numbers` is the length of the table from which the number of dummies is drawn; 0 if none.

        >>> print(TrueAmongUniform.of(k=1000, n=10**6, trials=10**6, p=0.04).epsilon(1e-6))
        1.044 nats (certified bracket)
        """
        chance, slack = p * 2 / k, (numbers + 2) * 2.0**-64 if numbers else 0.0
        return cls(k=k, n=n, trials=trials, chance=chance, rows=CountRows.of(trials, chance), slack=slack)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return bool((self.rows.first == self.rows.last).all())

    @property
    def floor(self) -> float:  # type: ignore[override]
        return 2 * math.exp(LOG_TAIL) + self.slack

    @property
    def pure(self) -> float:
        """Infinite: with positive probability the target's report is the only message at its value."""
        return math.inf

    @property
    def certain(self) -> float:  # type: ignore[override]
        return max(float(self.rows.at_least @ 2.0**-self.rows.last) - self.slack, 0.0)

    def guess(self) -> float:
        return 8 / math.sqrt(self.trials * self.chance + 1)

    def upper(self, epsilon: float) -> float:
        value = float(self.rows.at_most @ self._ends(self.rows.first, epsilon)[1])
        return max(min(value * (1 + EPS * self.rows.first.size) + self.floor, 1.0), _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        value = float(self.rows.at_least @ self._ends(self.rows.last, epsilon)[0])
        return max(value * (1 - EPS * self.rows.first.size) - self.slack, 0.0), self._witness

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.lower(epsilon)[0] if len(set(witness.target)) > 1 else 0.0

    def epsilon(self, delta: float) -> Bound:
        if 0 < delta < self.certain:
            return Bound.exact(math.inf, unit="nats", sources=self.sources, witness=self._witness)
        return super().epsilon(delta)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """One pair; each number of dummies is rounded up to its row's largest, which hides more."""
        low, high = binomial.window(self.trials, self.chance, LOG_TAIL)
        rows = CountRows.of(self.trials, self.chance, step=-(-(high - low + 1) // _ROWS))
        mass = np.maximum(rows.at_least - self.slack, 0.0)
        p: list[Floats] = []
        q: list[Floats] = []
        for last, share in zip(rows.last.tolist(), mass.tolist(), strict=True):
            if share > _LIGHT:
                start, end = binomial.window(int(last), 0.5, log_tail)
                places = np.arange(start, end + 2.0)
                cells = np.arange(0, places.size, -(-places.size // _CELLS))
                for side, shift in ((p, 1), (q, 0)):
                    side.append(share * np.add.reduceat(binomial.pmf(places - shift, last, 0.5), cells))
        doubt = 4 * binomial.margin(self.trials) + 8 * EPS * _CELLS
        pair = DatasetPair(witness=self._witness, p=np.concatenate(p), q=np.concatenate(q), doubt=doubt)
        return (pair,)

    @property
    def _witness(self) -> Witness:
        if self.k == 2:
            return Witness(family=AT_FIRST, others=(self.n - 1,), target=(0, 1))
        return Witness(family=AT_THIRD, others=(0, 0, self.n - 1), target=(0, 1))

    def _ends(self, dummies: Floats, epsilon: float) -> tuple[Floats, Floats]:
        number = dummies + 1
        slope, threshold = 1 + math.exp(epsilon), math.expm1(epsilon) * number
        low, high = fair_signs(number, slope, threshold, (2 * number, 2 * number))
        return low / number, high / number
