"""Secret keys: from a file that only its owner can read, or from the environment; never from a specification."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import flush_folder

_LEAST: Final = 64  # hexadecimal digits: 32 bytes
_OTHERS: Final = 0o066  # may be read or written by the group, or by everybody
_EVERYBODY: Final = 0o006
_MAKE: Final = "Make one with: python -c 'import secrets; print(secrets.token_hex(32))'"


def key_in_file(path: Path, *, advice: str = _MAKE) -> bytes:
    """Return the key that the file holds as hexadecimal digits, 32 bytes or more.

    `advice` says what to do where there is no such file.

    Raises:
        DataError: no such file, one that others can read, or no such key; the message shows nothing of it.
    """
    return _key(_contents(path, advice), str(path))


def make_key(path: Path) -> None:
    """Write a new key into a file that only its owner can read.

    Raises:
        DataError: there is a file already, or it cannot be written.
    """
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
    """Return the key that the environment variable holds as hexadecimal digits, 32 bytes or more.

    Raises:
        DataError: no such variable, or no such key; the message shows nothing of it.
    """
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
    """Return a secret of several lines: `where` is a path, or "env:NAME" for an environment variable.

    Raises:
        DataError: not there, or a file that others than its owner can read; the message shows nothing of it.
    """
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
