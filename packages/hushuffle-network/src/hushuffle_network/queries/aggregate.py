"""Aggregate: count, sum, average, minimum and maximum by grouping sets, one step of the plan for each set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from hushuffle import plans
from hushuffle._checks import Floats, Integers, fail
from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.plans import GroupingQuery, GroupingSet, GroupStatistics, Plan, ResultNoise, Traffic, group_statistics
from hushuffle.plans.aggregates import Function
from hushuffle.plans.builders import PerPerson
from hushuffle.plans.result_noise import share_of_set
from hushuffle.randomness import Randomness
from hushuffle.specification._base import Name, Section
from hushuffle_network.queries import columns as reading
from hushuffle_network.queries.aggregate_run import result_tables, run_aggregate, simulated
from hushuffle_network.queries.columns import Generated, GroupingColumn, Groups, Names, Range
from hushuffle_network.queries.query import DeviceQuery, Query, Records, Rows, Simulated, Task, data_or_generated, table


class Aggregate(Task):
    """The nodes' task in an aggregate. A record contains the group number of each column, then the values.

    Groups take 4 bytes, values 8, only for the columns of the step's set. A node returns statistics of its groups.

    >>> task = Aggregate(grouping_sets=((("age",), (6,)),), values=("x",), functions=("sum",), partitions=2)
    >>> rows = np.array([[3.0, 0.5], [5.0, 2.0]])
    >>> task.size(1), task.own(1, rows, None).tolist()
    (12, [1, 1])
    >>> task.merge(1, task.empty(1), task.pack(1, rows), [True, False])[1].tolist()
    [0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    """

    grouping_sets: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]
    """The columns of each grouping set, and the number of groups of each column."""
    values: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ("count",)
    partitions: int
    ranges: tuple[tuple[float, float] | None, ...] = ()
    """The public ranges of values; a record outside of its range is refused."""
    epsilon: float | None = None
    """Epsilon of the released results of one grouping set for one person; None: the results have no noise."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        _ = self.noise
        return self

    @classmethod
    def of(cls, query: GroupingQuery, *, epsilon: float | None = None) -> Aggregate:
        """Return the part of a query that nodes need; `epsilon` is that of the results of one grouping set."""
        return cls(
            grouping_sets=tuple((one.columns, one.sizes) for one in query.grouping_sets),
            values=query.values,
            functions=query.functions,
            partitions=query.partitions,
            ranges=query.ranges,
            epsilon=epsilon,
        )

    @cached_property
    def noise(self) -> ResultNoise | None:
        """The noise on the results of each grouping set."""
        return None if self.epsilon is None else ResultNoise(query=self.query, epsilon=self.epsilon)

    @cached_property
    def query(self) -> GroupingQuery:
        """The query with its grouping sets, values and functions."""
        return GroupingQuery(
            grouping_sets=tuple(GroupingSet(columns=columns, sizes=sizes) for columns, sizes in self.grouping_sets),
            values=self.values,
            functions=self.functions,
            partitions=self.partitions,
            ranges=self.ranges,
        )

    @property
    def targets(self) -> int:
        return self.query.partitions

    def table(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return rows as columns: first each grouping column once, then the values."""
        groups = list(dict.fromkeys(name for columns, _ in self.grouping_sets for name in columns))
        codes = {name: rows[:, place].astype(np.int64) for place, name in enumerate(groups)}
        return codes | {name: rows[:, len(groups) + place] for place, name in enumerate(self.values)}

    def _set(self, step: int) -> GroupingSet:
        return self.query.grouping_sets[step - 1]

    def _type(self, step: int) -> np.dtype[np.void]:
        columns = [(f"c{place}", "<i4") for place, _ in enumerate(self._set(step).columns)]
        return np.dtype([*columns, *((f"v{place}", "<f8") for place, _ in enumerate(self.values))])

    def size(self, step: int) -> int:
        return self._type(step).itemsize

    def own(self, step: int, rows: Rows, known: Floats | None) -> Integers:
        return self.query.nodes(step - 1, self._set(step).codes(self.table(rows)))

    def pack(self, step: int, rows: Rows) -> list[bytes]:
        columns, packed = self.table(rows), np.empty(len(rows), dtype=self._type(step))
        for place, name in enumerate(self._set(step).columns):
            packed[f"c{place}"] = columns[name]
        for place, name in enumerate(self.values):
            packed[f"v{place}"] = columns[name]
        return [row.tobytes() for row in packed]

    def _unpacked(self, step: int, content: bytes) -> dict[str, npt.NDArray[Any]]:
        packed = np.frombuffer(content, dtype=self._type(step))
        columns = {name: packed[f"c{place}"] for place, name in enumerate(self._set(step).columns)}
        return columns | {name: packed[f"v{place}"] for place, name in enumerate(self.values)}

    def check(self, step: int, node: int, content: bytes) -> None:
        if len(content) != self.size(step):
            fail("a message is not a record of this plan.")
        record, groups = self._unpacked(step, content), self._set(step)
        inside = all(0 <= int(record[name][0]) < size for name, size in zip(groups.columns, groups.sizes, strict=True))
        finite = all(np.isfinite(record[name]).all() for name in self.values)
        if not inside or not finite or int(self.query.nodes(step - 1, groups.codes(record))[0]) != node:
            fail("a message has a record of a group that this node does not count.")
        if not all(low <= float(record[name][0]) <= high for name, (low, high) in self.query.ends.items()):
            fail("a message has a value outside its public range.")

    def sample(self, step: int, node: int) -> bytes:
        packed = np.zeros(1, dtype=self._type(step))
        for place, code in enumerate(np.unravel_index(int(self._groups(step, node)[0]), self._set(step).sizes)):
            packed[f"c{place}"] = code
        for place, name in enumerate(self.values):
            packed[f"v{place}"] = self.query.ends.get(name, (0.0, 0.0))[0]
        return packed.tobytes()

    def _groups(self, step: int, node: int) -> Integers:
        """Return the numbers of the groups that a compute node holds."""
        return np.flatnonzero(self.query.nodes(step - 1, np.arange(self._set(step).groups)) == node)

    def statistics(self, step: int, numbers: Floats) -> GroupStatistics:
        """Return merged or combined numbers as group statistics."""
        return GroupStatistics.of(self._set(step).name, self.values, numbers)

    def empty(self, step: int) -> Floats:
        return self._found(step, [], []).numbers

    def merge(self, step: int, merged: Floats, contents: Sequence[bytes], used: Sequence[bool]) -> Floats:
        return self.statistics(step, merged).plus(self._found(step, contents, used)).numbers

    def joined(self, step: int, one: Floats, other: Floats) -> Floats:
        return self.statistics(step, one).plus(self.statistics(step, other)).numbers

    def _found(self, step: int, contents: Sequence[bytes], used: Sequence[bool]) -> GroupStatistics:
        mask, columns = np.array(used, dtype=np.bool_), self._unpacked(step, b"".join(contents))
        held = columns if self.noise is None else self.noise.rounded(columns)
        return group_statistics(self.query, step - 1, held, used=mask)

    def width(self, step: int) -> int:
        return -(-self._set(step).groups // self.partitions) * (1 + 3 * len(self.values))

    def tell(self, step: int, node: int, merged: Floats, rng: Randomness) -> Floats:
        mine = merged[:, self._groups(step, node)]
        return (mine if self.noise is None else self.noise.release(mine, rng=rng)).ravel()

    def part(self, step: int, node: int, told: Floats) -> Floats:
        groups, v = self._groups(step, node), len(self.values)
        numbers = np.full((1 + 3 * v, self._set(step).groups), np.nan)
        numbers[: 1 + v] = 0.0  # counts and sums of groups that other nodes hold
        numbers[:, groups] = told[: groups.size * len(numbers)].reshape(len(numbers), groups.size)
        if not (np.isfinite(numbers[0]) & ((self.noise is not None) | (numbers[0] >= 0))).all():
            fail("a compute node sent counts of impossible records.")
        return numbers

    def combine(self, step: int, parts: Sequence[Floats]) -> Floats:
        return reduce(partial(self.joined, step), parts)

    def answer(
        self, step: int, combined: Floats, came: Mapping[str, int], scale: Callable[[], float]
    ) -> dict[str, Any]:
        received, factor = self.statistics(step, combined), scale()
        noise: dict[str, Any] = {}
        if self.noise is not None:
            deviations = {name: factor * deviation for name, deviation in self.noise.deviations.items()}
            noise = {"noise": {"epsilon": self.noise.epsilon, "standard_deviations": deviations}}
        estimates = {
            name: [value if math.isfinite(value) else None for value in values.tolist()]
            for name, values in received.scaled(factor).results(self.query).items()
        }
        about = {"columns": list(self._set(step).columns), "sizes": list(self._set(step).sizes), **came}
        return {**about, "received": received.count.tolist(), "estimates": estimates, **noise}


class ReleaseNoise(Section):
    """Discrete Laplace noise on counts and sums, added before they leave a compute node."""

    epsilon: Annotated[float, Field(ge=1e-4, le=LARGEST_EPSILON)]
    """Epsilon of all results about one person, over all grouping sets, in nats, for any adversary."""


class AggregateQuery(Query):
    """Count, sum, average, minimum and maximum by grouping sets."""

    tables: ClassVar[Mapping[str, tuple[type[Section], ...]]] = {"generated": (Generated,), "noise": (ReleaseNoise,)}
    task_type: ClassVar[type[Task]] = Aggregate

    kind: Literal["aggregate"]
    generated: Generated | None = None
    """Synthetic records instead of data."""
    columns: Annotated[dict[Name, GroupingColumn], Field(min_length=1)]
    """The groups of each column: a list of labels, a table of conditions, `{ low, high, intervals }` (the outer
    intervals include everything beyond), or for generated records the number of groups."""
    grouping_sets: Annotated[tuple[Names, ...], Field(strict=False, min_length=1)]
    """Lists of grouping columns, with one result for each list."""
    values: Names = ()
    """Columns of numbers to aggregate, not used for groups."""
    ranges: dict[Name, Range] | None = None
    """The public range [low, high] of each column of values. Sources clip to it, and compute nodes refuse values
    outside. Without a range, one record can decide every sum, and the report warns."""
    functions: Annotated[tuple[Function, ...], Field(strict=False, min_length=1)] = ("count",)
    """The functions to compute: "count", "sum", "avg", "min", "max"."""
    partitions: Annotated[int, Field(ge=2)]
    """Number of compute nodes of each grouping set, at most the groups of the smallest set."""
    per_person: PerPerson = "all"
    """"all": every record goes to every grouping set; "one": to one set, chosen independently of the data."""
    noise: ReleaseNoise | None = None
    """The noise on counts and sums; not with "min" and "max", and for sums and averages only with `ranges`. Without it
    results are exact, and no guarantee covers them."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        yield from data_or_generated(raw)
        yield from reading.column_problems(raw)
        yield from _grouping_problems(raw)
        yield from _value_problems(raw)
        yield from _noise_problems(raw)

    @property
    def everybody(self) -> bool:
        return self.per_person == "all"

    @property
    def unbounded(self) -> tuple[str, ...]:
        return tuple(name for name in self.values if name not in (self.ranges or {}))

    def categories(self) -> dict[str, Groups]:
        """Return the conditions or labels of the groups of every used column."""
        used = dict.fromkeys(column for one in self.grouping_sets for column in one)
        return {name: reading.groups_of(self.columns[name]) for name in used}

    def query(self) -> GroupingQuery:
        """Return the query with its grouping sets, values and functions."""
        sizes = {name: len(groups) for name, groups in self.categories().items()}
        sets = [GroupingSet(columns=names, sizes=tuple(sizes[name] for name in names)) for names in self.grouping_sets]
        return GroupingQuery(
            grouping_sets=tuple(sets),
            values=self.values,
            functions=self.functions,
            partitions=self.partitions,
            ranges=tuple(map(self.ranges.get, self.values)) if self.ranges else (),
        )

    def plan(self, people: int, traffic: Traffic) -> Plan:
        epsilon = None if self.noise is None else self.noise.epsilon
        numbers = traffic.given()
        return plans.aggregate(self.query(), people=people, per_person=self.per_person, epsilon=epsilon, **numbers)

    def records(self, base_folder: Path) -> Records:
        query, categories = self.query(), self.categories()
        columns, records = reading.columns_of(self, self.generated, query, base_folder, categories)
        clipped = query.clipped(columns)
        rows = np.column_stack([clipped[name].astype(np.float64) for name in (*categories, *self.values)])
        return replace(records, rows=rows)

    def task(self) -> Aggregate:
        query = self.query()
        if self.noise is None:
            return Aggregate.of(query)
        return Aggregate.of(query, epsilon=share_of_set(query, self.noise.epsilon, everybody=self.everybody))

    def for_devices(self, start: Sequence[Sequence[float]] | None = None) -> DeviceQuery:
        task, ranges = self.task(), self.ranges or {}
        values = {name: ranges.get(name) for name in self.values}
        columns, steps = self.categories(), task.grouping_sets
        return DeviceQuery(columns=columns, values=values, per_person=self.per_person, steps=steps, task=task)

    def simulate(self, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]) -> Simulated:
        return simulated(run_aggregate(plan, self.query(), self.task().table(records.rows), rng=rng), self._labels())

    def compared(self, answers: Sequence[Mapping[str, Any]], records: Records) -> Simulated:
        query, columns = self.query(), self.task().table(records.rows)
        exact = [group_statistics(query, place, columns) for place in range(len(answers))]
        estimates = [
            {name: np.array(values, dtype=np.float64) for name, values in answer["estimates"].items()}
            for answer in answers
        ]
        return Simulated(tables=tuple(result_tables(query, self._labels(), exact, estimates)))

    def _labels(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(groups) for name, groups in self.categories().items()}


def _grouping_problems(query: Mapping[str, Any]) -> Iterator[Problem]:
    columns, given = table(query, "columns"), query.get("grouping_sets")
    sets = [list(one) for one in given if isinstance(one, list | tuple)] if isinstance(given, list | tuple) else []
    for place, names in enumerate(sets):
        here = f"query.grouping_sets[{place}]"
        unknown = [f'"{name}"' for name in names if not (isinstance(name, str) and name in columns)]
        if unknown and "columns" in query:
            hint = "Define in [query.columns] how the values of each grouping column are assigned to groups."
            yield Problem(key=here, rule="must name columns of query.columns", value=", ".join(unknown), hint=hint)
        value = ", ".join(map(str, names))
        if not names or len(set(map(str, names))) < len(names):
            yield Problem(key=here, rule="must be one or more different columns", value=value or "none")
        if names in sets[:place]:
            yield Problem(key=here, rule="must not be repeated", value=value)
    sizes = {name: reading.group_count(column) for name, column in columns.items()}
    groups = [math.prod(sizes.get(str(name)) or 0 for name in names) for names in sets if names]
    partitions = query.get("partitions")
    if isinstance(partitions, int) and 0 < min(groups, default=0) < partitions:
        rule = f"must be at most {min(groups):,}, the number of groups of the smallest grouping set"
        yield Problem(key="query.partitions", rule=rule, value=f"{partitions}")


def _value_problems(query: Mapping[str, Any]) -> Iterator[Problem]:
    given = query.get("values", ())
    values = list(map(str, given)) if isinstance(given, list | tuple) else []
    functions = query.get("functions", ("count",))
    more = [name for name in functions if name != "count"] if isinstance(functions, list | tuple) else []
    if more and not values:
        rule = f"must be a list of columns for {', '.join(str(name) for name in more)}"
        yield Problem(key="query.values", rule=rule, value="nothing" if "values" not in query else "no column")
    if len(set(values)) < len(values):
        yield Problem(key="query.values", rule="must be different columns", value=", ".join(values))
    both = [name for name in values if name in table(query, "columns")]
    if both:
        hint = "A column cannot be both a grouping column and a value. Copy it under another name."
        value = ", ".join(both)
        yield Problem(key="query.values", rule="must differ from the grouping columns", value=value, hint=hint)
    unknown = [str(name) for name in table(query, "ranges") if name not in values]
    if unknown:
        yield Problem(
            key="query.ranges", rule="must have only columns that are in query.values", value=", ".join(unknown)
        )
    yield from reading.range_problems(query, "ranges")


def _noise_problems(query: Mapping[str, Any]) -> Iterator[Problem]:
    functions, values = query.get("functions", ("count",)), query.get("values", ())
    if "noise" not in query or not all(isinstance(given, list | tuple) for given in (functions, values)):
        return
    extremes = [name for name in functions if name in ("min", "max")]
    if extremes:
        hint = "A minimum or maximum is the value of one person, which noise of a fixed size cannot hide."
        rule = "must be count, sum or avg if results have noise"
        yield Problem(key="query.functions", rule=rule, value=", ".join(extremes), hint=hint)
    bare = [str(name) for name in values if str(name) not in table(query, "ranges")]
    if bare and not {"sum", "avg"}.isdisjoint(map(str, functions)):
        hint = (
            "Noise must hide what one person adds to a sum. Set ranges, for example ranges = { income = [0, 200_000] }."
        )
        rule = "must include every column of values if results have noise"
        yield Problem(key="query.ranges", rule=rule, value=f"nothing for {', '.join(bare)}", hint=hint)
