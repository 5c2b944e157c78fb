"""The result node: gathers what the compute nodes found, and estimates what everybody's records say."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from hushuffle.errors import DataError, HushuffleError
from hushuffle.network.nodes.connections import Connection, ConnectionLostError
from hushuffle.network.nodes.document import RESULT, RunDocument
from hushuffle.network.nodes.frames import Control, Kind, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, check_key
from hushuffle.network.nodes.records import Part, part_codec
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.spool import Room, pack_batch, unpack_batch
from hushuffle.network.nodes.tally import Counts, Tally, tally
from hushuffle.plans import GroupStatistics, use_chance


class RunFailedError(HushuffleError):
    """A run ended without a result; the message says who or what was missing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StepResult:
    """What one step came to.

    `received` is of the tuples that arrived, `estimated` of everybody (counts and sums scaled up); `sources` of
    `planned` stood behind the batches that came whole; `lost_batches` did not.
    """

    name: str
    received: GroupStatistics
    estimated: GroupStatistics
    planned: int
    sources: int
    lost_batches: int


@dataclass(frozen=True, kw_only=True, eq=False)
class AggregateResult:
    """The answers to a query with grouping sets, one step for each."""

    run: str
    steps: tuple[StepResult, ...]
    people: int


class ResultNode(Node):
    """Where everything comes together; it sees statistics of groups, never a record.

    Args:
        document: of the run.
        identity: its own.
        where: a listening socket.
        key: opens what is sealed for it.
        journal: where to count.
        state: a private folder for what the compute nodes found, sealed as it came, in case the node is killed or the
            result cannot be written.

    Raises:
        DataError: the document names another result, or another key; or there is no room in the folder.
    """

    def __init__(
        self,
        document: RunDocument,
        identity: Identity,
        where: socket.socket,
        *,
        key: SealKey,
        journal: Journal,
        state: Path | None = None,
    ) -> None:
        check_key(document, identity, key, part=identity.name == document.result)
        self._key = key
        self._parts: dict[str, Part] = {}
        self._nodes = frozenset(name for step in document.steps for name in step.computes)
        self._all = asyncio.Event()
        super().__init__(document, identity, journal, where=where, known=self._nodes, state=state)
        size = sum(
            len(step.computes) * part_codec(document, number).messages for number, step in enumerate(document.steps, 1)
        )
        self._kept_parts = KeptParts(self, size)

    async def run(self) -> AggregateResult:
        """Wait for all compute nodes and return the result.

        Raises:
            RunFailedError: a compute node is missing, too many sources are, or the numbers of a batch do not add up.
            DataError: what was kept cannot be read.
        """
        document = self._document
        self._journal.enter("gathering", nodes=len(self._nodes))
        seals = document.seals(RESULT)
        with self._journal.resuming():
            for peer, _, sealed in self._kept_parts.read():
                contents = [seals.open(one, self._key, target=self.name) or b"" for one in sealed]
                if (place := document.target_of(peer)) is not None:
                    self._end(peer, place, contents)
        async with self._listening():
            await self._wait(self._all, self._left(document.result_deadline))
        try:
            result = self._assembled()
        except RunFailedError as error:
            self._journal.enter("failed", reason=str(error))
            raise
        self._journal.enter("done")
        return result

    async def _take(self, connection: Connection) -> Control:
        """Take the part of one compute node."""
        seals, contents, sealed, end = self._document.seals(RESULT), list[bytes](), list[bytes](), list[Control]()
        place = self._document.target_of(connection.peer)
        most = 0 if place is None else part_codec(self._document, place[0]).messages
        async for message in self._messages(connection, end):
            if len(contents) == most:
                error = f"{connection.peer} sends more messages than a part of the result has."
                raise ConnectionLostError(error, reason=Reason.MALFORMED)
            try:
                contents.append(seals.open(message.sealed, self._key, target=self.name) or b"")
            except DataError:
                self._journal.reject(Reason.UNREADABLE)
                return Control(Kind.REFUSED, RESULT, Reason.UNREADABLE)
            sealed.append(message.sealed)
        if end[0].kind is Kind.HEALTH:
            return self._journal.health()
        if place is None:
            return Control(Kind.REFUSED, RESULT, Reason.IDENTITY)
        part_codec(self._document, place[0]).unpack(contents, node=place[1])  # what is none is not kept
        if connection.peer not in self._parts and not await self._kept_parts.add(connection.peer, 0, sealed):
            return Control(Kind.REFUSED, RESULT, Reason.BUSY)
        return self._end(connection.peer, place, contents)

    def forget(self) -> None:
        """Let go of the parts: the result is written, or there is none."""
        self._kept_parts.remove()

    def _end(self, peer: str, place: tuple[int, int], contents: list[bytes]) -> Control:
        """Keep a part."""
        if peer in self._parts:
            # The same part again: the answer to the first was lost.
            self._journal.repeated += 1
            return Control(Kind.ACCEPTED, RESULT)
        number, node = place
        self._parts[peer] = part_codec(self._document, number).unpack(contents, node=node)
        self._journal.accepted += 1
        if len(self._parts) == len(self._nodes):
            self._all.set()
        return Control(Kind.ACCEPTED, RESULT)

    def _assembled(self) -> AggregateResult:
        missing = sorted(self._nodes - self._parts.keys())
        if missing:
            names = ", ".join(missing[:5]) + (" and others" if len(missing) > 5 else "")
            message = (
                f"no word from {len(missing)} of {len(self._nodes)} compute nodes ({names}): their groups are lost."
            )
            raise RunFailedError(message)
        steps = tuple(self._step(number) for number in range(1, len(self._document.steps) + 1))
        return AggregateResult(run=self._document.run, steps=steps, people=self._document.people)

    def _step(self, number: int) -> StepResult:
        step = self._document.step(number)
        parts = [self._parts[name] for name in step.computes]
        came = came_through(self._document, number, [part.counts for part in parts], self._journal)
        chance = use_chance(step.sampling)
        received = reduce(GroupStatistics.plus, (part.statistics for part in parts))
        return StepResult(
            name=step.name,
            received=received,
            estimated=received.scaled(self._document.people / (came.sources * chance)),
            planned=step.sources,
            sources=came.sources,
            lost_batches=came.lost,
        )


class KeptParts:
    """What compute nodes have told, sealed as it came, in the result's private folder; with room for all of it.

    Args:
        node: the result.
        messages: how many there will be.

    Raises:
        DataError: there is no room.
    """

    def __init__(self, node: Node, messages: int) -> None:
        self._node, self._sealed = node, node.document.layout.sealed
        self._spool, place = node.kept(".parts"), node.kept_at(".room")
        self._room = None if place is None else Room(place, messages * (self._sealed + _EACH_PART))

    def read(self) -> list[tuple[str, int, list[bytes]]]:
        """Return sender, number and sealed messages of every part.

        Raises:
            DataError: they cannot be read.
        """
        records = [] if self._spool is None else self._spool.read()
        return [
            (peer, number, sealed) for peer, number, _, sealed in (unpack_batch(one, self._sealed) for one in records)
        ]

    async def add(self, peer: str, number: int, sealed: list[bytes]) -> bool:
        """Keep a part; say whether it is safe."""
        record = pack_batch(peer, number, 0, sealed)
        if await self._node.keep(self._spool, [record]):
            return True
        if self._room is None:
            return False
        self._room.give()  # the disk is full: this is what the room was for
        return await self._node.keep(self._spool, [record])

    def remove(self) -> None:
        """Remove everything."""
        if self._spool is not None:
            self._spool.remove()
        if self._room is not None:
            self._room.give()


_EACH_PART: Final = 256
"""Bytes around a message, generously."""


def came_through(document: RunDocument, number: int, told: Sequence[Counts], journal: Journal) -> Tally:
    """Return what came of a step to all its targets.

    Raises:
        RunFailedError: fewer sources than the run asks for, or numbers of a batch that do not add up.
    """
    step = document.step(number)
    try:
        came = tally(step, told)
    except DataError as error:
        journal.reject(Reason.MISCOUNTED)
        raise RunFailedError(str(error)) from None
    if came.sources < document.least * step.sources:
        message = (
            f"{step.name!r}: only {came.sources:,} of {step.sources:,} sources came through, fewer than the share of "
            f"{document.least:g} that the run asks for."
        )
        raise RunFailedError(message)
    return came
