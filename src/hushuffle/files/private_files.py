"""Files that only their owner can read, from the first moment on."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
