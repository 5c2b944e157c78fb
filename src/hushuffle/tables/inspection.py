"""Inspect a table for the owner of the data: columns, values with counts, and repetitions. Results are true data."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle.model import Progress
from hushuffle.tables.categories import Reading, days
from hushuffle.tables.csv_form import KINDS, UTF8, CsvForm, text_blocks
from hushuffle.tables.labels import Tidying
from hushuffle.tables.people import normal
from hushuffle.tables.sources import Part, open_source, type_name

Kind: TypeAlias = Literal["whole numbers", "numbers", "dates", "text", "booleans", "nothing", "other"]
"""The type of a column's values; "other" is an unsupported type."""

_ROWS: Final = 1 << 18
_HELD: Final = 1_000_000
"""Largest total number of distinct values, over all columns, that are counted exactly."""

_SKETCH: Final = 4096
_MOSTLY: Final = 0.95
"""A column is numeric (or of dates) if at least this share of its values are numbers (or dates)."""

_OWN: Final = 0.9
"""Columns whose estimated share of distinct values exceeds this count as unique; the estimate's error is 1.6 %."""

_PERSONS: Final = 30
"""A column with fewer distinct values counts as identifying only if its name suggests ids."""

_SEPARATORS: Final = (",", ";", "\t", "|")
_LINES: Final = 50
_LIMIT: Final = 1 << 16
_TIDY: Final = Tidying(trim=True, casefold=True)
_PERSON: Final = re.compile(
    r"(^|[\W_])(id|nr|uid|user|person|people|member|client|customer|patient|respondent|employee|subject|email|e-mail|name)"
    r"([\W_]|id|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A column: `counts` are its values as text with their numbers of records, most frequent first.

    Columns of an unsupported type have only `missing` and `present`. With very many distinct values, `counts` covers
    only the first records, and `distinct` is an estimate (`exact` is False).
    """

    name: str
    kind: Kind
    type: str
    missing: int
    distinct: int
    exact: bool
    present: int
    counts: pl.DataFrame = field(repr=False)

    @property
    def repeats(self) -> float:
        return self.present / max(self.distinct, 1)

    @property
    def unique(self) -> bool:
        """Whether (almost) each record has its own value."""
        own = self.distinct == self.present if self.exact else self.distinct >= _OWN * self.present
        return own and self.present > 1 and not self.missing

    @property
    def named_so(self) -> bool:
        """Whether the column's name is a common name of a column that identifies people."""
        return _PERSON.search(self.name) is not None

    @property
    def may_name_people(self) -> bool:
        """Whether the column may identify people who have several records each; only the owner can confirm it."""
        if self.kind not in ("text", "whole numbers") or self.distinct < 2:
            return False
        repeats = not self.exact or self.distinct < self.present
        return repeats and (self.named_so or self.distinct >= _PERSONS)

    @property
    def names_people(self) -> bool:
        """Whether values probably are ids of people, by the column's name or because few records share each value."""
        repeated = self.distinct >= max(_PERSONS, math.sqrt(self.present)) and self.repeats >= 2
        return self.may_name_people and (self.named_so or repeated or self.distinct >= _OWN * self.present)

    @property
    def repeated(self) -> int | None:
        """How many values occur more than once; None: there are too many values to count."""
        return self.counts.filter(pl.col("count") > 1).height if self.exact else None

    @property
    def other_spellings(self) -> int:
        """Number of counted values that are another spelling of the id in some other value."""
        return self.counts.height - self.counts.select(normal(pl.col("value"))).to_series().n_unique()

    @property
    def tidying(self) -> Tidying:
        both = self.different(_TIDY)
        return Tidying(
            trim=both < self.different(Tidying(casefold=True)), casefold=both < self.different(Tidying(trim=True))
        )

    def different(self, tidying: Tidying) -> int:
        return self.counts.select(tidying.of(pl.col("value"))).to_series().n_unique()


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """An inspected table: its files, records and columns; for CSV files the guessed form and separator."""

    source: str
    files: int
    records: int
    form: CsvForm | None
    separator: str | None
    columns: tuple[Profile, ...]

    def column(self, name: str) -> Profile:
        return next(column for column in self.columns if column.name == name)

    @property
    def people_columns(self) -> list[Profile]:
        """The columns that may identify the person of a row, the most likely first."""
        names = [column for column in self.columns if column.may_name_people]
        return sorted(names, key=lambda column: (not column.named_so, not column.names_people, -column.distinct))


def inspect_table(
    source: str,
    *,
    columns: Sequence[str] = (),
    people: bool = False,
    base_folder: Path | None = None,
    progress: Progress | None = None,
) -> Inspection:
    """Return an inspection of `columns` of a table (all by default): a file, a glob, or "statsmodels:NAME".

    With `people`, other columns that may identify people are inspected as well. Encoding and separator of CSV files are
    guessed from the first file. Memory contains at most a million different values, and a block of records.

    >>> found = inspect_table("statsmodels:fair", columns=["affairs"])
    >>> found.records, found.columns[0].kind, found.columns[0].counts.row(0)
    (6366, 'numbers', ('0', 4313))
    """
    folder = base_folder or Path()
    first = open_source(source, base_folder=folder)[0]
    form = None
    if first.path is not None and first.path.name.endswith(KINDS):
        with first.plainly():
            form = guessed_form(first.path)
    parts = open_source(source, base_folder=folder, form=form)
    return inspect_parts(source, parts, columns=columns, people=people, form=form, progress=progress)


def inspect_parts(
    source: str,
    parts: Sequence[Part],
    *,
    columns: Sequence[str] = (),
    people: bool = False,
    form: CsvForm | None = None,
    progress: Progress | None = None,
) -> Inspection:
    parts[0].dtypes(*columns)  # those that are named are there
    names = tuple(columns) if columns and not people else tuple(parts[0].schema().names())
    tallies = [_Tally(name, held=max(1000, _HELD // len(names))) for name in names]
    total = sum(part.count() for part in parts) if progress else 0
    records = 0
    for part in parts:
        # Columns as text, null where values are missing; a type that is not read has one text for all values.
        wanted = [_text(name, dtype).alias(name) for name, dtype in zip(names, part.dtypes(*names), strict=True)]
        for frame in part.batches(*wanted, rows=_ROWS):
            for tally in tallies:
                tally.add(frame[tally.name])
            records += frame.height
            if progress is not None:
                progress("counting values", records / max(total, 1))
    types = dict(zip(names, parts[0].dtypes(*names), strict=True))
    profiles = tuple(tally.profile(types[tally.name], typed=parts[0].typed) for tally in tallies)
    return Inspection(
        source=source,
        files=len(parts),
        records=records,
        form=form,
        separator=None if form is None or parts[0].path is None else form.separator_of(parts[0].path),
        columns=tuple(one for one in profiles if not columns or one.name in columns or one.may_name_people),
    )


def _text(name: str, dtype: pl.DataType) -> pl.Expr:
    if _unread(dtype):
        return pl.when(pl.col(name).is_not_null()).then(pl.lit(""))
    reading = Reading.of(name, dtype, numeric=False, dates=dtype.is_temporal())
    return pl.when(~reading.missing).then(reading.texts)


def _unread(dtype: pl.DataType) -> bool:
    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


class _Tally:
    """Counts a column's values while they are few, and stores the smallest hashes of them."""

    def __init__(self, name: str, *, held: int) -> None:
        self.name, self._held = name, held
        self._counts = pl.DataFrame(schema={"value": pl.String, "count": pl.UInt32})
        self._exact = True
        self._hashes = np.empty(0, dtype=np.uint64)
        self._missing = self._present = self._numbers = self._whole = self._dates = 0

    def add(self, values: pl.Series) -> None:
        texts = values.drop_nulls()
        self._missing += values.len() - texts.len()
        self._present += texts.len()
        looked = pl.DataFrame({"value": texts}).select(
            number=pl.col("value").str.strip_chars().cast(pl.Float64, strict=False), day=days(pl.col("value"))
        )
        number = looked["number"].drop_nulls().drop_nans()
        self._numbers += number.len()
        self._whole += int((number == number.floor()).sum())
        self._dates += looked["day"].drop_nulls().len()
        self._hashes = np.union1d(self._hashes, texts.unique().hash(seed=1).to_numpy())[:_SKETCH]
        if self._exact:
            counted = texts.alias("value").value_counts(name="count").cast({"count": pl.UInt32})
            self._counts = pl.concat([self._counts, counted]).group_by("value").agg(pl.col("count").sum())
            self._exact = self._counts.height <= self._held

    def profile(self, dtype: pl.DataType, *, typed: bool) -> Profile:
        if _unread(dtype):
            self._counts, self._exact = self._counts.clear(), True
        return Profile(
            name=self.name,
            kind=self._kind(dtype),
            type=type_name(dtype) if typed else "text",
            missing=self._missing,
            distinct=self._counts.height if self._exact else _distinct(self._hashes, self._present),
            exact=self._exact,
            present=self._present,
            counts=self._counts.sort(["count", "value"], descending=[True, False]),
        )

    def _kind(self, dtype: pl.DataType) -> Kind:
        if _unread(dtype):
            return "other"
        if not self._present:
            return "nothing"
        if dtype == pl.Boolean:
            return "booleans"
        if self._dates >= _MOSTLY * self._present:
            return "dates"
        if self._whole >= _MOSTLY * self._present:
            return "whole numbers"
        return "numbers" if self._numbers >= _MOSTLY * self._present else "text"


def _distinct(hashes: npt.NDArray[np.uint64], present: int) -> int:
    """Return the approximate number of distinct values, from the largest of the smallest uniform hashes."""
    if hashes.size < _SKETCH:
        return hashes.size
    return min(present, round((_SKETCH - 1) / (float(hashes[-1]) / 2.0**64)))


def guessed_form(path: Path) -> CsvForm:
    r"""Return the encoding and the separator that a CSV file seems to have.

    The encoding is UTF-8 if the whole file is valid UTF-8, and UTF-16 if the file starts with its mark. Otherwise it is
    windows-1252 or latin-1, a guess: other encodings with one byte per character look the same.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     written = path.write_bytes("id;town\n1;Zürich\n".encode("latin-1"))
    ...     guessed_form(path)
    CsvForm(encoding='windows-1252', separator=';')
    """
    start = next(text_blocks(path, "latin-1"), b"").decode()[:2]
    candidates = ("utf-16",) if start in ("\xff\xfe", "\xfe\xff") else (UTF8, "windows-1252", "latin-1")
    encoding = next((name for name in candidates if _decodes(path, name)), UTF8)
    form = CsvForm(encoding=encoding)
    separator = _guessed_separator(path, encoding)
    return form if separator in (None, form.separator_of(path)) else CsvForm(encoding=encoding, separator=separator)


def _decodes(path: Path, encoding: str) -> bool:
    try:
        for _ in text_blocks(path, encoding):
            pass
    except UnicodeError:
        return False
    return True


def _guessed_separator(path: Path, encoding: str) -> str | None:
    """Return the separator that cuts the first lines into the most fields, the same number in most of them."""
    text = next(text_blocks(path, encoding), b"")[:_LIMIT].decode(errors="ignore").lstrip("\ufeff\r\n")
    best, most = None, 0
    for separator in _SEPARATORS:
        try:
            fields = [len(row) for row in islice(csv.reader(text.splitlines(), delimiter=separator), _LINES) if row]
        except csv.Error:  # no text of lines and fields: the reader will say so
            return None
        if fields and fields[0] > 1:
            alike = sum(number == fields[0] for number in fields) * fields[0]
            best, most = (separator, alike) if alike > most else (best, most)
    return best
