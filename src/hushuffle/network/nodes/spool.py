"""Records that survive a kill of a node, in a private file: in order, and each record complete or absent."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2s
from pathlib import Path
from typing import Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.private_files import flush_folder, make_folder

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
