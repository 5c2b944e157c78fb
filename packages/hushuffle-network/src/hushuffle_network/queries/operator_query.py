"""A plan of operators as a query: its section of the file, its records, and its run on services if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import Field, ValidationError

from hushuffle import _checks
from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.plans import GroupingQuery, GroupingSet, Plan, Traffic
from hushuffle.randomness import Randomness
from hushuffle.specification._base import Name, Section
from hushuffle_network.queries.aggregate import Aggregate as AggregateTask
from hushuffle_network.queries.aggregate import AggregateQuery, ReleaseNoise
from hushuffle_network.queries.columns import (
    Generated,
    GroupingColumn,
    Range,
    column_problems,
    columns_of,
    groups_of,
    range_problems,
)
from hushuffle_network.queries.operator_rules import operator_problems
from hushuffle_network.queries.operators import (
    PEOPLE,
    AggregateOperator,
    Graph,
    GroupOperator,
    IterateOperator,
    JoinOperator,
    Operator,
    SelectOperator,
)
from hushuffle_network.queries.operators_run import run_operators
from hushuffle_network.queries.query import DeviceQuery, Query, Records, Simulated, Task, data_or_generated

_DRAWN: Final = 2
_ON_SERVICES: Final = (
    "Services run operators only if all are groups of all people, each with an aggregate, with equal nodes, values, "
    "functions and noise. This plan has others, for which there are no services yet. Use plan analyse and plan "
    "simulate."
)


class OperatorQuery(Query):
    """A plan as a list of operators; each uses the results of earlier ones."""

    tables: ClassVar[Mapping[str, tuple[type[Section], ...]]] = {
        "generated": (Generated,),
        "operators": (SelectOperator, GroupOperator, JoinOperator, AggregateOperator, IterateOperator),
    }
    task_type: ClassVar[type[Task]] = AggregateTask

    kind: Literal["graph"]
    generated: Generated | None = None
    """Synthetic records instead of data."""
    columns: dict[Name, GroupingColumn] = Field(default_factory=dict)
    """The groups of each column, as for "aggregate"."""
    ranges: dict[Name, Range] = Field(default_factory=dict)
    """The columns of numbers and their public ranges [low, high], to which sources clip."""
    operators: Annotated[tuple[Operator, ...], Field(strict=False, min_length=1, max_length=100)]
    """The operators in order, each under `[[query.operators]]`."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        yield from data_or_generated(raw)
        yield from column_problems(raw)
        yield from range_problems(raw, "ranges")
        try:
            query = cls.model_validate(raw)
        except ValidationError:
            return  # wrong types are reported elsewhere
        yield from operator_problems(query.graph)

    @property
    def graph(self) -> Graph:
        """The operators with the groups and ranges of the columns."""
        categories = {name: groups_of(column) for name, column in self.columns.items()}
        return Graph(operators=self.operators, categories=categories, ranges=self.ranges)

    @property
    def drawn(self) -> tuple[Self, str] | None:
        shown = max(_DRAWN, self.graph.turns)
        longest = max((operator.rounds for operator in self.graph.iterates), default=0)
        if longest <= shown:
            return None
        shorter = [
            operator.model_copy(update={"rounds": shown, "per_person": max(1, shown // operator.turns)})
            if operator.kind == "iterate"
            else operator
            for operator in self.operators
        ]
        words = f"the first {shown} of {longest} rounds are drawn; the others have the same structure."
        return self.model_copy(update={"operators": tuple(shorter)}), words

    def plan(self, people: int, traffic: Traffic) -> Plan:
        return self.graph.plan(people, traffic)

    def records(self, base_folder: Path) -> Records:
        graph = self.graph
        used = {name: graph.categories[name] for name in graph.columns}
        sets = [GroupingSet(columns=(name,), sizes=(len(groups),)) for name, groups in used.items()]
        query = GroupingQuery(
            grouping_sets=tuple(sets) or (GroupingSet(columns=("people",), sizes=(1,)),),
            values=graph.numbers,
            partitions=1,
            ranges=tuple(self.ranges[name] for name in graph.numbers),
        )
        columns, records = columns_of(self, self.generated, query, base_folder, used)
        clipped = query.clipped(columns)
        rows = [clipped[name].astype(np.float64) for name in (*used, *graph.numbers)]
        return replace(records, rows=np.column_stack(rows))

    def _aggregate(self) -> AggregateQuery:
        """Return the query with grouping sets that the operators are."""
        steps, columns = self.graph.steps, self.graph.columns
        sets = [step.source.by for step in steps if step.source.kind == "group"]
        kinds = {
            (step.source.of, step.source.nodes, step.last.values, step.last.functions, step.last.noise)
            for step in steps
            if step.source.kind == "group" and step.last.kind == "aggregate"
        }
        of, nodes, values, functions, noise = next(iter(kinds), (None, 0, (), (), None))
        epsilon = 0.0 if noise is None else len(sets) * noise.epsilon
        alike = len(kinds) == 1 and of == PEOPLE and 2 * len(sets) == len(self.operators)
        if not alike or len(set(sets)) < len(sets) or epsilon > LARGEST_EPSILON:
            _checks.unsupported(_ON_SERVICES)
        return AggregateQuery(
            kind="aggregate",
            data=self.data,
            generated=self.generated,
            missing=self.missing,
            encoding=self.encoding,
            separator=self.separator,
            columns={name: self.columns[name] for name in columns},
            grouping_sets=tuple(by or () for by in sets),
            values=values,
            ranges={name: self.ranges[name] for name in values} or None,
            functions=functions,
            partitions=nodes,
            noise=ReleaseNoise(epsilon=epsilon) if epsilon else None,
        )

    def task(self) -> AggregateTask:
        return self._aggregate().task()

    def for_devices(self, start: Sequence[Sequence[float]] | None = None) -> DeviceQuery:
        return self._aggregate().for_devices(start)

    def compared(self, answers: Sequence[Mapping[str, Any]], records: Records) -> Simulated:
        return self._aggregate().compared(answers, records)

    def simulate(self, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]) -> Simulated:
        return run_operators(self.graph, plan, records, rng=rng, tell=tell)
