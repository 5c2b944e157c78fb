"""K-means under a plan beside plain k-means from the same first centroids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.model import Cell, Chart, Series, Table, number
from hushuffle.plans import Plan
from hushuffle.plans.centroids import Floats, Points, nearest, sums_and_counts
from hushuffle.queries import Exchange, plain_k_means, rand_index, run_k_means
from hushuffle.queries.data import Records
from hushuffle.queries.results import Simulated
from hushuffle.randomness import Randomness
from hushuffle.specification import KMeansQuery

_PLAIN: Final = "without protection"
_PLAN: Final = "under the plan"


@dataclass(frozen=True, kw_only=True)
class _Step:
    """After one iteration: mean squared distance to the nearest centroid, plain and under the plan; how alike they are.

    `right` are the Rand indices against known labels, plain and under the plan.
    """

    number: int
    distance: tuple[float, float]
    alike: float
    right: tuple[float, float] | None
    used: int | None


def simulated_k_means(
    query: KMeansQuery, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]
) -> Simulated:
    """Return one run over the points, compared with plain k-means iteration by iteration."""
    assert records.points is not None
    assert records.initial is not None
    run = run_k_means(plan, records.points, records.initial, noise=query.centroid_noise(), rng=rng)
    tell(0.4)
    return compared(records, run.centroids, exchanges=run.exchanges, tell=lambda share: tell(0.4 + 0.6 * share))


def compared(
    records: Records,
    centroids: Floats,
    *,
    exchanges: Sequence[Exchange] = (),
    tell: Callable[[float], None] = lambda _share: None,
) -> Simulated:
    """Return centroids after each iteration, shape (I + 1, K, dimensions), beside those of plain k-means.

    `exchanges`: what became of the tuples, where that is known.
    """
    assert records.points is not None
    iterations = len(centroids) - 1
    plain = plain_k_means(records.points, centroids[0], iterations=iterations)
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
    points, known = records.points, records.known
    assert points is not None
    labels = [nearest(points, centroids) for centroids in (plain, ours)]
    right = None
    if known is not None:
        same = known.points is points
        found = labels if same else [nearest(known.points, centroids) for centroids in (plain, ours)]
        right = (rand_index(known.labels, found[0]), rand_index(known.labels, found[1]))
    return _Step(
        number=place,
        distance=(_distance(points, labels[0], plain), _distance(points, labels[1], ours)),
        alike=rand_index(labels[0], labels[1]),
        right=right,
        used=used,
    )


def _distance(points: Points, labels: npt.NDArray[np.int64], centroids: Floats) -> float:
    """Return the mean of |x - c|^2 = |x|^2 - 2 x c + |c|^2 over the points x, c the centroid of each."""
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
    for one in steps:
        row: tuple[Cell, ...] = (one.number, "-" if one.used is None else one.used, *one.distance, one.alike)
        rows.append(row if one.right is None else (*row, *one.right))
    truth = () if records.known is None else ("plain against labels", "plan against labels")
    return Table(
        key="iterations",
        title="Plain k-means and the plan, by iteration",
        caption=(
            "Tuples that were used; mean squared distance to the nearest centroid; Rand index of the plan's clusters "
            "against the plain ones"
            + ("." if records.known is None else f", and of both against {records.known.what}.")
        ),
        columns=("iteration", "used", "plain distance", "plan distance", "Rand index", *truth),
        rows=tuple(rows),
    )


def _charts(steps: list[_Step], records: Records) -> Iterator[Chart]:
    rounds = tuple(float(one.number) for one in steps)
    yield Chart(
        key="distance",
        title="Fit of the centroids",
        caption="Mean squared distance of the points to their nearest centroid, from the same first centroids.",
        x_label="iteration",
        y_label="mean squared distance",
        series=(
            Series.through(_PLAIN, rounds, tuple(one.distance[0] for one in steps)),
            Series.through(_PLAN, rounds, tuple(one.distance[1] for one in steps)),
        ),
    )
    series = [Series.through("plan against plain", rounds, tuple(one.alike for one in steps))]
    for label, side in (("plain against labels", 0), ("plan against labels", 1)):
        values = tuple(one.right[side] for one in steps if one.right is not None)
        series += [Series.through(label, rounds, values)] if values else []
    yield Chart(
        key="rand-index",
        title="Rand index",
        caption=(
            "The share of pairs of points on which two clusterings agree."
            + ("" if records.known is None else f" Labels: {records.known.what}.")
        ),
        x_label="iteration",
        y_label="Rand index",
        series=tuple(series),
    )
