"""`Node`: what every node does alike: listen, refuse strangers, connect, wait, stop."""

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

from hushuffle.errors import DataError
from hushuffle.files.causes import cause
from hushuffle.network.nodes.connections import Connection, ConnectionLostError, Pauses, connect
from hushuffle.network.nodes.document import RESULT, RunDocument
from hushuffle.network.nodes.frames import Control, Frame, Kind, Message, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.listening import listen
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.spool import Spool, pack_batch

_OF_EACH: Final = 8


class Places:
    """How many connections the nodes of one process make at a time: a few to each node.

    Each node has its own: who waits for one that is dead, or stands still, holds up nobody who goes elsewhere.
    """

    def __init__(self) -> None:
        self._free: dict[str, asyncio.Semaphore] = defaultdict(partial(asyncio.Semaphore, _OF_EACH))
        self.work = asyncio.Semaphore(_OF_EACH)
        """For what is done before: sealing, and waiting for the disk."""

    def of(self, name: str) -> asyncio.Semaphore:
        """Return the places at a node."""
        return self._free[name]


class Node:
    """One node of a run.

    `where`: a listening socket, if others connect to it.
    `known`: who may connect; the node's own name may, to ask after its health.
    `state`: a private folder for what the node must not forget if it is killed; None: it forgets.
    """

    def __init__(
        self,
        document: RunDocument,
        identity: Identity,
        journal: Journal,
        *,
        where: socket.socket | None = None,
        known: frozenset[str] = frozenset(),
        state: Path | None = None,
    ) -> None:
        self._document, self._identity, self._journal = document, identity, journal
        self._where, self._known = where, known | {identity.name}
        self._state = state
        self._stop = asyncio.Event()

    @property
    def name(self) -> str:
        """The name that the run's document knows it by."""
        return self._identity.name

    @property
    def document(self) -> RunDocument:
        """The run's document."""
        return self._document

    @property
    def journal(self) -> Journal:
        """Its counters."""
        return self._journal

    def stop(self) -> None:
        """Finish what has begun, give up the rest."""
        self._stop.set()

    async def _messages(self, connection: Connection, frames: list[Control]) -> AsyncIterator[Message]:
        """Yield the messages of a connection; the control frame that ends them goes to `frames`."""
        while not isinstance(frame := await connection.receive(), Control):
            if frame is None:
                message = f"{connection.peer} ended the connection early."
                raise ConnectionLostError(message, reason=Reason.TRUNCATED)
            yield frame
        if frame.kind is Kind.HEALTH and connection.peer != self.name:
            # How many messages are there already would help whoever wants to be the only other one.
            message = f"{connection.peer} may not ask how {self.name} is."
            raise ConnectionLostError(message, reason=Reason.IDENTITY)
        frames.append(frame)

    async def _take(self, connection: Connection) -> Frame:
        """Take what a known node sends, and return the answer."""
        raise NotImplementedError

    async def _handle(self, connection: Connection) -> None:
        if connection.peer in self._known:
            await connection.send(await self._take(connection))
        else:
            self._journal.reject(Reason.IDENTITY)
            await connection.send(Control(Kind.REFUSED, reason=Reason.IDENTITY))

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        assert self._where is not None
        document = self._document
        context = self._identity.server()  # a certificate that cannot be used is no news for later
        task = asyncio.create_task(
            listen(
                self._where,
                context,
                self._handle,
                layout=document.layout,
                patience=document.patience,
                journal=self._journal,
            )
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
        """The loop's time at the start of the run: the clock on the wall is read once, and may be set afterwards."""
        return asyncio.get_running_loop().time() + self._document.starts - time.time()

    def _at(self, seconds: float) -> float:
        """Return the loop's time so many seconds after the start of the run."""
        return self._origin + seconds

    def _left(self, seconds: float) -> float:
        """Return the seconds that are left until so many seconds after the start of the run."""
        return max(self._at(seconds) - asyncio.get_running_loop().time(), 0.0)

    def kept(self, what: str) -> Spool | None:
        """Return where this node keeps something for the case that it is killed."""
        path = self.kept_at(what)
        return None if path is None else Spool(path)

    def kept_at(self, what: str) -> Path | None:
        """Return the file in which this node keeps something of this run, if it has a folder for that."""
        return None if self._state is None else self._state / f"{self._document.digest.hex()}-{self.name}{what}"

    async def keep(self, spool: Spool | None, records: Sequence[bytes]) -> bool:
        """Keep records, where there is a place for them; say whether they are safe."""
        if spool is None or not records:
            return True
        try:
            await spool.append(records)
        except OSError as error:
            self._journal.event("state lost", reason=cause(error))
            return False
        return True

    async def _keep_batch(self, spool: Spool | None, peer: str, end: Control, sealed: list[bytes]) -> None:
        """Keep a batch that came whole; where that fails, it still counts, unless the node is killed."""
        await self.keep(spool, [pack_batch(peer, end.step, end.numbers[1], sealed)])

    def forget(self) -> None:
        """Let go of what was kept for the case that the node is killed: its work is done."""

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        """Wait for an event, but no longer, and not after `stop`."""
        waits = [asyncio.create_task(one.wait()) for one in (event, self._stop)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.wait(waits)

    async def _connect(self, name: str, *, until: float | None = None, stop: asyncio.Event | None = None) -> Connection:
        """Return a connection to another node, tried until the loop's time is `until`, or for `patience` seconds."""
        document = self._document
        return await connect(
            name,
            document.servers[name].place,
            self._identity,
            layout=document.layout,
            patience=document.patience,
            until=asyncio.get_running_loop().time() + document.patience if until is None else until,
            stop=stop,
        )

    async def _report(self, contents: list[bytes], *, number: int = 0) -> None:
        """Send what was found to the result, sealed, and count it; `number` tells one time from another."""
        document, name = self._document, self._document.result
        seals, key = document.seals(RESULT), document.seal_key(name)
        messages = [
            Message(RESULT, slot, number, seals.seal(content, key, target=name))
            for slot, content in enumerate(contents)
        ]
        until = max(self._at(document.result_deadline), asyncio.get_running_loop().time() + document.patience)
        answer = await self._deliver(name, messages, sources=1, until=until)
        if answer.kind is not Kind.ACCEPTED:
            message = f"{name} refused what {self.name} found ({answer.reason.words})."
            raise ConnectionLostError(message, reason=answer.reason)
        self._journal.sent += len(messages)

    async def _deliver(
        self, name: str, messages: list[Message], *, sources: int, until: float, places: Places | None = None
    ) -> Control:
        """Send messages to a node until it has answered, the same ones at every try.

        `messages`: all of one step.
        `sources`: how many stand behind them.
        `until`: the loop's time at which there is no use in trying again.
        `places`: of all nodes of this process; one of them is taken for each try, and given back after it.
        """
        loop, pauses = asyncio.get_running_loop(), Pauses()
        place: AbstractAsyncContextManager[None] = nullcontext() if places is None else places.of(name)
        while True:
            try:
                async with place:
                    return await self._delivered(name, messages, sources)
            except ConnectionLostError as error:
                if error.final or loop.time() >= until or self._stop.is_set():
                    raise
            await pauses.wait(max(until - loop.time(), 0.0))

    async def _delivered(self, name: str, messages: list[Message], sources: int) -> Control:
        """Try once."""
        connection = await self._connect(name, until=asyncio.get_running_loop().time())
        try:
            for message in messages:
                await connection.send(message)
            await connection.send(Control(Kind.END, messages[0].step, numbers=(len(messages), sources)))
            answer = await connection.answer()
        finally:
            await connection.close()
        if answer.reason is Reason.BUSY:
            error = f"{name} has no place for {self.name} now."
            raise ConnectionLostError(error, reason=Reason.BUSY)
        return answer


def check_key(document: RunDocument, identity: Identity, key: SealKey, *, part: bool) -> None:
    """Refuse a node that has no part in a run, or whose seal key is not the one that others seal for."""
    if not part or key.public.text != document.servers[identity.name].seal:
        message = f"{identity.name} has no such part in this run, or its seal key is not the one in the document."
        raise DataError(message)


async def health(document: RunDocument, identity: Identity) -> dict[str, Any]:
    """Ask a node, under its own name, how it is: its state and counters."""
    connection = await connect(
        identity.name,
        document.servers[identity.name].place,
        identity,
        layout=document.layout,
        patience=document.patience,
        until=asyncio.get_running_loop().time(),
    )
    try:
        await connection.send(Control(Kind.HEALTH))
        return Journal.read(await connection.answer())
    finally:
        await connection.close()
