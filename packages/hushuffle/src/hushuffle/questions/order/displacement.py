"""How far records move in a Mallows shuffle: the distribution of |tau(i) - i| for a random place i.

Kendall's distance: a items are smaller and b items are larger than item i. The probability that r smaller items follow
item i and l larger items precede item i is exactly

    q**(r + l + r l) [a over r] [b over l] [a - r + l]! [b - l + r]! / [a + b + 1]!

with q-numbers [m] = (1 - q**m)/(1 - q), q = e**-theta. Item i takes part in r + l inversions; the l larger items before
it and the r smaller items after it have r l inversions among themselves. The choice of these items gives the
q-binomials; the orders before and after item i give the q-factorials. Item i then moves by l - r places. If theta is
far below 1 and far above 1/n, the move is nearly logistic with scale 1/theta; its mean distance is 2 ln 2 / theta.

Hamming distance: a displaced item is equally likely at each other place.

Source: the argument above; Gnedin and Olshanski 2012 have the limit n = infinity; Diaconis and Graham 1977:
inversions <= sum of |tau(i) - i| <= 2 inversions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from hushuffle import _checks
from hushuffle.mechanisms.shufflers._mallows_laws import CERTAIN, frozen_law
from hushuffle.mechanisms.shufflers.mallows import Distance, checked_distance, dispersion, several_mallows
from hushuffle.model import Bound, Citation
from hushuffle.randomness import Randomness

Floats = npt.NDArray[np.float64]

_EXACT: Final = 500
"""Maximum number of records for which the Kendall distribution is summed exactly (about a second)."""

_STILL: Final = 745.0
"""From this theta on e**-theta is zero in floats."""

_SOURCES: Final = (
    Citation(
        key="diaconis1977",
        text="P. Diaconis, R. L. Graham, Spearman's footrule as a measure of disarray, JRSS B 39 (1977)",
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Displacement:
    """The distribution of the number of places that a record moves: `law[d]`, shape (n,), is the probability of d.

    `mean` is exact (up to a relative rounding of 1e-9), or a simulated interval; in this case `law` is simulated, too.
    """

    mean: Bound
    law: Floats

    def quantile(self, share: float) -> int:
        """Return the smallest d such that at least a fraction `share` of the records move at most d places.

        Raises:
            InvalidInputError: share outside [0, 1].

        >>> displacement(n=4, theta=0.0).quantile(0.5)
        1
        """
        level = _checks.probability("share", share)
        return min(int(np.searchsorted(np.cumsum(self.law), level * (1 - 1e-12))), self.law.size - 1)

    def __repr__(self) -> str:
        return f"Displacement(mean={self.mean})"


def displacement(
    *,
    n: int,
    theta: float,
    distance: Distance = "kendall",
    samples: int = 20,
    confidence: float = 0.99,
    rng: Randomness | None = None,
) -> Displacement:
    """Return how far the records of n people move in a Mallows shuffle; the result is the same for every reference.

    The result is exact for Hamming, theta = 0 or n <= 500; otherwise simulated with `samples` permutations. The
    simulated mean has an approximate Student interval. It is cut to the proven range, from the expected number of
    inversions per record to twice this number.

    Args:
        n: number of people, >= 1.
        theta: dispersion, >= 0; math.inf is allowed.
        distance: "kendall" or "hamming".
        samples: number of simulated permutations, >= 2.
        confidence: confidence of the simulated interval, in (0, 1).
        rng: source of randomness; default: `secure()`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/order.md, Theorem 11; Gnedin and Olshanski 2012; Diaconis and Graham 1977.

    >>> moved = displacement(n=200, theta=0.1)
    >>> print(moved.mean, moved.quantile(0.5), moved.quantile(0.95))
    12.47 places (exact) 10 34
    """
    size, level = _checks.integer("n", n, low=1, high=10**9), dispersion(theta)
    name = checked_distance(distance)
    draws = _checks.integer("samples", samples, low=2)
    trust = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    if name == "hamming" or level == 0 or level >= _STILL:
        return _exactly(_equally(size, min(level, _STILL)))
    if size <= _EXACT:
        return _exactly(_kendall(size, level))
    return _simulated(size, level, draws, trust, rng)


def mean_inversions(n: int, theta: float) -> float:
    """Return the mean number of inversions of a Kendall-Mallows shuffle of n people with dispersion theta.

    >>> mean_inversions(5, 0.0), round(mean_inversions(2, 1.0), 12) == round(1 / (1 + math.e), 12)
    (5.0, True)
    """
    sizes = np.arange(1, n + 1, dtype=np.float64)
    if theta == 0:
        return float(((sizes - 1) / 2).sum())
    x = np.minimum(theta * sizes, _STILL)
    # Near 0 the two fractions cancel: their power series instead.
    near = x < 1e-2
    small = (sizes - 1) / 2 - theta * (sizes**2 - 1) / 12 + theta**3 * (sizes**4 - 1) / 720
    far = np.where(near, 1.0, x)
    large = math.exp(-theta) / -math.expm1(-theta) - sizes * np.exp(-far) / -np.expm1(-far)
    return float(np.where(near, small, large).sum())


def _exactly(law: Floats) -> Displacement:
    return Displacement(mean=Bound.exact(float(law @ np.arange(law.size)), unit="places"), law=law)


def _equally(n: int, theta: float) -> Floats:
    """Return the displacement distribution if a displaced item is equally likely at each other place."""
    if n == 1:
        return np.ones(1)
    moved = 0.0
    if theta < CERTAIN:
        first, cumulative = frozen_law(n, theta)
        before = 0
        for free, upto in zip(range(n - first, 0, -1), cumulative, strict=False):
            # Of `free` items permuted uniformly one is expected to stay.
            moved, before = moved + (upto - before) / cumulative[-1] * (free - 1) / n, upto
    gaps = np.arange(n, dtype=np.float64)
    law: Floats = moved * 2 * (n - gaps) / (float(n) * (n - 1))
    law[0] = 1 - moved
    return law


def _kendall(n: int, theta: float) -> Floats:
    """Return the displacement distribution, averaged over all items; items i and n - 1 - i have equal ones."""
    steps = np.arange(1, n + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.expm1(-theta * steps) / math.expm1(-theta)))])
    law = np.zeros(n)
    for a in range((n + 1) // 2):
        b = n - 1 - a
        r, l = np.arange(a + 1)[:, None], np.arange(b + 1)[None, :]  # noqa: E741
        chosen = logs[a] - logs[r] - logs[a - r] + logs[b] - logs[l] - logs[b - l]
        ordered = logs[a - r + l] + logs[b - l + r] - logs[n]
        chance = np.exp(chosen + ordered - theta * (r + l + r * l))
        weight = (1.0 if a == b else 2.0) / n
        law += weight * np.bincount(np.abs(l - r).ravel(), weights=chance.ravel(), minlength=n)
    return law


def _simulated(n: int, theta: float, samples: int, confidence: float, rng: Randomness | None) -> Displacement:
    seen, means, places = np.zeros(n), np.empty(samples), np.arange(n)
    orders = several_mallows(n, theta=theta, distance="kendall", samples=samples, rng=rng)
    for draw, order in enumerate(orders):
        moved = np.abs(order - places)
        seen += np.bincount(moved, minlength=n)
        means[draw] = moved.mean()
    half = float(stdtrit(samples - 1, (1 + confidence) / 2)) * float(means.std(ddof=1)) / math.sqrt(samples)
    least = mean_inversions(n, theta) / n
    low, high = (min(max(float(means.mean()) + side, least), 2 * least) for side in (-half, half))
    mean = Bound(lower=low, upper=high, kind="estimate", unit="places", sources=_SOURCES, confidence=confidence)
    return Displacement(mean=mean, law=seen / (samples * n))
