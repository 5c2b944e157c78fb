"""Open files, globs, folders and bundled data sets, and read their named columns in blocks, each column by a rule.

No message contains a value or the name of a column that was not requested: if the line of names is missing or has a
stray quotation mark, records are read as names. Messages contain file names, also of files in a folder or glob. If file
names contain names of people, messages must stay private.
"""

from __future__ import annotations

import difflib
import glob
import gzip
import importlib
import os
import pkgutil
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import polars as pl

from hushuffle._checks import fail
from hushuffle.errors import MissingDependencyError
from hushuffle.files.causes import cause, failing, stop_if_asked
from hushuffle.tables import csv_form
from hushuffle.tables.categories import Marks, Rule, kind_of
from hushuffle.tables.csv_form import CsvForm, Irregular, unreadable
from hushuffle.tables.parquet import read_parquet

_KINDS: Final = (*csv_form.KINDS, ".parquet")
_LOOKED: Final = " looked"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A file or table; `path` is None if it is no file.

    `form` is the form of a CSV file (None: UTF-8, and messages name no key `encoding`). `irregular` are records with a
    wrong number of fields, which are blank in `frame` (see `tolerant`).
    """

    name: str
    frame: pl.LazyFrame
    path: Path | None = None
    form: CsvForm | None = None
    irregular: tuple[Irregular, ...] = ()

    @property
    def typed(self) -> bool:
        """Whether the columns of this part have types (columns of a CSV file are text)."""
        return self._csv is None

    def schema(self) -> pl.Schema:
        if self._parquet is not None:
            return self.answer(self.frame.head(0)).schema
        with self.plainly():
            schema = self.frame.collect_schema()
            if not schema and not self.typed:
                raise pl.exceptions.NoDataError
        return schema

    def columns(self, *wanted: str | int) -> list[tuple[str, pl.DataType]]:
        """Return the names and types of columns, by name or by number from 1; an absent column is an error."""
        schema = self.schema()
        for column in wanted:
            if isinstance(column, str) and column not in schema:
                self._absent(column, schema.names())
            if isinstance(column, str) and not self.typed and f"{column}_duplicated_0" in schema:
                fail(f"{self.name}: column {column!r} occurs twice. Rename one of them.")
        names = [column if isinstance(column, str) else schema.names()[column - 1] for column in wanted]
        return [(name, schema[name]) for name in names]

    def collect(self, *wanted: pl.Expr) -> pl.DataFrame:
        return self._looked(self.answer(self._looking(wanted)))

    def batches(self, *wanted: pl.Expr, rows: int) -> Iterator[pl.DataFrame]:
        """Yield the results of the `wanted` expressions in order, about `rows` rows at a time."""
        query = self._looking(wanted)
        if self._parquet is not None:
            yield from filter(len, read_parquet(query, self._parquet, name=self.name, rows=rows))
            return
        with self.plainly():
            looked = False
            for frame in query.collect_batches(chunk_size=rows, maintain_order=True):
                yield self._looked(frame, before=looked)
                looked = looked or (_LOOKED in frame.columns and bool(frame[_LOOKED].any()))

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.answer(self.frame.select(pl.len())).item())

    def lines(self, records: Sequence[int]) -> list[int] | None:
        """Return the lines on which records of a CSV file start, both counted from 1; None for other tables."""
        if self._csv is None:
            return None
        with self.plainly():
            return csv_form.lines_of(self._csv, (self.form or CsvForm()).encoding, records)

    def tolerant(self) -> Part:
        """Return the same file with blank records in place of those in `irregular` (wrong number of fields)."""
        if self._csv is None:
            return self
        form = self.form or CsvForm()
        with self.plainly():
            irregular = tuple(csv_form.irregular_records(self._csv, form))
        if not irregular or irregular[-1].open:  # which is refused when it is read
            return self
        blank = np.array([each.record for each in irregular])
        return replace(self, frame=csv_form.scanned(self._csv, form, blank=blank), irregular=irregular)

    @property
    def _parquet(self) -> Path | None:
        """The path of a Parquet file, which a child process reads, because a damaged file might abort the process."""
        return self.path if self.path is not None and self.path.suffix == ".parquet" else None

    @property
    def _csv(self) -> Path | None:
        return self.path if self._parquet is None else None

    def _looking(self, wanted: Sequence[pl.Expr]) -> pl.LazyFrame:
        """Return a query of `wanted` that looks at every field of a CSV file, to notice a row with too many fields."""
        short = pl.last().is_null() & pl.any_horizontal(pl.all().is_not_null())
        return self.frame.select(*wanted, *(() if self.typed else (short.alias(_LOOKED),)))

    def _looked(self, frame: pl.DataFrame, *, before: bool = False) -> pl.DataFrame:
        """Return the frame; refuse it if a row has too few fields, unless the file was checked before."""
        if _LOOKED in frame.columns and not before and not self.irregular and frame[_LOOKED].any():
            assert self.path is not None
            with self.plainly():
                csv_form.refuse_irregular(self.path, self.form or CsvForm(), self.name)
        return frame.drop(_LOOKED, strict=False)

    def answer(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Return the result of a query of `frame`; it does not check the fields of the rows."""
        if self._parquet is not None:
            return pl.concat(read_parquet(query, self._parquet, name=self.name))
        with self.plainly():
            return query.collect(engine="streaming")

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Convert errors of libraries, whose messages may contain values, to a `DataError` without values."""
        try:
            yield
        except pl.exceptions.NoDataError:
            unreadable(f"{self.name} is empty: not even a line with the names of the columns.", self.path)
        except OSError as error:
            if reason := cause(error, ""):
                fail(f"{self.name} cannot be read: {reason}.")
            unreadable(f"{self.name} cannot be read: it may be cut off or damaged.", self.path)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeError, EOFError, zlib.error):
            stop_if_asked()  # what was interrupted is not damaged
            if self.path is None:
                fail(f"{self.name} cannot be read.")
            csv_form.refuse_damaged(self.path, self.form, self.name)

    def _absent(self, column: str, names: list[str]) -> NoReturn:
        """Refuse a column that is absent, with advice that has no other column's name."""
        missing, plain = f"{self.name} has no column {column!r}", column.strip().casefold()
        if self._csv is not None:
            csv_form.refuse_other_encodings(self._csv, self.form, self.name)
            shown = next((each for each in (";", "\t", "|", ",") if len(names) == 1 and each in names[0]), None)
            if shown is not None:
                separated = csv_form.separator_name((self.form or CsvForm()).separator_of(self._csv))
                written = '"\\t"' if shown == "\t" else f'"{shown}"'
                keys = f" In a specification, set separator = {written} if the first line uses it." if self.form else ""
                fail(f"{missing}: its fields are not separated by {separated}.{keys}")
        advice = "Capital letters and spaces matter."
        if any(name.strip().casefold() == plain for name in names):
            advice = "A column has almost this name: capital letters and spaces around it matter."
        elif not self.typed:
            there = "Check that this line is there and that it closes each quotation mark."
            advice = f"Its first line must hold the names of the columns. {there} {advice}"
        fail(f"{missing} (number of columns: {len(names):,}). {advice}")


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
                shown += (rows[: 5 - len(shown)] + start + 1).tolist()

    def refuse(self, mark: int, where: str, sentence: str, *, name_file: bool = False) -> None:
        """`sentence` may contain {count}, {first} and {numbers} (the first records, with their file if `name_file`)."""
        if count := self.counts[mark]:
            first, numbers = f"{self.first[mark][1][0]:,}", self.place(mark, name_file=name_file)
            fail(f"{where}{sentence.format(count=f'{count:,}', first=first, numbers=numbers)}")

    def place(self, mark: int, *, name_file: bool = False) -> str:
        count = self.counts[mark]
        part, rows = self.first[mark]
        lines = None if part is None else part.lines(rows)
        shown = ", ".join(f"{row:,}" for row in lines or rows) + (", ..." if count > len(rows) else "")
        of = f" of {part.name}" if name_file and part is not None else ""
        if lines is None:
            return f"{'record' if count == 1 else 'records'} {shown}{of}, counted from 1"
        return f"{'line' if count == 1 else 'lines'} {shown}{of}"


@dataclass(frozen=True, kw_only=True)
class Block:
    """Consecutive records of one file, with the requested columns; `start` is the number of the first record."""

    part: Part
    start: int
    frame: pl.DataFrame


class TableReader:
    """Reads columns of tables: for each new name, the column's name (or number from 1) and its rule.

    Records without a value are counted in `faults`; the caller refuses or omits them.
    """

    def __init__(self, parts: Sequence[Part], columns: Mapping[str, tuple[str | int, Rule]]) -> None:
        self.parts, self._columns = tuple(parts), columns
        self.faults = {name: Faults() for name in columns}
        places = [part.columns(*(column for column, _ in columns.values())) for part in parts]
        for number, (column, rule) in enumerate(columns.values()):
            self._check(f"column {column!r}", rule, [each[number][1] for each in places])
        self._wanted = [
            [rule.read(*place).alias(name) for (name, (_, rule)), place in zip(columns.items(), each, strict=True)]
            for each in places
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
        """Yield the different texts of each part, read in chunks; this needs a single column of text."""
        for part, (wanted,) in zip(self.parts, self._wanted, strict=True):
            yield part.answer(part.frame.select(wanted.drop_nulls().unique())).to_series().to_list()

    def _check(self, called: str, rule: Rule, dtypes: Sequence[pl.DataType]) -> None:
        """Raise `DataError` if the rule does not allow a column's type; messages name the type, but no value."""
        first: tuple[str, str] | None = None
        for part, dtype in zip(self.parts, dtypes, strict=True):
            if not rule.takes(dtype):
                fail(f"{part.name}: {called} is of type {type_name(dtype)}. {rule.must}")
            if not (rule.alike and part.typed) or dtype == pl.Null:
                continue
            first = first or (kind_of(dtype), part.name)
            if first[0] != kind_of(dtype):
                fail(f"{called} holds {first[0]} in {first[1]}, but {kind_of(dtype)} in {part.name}.")


def type_name(dtype: pl.DataType) -> str:
    """Return the name of a type without its contents: an Enum contains values, a Struct contains field names."""
    return dtype.base_type().__name__


def open_source(source: str, *, base_folder: Path, form: CsvForm | None = None) -> tuple[Part, ...]:
    """Return the parts of `source`: "statsmodels:NAME", a CSV or Parquet file, or a glob of them, sorted."""
    scheme = re.fullmatch(r"(\w{2,}):(.*)", source, re.DOTALL)  # one letter before the colon is a drive
    if scheme is not None:
        hint = "Give a file on this machine, or statsmodels:NAME for a bundled data set."
        if scheme[1] != "statsmodels":
            fail(f"{source!r} is not understood. {hint}")
        return (_bundled(scheme[2], source),)
    written = Path(source).expanduser()
    path = base_folder / written
    if path.is_dir():
        fail(f"{source} is a folder. Give the files in it, for example {source.rstrip('/')}/*.csv.")
    if path.exists():
        return (_file(path, source, form),)
    where = "" if base_folder == Path() else " Relative paths start at the folder of the specification."
    if not glob.has_magic(source):
        fail(f"{source} does not exist.{where}")
    # Path.glob would take no absolute pattern.
    names = sorted(glob.glob(str(written), root_dir=base_folder, recursive=True))  # noqa: PTH207
    paths = [base_folder / name for name in names if not (base_folder / name).is_dir()]
    if not paths:
        fail(f"{source} matches no file.{where}")
    return _files(paths, base_folder, form)


def open_all(
    sources: Sequence[str], *, base_folder: Path, called: Mapping[str, str], form: CsvForm | None = None
) -> Iterator[Part]:
    """Yield a part for each file or data set; a file that is given twice is an error.

    A folder stands for its CSV and Parquet files, without files in subfolders. `called` maps a source to the name that
    messages use for its parts; without an entry a part keeps its own name.
    """
    seen: set[Path] = set()
    for source in sources:
        folder = base_folder / Path(source).expanduser()
        if folder.is_dir():
            with failing(f"{source} cannot be read"):
                files = sorted(path for path in folder.iterdir() if path.name.endswith(_KINDS) and path.is_file())
            if not files:
                fail(f"{source} is a folder without files of these kinds: {', '.join(_KINDS)}.")
            parts = _files(files, base_folder, form)
        else:
            parts = open_source(source, base_folder=base_folder, form=form)
        for part in parts:
            name = called.get(source, part.name)
            if part.path is not None and (place := part.path.resolve()) in seen:
                fail(f"{name} is given twice, so its people would report twice.")
            elif part.path is not None:
                seen.add(place)
            yield replace(part, name=name)


def files_of(sources: Sequence[str], *, base_folder: Path = Path()) -> dict[Path, str]:
    parts = tuple(open_all(sources, base_folder=base_folder, called={}))
    if any(part.path is None for part in parts):
        fail("Batches consist of files that arrive, so a bundled data set is not possible.")
    return {part.path.resolve(): part.name for part in parts if part.path is not None}


def _files(paths: Sequence[Path], folder: Path, form: CsvForm | None) -> tuple[Part, ...]:
    """Return files from a folder or glob; messages name each by its path relative to `folder`."""
    return tuple(
        _file(path, str(path.relative_to(folder) if path.is_relative_to(folder) else path), form) for path in paths
    )


def _file(path: Path, name: str, form: CsvForm | None) -> Part:
    if not path.name.endswith(_KINDS):
        fail(f"{name}: unsupported format (use {', '.join(_KINDS)}).")
    if path.suffix == ".parquet":
        return Part(name=name, frame=pl.scan_parquet(path.absolute(), glob=False), path=path)
    return Part(name=name, frame=csv_form.scanned(path, form or CsvForm()), path=path, form=form)


@contextmanager
def csv_in_memory(content: bytes, *, file: str, name: str, form: CsvForm | None = None) -> Iterator[Part]:
    r"""Open the bytes of a CSV file as a part with the name `file`; nothing is written to disk.

    >>> with csv_in_memory(b"answer\nyes\n", file="answers.csv", name="answers") as part:
    ...     part.schema().names()
    ['answer']
    """
    if not hasattr(os, "memfd_create"):  # pragma: no cover - another system
        fail(f"{name}: CSV files can only be read on Linux. Use a Parquet file.")
    try:
        plain = gzip.decompress(content) if file.endswith(".gz") else content
    except (OSError, EOFError, zlib.error):
        fail(f"{name} cannot be unpacked: it may be cut off or damaged.")
    with os.fdopen(os.memfd_create("answers"), "wb") as memory:
        memory.write(plain)
        memory.flush()
        path = Path(f"/proc/self/fd/{memory.fileno()}")
        resolved = replace(form or CsvForm(), separator=(form or CsvForm()).separator_of(Path(file)))
        yield Part(name=name, frame=csv_form.scanned(path, resolved), path=path, form=resolved if form else None)


def _bundled(name: str, source: str) -> Part:
    try:
        datasets = importlib.import_module("statsmodels.datasets")
    except ImportError as error:
        message = f"{source} needs statsmodels. Install it with: pip install 'hushuffle[examples]'"
        raise MissingDependencyError(message) from error
    names = sorted(module.name for module in pkgutil.iter_modules(datasets.__path__) if module.ispkg)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        fail(f"{source} is not a bundled data set.{f' Did you mean {near[0]!r}?' if near else ''}")
    table = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
    columns = {}
    for label in table.columns:
        values = table[label]
        numbers = values.dtype.kind in "iufb"
        content = values.to_numpy() if numbers else [None if v is None or v != v else str(v) for v in values]  # noqa: PLR0124 - nan
        columns[str(label)] = pl.Series(content, dtype=None if numbers else pl.String)
    return Part(name=source, frame=pl.LazyFrame(columns))
