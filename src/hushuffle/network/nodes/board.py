"""The result of k-means: a board where released centroids come together, for everybody who takes part to read."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import Connection, ConnectionLostError
from hushuffle.network.nodes.document import RESULT, RunDocument
from hushuffle.network.nodes.frames import Control, Frame, Kind, Message, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, check_key
from hushuffle.network.nodes.points import Released, released_codec
from hushuffle.network.nodes.result import KeptParts, RunFailedError, came_through
from hushuffle.network.nodes.seals import SealKey
from hushuffle.plans.centroids import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Iteration:
    """What one iteration came to: `centroids`, shape (K, dimensions), of `sources` of the `planned` ones.

    `messages` reached the targets, dummies among them; `lost_batches` did not come.
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
        state: a private folder for the centroids, sealed as they came, in case the node is killed or the result cannot
            be written.

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
        self._key, self._nodes = key, document.steps[0].computes
        self._codec = released_codec(document)
        self._parts: dict[int, dict[str, Released]] = {number + 1: {} for number in range(len(document.steps))}
        self._shown: dict[int, Iteration] = {}
        self._failed: RunFailedError | None = None
        self._all = asyncio.Event()
        known = frozenset(self._nodes) | frozenset(document.places)
        super().__init__(document, identity, journal, where=where, known=known, state=state)
        each = len(self._codec.cut(bytes(self._codec.size)))
        self._kept_parts = KeptParts(self, len(self._nodes) * len(document.steps) * each)

    async def run(self) -> KMeansResult:
        """Wait for the centroids of the last iteration and return all.

        Raises:
            RunFailedError: a node of a centroid is missing, too many sources are, or the numbers of a batch do not add
                up.
        """
        document = self._document
        self._journal.enter("gathering", nodes=len(self._nodes))
        seals = document.seals(RESULT)
        with self._journal.resuming():
            for peer, _, sealed in self._kept_parts.read():
                contents = [seals.open(one, self._key, target=self.name) or b"" for one in sealed]
                self._keep(peer, self._codec.unpack(contents))
        async with self._listening():
            await self._wait(self._all, self._left(document.result_deadline))
        try:
            if self._failed is not None:
                raise self._failed
            iterations = tuple(self._shown.get(number) or self._iteration(number) for number in self._parts)
        except RunFailedError as error:
            self._journal.enter("failed", reason=str(error))
            raise
        self._journal.enter("done")
        return KMeansResult(run=document.run, people=document.people, iterations=iterations)

    async def _take(self, connection: Connection) -> Frame:
        seals, contents, sealed, ends = self._document.seals(RESULT), list[bytes](), list[bytes](), list[Control]()
        async for message in self._messages(connection, ends):
            if len(contents) > len(self._codec.cut(bytes(self._codec.size))):
                error = f"{connection.peer} sends more than a centroid."
                raise ConnectionLostError(error, reason=Reason.MALFORMED)
            try:
                contents.append(seals.open(message.sealed, self._key, target=self.name) or b"")
            except DataError:
                self._journal.reject(Reason.UNREADABLE)
                return Control(Kind.REFUSED, RESULT, Reason.UNREADABLE)
            sealed.append(message.sealed)
        (end,) = ends
        if end.kind is Kind.HEALTH:
            return self._journal.health()
        if end.kind is Kind.WANT:
            return await self._show(connection, end.step)
        if connection.peer not in self._nodes:
            self._journal.reject(Reason.IDENTITY)
            return Control(Kind.REFUSED, RESULT, Reason.IDENTITY)
        released = self._codec.unpack(contents)
        new = connection.peer not in self._parts.get(released.iteration, {connection.peer: released})
        if new and not await self._kept_parts.add(connection.peer, released.iteration, sealed):
            return Control(Kind.REFUSED, RESULT, Reason.BUSY)
        return self._keep(connection.peer, released)

    def forget(self) -> None:
        """Let go of the parts: the result is written, or there is none."""
        self._kept_parts.remove()

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
        if len(parts) == len(self._nodes):
            self._complete(released.iteration)
        return Control(Kind.ACCEPTED, RESULT)

    def _complete(self, number: int) -> None:
        """Show an iteration of which all nodes have told; one that fails ends the run, and is never shown."""
        try:
            self._shown[number] = self._iteration(number)
        except RunFailedError as error:
            self._failed = error
        if self._failed is not None or len(self._shown) == len(self._parts):
            self._all.set()

    async def _show(self, connection: Connection, number: int) -> Control:
        """Send the centroids that a step starts from; they are public, so they are not sealed."""
        if not 1 < number <= len(self._parts):
            self._journal.reject(Reason.STEP)
            return Control(Kind.REFUSED, number, Reason.STEP)
        if number - 1 not in self._shown:
            return Control(Kind.REFUSED, number, Reason.NOT_YET if self._failed is None else Reason.STOPPED)
        size = self._document.layout.sealed
        whole = self._shown[number - 1].centroids.astype("<f8").tobytes()
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
        came = came_through(self._document, number, [one.counts for one in found], self._journal)
        return Iteration(
            centroids=np.stack([one.centroid for one in found]),
            planned=step.sources,
            sources=came.sources,
            messages=came.messages,
            lost_batches=came.lost,
        )
