"""Compute nodes: open what is sealed for them, drop dummies, sum up their groups, tell the result."""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

from hushuffle.files.private_files import mark_once
from hushuffle.network.nodes.connections import Connection
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.frames import Control, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.intake import Intake, restored, take_batch
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, check_key
from hushuffle.network.nodes.records import Part, RecordCodec, part_codec
from hushuffle.network.nodes.seals import SealKey


class ComputeNode(Node):
    """A target of one step.

    A batch counts when all of it came: what a scrambler had sent before it failed is dropped, and the batch is lost;
    what a source had sent before its connection broke is dropped too, and counts when it comes again as a whole.

    Args:
        document: of the run.
        identity: its own.
        key: opens what is sealed for it.
        where: a listening socket.
        journal: where to count.
        state: a private folder for the batches that came, sealed as they were, in case it is killed.

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
        state: Path | None = None,
    ) -> None:
        place = document.target_of(identity.name)
        check_key(document, identity, key, part=place is not None)
        assert place is not None
        self._number, self._node = place
        self._codec = RecordCodec(query=document.grouping, position=self._number - 1)
        self._statistics = self._codec.statistics(())
        self._intake = Intake(
            document,
            self._number,
            identity.name,
            key=key,
            check=lambda content: self._codec.check(content, node=self._node),
            merge=self._merge,
            sample=self._codec.sample(node=self._node),
            journal=journal,
        )
        super().__init__(document, identity, journal, where=where, known=self._intake.senders, state=state)
        self._batches, self._told = self.kept(".batches"), self.kept_at(".told")

    async def run(self) -> None:
        """Serve until everybody has sent all, or time is over; then tell the result.

        Raises:
            ConnectionLostError: the result cannot be reached, or refuses.
            DataError: what was kept cannot be read.
        """
        document = self._document
        if self._told is not None and self._told.exists():
            self._journal.enter("done", before=True)
            return
        self._journal.enter("computing", senders=len(self._intake.senders))
        with self._journal.resuming():
            restored(self._batches, {self._number: self._intake}, document)
        async with self._listening():
            await self._wait(self._intake.all_ended, self._left(document.target_deadline(self._number)))
        if self._stop.is_set():
            self._journal.enter("gave up", reason=Reason.STOPPED.words)
            return
        await self._tell()
        if self._told is not None:
            with suppress(OSError):  # then it tells the same again, if it is started again
                mark_once(self._told)
        self._journal.enter("done")

    def forget(self) -> None:
        """Let go of the batches that the result has."""
        if self._batches is not None:
            self._batches.remove()

    async def _take(self, connection: Connection) -> Control:
        """Take the batch of one scrambler, or the messages of one source."""
        ends = list[Control]()
        messages = self._messages(connection, ends)
        intakes, keep = {self._number: self._intake}, partial(self._keep_batch, self._batches)
        return await take_batch(messages, ends, connection.peer, intakes, self._journal, keep=keep)

    def _merge(self, contents: list[bytes], used: list[bool]) -> None:
        """Add the records of a batch that came whole."""
        self._statistics = self._statistics.plus(self._codec.statistics(contents, used))

    async def _tell(self) -> None:
        """Send what was found to the result: as many messages whatever it is."""
        part = Part(statistics=self._statistics, counts=self._intake.counts)
        await self._report(part_codec(self._document, self._number).pack(part, node=self._node))
