"""K-means, run over points: with every message, and under a plan; the Rand index of what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.plans import CentroidNoise, Plan
from hushuffle.plans.centroids import Floats, Integers, Points, means, nearest, noisy_means, sums_and_counts
from hushuffle.queries.exchange import Exchange, exchange
from hushuffle.randomness import Randomness, secure


@dataclass(frozen=True, kw_only=True, eq=False)
class KMeansRun:
    """One run of a k-means plan: `centroids` after each iteration, shape (I + 1, K, dimensions), the first included."""

    centroids: Floats = field(repr=False)
    exchanges: tuple[Exchange, ...]

    @property
    def used(self) -> tuple[int, ...]:
        """Number of tuples effectively used, for each iteration."""
        return tuple(int(np.count_nonzero(one.used)) for one in self.exchanges)


def plain_k_means(points: Points, initial: Points, *, iterations: int) -> Floats:
    """Return the centroids after each iteration without any protection, shape (I + 1, K, dimensions).

    >>> plain_k_means(np.array([[0.0], [2.0], [9.0]]), np.array([[1.0], [5.0]]), iterations=1)[-1].tolist()
    [[1.0], [9.0]]
    """
    centroids = [np.asarray(initial, dtype=np.float64)]
    for _ in range(_checks.integer("iterations", iterations, low=1)):
        sums, counts = sums_and_counts(points, nearest(points, centroids[-1]), len(initial))
        centroids.append(means(sums, counts, centroids[-1]))
    return np.stack(centroids)


def run_k_means(
    plan: Plan, points: Points, initial: Points, *, noise: CentroidNoise | None = None, rng: Randomness | None = None
) -> KMeansRun:
    """Run `plan`, made by `hushuffle.plans.k_means`, over `points`, one row for each person.

    Redirected messages carry no data unless they fall on their own target; where centroids are released with
    noise, not even then.

    Args:
        plan: the plan.
        points: shape (n, dimensions).
        initial: public first centroids, chosen without looking at the points, shape (K, dimensions).
        noise: what the plan was made with.
        rng: defaults to `secure()`.

    Raises:
        InvalidInputError: another number of points or centroids than the plan's, or other noise.

    Source: docs/theory/traffic.md, Theorem 7.

    >>> from hushuffle.plans import k_means
    >>> from hushuffle.randomness import reproducible
    >>> plan = k_means(people=3, centroids=2, iterations=1, variant="hidden", sigma=0.0)
    >>> run = run_k_means(plan, np.array([[0.0], [2.0], [9.0]]), np.array([[1.0], [5.0]]), rng=reproducible(1))
    >>> run.centroids[-1].tolist(), run.used
    ([[1.0], [9.0]], (3,))
    """
    source = secure() if rng is None else rng
    rounds = [cluster for cluster in plan.clusters if cluster.reads]
    k = rounds[0].targets
    if len(points) != plan.data[0].items:
        _checks.reject("points", f"{plan.data[0].items:,}, one for each person", f"<{len(points):,}>")
    if initial.shape != (k, points.shape[1]):
        _checks.reject("initial", f"of shape {(k, points.shape[1])}", f"<shape {initial.shape}>")
    planned = {(one.epsilon, one.rho) for one in plan.releases}
    costs = [] if noise is None else [noise.release(name="centroids", start="update")]
    if {(one.epsilon, one.rho) for one in costs} != planned:
        _checks.reject("noise", "what the plan was made with", noise)
    held = points if noise is None else noise.shorten(points)
    centroids, exchanges = [np.asarray(initial, dtype=np.float64)], []
    for cluster in rounds:
        codes = nearest(held, centroids[-1])
        run = exchange(cluster, codes, only_honest=plan.coins_known(cluster), rng=source)
        sums, counts = sums_and_counts(held, codes, k, used=run.used)
        if noise is None:
            centroids.append(means(sums, counts, centroids[-1]))
        else:
            centroids.append(noisy_means(sums, counts, centroids[-1], noise=noise, rng=source))
        exchanges.append(run)
    return KMeansRun(centroids=np.stack(centroids), exchanges=tuple(exchanges))


def rand_index(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the Rand index of two labellings of the same items: the share of pairs on which they agree.

    A pair agrees if it is together in both or apart in both. Labels are integers >= 0, shape (n,), n >= 2.

    Raises:
        InvalidInputError: not two labellings of the same two or more items.

    Source: Rand 1971.

    >>> rand_index([0, 0, 1, 1], [2, 2, 2, 0])
    0.5
    """
    one, other = (_labels(name, labels) for name, labels in (("first", first), ("second", second)))
    if one.size != other.size or one.size < 2:
        _checks.reject("second", "of the same 2 or more items", f"<{one.size:,} and {other.size:,} items>")
    pairs = one.size * (one.size - 1) // 2
    both, alone, other_alone = (_pairs(labels) for labels in (one * 2**31 + other, one, other))
    return (pairs + 2 * both - alone - other_alone) / pairs


def _labels(name: str, labels: npt.ArrayLike) -> Integers:
    return _checks.codes(name, labels, k=2**31)


def _pairs(labels: Integers) -> int:
    """Return how many pairs have the same label."""
    counts = np.unique(labels, return_counts=True)[1]
    return int((counts * (counts - 1)).sum()) // 2
