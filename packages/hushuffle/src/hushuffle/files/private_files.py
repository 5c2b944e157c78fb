"""Write files and folders that appear complete or not at all, and check in advance that they can be written.

Until they are complete, only their owner can read them. Messages use the file name that the user gave.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause, failing, stop_if_asked


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write `content` into `path` atomically, readable only by its owner; if this fails, the earlier file is unchanged.

    If only the disk failed to confirm the new name, the file is new. `durable`: the content is flushed to the disk.
    """
    with private_file(path, durable=durable) as file:
        file.write(content)


def write_whole(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write `content` into `path` atomically; other users may read it, as far as the system's defaults allow."""
    with whole_file(path, durable=durable) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path, *, private: bool = False, durable: bool = True, first: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` when it is complete; if it is `private`, only the owner may read it.

    `first`: raise FileExistsError if `path` exists, even if another process has written it in the meantime.

    An incomplete file has a random name, and no existing file is ever opened. An adversary who can write into the
    folder can neither redirect the content by a link nor have it written into a file that others can read.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(number, "wb") as file:
            if private and os.name == "posix":
                os.fchmod(file.fileno(), 0o600)  # a folder's default access list could have added users
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


private_file: Final = partial(whole_file, private=True)


def remove_unfinished(path: Path) -> None:
    """Remove unfinished files of `path` that killed processes left; no other process may write `path` at this time."""
    for left in path.parent.glob(f".{path.name}.*.new"):
        left.unlink(missing_ok=True)


def mark_once(path: Path) -> bool:
    """Create an empty private file, flushed to the disk; return True if it is new, False if it existed already."""
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
    """Create a folder and its missing parents, flushed to the disk; the folder may exist."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for created in missing:
        flush_folder(created.parent)


def flush_folder(folder: Path) -> None:
    """Flush the file names of a folder to the disk, so that a rename survives a loss of power."""
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
    """Yield a private folder beside `out`, on the same disk, and remove it at the end.

    Folders that killed collections left beside `out` are also removed; no process holds the lock of such a folder.
    `out` must not exist, or be empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        fail(f"{out} exists and is not empty. Reports are never overwritten: choose a new folder.")
    place = out.absolute().parent / f".{out.absolute().name}.{secrets.token_hex(4)}.collecting"
    with ExitStack() as undo:
        with failing(f"{out} cannot be written"):
            for parent in reversed([parent for parent in place.parents if not parent.exists()]):
                parent.mkdir()
                undo.callback(_remove_empty, parent)
            remove_abandoned(place.parent)
            place.mkdir(mode=0o700)
            undo.callback(shutil.rmtree, place)
            unlocked = place / f"{_LOCK}.new"
            number = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
            with suppress(OSError):  # on a disk without locks, no process can consider the folder abandoned either
                lock(number, wait=False)
            unlocked.rename(place / _LOCK)
            undo.callback(os.close, number)
        try_writing(place, called=out)
        try:
            yield place
        except OSError as error:
            # The message does not name the file: its name may be private data.
            fail(f"The collection into {out} failed: {cause(error)}. Nothing was released.")


def lock(number: int, *, wait: bool = True) -> None:
    """Lock an open file until it is closed; without `wait`, raise BlockingIOError if another process has locked it."""
    if os.name == "posix":
        import fcntl  # noqa: PLC0415 - is not everywhere

        fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_abandoned(folder: Path) -> None:
    """Remove private folders that killed collections left in `folder`; keep those whose state cannot be determined."""
    if os.name != "posix":
        return
    for place in folder.iterdir():
        if _NAMES.fullmatch(place.name) and (place / _LOCK).is_file() and not place.is_symlink():
            with suppress(OSError):  # in use, owned by another user, or removed in the meantime
                number = os.open(place / _LOCK, os.O_RDWR)
                try:
                    lock(number, wait=False)
                    shutil.rmtree(place)
                finally:
                    os.close(number)


def _remove_empty(folder: Path) -> None:
    """Remove the empty folder that was created; keep it if another process has put a file into it."""
    with suppress(OSError):
        folder.rmdir()


def publish(release: Path, out: Path) -> None:
    """Move the folder `release` to `out` in one step, flushed to the disk.

    A `DataError` means that the folder was moved, but the disk does not confirm it.
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
        out.rmdir()  # an empty folder; renaming onto it works on some systems only
    release.rename(out)
    try:
        flush_folder(out.parent)
    except OSError as error:
        fail(
            f"{out} is released, but the disk does not confirm it ({cause(error)}). A loss of power may remove it: "
            "copy it to another disk."
        )


_ROOM: Final = 1 << 16
"""Bytes of free space that the disk must have; later output may need more."""


def refuse_folder(folder: Path) -> None:
    """Raise `DataError` if no file can be written into a folder, or the folder cannot be created.

    The check leaves no file behind, and does not create the folder.

    >>> refuse_folder(Path("/proc/report"))
    Traceback (most recent call last):
    hushuffle.errors.DataError: /proc/report cannot be written: No such file or directory.
    """
    places = (folder, *folder.absolute().parents)
    there = next(place for place in places if place.exists() or place.is_symlink())
    if not there.is_dir():
        fail(f"{folder} is no folder: {there} is a file." if there != folder else f"{folder} is a file, not a folder.")
    try_writing(there, called=folder)


def refuse_file(file: Path) -> None:
    """Raise `DataError` if a file cannot be written; its folder must exist."""
    if file.is_dir():
        fail(f"{file} cannot be written: it is a folder.")
    if not file.parent.is_dir():
        fail(f"{file} cannot be written: the folder {file.parent} does not exist.")
    try_writing(file.parent, called=file)


def try_writing(folder: Path, *, called: Path) -> None:
    """Write a small file into an existing folder and remove it; messages name the folder as `called`."""
    trial = folder / f".{secrets.token_hex(8)}.trial"
    with failing(f"{called} cannot be written"):
        number = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            left = memoryview(bytes(_ROOM))
            while left:
                left = left[os.write(number, left) :]
            os.fsync(number)
        finally:
            os.close(number)
            trial.unlink()
