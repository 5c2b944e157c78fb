"""Compute nodes: open what is sealed for them, drop dummies, sum up their groups, tell the result."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from dataclasses import dataclass
from typing import Final

from hushuffle.errors import DataError
from hushuffle.plans import GroupStatistics
from hushuffle.runtime.connections import Connection, ConnectionLostError
from hushuffle.runtime.document import RESULT, RunDocument
from hushuffle.runtime.frames import Control, Kind, Message, Reason
from hushuffle.runtime.identities import Identity
from hushuffle.runtime.journal import Journal
from hushuffle.runtime.node import Node
from hushuffle.runtime.records import Part, PartCodec, RecordCodec
from hushuffle.runtime.seals import Once, SealKey

_SLACK: Final = 2
"""How many times `patience` a target waits longer than a scrambler: for start-up, and for sending."""


@dataclass(kw_only=True)
class _Sum:
    """What came whole so far."""

    statistics: GroupStatistics
    sources: int = 0
    messages: int = 0
    batches: int = 0


class ComputeNode(Node):
    """A target of one step.

    A batch counts when all of it came: what a scrambler had sent before it failed is dropped, and the batch is lost.

    Args:
        document: of the run.
        identity: its own.
        key: opens what is sealed for it.
        where: a listening socket.
        journal: where to count.

    Raises:
        DataError: the document does not list the node as a target, or another key.
    """

    def __init__(
        self,
        document: RunDocument,
        identity: Identity,
        where: socket.socket,
        *,
        key: SealKey,
        journal: Journal,
    ) -> None:
        place = document.target_of(identity.name)
        if place is None or key.public.text != document.servers[identity.name].seal:
            message = f"{identity.name} is no compute node of this run, or its seal key is not the one in the document."
            raise DataError(message)
        self._number, self._node = place
        self._key = key
        self._step, self._seals = document.step(self._number), document.seals(self._number)
        self._codec = RecordCodec(query=document.grouping, position=self._number - 1)
        self._sum = _Sum(statistics=self._codec.statistics(()))
        self._once = Once()
        # Who sends, and behind how many sources it can stand.
        self._senders: dict[str, int] = {}
        for batch in self._step.batches:
            if batch.scrambler is None:
                self._senders |= Counter(batch.holders)
            else:
                self._senders[batch.scrambler] = len(batch.holders)
        self._ended: set[str] = set()
        self._all_ended = asyncio.Event()
        super().__init__(document, identity, journal, where=where, known=frozenset(self._senders))

    async def run(self) -> None:
        """Serve until everybody has sent all, or time is over; then tell the result.

        Raises:
            ConnectionLostError: the result cannot be reached, or refuses.
        """
        document = self._document
        self._journal.enter("computing", senders=len(self._senders))
        async with self._listening():
            await self._wait(self._all_ended, document.collect + _SLACK * document.patience)
        if self._stop.is_set():
            self._journal.enter("gave up", reason=Reason.STOPPED.words)
            return
        await self._tell()
        self._journal.enter("done")

    async def _take(self, connection: Connection) -> Control:
        """Take the batch of one scrambler, or the messages of one source."""
        contents, count, end = list[bytes](), 0, list[Control]()
        async for message in self._messages(connection, end):
            count += 1
            self._open(message, contents)
        if end[0].kind is Kind.HEALTH:
            return self._journal.health()
        return self._end(connection.peer, end[0], count, contents)

    def _open(self, message: Message, contents: list[bytes]) -> None:
        """Open a message, and keep what is in it until its batch is whole."""
        reason = Reason.STEP if message.step != self._number else self._opened(message.sealed, contents)
        if reason is Reason.NONE:
            self._journal.accepted += 1
        else:
            self._journal.reject(reason)

    def _opened(self, sealed: bytes, contents: list[bytes]) -> Reason:
        try:
            content = self._seals.open(sealed, self._key, target=self.name)
        except DataError:
            return Reason.UNREADABLE
        if not self._once.first(sealed):
            return Reason.DUPLICATE
        if content is None:
            return Reason.NONE  # a dummy
        try:
            self._codec.check(content, node=self._node)
        except DataError:
            return Reason.MALFORMED
        contents.append(content)
        return Reason.NONE

    def _end(self, peer: str, end: Control, count: int, contents: list[bytes]) -> Control:
        """Count a batch that came whole, or say that it is lost."""
        if peer in self._ended:
            self._journal.reject(Reason.DUPLICATE)
            return Control(Kind.REFUSED, self._number, Reason.DUPLICATE)
        self._ended.add(peer)
        if len(self._ended) == len(self._senders):
            self._all_ended.set()
        announced, sources = end.numbers[:2]
        whole = (end.kind, end.step, announced) == (Kind.END, self._number, count) and sources <= self._senders[peer]
        if not whole:
            reason = end.reason or Reason.TRUNCATED
            self._journal.reject(reason)
            return Control(Kind.REFUSED, self._number, reason)
        self._sum.statistics = self._sum.statistics.plus(self._codec.statistics(contents))
        self._sum.sources += sources
        self._sum.messages += count
        self._sum.batches += 1
        return Control(Kind.ACCEPTED, self._number)

    async def _tell(self) -> None:
        """Send what was found to the result: as many messages whatever it is."""
        document, name = self._document, self._document.result
        seals, key = document.seals(RESULT), document.seal_key(name)
        part = Part(
            statistics=self._sum.statistics,
            sources=self._sum.sources,
            messages=self._sum.messages,
            lost=len(self._senders) - self._sum.batches,
        )
        codec = PartCodec(query=document.grouping, position=self._number - 1, room=seals.room)
        messages = [
            Message(RESULT, slot, 0, seals.seal(content, key, target=name))
            for slot, content in enumerate(codec.pack(part, node=self._node))
        ]
        until = asyncio.get_running_loop().time() + document.patience
        answer = await self._deliver(name, messages, sources=1, until=until)
        if answer.kind is not Kind.ACCEPTED:
            message = f"{name} refused what {self.name} found ({answer.reason.words})."
            raise ConnectionLostError(message, reason=answer.reason)
        self._journal.sent += len(messages)
