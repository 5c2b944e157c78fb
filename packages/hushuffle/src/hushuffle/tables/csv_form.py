"""CSV files: their form (encoding and separator), their text in blocks, and the record that makes one unreadable.

Polars is imported only to read a file. No message contains a value.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn, cast

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.files.causes import cause

if TYPE_CHECKING:
    import polars as pl

KINDS: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")

UTF8: Final = "utf-8"
Records = npt.NDArray[np.intp]

_TOP: Final = b"\xef\xbb\xbf\r\n"
"""What may stand above the names: the mark of UTF-8, and blank lines."""

_BLOCK: Final = 1 << 22
_QUOTE, _NEWLINE, _RETURN = ord('"'), ord("\n"), ord("\r")


@dataclass(frozen=True, kw_only=True)
class CsvForm:
    """The `encoding` of CSV files, by any name that Python accepts, and the `separator` of the fields.

    The default separator is a tab in .tsv files and a comma in others. Parquet files need no form.

    >>> CsvForm(encoding="latin-1", separator=";").separator_of(Path("people.csv"))
    ';'
    """

    encoding: str = UTF8
    separator: str | None = None

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.separator is not None:
            check_separator(self.separator)

    @property
    def decoded(self) -> bool:
        """Whether files must be decoded to UTF-8 before they are read."""
        return codecs.lookup(self.encoding).name not in (UTF8, "ascii", "utf-8-sig")

    def separator_of(self, path: Path) -> str:
        return self.separator or ("\t" if path.name.endswith((".tsv", ".tsv.gz")) else ",")


def separator_name(separator: str) -> str:
    """Return the name of a separator, for messages.

    >>> separator_name(";"), separator_name("|")
    ('semicolons', "'|'")
    """
    return {",": "commas", "\t": "tabs", ";": "semicolons"}.get(separator, repr(separator))


def check_encoding(encoding: str) -> None:
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        hint = "Use a Python name of an encoding, in capital or small letters."
        rule = 'the name of an encoding, such as "utf-8", "windows-1252" or "latin-1"'
        _checks.reject("encoding", rule, repr(encoding), hint)


def check_separator(separator: str) -> None:
    r"""Refuse what cannot separate fields.

    >>> check_separator("\t")
    """
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n' or separator.isalnum():
        rule = 'one character that is neither a letter, a digit nor a quotation mark, such as ";" or "\\t"'
        _checks.reject("separator", rule, repr(separator))


class UnreadableFile(DataError):  # noqa: N818 - what is the case
    """Raised if a file is damaged or has another format, so that it must be written again."""

    def __init__(self, message: str, path: Path | None) -> None:
        super().__init__(message)
        self.path = path


def unreadable(message: str, path: Path | None) -> NoReturn:
    # The library's message may quote the data, so it is not chained.
    raise UnreadableFile(message, path) from None


def _raw_blocks(path: Path) -> Iterator[bytes]:
    with cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def text_blocks(path: Path, encoding: str) -> Iterator[bytes]:
    """Yield the text of a file as UTF-8, in blocks; raise `UnicodeError` if the file does not have this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for block in _raw_blocks(path):
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def record_ends(text: bytes) -> Records:
    """Return the positions where records end; a line break inside quotation marks ends no record."""
    symbols = np.frombuffer(text, dtype=np.uint8)
    inside = np.logical_xor.accumulate(symbols == _QUOTE) if _QUOTE in text else np.zeros(symbols.size, dtype=np.bool_)
    return np.flatnonzero((symbols == _NEWLINE) & ~inside) + 1


def _pieces(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces of a text, cut between records: at line ends outside quotation marks."""
    held, started = b"", False
    for block in blocks:
        held += block
        ends = record_ends(held)
        started = started or bool(ends.size and held[: ends[-1]].strip(b"\r\n"))  # blank lines above the names
        if ends.size and started:
            yield held[: ends[-1]]
            held = held[ends[-1] :]
    if held.strip(b"\r\n"):
        yield held if held.endswith(b"\n") else held + b"\n"


def _line_of_names(text: bytes) -> bytes:
    return text[: next(iter(record_ends(text)), len(text))]


def scanned(path: Path, form: CsvForm, *, blank: Records | None = None) -> pl.LazyFrame:
    """Return a query of all columns as text: column rules decide what a field means.

    Records with the numbers `blank` are read as blank lines.
    """
    import polars as pl  # noqa: PLC0415 - only to read a file
    from polars.io.plugins import register_io_source  # noqa: PLC0415

    separator = form.separator_of(path)
    if blank is None and not form.decoded:
        # The file is opened here, where errors are not explained, so this is done only where it helps.
        names = _unquoted if _quotes_in_names(path) else None
        return pl.scan_csv(path, infer_schema=False, glob=False, separator=separator, with_column_names=names)

    def frames(columns: list[str] | None, predicate: object, rows: int | None, _: int | None) -> Iterator[pl.DataFrame]:
        assert predicate is None  # no query of a file filters its records
        for frame in _frames(path, form.encoding, separator, blank=blank):
            part = frame if columns is None else frame.select(columns)
            yield part if rows is None else part.head(rows)
            if rows is not None and (rows := rows - part.height) <= 0:
                return

    def schema() -> pl.Schema:
        first = next(_frames(path, form.encoding, separator, blank=blank), None)
        return pl.Schema() if first is None else first.schema

    return register_io_source(frames, schema=schema)


def _frames(path: Path, encoding: str, separator: str, *, blank: Records | None) -> Iterator[pl.DataFrame]:
    import polars as pl  # noqa: PLC0415 - only to read a file

    header, records = b"", 0
    for block in _pieces(text_blocks(path, encoding)):
        piece = block
        if blank is not None:
            piece = block if header else block.lstrip(_TOP)
            ends = record_ends(piece)
            first = records if header else -1  # the number of the record before, or of the line of names
            places = blank[(blank > first) & (blank <= first + ends.size)] - first - 1
            starts = np.append(0, ends)
            others = np.split(np.frombuffer(piece, dtype=np.uint8), np.stack([starts[places], ends[places]]).T.ravel())
            piece = b"\n".join(text.tobytes() for text in others[::2])
            records = first + ends.size
        text = piece if header else piece.lstrip(b"\r\n")
        frame = pl.read_csv(BytesIO(header + text), infer_schema=False, separator=separator)
        header = header or _line_of_names(text)
        frame.columns = _unquoted(frame.columns)
        yield frame


def _unquoted(names: list[str]) -> list[str]:
    """A quotation mark inside of quotation marks is written twice."""
    return [name.replace('""', '"') for name in names]


def _quotes_in_names(path: Path) -> bool:
    """Return whether the line of names has a quotation mark that is written twice; False if it cannot be read."""
    try:
        return b'""' in _line_of_names(next(text_blocks(path, UTF8), b"").lstrip(_TOP))
    except (OSError, EOFError, zlib.error, UnicodeError):
        return False


@dataclass(frozen=True, kw_only=True)
class Irregular:
    """A record whose number of `fields` differs from the number of `names`, or that never ends (`open`).

    `line` is the number of its first line. `record` counts from 1, below the line of names. `several`: quotation marks
    contain line breaks.
    """

    line: int
    fields: int
    names: int
    several: bool
    record: int
    open: bool = False


def irregular_records(path: Path, form: CsvForm) -> Iterator[Irregular]:
    r"""Yield in order the records of a file with a wrong number of fields; blank lines are allowed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     written = path.write_text("id,town\n1,Bern\n2\n")
    ...     list(irregular_records(path, CsvForm()))
    [Irregular(line=3, fields=1, names=2, several=False, record=2, open=False)]
    """
    names = 0
    for number, starts, lasts, fields, blank, never_ends in _records(path, form):
        names = names or int(fields[0])
        for place in np.flatnonzero((fields != names) & ~blank | never_ends).tolist():
            line, several = int(starts[place]), bool(lasts[place] > starts[place])
            yield Irregular(
                line=line,
                fields=int(fields[place]),
                names=names,
                several=several,
                record=number + place,
                open=never_ends,
            )


def lines_of(path: Path, encoding: str, records: Sequence[int]) -> list[int]:
    r"""Return the numbers of the lines on which records start; lines and records are counted from 1.

    The line of names is not a record. A record may have several lines, by line breaks in quotation marks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "answers.csv")
    ...     written = path.write_text('answer,text\nyes,"two\nlines"\nno,short\n')
    ...     lines_of(path, "utf-8", [1, 2])
    [2, 4]
    """
    wanted, numbers = np.asarray(records, dtype=np.int64), list[int]()
    for number, starts, *_ in _records(path, CsvForm(encoding=encoding)):
        numbers += starts[wanted[(wanted >= number) & (wanted < number + starts.size)] - number].tolist()
    return numbers


def _records(path: Path, form: CsvForm) -> Iterator[tuple[int, Records, Records, Records, npt.NDArray[np.bool_], bool]]:
    """Yield the records that end in each block: the first one's number, first and last lines, fields, which are blank.

    The line of names is record 0. The last entry marks a record that never ends. UTF-8 text is not checked: a field
    that is not read may have any bytes.
    """
    separator, odd, started, number = ord(form.separator_of(path)), False, False, 0
    line = begun = 1  # where the block begins, and the record that is not at its end yet
    fields, size, before = 1, 0, _NEWLINE  # of that record so far, and the last symbol
    for block in text_blocks(path, form.encoding) if form.decoded else _raw_blocks(path):
        text = block if started else block.lstrip(_TOP)
        started, above = started or bool(text), block[: len(block) - len(text)].count(b"\n")
        line, begun, symbols = line + above, begun + above, np.frombuffer(text, dtype=np.uint8)
        if not symbols.size:
            continue
        inside = np.logical_xor.accumulate(np.concatenate([[odd], symbols == _QUOTE]))[1:]
        newlines = np.cumsum(symbols == _NEWLINE)
        ends = np.flatnonzero((symbols == _NEWLINE) & ~inside)
        separators = np.cumsum((symbols == separator) & ~inside)
        if ends.size:
            counts = 1 + np.diff(separators[ends], prepend=1 - fields)
            length = np.diff(ends, prepend=-1 - size) - 1
            blank = (length == 0) | ((length == 1) & (np.append(before, symbols)[ends] == _RETURN))
            starts = np.concatenate([[begun], line + newlines[ends[:-1]]])
            yield number, starts, line + newlines[ends] - 1, counts, blank, False
            number += ends.size
            begun, fields, size = line + int(newlines[ends[-1]]), 1, 0
        rest = int(ends[-1]) + 1 if ends.size else 0
        fields += int(separators[-1] - (separators[rest - 1] if rest else 0))
        size += symbols.size - rest
        line, odd, before = line + int(newlines[-1]), bool(inside[-1]), int(symbols[-1])
    yield number, np.array([begun]), np.array([line]), np.array([fields]), np.array([not size]), odd


def refuse_irregular(path: Path, form: CsvForm, name: str) -> None:
    """Raise `UnreadableFile` with the line of the first row that does not fit the names, if there is one."""
    irregular = next(irregular_records(path, form), None)
    if irregular is None:
        return
    row, separated = f"the row that begins in line {irregular.line:,}", separator_name(form.separator_of(path))
    advice = f"Put quotation marks around fields that contain {separated}."
    if irregular.open:
        what, advice = f"a quotation mark is never closed in {row}", "Close it, or double it inside a text."
    else:
        fewer = irregular.fields < irregular.names
        what = f"the number of fields in {row} is {irregular.fields:,}, {'less' if fewer else 'more'} than the "
        what += f"{irregular.names:,} names in the first line"
        what += ", or a quotation mark is never closed in it" if irregular.several else ""
        advice = f"Write all {separated} of a row, even if a value is missing." if fewer else advice
    unreadable(f"{name} is not a well-formed CSV file: {what}. {advice}", path)


def refuse_damaged(path: Path, form: CsvForm | None, name: str) -> NoReturn:
    """Raise the error of a file that Polars cannot read; without a `form`, no message names a key `encoding`."""
    refuse_other_encodings(path, form, name)
    refuse_irregular(path, form or CsvForm(), name)
    separated = separator_name((form or CsvForm()).separator_of(path))
    unreadable(
        f"{name} is not a well-formed CSV file: a row has more fields than the first line has names, or a "
        f"quotation mark is not closed. Put quotation marks around fields that contain {separated}.",
        path,
    )


def refuse_other_encodings(path: Path, form: CsvForm | None, name: str) -> None:
    """Raise `DataError` if a file does not have its declared encoding; the file is read in blocks."""
    try:
        for _ in text_blocks(path, form.encoding if form else UTF8):
            pass
    except UnicodeError:
        if form is not None and form.encoding != UTF8:
            unreadable(f"{name} is not text in the specified encoding {form.encoding}.", path)
        keys = 'Set the encoding in the specification, for example encoding = "windows-1252". Or save'
        unreadable(
            f"{name} is not {UTF8.upper()} text. {keys if form else 'Save'} it as UTF-8, for example: iconv "
            "-f WINDOWS-1252 -t UTF-8 old.csv > new.csv (with its actual encoding).",
            path,
        )
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and (reason := cause(error, "")):
            fail(f"{name} cannot be read: {reason}.")
        unreadable(f"{name} cannot be unpacked: it may be cut off or damaged.", path)
