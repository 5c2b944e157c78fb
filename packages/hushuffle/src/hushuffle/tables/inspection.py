"""Inspect a table for the owner of the data: columns, values with counts, repetitions, and suspicious values.

Results are true data. Suspicious values are marks of missing answers, typing errors, and a value as a column's name.
"""

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
import polars as pl

from hushuffle.model import Progress
from hushuffle.tables.categories import Reading, Rule, days
from hushuffle.tables.csv_form import KINDS, UTF8, CsvForm, text_blocks
from hushuffle.tables.labels import Tidying, marks_missing
from hushuffle.tables.parquet import ROWS
from hushuffle.tables.people import normal
from hushuffle.tables.reader import Part, TableReader, open_source, type_name

Kind: TypeAlias = Literal["whole numbers", "numbers", "dates", "text", "booleans", "nothing", "other"]
"""The type of a column's values; "other" is an unsupported type."""

_HELD: Final = 1_000_000
"""Largest total number of distinct values, over all columns, that are counted exactly."""

_SKETCH: Final = 4096
_MOSTLY: Final = 0.95
"""A column is numeric (or of dates) if at least this share of its values are numbers (or dates)."""

_OWN: Final = 0.9
"""Columns whose estimated share of distinct values exceeds this count as unique; the estimate's error is 1.6 %."""

_PERSONS: Final = 30
"""A column with fewer distinct values counts as identifying only if its name suggests ids."""

_MODE: Final = 5
"""Whole numbers of which 0 is this many times as frequent as the next value count as quantities."""

_PERSON: Final = re.compile(
    r"(^|[\W_])(id|nr|uid|user|person|people|member|client|customer|patient|respondent|employee|subject|email|e-mail|name)"
    r"([\W_]|id|$)",
    re.IGNORECASE,
)

_CODES: Final = re.compile(r"-?9{1,4}|-1|0")
"""Numbers that mean a missing answer in a column of words."""

_TIMES: Final = 10
"""A value counts as a typing error if the intended value is at least this many times as frequent."""

_LOOKED: Final = 2000


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
    def measures(self) -> bool:
        """Whether whole numbers probably are quantities, not ids: their type has decimals, or 0 is by far the mode."""
        if self.kind != "whole numbers" or self.named_so:
            return False
        first, second = self.counts.head(2).rows() if self.counts.height > 1 else (("", 0), ("", 0))
        return self.type.startswith("Float") or (first[0] in ("0", "0.0") and first[1] >= _MODE * second[1])

    @property
    def may_name_people(self) -> bool:
        """Whether the column may identify people who have several records each; only the owner can confirm it."""
        if self.kind not in ("text", "whole numbers") or self.distinct < 2 or self.measures:
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
        both = self.different(Tidying(trim=True, casefold=True))
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
    parts[0].columns(*columns)  # those that are named are there
    names = tuple(columns) if columns and not people else tuple(parts[0].schema().names())
    tallies = [_Tally(name, held=max(1000, _HELD // len(names))) for name in names]
    total = sum(part.count() for part in parts) if progress else 0
    records = 0
    wanted = {name: (name, _AS_TEXT) for name in names}
    for block in (block for part in parts for block in TableReader([part], wanted).blocks(rows=ROWS)):
        for tally in tallies:
            tally.add(block.frame[tally.name])
        records += block.frame.height
        if progress is not None:
            progress("counting values", records / max(total, 1))
    types = dict(parts[0].columns(*names))
    profiles = tuple(tally.profile(types[tally.name], typed=parts[0].typed) for tally in tallies)
    return Inspection(
        source=source,
        files=len(parts),
        records=records,
        form=form,
        separator=None if form is None or parts[0].path is None else form.separator_of(parts[0].path),
        columns=tuple(each for each in profiles if not columns or each.name in columns or each.may_name_people),
    )


def _text(name: str, dtype: pl.DataType) -> pl.Expr:
    if _unread(dtype):
        return pl.when(pl.col(name).is_not_null()).then(pl.lit(""))
    reading = Reading.of(name, dtype, numeric=False, dates=dtype.is_temporal())
    return pl.when(~reading.missing).then(reading.texts)


_AS_TEXT: Final = Rule(read=_text)
"""Reads a column as text, null where values are missing; a type that is not read has one text for all values."""


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
        hashes = texts.unique().hash(seed=1).to_numpy()
        if self._hashes.size == _SKETCH:
            hashes = hashes[hashes < self._hashes[-1]]
        self._hashes = np.union1d(self._hashes, hashes)[:_SKETCH]
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
            distinct=self._counts.height if self._exact else self._distinct(),
            exact=self._exact,
            present=self._present,
            counts=self._counts.sort(["count", "value"], descending=[True, False]),
        )

    def _distinct(self) -> int:
        """Return the approximate number of distinct values, from the largest of the smallest uniform hashes."""
        if self._hashes.size < _SKETCH:
            return self._hashes.size
        return min(self._present, round((_SKETCH - 1) / (float(self._hashes[-1]) / 2.0**64)))

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
    text = next(text_blocks(path, encoding), b"")[: 1 << 16].decode(errors="ignore").lstrip("\ufeff\r\n")
    best, most = None, 0
    for separator in (",", ";", "\t", "|"):
        try:
            fields = [len(row) for row in islice(csv.reader(text.splitlines(), delimiter=separator), 50) if row]
        except csv.Error:  # no text of lines and fields: the reader will say so
            return None
        alike = sum(number == fields[0] for number in fields) * fields[0] if fields and fields[0] > 1 else 0
        best, most = (separator, alike) if alike > most else (best, most)
    return best


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A suspicious value with its number of records; `meant` is the intended value, None: a missing answer."""

    value: str
    records: int
    meant: str | None = None


def missing_marks(column: Profile) -> tuple[Doubt, ...]:
    if column.kind == "dates" or not column.exact:
        return ()
    rows = column.counts.head(_LOOKED).iter_rows()
    return tuple(
        Doubt(value=value, records=count)
        for value, count in rows
        if marks_missing(value) or (column.kind == "text" and _CODES.fullmatch(value.strip()))
    )


def typing_errors(column: Profile) -> tuple[Doubt, ...]:
    """Return the text values that differ by one letter from a far more frequent value.

    >>> counts = pl.DataFrame({"value": ["weekly", "never", "weekly.", "nevr"], "count": [400, 300, 35, 30]})
    >>> column = Profile(name="x", kind="text", type="text", missing=0, distinct=4, exact=True, present=765,
    ...                  counts=counts)
    >>> [(doubt.value, doubt.meant) for doubt in typing_errors(column)]
    [('weekly.', 'weekly'), ('nevr', 'never')]
    """
    if column.kind != "text" or not column.exact:
        return ()
    rows = [(value, value.strip().casefold(), count) for value, count in column.counts.head(_LOOKED).iter_rows()]
    errors = []
    for value, plain, count in rows:
        if len(plain) < 4 or any(letter.isdigit() for letter in plain):
            continue
        frequent = (
            other for other, likely, times in rows[:50] if times >= _TIMES * count and _one_apart(plain, likely)
        )
        if (meant := next(frequent, None)) is not None:
            errors.append(Doubt(value=value, records=count, meant=meant))
    return tuple(errors)


def _one_apart(first: str, other: str) -> bool:
    """Return whether two texts differ by one letter (missing, added or changed) or by two exchanged letters."""
    short, long = sorted((first, other), key=len)
    if len(long) - len(short) > 1 or len(short) < 4 or first == other:
        return False
    place = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[place:] == long[place + 1 :]
    swapped = short[:place] + short[place : place + 2][::-1] + short[place + 2 :]
    return short[place + 1 :] == long[place + 1 :] or swapped == long


def names_a_value(column: Profile) -> bool:
    """Return whether a column's name is a number or one of its values, so that the line of names may be missing."""
    number = pl.Series([column.name.strip()]).cast(pl.Float64, strict=False).is_not_null().item()
    return bool(number) or column.name in column.counts["value"].head(_LOOKED).to_list()
