"""The nodes of k-means: people with points, and one node for each centroid."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import Connection, ConnectionLostError
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.frames import Control, Kind, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.intake import Intake, restored, take_batch
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, Places, check_key
from hushuffle.network.nodes.points import PointCodec, Released, ReleasedCodec, moved, released_codec
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Entry, SourceNode
from hushuffle.plans.centroids import Floats
from hushuffle.randomness import Randomness, secure

_PAUSE: Final = 0.5
"""Seconds between two questions after centroids that are not there yet."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """One person's point, its number for the coins, and its place (batch, slot) in every step."""

    record: int
    places: Mapping[int, tuple[int, int]]
    point: Floats = field(repr=False)


class PointSource(SourceNode):
    """A node that speaks for one or more points: in every iteration each goes to its nearest centroid, or elsewhere.

    Args:
        document: of the run.
        identity: its own.
        people: the points and their places, all of `document.places[identity.name]`.
        key: secret bytes of this node, for its coins.
        state: a private folder: what is sent in an iteration is kept there first.
        journal: where to count.

    Raises:
        DataError: the points are not this node's.
    """

    def __init__(
        self,
        document: RunDocument,
        identity: Identity,
        people: Sequence[Person],
        *,
        key: bytes,
        state: Path,
        journal: Journal,
    ) -> None:
        placed = [
            Entry(step=step, batch=batch, slot=slot, record=one.record, own=0, content=b"")
            for one in people
            for step, (batch, slot) in one.places.items()
        ]
        super().__init__(document, identity, placed, key=key, state=state, journal=journal)
        self._people, self._folder = tuple(people), state
        self._codec = PointCodec(query=document.clustering)

    async def run(self, places: Places | None = None) -> None:
        """Take part in every iteration, until the last one or until time is over.

        `places`: those of the process, where many nodes share one.

        Raises:
            DataError: the state cannot be read or written.
            ConnectionLostError: the centroids could not be had in time.
            NotDeliveredError: nobody took anything.
        """
        document, places = self._document, places or Places()
        centroids = np.array(document.clustering.initial)
        for number in range(1, len(document.steps) + 1):
            until = self._at(document.deadline(number))
            if number > 1:
                centroids = await self._centroids(number, until, places)
            path = self._folder / f"{document.run}-{self.name}-{number}.messages"
            await self._settle(path, self._entries_of(number, centroids), until, places)
        self._conclude()

    def _entries_of(self, number: int, centroids: Floats) -> list[Entry]:
        entries = []
        for one in self._people:
            batch, slot = one.places[number]
            own, content = self._codec.own(one.point, centroids), self._codec.pack(one.point)
            entries.append(Entry(step=number, batch=batch, slot=slot, record=one.record, own=own, content=content))
        return entries

    async def _centroids(self, number: int, until: float, places: Places) -> Floats:
        """Ask the result until it has the centroids that a step starts from."""
        loop = asyncio.get_running_loop()
        while True:
            over = loop.time() >= until or self._stop.is_set()
            try:
                async with places.of(self._document.result):
                    return await self._asked(number)
            except ConnectionLostError as error:
                if error.final or over:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _asked(self, number: int) -> Floats:
        codec = ReleasedCodec(query=self._document.clustering, room=self._document.layout.sealed)
        size = 8 * codec.query.dimensions * len(codec.query.initial)
        connection = await self._connect(self._document.result, until=asyncio.get_running_loop().time())
        found, ends = b"", list[Control]()
        try:
            await connection.send(Control(Kind.WANT, number))
            async for message in self._messages(connection, ends):
                found = (found + message.sealed)[:size]
        finally:
            await connection.close()
        (end,) = ends
        if end.kind is Kind.END:
            return codec.read_board([found])
        error = f"the centroids of step {number} could not be had ({end.reason.words})."
        raise ConnectionLostError(error, reason=end.reason, final=end.reason not in {Reason.NOT_YET, Reason.BUSY})


class CentroidNode(Node):
    """The node of one centroid, a target in every iteration: it moves its centroid, and releases it.

    Args:
        document: of the run.
        identity: its own.
        where: a listening socket.
        key: opens what is sealed for it.
        journal: where to count.
        rng: of the noise, `secure()` unless given.
        state: a private folder for batches that came and centroids that are released: started again after it was
            killed, it tells the same centroid, with the same noise.

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
        rng: Randomness | None = None,
        state: Path | None = None,
    ) -> None:
        place = document.target_of(identity.name)
        check_key(document, identity, key, part=place is not None)
        assert place is not None
        self._codec = PointCodec(query=document.clustering)
        self._rng = secure() if rng is None else rng
        self._held: dict[int, list[tuple[bytes, bool]]] = {n: [] for n in range(1, len(document.steps) + 1)}
        self._intakes = {
            number: Intake(
                document,
                number,
                identity.name,
                key=key,
                check=self._codec.check,
                merge=partial(_hold, held),
                sample=self._codec.sample,
                journal=journal,
            )
            for number, held in self._held.items()
        }
        self._centroid = np.array(document.clustering.initial[place[1]])
        known = frozenset[str]().union(*(one.senders for one in self._intakes.values()))
        super().__init__(document, identity, journal, where=where, known=known, state=state)
        self._batches, self._released = self.kept(".batches"), self.kept(".released")

    async def run(self) -> None:
        """Serve every iteration: wait for its batches, release the centroid.

        Raises:
            ConnectionLostError: the result cannot be reached, or refuses.
            DataError: what was kept cannot be read, or a centroid not be kept before it is released.
        """
        document, codec = self._document, released_codec(self._document)
        before = {} if self._released is None else dict(enumerate(self._released.read(), start=1))
        with self._journal.resuming():
            restored(self._batches, self._intakes, document)
        async with self._listening():
            for number, intake in self._intakes.items():
                self._journal.enter("computing", step=number)
                if number in before:
                    contents = codec.cut(before[number])
                    self._centroid = codec.unpack(contents).centroid
                    intake.close()
                    await self._report(contents, number=number)
                    continue
                await self._wait(intake.all_ended, self._left(document.target_deadline(number)))
                if self._stop.is_set():
                    self._journal.enter("gave up", reason=Reason.STOPPED.words)
                    return
                intake.close()
                held = self._held.pop(number)
                points, used = self._codec.unpack([one for one, _ in held]), [counts for _, counts in held]
                self._centroid = moved(points, self._centroid, document.clustering, used=used, rng=self._rng)
                await self._tell(number, intake)
        self._journal.enter("done")

    def forget(self) -> None:
        """Let go of the batches. What was released stays: released anew, it would have other noise."""
        if self._batches is not None:
            self._batches.remove()

    async def _take(self, connection: Connection) -> Control:
        ends = list[Control]()
        messages = self._messages(connection, ends)
        keep = partial(self._keep_batch, self._batches)
        return await take_batch(messages, ends, connection.peer, self._intakes, self._journal, keep=keep)

    async def _tell(self, number: int, intake: Intake) -> None:
        released = Released(iteration=number, centroid=self._centroid, counts=intake.counts)
        contents = released_codec(self._document).pack(released)
        if not await self.keep(self._released, [b"".join(contents)]) and self._document.clustering.noise is not None:
            message = f"{self.name} cannot keep what it releases, and releases nothing: another try had other noise."
            raise DataError(message)
        await self._report(contents, number=number)


def _hold(held: list[tuple[bytes, bool]], contents: list[bytes], used: list[bool]) -> None:
    held.extend(zip(contents, used, strict=True))
