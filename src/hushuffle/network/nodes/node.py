"""`Node`: the base class of all nodes, which listens, rejects unknown peers, connects, waits, and stops."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.network.nodes.connections import (
    Connection,
    ConnectionLostError,
    Control,
    Frame,
    Kind,
    Message,
    Pauses,
    Reason,
    connect,
)
from hushuffle.network.nodes.document import RESULT, RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal, Spool, pack_batch
from hushuffle.network.nodes.listening import listen
from hushuffle.network.nodes.seals import SealKey

_OF_EACH: Final = 8


class Places:
    """Limits on the connections of one process, one for each other node: a slow node delays no other node."""

    def __init__(self) -> None:
        self.of: dict[str, asyncio.Semaphore] = defaultdict(partial(asyncio.Semaphore, _OF_EACH))
        """The connections to each other node, by its name."""
        self.work = asyncio.Semaphore(_OF_EACH)
        """Limits concurrent work before sending: sealing, and waiting for the disk."""


class Node:
    """One node of a run; `state`: a private folder for data that must survive a kill, None to store no data."""

    def __init__(
        self,
        document: RunDocument,
        identity: Identity,
        journal: Journal,
        *,
        where: socket.socket | None = None,
        peers: frozenset[str] = frozenset(),
        state: Path | None = None,
    ) -> None:
        self.document, self._identity, self.name, self.journal = document, identity, identity.name, journal
        self._where, self._known = where, peers | {identity.name}
        self._state = state
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Finish work in progress, and cancel all other work."""
        self._stop.set()

    async def _messages(self, connection: Connection, frames: list[Control]) -> AsyncIterator[Message]:
        """Yield the messages of a connection; append the control frame that ends the messages to `frames`."""
        while not isinstance(frame := await connection.receive(), Control):
            if frame is None:
                raise ConnectionLostError(Reason.TRUNCATED, f"{connection.peer} ended the connection early.")
            yield frame
        if frame.kind is Kind.HEALTH and connection.peer != self.name:
            # The number of arrived messages would help an adversary who wants to isolate one honest message.
            raise ConnectionLostError(Reason.IDENTITY, f"{connection.peer} may not query the health of {self.name}.")
        frames.append(frame)

    async def _take(self, connection: Connection) -> Frame:
        """Process the frames of a known node, and return the answer."""
        raise NotImplementedError

    async def _handle(self, connection: Connection) -> None:
        if connection.peer in self._known:
            await connection.send(await self._take(connection))
        else:
            await connection.send(self.journal.refuse(0, Reason.IDENTITY))

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        assert self._where is not None
        document = self.document
        context = self._identity.server()  # an unusable certificate must raise before anything is sent
        layout, patience = document.layout, document.patience
        task = asyncio.create_task(
            listen(self._where, context, self._handle, layout=layout, patience=patience, journal=self.journal)
        )
        try:
            yield
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended

    @cached_property
    def _origin(self) -> float:
        """The event loop's time at the start of the run; the clock is read once, since it may be adjusted later."""
        return asyncio.get_running_loop().time() + self.document.starts - time.time()

    def _at(self, seconds: float) -> float:
        """Return the event loop's time `seconds` after the start of the run."""
        return self._origin + seconds

    def _left(self, seconds: float) -> float:
        """Return the time left until `seconds` after the start of the run, in seconds."""
        return max(self._at(seconds) - asyncio.get_running_loop().time(), 0.0)

    def kept(self, what: str) -> Spool | None:
        """Return the stored records with this name, which survive a kill of the node; None without a state folder."""
        path = self.kept_at(what)
        return None if path is None else Spool(path)

    def kept_at(self, what: str) -> Path | None:
        return None if self._state is None else self._state / f"{self.document.digest.hex()}-{self.name}{what}"

    async def keep(self, spool: Spool | None, records: Sequence[bytes]) -> bool:
        """Store records, if there is a file for them; return whether they survive a kill of the node."""
        if spool is None or not records:
            return True
        try:
            await spool.append(records)
        except OSError as error:
            self.journal.event("state lost", reason=cause(error))
            return False
        return True

    async def _keep_batch(self, spool: Spool | None, peer: str, end: Control, sealed: list[bytes]) -> None:
        """Store a complete batch. If that fails, the batch still counts, unless the node is killed."""
        await self.keep(spool, [pack_batch(peer, end.step, end.numbers[1], sealed)])

    def forget(self) -> None:
        """Delete the data that were stored for a restart: the node's work is done."""

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait for an event, at most `seconds`, and not after `stop`."""
        waits = [asyncio.create_task(one.wait()) for one in (event, self._stop)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.wait(waits)

    async def _connect(self, name: str, *, until: float | None = None, stop: asyncio.Event | None = None) -> Connection:
        """Return a connection to another node; retry until loop time `until`, by default for `patience` seconds."""
        place, layout, patience = self.document.servers[name].place, self.document.layout, self.document.patience
        until = asyncio.get_running_loop().time() + patience if until is None else until
        return await connect(name, place, self._identity, layout=layout, patience=patience, until=until, stop=stop)

    async def _report(self, contents: list[bytes], *, number: int = 0) -> None:
        """Send the node's numbers to the result, sealed, and count the messages; `number` identifies the report."""
        document, name = self.document, self.document.result
        seals, key = document.seals(RESULT), document.seal_key(name)
        messages = [
            Message(RESULT, slot, number, seals.seal(content, key, target=name))
            for slot, content in enumerate(contents)
        ]
        until = max(self._at(document.result_deadline), asyncio.get_running_loop().time() + document.patience)
        answer = await self._deliver(name, messages, sources=1, until=until)
        if answer.kind is not Kind.ACCEPTED:
            raise ConnectionLostError(
                answer.reason, f"{name} refused the numbers of {self.name} ({answer.reason.words})."
            )
        self.journal.sent += len(messages)

    async def _deliver(
        self, name: str, messages: list[Message], *, sources: int, until: float, places: Places | None = None
    ) -> Control:
        """Send messages of one step to a node until it answers; every try sends the same messages.

        `sources`: the number of sources of these messages. `until`: the event loop's time at which retries end.
        `places`: the connection limits that all nodes of this process share.
        """
        loop, pauses = asyncio.get_running_loop(), Pauses()
        place: AbstractAsyncContextManager[None] = nullcontext() if places is None else places.of[name]
        while True:
            try:
                async with place:
                    return await self._delivered(name, messages, sources)
            except ConnectionLostError as error:
                if error.final or loop.time() >= until or self._stop.is_set():
                    raise
            await pauses.wait(max(until - loop.time(), 0.0))

    async def _delivered(self, name: str, messages: list[Message], sources: int) -> Control:
        connection = await self._connect(name, until=asyncio.get_running_loop().time())
        try:
            for message in messages:
                await connection.send(message)
            await connection.send(Control(Kind.END, messages[0].step, numbers=(len(messages), sources)))
            answer = await connection.answer()
        finally:
            await connection.close()
        if answer.reason is Reason.BUSY:
            raise ConnectionLostError(Reason.BUSY, f"{name} has no free connection for {self.name} now.")
        return answer


def check_key(document: RunDocument, identity: Identity, key: SealKey, *, part: bool) -> None:
    if not part or key.public.text != document.servers[identity.name].seal:
        fail(f"{identity.name} does not have this role in the run, or its seal key differs from the document.")


async def health(document: RunDocument, identity: Identity) -> dict[str, Any]:
    """Query a node under its own name, and return its state and counters."""
    place, now = document.servers[identity.name].place, asyncio.get_running_loop().time()
    connection = await connect(
        identity.name, place, identity, layout=document.layout, patience=document.patience, until=now
    )
    try:
        await connection.send(Control(Kind.HEALTH))
        return Journal.read(await connection.answer())
    finally:
        await connection.close()
