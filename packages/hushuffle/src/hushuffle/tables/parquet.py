"""Reads Parquet files in a child process, because a damaged file may abort the process that reads it.

The Parquet library expects undamaged files. A damaged file can make it panic, or claim so much memory that the process
is aborted. So a child process reads, filters and converts the file; the parent receives only the requested columns.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final, NoReturn

import polars as pl

from hushuffle._checks import fail
from hushuffle.files.causes import cause, failing
from hushuffle.tables import _parquet_child as child
from hushuffle.tables.csv_form import unreadable

ROWS: Final = 1 << 18
"""Approximate number of rows per block."""

_PATIENCE: Final = 10.0
"""Seconds that an idle child process waits for the next file."""

_PIPE: Final = 1 << 20
_DAMAGED: Final = "not a readable Parquet file: it may be truncated or damaged. Write it again."
_FROM_OUTSIDE: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, getattr(signal, "SIGKILL", signal.SIGTERM))


def read_parquet(query: pl.LazyFrame, path: Path, *, name: str, rows: int = ROWS) -> Iterator[pl.DataFrame]:
    """Yield the result of `query` on the Parquet file `path`: first an empty table with the columns' types.

    The query uses `pl.scan_parquet(path)` with an absolute path, without Python functions, and reads no other file.
    """
    try:
        with path.open("rb"):
            size = path.stat().st_size
    except FileNotFoundError:
        fail(f"{name} does not exist.")
    except OSError as error:
        fail(f"{name} cannot be read: {cause(error)}.")
    plan, answered = query.serialize(), False
    while not answered:
        reader = _taken()
        try:
            yield from reader.answers(plan, rows, size)
            answered = True
        except _Failed:
            answered = True
            unreadable(f"{name} is {_DAMAGED}", path)
        except _Ended:
            if (code := reader.code()) != child.IDLE:  # else it had left just before it was asked
                _explain(code, path, name)
        finally:
            if answered and not _idle:
                _idle.append(reader)
            else:
                reader.end()


def _explain(code: int, path: Path, name: str) -> NoReturn:
    if code == child.NO_LIBRARIES:
        fail("the process that reads Parquet files cannot be started: Polars cannot be imported.")
    if -code in _FROM_OUTSIDE:
        fail(
            f"{name} could not be read completely: signal {-code} ended the process that read it. Memory may be "
            "insufficient."
        )
    unreadable(f"{name} is {_DAMAGED}", path)


class _Failed(Exception):  # noqa: N818 - what is the case
    """The child process reports that it cannot read the file."""


class _Ended(Exception):  # noqa: N818 - what is the case
    """The child process has ended."""


class _Reader:
    """A child process that reads Parquet files one after the other; it ends when its parent ends."""

    def __init__(self) -> None:
        with failing("the process that reads Parquet files cannot be started"):
            self._process = subprocess.Popen(  # noqa: S603 - this very Python, and a file of this package
                [sys.executable or "python3", "-P", child.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # panics quote the file
                env={**os.environ, "RUST_BACKTRACE": "0"},  # nobody reads it, and it takes a second
                bufsize=0,
                pipesize=_PIPE,
            )
        # A child process without a user, as after an interrupt, ends too.
        self._over = weakref.finalize(self, _ended, self._process, os.getpid())
        places = [place for place in sys.path if isinstance(place, str)]
        self._ask(json.dumps([places, _PATIENCE]).encode())

    def answers(self, query: bytes, rows: int, size: int) -> Iterator[pl.DataFrame]:
        self._ask(child.ASKED.pack(rows, size) + query)
        while True:
            kind, length = child.ANSWER.unpack(self._exactly(child.ANSWER.size))
            content = self._exactly(length)
            if kind == b"E":
                return
            if kind == b"F":
                raise _Failed
            yield pl.read_ipc_stream(BytesIO(content))

    def alive(self) -> bool:
        return self._process.poll() is None

    def code(self) -> int:
        """Return the exit code of a process that has ended or is about to end."""
        return self._process.wait()

    def end(self) -> None:
        self._over()

    def _ask(self, block: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(child.LENGTH.pack(len(block)) + block)
        try:
            while view:
                view = view[self._process.stdin.write(view) :]
        except BrokenPipeError:
            raise _Ended from None

    def _exactly(self, length: int) -> bytearray:
        assert self._process.stdout is not None
        data = bytearray(length)
        view = memoryview(data)
        while view:
            count = self._process.stdout.readinto(view)  # type: ignore[attr-defined]
            if not count:
                raise _Ended
            view = view[count:]
        return data


def _ended(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process; in a fork of its owner, only drop its pipes."""
    if os.getpid() == owner:
        with process:
            process.kill()
        return
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
    process.returncode = 0  # it is none of this process's


_idle: Final[list[_Reader]] = []
"""At most one idle child process, which waits for the next file."""


def _taken() -> _Reader:
    while _idle:
        reader = _idle.pop()
        if reader.alive():
            return reader
        reader.end()
    return _Reader()


def _end_idle() -> None:
    while _idle:
        _idle.pop().end()


atexit.register(_end_idle)
if hasattr(os, "register_at_fork"):
    # A forked process must not use a child process that answers its parent.
    os.register_at_fork(after_in_child=_idle.clear)
