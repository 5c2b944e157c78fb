"""Counts of two values among shuffled reports: the exact divergence for k = 2, a lower bound for k >= 3 with dummies.

k = 2, any composition. `ones` other people have value 1, and `zeros` have value 0. With d dummies the number X of
reported ones among these is Bin(ones, mu) + Bin(zeros, nu) + Bin(d, 1/2), with probability mass function f. The target
reports 1 with probability mu (if its value is 1) or nu (if its value is 0). With A = mu - e**eps nu, B = e**eps - 1,

    HS_eps(value 1 || value 0) = max over u of  A f(u) - B P(X > u).

X is a sum of independent Bernoulli trials, so f is log-concave, and the best u is the mode of the distribution of X
tilted by r = (A + B)/A. The mode differs from the tilted mean by less than one (Darroch 1964), so three candidates are
enough. `TiltedSum` computes both terms with certified errors.

k >= 3, a lower bound: all others have a third value c, and d dummies are uniform. The target's value is a or b. R is
the number of reports at a minus the number at b. Each of the n - 1 others adds +1 or -1 with probability nu each, and
each dummy with probability 1/k each. The target adds +1 with probability mu and -1 with probability nu if its value is
a; if its value is b, the probabilities are exchanged. For every threshold t,

    delta(eps) >= P(R >= t | a) - e**eps P(R >= t | b) .

Source: docs/theory/two-values.md, Theorem 1 and Lemma 2; J. N. Darroch 1964 (mode and mean).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.tilted_sum import Steps, TiltedSum, moments

_TESTS: Final = 48
_FEW: Final = 40

_NEAR: Final = 1.5
"""Datasets whose best tilts differ by at most this factor use the largest one, which takes less time."""


@dataclass(frozen=True, kw_only=True)
class Compositions:
    """Several datasets of other people: numbers of `ones`, `zeros` and `dummies` (or one for all), shape (B,)."""

    ones: npt.NDArray[np.float64]
    zeros: npt.NDArray[np.float64]
    dummies: npt.NDArray[np.float64] | int


def hockey_stick(
    others: Compositions, *, truth: float, lie: float, epsilon: float, theta: float | None = None
) -> tuple[Floats, Floats]:
    """Certified bounds on the hockey-stick divergence of the target's value 1 from value 0, each of shape (B,).

    By symmetry, the divergence of value 0 from value 1 is the same with `ones` and `zeros` exchanged. `theta` is
    truth - lie, if it is known more accurately than the difference of the two floats.

    >>> one = Compositions(ones=np.array([0.0]), zeros=np.array([0.0]), dummies=0)
    >>> hockey_stick(one, truth=0.75, lie=0.25, epsilon=0.0)[1].round(12).tolist()
    [0.5]
    """
    gap, b = truth - lie if theta is None else theta, float(np.expm1(epsilon))
    a, doubt = gap - b * lie, 4 * EPS * (gap + b * lie)
    if a <= 0 or not others.ones.size:
        return np.zeros(others.ones.shape), np.full(others.ones.shape, doubt if a > -doubt else 0.0)
    coins: tuple[Steps, ...] = (Steps(count=others.ones, plus=truth), Steps(count=others.zeros, plus=lie))
    if np.any(others.dummies):
        coins += (Steps(count=others.dummies + np.zeros_like(others.ones), plus=0.5),)
    total = others.ones + others.zeros + others.dummies
    best, variance = moments(coins, np.full_like(total, np.log1p(b / a)))
    # If epsilon is small, the tail sum needs a larger tilt; the candidates for u still come from `best`.
    tilt = np.maximum(np.log1p(b / a), 2 / (np.sqrt(variance) + 1))
    if float(tilt.max()) <= _NEAR * float(tilt.min()):
        tilt = np.full_like(tilt, tilt.max())
    law = TiltedSum.of(coins, tilt)
    low, high = np.zeros_like(total), np.zeros_like(total)
    for value, error in law.differences(np.clip(np.round(best) - 1, 0, total), 3, (a, 0.0), b, doubt):
        low, high = np.maximum(low, value - error), np.maximum(high, value + error)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class SignedCounts:
    """Lower bounds for shuffled k-ary randomized response with dummies, if all others have a third value."""

    k: int
    n: int
    truth: float
    lie: float
    dummies: int
    theta: float | None = None  # truth - lie, if it is known more accurately than that difference of floats

    def lower(self, epsilon: float) -> float:
        """Lower bound on delta, the best over several thresholds.

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
        # Another test, better than thresholds for large epsilon: no other person and no dummy reports b.
        empty = math.exp((self.n - 1) * math.log1p(-lie) + self.dummies * math.log1p(-1 / self.k))
        absent = empty * (weights[0] - doubt) * (1 - 8 * EPS * (total + 1))
        return max(0.0, float(np.max(value - error)), absent)

    def _tests(self, epsilon: float, total: int, variance: float) -> Floats:
        """The thresholds t to try: all if there are few, else those near the best one for a Gaussian R."""
        if total <= _FEW:
            return np.arange(-total, total + 2, dtype=np.float64)
        middle, reach = epsilon * variance / (2 * (self.truth - self.lie)), math.sqrt(variance)
        tests = np.unique(np.floor(middle + np.linspace(-0.8, 0.8, _TESTS) * reach))
        return np.unique(np.clip(tests, -total, total + 1))
