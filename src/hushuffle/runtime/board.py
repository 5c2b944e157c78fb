"""The result of k-means: a board where released centroids come together, for everybody who takes part to read."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import numpy as np

from hushuffle.errors import DataError
from hushuffle.plans.centroids import Floats
from hushuffle.runtime.connections import Connection, ConnectionLostError
from hushuffle.runtime.document import RESULT, RunDocument
from hushuffle.runtime.frames import Control, Frame, Kind, Message, Reason
from hushuffle.runtime.identities import Identity
from hushuffle.runtime.journal import Journal
from hushuffle.runtime.node import Node, check_key
from hushuffle.runtime.points import Released, ReleasedCodec
from hushuffle.runtime.result import RunFailedError
from hushuffle.runtime.seals import SealKey


@dataclass(frozen=True, kw_only=True, eq=False)
class Iteration:
    """What one iteration came to: `centroids`, shape (K, dimensions), of `sources` of the `planned` ones.

    `messages` reached the targets, dummies among them; `lost_batches` did not come whole everywhere.
    """

    centroids: Floats
    planned: int
    sources: int
    messages: int
    lost_batches: int


@dataclass(frozen=True, kw_only=True, eq=False)
class KMeansResult:
    """The centroids after every iteration."""

    run: str
    people: int
    iterations: tuple[Iteration, ...]


class BoardNode(Node):
    """The result of k-means: gathers released centroids, and shows them to whoever takes part.

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
        self._key, self._nodes = key, document.steps[0].computes
        self._codec = ReleasedCodec(query=document.clustering, room=document.seals(RESULT).room)
        self._parts: dict[int, dict[str, Released]] = {number + 1: {} for number in range(len(document.steps))}
        self._all = asyncio.Event()
        known = frozenset(self._nodes) | frozenset(document.places)
        super().__init__(document, identity, journal, where=where, known=known)

    async def run(self) -> KMeansResult:
        """Wait for the centroids of the last iteration and return all.

        Raises:
            RunFailedError: a node of a centroid is missing, or too many sources are.
        """
        document = self._document
        self._journal.enter("gathering", nodes=len(self._nodes))
        async with self._listening():
            await self._wait(self._all, document.result_deadline)
        try:
            iterations = tuple(self._iteration(number) for number in self._parts)
        except RunFailedError as error:
            self._journal.enter("failed", reason=str(error))
            raise
        self._journal.enter("done")
        return KMeansResult(run=document.run, people=document.people, iterations=iterations)

    async def _take(self, connection: Connection) -> Frame:
        seals, contents, ends = self._document.seals(RESULT), list[bytes](), list[Control]()
        async for message in self._messages(connection, ends):
            if len(contents) > len(self._codec.cut(bytes(8 * self._codec.query.dimensions + 64))):
                error = f"{connection.peer} sends more than a centroid."
                raise ConnectionLostError(error, reason=Reason.MALFORMED)
            try:
                contents.append(seals.open(message.sealed, self._key, target=self.name) or b"")
            except DataError:
                self._journal.reject(Reason.UNREADABLE)
                return Control(Kind.REFUSED, RESULT, Reason.UNREADABLE)
        (end,) = ends
        if end.kind is Kind.HEALTH:
            return self._journal.health()
        if end.kind is Kind.WANT:
            return await self._show(connection, end.step)
        if connection.peer not in self._nodes:
            self._journal.reject(Reason.IDENTITY)
            return Control(Kind.REFUSED, RESULT, Reason.IDENTITY)
        return self._keep(connection.peer, self._codec.unpack(contents))

    def _keep(self, peer: str, released: Released) -> Control:
        parts = self._parts.get(released.iteration)
        if parts is None:
            self._journal.reject(Reason.STEP)
            return Control(Kind.REFUSED, RESULT, Reason.STEP)
        if peer in parts:
            self._journal.repeated += 1  # the answer to the first was lost
            return Control(Kind.ACCEPTED, RESULT)
        parts[peer] = released
        self._journal.accepted += 1
        if len(self._parts[len(self._parts)]) == len(self._nodes):
            self._all.set()
        return Control(Kind.ACCEPTED, RESULT)

    async def _show(self, connection: Connection, number: int) -> Control:
        """Send the centroids that a step starts from; they are public, so they are not sealed."""
        if not 1 < number <= len(self._parts):
            self._journal.reject(Reason.STEP)
            return Control(Kind.REFUSED, number, Reason.STEP)
        parts = self._parts[number - 1]
        if len(parts) < len(self._nodes):
            return Control(Kind.REFUSED, number, Reason.NOT_YET)
        size = self._document.layout.sealed
        whole = np.stack([parts[name].centroid for name in self._nodes]).astype("<f8").tobytes()
        for slot, start in enumerate(range(0, len(whole), size)):
            await connection.send(Message(number, slot, 0, whole[start : start + size].ljust(size, b"\0")))
        return Control(Kind.END, number)

    def _iteration(self, number: int) -> Iteration:
        step, parts = self._document.step(number), self._parts[number]
        missing = [name for name in self._nodes if name not in parts]
        if missing:
            message = (
                f"iteration {number}: no word from {len(missing)} of {len(self._nodes)} compute nodes "
                f"({', '.join(missing[:5])}): their centroids are lost."
            )
            raise RunFailedError(message)
        found = [parts[name] for name in self._nodes]
        messages = sum(one.messages for one in found)
        sources = min(one.sources for one in found) if step.scrambled else messages // (step.flood + 1)
        if sources < self._document.least * step.sources:
            message = (
                f"{step.name!r}: only {sources:,} of {step.sources:,} sources came through, fewer than the share of "
                f"{self._document.least:g} that the run asks for."
            )
            raise RunFailedError(message)
        return Iteration(
            centroids=np.stack([one.centroid for one in found]),
            planned=step.sources,
            sources=sources,
            messages=messages,
            lost_batches=max(one.lost for one in found) if step.scrambled else 0,
        )
