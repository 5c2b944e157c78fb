"""What is remembered about a secret key: a private folder for each key, named by its fingerprint.

The folder does not depend on where the key file lies or what it is called: a link to it, a copy, a new name all lead
to the same memory. A fingerprint says nothing about the key, nor about anything that is made with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import make_folder, remove_unfinished, write_private
from hushuffle.files.secret_keys import derived

STATE: Final = "HUSHUFFLE_STATE"
"""The environment variable that names the folder of all memory; see `state_folder`."""

_VERSION: Final = 1


def fingerprint(key: bytes) -> str:
    """Return 32 hexadecimal digits that are the same for the same key and say nothing about it.

    >>> fingerprint(bytes(32)) == fingerprint(bytes(32)), fingerprint(bytes(32)) == fingerprint(bytes(33))
    (True, False)
    """
    return derived(key, "fingerprint 1")[:16].hex()


def state_folder() -> Path:
    """Return $HUSHUFFLE_STATE, or hushuffle in $XDG_STATE_HOME, or ~/.local/state/hushuffle.

    Raises:
        DataError: none of them is known.
    """
    if named := os.environ.get(STATE):
        return Path(named).absolute()
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if base.is_absolute():
        return base / "hushuffle"
    try:
        return Path.home() / ".local" / "state" / "hushuffle"
    except RuntimeError:
        fail(f"There is no home folder to remember in what a key was used for: set {STATE} to a folder that lasts.")


def key_folder(key: bytes) -> Path:
    """Return the folder of what is remembered about a key; it need not be there.

    Raises:
        DataError: nobody knows where it would be.
    """
    return state_folder() / "keys" / fingerprint(key)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and let nobody else remember anything there meanwhile: others wait.

    Raises:
        DataError: the folder cannot be written.
    """
    try:
        make_folder(folder, mode=0o700)
        number = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        fail(f"{folder} cannot be written: {cause(error)}. {STATE} names another place for it.")
    try:
        if os.name == "posix":
            import fcntl  # noqa: PLC0415 - is not everywhere

            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def read_memory(path: Path, content: str) -> dict[str, Any] | None:
    """Return what `write_memory` has written; None if there is nothing.

    Raises:
        DataError: it cannot be read, or is damaged.
    """
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}.")
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("content") != content:
        damaged(path)
    if document.get("schema_version") != _VERSION:
        fail(f"{path} was written by another version of hushuffle.")
    return document


def write_memory(path: Path, content: str, fields: Mapping[str, Any]) -> None:
    """Write a document through to the disk, whole or not at all. Only for whoever holds the lock of its folder.

    Raises:
        OSError: it cannot be written; what was there before is still there, or (if only its name could not be
            flushed) all of the new.
    """
    remove_unfinished(path)
    document = {"schema_version": _VERSION, "content": content, **fields}
    write_private(path, json.dumps(document, indent=1).encode())


def damaged(path: Path) -> NoReturn:
    """Refuse to go on with a memory that has holes.

    Raises:
        DataError: always.
    """
    fail(f"{path} is damaged. Without it nobody knows what the key was used for: put it back, or take a new key.")
