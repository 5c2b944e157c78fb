"""Grouping sets: count, sum, average, minimum and maximum of columns, by groups of other columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Floats, Integers

Function = Literal["count", "sum", "avg", "min", "max"]

_MOST_GROUPS: Final = 10**7


@dataclass(frozen=True, kw_only=True)
class GroupingSet:
    """A grouping by one or more columns; column i contains integers 0..sizes[i]-1 (intervals, categories).

    A row's group is one number; the last column's interval varies fastest.

    Raises:
        InvalidInputError: no column, a repeated column, a missing size, or more than 10^7 groups.

    >>> import hushuffle as hs
    >>> hs.plans.GroupingSet(columns=("age", "bmi"), sizes=(20, 5)).codes({"age": [0, 19], "bmi": [3, 4]}).tolist()
    [3, 99]
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "sizes", tuple(_checks.integer("sizes", size, low=1) for size in self.sizes))
        if not self.columns or len(set(self.columns)) != len(self.columns):
            _checks.reject("columns", "one or more different names", self.columns)
        if len(self.sizes) != len(self.columns):
            _checks.reject("sizes", f"one for each of {len(self.columns)} columns", self.sizes)
        if self.groups > _MOST_GROUPS:
            _checks.reject("sizes", f"at most {_MOST_GROUPS:,} groups in all", self.groups)

    @property
    def name(self) -> str:
        """The names of the columns, joined."""
        return ", ".join(self.columns)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return math.prod(self.sizes)

    def codes(self, table: Mapping[str, npt.ArrayLike]) -> Integers:
        """Return the group of each row, shape (n,)."""
        result: Integers | None = None
        for column, size in zip(self.columns, self.sizes, strict=True):
            own = _checks.codes(column, column_of(table, column), k=size)
            if result is not None and own.size != result.size:
                _checks.reject(column, f"of {result.size:,} rows like the others", f"<{own.size:,} rows>")
            result = own if result is None else result * size + own
        assert result is not None
        return result


@dataclass(frozen=True, kw_only=True)
class GroupingQuery:
    """SELECT functions of `values` ... GROUP BY GROUPING SETS, each set split over `partitions` compute nodes.

    Partitions are contiguous: a group is in partition group * partitions // groups.

    Args:
        grouping_sets: the sets of grouping columns.
        values: columns of numbers to aggregate; if empty, only counts are computed.
        functions: any of count, sum, avg, min, max.
        partitions: compute nodes C of each grouping set, at most as many as the smallest set has groups.
        ranges: for each of `values` its public range (low, high) or None; empty: no column has one.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (the Aggregate query).

    >>> import hushuffle as hs
    >>> age = hs.plans.GroupingSet(columns=("age",), sizes=(20,))
    >>> hs.plans.GroupingQuery(grouping_sets=(age,), values=("insulin",), functions=("avg",), partitions=4).nodes(0,
    ...     [0, 19])
    array([0, 3])
    """

    grouping_sets: tuple[GroupingSet, ...]
    values: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ("count",)
    partitions: int
    ranges: tuple[tuple[float, float] | None, ...] = ()

    def __post_init__(self) -> None:
        for field in ("grouping_sets", "values", "functions", "ranges"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        ends = [one for one in self.ranges if one is not None]
        if self.ranges and len(self.ranges) != len(self.values):
            _checks.reject("ranges", f"one for each of {len(self.values)} values, or none", len(self.ranges))
        if not all(math.isfinite(low) and math.isfinite(high) and low < high for low, high in ends):
            _checks.reject("ranges", "pairs (low, high) of finite numbers with low < high", self.ranges)
        names = [one.name for one in self.grouping_sets]
        if not names or len(set(names)) != len(names):
            _checks.reject("grouping_sets", "one or more different functions", names)
        if not self.functions or not set(self.functions) <= set(get_args(Function)):
            _checks.reject("functions", f"among {', '.join(get_args(Function))}", self.functions)
        if len(set(self.values)) != len(self.values):
            _checks.reject("values", "different columns", self.values)
        if not self.values and set(self.functions) != {"count"}:
            _checks.reject("values", "set for sums, averages, minima and maxima", self.values)
        fewest = min(one.groups for one in self.grouping_sets)
        partitions = _checks.integer("partitions", self.partitions, low=1, high=fewest)
        object.__setattr__(self, "partitions", partitions)

    @property
    def ends(self) -> dict[str, tuple[float, float]]:
        """The public range (low, high) of each column of values that has a range."""
        pairs = zip(self.values, self.ranges or [None] * len(self.values), strict=True)
        return {name: pair for name, pair in pairs if pair is not None}

    def clipped(self, table: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Return the table with values outside their ranges clipped.

        >>> import hushuffle as hs
        >>> age = hs.plans.GroupingSet(columns=("age",), sizes=(20,))
        >>> query = hs.plans.GroupingQuery(grouping_sets=(age,), values=("x",), partitions=4, ranges=((0.0, 9.0),))
        >>> query.clipped({"age": np.array([3, 4]), "x": np.array([-1.0, 1e308])})["x"].tolist()
        [0.0, 9.0]
        """
        return {
            name: np.clip(values, *self.ends[name]) if name in self.ends else values for name, values in table.items()
        }

    def nodes(self, position: int, codes: npt.ArrayLike) -> Integers:
        """Return the compute node of each group in `codes`, for the grouping set at `position`, shape (n,)."""
        groups = self.grouping_sets[position].groups
        return _checks.codes("codes", codes, k=groups) * self.partitions // groups


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupStatistics:
    """Statistics of each of g groups: `count`, shape (g,); `sum`, `min`, `max`, `avg`, shape (g,) for each column.

    Groups without rows have sum 0, and nan as average, minimum and maximum.
    """

    name: str
    count: Floats
    sum: Mapping[str, Floats]
    min: Mapping[str, Floats]
    max: Mapping[str, Floats]

    @classmethod
    def of(cls, name: str, values: Sequence[str], numbers: Floats) -> GroupStatistics:
        """Return the statistics of columns `values` in an array with the layout of the property `numbers`."""
        v = len(values)
        sums, least, greatest = (dict(zip(values, numbers[1 + place * v :], strict=False)) for place in range(3))
        return cls(name=name, count=numbers[0], sum=sums, min=least, max=greatest)

    @property
    def numbers(self) -> Floats:
        """All statistics, shape (1 + 3 v, g): counts, then sums, minima, maxima of each of v columns."""
        return np.stack([self.count, *(one for part in (self.sum, self.min, self.max) for one in part.values())])

    @property
    def avg(self) -> dict[str, Floats]:
        """The averages: sum / count."""
        occupied = self.count > 0
        with np.errstate(over="ignore", invalid="ignore"):  # an average that is too large is infinite, or nan
            return {
                column: np.divide(total, self.count, out=np.full(total.size, np.nan), where=occupied)
                for column, total in self.sum.items()
            }

    def scaled(self, factor: float) -> GroupStatistics:
        """Return these statistics with counts and sums times `factor`: an estimate if 1/factor of the rows were used.

        Averages do not change; minimum and maximum are those of the used rows.
        """
        with np.errstate(over="ignore"):  # a value that is too large is infinite
            sums = {column: total * factor for column, total in self.sum.items()}
            count = self.count * factor
        return GroupStatistics(name=self.name, count=count, sum=sums, min=self.min, max=self.max)

    def plus(self, other: GroupStatistics) -> GroupStatistics:
        """Return the statistics of the union of the rows of `self` and `other`."""
        with np.errstate(over="ignore", invalid="ignore"):  # a value that is too large is infinite, or nan
            sums = {column: total + other.sum[column] for column, total in self.sum.items()}
            count = self.count + other.count
        least = {column: np.fmin(values, other.min[column]) for column, values in self.min.items()}
        greatest = {column: np.fmax(values, other.max[column]) for column, values in self.max.items()}
        return GroupStatistics(name=self.name, count=count, sum=sums, min=least, max=greatest)

    def results(self, query: GroupingQuery) -> dict[str, Floats]:
        """Return the results of `query` by name: "count", "avg(column)" and so on, shape (g,) each.

        An average is clipped to the column's range, if there is one, since noise on sum and count can move it outside.
        """
        answers: dict[str, Floats] = {"count": self.count} if "count" in query.functions else {}
        parts: dict[str, Mapping[str, Floats]] = {"sum": self.sum, "avg": self.avg, "min": self.min, "max": self.max}
        if query.ends:
            parts["avg"] = query.clipped(self.avg)
        for function in query.functions:
            if function != "count":
                answers |= {f"{function}({column})": parts[function][column] for column in query.values}
        return answers


def group_statistics(
    query: GroupingQuery, position: int, table: Mapping[str, npt.ArrayLike], *, used: Flags | None = None
) -> GroupStatistics:
    """Return statistics of grouping set number `position` over the rows with `used`, shape (n,) (default: all).

    Raises:
        InvalidInputError: a column is missing, of another length, or not made of finite numbers.

    >>> import hushuffle as hs
    >>> size = hs.plans.GroupingSet(columns=("size",), sizes=(3,))
    >>> query = hs.plans.GroupingQuery(grouping_sets=(size,), values=("x",), functions=("avg",), partitions=1)
    >>> hs.plans.group_statistics(query, 0, {"size": [0, 2, 0], "x": [1.0, 5.0, 2.0]}).avg["x"].tolist()
    [1.5, nan, 5.0]
    """
    grouping = query.grouping_sets[position]
    codes = grouping.codes(table)
    rows = np.ones(codes.size, dtype=np.bool_) if used is None else used
    if rows.shape != codes.shape:
        _checks.reject("used", f"of {codes.size:,} rows like the table", f"<shape {rows.shape}>")
    # Unused rows go into an additional group that is dropped, so that the running time hides how many rows are used.
    size = grouping.groups
    codes = np.where(rows, codes, size)
    sums: dict[str, Floats] = {}
    least: dict[str, Floats] = {}
    greatest: dict[str, Floats] = {}
    for column in query.values:
        numbers = np.asarray(column_of(table, column))
        if numbers.shape != rows.shape or not (np.issubdtype(numbers.dtype, np.number) or numbers.dtype == np.bool_):
            _checks.reject(
                column, f"{rows.size:,} numbers, one for each row", f"<{numbers.dtype}, shape {numbers.shape}>"
            )
        numbers = numbers.astype(np.float64)
        wrong = int(np.count_nonzero(~np.isfinite(numbers)))
        if wrong:
            _checks.reject(column, "finite numbers", f"<{wrong:,} that are not>")
        sums[column] = np.bincount(codes, weights=numbers, minlength=size + 1)[:size].astype(np.float64)
        for extremes, extreme, start in ((least, np.minimum, np.inf), (greatest, np.maximum, -np.inf)):
            values = np.full(size + 1, start)
            extreme.at(values, codes, numbers)
            extremes[column] = np.where(np.isfinite(values[:size]), values[:size], np.nan)
    count = np.bincount(codes, minlength=size + 1)[:size].astype(np.float64)
    return GroupStatistics(name=grouping.name, count=count, sum=sums, min=least, max=greatest)


def column_of(table: Mapping[str, npt.ArrayLike], name: str) -> Any:
    columns = list(getattr(table, "columns", table))
    if name not in columns:
        _checks.reject("table", f"with the column {name!r}", f"<columns {', '.join(columns)}>")
    return table[name]


def generate_table(
    query: GroupingQuery, rows: int, *, distribution: Literal["uniform", "skewed"] = "uniform", seed: int
) -> dict[str, npt.NDArray[Any]]:
    """Return `rows` synthetic records: independent grouping columns, values normal around a mean of the group.

    With `distribution` "uniform" all intervals are equally likely, with "skewed" interval i has weight 1/(i + 1).

    >>> import hushuffle as hs
    >>> age = hs.plans.GroupingSet(columns=("age",), sizes=(20,))
    >>> query = hs.plans.GroupingQuery(grouping_sets=(age,), partitions=20)
    >>> int(np.bincount(hs.plans.generate_table(query, 1000, distribution="skewed", seed=1)["age"]).argmax())
    0
    """
    if distribution not in ("uniform", "skewed"):
        _checks.reject("distribution", "uniform or skewed", distribution)
    count, generator = _checks.integer("rows", rows, low=0), np.random.default_rng(seed)
    table: dict[str, npt.NDArray[Any]] = {}
    for grouping in query.grouping_sets:
        for column, size in zip(grouping.columns, grouping.sizes, strict=True):
            weights = np.ones(size) if distribution == "uniform" else 1 / np.arange(1, size + 1)
            table.setdefault(column, generator.choice(size, size=count, p=weights / weights.sum()))
    first = table[query.grouping_sets[0].columns[0]]
    for column in query.values:
        table[column] = generator.normal(loc=100 + first, scale=15.0)
    return table
