"""The result node: gathers what the compute nodes found, and estimates what everybody's records say."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from functools import reduce

from hushuffle.errors import DataError, HushuffleError
from hushuffle.plans import GroupStatistics, use_chance
from hushuffle.runtime.connections import Connection, ConnectionLostError
from hushuffle.runtime.document import RESULT, RunDocument
from hushuffle.runtime.frames import Control, Kind, Reason
from hushuffle.runtime.identities import Identity
from hushuffle.runtime.journal import Journal
from hushuffle.runtime.node import Node, check_key
from hushuffle.runtime.records import Part, PartCodec
from hushuffle.runtime.seals import SealKey


class RunFailedError(HushuffleError):
    """A run ended without a result; the message says who or what was missing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StepResult:
    """What one step came to.

    `received` is of the tuples that arrived, `estimated` of everybody (counts and sums scaled up); `sources` of
    `planned` stood behind the batches that came whole, at the target where fewest did; `lost_batches` did not.
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

    Raises:
        DataError: the document names another result, or another key.
    """

    def __init__(
        self, document: RunDocument, identity: Identity, where: socket.socket, *, key: SealKey, journal: Journal
    ) -> None:
        check_key(document, identity, key, part=identity.name == document.result)
        self._key = key
        self._parts: dict[str, Part] = {}
        self._nodes = frozenset(name for step in document.steps for name in step.computes)
        self._all = asyncio.Event()
        super().__init__(document, identity, journal, where=where, known=self._nodes)

    async def run(self) -> AggregateResult:
        """Wait for all compute nodes and return the result.

        Raises:
            RunFailedError: a compute node is missing, or too many sources are.
        """
        document = self._document
        self._journal.enter("gathering", nodes=len(self._nodes))
        async with self._listening():
            await self._wait(self._all, document.result_deadline)
        try:
            result = self._assembled()
        except RunFailedError as error:
            self._journal.enter("failed", reason=str(error))
            raise
        self._journal.enter("done")
        return result

    async def _take(self, connection: Connection) -> Control:
        """Take the part of one compute node."""
        seals, contents, end = self._document.seals(RESULT), list[bytes](), list[Control]()
        place = self._document.target_of(connection.peer)
        most = 0 if place is None else self._codec(place[0]).messages
        async for message in self._messages(connection, end):
            if len(contents) == most:
                error = f"{connection.peer} sends more messages than a part of the result has."
                raise ConnectionLostError(error, reason=Reason.MALFORMED)
            try:
                contents.append(seals.open(message.sealed, self._key, target=self.name) or b"")
            except DataError:
                self._journal.reject(Reason.UNREADABLE)
                return Control(Kind.REFUSED, RESULT, Reason.UNREADABLE)
        if end[0].kind is Kind.HEALTH:
            return self._journal.health()
        if place is None:
            return Control(Kind.REFUSED, RESULT, Reason.IDENTITY)
        return self._end(connection.peer, place, contents)

    def _codec(self, number: int) -> PartCodec:
        document = self._document
        return PartCodec(query=document.grouping, position=number - 1, room=document.seals(RESULT).room)

    def _end(self, peer: str, place: tuple[int, int], contents: list[bytes]) -> Control:
        """Keep a part."""
        if peer in self._parts:
            # The same part again: the answer to the first was lost.
            self._journal.repeated += 1
            return Control(Kind.ACCEPTED, RESULT)
        number, node = place
        self._parts[peer] = self._codec(number).unpack(contents, node=node)
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
        if step.scrambled:
            sources = [part.sources for part in parts]
        else:
            # A target hears only from those who send to it: all messages together tell how many sources there were.
            sources = [sum(part.messages for part in parts) // (step.flood + 1)] * len(parts)
        least = min(sources)
        if least < self._document.least * step.sources:
            message = (
                f"{step.name!r}: only {least:,} of {step.sources:,} sources came through, fewer than the share of "
                f"{self._document.least:g} that the run asks for."
            )
            raise RunFailedError(message)
        chance = use_chance(step.sampling)
        received = reduce(GroupStatistics.plus, (part.statistics for part in parts))
        scaled = [
            part.statistics.scaled(self._document.people / (count * chance))
            for part, count in zip(parts, sources, strict=True)
        ]
        return StepResult(
            name=step.name,
            received=received,
            estimated=reduce(GroupStatistics.plus, scaled),
            planned=step.sources,
            sources=least,
            lost_batches=max((part.lost for part in parts), default=0) if step.scrambled else 0,
        )
