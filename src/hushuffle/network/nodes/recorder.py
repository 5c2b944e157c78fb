"""What somebody on the wire writes down: who sends how many bytes to whom, in which order; there is nothing else."""

from __future__ import annotations

import asyncio
import socket
from array import array
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final, Self

import polars as pl

from hushuffle.errors import DataError
from hushuffle.files.causes import cause

_HEADER: Final = 5
"""Bytes in front of every record of TLS, readable by everybody: type, version, length."""

_BLOCK: Final = 1 << 16
_TAG: Final = 17
"""Bytes that TLS 1.3 adds to what it encrypts: the type inside, and the tag."""


@dataclass(kw_only=True)
class Trace:
    """Records of TLS in the order in which they were seen: sender, receiver, bytes.

    `hosts` are the names of the addresses that are known. `cell` is the number of bytes of a record that carries a
    message, `cells` how many of them there were.
    """

    hosts: Mapping[str, str]
    cell: int
    cells: int = 0
    _names: dict[str, int] = field(default_factory=dict)
    _senders: array[int] = field(default_factory=lambda: array("l"))
    _receivers: array[int] = field(default_factory=lambda: array("l"))
    _bytes: array[int] = field(default_factory=lambda: array("l"))

    def add(self, sender: str, receiver: str, size: int) -> None:
        """Write down one record."""
        names = self._names
        self._senders.append(names.setdefault(sender, len(names)))
        self._receivers.append(names.setdefault(receiver, len(names)))
        self._bytes.append(size)
        self.cells += size == self.cell

    def table(self) -> pl.DataFrame:
        """Return columns order, sender, receiver, bytes."""
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
        """Return how many messages went from whom to whom: columns sender, receiver, messages."""
        cells = self.table().filter(pl.col("bytes") == self.cell)
        return cells.group_by("sender", "receiver").agg(pl.len().alias("messages")).sort("sender", "receiver")

    def write(self, path: Path) -> None:
        """Write the table as Parquet."""
        whole = BytesIO()
        self.table().write_parquet(whole)
        try:
            path.write_bytes(whole.getbuffer())
        except OSError as error:
            if path.is_file():
                path.unlink()  # half a table is none
            message = f"the trace {path} cannot be written: {cause(error)}."
            raise DataError(message) from None


def record_size(message: int) -> int:
    """Return the bytes of the record of TLS 1.3 that carries a message, without its header.

    >>> record_size(1024)
    1041
    """
    return message + _TAG


class _Records:
    """Cuts one direction of a connection into records of TLS, by their readable headers."""

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
    """Passes connections on to nodes and writes down what anybody could who sees the traffic.

    `trace`: where to write.
    `routes`: listening sockets, each with the place (host, port) of the node behind it.
    """

    def __init__(self, trace: Trace, routes: list[tuple[socket.socket, tuple[str, int]]]) -> None:
        self._trace, self._routes = trace, routes
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for where, place in self._routes:
            self._servers.append(await asyncio.start_server(self._handler(place), sock=where, backlog=1024))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _handler(
        self, place: tuple[str, int]
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open.add(task)
            # Cancelled when the recorder ends: asyncio would take that for an error of the connection, and complain.
            with suppress(OSError, asyncio.CancelledError):
                await self._pass(reader, writer, place)
            self._open.discard(task)

        return handle

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: tuple[str, int]) -> None:
        client, server = (writer.get_extra_info(which)[0] for which in ("peername", "sockname"))
        try:
            # From the address that it came from: nodes limit what one address may do.
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
            for one in (writer, back):
                one.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, records: _Records) -> None:
    """Pass on what comes from one side, as it comes; an end too."""
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
