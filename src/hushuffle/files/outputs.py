"""Check that outputs can be written before they are computed; messages use the file name that the user gave."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause

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
