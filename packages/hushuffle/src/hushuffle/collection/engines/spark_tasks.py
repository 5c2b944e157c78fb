"""The tasks of Spark's workers: pure functions of a batch of records, reports or rows.

Spark may execute a task twice: after a failure, while a slow copy is running, or after it lost a result. Every record
becomes exactly one row, which is a function of the record and of secret keys alone. So a repeated execution returns the
same rows, whatever the other records of its batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hushuffle._checks import Integers, Words, fail
from hushuffle.collection.engines.kernel import AnyKernel
from hushuffle.collection.record_tags import Tags, record_numbers
from hushuffle.errors import DataError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.tables.categories import ID as ID_RULE
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers, coded
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.private import BATCH
from hushuffle.tables.reader import TableReader, csv_in_memory

if TYPE_CHECKING:
    import pyarrow as pa

Given = ParamSpec("Given")
Result = TypeVar("Result")

NAMELESS: Final = -4
TWICE: Final = -5
MARKS: Final = (MISSING, UNSEEN, OVERLAP, NAMELESS, TWICE)
"""NAMELESS: the record has no id. TWICE: another record has the same id."""

VALUE: Final = "value"
ID: Final = "id"

BUCKET: Final = "bucket"
SENT: Final = f"{BUCKET} int, places binary, reports binary, tags binary, counts binary"
"""The schema, in Spark's notation, of rows that are sent to be sorted; one value packs many rows of a bucket."""

PACKED: Final = "reports binary, tags binary, counts binary"
"""The columns of the rows in which reports reach the driver."""

PLACE: Final = 8
"""Bytes of a row's place within its bucket."""

_POSITIONS: Final = 40  # bits for the position of a row in its partition
_HELD: Final = 1 << 24  # bytes of rows that are held before they are sent
_COLUMNS: Final = ("places", "reports", "tags")
_PIECE: Final = 1 << 18  # reports that reach the driver in one value
_COUNTED: Final = 1 << 20  # reports counted at a time


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Turns rows into codes (or negative marks) and ids, from the columns "value" and "id"."""

    answers: Answers
    ids: bool = False

    def read(self, batch: pa.RecordBatch) -> Iterator[tuple[Integers, pl.Series | None]]:
        frame = table_of(batch)
        codes = frame.select(coded(self.answers.coding).read(VALUE, frame.schema[VALUE])).to_series()
        ids = frame[ID] if self.ids else None
        if ids is not None and ids.dtype.is_decimal():  # unsigned integers of 64 bits, as Spark reads them
            ids = ids.cast(pl.UInt64, strict=False)
        yield self._settled(codes, ids)

    def size(self, batch: pa.RecordBatch) -> int:
        return int(batch.num_rows)

    def _settled(self, marks: pl.Series, ids: pl.Series | None) -> tuple[Integers, pl.Series | None]:
        codes = marks.to_numpy().astype(np.int64)
        if self.answers.instead is not None:
            codes[codes == MISSING] = self.answers.labels.index(self.answers.instead)
        if ids is None:
            return codes, None
        ids = ids.cast(pl.String)
        nameless = (ids.is_null() | (ids == "")).to_numpy()
        codes[nameless & (codes >= 0)] = NAMELESS
        return codes, ids


@dataclass(frozen=True, kw_only=True)
class CsvReader(Reader):
    """Reads complete CSV files in the workers; each row is a file, with its name ("path") and its bytes ("content")."""

    columns: Mapping[str, str]
    form: CsvForm | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def read(self, batch: pa.RecordBatch) -> Iterator[tuple[Integers, pl.Series | None]]:
        rules = {VALUE: coded(self.answers.coding), ID: ID_RULE}
        wanted = {role: (column, rules[role]) for role, column in self.columns.items()}
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content").to_pylist(), strict=True):
            with csv_in_memory(content, file=path, name=self.names[path], form=self.form) as part:
                for block in TableReader([part], wanted).blocks(rows=BATCH):
                    yield self._settled(block.frame[VALUE], block.frame[ID] if self.ids else None)

    def size(self, batch: pa.RecordBatch) -> int:
        return sum(map(len, batch.column("content").to_pylist()))


@dataclass(frozen=True, kw_only=True)
class Randomize:
    """Returns one row for each record with an answer: its place in the secret order, and its report.

    The bucket of a row, out of `buckets`, and its place there are parts of an AES block. The block encrypts the
    record's number under a key of this collection alone. Without the key, the blocks of distinct numbers are
    indistinguishable from uniform words, and all orders are equally likely by symmetry. With a `mechanism` (see
    `record_tags.Tags`) each row also has the tags of its record.

    The rows of a bucket are packed into one value. Counts are sent with the rows: the amount read, the number of
    records, and how many records have each of `MARKS`.
    """

    reader: Reader
    kernel: AnyKernel
    order_key: bytes = field(repr=False)
    mechanism: str | None = None
    buckets: int = 1

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start = partition() << _POSITIONS
        held = _Held(self.buckets)
        for batch in batches:
            pieces = self.reader.read(batch)
            while (piece := quietly(next, pieces, None)) is not None:
                codes, ids = piece
                quietly(self._take, codes, ids, start, held)
                start += codes.size
                if held.size >= _HELD:
                    yield quietly(held.given)
            held.counts[0] += quietly(self.reader.size, batch)
        yield quietly(held.given)

    def _take(self, codes: Integers, ids: pl.Series | None, start: int, held: _Held) -> None:
        places_valid = np.flatnonzero(codes >= 0)
        if ids is None:
            records = (places_valid + start).astype(np.uint64)
        else:
            records = record_numbers(ids.gather(places_valid), key=self._key)
            alone = _alone(records)
            codes[places_valid[~alone]] = TWICE
            places_valid, records = places_valid[alone], records[alone]
        buckets, places = self.places(records)
        columns = {"places": places, "reports": self.kernel.reports(codes[places_valid], records=records)}
        if ids is not None:
            columns["tags"] = self.tags().of(records, codes[places_valid])
        held.add(buckets, columns)
        held.counts += np.array([0, codes.size, *(np.count_nonzero(codes == mark) for mark in MARKS)])

    def places(self, records: Words) -> tuple[Integers, Words]:
        blocks = np.zeros((records.size, 2), dtype="<u8")
        blocks[:, 0] = records
        # ECB on blocks that never repeat is a pseudorandom permutation of them.
        cipher = Cipher(algorithms.AES(self.order_key), modes.ECB()).encryptor()  # noqa: S305
        first, second = np.frombuffer(cipher.update(blocks.tobytes()), dtype="<u8").reshape(-1, 2).T
        # Its highest 32 bits times the number of buckets are a share of all, as an integer.
        buckets = (first >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32)
        return buckets.astype(np.int64), second

    def tags(self) -> Tags:
        assert self.mechanism is not None
        return self.kernel.tags(self.mechanism)

    @property
    def _key(self) -> bytes:
        assert self.kernel.key is not None
        return self.kernel.key


class _Held:
    """Rows that wait to be sent, by bucket, with their total `size` in bytes and the `counts` sent with them."""

    def __init__(self, buckets: int) -> None:
        self._rows: dict[str, list[list[bytes]]]
        self._buckets = buckets
        self._clear()

    def _clear(self) -> None:
        self._rows = {name: [[] for _ in range(self._buckets)] for name in _COLUMNS}
        self.counts, self.size = no_counts(), 0

    def add(self, buckets: Integers, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        order = np.argsort(buckets.astype(np.min_scalar_type(self._buckets)), kind="stable")
        sizes = np.bincount(buckets, minlength=self._buckets)
        ends = np.cumsum(sizes).tolist()
        used = np.flatnonzero(sizes).tolist()
        for name, column in columns.items():
            grouped, width = column[order].tobytes(), column.dtype.itemsize * math.prod(column.shape[1:])
            for bucket in used:
                start = ends[bucket - 1] if bucket else 0
                self._rows[name][bucket].append(grouped[start * width : ends[bucket] * width])
            self.size += len(grouped)

    def given(self) -> pa.RecordBatch:
        """Remove and return all waiting rows, one per bucket. The first row also has the counts for all buckets."""
        import pyarrow as pa  # noqa: PLC0415 - belongs to Spark

        used = [bucket for bucket, parts in enumerate(self._rows["places"]) if parts or not bucket]
        columns = {BUCKET: pa.array(used, pa.int32())}
        columns |= {
            name: pa.array([b"".join(parts[bucket]) for bucket in used], pa.binary())
            for name, parts in self._rows.items()
        }
        columns["counts"] = pa.array([self.counts.tobytes(), *[b""] * (len(used) - 1)], pa.binary())
        self._clear()
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, kw_only=True)
class Pack:
    """Returns the reports and tags of one bucket in the order of their places, and the sum of the counts."""

    layout: ReportLayout

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: dict[str, list[bytes]] = {name: [] for name in (*_COLUMNS, "counts")}
        for batch in batches:
            for name in held:
                held[name] += batch.column(name).to_pylist()
        columns = {name: b"".join(contents) for name, contents in held.items()}
        del held
        yield from quietly(self._packed, columns)

    def _packed(self, columns: Mapping[str, bytes]) -> list[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - belongs to Spark

        reports = np.frombuffer(columns["reports"], dtype=self.layout.dtype)
        tags = np.frombuffer(columns["tags"], dtype="<u8").reshape(-1, 2)
        counts = np.frombuffer(columns["counts"], dtype=np.int64).reshape(-1, no_counts().size).sum(axis=0)
        order, twice = _order(np.frombuffer(columns["places"], dtype="<u8"), tags[:, 0])
        counts[2 + MARKS.index(TWICE)] += twice
        reports, tags = reports[order], tags[order] if tags.size else tags
        starts = range(0, max(order.size, 1), _PIECE)
        return [
            pa.RecordBatch.from_pydict(
                {
                    "reports": pa.array([reports[start : start + _PIECE].tobytes()], pa.binary()),
                    "tags": pa.array([tags[start : start + _PIECE].tobytes()], pa.binary()),
                    "counts": pa.array([(no_counts() if start else counts).tobytes()], pa.binary()),
                }
            )
            for start in starts
        ]


def _order(places: Words, tags: Words) -> tuple[Integers, int]:
    """Return the order in which places ascend, and the number of omitted records: equal ids share a place."""
    low = np.uint64(max(places.size - 1, 0).bit_length())
    numbers = np.uint64((1 << int(low)) - 1)
    # Sorting single words orders the highest bits of the places together with the row numbers below them.
    ranked = places & ~numbers
    ranked |= np.arange(places.size, dtype=np.uint64)
    ranked.sort()
    order = (ranked & numbers).view(np.int64)
    tied = np.flatnonzero((ranked[1:] ^ ranked[:-1]) <= numbers)  # the next row has the same highest bits
    among = np.union1d(tied, tied + 1)
    order[among] = order[among][np.argsort(places[order[among]])]
    same = tied[places[order[tied]] == places[order[tied + 1]]]
    if same.size and not (tags.size and np.array_equal(tags[order[same]], tags[order[same + 1]])):
        fail("two records drew the same random place, which is rare. Nothing was released. Run it again.")
    alone = np.delete(order, np.union1d(same, same + 1))
    return alone, order.size - alone.size


@dataclass(frozen=True, kw_only=True)
class Count:
    """Returns one row per partition: the number of reports, and each value's support; no reports give no row."""

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
        """Yield reports in large blocks: for local hashing, a count costs k log k even for few reports."""
        held: list[Packed] = []
        for batch in batches:
            held.append(quietly(self._checked, batch))
            if sum(block.size for block in held) >= _COUNTED:
                yield self.layout.unpack(np.concatenate(held))
                held = []
        if any(block.size for block in held):
            yield self.layout.unpack(np.concatenate(held))

    def _checked(self, batch: pa.RecordBatch) -> Packed:
        frame = table_of(batch)
        packed = np.empty(frame.height, dtype=self.layout.dtype)
        for name, limit in zip(self.layout.names, self.layout.limits, strict=True):
            column = frame[name].cast(pl.Int64, strict=False)
            if column.null_count() or not bool(column.is_between(0, limit - 1).all()):
                fail(f"column {name!r} must hold integers from 0 to {limit - 1:,} only.")
            packed[name] = column.to_numpy()
        return packed


def no_counts() -> Integers:
    return np.zeros(2 + len(MARKS), dtype=np.int64)


def partition() -> int:
    """Return the number of the partition of this task; 0 outside of Spark."""
    from pyspark import TaskContext  # noqa: PLC0415 - heavy

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def quietly(work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Return the result of `work`; replace libraries' errors, which may quote values and which Spark would log."""
    try:
        return work(*args, **kwargs)
    except DataError as error:
        raise DataError(str(error)) from None  # compared by name, as in `failure`
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - nothing may pass, and a panic of Polars is no Exception
        fail(f"a task of hushuffle failed ({type(error).__name__}).")


def table_of(batch: pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _alone(records: Words) -> npt.NDArray[np.bool_]:
    """Return which records occur exactly once, shape (n,)."""
    _, where, times = np.unique(records, return_inverse=True, return_counts=True)
    once: npt.NDArray[np.bool_] = times == 1
    return once[where]
