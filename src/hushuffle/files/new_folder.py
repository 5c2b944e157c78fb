"""A folder of results that is there whole, or not at all; what is private meanwhile lies beside it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import flush_folder

_NAMES: Final = re.compile(r"\..+\.[0-9a-f]{8}\.collecting")
_LOCK: Final = "in-use"


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """Give a private folder beside `out`, on the same disk; nothing of it is left in the end.

    What killed collections have left beside `out` is removed: nobody holds the lock of such a folder.

    Raises:
        DataError: `out` is there and not empty, or its place cannot be written, or what is done meanwhile ends in an
            error of the system: nothing has been published then.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        fail(f"{out} is there already. Reports are never overwritten: give a new folder.")
    place = out.absolute().parent / f".{out.absolute().name}.{secrets.token_hex(4)}.collecting"
    with ExitStack() as undo:
        try:
            for parent in reversed([parent for parent in place.parents if not parent.exists()]):
                parent.mkdir()
                undo.callback(_remove_empty, parent)
            remove_abandoned(place.parent)
            place.mkdir(mode=0o700)
            undo.callback(shutil.rmtree, place)
            undo.callback(os.close, _in_use(place))
        except OSError as error:
            fail(f"{place.parent} cannot be written: {cause(error)}.")
        try:
            yield place
        except OSError as error:
            # Which file it was is not said: its name may be somebody's data.
            fail(f"The collection into {out} failed: {cause(error)}. Nothing was released.")


def _in_use(place: Path) -> int:
    """Return an open file that says, as long as it is open, that the private folder `place` is in use."""
    unlocked = place / f"{_LOCK}.new"
    number = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError):  # a disk without locks: then nobody can take it for abandoned either
        _lock(number)
    unlocked.rename(place / _LOCK)
    return number


def _lock(number: int) -> None:
    if os.name == "posix":
        import fcntl  # noqa: PLC0415 - is not everywhere

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_abandoned(folder: Path) -> None:
    """Remove the private folders that killed collections have left in `folder`; where that cannot be known, they stay.

    Raises:
        OSError: `folder` cannot be read.
    """
    if os.name != "posix":
        return
    for place in folder.iterdir():
        if _NAMES.fullmatch(place.name) and (place / _LOCK).is_file() and not place.is_symlink():
            with suppress(OSError):  # in use, somebody else's, or gone by now
                number = os.open(place / _LOCK, os.O_RDWR)
                try:
                    _lock(number)
                    shutil.rmtree(place)
                finally:
                    os.close(number)


def _remove_empty(folder: Path) -> None:
    """Remove a folder that was made, unless the collection or somebody else has put something there."""
    with suppress(OSError):
        folder.rmdir()


def publish(release: Path, out: Path) -> None:
    """Move the folder `release` to the place `out` at once, all of it written through to the disk.

    Raises:
        OSError: it is still where it was.
        DataError: it is at `out`, but the disk does not confirm it.
    """
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
    try:
        flush_folder(out.parent)
    except OSError as error:
        fail(
            f"{out} is released, but the disk does not confirm it ({cause(error)}): after a loss of "
            "power it may be gone. Copy it elsewhere."
        )
