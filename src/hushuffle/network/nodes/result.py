"""The result node, which combines the numbers of the compute nodes and sends public results to all participants."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from hushuffle.errors import DataError, HushuffleError
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.network.nodes.connections import Connection, ConnectionLostError, Control, Frame, Kind, Message, Reason
from hushuffle.network.nodes.document import RESULT, RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.intake import Counts, Tally, Told, ToldCodec, tally
from hushuffle.network.nodes.journal import Journal, Room, pack_batch, unpack_batch
from hushuffle.network.nodes.node import Node, check_key
from hushuffle.network.nodes.seals import SealKey
from hushuffle.plans import use_chance
from hushuffle.queries.query import Floats

_EACH_PART: Final = 256
"""Largest number of bytes that are stored in addition to a message."""


class RunFailedError(HushuffleError):
    """A run ended without a result; the message states what was missing."""


def run_failed(message: str) -> NoReturn:
    raise RunFailedError(message)


@dataclass(frozen=True, kw_only=True, eq=False)
class StepResult:
    """The result of one step; `combined` joins the numbers that the compute nodes computed from arrived records.

    `planned`: expected sources. `sources`, `messages`: those of complete batches, dummies included. `people`: those of
    the query, including people without a place in this step.
    """

    name: str
    combined: Floats
    people: int
    planned: int
    sources: int
    messages: int
    lost_batches: int
    sampling: TargetSampling = field(repr=False)
    only_on_purpose: bool = False

    def scale(self) -> float:
        return scale_of(self.people, self.sources, self.sampling, only_on_purpose=self.only_on_purpose)


def scale_of(people: int, sources: int, sampling: TargetSampling, *, only_on_purpose: bool) -> float:
    """Return the factor from counts and sums over the arrived records of `sources` to estimates for all people."""
    return people / (sources * use_chance(sampling, only_honest=only_on_purpose))


@dataclass(frozen=True, kw_only=True, eq=False)
class RunResult:
    run: str
    people: int
    steps: tuple[StepResult, ...]


class ResultNode(Node):
    """The node that combines all numbers. This node sees sums over groups of records, but no single record.

    `state`: a private folder for the compute nodes' reports, sealed, in case the node is killed.
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
        self._key, self._codec = key, ToldCodec(document)
        self._most = max(self._codec.messages(number) for number in range(1, len(document.steps) + 1))
        self._nodes = frozenset(name for step in document.steps for name in step.computes)
        self._parts: dict[int, dict[str, Told]] = {number: {} for number in range(1, len(document.steps) + 1)}
        self._steps: dict[int, StepResult] = {}
        self._failed: RunFailedError | None = None
        self._all = asyncio.Event()
        readers = frozenset(document.places) if document.query.rounds else frozenset[str]()
        super().__init__(document, identity, journal, where=where, peers=self._nodes | readers, state=state)
        self._sealed, place = document.layout.sealed, self.kept_at(".room")
        self._spool = self.kept(".parts")
        self._room = None if place is None else Room(place, self._codec.all_messages * (self._sealed + _EACH_PART))

    async def run(self) -> RunResult:
        document = self.document
        self.journal.enter("gathering", nodes=len(self._nodes))
        seals = document.seals(RESULT)
        with self.journal.resuming():
            for record in [] if self._spool is None else self._spool.read():
                peer, _, _, sealed = unpack_batch(record, self._sealed)
                contents = [seals.open(one, self._key, target=self.name) or b"" for one in sealed]
                if (place := document.target_of(peer)) is not None:
                    self._keep(peer, self._codec.unpack(place, contents))
        async with self._listening():
            await self._wait(self._all, self._left(document.result_deadline))
        try:
            if self._failed is not None:
                raise self._failed
            for stage in document.stages:
                self._check_all_there(stage)
            steps = tuple(self._steps[number] for number in self._parts)
        except RunFailedError as error:
            self.journal.enter("failed", reason=str(error))
            raise
        self.journal.enter("done")
        return RunResult(run=document.run, people=document.people, steps=steps)

    async def _take(self, connection: Connection) -> Frame:
        """Accept the report of one compute node, or send the start centroids of a step."""
        seals, contents, sealed, ends = self.document.seals(RESULT), list[bytes](), list[bytes](), list[Control]()
        async for message in self._messages(connection, ends):
            if len(contents) == self._most:
                raise ConnectionLostError(Reason.MALFORMED, f"{connection.peer} sends more messages than a report has.")
            try:
                contents.append(seals.open(message.sealed, self._key, target=self.name) or b"")
            except DataError:
                return self.journal.refuse(RESULT, Reason.UNREADABLE)
            sealed.append(message.sealed)
        (end,) = ends
        if end.kind is Kind.HEALTH:
            return self.journal.health()
        if end.kind is Kind.WANT:
            return await self._show(connection, end.step)
        place = self.document.target_of(connection.peer)
        if place is None:
            return self.journal.refuse(RESULT, Reason.IDENTITY)
        statement = self._codec.unpack(place, contents)  # an invalid report raises, and is not stored
        new = connection.peer not in self._parts.get(statement.step, {connection.peer: statement})
        if new and not await self._kept_part(pack_batch(connection.peer, statement.step, 0, sealed)):
            return Control(Kind.REFUSED, RESULT, Reason.BUSY)
        return self._keep(connection.peer, statement)

    def forget(self) -> None:
        """Delete the stored reports, which are not needed once the result is written or the run has failed."""
        if self._spool is not None:
            self._spool.remove()
        if self._room is not None:
            self._room.give()

    async def _kept_part(self, record: bytes) -> bool:
        """Store a report, sealed; return whether the report survives a kill of the node."""
        if not (stored := await self.keep(self._spool, [record])) and self._room is not None:
            self._room.give()  # the disk is full: use the reserved space
            stored = await self.keep(self._spool, [record])
        return stored

    def _keep(self, peer: str, statement: Told) -> Control:
        parts = self._parts.get(statement.step)
        if parts is None:
            return self.journal.refuse(RESULT, Reason.STEP)
        if peer in parts:
            self.journal.repeated += 1  # the first answer was lost
            return Control(Kind.ACCEPTED, RESULT)
        parts[peer] = statement
        self.journal.accepted += 1
        if len(parts) == len(self.document.step(statement.step).computes):
            self._complete(statement.step)
        return Control(Kind.ACCEPTED, RESULT)

    def _complete(self, number: int) -> None:
        """Combine a step after all reports have arrived. A step that fails is never shown, and ends the iterations."""
        try:
            self._steps[number] = self._step(number)
        except RunFailedError as error:
            self._failed = self._failed or error
        whole = all(len(parts) == len(self.document.step(step).computes) for step, parts in self._parts.items())
        if whole or (self._failed is not None and self.document.query.rounds):
            self._all.set()

    async def _show(self, connection: Connection, number: int) -> Control:
        """Send the start centroids of a step, which the previous step released. They are public, so not sealed."""
        if not self.document.query.rounds or not 1 < number <= len(self._parts):
            return self.journal.refuse(number, Reason.STEP)
        if number - 1 not in self._steps:
            return Control(Kind.REFUSED, number, Reason.NOT_YET if self._failed is None else Reason.STOPPED)
        size = self.document.layout.sealed
        whole = self._steps[number - 1].combined.astype("<f8").tobytes()
        for slot, start in enumerate(range(0, len(whole), size)):
            await connection.send(Message(number, slot, 0, whole[start : start + size].ljust(size, b"\0")))
        return Control(Kind.END, number)

    def _check_all_there(self, stage: Sequence[int]) -> None:
        query, nodes = self.document.query, [name for step in stage for name in self.document.step(step).computes]
        missing = sorted(name for name in nodes if not any(name in self._parts[step] for step in stage))
        if missing:
            names = ", ".join(missing[:5]) + (" and others" if len(missing) > 5 else "")
            where = f"iteration {stage[0]}: " if query.rounds else ""
            run_failed(
                f"{where}{len(missing)} of {len(nodes)} compute nodes did not report ({names}), so their {query.lost} "
                "are lost. Check their logs."
            )

    def _step(self, number: int) -> StepResult:
        step, parts = self.document.step(number), self._parts[number]
        statements = [parts[name] for name in step.computes]
        came = came_through(self.document, number, [one.counts for one in statements], self.journal)
        return StepResult(
            name=step.name,
            combined=self.document.query.combine(number, [one.numbers for one in statements]),
            people=self.document.people,
            planned=step.sources,
            sources=came.sources,
            messages=came.messages,
            lost_batches=came.lost,
            sampling=step.sampling,
            only_on_purpose=step.only_on_purpose,
        )


def came_through(document: RunDocument, number: int, told: Sequence[Counts], journal: Journal) -> Tally:
    """Return the counts of a step over all its targets; raise RunFailedError if they are inconsistent or too small."""
    step = document.step(number)
    try:
        came = tally(step, told)
    except DataError as error:
        journal.reject(Reason.MISCOUNTED)
        raise RunFailedError(str(error)) from None
    if came.sources < document.least * step.sources:
        run_failed(
            f"{step.name!r}: only {came.sources:,} of {step.sources:,} sources came through, fewer than the share of "
            f"{document.least:g} that the run requires."
        )
    return came
