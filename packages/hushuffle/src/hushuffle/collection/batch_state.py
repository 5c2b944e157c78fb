"""The state of collected batches: a private file beside the batches that lists every input file and its batch."""

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
from hushuffle.files.causes import failing
from hushuffle.files.private_files import make_folder, write_private
from hushuffle.files.secret_keys import MEMORY_VERSION, read_memory

_CONTENT: Final = "batches"


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An input file that was read. `batch` is its batch number (None: not collected yet; 0: excluded as too late)."""

    path: str
    digest: str
    size: int
    modified: int
    batch: int | None = None

    def same_place(self, path: Path) -> bool:
        """Return whether `path` is this file with the same size and time of change, without reading its content."""
        status = path.stat()
        return self.path == str(path) and (self.size, self.modified) == (status.st_size, status.st_mtime_ns)


def arrival(path: Path, name: str) -> Arrival:
    """Return the `Arrival` of an input file, with the digest of its content; error messages call the file `name`."""
    with failing(f"{name} cannot be read"):
        before = path.stat()
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    recorded = Arrival(path=str(path), digest=digest, size=before.st_size, modified=before.st_mtime_ns)
    if not recorded.same_place(path):
        fail(f"{name} is being written. Write files under another name, and rename them when they are complete.")
    return recorded


@dataclass(frozen=True, kw_only=True)
class BatchState:
    """The input `files` that were read; `claimed` is the number of the batch whose release has begun but not ended.

    Equal `coins` (a keyed digest for the claimed batch) mean equal reports; None: the randomness was fresh or is
    unknown. `damaged` holds digests of unreadable files: no batch contains them, and they are never late.
    """

    files: tuple[Arrival, ...] = ()
    claimed: int | None = None
    coins: str | None = None
    damaged: tuple[str, ...] = ()
    people: tuple[tuple[int, int], ...] = ()

    @property
    def counted(self) -> int:
        """Number of people in all batches; a person in two batches counts twice."""
        return sum(people for _, people in self.people)

    @property
    def last(self) -> int:
        """The number of the last batch, 0 if there is none."""
        return max((file.batch or 0 for file in self.files), default=0)

    @property
    def latest(self) -> str:
        """The last path, in alphabetical order, of all collected files; "" if there is none."""
        return max((file.path for file in self.files if file.batch), default="")

    def of_batch(self, number: int) -> tuple[Arrival, ...]:
        return tuple(file for file in self.files if file.batch == number)

    def with_files(self, files: Sequence[Arrival], batch: int, *, people: int | None = None) -> Self:
        counted = () if people is None else ((batch, people),)
        went = (*self.files, *(replace(file, batch=batch) for file in files))
        return replace(self, files=went, people=(*self.people, *counted))

    def without(self, number: int) -> Self:
        """Return the state without batch `number`, whose files then count as not collected."""
        files = tuple(file for file in self.files if file.batch != number)
        return replace(self.settled(), files=files, people=tuple(one for one in self.people if one[0] != number))

    def settled(self) -> Self:
        return replace(self, claimed=None, coins=None)

    def save(self, path: Path) -> None:
        """Write the state to the file `path` atomically, flushed to the disk and readable only by its owner."""
        document = {
            "schema_version": MEMORY_VERSION,
            "content": _CONTENT,
            "claimed": self.claimed,
            "coins": self.coins,
            "files": [vars(file) for file in self.files],
            "damaged": self.damaged,
            "people": self.people,
        }
        with failing(f"{path} cannot be written"):
            write_private(path, json.dumps(document, indent=1).encode())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the state in the file at `path`; an empty state if the file does not exist."""
        document = read_memory(path, _CONTENT, damaged=_damaged)
        if document is None:
            return cls()
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
    """Lock `folder`, so that no other collection adds batches to it at the same time."""
    with failing(f"{folder} cannot be written"):
        make_folder(folder)
    if os.name != "posix":  # pragma: no cover - this system has no such lock
        yield
        return
    import fcntl  # noqa: PLC0415 - is not everywhere

    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        fail(f"Another collection is adding batches to {folder}. Wait until it has ended.")
    finally:
        os.close(place)


def _arrival(*, path: str, digest: str, size: int, modified: int, batch: int | None) -> Arrival:
    whole = all(_count(one) is not None for one in (size, modified, batch))
    if not whole or not isinstance(path, str) or not isinstance(digest, str):
        raise TypeError
    return Arrival(path=path, digest=digest, size=size, modified=modified, batch=batch)


def _count(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise TypeError
    return value


def _pair(batch: Any, people: Any) -> tuple[int, int]:
    if _count(batch) is None or _count(people) is None:
        raise TypeError
    return batch, people


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError
    return tuple(value)


def _damaged(path: Path) -> NoReturn:
    fail(
        f"{path} is damaged, so the collected files are unknown. Choose a new folder for batches, and pass only files "
        "that were never collected."
    )
