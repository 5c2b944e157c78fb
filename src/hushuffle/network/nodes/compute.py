"""Compute nodes: open sealed messages, drop dummies, merge the records of each step, and send sums to the result."""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

from hushuffle._checks import fail
from hushuffle.files.private_files import mark_once
from hushuffle.network.nodes.connections import Connection, Control, Reason
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.intake import Intake, Told, ToldCodec, restored, take_batch
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, check_key
from hushuffle.network.nodes.seals import SealKey
from hushuffle.queries.query import Floats
from hushuffle.randomness import Randomness, secure


class ComputeNode(Node):
    """A compute node, which is the target of messages in one step, or in every step of a query with iterations.

    A batch counts once all of its messages have arrived; if its scrambler fails, it is lost. The messages of a source
    whose connection breaks count when the source sends all of them again.

    `state`: a private folder for arrived batches, sealed, and for released numbers, so that a restarted node releases
    the same numbers with the same noise.
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
        self._place, self._task, self._codec = place, document.query, ToldCodec(document)
        self._rng = secure() if rng is None else rng
        steps = range(1, len(document.steps) + 1) if self._task.rounds else (place[0],)
        self._merged: dict[int, Floats] = {step: self._task.empty(step) for step in steps}
        self._intakes: dict[int, Intake] = {}
        for step in steps:
            check, merge = partial(self._task.check, step, place[1]), partial(self._merge, step)
            sample = self._task.sample(step, place[1])
            self._intakes[step] = Intake(
                document, step, identity.name, key=key, check=check, merge=merge, sample=sample, journal=journal
            )
        senders = frozenset[str]().union(*(one.senders for one in self._intakes.values()))
        super().__init__(document, identity, journal, where=where, peers=senders, state=state)
        self._batches, self._told = self.kept(".batches"), self.kept_at(".told")
        self._released = self.kept(".released") if self._task.rounds or self._task.noisy else None

    async def run(self) -> None:
        """Accept each step's messages until all have arrived or time is over, then send the sums to the result node."""
        if self._told is not None and self._told.exists():
            self.journal.enter("done", before=True)
            return
        records = [] if self._released is None else self._released.read()
        statements = [(record, self._codec.unpack(self._place, [record])) for record in records]
        before = {one.step: (record, one) for record, one in statements}  # released before this node was stopped
        with self.journal.resuming():
            restored(self._batches, self._intakes, self.document)
        numbers: Floats | None = None
        async with self._listening():
            for step, intake in self._intakes.items():
                self.journal.enter("computing", step=step)
                if step in before:
                    record, statement = before[step]
                    numbers, contents = statement.numbers, self._codec.cut(step, record)
                    intake.close()
                else:
                    await self._wait(intake.all_ended, self._left(self.document.target_deadline(step)))
                    if self._stop.is_set():
                        self.journal.enter("gave up", reason=Reason.STOPPED.words)
                        return
                    intake.close()
                    numbers = self._task.tell(step, self._place[1], self._merged[step], numbers, self._rng)
                    contents = self._codec.pack(Told(step=step, counts=intake.counts, numbers=numbers))
                    await self._keep_released(contents)
                await self._report(contents, number=step if self._task.rounds else 0)
        if self._told is not None:
            with suppress(OSError):  # after a restart, the node then reports the same again
                mark_once(self._told)
        self.journal.enter("done")

    def forget(self) -> None:
        """Delete batches that the result node has. Keep released numbers, since a new draw would have other noise."""
        if self._batches is not None:
            self._batches.remove()

    async def _take(self, connection: Connection) -> Control:
        ends = list[Control]()
        messages, keep = self._messages(connection, ends), partial(self._keep_batch, self._batches)
        return await take_batch(messages, ends, connection.peer, self._intakes, self.journal, keep=keep)

    def _merge(self, step: int, contents: list[bytes], used: list[bool]) -> None:
        self._merged[step] = self._task.merge(step, self._merged[step], contents, used)

    async def _keep_released(self, contents: list[bytes]) -> None:
        if not await self.keep(self._released, [b"".join(contents)]) and self._task.noisy:
            fail(f"{self.name} cannot store its noisy numbers, and a retry would draw new noise. Nothing was released.")
