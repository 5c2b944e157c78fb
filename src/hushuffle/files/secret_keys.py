"""Secret keys, and what is remembered about them.

A key comes from a file that only its owner can read, or from the environment; never from a specification. What is
remembered lies in a private folder for each key, named by its fingerprint, so that a link to the key file, a copy, a
new name all lead to the same memory. A fingerprint says nothing about the key, nor about anything made with it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import flush_folder, make_folder, remove_unfinished, write_private

_LEAST: Final = 64  # hexadecimal digits: 32 bytes
_OTHERS: Final = 0o066  # may be read or written by the group, or by everybody
_EVERYBODY: Final = 0o006
_MAKE: Final = "Make one with: python -c 'import secrets; print(secrets.token_hex(32))'"


def key_in_file(path: Path, *, advice: str = _MAKE) -> bytes:
    """Return the key that the file holds as hexadecimal digits, 32 bytes or more.

    `advice` says what to do where there is no such file.
    """
    return _key(_contents(path, advice), str(path))


def make_key(path: Path) -> None:
    """Write a new key into a file that only its owner can read."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(f"{secrets.token_hex(_LEAST // 2)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        flush_folder(path.absolute().parent)
    except OSError as error:
        fail(f"{path} cannot be written: {cause(error)}.")


def key_in_environment(variable: str) -> bytes:
    """Return the key that the environment variable holds as hexadecimal digits, 32 bytes or more."""
    text = os.environ.get(variable)
    if text is None:
        fail(f"the environment variable {variable} is not set: it holds the secret key. {_MAKE}")
    return _key(text, f"the environment variable {variable}")


def derived(key: bytes, purpose: str) -> bytes:
    """Return 32 bytes under `key` for one purpose: keys for different purposes say nothing about each other.

    >>> derived(bytes(32), "a") == derived(bytes(32), "b")
    False
    """
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"hushuffle {purpose}".encode()).derive(key)


def text_of_secret(where: str) -> str:
    """Return a secret of several lines: `where` is a path, or "env:NAME" for an environment variable."""
    if where.startswith("env:"):
        text = os.environ.get(where.removeprefix("env:"))
        if text is None:
            fail(f"the environment variable {where.removeprefix('env:')} is not set: it holds a secret.")
        return text
    return _contents(Path(where))


def _contents(path: Path, advice: str = "") -> str:
    """Return the text of a file that only its owner can read."""
    try:
        mode, text = path.stat().st_mode, path.read_bytes().decode("ascii", errors="replace")
    except FileNotFoundError:
        if _KEY.fullmatch(path.name):
            fail("What was given is a key, not the name of a file that holds one. Take a new key, in a file.")
        fail(f"{path} does not exist. {advice}".rstrip())
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}.")
    if os.name == "posix" and mode & _OTHERS:
        others = "everybody on this machine" if mode & _EVERYBODY else "its group"
        fail(
            f"{path} holds a secret key, and {others} can read it. Say: chmod 600 {path.name} (or, where you may not: "
            f"install -m 600 {path.name} COPY, and name the copy)."
        )
    return text


def _key(text: str, where: str) -> bytes:
    digits = text.strip()
    if re.fullmatch("[0-9a-fA-F]*", digits) is None or len(digits) % 2 or len(digits) < _LEAST:
        fail(f"{where} must hold {_LEAST} hexadecimal digits or more (an even number), and nothing else. {_MAKE}")
    return bytes.fromhex(digits)


STATE: Final = "HUSHUFFLE_STATE"
"""The environment variable that names the folder of all memory; see `state_folder`."""

_VERSION: Final = 1
_KEY: Final = re.compile(r"[0-9a-fA-F]{64,}")


def fingerprint(key: bytes) -> str:
    """Return 32 hexadecimal digits that are the same for the same key and say nothing about it.

    >>> fingerprint(bytes(32)) == fingerprint(bytes(32)), fingerprint(bytes(32)) == fingerprint(bytes(33))
    (True, False)
    """
    return derived(key, "fingerprint 1")[:16].hex()


def state_folder() -> Path:
    """Return $HUSHUFFLE_STATE, or hushuffle in $XDG_STATE_HOME, or ~/.local/state/hushuffle."""
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
    """Return the folder of what is remembered about a key; it need not be there."""
    return state_folder() / "keys" / fingerprint(key)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and let nobody else remember anything there meanwhile: others wait."""
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
    """Return what `write_memory` has written; None if there is nothing."""
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
    """Write a document through to the disk, whole or not at all. Only for whoever holds the lock of its folder."""
    remove_unfinished(path)
    document = {"schema_version": _VERSION, "content": content, **fields}
    write_private(path, json.dumps(document, indent=1).encode())


def damaged(path: Path) -> NoReturn:
    """Refuse to go on with a memory that has holes."""
    fail(f"{path} is damaged. Without it nobody knows what the key was used for: put it back, or take a new key.")
