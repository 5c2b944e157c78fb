"""Truthful reports, or public hashes of values, among uniform dummies.

Values: exact privacy curve from the counts of the target's two values a and b.

These two counts are a sufficient statistic. With S dummies at a or b, A ~ Bin(S, 1/2) of them are at a. The target's
report adds one count: the counts are (A + 1, S - A) if its value is a, and (A, S - A + 1) if it is b. The likelihood
ratio is (count of a)/(count of b). Summed over S:

    delta(epsilon) = E (1/N) E[(1 + e**epsilon) R_N - (e**epsilon - 1) N]_+ ,   N = S + 1, R_N the sum of N fair signs.

The other people's values do not matter, so every pair of neighbouring datasets is the worst one. The term decreases
with S (more dummies hide more), so the smallest and the largest S of a row bound the term for the whole row.

Hashes: a report is a fresh public hash h and the bucket h(x) of the value x. This is almost as private as values, with
k = number of buckets. A dummy is a fresh hash and a uniform bucket. A report supports every value that h maps to its
bucket. Two values a and b share a bucket with probability c. Upper bound: all other people's reports are revealed. Of
the target's report and the dummies, N support exactly one of a and b, and m support both. With R_N the sum of N fair
signs,

    delta(epsilon) <= (1 - c) E w_m (1/N) E[(1 + e**epsilon) R_N - (e**epsilon - 1) (N + 2 m)]_+ .

Lower bound: all others have value a, and the statistic is the number of messages that support a. Let delta' be the
privacy curve of truthful values with as many values as buckets. The bound is
(1 - c) delta'(ln(1 + (e**epsilon - 1)/(1 - c))).

Source: docs/theory/histograms.md, Theorem 2 and Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle.curves.base import LARGEST, PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.symmetric_pairs import AT_FIRST, AT_THIRD
from hushuffle.model import Witness
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
    revealing = True
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
    revealing = True
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

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        (pair,) = self.values.datasets(log_tail=log_tail)
        moved = self.apart * pair.q + (1 - self.apart) * pair.p
        return (replace(pair, witness=self._witness, p=moved, q=pair.p, doubt=pair.doubt + 8 * EPS),)

    @property
    def _witness(self) -> Witness:
        return Witness(family=AT_FIRST, others=(self.n - 1,), target=(1, 0))
