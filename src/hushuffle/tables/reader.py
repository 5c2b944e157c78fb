"""Read named columns of tables in blocks of records, each column by a rule, and count records without a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import fail
from hushuffle.files.interrupts import stop_if_asked
from hushuffle.tables.categories import MISSING, UNSEEN, Coding, Reading
from hushuffle.tables.labels import Tidying
from hushuffle.tables.sources import Part, type_name

Marks = npt.NDArray[np.integer]
"""For each record, a code >= 0, or the reason why it has no value: MISSING, UNSEEN, OVERLAP."""

_SHOWN: Final = 5


def nulls(values: pl.Series) -> Marks:
    return np.where(values.is_null().to_numpy(), MISSING, 0)


def _no_numbers(values: pl.Series) -> Marks:
    """Mark nulls as missing, and values that are not finite numbers as unseen."""
    marks = nulls(values)
    marks[~np.isfinite(values.fill_null(0.0).to_numpy())] = UNSEEN
    return marks


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a column is read: `read` computes its values, `takes` tests its type, and `must` describes allowed types.

    `marks` returns a negative mark (the reason) for records without a value. `alike`: all files need the same type.
    """

    read: Callable[[str, pl.DataType], pl.Expr]
    marks: Callable[[pl.Series], Marks] = nulls
    takes: Callable[[pl.DataType], bool] = lambda _: True
    must: str = "It must hold text, numbers or booleans."
    alike: bool = False


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "numbers"
    if dtype == pl.Boolean:
        return "booleans"
    return "text" if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null) else ""


def _number(column: str, dtype: pl.DataType) -> pl.Expr:
    reading = Reading.of(column, dtype, numeric=True)
    return pl.when(~reading.missing).then(reading.numbers.cast(pl.Float64).fill_null(np.nan))


def _text(column: str, dtype: pl.DataType) -> pl.Expr:
    reading = Reading.of(column, dtype, numeric=False)
    return pl.when(~reading.missing).then(reading.texts)


def _as_text(column: str, _: pl.DataType) -> pl.Expr:
    text = pl.col(column).cast(pl.String)
    return pl.when(text != "").then(text)


def _plain(dtype: pl.DataType) -> bool:
    return bool(_kind(dtype))


NUMBER: Final = Rule(read=_number, marks=_no_numbers, takes=_plain)
"""Finite numbers: a missing value is null; text that is no number is NaN. NaN and infinity are marked as unseen."""

TEXT: Final = Rule(read=_text, takes=_plain)
"""Reads text and numbers, as text; a missing value becomes null."""

ANYTHING: Final = Rule(read=_as_text)
"""Reads every type that has a text form, also dates, as text; a missing value becomes null."""

ID: Final = Rule(
    read=_as_text,
    takes=lambda dtype: dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum),
    must="Ids must be text or integers.",
)


def coded(coding: Coding) -> Rule:
    """Return the rule that reads a column of categories as codes, Int32, with negative marks for other records."""
    return Rule(
        read=lambda column, dtype: coding.codes(coding.reading(column, dtype)),
        marks=lambda codes: codes.to_numpy(),
        takes=(lambda dtype: _kind(dtype) == "text" or dtype.is_temporal()) if coding.dates else _plain,
        must="It must hold dates, or dates as text." if coding.dates else Rule.must,
        alike=not coding.dates,
    )


def labelled(tidying: Tidying) -> Rule:
    """Return the rule that reads labels as text, also from numbers; missing values are null."""

    def read(column: str, dtype: pl.DataType) -> pl.Expr:
        reading = Reading.of(column, dtype, numeric=False, tidying=tidying)
        return pl.when(~reading.missing).then(reading.texts)

    return Rule(read=read, takes=_plain, alike=True)


def given(expression: pl.Expr) -> Rule:
    return Rule(read=lambda _column, _dtype: expression)


@dataclass(kw_only=True)
class Faults:
    """Records of one column without a value: the number for each mark, and the first records, all in one file."""

    counts: Counter[int] = field(default_factory=Counter)
    first: dict[int, tuple[Part | None, list[int]]] = field(default_factory=dict)

    def note(self, marks: Marks, *, part: Part | None = None, start: int = 0) -> None:
        """Count the marks of records of a file, or of all records; `start` is the number of the first, from 0."""
        if not marks.size or int(marks.min()) >= 0:
            return
        for mark in np.unique(marks[marks < 0]).tolist():
            rows = np.flatnonzero(marks == mark)
            self.counts[mark] += rows.size
            where, shown = self.first.setdefault(mark, (part, []))
            if where is part:
                shown += (rows[: _SHOWN - len(shown)] + start + 1).tolist()

    def refuse(self, mark: int, where: str, sentence: str, *, name_file: bool = False) -> None:
        """`sentence` may contain {count}, {first} and {numbers} (the first records, with their file if `name_file`)."""
        count = self.counts[mark]
        if not count:
            return
        _, rows = self.first[mark]
        numbers = self.place(mark, name_file=name_file)
        fail(f"{where}{sentence.format(count=f'{count:,}', first=f'{rows[0]:,}', numbers=numbers)}")

    def place(self, mark: int, *, name_file: bool = False) -> str:
        count = self.counts[mark]
        part, rows = self.first[mark]
        lines = None if part is None else part.lines(rows)
        shown = ", ".join(f"{row:,}" for row in lines or rows) + (", ..." if count > len(rows) else "")
        of = f" of {part.name}" if name_file and part is not None else ""
        if lines is None:
            return f"numbers {shown}{of}, counted from 1"
        return f"{'line' if count == 1 else 'lines'} {shown}{of}"


@dataclass(frozen=True, kw_only=True)
class Block:
    """Consecutive records of one file, with the requested columns; `start` is the number of the first record."""

    part: Part
    start: int
    frame: pl.DataFrame


class TableReader:
    """Records without a value are counted in `faults`; the caller refuses or omits them."""

    def __init__(self, parts: Sequence[Part], columns: Mapping[str, tuple[str, Rule]]) -> None:
        self.parts, self._columns = tuple(parts), columns
        self.faults = {name: Faults() for name in columns}
        types = [part.dtypes(*(column for column, _ in columns.values())) for part in parts]
        for place, (column, rule) in enumerate(columns.values()):
            self._check(column, rule, [dtypes[place] for dtypes in types])
        self._wanted = [
            [
                rule.read(column, dtype).alias(name)
                for (name, (column, rule)), dtype in zip(columns.items(), dtypes, strict=True)
            ]
            for dtypes in types
        ]

    def blocks(self, *, rows: int | None = None) -> Iterator[Block]:
        """Yield all records in blocks of about `rows` records (None: a block for each part). Call this once."""
        for part, wanted in zip(self.parts, self._wanted, strict=True):
            start = 0
            for frame in [part.collect(*wanted)] if rows is None else part.batches(*wanted, rows=rows):
                stop_if_asked()
                for name, (_, rule) in self._columns.items():
                    self.faults[name].note(rule.marks(frame[name]), part=part, start=start)
                yield Block(part=part, start=start, frame=frame)
                start += frame.height

    def whole(self) -> pl.DataFrame:
        """Return all records in one table. Call this once."""
        return pl.concat(block.frame for block in self.blocks())

    def distinct(self) -> Iterator[list[str]]:
        """Yield the different texts of each part; this needs a single column of text."""
        for part, (wanted,) in zip(self.parts, self._wanted, strict=True):
            yield part.distinct(wanted.drop_nulls())

    def _check(self, column: str, rule: Rule, dtypes: Sequence[pl.DataType]) -> None:
        first: tuple[str, str] | None = None
        for part, dtype in zip(self.parts, dtypes, strict=True):
            check_type(part, f"column {column!r}", rule, dtype)
            if not (rule.alike and part.typed) or dtype == pl.Null:
                continue
            kind = _kind(dtype)
            if first is not None and first[0] != kind:
                fail(f"column {column!r} holds {first[0]} in {first[1]}, but {kind} in {part.name}.")
            first = first or (kind, part.name)


def check_type(part: Part, called: str, rule: Rule, dtype: pl.DataType) -> None:
    """Raise `DataError` if a rule does not allow a column of this type; messages name the type, but no value."""
    if not rule.takes(dtype):
        fail(f"{part.name}: {called} is of type {type_name(dtype)}. {rule.must}")
