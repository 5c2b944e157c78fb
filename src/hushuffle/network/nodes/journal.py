"""A node's log, without private data, and its `Spool`: records in a private file that survive a kill of the node."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2s
from pathlib import Path
from typing import Any, Final, TextIO

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import flush_folder, make_folder
from hushuffle.network.nodes.connections import Control, Kind, Reason

_STATES: Final = ("starting", "sending", "gathering", "releasing", "computing", "gave up", "failed", "done")


@dataclass(kw_only=True)
class Journal:
    """Counters and events of one node.

    `accepted`: messages that arrived for the first time. `repeated`: messages that had arrived before. `sent`:
    forwarded messages, of which `dummies` were the node's own. `rejected`: refused frames, connections or batches, by
    reason.

    >>> journal = Journal(node="compute-1")
    >>> journal.reject(Reason.DUPLICATE)
    >>> journal.counters()["rejected"]
    {'duplicate': 1}
    """

    node: str
    out: TextIO | None = None
    state: str = "starting"
    accepted: int = 0
    repeated: int = 0
    sent: int = 0
    dummies: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)
    facts: dict[str, int] = field(default_factory=dict)

    def reject(self, reason: Reason, count: int = 1) -> None:
        self.rejected[reason] += count

    def refuse(self, step: int, reason: Reason) -> Control:
        self.reject(reason)
        return Control(Kind.REFUSED, step, reason)

    @contextmanager
    def resuming(self) -> Iterator[None]:
        """Count messages that were stored before a restart only as "resumed", since they were counted before."""
        before, rejected = (self.accepted, self.repeated), self.rejected.copy()
        try:
            yield
        finally:
            resumed = self.accepted - before[0]
            (self.accepted, self.repeated), self.rejected = before, rejected
            if resumed:
                self.facts["resumed"] = self.facts.get("resumed", 0) + resumed
                self.event("resumed", messages=resumed)

    def enter(self, state: str, **facts: Any) -> None:
        self.state = state
        self.event(state, **facts)

    def event(self, what: str, **facts: Any) -> None:
        """Write an event to the log, as one line of JSON."""
        if self.out is not None:
            line = {"time": round(time.time(), 3), "node": self.node, "event": what, **facts}
            with suppress(OSError, ValueError):  # a full disk or a closed pipe must not end a node
                self.out.write(json.dumps(line) + "\n")
                self.out.flush()

    def health(self) -> Control:
        state = _STATES.index(self.state) if self.state in _STATES else 0
        numbers = (state, self.accepted, self.rejected.total(), self.sent, self.repeated)
        return Control(Kind.HEALTH, numbers=numbers)

    @staticmethod
    def read(answer: Control) -> dict[str, Any]:
        state, accepted, rejected, sent, repeated = (*answer.numbers, 0, 0, 0, 0, 0)[:5]
        name = _STATES[state] if state < len(_STATES) else "unknown"
        return {"state": name, "accepted": accepted, "rejected": rejected, "sent": sent, "repeated": repeated}

    def counters(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "accepted": self.accepted,
            "repeated": self.repeated,
            "sent": self.sent,
            "dummies": self.dummies,
            "rejected": {reason.words: count for reason, count in sorted(self.rejected.items())},
            **self.facts,
        }


_HEAD: Final = struct.Struct("<I16s")  # bytes of a record, and their digest
_BATCH: Final = struct.Struct("<64sII")  # sender, number (such as the step's), sources


class Spool:
    """Records in a file that only its owner can read; records appended at the same time share one flush to the disk.

    A record that was incomplete when the process ended is dropped when the file is read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     asyncio.run(Spool(Path(folder) / "kept").append([b"first", b"second"]))
    ...     Spool(Path(folder) / "kept").read()
    [b'first', b'second']
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, asyncio.Lock()
        self._waiting: list[tuple[bytes, asyncio.Future[OSError | None]]] = []

    def read(self) -> list[bytes]:
        """Return the records; remove an incomplete record at the end of the file."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            fail(f"{self._path} cannot be read: {cause(error)}.")
        records, place = [], 0
        while place + _HEAD.size <= len(data):
            size, digest = _HEAD.unpack_from(data, place)
            record = data[place + _HEAD.size : place + _HEAD.size + size]
            if _digest(record) != digest:
                break
            records.append(record)
            place += _HEAD.size + size
        if place < len(data):
            os.truncate(self._path, place)
        return records

    async def append(self, records: Sequence[bytes]) -> None:
        """Append records, and wait until they are on the disk."""
        done: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((b"".join(_HEAD.pack(len(one), _digest(one)) + one for one in records), done))
        async with self._lock:
            if not done.done():  # otherwise a concurrent call has written the records
                await self._flush()
        if error := done.result():
            raise error

    async def _flush(self) -> None:
        together, self._waiting = self._waiting, []
        try:
            await asyncio.to_thread(_append, self._path, b"".join(data for data, _ in together))
        except OSError as error:
            problem: OSError | None = error
        except asyncio.CancelledError:
            self._waiting = together + self._waiting  # the other calls then flush their records themselves
            raise
        else:
            problem = None
        for _, done in together:
            done.set_result(problem)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def _digest(record: bytes) -> bytes:
    return blake2s(record, digest_size=16).digest()


def _append(path: Path, data: bytes) -> None:
    make_folder(path.parent, mode=0o700)
    new = not path.exists()
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            left = memoryview(data)
            while left:
                left = left[file.write(left) or 0 :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)  # remove the incomplete record
            raise
    if new:
        flush_folder(path.parent)


def pack_batch(sender: str, number: int, sources: int, sealed: Sequence[bytes]) -> bytes:
    """Return a batch as one record: its sender, number, number of sources, and sealed messages."""
    return _BATCH.pack(sender.encode(), number, sources) + b"".join(sealed)


def unpack_batch(record: bytes, size: int) -> tuple[str, int, int, list[bytes]]:
    """Return sender, number, sources and sealed messages of a packed batch; `size`: bytes of a sealed message.

    >>> unpack_batch(pack_batch("scrambler-1", 2, 7, [b"ab", b"cd"]), 2)
    ('scrambler-1', 2, 7, [b'ab', b'cd'])
    """
    sender, number, sources = _BATCH.unpack_from(record)
    rest = record[_BATCH.size :]
    sealed = [rest[start : start + size] for start in range(0, len(rest), size)]
    return sender.rstrip(b"\0").decode("ascii", errors="replace"), number, sources, sealed


class Room:
    """Disk space that the file `path` reserves for a later write, `size` bytes."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        try:
            make_folder(path.parent)
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                _fill(number, size)
            finally:
                os.close(number)
        except OSError as error:
            self.give()
            fail(f"{path.parent} has no room for the {size:,} bytes that will be written there: {error.strerror}.")

    def give(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _fill(number: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(number, 0, size)
        return
    for _ in range(-(-size // (1 << 16))):  # pragma: no cover - without posix_fallocate
        os.write(number, bytes(1 << 16))
