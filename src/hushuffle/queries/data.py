"""The people of a plan: read, or made up; columns as groups and numbers, points with public first centroids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle.errors import DataError
from hushuffle.plans import generate_table
from hushuffle.plans.centroids import Floats, Integers, Points
from hushuffle.specification import AggregateQuery, KMeansQuery
from hushuffle.tables.idx import load_digits
from hushuffle.tables.private_table import load_table

_FIRST_CENTROIDS = 1  # sets their stream of random numbers apart from that of made-up points


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """Points whose right `labels` are known, to hold clusters against; `what` says what they are."""

    points: Points = field(repr=False)
    labels: Integers = field(repr=False)
    what: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """The records of a plan: a `table` for a query with grouping sets, `points` for k-means, private both.

    `initial` are public first centroids, shape (K, dimensions); `source` says where the records are from.
    """

    n: int
    source: str
    dropped: int = 0
    table: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    points: Points | None = field(default=None, repr=False)
    initial: Floats | None = field(default=None, repr=False)
    known: Known | None = field(default=None, repr=False)


def count_people(query: AggregateQuery | KMeansQuery, base_folder: Path) -> Records:
    """Return how many people there are, without made-up records: all that an analysis needs.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
    """
    if query.generated is not None:
        return Records(n=query.generated.people, source="made-up records")
    read = read_records(query, base_folder)
    return Records(n=read.n, source=read.source, dropped=read.dropped)


def read_records(query: AggregateQuery | KMeansQuery, base_folder: Path) -> Records:
    """Return the records of a query.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
    """
    return _groups(query, base_folder) if isinstance(query, AggregateQuery) else _points(query, base_folder)


def _groups(query: AggregateQuery, base_folder: Path) -> Records:
    if query.generated is not None:
        made = query.generated
        table = generate_table(query.query(), made.people, distribution=made.distribution, seed=made.seed)
        return Records(n=made.people, source="made-up records", table=query.query().clipped(table))
    assert query.data is not None
    found = load_table(
        query.data,
        categories=query.categories(),
        numbers=query.values,
        missing=query.missing,
        base_folder=base_folder,
    )
    table = query.query().clipped({**found.groups, **found.numbers})
    return Records(n=found.n, source=found.source, dropped=found.dropped, table=table)


def _points(query: KMeansQuery, base_folder: Path) -> Records:
    if query.generated is not None:
        return _made_up(query)
    assert query.data is not None
    if query.columns is None:
        return _digits(query, base_folder / Path(query.data).expanduser(), query.data)
    found = load_table(
        query.data, categories={}, numbers=tuple(query.columns), missing=query.missing, base_folder=base_folder
    )
    points = scaled_points(query, found.numbers)
    return Records(
        n=found.n,
        source=found.source,
        dropped=found.dropped,
        points=points,
        initial=first_centroids(query, points.shape[1]),
    )


LARGEST: Final = 1.0
"""The largest absolute value of a coordinate that was scaled from its public range."""


def scaled_points(query: KMeansQuery, numbers: Mapping[str, Floats]) -> Floats:
    """Return columns as points, shape (n, columns): the public range of each becomes -1 to 1."""
    assert query.columns is not None
    scaled = [
        np.clip(2 * (numbers[name] - low) / (high - low) - 1, -LARGEST, LARGEST)
        for name, (low, high) in query.columns.items()
    ]
    return np.column_stack(scaled)


def _made_up(query: KMeansQuery) -> Records:
    made = query.generated
    assert made is not None
    generator = np.random.default_rng(made.seed)
    centres = generator.uniform(-1, 1, (query.centroids, made.dimensions))
    labels = generator.integers(query.centroids, size=made.people)
    points = centres[labels] + made.spread * generator.normal(size=(made.people, made.dimensions))
    return Records(
        n=made.people,
        source="made-up points",
        points=points,
        initial=first_centroids(query, made.dimensions),
        known=Known(points=points, labels=labels, what="the centres that the points were made around"),
    )


def _digits(query: KMeansQuery, folder: Path, name: str) -> Records:
    if not folder.is_dir():
        message = f"{name} is no folder of IDX images. For a table, give [query.columns] with public ranges."
        raise DataError(message)
    train, test = load_digits(folder), load_digits(folder, part="t10k")
    points, shown = (part.images.astype(np.float32) / 255 for part in (train, test))
    if test.n < query.centroids:
        message = (
            f"{name} has {test.n:,} test images, fewer than the {query.centroids:,} first centroids taken from them."
        )
        raise DataError(message)
    chosen = np.random.default_rng(query.start).choice(test.n, query.centroids, replace=False)
    return Records(
        n=train.n,
        source=f"{train.n:,} training images in {name}",
        points=points,
        initial=shown[chosen].astype(np.float64),
        known=Known(points=shown, labels=test.labels.astype(np.int64), what=f"the digits of {test.n:,} test images"),
    )


def first_centroids(query: KMeansQuery, dimensions: int) -> Floats:
    """Return public first centroids: uniform in the box from -1 to 1."""
    generator = np.random.default_rng([_FIRST_CENTROIDS, query.start])
    return generator.uniform(-1, 1, (query.centroids, dimensions))
