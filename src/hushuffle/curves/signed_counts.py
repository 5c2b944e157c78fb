"""A certified lower end for k >= 3 with dummies: the difference of two counts as a test.

All others hold a third value c, d dummies are uniform. Let R be the reports at a minus those at b: each
of the n - 1 others adds +1 or -1 with probability nu each, each dummy with probability 1/k, the target +1 with
mu and -1 with nu (value a) or the other way round (value b). For every threshold t,

    delta(eps) >= P(R >= t | a) - e**eps P(R >= t | b) .

Source: docs/theory/datasets.md, Theorem 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.tilted_sum import Steps, TiltedSum

_TESTS: Final = 48
_FEW: Final = 40


@dataclass(frozen=True, kw_only=True)
class SignedCounts:
    """n people under k-RR, all others at a third value, and d uniform dummies."""

    k: int
    n: int
    truth: float
    lie: float
    dummies: int
    theta: float | None = None  # truth - lie, where it is known more accurately

    def lower(self, epsilon: float) -> float:
        """Return a lower end of the divergence at epsilon.

        >>> round(SignedCounts(k=4, n=1, truth=0.7, lie=0.1, dummies=0).lower(0.0), 9)
        0.6
        """
        lie, excess = self.lie, math.expm1(epsilon)
        gap, other = self.truth - lie if self.theta is None else self.theta, (self.k - 1) * lie
        total, variance = self.n - 1 + self.dummies, 2 * ((self.n - 1) * lie + self.dummies / self.k)
        tests = self._tests(epsilon, total, variance)
        steps = (
            Steps(count=np.full_like(tests, self.n - 1), plus=lie, minus=lie),
            Steps(count=np.full_like(tests, self.dummies), plus=1 / self.k, minus=1 / self.k),
        )
        law = TiltedSum.of(steps, np.maximum(tests / (variance + 1), 2 / (math.sqrt(variance) + 1)))
        # P(R >= t) is P(X >= t + 1) + (mu or nu) P(X = t - 1) + (1 - nu or 1 - mu) P(X = t), X without the target.
        weights, doubt = (gap - excess * other, gap - excess * lie), 8 * EPS * (gap + excess * other)
        value, error = law.difference(tests, weights, excess, doubt)
        # Another test, decisive for large epsilon: nobody and no dummy reports b.
        empty = math.exp((self.n - 1) * math.log1p(-lie) + self.dummies * math.log1p(-1 / self.k))
        absent = empty * (weights[0] - doubt) * (1 - 8 * EPS * (total + 1))
        return max(0.0, float(np.max(value - error)), absent)

    def _tests(self, epsilon: float, total: int, variance: float) -> Floats:
        """Return thresholds t to try: all of them if few, else around the best one for a Gaussian R."""
        if total <= _FEW:
            return np.arange(-total, total + 2, dtype=np.float64)
        middle, reach = epsilon * variance / (2 * (self.truth - self.lie)), math.sqrt(variance)
        tests = np.unique(np.floor(middle + np.linspace(-0.8, 0.8, _TESTS) * reach))
        return np.unique(np.clip(tests, -total, total + 1))
