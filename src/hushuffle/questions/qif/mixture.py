"""People who hold values independently with known frequencies: what one report says, and the shuffled reports.

Every released report is one person's, and the target is each of them with the same probability. So after
a shuffle the guesser's posterior is the mean of the posteriors that single reports would give,

    Z_x = (1/n) sum_r h_r w[x, r],   w[x, r] = f_x Q(r|x)/q_r,   q_r = sum_x f_x Q(r|x),   h ~ Multinomial(n; q),

and the vulnerability is E max_x Z_x. E Z_x = f_x.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from hushuffle.errors import NumericalError
from hushuffle.numerics import binomial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushuffle.mechanisms.randomizers import Symmetric
    from hushuffle.numerics.binomial import Floats

ENTRIES_LIMIT: Final = 6_000_000
"""Most counts looked at, histograms times values: about a second and 300 MB."""

WINDOW_LIMIT: Final = 1 << 22
"""Most counts of one value looked at: n about 10**11."""

ACCURACY: Final = 1e-12
"""Relative error to allow for in `expected_best`; measured below 1e-14 against exact rationals."""

_LOG_TAIL: Final = -45.0
_NEGLIGIBLE: Final = 1e-27  # of a histogram, of a few million


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """`n` reports, independent of law `reports`, shape (outputs,), and the posteriors w, shape (values, outputs)."""

    n: int
    frequencies: Floats
    reports: Floats
    posteriors: Floats

    @classmethod
    def of(cls, law: Symmetric, n: int, frequencies: Floats) -> Self:
        """Return the mixture of randomized response; without noise, values that nobody holds are left out."""
        frequencies = frequencies if law.lie else frequencies[frequencies > 0]
        joint = float(law.lie) * frequencies[:, None] + np.diag(float(law.theta) * frequencies)
        reports = joint.sum(axis=0)
        return cls(n=n, frequencies=frequencies, reports=reports, posteriors=joint / reports)

    @property
    def alone(self) -> float:
        """The vulnerability if the target's report can be told from the others: E max_x w[x, report]."""
        return float(self.posteriors.max(axis=0) @ self.reports)

    def merged(self, singles: Sequence[int]) -> Self:
        """Return what is left to a guesser who tells only the reports in `singles` apart from the rest.

        Of the other values' posteriors, which are then proportional, only the largest is kept.
        """
        rest = np.setdiff1d(np.arange(self.reports.size), singles)
        values = [*singles, int(rest[np.argmax(self.frequencies[rest])])]
        joint = self.posteriors[values] * self.reports
        grouped = np.column_stack([joint[:, list(singles)], joint[:, rest].sum(axis=1)])
        reports = np.append(self.reports[list(singles)], self.reports[rest].sum())
        frequencies = self.frequencies[values]
        return type(self)(n=self.n, frequencies=frequencies, reports=reports, posteriors=grouped / reports)

    @property
    def entries(self) -> float:
        """At most how many counts `expected_best` looks at: histograms within reach, times values."""
        within = math.prod(high - low + 1.0 for low, high in self._windows())
        histograms = math.lgamma(self.n + len(self.reports)) - math.lgamma(len(self.reports)) - math.lgamma(self.n + 1)
        return min(within, math.exp(min(histograms, 700.0))) * len(self.reports)

    def _windows(self) -> list[tuple[int, int]]:
        """Return the range of every count but the largest one's, the reports in ascending order of probability."""
        tail = _LOG_TAIL - math.log(self.reports.size)
        return [binomial.window(self.n, float(chance), tail) for chance in np.sort(self.reports)[:-1]]

    def expected_best(self) -> float:
        """Return E max_x Z_x over all histograms that matter. Relative error below `ACCURACY`.

        The histograms' law is a chain of binomials: one count after the other, the largest is what is left.
        """
        order = np.argsort(self.reports)
        reports = self.reports[order]
        counts, left, mass = np.zeros((1, 0)), np.array([float(self.n)]), np.ones(1)
        for axis, (low, high) in enumerate(self._windows()):
            many = np.maximum(np.minimum(high, left) - low + 1, 0.0).astype(np.int64)
            parent = np.repeat(np.arange(left.size), many)
            count = low + np.arange(parent.size, dtype=np.float64) - np.repeat(np.cumsum(many) - many, many)
            chance = min(1.0, float(reports[axis] / reports[axis:].sum()))
            mass = mass[parent] * binomial.pmf(count, left[parent], chance)
            kept = mass > _NEGLIGIBLE
            mass, left = mass[kept], (left[parent] - count)[kept]
            counts = np.column_stack([counts[parent], count])[kept]
        means = np.column_stack([counts, left]) @ (self.posteriors[:, order] / self.n).T
        return min(1.0, float(mass @ means.max(axis=1)))

    def affordable_singles(self, limit: float) -> list[int]:
        """Return the reports whose values have the highest posteriors there, as many as fit in `limit` entries."""
        order = np.argsort(-self.posteriors.max(axis=0) * self.reports, kind="stable")
        chosen: list[int] = []
        for report in itertools.islice(order.tolist(), self.reports.size - 1):
            if self.merged([*chosen, report]).entries > limit:
                break
            chosen.append(report)
        return chosen


def two_values(law: Symmetric, n: int, frequencies: Floats, dummies: int) -> float:
    """Return sum_s max_x f_x P(s ones | target holds x) for k = 2 with uniform dummies, s within reach."""
    truth, lie = float(law.truth), float(law.lie)
    pmf = _window(n - 1, lie + float(law.theta) * float(frequencies[1]))
    if dummies:
        from scipy.signal import fftconvolve  # noqa: PLC0415 - a quarter of the time that `hushuffle assess` starts in

        pmf = np.maximum(fftconvolve(pmf, _window(dummies, 0.5)), 0.0)
    zero, one = np.append(pmf, 0.0), np.append(0.0, pmf)  # the target's report is 0, 1
    weights = frequencies[0] * (truth * zero + lie * one), frequencies[1] * (lie * zero + truth * one)
    return float(np.maximum(*weights).sum())


def _window(trials: int, chance: float) -> Floats:
    low, high = binomial.window(trials, chance, _LOG_TAIL)
    if high - low > WINDOW_LIMIT:
        message = f"{trials:,} reports take {high - low:.0e} steps. Ask for a smaller n."
        raise NumericalError(message)
    return binomial.pmf(np.arange(low, high + 1), trials, chance)
