"""Read people's numbers and split them into messages for a sum: on this machine or on Spark.

Numbers are read twice, since the noise of a person depends on the number of people. With the same key, ids and round,
both engines give the same messages.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import numpy as np

from hushuffle._checks import Integers, Words
from hushuffle.collection.engines.kernel import AnyKernel, Keyed
from hushuffle.collection.record_tags import Entries, Tags, TagSorter, record_numbers, written_normally
from hushuffle.collection.release import batches_of
from hushuffle.collection.request import Asked, Request
from hushuffle.files.secret_keys import derived
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import NumberGrid
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.randomness import Randomness, keyed, secure
from hushuffle.tables.categories import MISSING

if TYPE_CHECKING:
    from hushuffle.collection.engines.spark import SparkCollection

Tell = Callable[[str, float], None]

_COUNTING: Final = 0.2
"""Share of the time, on average, that the first reading takes."""

MIXED: Final = 0.7
"""Share of the time, on average, after which all messages are drawn."""


@dataclass(frozen=True, kw_only=True)
class SumKernel(Keyed):
    """Under one key, the randomness of different columns is independent; see `Kernel`."""

    protocol: SplitAndMix
    column: str

    @property
    def layout(self) -> ReportLayout:
        count = self.protocol.messages
        names = tuple(f"message {place}" for place in range(1, count + 1))
        return ReportLayout(names=names, limits=(self.protocol.modulus,) * count)

    @property
    def mechanism(self) -> str:
        return "\n".join([repr(self.protocol), repr(self.column)])

    def messages(self, values: Integers, *, records: Words | None = None, rng: Randomness | None = None) -> Integers:
        """Return the messages of all people, shape (messages, people); with a key, those of the numbered `records`."""
        source = secure() if rng is None else rng
        if self.key is not None and records is not None:
            drawn = derived(self.key, f"split and mix 1, {self.column}")
            source = keyed(key=drawn, records=records, round=self.round)
        return self.protocol.shares(self.protocol.grid.rounded(values, rng=source), rng=source)

    def reports(self, values: Integers, *, records: Words | None = None, rng: Randomness | None = None) -> Packed:
        return self.layout.pack(self.messages(values, records=records, rng=rng).T)


@dataclass(frozen=True, kw_only=True)
class _Counting(Keyed):
    """A kernel that only returns whether each number is outside the bounds."""

    grid: NumberGrid
    layout: ClassVar[ReportLayout] = ReportLayout(names=("outside",), limits=(2,))

    def reports(self, values: Integers, *, records: Words | None = None, rng: Randomness | None = None) -> Packed:
        return self.layout.pack(self.grid.outside(values).astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class Counted:
    people: int
    dropped: int
    clipped: int


class Source(Protocol):
    """Reads the numbers of all people twice: first to count them, then to split them into messages by a kernel."""

    def count(self) -> Counted:
        """Return the counts of the numbers."""

    def messages(self, kernel: SumKernel) -> Iterator[Integers]:
        """Yield the messages of all people in blocks, in an order that may identify people; can be called only once."""

    def entries(self) -> Entries | None:
        """Return the ledger's entries of all records, once `messages` is exhausted; None without a key."""


@contextmanager
def opened_source(asked: Asked, request: Request, grid: NumberGrid, spill: Path) -> Iterator[Source]:
    if request.master is None:
        yield _Here(asked, request, grid, spill)
        return
    from hushuffle.collection.engines.spark_session import started  # noqa: PLC0415 - heavy

    request.tell("starting Spark", 0.0)
    with started(request.master):
        yield _Spark(asked, request, grid, spill)


class _Here:
    def __init__(self, selection: Asked, request: Request, grid: NumberGrid, spill: Path) -> None:
        self._asked, self._request, self._grid, self._spill = selection, request, grid, spill
        self._sorter: TagSorter | None = None
        self._people = 0

    def count(self) -> Counted:
        batches, people, dropped, clipped = batches_of(self._asked), 0, 0, 0
        total = max(batches.count(), 1) if self._request.progress else 1
        for batch in batches:
            people, dropped = people + batch.values.size, dropped + batch.dropped
            clipped += int(np.count_nonzero(self._grid.outside(batch.values)))
            self._request.tell("counting people", _COUNTING * min((people + dropped) / total, 1.0))
        self._people = people
        return Counted(people=people, dropped=dropped, clipped=clipped)

    def messages(self, kernel: SumKernel) -> Iterator[Integers]:
        seen = 0
        for batch in batches_of(self._asked):
            if kernel.key is None:
                yield kernel.messages(batch.values)
            else:
                assert batch.ids is not None
                records = record_numbers(batch.ids, key=kernel.key)
                tags = kernel.tags(kernel.mechanism)
                sorter = self._noted(tags)
                sorter.plain &= written_normally(batch.ids)
                sorter.add(tags.of(records, batch.values))
                yield kernel.messages(batch.values, records=records)
            seen += batch.values.size
            done = seen / max(self._people, 1)
            self._request.tell("splitting numbers up", _COUNTING + (MIXED - _COUNTING) * min(done, 1.0))

    def _noted(self, tags: Tags) -> TagSorter:
        if self._sorter is None:
            (self._spill / "tags").mkdir(mode=0o700)
            self._sorter = TagSorter(self._spill / "tags", scope=tags.scope, plain=True)
        return self._sorter

    def entries(self) -> Entries | None:
        return None if self._sorter is None else self._sorter.entries()


class _Spark:
    def __init__(self, selection: Asked, request: Request, grid: NumberGrid, spill: Path) -> None:
        self._asked, self._request, self._grid, self._spill = selection, request, grid, spill
        self._made: SparkCollection | None = None

    def count(self) -> Counted:
        collection = self._run(
            "counting people", _Counting(grid=self._grid, key=secrets.token_bytes(32)), 0.0, _COUNTING
        )
        clipped = sum(int(np.count_nonzero(block["outside"])) for block in collection.packed())
        return Counted(people=collection.people, dropped=collection.marks[MISSING], clipped=clipped)

    def messages(self, kernel: SumKernel) -> Iterator[Integers]:
        mechanism = None if kernel.key is None else kernel.mechanism
        # Spark may repeat tasks, so randomness is always keyed; without a key file, by a fresh, discarded key.
        drawn = replace(kernel, key=kernel.key or secrets.token_bytes(32))
        collection = self._run("splitting numbers up", drawn, _COUNTING, MIXED, mechanism=mechanism)
        self._made = None if mechanism is None else collection
        for block in collection.packed():
            yield kernel.layout.unpack(block)

    def entries(self) -> Entries | None:
        return None if self._made is None else self._made.entries()

    def _run(
        self, what: str, kernel: AnyKernel, start: float, end: float, *, mechanism: str | None = None
    ) -> SparkCollection:
        from pyspark.sql import SparkSession  # noqa: PLC0415

        from hushuffle.collection.engines.spark import SparkCollection  # noqa: PLC0415 - heavy
        from hushuffle.collection.spark import read_table, refuse_marked  # noqa: PLC0415

        session = SparkSession.getActiveSession()
        assert session is not None  # `started` gives one
        frame, reader, size = read_table(session, self._asked, given=self._request.sources)
        folder = self._spill / what.replace(" ", "-")
        folder.mkdir(mode=0o700)
        reader = replace(reader, ids=mechanism is not None)
        collection = SparkCollection(frame, reader, kernel, folder, mechanism=mechanism, size=size)
        collection.run(lambda rows, total: self._request.tell(what, start + (end - start) * rows / max(rows, total, 1)))
        refuse_marked(self._asked, collection)
        return collection
