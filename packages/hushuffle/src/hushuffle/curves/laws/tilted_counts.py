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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.tilted_sum import Steps, TiltedSum, moments

_TESTS: Final = 48
_FEW: Final = 40

AHEAD: Final = 8
"""Number of epsilons for which bounds over many compositions are computed together."""

_PART: Final = 4
"""Number of neighbouring blocks that share a second bound."""

_NEAR: Final = 2.0
"""Datasets whose standard deviations differ by at most this factor share a tilt, which takes less time."""


@dataclass(frozen=True, kw_only=True)
class Compositions:
    """Datasets of other people: numbers of `ones`, `zeros` and `dummies` (or one for all), shape (B,) or (R, M)."""

    ones: npt.NDArray[np.floating]
    zeros: npt.NDArray[np.floating]
    dummies: npt.NDArray[np.floating] | float


def hockey_stick(
    others: Compositions, *, truth: float, lie: float, epsilon: Floats | float, theta: float | None = None
) -> tuple[Floats, Floats]:
    """Certified bounds on the hockey-stick divergence of the target's value 1 from value 0, in the shape of `others`.

    By symmetry, the divergence of value 0 from value 1 is the same with `ones` and `zeros` exchanged. `epsilon` is one
    number, or has shape (R, 1). `theta` is truth - lie, if it is known more accurately than the difference of floats.

    >>> one = Compositions(ones=np.array([0.0]), zeros=np.array([0.0]), dummies=0)
    >>> hockey_stick(one, truth=0.75, lie=0.25, epsilon=0.0)[1].round(12).tolist()
    [0.5]
    """
    if not others.ones.size:
        return np.zeros(others.ones.shape), np.zeros(others.ones.shape)
    gap, b = truth - lie if theta is None else theta, np.expm1(np.atleast_2d(epsilon))
    a, doubt = gap - b * lie, 4 * EPS * (gap + b * lie)
    positive, otherwise = a > 0, np.where(a > -doubt, doubt, 0.0)
    a = np.where(positive, a, 1.0)
    chances = (truth, lie, 0.5) if np.any(others.dummies) else (truth, lie)
    counts = [np.atleast_2d(others.ones), np.atleast_2d(others.zeros)]
    counts += [others.dummies + np.zeros_like(counts[0])] * (len(chances) - 2)
    best, variance = moments([Steps(count=n, plus=p) for n, p in zip(counts, chances, strict=True)], np.log1p(b / a))
    # If epsilon is small, the tail sum needs a larger tilt; the candidates for u still come from `best`.
    spread = np.sqrt(variance)
    tilt, shape = np.maximum(np.log1p(b / a), 2 / (spread + 1)), spread.shape
    weights = [a, b, doubt]
    if np.all(spread.max(axis=1) <= _NEAR * spread.min(axis=1)):
        tilt = tilt.min(axis=1, keepdims=True)
    else:  # each case is a row of its own
        tilt, best, *counts = (each.reshape(-1, 1) for each in (tilt, best, *counts))
        weights = [np.broadcast_to(each, shape).reshape(-1, 1) for each in weights]
    law = TiltedSum.of([Steps(count=n, plus=p) for n, p in zip(counts, chances, strict=True)], tilt)
    first = np.clip(np.round(best) - 1, 0, law.steps)
    value, error = law.differences(first, 3, (weights[0], 0.0), weights[1], weights[2])
    low, high = ((value + sign * error).max(axis=-1).reshape(shape) for sign in (-1, 1))
    low, high = np.where(positive, np.clip(low, 0.0, 1.0), 0.0), np.where(positive, np.clip(high, 0.0, 1.0), otherwise)
    return low.reshape(others.ones.shape), high.reshape(others.ones.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Blocks y .. y + `doubt` of compositions of n - 1 other people, where y people have value 1.

    `starts` has y for each block, in groups of neighbouring blocks, shape (groups, blocks). For a block the adversary
    is given the reports of b = `doubt` people: delta_n(any of the block) <= delta_{n-b}(y ones, n - 1 - y - b zeros).
    """

    n: int
    dummies: int
    starts: Floats
    doubt: int

    @staticmethod
    def worst(
        cases: Sequence[tuple[Blocks, float]], *, truth: float, lie: float, theta: float, goal: float = 0.0
    ) -> Floats:
        """Upper bounds on the divergence at the epsilon of each case, over all its blocks, shape (cases,).

        All cases have arrays of one shape. The bound is that of the worst block, if bounds for groups exclude others;
        with a `goal`, it is at least `goal`.
        """
        starts = np.stack([blocks.starts for blocks, _ in cases])
        columns = [(blocks.n, blocks.dummies, blocks.doubt, epsilon) for blocks, epsilon in cases]
        people, dummies, doubts, epsilons = (column[:, None] for column in np.array(columns, dtype=np.float64).T)

        def above(ones: Floats, doubt: Floats, rows: npt.NDArray[np.intp]) -> Floats:
            zeros = np.maximum(people[rows] - 1 - ones - doubt[rows], 0.0)
            others = Compositions(ones=ones, zeros=zeros, dummies=dummies[rows])
            return np.asarray(hockey_stick(others, truth=truth, lie=lie, epsilon=epsilons[rows], theta=theta)[1])

        every, blocks = np.arange(len(cases)), starts.shape[2]
        high = above(starts[:, :, 0], blocks * (doubts + 1) - 1, every)
        if blocks == 1:
            return np.asarray(high.max(axis=1))
        first = high.argmax(axis=1)
        largest = np.maximum(above(starts[every, first], doubts, every).max(axis=1), goal)
        high[every, first] = 0.0
        rows, groups = np.nonzero(high > largest[:, None])
        parts = np.pad(starts[rows, groups], ((0, 0), (0, -blocks % _PART)), mode="edge")
        parts = parts.reshape(rows.size, -(-blocks // _PART), _PART)
        left, part = np.nonzero(above(parts[:, :, 0], _PART * (doubts + 1) - 1, rows) > largest[rows, None])
        np.maximum.at(largest, rows[left], above(parts[left, part], doubts, rows[left]).max(axis=1))
        return np.asarray(largest)


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
        tests = tests[:, None]
        steps = (
            Steps(count=np.full_like(tests, self.n - 1), plus=lie, minus=lie),
            Steps(count=np.full_like(tests, self.dummies), plus=1 / self.k, minus=1 / self.k),
        )
        law = TiltedSum.of(steps, np.maximum(tests / (variance + 1), 2 / (math.sqrt(variance) + 1)))
        # P(R >= t) is P(X >= t + 1) + (mu or nu) P(X = t - 1) + (1 - nu or 1 - mu) P(X = t), X without the target.
        weights, doubt = (gap - excess * other, gap - excess * lie), 8 * EPS * (gap + excess * other)
        value, error = law.differences(tests, 1, weights, excess, doubt)
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
