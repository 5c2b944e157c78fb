"""The Spark engine: it takes the rows of a table, and returns their reports sorted by secret random keys.

Steps: every record becomes a row with a random place and its report (`spark_tasks.Randomize`); Spark groups the
rows by bucket, and each bucket is sorted by place (`spark_tasks.Pack`); this machine reads the reports, bucket after
bucket, and writes them to a private file. The places are AES blocks under a key of this collection: without the key,
all orders of the records are equally likely. Spark handles many rows packed into one value, since its cost per value
would exceed all other costs. This machine inserts the dummies at random positions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import AnyKernel, Kernel
from hushuffle.collection.engines.spark_session import plainly, without_advice
from hushuffle.collection.engines.spark_tasks import (
    BUCKET,
    MARKS,
    PACKED,
    PLACE,
    SENT,
    Count,
    Pack,
    Randomize,
    Reader,
    no_counts,
)
from hushuffle.collection.record_tags import PAIR, Entries, TagSorter
from hushuffle.estimation.readout import readout
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Reveals, Shuffler
from hushuffle.model import Histogram
from hushuffle.model.report_layout import Packed
from hushuffle.randomness import Randomness, secure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_BLOCK: Final = 1 << 18  # items of the longer source at a time

Source: TypeAlias = tuple[int, Callable[[int, int], Packed]]
"""A source of items: their number, and a function that returns `count` items, beginning with item `start`."""


def interleaved(first: Source, second: Source, *, rng: Randomness) -> Iterator[Packed]:
    """Yield the items of both sources, each in its own order; every interleaving is equally likely.

    If the items of one source are in a uniformly random order, and those of the other are independent and identically
    distributed, so is the result. Memory: 8 bytes for each item of the smaller source.

    >>> from hushuffle import reproducible
    >>> def zeros(count: int, start: int) -> Packed:
    ...     return np.zeros(count, dtype=[("report", "u1")])
    >>> sum(block.size for block in interleaved((5, zeros), (7, zeros), rng=reproducible(1)))
    12
    """
    (small_size, small), (many, others) = sorted((first, second), key=lambda source: source[0])
    # The array gives, for each item of the smaller source, how many items of the larger source precede it.
    before = _subset(small_size + many, small_size, rng) - np.arange(small_size)
    used = 0
    for start in range(0, many, _BLOCK):
        block = others(min(_BLOCK, many - start), start)
        stop = int(np.searchsorted(before, start + block.size))
        yield np.insert(block, before[used:stop] - start, small(stop - used, used))
        used = stop
    if used < small_size:
        yield small(small_size - used, used)


def _subset(size: int, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
    """Return `count` distinct integers from 0 to size - 1, ascending; all subsets are equally likely (by symmetry)."""
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < count:
        chosen = np.union1d(chosen, rng.integers(size, count - chosen.size))
    return chosen


Progress = Callable[[int, int], None]
"""It takes the number of records on this machine, and the number of all records."""

_BUCKET: Final = 1 << 25  # approximate bytes of rows that are sorted together


class SparkCollection:
    """A collection with Spark: call `run`, check the counts, then read shuffled reports from `blocks`.

    A record is numbered by its id or, if the `reader` has no ids, by its position in the scan: file or part, then row.
    So without ids, `frame` must be the files as they were read; only columns may be left out. The `kernel` must have a
    key, since tasks may be executed twice. `size` is the amount to read, in the unit of `reader`, and the approximate
    number of records. `rng` places the dummies, and draws them if there is no key.
    """

    def __init__(
        self,
        frame: DataFrame,
        reader: Reader,
        kernel: AnyKernel,
        folder: Path,
        *,
        mechanism: str | None = None,
        size: tuple[int, int] | None = None,
        rng: Randomness | None = None,
    ) -> None:
        if kernel.key is None:
            _checks.reject("kernel", "one with a key", "one without", "Spark may execute a task twice.")
        if reader.ids != (mechanism is not None):
            _checks.reject("mechanism", "given exactly when records have ids", "<the other>")
        self._frame, self._kernel, self._file, self._size = frame, kernel, folder / "reports", size
        self._task = Randomize(reader=reader, kernel=kernel, order_key=secrets.token_bytes(32), mechanism=mechanism)
        self._rng = secure() if rng is None else rng
        self.people = 0
        self.marks = dict.fromkeys(MARKS, 0)
        self._sorter = None
        if reader.ids:
            (folder / "tags").mkdir(mode=0o700)
            tags = self._task.tags()
            self._sorter = TagSorter(folder / "tags", scope=tags.scope, deployment=tags.deployment)

    def run(self, progress: Progress | None = None) -> None:
        """Randomize and shuffle all records; afterwards `people` and `marks` (records without a report) are set."""
        tell = progress or (lambda _count, _total: None)
        counts = no_counts()
        with plainly(), self._file.open("xb") as file:
            total, records = self._size or (self._frame.count(),) * 2
            width = PLACE + self._kernel.layout.dtype.itemsize + (0 if self._sorter is None else PAIR)
            for row in _rows(self._shuffled(max(1, -(-records * width // _BUCKET)))):
                file.write(row["reports"])
                self.people += len(row["reports"]) // self._kernel.layout.dtype.itemsize
                counts += np.frombuffer(row["counts"], dtype=np.int64)
                if self._sorter is not None:
                    self._sorter.add(np.frombuffer(row["tags"], dtype=np.uint64).reshape(-1, 2))
                tell(self.people, records)
        read, seen, *marked = counts.tolist()
        self.marks = dict(zip(MARKS, marked, strict=True))
        if read != total or seen != self.people + sum(marked):
            fail("The table has changed while it was read: nothing was released. Run the collection again.")

    def entries(self) -> Entries:
        """This method can be called only once."""
        assert self._sorter is not None
        return self._sorter.entries()

    def blocks(self, shuffler: Shuffler, dummy_key: bytes | None = None) -> Iterator[Packed]:
        """Yield reports and dummies in a uniformly random order; a repeated batch needs the same `dummy_key`."""
        assert shuffler.reveals in (Reveals.MULTISET, Reveals.SUMS)
        assert isinstance(self._kernel, Kernel)
        kernel, placed = replace(self._kernel, key=dummy_key), shuffler.placed
        with self._file.open("rb") as file:

            def reports(count: int, _start: int) -> Packed:
                return np.fromfile(file, dtype=self._kernel.layout.dtype, count=count)

            def drawn(count: int, start: int) -> Packed:
                return kernel.dummies(count, start=start, rng=self._rng, placed=placed)

            yield from interleaved((self.people, reports), (shuffler.dummies, drawn), rng=self._rng)

    def packed(self) -> Iterator[Packed]:
        with self._file.open("rb") as file:
            while (block := np.fromfile(file, dtype=self._kernel.layout.dtype, count=_BLOCK)).size:
                yield block

    def _shuffled(self, buckets: int) -> DataFrame:
        task = replace(self._task, buckets=buckets)
        with without_advice():
            rows = self._frame.mapInArrow(task, SENT)
            return rows.repartitionById(buckets, BUCKET).mapInArrow(Pack(layout=self._kernel.layout), PACKED)


def count_reports(frame: DataFrame, randomizer: Mechanism) -> tuple[int, Histogram]:
    readout(randomizer, for_what="An estimate of frequencies")  # the function either returns or refuses
    layout = randomizer.layout
    size, counts = 0, np.zeros(randomizer.counted, dtype=np.int64)
    with plainly():
        columns = frame.select(*(quoted(name) for name in layout.names))
        with without_advice():
            counted = columns.mapInArrow(Count(counter=randomizer, layout=layout), Count.SCHEMA)
        for row in _rows(counted):
            numbers = np.frombuffer(row["counted"], dtype="<i8")
            size += int(numbers[0])
            counts += numbers[1:]
    return size, Histogram(counts=counts)


def dtype_of(frame: DataFrame, column: str) -> pl.DataType:
    """Return the Polars type that a column of `frame` has in the workers."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - heavy

    with plainly(), without_advice():
        table = pl.from_arrow(to_arrow_schema(frame.select(quoted(column)).schema).empty_table())
    assert isinstance(table, pl.DataFrame)
    return table.dtypes[0]


def quoted(column: str) -> str:
    """Return the name of a column, quoted so that Spark does not interpret its characters.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + column.replace("`", "``") + "`"


def _rows(frame: DataFrame) -> Iterator[dict[str, bytes]]:
    """Yield the rows of all partitions, one partition after the other; Spark computes the next one in the meantime."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        yield row.asDict()
