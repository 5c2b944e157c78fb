"""The state of collected batches: a private file beside the batches that lists every input file and its batch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Final, NoReturn, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from hushuffle._checks import fail
from hushuffle.files.causes import failing
from hushuffle.files.private_files import lock, make_folder
from hushuffle.files.secret_keys import read_memory, write_memory

_CONTENT: Final = "batches"

_Count = Annotated[int, Field(strict=True, ge=0)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An input file that was read. `batch` is its batch number (None: not collected yet; 0: excluded as too late)."""

    path: str
    digest: str
    size: _Count
    modified: _Count
    batch: _Count | None = None

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
    claimed: _Count | None = None
    coins: str | None = None
    damaged: tuple[str, ...] = ()
    people: tuple[tuple[_Count, _Count], ...] = ()

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
        with failing(f"{path} cannot be written"):
            write_memory(path, _CONTENT, asdict(self))

    @classmethod
    def load(cls, path: Path) -> BatchState:
        """Return the state in the file at `path`; an empty state if the file does not exist."""
        document = read_memory(path, _CONTENT, damaged=_damaged)
        if document is None:
            return cls()
        try:
            return _STATE.validate_python({**document, "files": document["files"]})
        except (KeyError, ValidationError):
            _damaged(path)


_STATE: Final = TypeAdapter(BatchState)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock `folder`, so that no other collection adds batches to it at the same time."""
    with failing(f"{folder} cannot be written"):
        make_folder(folder)
    if os.name != "posix":  # pragma: no cover - this system has no such lock
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        lock(place, wait=False)
        yield
    except BlockingIOError:
        fail(f"Another collection is adding batches to {folder}. Wait until it has ended.")
    finally:
        os.close(place)


def _damaged(path: Path) -> NoReturn:
    fail(
        f"{path} is damaged, so the collected files are unknown. Choose a new folder for batches, and pass only files "
        "that were never collected."
    )
