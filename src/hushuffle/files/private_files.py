"""Files and folders that only their owner can read until they are whole, and are there whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.interrupts import stop_if_asked
from hushuffle.files.outputs import try_writing


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write `content` into `path`, whole or not at all; only the owner may read it.

    Args:
        path: the file.
        content: what it is to hold.
        durable: whether to wait until the disk has it, so that it survives a loss of power.

    Raises:
        OSError: it cannot be written; what was there before is still there, unless the disk only failed to confirm
            the new name.
    """
    with private_file(path, durable=durable) as file:
        file.write(content)


@contextmanager
def private_file(path: Path, *, durable: bool = True, first: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when it is whole; only the owner may read it.

    `first`: nothing may be there then (FileExistsError), not even what another process has written in the meantime.

    Its name until then cannot be guessed, and nothing that is there already is ever opened: who can write into the
    folder cannot lead the content elsewhere by a link, nor have it in a file that others can read.

    Raises:
        OSError: as `write_private`.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            if os.name == "posix":
                os.fchmod(file.fileno(), 0o600)  # a folder's default access list could have added readers
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if first:
            os.link(new, path)
            new.unlink()
        else:
            new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    if durable:
        flush_folder(path.parent)


def remove_unfinished(path: Path) -> None:
    """Remove what killed processes left of `path`. Only for whoever alone may write it now.

    Raises:
        OSError: it cannot be removed.
    """
    for left in path.parent.glob(f".{path.name}.*.new"):
        left.unlink(missing_ok=True)


def mark_once(path: Path) -> bool:
    """Create an empty private file, through to the disk, and say whether it was not there before.

    Raises:
        OSError: it cannot be created.
    """
    make_folder(path.parent, mode=0o700)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    os.fsync(number)
    os.close(number)
    flush_folder(path.parent)
    return True


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder, and those above it that are missing, through to the disk; it may be there already.

    Raises:
        OSError: it cannot be made.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for one in missing:
        flush_folder(one.parent)


def flush_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder: after a rename, whatever happens then, the new one is there.

    Raises:
        OSError: the disk does not take them.
    """
    if os.name != "posix":  # pragma: no cover - a folder cannot be opened there
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


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
            fail(f"{out} cannot be written: {cause(error)}.")
        try_writing(place, called=out)
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
        KeyboardInterrupt: somebody asked for the end, and a library had dropped it.
        OSError: it is still where it was.
        DataError: it is at `out`, but the disk does not confirm it.
    """
    stop_if_asked()
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
