"""What Spark's workers do with batches of records, of reports, of rows: pure functions of their content.

Spark may execute a task twice: after a failure, beside a slow one, or because it threw a result away. Every record
becomes exactly one row, and this row is a function of the record and of secret keys alone. So whatever is executed
again comes out the same, in whatever company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.record_tags import Tags, record_numbers
from hushuffle.errors import DataError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers
from hushuffle.tables.reader import coded

if TYPE_CHECKING:
    import pyarrow as pa

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Given = ParamSpec("Given")
Result = TypeVar("Result")

NAMELESS: Final = -4
TWICE: Final = -5
MARKS: Final = (MISSING, UNSEEN, OVERLAP, NAMELESS, TWICE)
"""In place of a report: why there is none. NAMELESS: no id; TWICE: an id that another record of the batch has."""

VALUE: Final = "value"
ID: Final = "id"
"""The columns of records."""

ORDER: Final = ("order_1", "order_2")
TAGS: Final = ("tag_1", "tag_2")
PACKED: Final = "reports binary, tags binary, marks binary"
"""The columns in which packed rows reach the driver, as Spark writes types."""

_PEOPLE, _NOBODY = 0, 1  # which numbers a place in the order is made of: those of records, or of rows
_POSITIONS: Final = 40  # bits for the position of a row in its partition
_COUNTED: Final = 1 << 20  # reports counted at a time


@dataclass(frozen=True, kw_only=True)
class Reader:
    """From a batch of rows to codes, or marks below 0, and ids: what `ColumnBatches` does with a part of a file.

    The private column is called "value", that of ids (if there are `ids`) "id".
    """

    answers: Answers
    ids: bool = False

    def read(self, frame: pl.DataFrame) -> tuple[Integers, pl.Series | None]:
        """Return codes 0..k-1 or marks, shape (n,), and ids as text, shape (n,)."""
        read = coded(self.answers.coding).read(VALUE, frame.schema[VALUE])
        codes = frame.select(read).to_series().to_numpy().astype(np.int64)
        if self.answers.instead is not None:
            codes[codes == MISSING] = self.answers.labels.index(self.answers.instead)
        if not self.ids:
            return codes, None
        ids = frame[ID]
        if ids.dtype.is_decimal():  # unsigned integers of 64 bits, as Spark reads them
            ids = ids.cast(pl.UInt64, strict=False)
        ids = ids.cast(pl.String)
        nameless = (ids.is_null() | (ids == "")).to_numpy()
        codes[nameless & (codes >= 0)] = NAMELESS
        return codes, ids


@dataclass(frozen=True, kw_only=True)
class Randomize:
    """Rows with a private column in; rows out that hold a place in the order and a report, or a mark.

    The places are AES blocks under a key of this collection alone: for distinct records they are distinct, and
    to whoever lacks the key their order is a uniformly random one. With a `mechanism` (see `record_tags.Tags`) each row
    also has the tags of its record.
    """

    reader: Reader
    kernel: Kernel
    order_key: bytes = field(repr=False)
    mechanism: str | None = None

    @property
    def schema(self) -> str:
        """The columns, as Spark writes types."""
        names = [*ORDER, *self.kernel.layout.names, *(TAGS if self.reader.ids else ())]
        return ", ".join(f"`{name}` long" for name in names)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start = partition() << _POSITIONS
        for batch in batches:
            yield quietly(self._rows, batch, start)
            start += batch.num_rows

    def _rows(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - belongs to Spark

        codes, ids = self.reader.read(_frame(batch))
        rows = np.arange(start, start + codes.size, dtype=np.uint64)
        kept = np.flatnonzero(codes >= 0)
        records = rows[kept] if ids is None else record_numbers(ids.gather(kept), key=self._key)
        alone = _alone(records)
        codes[kept[~alone]] = TWICE
        kept, records = kept[alone], records[alone]
        columns = self._places(rows, kept, records)
        packed = self.kernel.reports(codes[kept], records=records)
        for name in self.kernel.layout.names:
            columns[name] = codes.copy()  # marks stay, in all columns
            columns[name][kept] = packed[name]
        if ids is not None:
            pairs = np.zeros((codes.size, 2), dtype=np.uint64)
            pairs[kept] = self.tags().of(records, codes[kept])
            columns |= {name: pairs[:, side].view(np.int64) for side, name in enumerate(TAGS)}
        return pa.RecordBatch.from_pydict({name: pa.array(np.ascontiguousarray(v)) for name, v in columns.items()})

    def _places(self, rows: Words, kept: npt.NDArray[np.intp], records: Words) -> dict[str, Integers]:
        blocks = np.full((rows.size, 2), _NOBODY, dtype="<u8")
        blocks[:, 0] = rows
        blocks[kept, 0], blocks[kept, 1] = records, _PEOPLE
        # ECB on blocks that never repeat is a pseudorandom permutation of them.
        cipher = Cipher(algorithms.AES(self.order_key), modes.ECB()).encryptor()  # noqa: S305
        places = np.frombuffer(cipher.update(blocks.tobytes()), dtype="<i8").reshape(-1, 2)
        return {name: places[:, side] for side, name in enumerate(ORDER)}

    def tags(self) -> Tags:
        """Return what makes the tags of records."""
        assert self.mechanism is not None
        return Tags(key=self._key, round_number=self.kernel.round, mechanism=self.mechanism)

    @property
    def _key(self) -> bytes:
        assert self.kernel.key is not None
        return self.kernel.key


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Rows in their order in; one row for each batch out: its packed reports, its tags, how many marks of each kind."""

    layout: ReportLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield quietly(self._packed, batch)

    def _packed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - belongs to Spark

        columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}
        first = columns[self.layout.names[0]]
        kept = first >= 0
        packed = np.empty(np.count_nonzero(kept), dtype=self.layout.dtype)
        for name in self.layout.names:
            packed[name] = columns[name][kept]
        tags = [columns[name][kept] for name in TAGS if name in columns]
        pairs = np.stack(tags, axis=1) if tags else np.empty((0, 2), dtype=np.int64)
        marks = np.array([np.count_nonzero(first == mark) for mark in MARKS])
        return pa.RecordBatch.from_pydict(
            {
                "reports": pa.array([packed.tobytes()], pa.binary()),
                "tags": pa.array([pairs.tobytes()], pa.binary()),
                "marks": pa.array([marks.tobytes()], pa.binary()),
            }
        )


@dataclass(frozen=True, kw_only=True)
class Count:
    """Rows of reports in; one row out for each partition: how many reports there are, and the support of each value.

    The counts of partitions add up. A partition without a row has no reports.
    """

    counter: Mechanism
    layout: ReportLayout

    SCHEMA: ClassVar[str] = "counted binary"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - belongs to Spark

        size, total = 0, np.zeros(0, dtype=np.int64)
        for reports in self._gathered(batches):
            counts = quietly(self.counter.counts, reports).counts
            total = counts if not size else total + counts
            size += reports.shape[0]
        if size:
            counted = np.concatenate([np.array([size]), total]).astype("<i8")
            yield pa.RecordBatch.from_pydict({"counted": pa.array([counted.tobytes()], pa.binary())})

    def _gathered(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Integers]:
        """Yield reports many at a time: for local hashing, a count costs k log k however few there are."""
        held: list[Packed] = []
        for batch in batches:
            held.append(quietly(self._checked, batch))
            if sum(block.size for block in held) >= _COUNTED:
                yield self.layout.unpack(np.concatenate(held))
                held = []
        if any(block.size for block in held):
            yield self.layout.unpack(np.concatenate(held))

    def _checked(self, batch: pa.RecordBatch) -> Packed:
        frame = _frame(batch)
        packed = np.empty(frame.height, dtype=self.layout.dtype)
        for name, limit in zip(self.layout.names, self.layout.limits, strict=True):
            column = frame[name].cast(pl.Int64, strict=False)
            if column.null_count() or not bool(column.is_between(0, limit - 1).all()):
                message = f"column {name!r} holds something else than integers from 0 to {limit - 1:,}."
                raise DataError(message)
            packed[name] = column.to_numpy()
        return packed


def partition() -> int:
    """Return which partition this task has; 0 outside of Spark."""
    from pyspark import TaskContext  # noqa: PLC0415 - heavy

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def quietly(work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Return what `work` returns; what libraries say when something goes wrong may quote values, and Spark logs it."""
    try:
        return work(*args, **kwargs)
    except (DataError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - nothing may pass, and a panic of Polars is no Exception
        message = f"a task of hushuffle failed ({type(error).__name__})."
        raise DataError(message) from None


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _alone(records: Words) -> npt.NDArray[np.bool_]:
    """Return which records are there once, shape (n,)."""
    _, where, times = np.unique(records, return_inverse=True, return_counts=True)
    once: npt.NDArray[np.bool_] = times == 1
    return once[where]
