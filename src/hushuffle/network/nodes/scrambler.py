"""A scrambler gathers a batch of sealed messages, adds dummies, and sends all messages once, in random order."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle.files.causes import cause
from hushuffle.files.private_files import mark_once
from hushuffle.network.nodes.connections import (
    HEAD,
    Connection,
    ConnectionLostError,
    Control,
    Frame,
    Kind,
    Message,
    Pauses,
    Reason,
)
from hushuffle.network.nodes.document import Batch, RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node
from hushuffle.network.nodes.seals import KEY, Once
from hushuffle.randomness import Randomness, secure

_TOGETHER: Final = 16
"""Average number of messages in one write to a target."""


class Gathering:
    """A batch that is being gathered, until it is `closed`: at most one message of each source."""

    def __init__(self, number: int, batch: Batch, targets: int) -> None:
        self.number, self.batch, self.targets = number, batch, targets
        self.messages: dict[int, Message] = {}
        self._forgotten: dict[int, tuple[int, bytes]] = {}
        self._once = Once()
        self.closed = False
        self.whole = asyncio.Event()

    def add(self, peer: str, message: Message) -> Reason:
        """Accept a message of `peer`: return NONE, or the reason of refusal. A repeated message changes nothing."""
        if not 0 <= message.slot < len(self.batch.holders) or self.batch.holders[message.slot] != peer:
            return Reason.SLOT
        if not 0 <= message.target < self.targets:
            return Reason.TARGET
        if message.slot in self._forgotten:
            same = self._forgotten[message.slot] == (message.target, message.sealed[:KEY])
            return Reason.NONE if same else Reason.CONFLICT
        former = self.messages.get(message.slot)
        if former is not None:
            return Reason.NONE if former == message else Reason.CONFLICT
        if self.closed or not self._once.first(message.sealed):  # a copy would make the count of its target wrong
            return Reason.LATE if self.closed else Reason.DUPLICATE
        self.messages[message.slot] = message
        if len(self.messages) == len(self.batch.holders):
            self.whole.set()
        return Reason.NONE

    @property
    def people(self) -> int:
        """Number of different nodes with messages: all places of one node count once."""
        return len({self.batch.holders[slot] for slot in self.messages})

    def forget(self) -> None:
        """Delete the messages; a node that repeats a message still receives the answer that it was accepted."""
        self._forgotten = {slot: (one.target, one.sealed[:KEY]) for slot, one in self.messages.items()}
        self.messages.clear()
        self._once = Once()


class ScramblerNode(Node):
    """The scrambler of one or more batches.

    A batch is released once, when all of its sources have sent, or after `document.collect` seconds; with fewer than
    `min_batch` sources it is never released. All sources of one node count once. Messages that are lost during a
    release stay lost, and are counted.

    `state`: a private folder for arrived messages, sealed, and the list of released batches. After a restart, no batch
    is released a second time, which would reveal the dummies. None stores the state only in this object.
    """

    def __init__(
        self,
        document: RunDocument,
        identity: Identity,
        where: socket.socket,
        *,
        journal: Journal,
        state: Path | None = None,
        rng: Randomness | None = None,
    ) -> None:
        self._rng = secure() if rng is None else rng
        self._gatherings = {
            number: Gathering(number, batch, len(document.step(number).computes))
            for number, batch in document.batches_of(identity.name)
        }
        self._places = Counter(name for one in self._gatherings.values() for name in one.batch.holders)
        super().__init__(document, identity, journal, where=where, peers=frozenset(self._places), state=state)
        self._spools = {number: self.kept(f"-{number}.messages") for number in self._gatherings}
        self._unkept: dict[tuple[int, int], Message] = {}
        self._securing, self._calm = 0, asyncio.Event()
        self._calm.set()

    async def run(self) -> None:
        """Serve until every batch is released or given up."""
        self.journal.enter("gathering", sources=sum(len(one.batch.holders) for one in self._gatherings.values()))
        for number in self._gatherings:
            self._restore(number)
        async with self._listening():
            await asyncio.gather(*(self._finish(one) for one in self._gatherings.values()))
        self.journal.enter("done")

    def _restore(self, number: int) -> None:
        spool, gathering, layout = self._spools[number], self._gatherings[number], self.document.layout
        if spool is None:
            return
        if self._mark(number).exists():
            spool.remove()
        with self.journal.resuming():
            for record in spool.read():
                message = layout.unpack(record[:HEAD], record[HEAD:])
                if isinstance(message, Message) and 0 <= message.slot < len(gathering.batch.holders):
                    gathering.add(gathering.batch.holders[message.slot], message)
            self.journal.accepted += len(gathering.messages)

    async def _take(self, connection: Connection) -> Control:
        """Accept the messages of one source, and answer when they are stored."""
        places, end = set[tuple[int, int]](), list[Control]()
        try:
            problem, taken = await self._taken(connection, places, end)
        finally:
            safe = await self._secure(places)
        if end[0].kind is Kind.HEALTH:
            return self.journal.health()
        problem = problem or (Reason.NONE if safe else Reason.BUSY)  # BUSY: the source sends the messages again
        return Control(Kind.REFUSED if problem else Kind.ACCEPTED, end[0].step, problem, (taken,))

    async def _secure(self, places: set[tuple[int, int]]) -> bool:
        """Store new messages; return whether they are safe."""
        fresh = {place: self._unkept[place] for place in sorted(places) if place in self._unkept}
        self._securing += 1
        self._calm.clear()
        try:
            for number in {number for number, _ in fresh}:
                records = [self.document.layout.pack(one) for one in fresh.values() if one.step == number]
                if not await self.keep(self._spools[number], records):
                    return False
        finally:
            self._securing -= 1
            if not self._securing:
                self._calm.set()
        for place in fresh:
            self._unkept.pop(place, None)
        return True

    async def _taken(
        self, connection: Connection, places: set[tuple[int, int]], end: list[Control]
    ) -> tuple[Reason, int]:
        problem, taken = Reason.NONE, 0
        most, count = 2 * self._places[connection.peer], 0  # every message may be repeated once
        async for message in self._messages(connection, end):
            count += 1
            if count > most:
                raise ConnectionLostError(
                    Reason.MALFORMED, f"{connection.peer} sends more messages than it has places in batches."
                )
            reason = self._put(connection.peer, message)
            problem, taken = problem or reason, taken + (reason is Reason.NONE)
            if reason is Reason.NONE:
                places.add((message.step, message.slot))
        return problem, taken

    def _put(self, peer: str, message: Message) -> Reason:
        gathering = self._gatherings.get(message.step)
        if gathering is None:
            reason = Reason.STEP
        else:
            before = len(gathering.messages)
            reason = gathering.add(peer, message)
            if len(gathering.messages) > before:
                self.journal.accepted += 1
                self._unkept[message.step, message.slot] = message
            self.journal.repeated += reason is Reason.NONE and len(gathering.messages) == before
        if reason is not Reason.NONE:
            self.journal.reject(reason)
        return reason

    async def _finish(self, gathering: Gathering) -> None:
        """Wait until a batch is complete or its time is over, then release it or give it up."""
        document = self.document
        await self._wait(gathering.whole, self._left(document.deadline(gathering.number)))
        gathering.closed = True
        await self._calm.wait()  # wait until the last messages are stored and answered
        step = document.step(gathering.number)
        if self._stop.is_set() and not gathering.whole.is_set():
            await self._give_up(gathering, Reason.STOPPED)
        elif gathering.people < step.min_batch:
            await self._give_up(gathering, Reason.BELOW_MINIMUM)
        elif self._state is not None and self._mark(gathering.number).exists():
            await self._give_up(gathering, Reason.DUPLICATE)  # released before a restart: no target waits for it
        else:
            await self._release(gathering)
        gathering.forget()
        if (spool := self._spools[gathering.number]) is not None:
            with suppress(OSError):
                await asyncio.to_thread(spool.remove)

    def forget(self) -> None:
        """Delete arrived messages again: a message may have been written to the disk while its batch ended."""
        for spool in self._spools.values():
            if spool is not None:
                spool.remove()

    def _mark(self, number: int) -> Path:
        path = self.kept_at(f"-{number}.released")
        assert path is not None
        return path

    def _remember(self, number: int) -> Reason:
        """Record that a batch is released or given up, before other nodes learn of it; return NONE or a refusal."""
        if self._state is None:
            return Reason.NONE
        try:
            first = mark_once(self._mark(number))
        except OSError as error:
            self.journal.event("state lost", reason=cause(error))
            return Reason.STOPPED
        return Reason.NONE if first else Reason.DUPLICATE

    async def _give_up(self, gathering: Gathering, reason: Reason) -> None:
        """Delete the batch, and inform the targets that no batch will arrive."""
        await asyncio.to_thread(self._remember, gathering.number)  # if this fails, continue
        sources, least = gathering.people, self.document.step(gathering.number).min_batch
        gathering.messages.clear()
        self.journal.reject(reason)
        self.journal.enter("gave up", reason=reason.words, sources=sources, least=least)
        end = Control(Kind.ABORT, gathering.number, reason)
        await asyncio.gather(*(self._tell(name, end) for name in self.document.step(gathering.number).computes))

    async def _tell(self, name: str, end: Control) -> None:
        with suppress(ConnectionLostError):
            connection = await self._connect(name)
            try:
                await connection.send(end)
            finally:
                await connection.close()

    async def _release(self, gathering: Gathering) -> None:
        """Send the batch and its dummies in uniformly random order, once all targets are connected.

        If a target is missing, there is no result, and the other targets would learn their messages without any use.
        """
        step = self.document.step(gathering.number)
        slots = list(gathering.messages)
        sent = np.array([gathering.messages[slot].target for slot in slots], dtype=np.int64)
        shuffler = step.traffic.scrambler(len(gathering.batch.holders))
        # The targets of dummies come last; under a cap, they depend on how many messages each target already has.
        targets = shuffler.complete(sent, draw=lambda count: step.sampling.dummies(count, rng=self._rng))
        order = self._rng.permutation(targets.size)
        # All seals are computed before the first message leaves: the time of sending must not identify dummies.
        # Targets are connected only afterwards: during the sealing, a target would time out.
        sealed = [gathering.messages[slot].sealed for slot in slots]
        for target in targets[len(slots) :].tolist():
            sealed.append(self._dummy(gathering.number, target))
            if len(sealed) % _TOGETHER == 0:
                await asyncio.sleep(0)  # lets this node answer its sources in between
        channels = await self._channels(gathering.number)
        reason = Reason.SLOW if channels is None else await asyncio.to_thread(self._remember, gathering.number)
        if channels is None or reason is not Reason.NONE:
            for channel in (channels or {}).values():
                channel.abort()
            await self._give_up(gathering, reason)
            return
        stragglers = len(gathering.batch.holders) - len(slots)
        self.journal.enter("releasing", step=step.name, sources=len(slots), stragglers=stragglers)
        self.journal.facts["stragglers"] = self.journal.facts.get("stragglers", 0) + stragglers
        self.journal.event("sending", step=step.name)
        counts = np.zeros(len(step.computes), dtype=np.int64)
        together = _TOGETHER * len(step.computes)
        for start in range(0, order.size, together):
            parts = dict[int, list[Message]]()
            for place in order[start : start + together].tolist():
                target = int(targets[place])
                parts.setdefault(target, []).append(Message(gathering.number, 0, target, sealed[place]))
            for target, messages in parts.items():
                counts[target] += await self._send(step.computes[target], channels, messages)
        # If a target has lost messages, the other targets would refuse the batch at its end as well.
        whole = len(channels) == len(step.computes)
        kind, reason = (Kind.END, Reason.NONE) if whole else (Kind.ABORT, Reason.TRUNCATED)
        ends = {
            name: Control(kind, gathering.number, reason, numbers=(int(count), len(slots)))
            for name, count in zip(step.computes, counts, strict=True)
        }
        await asyncio.gather(*(self._end(name, channel, ends[name]) for name, channel in channels.items()))
        self.journal.event("released", step=step.name, sources=len(slots), sent=int(counts.sum()))

    async def _send(self, name: str, channels: dict[str, Connection], messages: list[Message]) -> int:
        """Send messages to one target, and return how many were sent; after a failure the target gets no more."""
        channel = channels.get(name)
        if channel is None:
            return 0
        try:
            await channel.send(*messages)
        except ConnectionLostError as error:
            self._lost(name, error.reason)
            channel.abort()
            del channels[name]
            return 0
        self.journal.sent += len(messages)
        return len(messages)

    def _dummy(self, number: int, target: int) -> bytes:
        document = self.document
        name = document.step(number).computes[target]
        self.journal.dummies += 1
        return document.seals(number).seal(None, document.seal_key(name), target=name)

    async def _channels(self, number: int) -> dict[str, Connection] | None:
        """Return a connection to every target of a step; None if a target cannot be connected in time."""
        loop, document = asyncio.get_running_loop(), self.document
        until, pauses = self._at(document.deadline(number) + document.patience), Pauses()
        while True:
            channels, name = dict[str, Connection](), ""
            try:
                # All scramblers connect to targets one by one in the same order, so no two scramblers block each other.
                for name in document.step(number).computes:
                    channels[name] = await self._connect(name, until=min(until, loop.time() + document.patience))
            except ConnectionLostError as error:
                for channel in channels.values():
                    channel.abort()
                if loop.time() >= until or self._stop.is_set():
                    self._lost(name, error.reason)
                    return None
                await pauses.wait(until - loop.time())
            else:
                return channels

    async def _end(self, name: str, channel: Connection, end: Frame) -> None:
        try:
            await channel.send(end)
            answer = await channel.answer()
            if answer.kind is not Kind.ACCEPTED:
                self._lost(name, answer.reason)
        except ConnectionLostError as error:
            self._lost(name, error.reason)
        finally:
            await channel.close()

    def _lost(self, name: str, reason: Reason) -> None:
        self.journal.facts["targets lost"] = self.journal.facts.get("targets lost", 0) + 1
        self.journal.event("target lost", target=name, reason=reason.words)
