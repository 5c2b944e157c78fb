"""Truthful reports of public hashes among uniform dummies: almost as private as values, with k = number of buckets.

A report is a fresh hash h and the bucket h(x) of the value x. A dummy is a fresh hash and a uniform bucket. A report
supports every value that h maps to its bucket. Two values a and b share a bucket with probability c. Upper bound: all
other people's reports are revealed. Of the target's report and the dummies, N support exactly one of a and b, and m
support both. With R_N the sum of N fair signs,

    delta(epsilon) <= (1 - c) E w_m (1/N) E[(1 + e**epsilon) R_N - (e**epsilon - 1) (N + 2 m)]_+ .

Lower bound: all others have value a, and the statistic is the number of messages that support a. Let delta' be the
privacy curve of truthful values with as many values as buckets. The bound is
(1 - c) delta'(ln(1 + (e**epsilon - 1)/(1 - c))).

Source: docs/theory/histograms.md, Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle.curves.base import LARGEST, PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.blanket_messages import TrueAmongUniform
from hushuffle.curves.laws.symmetric_pairs import AT_FIRST
from hushuffle.model import Bound, Witness
from hushuffle.model.citation import LUO
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, Floats, fair_signs

_MOST: Final = 128
"""Largest number of distinct m (messages that support both values) that are summed; beyond, m counts as 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueAmongHashes(PrivacyCurve):
    """Privacy curve of n people's truthful hash buckets among Bin(trials, p) dummies.

    `apart` is 1 - c, and `values` is the privacy curve of truthful values with as many values as buckets. Each row of
    the table stands for `least` to `most` messages that support exactly one of the two values, and at least `both`
    messages that support both. `weight` is its probability times w_m and 1 - c; arrays have shape (rows,).
    """

    n: int
    apart: float
    values: TrueAmongUniform
    least: Floats
    most: Floats
    both: Floats
    weight: Floats
    sources = (LUO,)
    proof = "counts of the messages that support one of two values, or both"

    @classmethod
    def of(
        cls, *, buckets: int, collision: Fraction, n: int, trials: int, p: float, numbers: int = 0
    ) -> TrueAmongHashes:
        """The curve for n people; two values share a bucket with probability `collision`.

        `numbers` is the length of the table from which the number of dummies is drawn; 0 if none.

        >>> share = Fraction(1, 1000)
        >>> print(TrueAmongHashes.of(buckets=1000, collision=share, n=10**6, trials=10**6, p=0.04).epsilon(1e-6))
        1.042 to 1.043 nats (certified bracket)
        """
        values, apart = TrueAmongUniform.of(k=buckets, n=n, trials=trials, p=p, numbers=numbers), float(1 - collision)
        chance = p * float(collision) / buckets
        low, high = binomial.window(trials + 1, chance, LOG_TAIL)
        shared = np.arange(low, min(high, trials) + 1.0)
        mass = binomial.pmf(shared, trials + 1, chance) * (1 + binomial.margin(trials)) * (1 - shared / (trials + 1))
        rest = buckets - p * float(collision)
        if shared.size > _MOST:
            shared, mass, rest = np.zeros(1), np.ones(1), float(buckets)
        parts: list[tuple[Floats, ...]] = []
        for both, share in zip(shared.tolist(), (mass * apart * buckets / rest).tolist(), strict=True):
            rows = CountRows.of(trials - int(both), 2 * p * apart / rest)
            parts.append((rows.first + 1, rows.last + 1, np.full(rows.first.size, both), share * rows.at_most))
        least, most, both_of_rows, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(n=n, apart=apart, values=values, least=least, most=most, both=both_of_rows, weight=weight)

    @property
    def pure(self) -> float:
        """Infinite: with positive probability the target's report is the only message that supports its value."""
        return math.inf

    @property
    def floor(self) -> float:  # type: ignore[override]
        return 4 * _MOST * math.exp(LOG_TAIL) + self.values.slack

    @property
    def certain(self) -> float:  # type: ignore[override]
        return self.lower(LARGEST)[0]

    def guess(self) -> float:
        return self.values.guess()

    def upper(self, epsilon: float) -> float:
        number, slope = self.least, 1 + math.exp(epsilon)
        more = math.expm1(epsilon) * 2 * self.both * number / self.most
        threshold, head = math.expm1(epsilon) * number + more, (2 * number - more, 2 * number + more)
        value = float(self.weight @ (fair_signs(number, slope, threshold, head)[1] / number))
        return min(value * (1 + EPS * (16 + number.size)) + self.floor, 1.0)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        farther = math.log1p(math.expm1(epsilon) / self.apart) * (1 + 8 * EPS)
        return self.apart * (1 - 4 * EPS) * self.values.lower(farther)[0], self._witness

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.lower(epsilon)[0] if witness == self._witness else 0.0

    def epsilon(self, delta: float) -> Bound:
        if 0 < delta < self.certain:
            return Bound.exact(math.inf, unit="nats", sources=self.sources, witness=self._witness)
        return super().epsilon(delta)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        (pair,) = self.values.datasets(log_tail=log_tail)
        moved = self.apart * pair.q + (1 - self.apart) * pair.p
        return (replace(pair, witness=self._witness, p=moved, q=pair.p, doubt=pair.doubt + 8 * EPS),)

    @property
    def _witness(self) -> Witness:
        return Witness(family=AT_FIRST, others=(self.n - 1,), target=(1, 0))
