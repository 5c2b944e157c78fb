"""The form of CSV files: encoding and separator. Files are read as UTF-8 text in blocks."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

KINDS: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")

UTF8: Final = "utf-8"
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


def opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _plain_blocks(path: Path) -> Iterator[bytes]:
    """The blocks are not checked to be text: a field that is never read may have any bytes."""
    with opened(path) as stream:
        while block := stream.read(_BLOCK):
            yield block


def text_blocks(path: Path, encoding: str) -> Iterator[bytes]:
    """Yield the text of a file as UTF-8, in blocks; raise `UnicodeError` if the file does not have this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with opened(path) as stream:
        while block := stream.read(_BLOCK):
            yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def pieces(blocks: Iterator[bytes]) -> Iterator[bytes]:
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


def record_ends(text: bytes) -> npt.NDArray[np.intp]:
    """Return the positions where records end; a line break inside quotation marks ends no record."""
    symbols = np.frombuffer(text, dtype=np.uint8)
    inside = np.logical_xor.accumulate(symbols == _QUOTE) if _QUOTE in text else np.zeros(symbols.size, dtype=np.bool_)
    return np.flatnonzero((symbols == _NEWLINE) & ~inside) + 1


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
    separator, names, odd, started = ord(form.separator_of(path)), 0, False, False
    records = -1  # that have ended below the names
    line = begun = 1  # where the block begins, and the record that is not at its end yet
    fields, size, before = 1, 0, _NEWLINE  # of that record so far, and the last symbol
    for block in text_blocks(path, form.encoding) if form.decoded else _plain_blocks(path):
        symbols = np.frombuffer(block, dtype=np.uint8)
        if not started:  # blank lines above the names
            leading = symbols.size - len(block.lstrip(b"\xef\xbb\xbf\r\n"))
            line, symbols = line + int(np.count_nonzero(symbols[:leading] == _NEWLINE)), symbols[leading:]
            started, begun = bool(symbols.size), line
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
            names = names or int(counts[0])
            for place in np.flatnonzero((counts != names) & ~blank).tolist():
                first, last = int(starts[place]), line + int(newlines[ends[place]]) - 1
                number = records + place + 1
                yield Irregular(line=first, fields=int(counts[place]), names=names, several=last > first, record=number)
            records += ends.size
            begun, fields, size = line + int(newlines[ends[-1]]), 1, 0
        rest = int(ends[-1]) + 1 if ends.size else 0
        fields += int(separators[-1] - (separators[rest - 1] if rest else 0))
        size += symbols.size - rest
        line, odd, before = line + int(newlines[-1]), bool(inside[-1]), int(symbols[-1])
    names = names or fields
    if odd or (size and fields != names):
        yield Irregular(line=begun, fields=fields, names=names, several=line > begun, record=records + 1, open=odd)


def first_irregular(path: Path, form: CsvForm) -> Irregular | None:
    return next(irregular_records(path, form), None)


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
    record = line = 0  # how many have ended
    odd, started = False, False
    for block in text_blocks(path, encoding) if CsvForm(encoding=encoding).decoded else _plain_blocks(path):
        symbols = np.frombuffer(block, dtype=np.uint8)
        if not started:  # blank lines above the names
            leading = symbols.size - len(block.lstrip(b"\xef\xbb\xbf\r\n"))
            line, symbols = line + int(np.count_nonzero(symbols[:leading] == _NEWLINE)), symbols[leading:]
            started = bool(symbols.size)
        if not symbols.size:
            continue
        inside = np.logical_xor.accumulate(np.concatenate([[odd], symbols == _QUOTE]))[1:]
        newlines = symbols == _NEWLINE
        ends = np.flatnonzero(newlines & ~inside)
        here = wanted[(wanted > record) & (wanted <= record + ends.size)]
        lines = np.cumsum(newlines)
        numbers += (line + lines[ends[here - record - 1]] + 1).tolist()
        record, line, odd = record + ends.size, line + int(lines[-1]), bool(inside[-1])
    return numbers
