"""How a plan's file defines the meaning of a table's columns: groups, intervals and public ranges."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag

from hushuffle.errors import Problem
from hushuffle.plans import GroupingQuery, generate_table
from hushuffle.specification._base import ConditionText, Label, Name, Section, refuse
from hushuffle_network.queries.query import MadeUp, Query, Records, table

_SHAPES: Final = (
    "must be a list of labels, a table of conditions, a table with low, high and intervals, or a number of groups"
)
Names: TypeAlias = Annotated[tuple[Name, ...], Field(strict=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Intervals(Section):
    """Equal intervals of numbers; numbers outside all intervals are counted in the first or the last interval."""

    low: Finite
    """Lower bound of the first interval."""
    high: Finite
    """Upper bound of the last interval."""
    intervals: Annotated[int, Field(ge=2, le=10_000)]
    """Number of intervals."""

    def conditions(self) -> dict[str, str]:
        """Return the condition of each interval, by the name of the interval.

        >>> Intervals(low=0, high=30, intervals=3).conditions()
        {'below 10': '< 10', '10 to 20': '>= 10 and < 20', '20 and more': '>= 20'}
        """
        width = (self.high - self.low) / self.intervals
        cuts = [f"{self.low + place * width:.12g}" for place in range(1, self.intervals)]
        inner = {f"{a} to {b}": f">= {a} and < {b}" for a, b in itertools.pairwise(cuts)}
        return {f"below {cuts[0]}": f"< {cuts[0]}", **inner, f"{cuts[-1]} and more": f">= {cuts[-1]}"}


class Generated(MadeUp):
    """Synthetic records: grouping columns are independent, values are normal around a mean of the group."""

    distribution: Literal["uniform", "skewed"] = "uniform"
    """"uniform": every group of a column equally likely; "skewed": group i with weight 1/(i + 1)."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The seed; equal seeds give equal records."""


def columns_of(
    query: Query, made: Generated | None, grouping: GroupingQuery, base_folder: Path, categories: Mapping[str, Groups]
) -> tuple[Mapping[str, Any], Records]:
    """Return the columns of a query, synthetic if it has `made`, and its records without rows."""
    if made is not None:
        columns = generate_table(grouping, made.people, distribution=made.distribution, seed=made.seed)
        return columns, Records(n=made.people, source="synthetic records")
    read = query.read(base_folder, categories=categories, numbers=grouping.values)
    return {**read.groups, **read.numbers}, Records(n=read.n, source=read.source, dropped=read.dropped)


def _shape(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return "<number>"
    if isinstance(value, list | tuple):
        return "<list>"
    if isinstance(value, Intervals) or (isinstance(value, dict) and isinstance(value.get("intervals"), int)):
        return "<intervals>"
    return "<table>" if isinstance(value, dict) else None


def _pair(value: Any) -> Any:
    pair = isinstance(value, list | tuple) and len(value) == 2
    if not pair or not all(isinstance(end, int | float) and not isinstance(end, bool) for end in value):
        refuse("must be [low, high], two numbers")
    try:
        return tuple(float(end) for end in value)
    except OverflowError:
        refuse("must be [low, high], two numbers that a float can hold")


GroupingColumn = Annotated[
    Annotated[Annotated[int, Field(ge=2, le=10_000)], Tag("<number>")]
    | Annotated[Intervals, Tag("<intervals>")]
    | Annotated[dict[Label, ConditionText], Tag("<table>")]
    | Annotated[tuple[Label, ...], Field(strict=False), Tag("<list>")],
    Discriminator(_shape, custom_error_type="rule", custom_error_message=_SHAPES),
]
"""The rule that assigns a column's values to groups; for generated data, only the number of groups."""
Range = Annotated[tuple[Finite, Finite], BeforeValidator(_pair)]
"""The public bounds of a column of numbers."""
Groups: TypeAlias = dict[str, str] | tuple[str, ...]
"""Conditions by the name of the group, or labels of the groups."""


def groups_of(column: int | Intervals | dict[str, str] | tuple[str, ...]) -> Groups:
    if isinstance(column, int):
        return tuple(str(group) for group in range(column))
    return column.conditions() if isinstance(column, Intervals) else column


def column_problems(query: Mapping[str, Any]) -> Iterator[Problem]:
    for name, column in table(query, "columns").items():
        here = f"query.columns.{name}"
        if isinstance(column, int) and "data" in query:
            hint = "Use a list of labels, a table of conditions, or { low, high, intervals }."
            yield Problem(
                key=here, rule="must define the values of each group if there are data", value=f"{column}", hint=hint
            )
        if isinstance(column, list | tuple) and len({str(label) for label in column}) < max(len(column), 2):
            yield Problem(key=here, rule="must be two or more different labels", value=f"{len(column)}")
        if isinstance(column, dict) and not isinstance(column.get("intervals"), int) and len(column) < 2:
            yield Problem(key=here, rule="must be two or more groups", value=f"{len(column)}")
        low, high = (column.get(end) if isinstance(column, dict) else None for end in ("low", "high"))
        if isinstance(low, int | float) and isinstance(high, int | float) and not low < high:
            yield Problem(key=here, rule="must have low < high", value=f"{low} and {high}")


def range_problems(query: Mapping[str, Any], key: str) -> Iterator[Problem]:
    for name, ends in table(query, key).items():
        numbers = isinstance(ends, list | tuple) and all(type(end) in (int, float) for end in ends)
        if numbers and len(ends) == 2 and not ends[0] < ends[1]:
            yield Problem(key=f"query.{key}.{name}", rule="must be [low, high], low first", value=f"{list(ends)}")


def group_count(column: Any) -> int | None:
    """Return the number of groups of a column before it is validated, or None if it is unknown."""
    if isinstance(column, dict) and isinstance(column.get("intervals"), int):
        return int(column["intervals"])
    if isinstance(column, dict | list | tuple):
        return len(column)
    return column if isinstance(column, int) else None
