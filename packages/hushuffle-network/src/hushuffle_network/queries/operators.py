"""Operators of a plan: select, group, join, aggregate and iterate; a graph of them as the stages of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from hushuffle import _checks, plans
from hushuffle.plans import Data, GroupingQuery, GroupingSet, Plan, Release, Stage, Traffic
from hushuffle.plans.aggregates import Function
from hushuffle.plans.builders import parts
from hushuffle.plans.plan import Carries
from hushuffle.specification._base import Label, Name, Section
from hushuffle_network.queries.aggregate import ReleaseNoise
from hushuffle_network.queries.columns import Groups, Names, Positive
from hushuffle_network.queries.k_means import Noise

PEOPLE: Final = "people"
MODELS_PUBLIC: Final = (
    "This epsilon assumes that the models of every round are public, and does not count what they reveal about people."
)
TURNS: Final = "The part of each person is chosen independently of all data, and may be public."
Nodes: TypeAlias = Annotated[int, Field(ge=2, le=10_000)]


class NamedOperator(Section):
    """An operator of a plan."""

    name: Name
    """The name of the operator's result, for `of` of later operators."""


class SelectOperator(NamedOperator):
    """Keeps the people who have one of the labels in each column; the messages of the others are discarded."""

    kind: Literal["select"]
    of: Name = PEOPLE
    """"people", or the name of a select."""
    where: Annotated[dict[Name, Annotated[tuple[Label, ...], Field(strict=False, min_length=1)]], Field(min_length=1)]
    """For each column, the labels that are selected."""


class GroupOperator(NamedOperator):
    """Each person sends one message to the node of its group."""

    kind: Literal["group"]
    of: Name = PEOPLE
    """"people", or the name of a select."""
    by: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """The grouping columns. Without it each person sends to the node whose model fits its row best (for an iterate)."""
    nodes: Nodes
    """Number of compute nodes; each receives consecutive groups."""


class JoinOperator(NamedOperator):
    """Each person sends one message for each side to the node of its key, which pairs the two sides' rows."""

    kind: Literal["join"]
    of: Annotated[tuple[Name, Name], Field(strict=False)]
    """The two sides: each is "people", or the name of a select."""
    by: Annotated[tuple[Name, Name], Field(strict=False)]
    """The key column of each side; both have equally many groups."""
    nodes: Nodes
    """Number of compute nodes; each receives consecutive keys."""
    most: Annotated[
        tuple[Annotated[int, Field(ge=1, le=10**6)], Annotated[int, Field(ge=1, le=10**6)]], Field(strict=False)
    ]
    """The largest number of rows of a key that count, on each side; it bounds the pairs of one person."""


class AggregateOperator(NamedOperator):
    """The nodes of a group compute functions of their groups; the nodes of a join count the pairs of each key."""

    kind: Literal["aggregate"]
    of: Name
    """The name of a group or of a join."""
    functions: Annotated[tuple[Function, ...], Field(strict=False, min_length=1)] = ("count",)
    """"count", "sum", "avg", "min", "max"; for a join only "count"."""
    values: Names = ()
    """The columns of numbers to aggregate."""
    noise: ReleaseNoise | None = None
    """The noise on counts and sums. Without it results are exact, and no guarantee covers them."""

    @property
    def release(self) -> Release | None:
        """What the nodes publish with noise."""
        if self.noise is None:
            return None
        return Release(name=f"results of {self.name}", start=self.name, epsilon=self.noise.epsilon, exact=True)


class IterateOperator(NamedOperator):
    """Rounds of federated averaging: the nodes of a group average the updates of a linear model."""

    kind: Literal["iterate"]
    of: Name
    """The name of a group."""
    label: Name
    """The column of numbers to predict from all other columns of numbers, all scaled to [-1, 1]."""
    rounds: Annotated[int, Field(ge=1, le=1000)]
    """Number of rounds."""
    per_person: Annotated[int, Field(ge=1)] | None = None
    """Number of rounds in which each person takes part, a divisor of `rounds` (default: all rounds)."""
    rate: Positive = 0.5
    """Learning rate: the factor by which the average update is added to the model."""
    noise: Noise | None = None
    """The noise on what each node publishes in each round: the sum and the number of updates."""
    assume_public: bool = False
    """Whether the guarantee is stated under the assumption that models without noise are public."""

    @property
    def turns(self) -> int:
        """Number of parts of the people that take turns in the rounds."""
        return self.rounds // (self.per_person or self.rounds)

    @property
    def release(self) -> Release | None:
        """What the nodes publish with noise in each round."""
        if self.noise is None:
            return None
        return self.noise.build().release(name=f"results of {self.name}", start=self.name)

    @property
    def carries(self) -> Carries:
        """How the models reach the people of the next round."""
        return "released" if self.noise is not None else "assumed public" if self.assume_public else "hidden"


AnyOperator: TypeAlias = SelectOperator | GroupOperator | JoinOperator | AggregateOperator | IterateOperator
Operator: TypeAlias = Annotated[AnyOperator, Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True)
class Computation:
    """A stage of the plan, with its last operator and the group or join that this operator uses."""

    last: AggregateOperator | IterateOperator
    source: GroupOperator | JoinOperator
    stage: Stage


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The operators of a plan, the groups of the columns, and the public ranges of the columns of numbers.

    >>> count = AggregateOperator(kind="aggregate", name="count", of="by age")
    >>> group = GroupOperator(kind="group", name="by age", by=("age",), nodes=2)
    >>> graph = Graph(operators=(group, count), categories={"age": ("young", "old")}, ranges={})
    >>> [cluster.name for cluster in graph.plan(50, Traffic(sigma=0.2)).reachable("people")]
    ['by age']
    """

    operators: tuple[AnyOperator, ...]
    categories: Mapping[str, Groups]
    ranges: Mapping[str, tuple[float, float]]

    def named(self, name: str) -> AnyOperator | None:
        """Return the operator of that name; None for "people" and unknown names."""
        return next((operator for operator in self.operators if operator.name == name), None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The grouping columns that the operators use, in the order of their first use."""
        names: list[str] = []
        for operator in self.operators:
            match operator:
                case SelectOperator():
                    names += operator.where
                case GroupOperator() | JoinOperator():
                    names += operator.by or ()
        return tuple(dict.fromkeys(names))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers that the operators use, in the order of their first use."""
        names: list[str] = []
        for operator in self.operators:
            match operator:
                case AggregateOperator():
                    names += operator.values
                case IterateOperator():
                    names += self.ranges
        return tuple(dict.fromkeys(names))

    def grouping(self, operator: GroupOperator | JoinOperator, side: int = 0) -> GroupingSet:
        """Return the grouping columns of a group, or the key column of one side of a join."""
        columns = (operator.by[side],) if isinstance(operator, JoinOperator) else operator.by or ()
        return GroupingSet(columns=columns, sizes=tuple(len(self.categories[name]) for name in columns))

    def aggregated(self, operator: AggregateOperator, group: GroupOperator) -> GroupingQuery:
        """Return the query of an aggregate over a group."""
        return GroupingQuery(
            grouping_sets=(self.grouping(group),),
            values=operator.values,
            functions=operator.functions,
            partitions=group.nodes,
            ranges=tuple(self.ranges[name] for name in operator.values),
        )

    def selected(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return the labels in each column that the select of that name keeps; empty for "people"."""
        operator = self.named(name)
        if not isinstance(operator, SelectOperator):
            return {}
        labels = self.selected(operator.of)
        for column, wanted in operator.where.items():
            labels[column] = tuple(label for label in labels.get(column, wanted) if label in wanted)
        return labels

    def disjoint(self, join: JoinOperator) -> bool:
        """Whether no person can be on both sides of a join: its selects exclude each other in a column."""
        left, right = map(self.selected, join.of)
        return any(set(labels).isdisjoint(right[column]) for column, labels in left.items() if column in right)

    def pairs_moved(self, join: JoinOperator) -> int:
        """Return the largest change of all pair counts of a join together if one person is replaced.

        With at most a and b rows of a key that count, a removed row changes the counts by at most b or a if it is on
        one side, and by at most a + b - 1 if it is on both.

        Source: docs/theory/traffic.md, Theorem 14.
        """
        a, b = join.most
        return 2 * (max(a, b) if self.disjoint(join) else a + b - 1)

    @property
    def iterates(self) -> tuple[IterateOperator, ...]:
        """The iterates among the operators."""
        return tuple(operator for operator in self.operators if isinstance(operator, IterateOperator))

    @property
    def turns(self) -> int:
        """Number of parts of the people that take turns in the rounds of iterates."""
        return max((operator.turns for operator in self.iterates), default=1)

    def data(self, people: int) -> list[Data]:
        """Return the sets of data: the people, or the parts of them that take turns."""
        if self.turns == 1:
            return [Data(name=PEOPLE, items=people)]
        sizes = parts(people, self.turns)
        return [Data(name=_part(number), items=size) for number, size in enumerate(sizes)]

    def _deciding(self, source: GroupOperator | JoinOperator, side: int) -> frozenset[str]:
        """Return the columns that decide the targets of a group or of one side of a join."""
        if isinstance(source, JoinOperator):
            return frozenset({source.by[side], *self.selected(source.of[side])})
        return frozenset({*(source.by or self.ranges), *self.selected(source.of)})

    @property
    def steps(self) -> tuple[Computation, ...]:
        """The stages of the plan, one for each group and join, in this order."""
        everybody = tuple(_part(number) for number in range(self.turns)) if self.turns > 1 else (PEOPLE,)
        steps = []
        users = {
            operator.of: operator
            for operator in self.operators
            if isinstance(operator, AggregateOperator | IterateOperator)
        }
        for source in self.operators:
            if not isinstance(source, GroupOperator | JoinOperator):
                continue
            operator = users[source.name]
            join = isinstance(source, JoinOperator)
            sides = source.of if isinstance(source, JoinOperator) else (source.of,)
            discards = any(self.selected(side) for side in sides)
            steered = isinstance(source, GroupOperator) and source.by is None
            stage = Stage(
                sends=(f"{source.name}, left", f"{source.name}, right") if join else (source.name,),
                nodes=operator.name,
                targets=source.nodes + discards,
                discards=discards,
                reads=(everybody,),
                columns=tuple(self._deciding(source, place) for place in range(len(sides))),
                release=operator.release,
            )
            if isinstance(operator, IterateOperator):
                alone = operator.turns > 1
                rounds = [(everybody[place % self.turns],) if alone else everybody for place in range(operator.rounds)]
                stage = replace(stage, reads=tuple(rounds), repeats=True, steered=steered, carries=operator.carries)
            steps.append(Computation(last=operator, source=source, stage=stage))
        return tuple(steps)

    def plan(self, people: int, traffic: Traffic) -> Plan:
        """Return the plan of the operators for this number of people."""
        count = _checks.integer("people", people, low=self.turns)
        public = any(operator.carries == "assumed public" for operator in self.iterates)
        return plans.staged(
            f"Plan of {len(self.operators)} operators",
            data=self.data(count),
            stages=[step.stage for step in self.steps],
            traffic=traffic,
            assumptions=[TURNS] * (self.turns > 1) + [MODELS_PUBLIC] * public,
        )


def _part(number: int) -> str:
    return f"{PEOPLE}, part {number + 1}"
