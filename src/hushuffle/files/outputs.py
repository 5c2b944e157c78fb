"""Whether outputs can be written: found out before the work that makes them, with the name that the user gave."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause

_ROOM: Final = 1 << 16
"""Bytes that a disk must have left; what is written later may need more."""


def refuse_folder(folder: Path) -> None:
    """Raise `DataError` if nothing can be written into a folder, or it cannot be made where it is to be.

    Nothing is left behind, and the folder is not made.

    >>> refuse_folder(Path("/proc/report"))
    Traceback (most recent call last):
    hushuffle.errors.DataError: /proc/report cannot be written: No such file or directory.
    """
    places = (folder, *folder.absolute().parents)
    there = next(place for place in places if place.exists() or place.is_symlink())
    if not there.is_dir():
        fail(
            f"{folder} cannot be made: {there} is a file." if there != folder else f"{folder} is a file, not a folder."
        )
    try_writing(there, called=folder)


def refuse_file(file: Path) -> None:
    """Raise `DataError` if a file cannot be written: its folder must be there."""
    if file.is_dir():
        fail(f"{file} cannot be written: it is a folder.")
    if not file.parent.is_dir():
        fail(f"{file} cannot be written: there is no folder {file.parent}.")
    try_writing(file.parent, called=file)


def try_writing(folder: Path, *, called: Path) -> None:
    """Write a little into a folder that is there, and take it away again; messages name what is `called` so."""
    trial = folder / f".{secrets.token_hex(8)}.trial"
    try:
        number = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            left = memoryview(bytes(_ROOM))
            while left:
                left = left[os.write(number, left) :]
            os.fsync(number)
        finally:
            os.close(number)
            trial.unlink()
    except OSError as error:
        fail(f"{called} cannot be written: {cause(error)}.")
