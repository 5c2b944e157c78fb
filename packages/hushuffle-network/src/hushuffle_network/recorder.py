"""Record what an observer of the connections sees: who sends whom how many bytes and messages, in order."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Final, Self, TypeAlias

import polars as pl
from pydantic import ValidationError

from hushuffle.errors import DataError
from hushuffle.files.causes import failing
from hushuffle.files.private_files import write_whole
from hushuffle_network.batches import Head, text_of_head

PHONES: Final = "phones"
"""The sender of every request that names no service."""
_BLOCK: Final = 1 << 16
_END: Final = b"\r\n\r\n"
_FIRST: Final = re.compile(rb"[A-Z]+ (/[!-~]*) HTTP/1\.[01]")
_SIZE: Final = re.compile(b"[0-9]{1,15}")
Row: TypeAlias = tuple[str, str, int | None, int | None, int, int]


@dataclass(kw_only=True)
class Trace:
    """Requests between services in the order of observation: sender, receiver, step, batch, bytes and messages.

    A request of a phone contains one message. The size of a batch shows how many messages it contains, since all
    messages of a task have one size. Step and batch are None for a request that is no batch. The steps of a run with
    iterations are its iterations.
    """

    rows: list[Row] = field(default_factory=list)
    _tasks: dict[str, int] = field(default_factory=dict, repr=False)

    def add(self, path: str, receiver: str, body: bytes) -> None:
        """Record a request with the path `path` of its URL."""
        place, _, what = path.rpartition("/")
        sender, step, batch, messages = "relay" if what == "gateway" else PHONES, None, None, 1
        if what in ("batches", "counts", "parts"):
            # The head names the sender, which an observer reads from the connection. No service sends another head.
            with suppress(DataError, ValidationError):
                head = Head.model_validate_json(text_of_head(body)).model_dump()
                sender, messages = head["sender"], head["messages"]
                if what == "batches" and not head["closed"]:
                    earlier = self._tasks.setdefault(place.rpartition("/")[2], len(self._tasks))
                    step, batch = head["step"] + earlier, head["batch"]
        self.rows.append((sender, receiver, step, batch, len(body), messages))

    def table(self) -> pl.DataFrame:
        """Return the trace as a table with the columns order, sender, receiver, step, batch, bytes, messages."""
        numbers = dict.fromkeys(("step", "batch", "bytes", "messages"), pl.UInt32)
        schema = {"sender": pl.String, "receiver": pl.String, **numbers}
        return pl.DataFrame(self.rows, schema=schema, orient="row").with_row_index("order")

    def received(self, step: int, senders: Collection[str]) -> dict[int, Counter[str]]:
        """Return, for each batch of a step from these senders, how many messages each receiver got."""
        batches: dict[int, Counter[str]] = {}
        for sender, receiver, of_step, batch, _, messages in self.rows:
            if of_step == step and batch is not None and sender in senders:
                batches.setdefault(batch, Counter())[receiver] += messages
        return batches

    def write(self, path: Path) -> None:
        whole = BytesIO()
        self.table().write_parquet(whole)
        with failing(f"the trace {path} cannot be written"):
            write_whole(path, whole.getvalue())


class Recorder:
    """Forwards connections to services and records their requests; `routes`: by service, the public and own socket."""

    def __init__(self, trace: Trace, routes: Mapping[str, tuple[socket.socket, socket.socket]]) -> None:
        self._trace, self._routes = trace, routes
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for name, (public, own) in self._routes.items():
            handle = partial(self._handle, name, own.getsockname()[:2])
            self._servers.append(await asyncio.start_server(handle, sock=public, backlog=4096))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _handle(
        self, name: str, place: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        # The recorder cancels this task when it ends; asyncio would log the cancellation as an error.
        with suppress(OSError, asyncio.CancelledError):
            await self._pass(name, place, reader, writer)
        writer.close()
        self._open.discard(task)

    async def _pass(
        self, name: str, place: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            there, back = await asyncio.open_connection(*place)
        except OSError:
            writer.transport.abort()
            return
        requests = Requests(self._trace, name)
        try:
            await asyncio.gather(_pump(reader, back, requests), _pump(there, writer, None))
        finally:
            back.close()


class Requests:
    r"""Splits the bytes of a connection to `receiver` into HTTP requests, and records those with a body.

    After bytes that are no request of a service or phone, nothing more of the connection is recorded.

    >>> trace = Trace()
    >>> requests = Requests(trace, "relay")
    >>> requests.feed(b"GET /health HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab")
    >>> requests.feed(b"c")
    >>> trace.rows
    [('phones', 'relay', None, None, 3, 1)]
    """

    def __init__(self, trace: Trace, receiver: str) -> None:
        self._trace, self._receiver = trace, receiver
        self._held, self._path, self._length, self._broken = bytearray(), "", -1, False

    def feed(self, data: bytes) -> None:
        if not self._broken:
            self._held += data
        while self._length >= 0 or self._started():
            if len(self._held) < self._length:
                return
            if self._length:
                self._trace.add(self._path, self._receiver, bytes(self._held[: self._length]))
            del self._held[: self._length]
            self._length = -1

    def _started(self) -> bool:
        """Read the head of the next request; return whether it has arrived."""
        end = self._held.find(_END, 0, _BLOCK)
        if end < 0 and len(self._held) < _BLOCK:
            return False
        first, *fields = bytes(self._held[: max(end, 0)]).split(b"\r\n")
        named = [(name.lower(), value.strip()) for name, _, value in (one.partition(b":") for one in fields)]
        lengths = [value for name, value in named if name in (b"content-length", b"transfer-encoding")]
        begins = _FIRST.fullmatch(first)
        if begins is None or len(lengths) > 1 or not all(_SIZE.fullmatch(one) for one in lengths):
            self._broken = True
            self._held.clear()
            return False
        self._path, self._length = begins[1].decode(), sum(map(int, lengths))
        del self._held[: end + len(_END)]
        return True


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, requests: Requests | None) -> None:
    """Forward one direction of a connection, including its end."""
    try:
        while data := await reader.read(_BLOCK):
            if requests is not None:
                requests.feed(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        writer.transport.abort()
        raise
    if writer.can_write_eof():
        with suppress(OSError):
            writer.write_eof()
