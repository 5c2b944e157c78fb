"""Read and create secret keys, and manage the private records of how each key was used.

A key is read from a file that only its owner can read, or from the environment; never from a specification. The record
of each key lies in a private folder named by its fingerprint, so links, copies and new names of the key file lead to
the same record. A fingerprint reveals nothing about the key, nor about values derived from it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hushuffle._checks import fail
from hushuffle.files.causes import cause, failing
from hushuffle.files.private_files import flush_folder, lock, make_folder, remove_unfinished, write_private

_LEAST: Final = 64  # hexadecimal digits: 32 bytes
_OTHERS: Final = 0o066  # readable or writable by the group, or by every user
_EVERYBODY: Final = 0o006
_MAKE: Final = "Create one with: python -c 'import secrets; print(secrets.token_hex(32))'"


def key_in_file(path: Path, *, advice: str = _MAKE) -> bytes:
    """Return the key in a file, which holds it as hexadecimal digits: 32 bytes or more."""
    return _key(_contents(path, advice), str(path))


def make_key(path: Path) -> None:
    with failing(f"{path} cannot be written"):
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(f"{secrets.token_hex(_LEAST // 2)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        flush_folder(path.absolute().parent)


def key_in_environment(variable: str) -> bytes:
    """Return the key in an environment variable, which holds it as hexadecimal digits: 32 bytes or more."""
    text = os.environ.get(variable)
    if text is None:
        fail(f"the environment variable {variable} is not set; it must hold the secret key. {_MAKE}")
    return _key(text, f"the environment variable {variable}")


def derived(key: bytes, purpose: str) -> bytes:
    """Return a key of 32 bytes derived from `key` for one purpose; keys for different purposes are independent.

    >>> derived(bytes(32), "a") == derived(bytes(32), "b")
    False
    """
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"hushuffle {purpose}".encode()).derive(key)


def text_of_secret(where: str) -> str:
    """Return a secret text, which may have several lines, from a path or from the environment ("env:NAME")."""
    if where.startswith("env:"):
        text = os.environ.get(where.removeprefix("env:"))
        if text is None:
            fail(f"the environment variable {where.removeprefix('env:')} is not set; it must hold a secret.")
        return text
    return _contents(Path(where))


def _contents(path: Path, advice: str = "") -> str:
    try:
        mode, text = path.stat().st_mode, path.read_bytes().decode("ascii", errors="replace")
    except FileNotFoundError:
        if _KEY.fullmatch(path.name):
            fail("A key was given instead of the name of a key file. Create a new key, and store it in a file.")
        fail(f"{path} does not exist. {advice}".rstrip())
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}.")
    if os.name == "posix" and mode & _OTHERS:
        others = "all users of this machine" if mode & _EVERYBODY else "the group of the file"
        fail(
            f"{path} holds a secret key, and {others} can read it. Run: chmod 600 {path.name} (or, without that right: "
            f"install -m 600 {path.name} COPY, and name the copy)."
        )
    return text


def _key(text: str, where: str) -> bytes:
    digits = text.strip()
    if re.fullmatch("[0-9a-fA-F]*", digits) is None or len(digits) % 2 or len(digits) < _LEAST:
        fail(f"{where} must hold {_LEAST} hexadecimal digits or more (an even number), and nothing else. {_MAKE}")
    return bytes.fromhex(digits)


STATE: Final = "HUSHUFFLE_STATE"
"""The environment variable with the path of the folder of all key records; see `state_folder`."""

MEMORY_VERSION: Final = 1
_KEY: Final = re.compile(r"[0-9a-fA-F]{64,}")


def fingerprint(key: bytes) -> str:
    """Return 32 hexadecimal digits that identify a key and reveal nothing about it.

    >>> fingerprint(bytes(32)) == fingerprint(bytes(32)), fingerprint(bytes(32)) == fingerprint(bytes(33))
    (True, False)
    """
    return derived(key, "fingerprint 1")[:16].hex()


def state_folder() -> Path:
    """Return the folder of key records: $HUSHUFFLE_STATE, hushuffle in $XDG_STATE_HOME, or ~/.local/state/hushuffle."""
    if named := os.environ.get(STATE):
        return Path(named).absolute()
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if base.is_absolute():
        return base / "hushuffle"
    try:
        return Path.home() / ".local" / "state" / "hushuffle"
    except RuntimeError:
        fail(f"There is no home folder for the records of used keys. Set {STATE} to a permanent folder.")


def key_folder(key: bytes) -> Path:
    return state_folder() / "keys" / fingerprint(key)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a folder if it is missing, and lock it, so that other processes wait until it is unlocked."""
    with failing(f"{folder} cannot be written", f" To use another folder, set {STATE}."):
        make_folder(folder, mode=0o700)
        number = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(number)
        yield
    finally:
        os.close(number)


def damaged(path: Path) -> NoReturn:
    fail(f"{path} is damaged, so the uses of this key are unknown. Restore it from a backup, or create a new key.")


def read_memory(path: Path, content: str, *, damaged: Callable[[Path], NoReturn] = damaged) -> dict[str, Any] | None:
    """Return the document that `write_memory` has written to `path`; None if there is no file.

    `damaged` refuses a file with another content.
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
    if document.get("schema_version") != MEMORY_VERSION:
        fail(f"{path} was written by another version of hushuffle.")
    return document


def write_memory(path: Path, content: str, fields: Mapping[str, Any]) -> None:
    """Write a document to the disk atomically; the process must hold the lock of the folder."""
    remove_unfinished(path)
    document = {"schema_version": MEMORY_VERSION, "content": content, **fields}
    write_private(path, json.dumps(document, indent=1).encode())
