"""The columns and values of a plan's query in the form for phones, and how targets read a phone's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushuffle._checks import fail
from hushuffle.network.phones.task import Column, Group, Value, refuse_task
from hushuffle.queries.aggregate import AggregateQuery
from hushuffle.queries.columns import Groups
from hushuffle.queries.histogram import Histogram, HistogramQuery
from hushuffle.queries.k_means import KMeansQuery
from hushuffle.queries.query import Floats, Query, Records, Rows, Task
from hushuffle.tables.conditions import parse_condition


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A plan's query in the form for phones; `sets`: for each step, its columns and their numbers of groups."""

    columns: tuple[Column, ...]
    values: tuple[Value, ...] = ()
    per_person: Literal["all", "one"] = "all"
    sets: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]
    task: Task


def asked_of(query: Query, centroids: Sequence[Sequence[float]] | None = None) -> Asked:
    """Return a plan's query in the form for phones; `centroids`: of a k-means iteration, by default the plan's."""
    if isinstance(query, HistogramQuery):
        grid = query.task()
        columns = _columns({name: column.conditions() for name, column in query.columns.items()})
        cells = PhoneHistogram(columns=grid.columns, sizes=grid.sizes, partitions=grid.partitions)
        return Asked(columns=columns, sets=((grid.columns, grid.sizes),), task=cells)
    if isinstance(query, KMeansQuery):
        return _points(query, query.task().initial if centroids is None else centroids)
    if not isinstance(query, AggregateQuery):
        refuse_task(f'phones do not answer queries with kind = "{query.kind}"')
    task, ranges = query.task(), query.ranges or {}
    columns, sets = _columns(query.categories()), task.grouping_sets
    values = tuple(Value(name=name, **_ends(ranges.get(name))) for name in query.values)
    return Asked(columns=columns, values=values, per_person=query.per_person, sets=sets, task=task)


def _points(query: KMeansQuery, centroids: Sequence[Sequence[float]]) -> Asked:
    task = query.task(Records(n=0, source="", start=np.array(centroids, dtype=np.float64)))
    ranges = query.columns or {}
    names = tuple(ranges) or tuple(f"x{number}" for number in range(1, task.dimensions + 1))
    values = tuple(Value(name=name, **_ends(ranges.get(name))) for name in names)
    return Asked(columns=(), values=values, sets=(((), ()),) * query.iterations, task=task)


def _columns(categories: Mapping[str, Groups]) -> tuple[Column, ...]:
    return tuple(Column(name=name, groups=tuple(_groups(groups))) for name, groups in categories.items())


def _groups(groups: Groups) -> list[Group]:
    if not isinstance(groups, Mapping):
        return [Group(name=label, when=((("==", label),),)) for label in groups]
    parsed: dict[str, Any] = {name: parse_condition(text).alternatives for name, text in groups.items()}
    return [
        Group(name=name, when=tuple(tuple((one.operator, one.value) for one in clauses) for clauses in alternatives))
        for name, alternatives in parsed.items()
    ]


def _ends(ends: tuple[float, float] | None) -> dict[str, float]:
    return {} if ends is None else {"low": ends[0], "high": ends[1]}


class PhoneHistogram(Histogram):
    """Histogram of phones' records. A record contains the number of the interval in each column, 4 bytes each.

    >>> task = PhoneHistogram(columns=("age", "bmi"), sizes=(3, 2), partitions=2)
    >>> records = task.pack(1, np.array([[2.0, 1.0], [0.0, 1.0]]))
    >>> task.size(1), task.merge(1, task.empty(1), records, [True, True]).tolist()
    (8, [0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    """

    def size(self, step: int) -> int:
        return 2 * super().size(step)

    def pack(self, step: int, rows: Rows) -> list[bytes]:
        del step
        return [row.tobytes() for row in rows.astype("<i4")]

    def check(self, step: int, node: int, content: bytes) -> None:
        if len(content) != self.size(step):
            fail("a message is not a record of this plan.")
        intervals = np.frombuffer(content, dtype="<i4")
        if (intervals < 0).any() or (intervals >= self.sizes).any():
            fail("a message has an interval that does not exist in its column.")
        if self.own(step, intervals[None, :].astype(np.float64), None) != node:
            fail("a message has a record of a cell that this target does not count.")

    def sample(self, step: int, node: int) -> bytes:
        del step
        cell = divmod(int(self._mine(node)[0]), self.sizes[1])
        return np.array(cell, dtype="<i4").tobytes()

    def merge(self, step: int, merged: Floats, contents: Sequence[bytes], used: Sequence[bool]) -> Floats:
        rows = np.frombuffer(b"".join(contents), dtype="<i4").reshape(-1, 2).astype(np.float64)
        return super().merge(step, merged, super().pack(step, rows), used)
