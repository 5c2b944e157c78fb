"""What commands share: exit codes, options, progress bar, handling of errors, choice of engine, delivery of reports."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn, TextIO, TypeAlias, cast

from cyclopts import Group, Parameter

from hushuffle.errors import InvalidInputError

if TYPE_CHECKING:
    from hushuffle.model import Report, Target, Warned

COMMON: Final = Group("Common options", sort_key=1)
"""The help panel for options without a group, the first panel of every command."""

FLAG: Final = Parameter(negative=(), show_default=False)
Flag: TypeAlias = Annotated[bool, FLAG]
"""An option without a value, which is off by default."""

SCHEMA_VERSION: Final = 1


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    MISSED = 3
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return {
            Exit.DONE: "done",
            Exit.FAILED: "failed: data, machine or numerics",
            Exit.USAGE: "the command line or the specification is wrong; nothing was done",
            Exit.MISSED: "the command ran, but a target is missed (--strict, init) or a claim is refuted",
            Exit.INTERRUPTED: "Ctrl-C interrupted the command; no file is incomplete",
        }[self]


class UsageError(Exception):
    """The command line is invalid, or asks for something that is impossible."""


def misused(message: str) -> NoReturn:
    raise UsageError(message) from None


@contextmanager
def from_options() -> Iterator[None]:
    """An argument that is refused in this context comes from the command line, which is therefore invalid."""
    try:
        yield
    except InvalidInputError as error:
        misused(str(error))


Tell = Callable[[str, float], None]
"""Shows progress: the current step, and the share of the work that is done (0 to 1)."""


_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f"
_REORDERING = "\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNSAFE = re.compile(f"[{_CONTROLS}{_REORDERING}]")
_ESCAPES = re.compile(f"[\x1b{_CONTROLS}{_REORDERING}]")


def visible(text: str) -> str:
    r"""Text with escape codes in place of control characters, line separators and bidirectional controls.

    The escape codes (backslash, u, four hexadecimal digits) are valid in strings of JSON and TOML. Tabs, line feeds and
    carriage returns stay.

    >>> print(visible("\x1b[31mred\u202e"))
    \u001b[31mred\u202e
    """
    return _escaped(text, _ESCAPES)


def _escaped(text: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class VisibleStream:
    """Standard output or error with control characters escaped; terminal colours and the progress bar work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_escaped(text, _UNSAFE) if self._stream.isatty() else visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def visibly() -> Iterator[None]:
    """Replaces control characters by escape codes in all output that is printed in this context."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", VisibleStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def progress(*, enabled: bool) -> Iterator[Tell | None]:
    """Shows a progress bar on standard error if `enabled`, and yields the function that moves it; else None."""
    if not enabled:
        yield None
        return
    starting()
    from rich.console import Console  # noqa: PLC0415 - only when needed
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - only when needed

    erase()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def tell(what: str, share: float) -> None:
            bar.update(task, description=what, completed=min(max(share, 0.0), 1.0))

        yield tell


def warn(columns: Mapping[str, Iterable[Warned]]) -> None:
    """Print the warnings about each column on standard error; a line begins with the column's name.

    A warning about all columns (or about a single column, whose name is "") is printed once, without a name.
    """
    lines_of = {name: [f"{warned.sentence} {warned.advice}" for warned in about] for name, about in columns.items()}
    common = [line for line in next(iter(lines_of.values()), []) if all(line in lines for lines in lines_of.values())]
    own = [f"{name}: {line}" for name, lines in lines_of.items() for line in lines if line not in common]
    sys.stderr.write("".join(f"hushuffle: warning: {visible(line)}\n" for line in (*common, *own)))


_STARTING = "hushuffle: starting"
_ERASE = "\r\x1b[K"


def starting() -> None:
    """A notice on a terminal, while the modules of the progress bar are loaded."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{_ERASE}{_STARTING} ...")
        sys.stderr.flush()


def erase() -> None:
    if sys.stderr.isatty():
        sys.stderr.write(_ERASE)
        sys.stderr.flush()


_WIDEST = 120
_NARROWEST = 40


def print_lines(lines: Sequence[str]) -> None:
    """Print lines wrapped to the width of the terminal; lines with a file name are not wrapped."""
    for line in lines:
        whole = line.startswith("Wrote ") or not line
        parts = [line] if whole else textwrap.wrap(line, width(), break_long_words=False, break_on_hyphens=False)
        sys.stdout.write("".join(f"{part}\n" for part in parts))


def width() -> int:
    """Characters of a line on standard output, from 40 to 120; 80 if the output is a pipe."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return min(max(columns, _NARROWEST), _WIDEST)


def color() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def master_of(engine: Literal["local", "spark"], master: str | None) -> str | None:
    """Address of the requested Spark cluster, or None if none is requested.

    >>> master_of("spark", None)
    'local[*]'
    """
    if engine == "spark":
        return master or "local[*]"
    if master is not None:
        misused("--master needs --engine spark.")
    return None


def json_text(content: str, fields: Mapping[str, Any]) -> str:
    """Return a JSON document: the version of its keys, what its `content` is, and its own keys."""
    document = {"schema_version": SCHEMA_VERSION, "content": content, **fields}
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def print_json(content: str, fields: Mapping[str, Any]) -> None:
    sys.stdout.write(json_text(content, fields))


_UNWRITTEN: Final = "No file was written. Use --out DIR to write the page and all figures to DIR."


def refuse_file(folder: Path, *, earlier: Sequence[str] = ()) -> None:
    """Raise an error before the work starts if --out is a file, cannot be written, or holds a file named `earlier`."""
    if folder.exists() and not folder.is_dir():
        misused(f"--out must be a folder, but {folder} is a file.")
    if held := next((name for name in earlier if (folder / name).exists()), ""):
        misused(f"{folder} holds {held} already. Choose another --out, or pass --overwrite to replace it.")
    from hushuffle.files.private_files import refuse_folder  # noqa: PLC0415 - only when needed

    refuse_folder(folder)


def write_new(file: Path, text: str) -> None:
    """Write a text to a new file, completely or not at all; raise an error if the file exists."""
    from hushuffle.files.causes import naming  # noqa: PLC0415 - only when needed
    from hushuffle.files.private_files import private_file  # noqa: PLC0415

    with naming(file), private_file(file, first=True) as new:
        new.write(text.encode())


def deliver(made: Report, folder: Path | None, *, json: bool, beside: Mapping[str, str] | None = None) -> None:
    """Write the report's files, and the texts `beside`, by file name, into `folder` (None: write nothing).

    With `json`, print only the report's JSON document; else print its summary and the names of the files.
    """
    from hushuffle import report  # noqa: PLC0415 - only when needed

    if folder is None:
        text = report.to_json(made) if json else report.terminal(made, width=width(), color=color())
        sys.stdout.write(text.rstrip("\n") + "\n" + ("" if json else f"\n{_UNWRITTEN}\n"))
        return
    files = report.write(made, folder, beside=beside)
    sys.stdout.write(document(files) if json else summary(made, files))


def judged(targets: Sequence[Target], *, strict: bool) -> Exit:
    """Print the targets that are not met on standard error, and return the exit code of the run."""
    missed = [target for target in targets if not target.met]
    sys.stderr.write("".join(f"hushuffle: target not met: {target.sentence}\n" for target in missed))
    return Exit.MISSED if missed and strict else Exit.DONE


def verdicts(targets: Sequence[Target]) -> list[dict[str, Any]]:
    return [
        {"key": target.key, "rule": target.rule, "asked": target.asked, "met": target.met, "sentence": target.sentence}
        for target in targets
    ]


def document(files: Sequence[Path]) -> str:
    return next(file for file in files if file.suffix == ".json").read_text(encoding="utf-8")


def summary(made: Report, files: Sequence[Path]) -> str:
    from hushuffle import report  # noqa: PLC0415 - only when needed

    text = report.terminal(made, width=width(), color=color()).rstrip("\n")
    return "\n".join([text, "", *(f"Wrote {file}" for file in files), ""])
