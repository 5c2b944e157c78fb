"""A query: a section of a plan's file (`Query`), and the work of the nodes (`Task`); each type has its own file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from hushuffle._checks import Floats, Integers
from hushuffle.errors import Problem
from hushuffle.model import Chart, HeatMap, Table
from hushuffle.plans import Plan, Traffic
from hushuffle.randomness import Randomness
from hushuffle.specification._base import CsvKeys, Section, unfit
from hushuffle_network.queries.exchange import Exchange, asked_rows

if TYPE_CHECKING:
    from hushuffle.tables.categories import Categories
    from hushuffle.tables.private import PrivateTable

Rows: TypeAlias = npt.NDArray[np.floating]


class Task(BaseModel, ABC):
    """The part of a query that the nodes of a run need: it is in the run's document, the same for all nodes.

    A record is a row of numbers. Steps of the plan are numbered from 1, the compute nodes of a step from 0. The
    state of a node, its answer and the combined result are arrays of numbers; each type of query defines their shapes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: ClassVar[bool] = False
    """Whether a step starts from the release of the step before, on the same nodes; otherwise steps are parallel."""
    answers: ClassVar[str] = "answers"
    """The key under which the result lists the outcome of the steps."""

    @property
    @abstractmethod
    def targets(self) -> int:
        """Number of compute nodes of each step."""

    @property
    def start(self) -> Floats | None:
        """The public values before the first step."""
        return None

    @abstractmethod
    def size(self, step: int) -> int:
        """Return the size of a record, in bytes."""

    @abstractmethod
    def own(self, step: int, rows: Rows, known: Floats | None) -> Integers:
        """Return each record's own compute node, shape (n,); `known`: the public values before the step."""

    @abstractmethod
    def pack(self, step: int, rows: Rows) -> list[bytes]:
        """Return the bytes of each record."""

    @abstractmethod
    def check(self, step: int, node: int, content: bytes) -> None:
        """Reject bytes that are not a record of this node, by a DataError that quotes none of them."""

    @abstractmethod
    def sample(self, step: int, node: int) -> bytes:
        """Return a valid record of this node: a placeholder for a message without data."""

    @abstractmethod
    def empty(self, step: int) -> Floats:
        """Return the state of a node before the first record."""

    @abstractmethod
    def merge(self, step: int, merged: Floats, contents: Sequence[bytes], used: Sequence[bool]) -> Floats:
        """Return the state of a node after further checked records; only records with `used` count."""

    def joined(self, step: int, one: Floats, other: Floats) -> Floats:
        """Return the state merged from two parts of a node's records."""
        return one + other

    @abstractmethod
    def width(self, step: int) -> int:
        """Return the largest number of numbers that a node returns."""

    @abstractmethod
    def tell(self, step: int, node: int, merged: Floats, rng: Randomness) -> Floats:
        """Return the numbers that a node returns."""

    @abstractmethod
    def part(self, step: int, node: int, told: Floats) -> Floats:
        """Return the `width` values in a node's numbers; reject impossible numbers (DataError)."""

    @abstractmethod
    def combine(self, step: int, parts: Sequence[Floats]) -> Floats:
        """Return the outcome of a step from the parts of all nodes; in a query with `rounds` it becomes public."""

    @abstractmethod
    def answer(
        self, step: int, combined: Floats, came: Mapping[str, int], scale: Callable[[], float]
    ) -> dict[str, Any]:
        """Return what a step publishes, as JSON values.

        `came`: the number of sources that took part, which is also published. `scale`: a function that returns the
        factor from counts and sums of arrived tuples to estimates for all people.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """Points with reference `labels`, with which clusters are compared; `what` describes the labels."""

    points: Rows = field(repr=False)
    labels: Integers = field(repr=False)
    what: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """The private records of a query: `rows` of numbers, one for each of `n` people; `source`: their origin.

    `start`: the public values before the first step, if they come with the records; `known`: reference labels.
    """

    n: int
    source: str
    dropped: int = 0
    rows: Rows = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    start: Floats | None = field(default=None, repr=False)
    known: Known | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class DeviceQuery:
    """What a run asks of each person's device: for each of the `steps`, its columns and their numbers of groups.

    `columns`: the groups of each column. `values`: columns of numbers with their public ranges, None without a range.
    `per_person`: whether a device answers all steps, or one that it draws. `task`: the computation of the targets.
    """

    columns: Mapping[str, dict[str, str] | tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    per_person: Literal["all", "one"] = "all"
    steps: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]
    task: Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulated:
    """The outcome of one run of a plan: the exchanges of its data-dependent clusters, and the results to show."""

    exchanges: tuple[Exchange, ...] = ()
    answers: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    heat_maps: tuple[HeatMap, ...] = ()


class MadeUp(Section):
    """A request for synthetic records."""

    people: Annotated[int, Field(ge=1, le=10**7)]
    """Number of people, one record each."""


class Query(CsvKeys, ABC):
    """The section [query] of a plan's file."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["data", "generated"]}})

    tables: ClassVar[Mapping[str, tuple[type[Section], ...]]] = {}
    """The kinds of tables inside this section, by name, for messages about misplaced keys."""
    task_type: ClassVar[type[Task]]

    kind: str
    data: Annotated[str, Field(min_length=1)] | None = None
    """A CSV or Parquet file, a glob, or statsmodels:NAME; one record for each person. Give this or `generated`."""
    generated: MadeUp | None = None
    """Synthetic records instead of data."""
    missing: Literal["refuse", "drop"] = "refuse"
    """The treatment of records with a missing value."""

    @classmethod
    @abstractmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield broken rules on combinations of the section's values; values of the wrong type are skipped."""

    @property
    def everybody(self) -> bool:
        """Whether each person takes part in every step, instead of only one step."""
        return True

    @property
    def file(self) -> str:
        """The data of a query without generated records.

        Raises:
            SpecificationError: there are none.
        """
        if self.data is None:
            hint = "For example generated = { people = 10_000 }. For phones, plan analyse needs only --people N."
            unfit("query", "must have either data or generated", "neither", hint)
        return self.data

    @property
    def iteration(self) -> dict[str, Any] | None:
        """The settings that all iterations share, as phones get them; None: the query has no iterations."""
        return None

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Columns of numbers without public bounds: one person's value may dominate every sum."""
        return ()

    @property
    def drawn(self) -> tuple[Self, str] | None:
        """A shorter query for the drawing, with a description; None: the drawing is of this query."""
        return None

    @abstractmethod
    def plan(self, people: int, traffic: Traffic) -> Plan:
        """Return the plan for this number of people."""

    @abstractmethod
    def records(self, base_folder: Path) -> Records:
        """Return the records, read or generated.

        Raises:
            DataError, MissingDependencyError: the data cannot be used.
        """

    def read(
        self, base_folder: Path, *, categories: Mapping[str, Categories], numbers: Sequence[str] = ()
    ) -> PrivateTable:
        """Return the columns of the query's data: group numbers of `categories`, and `numbers`."""
        from hushuffle.tables.private import load_table  # noqa: PLC0415 - a mistake in the file shows without Polars

        return load_table(
            self.file,
            categories=categories,
            numbers=tuple(numbers),
            missing=self.missing,
            base_folder=base_folder,
            form=self.form,
        )

    def counted(self, base_folder: Path) -> Records:
        """Return records with only the number of people, for an analysis, which needs no values."""
        if self.generated is not None:
            return Records(n=self.generated.people, source="synthetic records")
        read = self.records(base_folder)
        return Records(n=read.n, source=read.source, dropped=read.dropped)

    def asked(self, plan: Plan, people: int, rng: Randomness) -> list[Integers]:
        """Return the rows that take part in each step."""
        return asked_rows(plan, people, rng)

    @abstractmethod
    def task(self) -> Task:
        """Return the task of a run's nodes."""

    @abstractmethod
    def for_devices(self, start: Sequence[Sequence[float]] | None = None) -> DeviceQuery:
        """Return the query as the people's devices receive it.

        `start`: the public values before the first step of the run, by default those of the query.
        """

    @abstractmethod
    def simulate(self, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]) -> Simulated:
        """Return one run over the records, compared with the true result; `tell` receives the share of work done."""

    @abstractmethod
    def compared(self, answers: Sequence[Mapping[str, Any]], records: Records) -> Simulated:
        """Return the steps' published results of a network run, compared with the true result."""


def data_or_generated(query: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problem of a query that has both `data` and `generated`."""
    if "data" in query and "generated" in query:
        yield Problem(key="query", rule="must have either data or generated", value="both")


def table(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a table of an unchecked file; an empty one if the value is not a table."""
    value = raw.get(key)
    return value if isinstance(value, dict) else {}
