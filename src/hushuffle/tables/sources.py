"""Open files, globs and bundled data sets lazily, with clear error messages.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from hushuffle._checks import fail
from hushuffle.errors import MissingDependencyError
from hushuffle.files.causes import cause, failing
from hushuffle.files.interrupts import stop_if_asked
from hushuffle.tables.csv_form import (
    KINDS,
    UTF8,
    CsvForm,
    Irregular,
    first_irregular,
    irregular_records,
    lines_of,
    pieces,
    record_ends,
    separator_name,
    text_blocks,
)
from hushuffle.tables.parquet import ROWS, UnreadableFile, read_parquet

Records = npt.NDArray[np.intp]

_BUNDLED: Final = "statsmodels"
_SCHEME: Final = re.compile(r"(\w{2,}):(.*)", re.DOTALL)  # one letter before the colon is a drive
_KINDS: Final = (*KINDS, ".parquet")
_LOOKED: Final = " looked"
_SEPARATORS: Final = {";": '";"', "\t": '"\\t"', "|": '"|"', ",": '","'}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A file or table; `irregular` are records with a wrong number of fields, which are blank in `frame` (see
    `tolerant`).

    `form` is the form of a CSV file (None: UTF-8, and messages name no key `encoding`). `path` is None if it is no
    file.
    """

    name: str
    frame: pl.LazyFrame
    path: Path | None = None
    form: CsvForm | None = None
    irregular: tuple[Irregular, ...] = ()

    @property
    def typed(self) -> bool:
        """Whether the columns of this part have types (columns of a CSV file are text)."""
        return self.path is None or self.path.suffix == ".parquet"

    def dtypes(self, *columns: str) -> list[pl.DataType]:
        schema = self.schema()
        for column in columns:
            if column not in schema:
                self._absent(column, schema.names())
            if not self.typed and f"{column}_duplicated_0" in schema:
                fail(f"{self.name}: column {column!r} occurs twice. Rename one of them.")
        return [schema[column] for column in columns]

    def schema(self) -> pl.Schema:
        if self._apart:
            return self._whole(self.frame.head(0)).schema
        with self.plainly():
            schema = self.frame.collect_schema()
            if not schema and not self.typed:
                raise pl.exceptions.NoDataError
        return schema

    def collect(self, *wanted: pl.Expr) -> pl.DataFrame:
        return self._looked(self._whole(self._looking(wanted)))

    def batches(self, *wanted: pl.Expr, rows: int) -> Iterator[pl.DataFrame]:
        """Yield the results of the `wanted` expressions in order, about `rows` rows at a time."""
        query = self._looking(wanted)
        if self._apart:
            yield from (frame for frame in self._answers(query, rows) if frame.height)
            return
        with self.plainly():
            looked = False
            for frame in query.collect_batches(chunk_size=rows, maintain_order=True):
                yield self._looked(frame, before=looked)
                looked = looked or (_LOOKED in frame.columns and bool(frame[_LOOKED].any()))

    def distinct(self, wanted: pl.Expr) -> list[str]:
        """Return the different values of the text expression `wanted`; the file is read in chunks."""
        return self._whole(self.frame.select(wanted.unique())).to_series().to_list()

    def count(self) -> int:
        """Return the number of rows; it does not check the fields of the rows."""
        return int(self._whole(self.frame.select(pl.len())).item())

    def lines(self, records: Sequence[int]) -> list[int] | None:
        """Return the lines on which records of a CSV file start, both counted from 1; None for other tables."""
        if self.path is None or self.typed:
            return None
        with self.plainly():
            return lines_of(self.path, self._form.encoding, records)

    @property
    def _apart(self) -> bool:
        """Whether a child process reads the file, because a damaged file might abort the process."""
        return self.path is not None and self.path.suffix == ".parquet"

    def _looking(self, wanted: Sequence[pl.Expr]) -> pl.LazyFrame:
        """Return a query of `wanted` that looks at every field of a CSV file.

        Without that look, a row with too many fields, whose values may stand in the wrong columns, is not noticed.
        """
        short = pl.last().is_null() & pl.any_horizontal(pl.all().is_not_null())
        return self.frame.select(*wanted, *(() if self.typed else (short.alias(_LOOKED),)))

    def _looked(self, frame: pl.DataFrame, *, before: bool = False) -> pl.DataFrame:
        """Return the frame; refuse it if a row has too few fields, unless the file was checked before."""
        if _LOOKED in frame.columns and not before and not self.irregular and frame[_LOOKED].any():
            with self.plainly():
                self._refuse_irregular()
        return frame.drop(_LOOKED, strict=False)

    def tolerant(self) -> Part:
        """Return the same file with blank records in place of those in `irregular` (wrong number of fields)."""
        if self.path is None or self.typed:
            return self
        with self.plainly():
            irregular = tuple(irregular_records(self.path, self._form))
        if not irregular or irregular[-1].open:  # which is refused when it is read
            return self
        blank = np.array([each.record for each in irregular])
        form = replace(self._form, separator=self._form.separator_of(self.path))
        return replace(self, frame=_decoded(self.path, form, blank=blank), irregular=irregular)

    def _whole(self, query: pl.LazyFrame) -> pl.DataFrame:
        if self._apart:
            return pl.concat(self._answers(query))
        with self.plainly():
            return query.collect(engine="streaming")

    def _answers(self, query: pl.LazyFrame, rows: int = ROWS) -> Iterator[pl.DataFrame]:
        assert self.path is not None
        return read_parquet(query, self.path, name=self.name, rows=rows)

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Convert errors of libraries, whose messages may contain values, to a `DataError` without values."""
        try:
            yield
        except pl.exceptions.NoDataError:
            _unreadable(f"{self.name} is empty: not even a line with the names of the columns.", self.path)
        except OSError as error:
            if reason := cause(error, ""):
                fail(f"{self.name} cannot be read: {reason}.")
            _unreadable(f"{self.name} cannot be read: it may be cut off or damaged.", self.path)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeError, EOFError, zlib.error):
            stop_if_asked()  # what was interrupted is not damaged
            self._damaged()

    def _damaged(self) -> NoReturn:
        if self.path is None:
            fail(f"{self.name} cannot be read.")
        _refuse_other_encodings(self)
        self._refuse_irregular()
        _unreadable(
            f"{self.name} is not a well-formed CSV file: a row has more fields than the first line has names, or a "
            f"quotation mark is not closed. Put quotation marks around fields that contain {self._separated}.",
            self.path,
        )

    def _refuse_irregular(self) -> None:
        """Raise `DataError` with the line of the first row that does not fit the names, if there is one."""
        assert self.path is not None
        irregular = first_irregular(self.path, self._form)
        if irregular is None:
            return
        here = f"the row that begins in line {irregular.line:,} has {irregular.fields:,} and {irregular.names:,}"
        if irregular.open:
            what = f"a quotation mark is never closed: the row that begins in line {irregular.line:,} does not end"
        elif irregular.fields > irregular.names:
            what = f"a row has more fields than the first line has names: {here}"
        else:
            what = f"a row has fewer fields than the first line has names: {here}"
        if irregular.several and not irregular.open:
            what += ", or a quotation mark is never closed in it"
        if irregular.fields < irregular.names and not irregular.open:
            advice = f"Write all {self._separated} of a row, even if a value is missing."
        else:
            advice = f"Put quotation marks around fields that contain {self._separated}."
        _unreadable(f"{self.name} is not a well-formed CSV file: {what}. {advice}", self.path)

    @property
    def _separated(self) -> str:
        assert self.path is not None
        return separator_name(self._form.separator_of(self.path))

    @property
    def _form(self) -> CsvForm:
        return self.form or CsvForm()

    def _absent(self, column: str, names: list[str]) -> NoReturn:
        if self.path is not None and not self.typed:
            _refuse_other_encodings(self)
        missing = f"{self.name} has no column {column!r}"
        if not self.typed and len(names) == 1:
            for separator, shown in _SEPARATORS.items():
                if separator in names[0]:
                    keys = f" In a specification, set separator = {shown} if the first line uses it."
                    fail(f"{missing}: its fields are not separated by {self._separated}.{keys if self.form else ''}")
        fail(f"{missing} (number of columns: {len(names):,}). {_advice(column, names, typed=self.typed)}")


def _advice(column: str, names: list[str], *, typed: bool) -> str:
    """Return advice on why `column` may be missing, without another column's name."""
    plain = column.strip().casefold()
    if any(name.strip().casefold() == plain for name in names):
        return "A column has almost this name: capital letters and spaces around it matter."
    if typed:
        return "Capital letters and spaces matter."
    return (
        "Its first line must hold the names of the columns. Check that this line is there and that it closes each "
        "quotation mark. Capital letters and spaces matter."
    )


def type_name(dtype: pl.DataType) -> str:
    """Return the name of a type without its contents: an Enum contains values, a Struct contains field names.

    >>> type_name(pl.Enum(["positive", "negative"]))
    'Enum'
    """
    return dtype.base_type().__name__


def open_source(source: str, *, base_folder: Path, form: CsvForm | None = None) -> tuple[Part, ...]:
    """Return the parts of `source`: "statsmodels:NAME", a CSV or Parquet file, or a glob of them, sorted."""
    scheme = _SCHEME.fullmatch(source)
    if scheme is None:
        return tuple(_file(path, name, form) for path, name in _paths(source, base_folder))
    if scheme[1] != _BUNDLED:
        fail(f"{source!r} is not understood. Give a file on this machine, or {_BUNDLED}:NAME for a bundled data set.")
    return (_bundled(scheme[2], source),)


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
        yield Part(name=name, frame=_scanned(path, resolved), path=path, form=resolved if form else None)


def open_folder(source: str, *, base_folder: Path, form: CsvForm | None = None) -> tuple[Part, ...]:
    """Return the CSV and Parquet files in the folder `source`, sorted, without files in subfolders."""
    folder = base_folder / Path(source).expanduser()
    with failing(f"{source} cannot be read"):
        files = sorted(path for path in folder.iterdir() if path.name.endswith(_KINDS) and path.is_file())
    if not files:
        fail(f"{source} is a folder without files of these kinds: {', '.join(_KINDS)}.")
    return tuple(_file(path, name, form) for path, name in found(files, base_folder))


def open_all(
    sources: Sequence[str], *, base_folder: Path, called: Mapping[str, str], form: CsvForm | None = None
) -> Iterator[Part]:
    """Yield a part for each file or data set; a file that is given twice is an error.

    `called` maps a source to the name that messages use for its parts; without an entry a part keeps its own name.
    """
    seen: set[Path] = set()
    for source in sources:
        opener = open_folder if (base_folder / Path(source).expanduser()).is_dir() else open_source
        for part in opener(source, base_folder=base_folder, form=form):
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


def found(paths: Sequence[Path], folder: Path) -> list[tuple[Path, str]]:
    """Return files from a folder or glob, each with its name in messages: the path relative to `folder`.

    >>> [name for _, name in found([Path("data/in/ann.csv"), Path("/tmp/bob.csv")], Path("data"))]
    ['in/ann.csv', '/tmp/bob.csv']
    """
    return [(path, str(path.relative_to(folder) if path.is_relative_to(folder) else path)) for path in paths]


def _paths(source: str, base_folder: Path) -> list[tuple[Path, str]]:
    written = Path(source).expanduser()
    path = base_folder / written
    if path.is_dir():
        fail(f"{source} is a folder. Give the files in it, for example {source.rstrip('/')}/*.csv.")
    if path.exists():
        return [(path, source)]
    if not glob.has_magic(source):
        fail(f"{source} does not exist.{_where(base_folder)}")
    # Path.glob would take no absolute pattern.
    names = sorted(glob.glob(str(written), root_dir=base_folder, recursive=True))  # noqa: PTH207
    paths = [base_folder / name for name in names if not (base_folder / name).is_dir()]
    if not paths:
        fail(f"{source} matches no file.{_where(base_folder)}")
    return found(paths, base_folder)


def _where(base_folder: Path) -> str:
    """Return words for the folder of relative paths, if it is not the current folder."""
    return "" if base_folder == Path() else " Relative paths start at the folder of the specification."


def _file(path: Path, name: str, form: CsvForm | None) -> Part:
    if not path.name.endswith(_KINDS):
        fail(f"{name}: unsupported format (use {', '.join(_KINDS)}).")
    if path.suffix == ".parquet":
        return Part(name=name, frame=pl.scan_parquet(path.absolute(), glob=False), path=path)
    return Part(name=name, frame=_scanned(path, form or CsvForm()), path=path, form=form)


def _scanned(path: Path, form: CsvForm) -> pl.LazyFrame:
    """Return a query of all columns as text: the categories decide what a field means."""
    separator = form.separator_of(path)
    if not form.decoded:
        # The file is opened here, not inside of `plainly`, so this is done only where it helps.
        names = _unquoted if _quotes_in_names(path) else None
        return pl.scan_csv(path, infer_schema=False, glob=False, separator=separator, with_column_names=names)
    return _decoded(path, form)


def _decoded(path: Path, form: CsvForm, *, blank: Records | None = None) -> pl.LazyFrame:
    """Return a query of all columns of a file that is decoded here; records with the numbers `blank` are blank."""
    separator = form.separator_of(path)

    def frames(columns: list[str] | None, predicate: object, rows: int | None, _: int | None) -> Iterator[pl.DataFrame]:
        assert predicate is None  # nothing that is asked of a file filters it
        for frame in _frames(path, form.encoding, separator, blank=blank):
            part = frame if columns is None else frame.select(columns)
            yield part if rows is None else part.head(rows)
            if rows is not None and (rows := rows - part.height) <= 0:
                return

    def schema() -> pl.Schema:
        first = next(_frames(path, form.encoding, separator, blank=blank), None)
        return pl.Schema() if first is None else first.schema

    return register_io_source(frames, schema=schema)


def _frames(path: Path, encoding: str, separator: str, *, blank: Records | None = None) -> Iterator[pl.DataFrame]:
    header, records = b"", 0
    for block in pieces(text_blocks(path, encoding)):
        piece = block
        if blank is not None:
            piece = block if header else block.lstrip(b"\xef\xbb\xbf\r\n")
            ends = record_ends(piece)
            first = records if header else -1  # the number of the record before, or of the line of names
            piece = _blanked(piece, ends, blank[(blank > first) & (blank <= first + ends.size)] - first - 1)
            records = first + ends.size
        if not header:
            header = piece.lstrip(b"\r\n")
            header = header[: next(iter(record_ends(header)), len(header))]
            content = piece.lstrip(b"\r\n")
        else:
            content = header + piece
        frame = pl.read_csv(BytesIO(content), infer_schema=False, separator=separator)
        frame.columns = _unquoted(frame.columns)
        yield frame


def _blanked(text: bytes, ends: Records, places: Records) -> bytes:
    """Return text in which the records at these places are blank lines."""
    pieces, start = [], 0
    for place in places.tolist():
        pieces += [text[start : ends[place - 1] if place else 0], b"\n"]
        start = int(ends[place])
    return b"".join([*pieces, text[start:]])


def _unquoted(names: list[str]) -> list[str]:
    """A quotation mark inside of quotation marks is written twice."""
    return [name.replace('""', '"') for name in names]


def _quotes_in_names(path: Path) -> bool:
    """Return whether the line of names has a quotation mark that is written twice; False if it cannot be read."""
    try:
        start = next(text_blocks(path, UTF8), b"").lstrip(b"\xef\xbb\xbf\r\n")
    except (OSError, EOFError, zlib.error, UnicodeError):
        return False
    return b'""' in start[: next(iter(record_ends(start)), len(start))]


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


def _refuse_other_encodings(part: Part) -> None:
    """Raise `DataError` if a file does not have its declared encoding; the file is read in blocks."""
    assert part.path is not None
    try:
        for _ in text_blocks(part.path, part.form.encoding if part.form else UTF8):
            pass
    except UnicodeError:
        if part.form is not None and part.form.encoding != UTF8:
            _unreadable(f"{part.name} is not text in the specified encoding {part.form.encoding}.", part.path)
        keys = 'Set the encoding in the specification, for example encoding = "windows-1252". Or save'
        _unreadable(
            f"{part.name} is not {UTF8.upper()} text. {keys if part.form else 'Save'} it as UTF-8, for example: iconv "
            "-f WINDOWS-1252 -t UTF-8 old.csv > new.csv (with its actual encoding).",
            part.path,
        )
    except OSError as error:
        if reason := cause(error, ""):
            fail(f"{part.name} cannot be read: {reason}.")
        _unreadable(f"{part.name} cannot be unpacked: it may be cut off or damaged.", part.path)
    except (EOFError, zlib.error):
        _unreadable(f"{part.name} cannot be unpacked: it may be cut off or damaged.", part.path)


def _unreadable(message: str, path: Path | None) -> NoReturn:
    # The reader's message may quote the data, so it is not chained.
    raise UnreadableFile(message, path) from None
