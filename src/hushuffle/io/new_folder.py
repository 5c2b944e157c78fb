"""A folder of results that is there whole, or not at all; what is private meanwhile lies beside it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from hushuffle.errors import DataError
from hushuffle.io.private_files import flush_folder


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """Give a private folder beside `out`, on the same disk; nothing of it is left in the end.

    Raises:
        DataError: `out` is there and not empty, or its place cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        _fail(f"{out} is there already. Reports are never overwritten: give a new folder.")
    place = out.absolute().parent / f".{out.absolute().name}.{secrets.token_hex(4)}.collecting"
    with ExitStack() as undo:
        try:
            for parent in reversed([parent for parent in place.parents if not parent.exists()]):
                parent.mkdir()
                undo.callback(_remove_empty, parent)
            place.mkdir(mode=0o700)
            undo.callback(shutil.rmtree, place)
        except OSError as error:
            _fail(f"{place.parent} cannot be written: {error.strerror or 'an error'}.")
        yield place


def _remove_empty(folder: Path) -> None:
    """Remove a folder that was made, unless the collection or somebody else has put something there."""
    with suppress(OSError):
        folder.rmdir()


def publish(release: Path, out: Path) -> None:
    """Move the folder `release` to the place `out` at once, all of it written through to the disk."""
    for path in release.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            flush_folder(path)
    flush_folder(release)
    if out.is_dir():
        out.rmdir()  # empty; a rename onto it would do on some systems only
    release.rename(out)
    flush_folder(out.parent)


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
