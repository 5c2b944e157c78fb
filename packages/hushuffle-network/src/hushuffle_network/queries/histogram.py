"""A histogram over a grid: two columns of numbers are cut into intervals, and people in each cell are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from hushuffle import plans
from hushuffle._checks import Floats, Integers, fail
from hushuffle.errors import Problem
from hushuffle.model import HeatMap, Table, number
from hushuffle.plans import GroupingQuery, GroupingSet, Plan, Traffic, use_chance
from hushuffle.randomness import Randomness
from hushuffle.specification._base import Name, Section
from hushuffle_network.queries.columns import Generated, Intervals, column_problems, columns_of, group_count
from hushuffle_network.queries.exchange import exchange
from hushuffle_network.queries.query import DeviceQuery, Query, Records, Rows, Simulated, Task, data_or_generated, table

_MOST_CELLS: Final = 100
_MOST_DRAWN: Final = 30


class Histogram(Task):
    """The targets' task in a histogram. A record contains the number of the interval in each column, 4 bytes each.

    Cells are numbered so that the second column's interval varies fastest.

    >>> task = Histogram(columns=("age", "bmi"), sizes=(3, 2), partitions=2)
    >>> rows = np.array([[0.0, 1.0], [2.0, 0.0], [2.0, 0.0]])
    >>> task.size(1), task.own(1, rows, None).tolist()
    (8, [0, 1, 1])
    >>> task.merge(1, task.empty(1), task.pack(1, rows), [True, True, False]).tolist()
    [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    """

    columns: tuple[str, str]
    """The names of the two columns."""
    sizes: tuple[Annotated[int, Field(ge=2, le=10_000)], Annotated[int, Field(ge=2, le=10_000)]]
    """The number of intervals of each column."""
    partitions: Annotated[int, Field(ge=2)]
    """Number of compute nodes, at most the number of cells; each counts the people of consecutive cells."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.partitions > self.cells:
            message = f"partitions must be at most the {self.cells:,} cells"
            raise ValueError(message)
        return self

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.sizes)

    @property
    def targets(self) -> int:
        return self.partitions

    def _nodes(self, cells: Integers) -> Integers:
        return cells * self.partitions // self.cells

    def _cells(self, rows: npt.NDArray[np.number]) -> Integers:
        return rows[:, 0].astype(np.int64) * self.sizes[1] + rows[:, 1].astype(np.int64)

    def _mine(self, node: int) -> Integers:
        return np.flatnonzero(self._nodes(np.arange(self.cells)) == node)

    def size(self, step: int) -> int:
        return 8

    def own(self, step: int, rows: Rows, known: Floats | None) -> Integers:
        return self._nodes(self._cells(rows))

    def pack(self, step: int, rows: Rows) -> list[bytes]:
        return [row.tobytes() for row in rows.astype("<i4")]

    def check(self, step: int, node: int, content: bytes) -> None:
        if len(content) != self.size(step):
            fail("a message is not a record of this plan.")
        intervals = np.frombuffer(content, dtype="<i4")
        if (intervals < 0).any() or (intervals >= self.sizes).any():
            fail("a message has an interval that does not exist in its column.")
        if self.own(step, intervals[None, :], None) != node:
            fail("a message has a record of a cell that this target does not count.")

    def sample(self, step: int, node: int) -> bytes:
        cell = divmod(int(self._mine(node)[0]), self.sizes[1])
        return np.array(cell, dtype="<i4").tobytes()

    def empty(self, step: int) -> Floats:
        return np.zeros(self.cells)

    def merge(self, step: int, merged: Floats, contents: Sequence[bytes], used: Sequence[bool]) -> Floats:
        cells = self._cells(np.frombuffer(b"".join(contents), dtype="<i4").reshape(-1, 2))
        return merged + np.bincount(cells, weights=np.array(used, dtype=np.float64), minlength=self.cells)

    def width(self, step: int) -> int:
        return -(-self.cells // self.partitions)

    def tell(self, step: int, node: int, merged: Floats, rng: Randomness) -> Floats:
        return merged[self._mine(node)]

    def part(self, step: int, node: int, told: Floats) -> Floats:
        counts, mine = self.empty(step), self._mine(node)
        counts[mine] = told[: mine.size]
        if not (np.isfinite(counts) & (counts >= 0)).all():
            fail("a compute node sent counts of impossible records.")
        return counts

    def combine(self, step: int, parts: Sequence[Floats]) -> Floats:
        counts: Floats = np.sum(parts, axis=0)
        return counts

    def answer(
        self, step: int, combined: Floats, came: Mapping[str, int], scale: Callable[[], float]
    ) -> dict[str, Any]:
        estimates = (combined * scale()).tolist()
        grid = {"columns": list(self.columns), "sizes": list(self.sizes)}
        return {**grid, **came, "received": combined.tolist(), "estimates": estimates}


class HistogramQuery(Query):
    """The number of people in each cell of a grid."""

    tables: ClassVar[Mapping[str, tuple[type[Section], ...]]] = {"generated": (Generated,)}
    task_type: ClassVar[type[Task]] = Histogram

    kind: Literal["histogram"]
    generated: Generated | None = None
    """Synthetic records instead of data."""
    columns: dict[Name, Intervals]
    """The two columns of numbers, each with its public intervals: `{ low, high, intervals }`."""
    partitions: Annotated[int, Field(ge=2)]
    """Number of compute nodes, at most the number of cells; each counts the people of consecutive cells."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        yield from data_or_generated(raw)
        yield from column_problems(raw)
        columns, partitions = table(raw, "columns"), raw.get("partitions")
        if "columns" in raw and len(columns) != 2:
            yield Problem(key="query.columns", rule="must be two columns", value=", ".join(columns) or "none")
        cells = math.prod(group_count(column) or 0 for column in columns.values())
        if isinstance(partitions, int) and 0 < cells < partitions:
            yield Problem(key="query.partitions", rule=f"must be at most the {cells:,} cells", value=f"{partitions}")

    def _grid(self) -> GroupingQuery:
        sizes = tuple(column.intervals for column in self.columns.values())
        return GroupingQuery(
            grouping_sets=(GroupingSet(columns=tuple(self.columns), sizes=sizes),), partitions=self.partitions
        )

    def plan(self, people: int, traffic: Traffic) -> Plan:
        plan = plans.aggregate(self._grid(), people=people, **traffic.given())
        return replace(plan, name=f"Histogram over {' and '.join(self.columns)}")

    def records(self, base_folder: Path) -> Records:
        cut = {name: column.conditions() for name, column in self.columns.items()}
        columns, records = columns_of(self, self.generated, self._grid(), base_folder, cut)
        return replace(records, rows=np.column_stack([columns[name].astype(np.float64) for name in self.columns]))

    def task(self) -> Histogram:
        (slow, slow_cut), (fast, fast_cut) = self.columns.items()
        sizes = slow_cut.intervals, fast_cut.intervals
        return Histogram(columns=(slow, fast), sizes=sizes, partitions=self.partitions)

    def for_devices(self, start: Sequence[Sequence[float]] | None = None) -> DeviceQuery:
        task = self.task()
        columns = {name: column.conditions() for name, column in self.columns.items()}
        return DeviceQuery(columns=columns, steps=((task.columns, task.sizes),), task=task)

    def simulate(self, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]) -> Simulated:
        task, cluster = self.task(), next(cluster for cluster in plan.clusters if cluster.reads)
        assert cluster.sampling is not None
        run = exchange(cluster, task.own(1, records.rows, None), rng=rng)
        contents = task.pack(1, records.rows)
        counts = task.merge(1, task.empty(1), contents, run.used.tolist())
        return replace(self._shown(counts / use_chance(cluster.sampling), records), exchanges=(run,))

    def compared(self, answers: Sequence[Mapping[str, Any]], records: Records) -> Simulated:
        return self._shown(np.array(answers[0]["estimates"]), records)

    def _shown(self, estimates: Floats, records: Records) -> Simulated:
        task = self.task()
        true = task.merge(1, task.empty(1), task.pack(1, records.rows), [True] * records.n)
        off = float(np.median(np.abs(estimates[true > 0] / true[true > 0] - 1)))
        names = [list(column.conditions()) for column in self.columns.values()]
        shown = np.sort(np.argsort(-true, kind="stable")[:_MOST_CELLS]).tolist()
        more = f" The {len(shown)} fullest of {task.cells:,} cells." if len(shown) < task.cells else ""
        rows = tuple(
            (names[0][cell // task.sizes[1]], names[1][cell % task.sizes[1]], int(true[cell]), float(estimates[cell]))
            for cell in shown
        )
        answer = f"The median relative error of counts is at most {number(100 * off, up=True, digits=2)} %."
        title, columns = f"People by {' and '.join(self.columns)}", (*self.columns, "people", "people, plan")
        caption = f"The true counts, and the plan's estimates, scaled up for lost records.{more}"
        table = Table(key="cells", title=title, caption=caption, columns=columns, rows=rows)
        if max(task.sizes) > _MOST_DRAWN:
            return Simulated(answers=(answer,), tables=(table,))
        heat_map = HeatMap(
            key="cells",
            title="People in each cell",
            caption="The plan's estimate.",
            x_label=task.columns[1],
            y_label=task.columns[0],
            x=tuple(names[1]),
            y=tuple(names[0]),
            values=tuple(map(tuple, estimates.reshape(task.sizes).tolist())),
        )
        return Simulated(answers=(answer,), tables=(table,), heat_maps=(heat_map,))
