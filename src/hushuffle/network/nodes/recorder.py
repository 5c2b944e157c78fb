"""Record what an observer of the connections sees: sender, receiver, size and order of TLS records, no content."""

from __future__ import annotations

import asyncio
import socket
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Final, Self

import polars as pl

from hushuffle._checks import fail
from hushuffle.files.causes import cause

_HEADER: Final = 5
"""Number of bytes of the unencrypted header of every TLS record: type, version, length."""

_BLOCK: Final = 1 << 16
_TAG: Final = 17
"""Number of bytes that TLS 1.3 adds to encrypted content: the inner type and the tag."""


@dataclass(kw_only=True)
class Trace:
    """TLS records in the order of observation: sender, receiver, and size in bytes.

    `hosts`: the node names of known addresses. `cell`: the size in bytes of a record that carries a message. `cells`:
    the number of recorded messages.
    """

    hosts: Mapping[str, str]
    cell: int
    cells: int = 0
    _names: dict[str, int] = field(default_factory=dict)
    _senders: array[int] = field(default_factory=lambda: array("l"))
    _receivers: array[int] = field(default_factory=lambda: array("l"))
    _bytes: array[int] = field(default_factory=lambda: array("l"))

    def add(self, sender: str, receiver: str, size: int) -> None:
        names = self._names
        self._senders.append(names.setdefault(sender, len(names)))
        self._receivers.append(names.setdefault(receiver, len(names)))
        self._bytes.append(size)
        self.cells += size == self.cell

    def table(self) -> pl.DataFrame:
        """Return the trace as a table with the columns order, sender, receiver, bytes."""
        labels = pl.Series([self.hosts.get(name, name) for name in self._names], dtype=pl.String)

        def named(codes: array[int]) -> pl.Series:
            return labels.gather(pl.Series(codes, dtype=pl.UInt32)) if len(codes) else labels.clear()

        return pl.DataFrame(
            {
                "order": pl.Series(range(len(self._bytes)), dtype=pl.UInt64),
                "sender": named(self._senders),
                "receiver": named(self._receivers),
                "bytes": pl.Series(self._bytes, dtype=pl.UInt32),
            }
        )

    def messages(self) -> pl.DataFrame:
        """Return the number of messages from each sender to each receiver: columns sender, receiver, messages."""
        cells = self.table().filter(pl.col("bytes") == self.cell)
        return cells.group_by("sender", "receiver").agg(pl.len().alias("messages")).sort("sender", "receiver")

    def write(self, path: Path) -> None:
        whole = BytesIO()
        self.table().write_parquet(whole)
        try:
            path.write_bytes(whole.getbuffer())
        except OSError as error:
            if path.is_file():
                path.unlink()  # an incomplete table is useless
            fail(f"the trace {path} cannot be written: {cause(error)}.")


def record_size(message: int) -> int:
    """Return the size, in bytes, of the TLS 1.3 record that carries a message, without the record's header.

    >>> record_size(1024)
    1041
    """
    return message + _TAG


class _Records:
    """Splits one direction of a connection into TLS records, by their readable headers."""

    def __init__(self, trace: Trace, sender: str, receiver: str) -> None:
        self._trace, self._sender, self._receiver = trace, sender, receiver
        self._head, self._left = b"", 0

    def feed(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            if self._left:
                step = min(self._left, len(data) - place)
                self._left -= step
                place += step
                continue
            missing = _HEADER - len(self._head)
            self._head += data[place : place + missing]
            place += missing
            if len(self._head) == _HEADER:
                self._left = int.from_bytes(self._head[3:], "big")
                self._trace.add(self._sender, self._receiver, self._left)
                self._head = b""


class Recorder:
    """Forwards connections and records their TLS records; `routes`: sockets, each with the node's host and port."""

    def __init__(self, trace: Trace, routes: list[tuple[socket.socket, tuple[str, int]]]) -> None:
        self._trace, self._routes = trace, routes
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for where, place in self._routes:
            self._servers.append(await asyncio.start_server(partial(self._handle, place), sock=where, backlog=1024))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _handle(self, place: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        # The recorder cancels this task when it ends; asyncio would log the cancellation as an error.
        with suppress(OSError, asyncio.CancelledError):
            await self._pass(reader, writer, place)
        self._open.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: tuple[str, int]) -> None:
        client, server = (writer.get_extra_info(which)[0] for which in ("peername", "sockname"))
        try:
            # Connect from the sender's own address, since nodes limit connections per address.
            there, back = await asyncio.open_connection(*place, local_addr=(client, 0))
        except OSError:
            writer.transport.abort()
            return
        both = (
            _pump(reader, back, _Records(self._trace, client, server)),
            _pump(there, writer, _Records(self._trace, server, client)),
        )
        try:
            await asyncio.gather(*both)
        finally:
            for stream in (writer, back):
                stream.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, records: _Records) -> None:
    """Forward one direction of a connection, including its end."""
    try:
        while data := await reader.read(_BLOCK):
            records.feed(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        writer.transport.abort()
        raise
    if writer.can_write_eof():
        with suppress(OSError):
            writer.write_eof()
