"""Files that only their owner can read, from the first moment on."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write `content` into `path`, whole or not at all; only the owner may read it.

    Args:
        path: the file.
        content: what it is to hold.
        durable: whether to wait until the disk has it, so that it survives a loss of power.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    partial = path.with_name(f".{path.name}.partial")
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        partial.replace(path)
        if durable:
            flush_folder(path.parent)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


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
