"""Binary randomized response, shuffled: the exact hockey-stick divergence for any composition.

The others hold `ones` ones and `zeros` zeros; with d dummies the number of reported ones among
them is X = Bin(ones, mu) * Bin(zeros, nu) * Bin(d, 1/2), of pmf f. The target reports one with
probability mu (value 1) or nu (value 0), so with a = mu - e**eps nu and b = e**eps - 1

    HS_eps(value 1 || value 0) = max over u of  a f(u) - b P(X > u).

X is a sum of independent coins, so f is log-concave and the best u is the mode of the law
tilted by r = (a + b)/a, which lies within one of that law's mean (Darroch 1964): three candidates
are enough. Both terms come from `TiltedSum`, certified.

Source: docs/theory/two-values.md, Theorem 1 and Lemma 2; J. N. Darroch 1964 (mode and mean).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.tilted_sum import Steps, TiltedSum, moments


@dataclass(frozen=True, kw_only=True)
class Compositions:
    """Several datasets of the others: `ones` and `zeros`, shape (B,), plus `dummies` uniform reports each."""

    ones: npt.NDArray[np.float64]
    zeros: npt.NDArray[np.float64]
    dummies: int


def hockey_stick(
    others: Compositions, *, truth: float, lie: float, epsilon: float, theta: float | None = None
) -> tuple[Floats, Floats]:
    """Return certified (lower, upper) ends of HS_epsilon(value 1 || value 0), each of shape (B,).

    The other direction at `ones` ones is this one at `zeros` ones, by symmetry.

    Args:
        others: the compositions.
        truth: mu, probability of the true report.
        lie: nu = 1 - mu.
        epsilon: >= 0, in nats.
        theta: truth - lie, where it is known more accurately than that difference.

    >>> one = Compositions(ones=np.array([0.0]), zeros=np.array([0.0]), dummies=0)
    >>> hockey_stick(one, truth=0.75, lie=0.25, epsilon=0.0)[1].round(12).tolist()
    [0.5]
    """
    gap, b = truth - lie if theta is None else theta, float(np.expm1(epsilon))
    a, doubt = gap - b * lie, 4 * EPS * (gap + b * lie)
    if a <= 0:
        return np.zeros(others.ones.shape), np.full(others.ones.shape, doubt if a > -doubt else 0.0)
    coins = (
        Steps(count=others.ones, plus=truth),
        Steps(count=others.zeros, plus=lie),
        Steps(count=np.full_like(others.ones, others.dummies), plus=0.5),
    )
    total = others.ones + others.zeros + others.dummies
    best, variance = moments(coins, np.full_like(total, np.log1p(b / a)))
    # The tail sum needs some tilt of its own when epsilon is small; the candidates stay those of `best`.
    law = TiltedSum.of(coins, np.maximum(np.log1p(b / a), 2 / (np.sqrt(variance) + 1)))
    low, high = np.zeros_like(total), np.zeros_like(total)
    for shift in (-1, 0, 1, 2):
        u = np.clip(np.floor(best) + shift, 0, total)
        value, error = law.difference(u, (a, 0.0), b, doubt)
        low, high = np.maximum(low, value - error), np.maximum(high, value + error)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
