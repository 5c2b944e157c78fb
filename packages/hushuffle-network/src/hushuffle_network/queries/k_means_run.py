"""Run k-means over points, without protection and under a plan, and compare the results; the Rand index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.model import Cell, Chart, Series, Table, number
from hushuffle.plans import CentroidNoise, Plan
from hushuffle.plans.centroids import Points, means, nearest, noisy_means, sums_and_counts
from hushuffle.randomness import Randomness, secure
from hushuffle_network.queries.exchange import Exchange, exchange
from hushuffle_network.queries.query import Records, Simulated

_PLAIN: Final = "without protection"
_PLAN: Final = "under the plan"


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One iteration, plain and under the plan: mean squared distances, agreement, Rand indices with the labels."""

    number: int
    distance: tuple[float, float]
    alike: float
    right: tuple[float, float] | None
    used: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class KMeansRun:
    """One run of a k-means plan: `centroids` after each iteration, shape (I + 1, K, dimensions), the first included."""

    centroids: Floats = field(repr=False)
    exchanges: tuple[Exchange, ...]

    @property
    def used(self) -> tuple[int, ...]:
        """Number of records that count in the result, for each iteration."""
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
    """Run `plan`, built by `hushuffle.plans.k_means`, over `points`, one row for each person.

    Redirected messages carry no data unless they reach their own target. If centroids are released with noise, they
    never carry data.

    Args:
        plan: the plan.
        points: shape (n, dimensions).
        initial: public first centroids, chosen independently of the points, shape (K, dimensions).
        noise: the noise of the plan.
        rng: source of randomness (default: `secure()`).

    Raises:
        InvalidInputError: the number of points or centroids, or the noise, differs from the plan's.

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
        _checks.reject("noise", "that of the plan", noise)
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
    left, right = (_checks.codes(name, labels, k=2**31) for name, labels in (("first", first), ("second", second)))
    if left.size != right.size or left.size < 2:
        _checks.reject("second", "clusterings of the same 2 or more items", f"<{left.size:,} and {right.size:,} items>")
    pairs = left.size * (left.size - 1) // 2
    sizes = (np.unique(labels, return_counts=True)[1] for labels in (left * 2**31 + right, left, right))
    both, alone, other_alone = (int((size * (size - 1)).sum()) // 2 for size in sizes)
    return (pairs + 2 * both - alone - other_alone) / pairs


def compared(
    records: Records,
    centroids: Floats,
    *,
    exchanges: Sequence[Exchange] = (),
    tell: Callable[[float], None] = lambda _share: None,
) -> Simulated:
    """Return the centroids after each iteration, shape (I + 1, K, dimensions), compared with those of plain k-means.

    `exchanges`: the runs of the clusters, if available.
    """
    iterations = len(centroids) - 1
    plain = plain_k_means(records.rows, centroids[0], iterations=iterations)
    steps = []
    for place in range(iterations + 1):
        used = int(np.count_nonzero(exchanges[place - 1].used)) if place and exchanges else None
        steps.append(_step(place, records, plain[place], centroids[place], used))
        tell((place + 1) / (iterations + 1))
    return Simulated(
        exchanges=tuple(exchanges),
        answers=tuple(_answers(steps[-1], records)),
        tables=(_table(steps, records),),
        charts=tuple(_charts(steps, records)),
    )


def _step(place: int, records: Records, plain: Floats, ours: Floats, used: int | None) -> _Step:
    points, reference = records.rows, records.known
    labels = [nearest(points, centroids) for centroids in (plain, ours)]
    right = None
    if reference is not None:
        same = reference.points is points
        assigned = labels if same else [nearest(reference.points, centroids) for centroids in (plain, ours)]
        right = (rand_index(reference.labels, assigned[0]), rand_index(reference.labels, assigned[1]))
    distance = _distance(points, labels[0], plain), _distance(points, labels[1], ours)
    return _Step(number=place, distance=distance, alike=rand_index(labels[0], labels[1]), right=right, used=used)


def _distance(points: Points, labels: npt.NDArray[np.int64], centroids: Floats) -> float:
    """Return the mean of |x - c|^2 = |x|^2 - 2 x c + |c|^2 over the points x, where c is the centroid of x."""
    sums, counts = sums_and_counts(points, labels, len(centroids))
    squares = float(np.einsum("ij,ij->", points, points, dtype=np.float64))
    total = squares - 2 * float((sums * centroids).sum()) + float(counts @ (centroids**2).sum(axis=1))
    return max(total, 0.0) / len(points)


def _answers(last: _Step, records: Records) -> Iterator[str]:
    yield (
        f"After {last.number:,} iterations the clusters agree with those of plain k-means on "
        f"{number(100 * last.alike, up=False)} % of all pairs of points (Rand index {number(last.alike, up=False)})."
    )
    if last.right is not None and records.known is not None:
        yield (
            f"Rand index against {records.known.what}: {number(last.right[1])} under the plan, "
            f"{number(last.right[0])} without protection."
        )
    yield (
        f"Mean squared distance to the nearest centroid: {number(last.distance[1])} under the plan, "
        f"{number(last.distance[0])} without protection."
    )


def _table(steps: list[_Step], records: Records) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for step in steps:
        row: tuple[Cell, ...] = (step.number, "-" if step.used is None else step.used, *step.distance, step.alike)
        rows.append(row if step.right is None else (*row, *step.right))
    truth = () if records.known is None else ("plain against labels", "plan against labels")
    caption = (
        "Number of used records; mean squared distance to the nearest centroid; Rand index of the plan against "
        "plain k-means" + ("." if records.known is None else f", and of both against {records.known.what}.")
    )
    columns = ("iteration", "used", "plain distance", "plan distance", "Rand index", *truth)
    title = "Plain k-means and the plan, by iteration"
    return Table(key="iterations", title=title, caption=caption, columns=columns, rows=tuple(rows))


def _charts(steps: list[_Step], records: Records) -> Iterator[Chart]:
    rounds, chart = tuple(float(one.number) for one in steps), partial(Chart, x_label="iteration")
    distances = tuple(
        Series.through(name, rounds, tuple(one.distance[side] for one in steps))
        for side, name in enumerate((_PLAIN, _PLAN))
    )
    caption = "Mean squared distance of points to their nearest centroid; the first centroids are the same."
    title, label = "Fit of the centroids", "mean squared distance"
    yield chart(key="distance", title=title, caption=caption, y_label=label, series=distances)
    series = [Series.through("plan against plain", rounds, tuple(one.alike for one in steps))]
    for label, side in (("plain against labels", 0), ("plan against labels", 1)):
        values = tuple(one.right[side] for one in steps if one.right is not None)
        series += [Series.through(label, rounds, values)] if values else []
    labels = "" if records.known is None else f" Labels: {records.known.what}."
    caption = f"The share of pairs of points on which two clusterings agree.{labels}"
    yield chart(key="rand-index", title="Rand index", caption=caption, y_label="Rand index", series=tuple(series))
