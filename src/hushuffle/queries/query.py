"""What a query is: a section of a plan's file (`Query`), and what nodes are told (`Task`); each kind is one file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from hushuffle.errors import DataError, Problem
from hushuffle.model import Chart, HeatMap, Table
from hushuffle.plans import Plan, Traffic
from hushuffle.queries.exchange import Exchange, asked_rows
from hushuffle.randomness import Randomness
from hushuffle.specification._base import Section, either
from hushuffle.specification.csv_keys import CsvKeys

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.floating]


class Task(BaseModel, ABC):
    """A query as the nodes of a run know it: part of the run's document, the same for all.

    A record is a row of numbers. Steps of the plan are numbered from 1 on, the compute nodes of a step from 0 on. What
    a node has merged, what it tells the result, what the result makes of it: arrays of numbers, shapes as a kind likes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: ClassVar[bool] = False
    """Whether a step starts from what the one before it released, on the same nodes; else steps are side by side."""
    answers: ClassVar[str] = "answers"
    """Under which name the result lists what came of the steps."""
    lost: ClassVar[str] = "groups"
    """What nobody knows when a compute node is gone."""

    kind: str

    @property
    @abstractmethod
    def targets(self) -> int:
        """Compute nodes of each step."""

    @property
    def steps(self) -> int | None:
        """How many steps it takes; None: as many as the plan says."""
        return None

    @property
    def noisy(self) -> bool:
        """Whether what a node tells has noise: then it is told once, and only records on purpose carry data."""
        return False

    @property
    def start(self) -> Floats | None:
        """What everybody knows before the first step."""
        return None

    @property
    @abstractmethod
    def figures(self) -> int:
        """Numbers in the answer of one step, at most."""

    @abstractmethod
    def size(self, step: int) -> int:
        """Bytes of a record."""

    @abstractmethod
    def own(self, step: int, rows: Rows, known: Floats | None) -> Integers:
        """Return each record's own compute node, shape (n,); `known`: what everybody knows before the step."""

    @abstractmethod
    def pack(self, step: int, rows: Rows) -> list[bytes]:
        """Return each record's bytes."""

    @abstractmethod
    def check(self, step: int, node: int, content: bytes) -> None:
        """Refuse bytes that are no record of a node (DataError that shows nothing of them)."""

    @abstractmethod
    def sample(self, step: int, node: int) -> bytes:
        """Return some record of a node: what is computed with where a message carries no data."""

    @abstractmethod
    def empty(self, step: int) -> Floats:
        """Return what a node has merged before the first record."""

    @abstractmethod
    def merge(self, step: int, merged: Floats, contents: Sequence[bytes], used: Sequence[bool]) -> Floats:
        """Return what a node has merged after further records that were checked, of which those `used` count."""

    def joined(self, step: int, one: Floats, other: Floats) -> Floats:
        """Return what a node has merged of two parts of its records, each merged for itself."""
        del step
        return one + other

    @abstractmethod
    def width(self, step: int) -> int:
        """How many numbers a node tells, at most."""

    @abstractmethod
    def tell(self, step: int, node: int, merged: Floats, before: Floats | None, rng: Randomness) -> Floats:
        """Return the numbers that a node tells; `before`: those of the step before, None in the first."""

    @abstractmethod
    def part(self, step: int, node: int, told: Floats) -> Floats:
        """Return what a node's numbers say, `width` of them; refuse those that cannot be (DataError)."""

    @abstractmethod
    def combine(self, step: int, parts: Sequence[Floats]) -> Floats:
        """Return what came of a step, from the parts of all nodes; with `rounds` everybody may know it then."""

    def known(self, numbers: Floats) -> Floats:
        """Return what everybody knows before a step, as the result has shown it; refuse what cannot be (DataError)."""
        raise NotImplementedError

    @abstractmethod
    def answer(
        self, step: int, combined: Floats, came: Mapping[str, int], scale: Callable[[], float]
    ) -> dict[str, Any]:
        """Return what is published of a step, for JSON.

        Args:
            step: its number.
            combined: of all nodes.
            came: how many sources came, to be published with it.
            scale: gives the factor that makes estimates for everybody of counts and sums of what arrived.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """Points whose right `labels` are known, to hold clusters against; `what` says what they are."""

    points: Rows = field(repr=False)
    labels: Integers = field(repr=False)
    what: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """The records of a query, private: `rows` of numbers, one for each of `n` people; `source`: where they are from.

    `start` is what everybody knows beforehand, where that goes with the records; `known`: labels to compare with.
    """

    n: int
    source: str
    dropped: int = 0
    rows: Rows = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    start: Floats | None = field(default=None, repr=False)
    known: Known | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulated:
    """What one run of a plan came to: the exchanges of its clusters whose messages depend on data, what to show."""

    exchanges: tuple[Exchange, ...] = ()
    answers: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    heat_maps: tuple[HeatMap, ...] = ()


class MadeUp(Section):
    """Made-up records."""

    people: Annotated[int, Field(ge=1, le=10**7)]
    """How many people, one record each."""


class Query(CsvKeys, ABC):
    """The section [query] of a plan's file."""

    model_config = ConfigDict(json_schema_extra=either("data", "generated"))

    tables: ClassVar[Mapping[str, type[Section]]] = {}
    """Its tables by name, for messages about keys that belong elsewhere."""
    task_type: ClassVar[type[Task]]

    kind: str
    data: Annotated[str, Field(min_length=1)] | None = None
    """A CSV or Parquet file, a glob, or statsmodels:NAME; one record for each person. This or generated."""
    generated: MadeUp | None = None
    """Made-up records instead of data."""
    missing: Literal["refuse", "drop"] = "refuse"
    """What becomes of records with a missing value."""

    @classmethod
    @abstractmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield the broken rules that tie its values together; values of the wrong type are passed over."""

    @property
    def everybody(self) -> bool:
        """Whether each person takes part in every step, or in one of them."""
        return True

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Columns of numbers without public ends: one person's may decide every sum."""
        return ()

    @property
    def drawn(self) -> tuple[Self, str] | None:
        """A shorter query to be drawn in its place, and what to say of it; None: it is drawn itself."""
        return None

    @abstractmethod
    def plan(self, people: int, traffic: Traffic) -> Plan:
        """Return the plan for so many people."""

    @abstractmethod
    def records(self, base_folder: Path) -> Records:
        """Return the records, read or made up.

        Raises:
            DataError, MissingDependencyError: the data cannot be used.
        """

    def counted(self, base_folder: Path) -> Records:
        """Return how many people there are, without made-up records: all that an analysis needs."""
        if self.generated is not None:
            return Records(n=self.generated.people, source="made-up records")
        read = self.records(base_folder)
        return Records(n=read.n, source=read.source, dropped=read.dropped)

    def brought(self, data: str, folder: Path) -> Records:
        """Return the records in a table that a source brings to a run on hosts of their own."""
        return self.model_copy(update={"data": data, "generated": None, "missing": "refuse"}).records(folder)

    def asked(self, plan: Plan, people: int, rng: Randomness) -> list[Integers]:
        """Return who is asked in each step."""
        return asked_rows(plan, people, rng)

    @abstractmethod
    def task(self, records: Records | None = None) -> Task:
        """Return what the nodes of a run are told; `records`: those of a rehearsal, None on hosts of their own.

        Raises:
            UnsupportedProtocolError: it does not run over a network.
        """

    @abstractmethod
    def promises(self, task: Any) -> bool:
        """Say whether nodes that are told `task` do what this query says."""

    @abstractmethod
    def simulate(self, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]) -> Simulated:
        """Return one run over the records, beside the truth; `tell` is told the share done."""

    @abstractmethod
    def compared(self, answers: Sequence[Mapping[str, Any]], records: Records) -> Simulated:
        """Return what the result of a network published of each step, beside the truth."""


def either_data_or_generated(query: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problem of a query that has both or neither."""
    given = [key for key in ("data", "generated") if key in query]
    if len(given) != 1:
        hint = "" if given else "For example generated = { people = 10_000 }."
        value = "both" if given else "neither"
        yield Problem(key="query", rule="must have either data or generated", value=value, hint=hint)


def table(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a table of a file that was not checked yet, empty if it is none."""
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def refuse_content(message: str) -> NoReturn:
    """Refuse what a peer has sent."""
    raise DataError(message)
