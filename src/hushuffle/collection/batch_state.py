"""Which files that arrived have been collected, and in which batch: a private file beside the batches."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import make_folder, write_private

_CONTENT: Final = "batches"
_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A file as it was when it was looked at; `batch` is the one it went into (None: none yet, 0: left out as late)."""

    path: str
    digest: str
    size: int
    modified: int
    batch: int | None = None

    def same_place(self, path: Path) -> bool:
        """Say whether the file at `path` is this one and looks unchanged, without reading it."""
        found = path.stat()
        return self.path == str(path) and (self.size, self.modified) == (found.st_size, found.st_mtime_ns)


def arrival(path: Path, name: str) -> Arrival:
    """Return a file with the digest of its content; messages call it `name`."""
    try:
        before = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        fail(f"{name} cannot be read: {cause(error)}.")
    found = Arrival(path=str(path), digest=digest, size=before.st_size, modified=before.st_mtime_ns)
    if not found.same_place(path):
        fail(f"{name} is being written. Let files arrive under another name, and rename them when they are whole.")
    return found


@dataclass(frozen=True, kw_only=True)
class BatchState:
    """`files` that were taken; `claimed` is a batch that was about to be released when last heard of.

    `coins` is a digest of the coins and values of the claimed batch, which says nothing without their key: the same
    digest, the same reports. None: the coins were fresh, or nobody knows. `damaged` are digests of files that could
    not be read: no batch has them, and they are never late. `people` says of batches how many people each had.
    """

    files: tuple[Arrival, ...] = ()
    claimed: int | None = None
    coins: str | None = None
    damaged: tuple[str, ...] = ()
    people: tuple[tuple[int, int], ...] = ()

    @property
    def counted(self) -> int:
        """How many people all batches had: somebody who was in two of them counts twice."""
        return sum(people for _, people in self.people)

    @property
    def last(self) -> int:
        """The number of the last batch, 0 if there is none."""
        return max((file.batch or 0 for file in self.files), default=0)

    @property
    def latest(self) -> str:
        """The last file of all batches, by name; "" if there is none."""
        return max((file.path for file in self.files if file.batch), default="")

    def of_batch(self, number: int) -> tuple[Arrival, ...]:
        """Return the files of a batch."""
        return tuple(file for file in self.files if file.batch == number)

    def with_files(self, files: Sequence[Arrival], batch: int, *, people: int | None = None) -> Self:
        """Return the state in which these files went into a batch, of so many people."""
        counted = () if people is None else ((batch, people),)
        went = (*self.files, *(replace(file, batch=batch) for file in files))
        return replace(self, files=went, people=(*self.people, *counted))

    def without(self, number: int) -> Self:
        """Return the state in which a batch was never claimed."""
        files = tuple(file for file in self.files if file.batch != number)
        return replace(self.settled(), files=files, people=tuple(one for one in self.people if one[0] != number))

    def settled(self) -> Self:
        """Return the state in which what was claimed needs no more thought: its files are taken."""
        return replace(self, claimed=None, coins=None)

    def save(self, path: Path) -> None:
        """Write the state through to the disk, whole or not at all; only its owner can read it."""
        document = {
            "schema_version": _VERSION,
            "content": _CONTENT,
            "claimed": self.claimed,
            "coins": self.coins,
            "files": [vars(file) for file in self.files],
            "damaged": self.damaged,
            "people": self.people,
        }
        try:
            write_private(path, json.dumps(document, indent=1).encode())
        except OSError as error:
            fail(f"{path} cannot be written: {cause(error)}.")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the state in a file; that of no batches if there is none."""
        try:
            document = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except OSError as error:
            fail(f"{path} cannot be read: {cause(error)}.")
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or document.get("content") != _CONTENT:
            _damaged(path)
        if document.get("schema_version") != _VERSION:
            fail(f"{path} was written by another version of hushuffle.")
        try:
            return cls(
                files=tuple(_arrival(**one) for one in document["files"]),
                claimed=_count(document["claimed"]),
                coins=_text(document.get("coins")),
                damaged=_texts(document.get("damaged", [])),
                people=tuple(_pair(*one) for one in document.get("people", [])),
            )
        except (KeyError, TypeError):
            _damaged(path)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let no other collection put batches into `folder` meanwhile."""
    try:
        make_folder(folder)
    except OSError as error:
        fail(f"{folder} cannot be written: {cause(error)}.")
    if os.name != "posix":  # pragma: no cover - there is no such lock
        yield
        return
    import fcntl  # noqa: PLC0415 - is not everywhere

    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        fail(f"Another collection is putting batches into {folder}. Wait until it has ended.")
    finally:
        os.close(place)


def _arrival(*, path: str, digest: str, size: int, modified: int, batch: int | None) -> Arrival:
    whole = all(_count(one) is not None for one in (size, modified, batch))
    if not whole or not isinstance(path, str) or not isinstance(digest, str):
        raise TypeError
    return Arrival(path=path, digest=digest, size=size, modified=modified, batch=batch)


def _count(value: Any) -> int | None:
    """Return a number from 0 on, or None."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise TypeError
    return value


def _pair(batch: Any, people: Any) -> tuple[int, int]:
    """Return a batch with its people."""
    if _count(batch) is None or _count(people) is None:
        raise TypeError
    return batch, people


def _text(value: Any) -> str | None:
    """Return a text, or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError
    return tuple(value)


def _damaged(path: Path) -> NoReturn:
    fail(
        f"{path} is damaged. Without it nobody knows which files have been collected: name a new folder for batches, "
        "and give files that no batch has taken."
    )
