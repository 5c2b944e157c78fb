"""Explain why a file cannot be used, in the operating system's words and with the file name that the user gave."""

from __future__ import annotations

import errno
import os
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Final

from hushuffle._checks import fail
from hushuffle.errors import DataError

_NUMBER: Final = re.compile(r"\(os error (\d+)\)")


def cause(error: OSError, otherwise: str = "an error") -> str:
    """Return the operating system's message, or `otherwise`; never a library's own text, which may quote data.

    >>> cause(OSError("cannot write 'ann': No space left on device (os error 28)"))
    'No space left on device'
    """
    if error.errno is not None and error.strerror:
        return error.strerror
    number = _NUMBER.search(str(error))
    return os.strerror(int(number[1])) if number else otherwise


@contextmanager
def failing(message: str, then: str = "") -> Iterator[None]:
    """Turn an error of the system into a `DataError`: `message` and the error's cause, as one sentence, and `then`."""
    try:
        yield
    except OSError as error:
        fail(f"{message}: {cause(error)}.{then}")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Change errors of the system so that they name `path`, which the user gave, instead of a temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, cause(error), str(path)) from None


@contextmanager
def refused(path: Path, damaged: str) -> Iterator[None]:
    """Turn every error that NumPy raises while it reads the array file `path` (.npy, .npz) into a `DataError`.

    NumPy passes on errors of zip files, decompressors, tokenizers and allocators: struct.error, NotImplementedError,
    TokenError, zlib.error, MemoryError for a shape that the file does not have, and others. Their text may quote the
    file, so it is not chained: the message is `damaged`, or why the file cannot be opened.

    >>> with refused(Path("x.npy"), "x.npy is damaged."):
    ...     raise NotImplementedError
    Traceback (most recent call last):
    hushuffle.errors.DataError: x.npy is damaged.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # errors may quote the file as well
            yield
    except DataError:
        raise
    except FileNotFoundError:
        fail(f"{path} does not exist.")
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}." if error.strerror else damaged)
    except Exception:  # noqa: BLE001 - there is no list of what can come
        fail(damaged)


_ASKED: Final = Event()
"""Set once the process was asked to end, since some libraries turn Ctrl-C into their own error or ignore it."""


@contextmanager
def heard() -> Iterator[None]:
    """Make SIGTERM and SIGHUP (the terminal was closed) end the work as Ctrl-C does; record all three signals.

    Ctrl-C stays ignored if it already was, as for background jobs of a shell.
    """
    numbers = [signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    _ASKED.clear()
    before = {number: signal.signal(number, _interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _ASKED.clear()


def stop_if_asked() -> None:
    """Raise KeyboardInterrupt if the process was asked to end, even if a library ignored the request."""
    if _ASKED.is_set():
        raise KeyboardInterrupt


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _ASKED.set()
    raise KeyboardInterrupt
