"""What NumPy's reader makes of a file that is none of its own, or damaged: one plain error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hushuffle._checks import fail
from hushuffle.errors import DataError


@contextmanager
def refused(path: Path, damaged: str) -> Iterator[None]:
    """Raise `DataError` for whatever NumPy raises while it reads the array file `path` (.npy, .npz).

    Its reader passes on what zip files, decompressors, tokenizers and allocators raise: struct.error,
    NotImplementedError, TokenError, zlib.error, MemoryError for a shape that the file does not have, and others.
    What it says may quote the file, so it is not chained: the message is `damaged`, or why the file cannot be opened.

    >>> with refused(Path("x.npy"), "x.npy is damaged."):
    ...     raise NotImplementedError
    Traceback (most recent call last):
    hushuffle.errors.DataError: x.npy is damaged.
    """
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        fail(f"{path} does not exist.")
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}." if error.strerror else damaged)
    except Exception:  # noqa: BLE001 - there is no list of what can come
        fail(damaged)
