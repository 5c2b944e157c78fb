"""Sources: randomize and seal each record once, store the messages, and send the same bytes until accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from hushuffle._checks import fail
from hushuffle.errors import DataError, HushuffleError
from hushuffle.files.causes import cause
from hushuffle.files.private_files import private_file
from hushuffle.files.secret_keys import derived
from hushuffle.network.nodes.connections import HEAD, ConnectionLostError, Control, Kind, Message, Reason
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, Places
from hushuffle.queries.query import Floats
from hushuffle.randomness import KeyedRandomness, keyed


class NotDeliveredError(HushuffleError):
    """No message of a source was accepted; the message states the reason."""


_PAUSE: Final = 0.5
"""Seconds between two queries for start centroids that are not available yet."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """One person's record: `row` are its values, `record` numbers its randomness, `places` is (batch, slot) by step."""

    record: int
    places: Mapping[int, tuple[int, int]]
    row: Floats = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One record in one step: its place, its own target, and its content; `record` is the number of its randomness."""

    step: int
    batch: int
    slot: int
    record: int
    own: int = field(repr=False)
    content: bytes = field(repr=False)


def entries_of(
    document: RunDocument, people: Sequence[Person], steps: Sequence[int], known: Floats | None
) -> list[Entry]:
    """Return the entries of people in some steps; `known`: the public state before these steps, such as centroids."""
    entries = []
    for step in steps:
        participants = [one for one in people if step in one.places]
        if not participants:
            continue
        rows = np.stack([one.row for one in participants])
        own, contents = document.query.own(step, rows, known).tolist(), document.query.pack(step, rows)
        for person, node, content in zip(participants, own, contents, strict=True):
            batch, slot = person.places[step]
            entries.append(Entry(step=step, batch=batch, slot=slot, record=person.record, own=node, content=content))
    return entries


def coins(key: bytes, *, run: str, step: int, records: Sequence[int]) -> KeyedRandomness:
    """Return the randomness of distinct `records` in one step, the same at every call; `run` is `RunDocument.drawn`.

    `key`: at least 32 secret bytes.
    """
    return keyed(key=derived(key, f"run {run}"), records=np.asarray(records, dtype=np.uint64), round=step)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    to: str
    messages: tuple[Message, ...]


def deliveries(document: RunDocument, entries: Sequence[Entry], key: bytes) -> list[Delivery]:
    """Return the sealed messages of a source, with targets randomized by `key`; redirected messages carry no data."""
    outgoing: dict[str, list[Message]] = {}
    for number in sorted({entry.step for entry in entries}):
        step, seals = document.step(number), document.seals(number)
        own = [entry for entry in entries if entry.step == number]
        rng = coins(key, run=document.drawn, step=number, records=[entry.record for entry in own])
        sent, on_purpose = step.sampling.sample([entry.own for entry in own], rng=rng)
        for entry, targets, meant in zip(own, sent.reshape(len(own), -1).tolist(), on_purpose.tolist(), strict=True):
            scrambler = step.batches[entry.batch].scrambler
            for target in targets:
                name = step.computes[target]
                carries = target == entry.own and (meant or not step.only_on_purpose)
                content = entry.content if carries else None
                sealed = seals.seal(content, document.seal_key(name), target=name)
                message = Message(number, entry.slot, target, sealed)
                outgoing.setdefault(scrambler or name, []).append(message)
    return [Delivery(to=name, messages=tuple(messages)) for name, messages in outgoing.items()]


class SourceNode(Node):
    """A node that sends the records of one or more people: those of all places of `document.places[identity.name]`.

    Before the first byte of a step is sent, all messages of the step are written to the private folder `state`. After
    a restart or a broken connection, the node sends the same bytes: no observer ever sees a second, differently
    randomized message for the same record.

    `places`: the connection limits of the process, if many nodes share a process.
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
        places: Places | None = None,
    ) -> None:
        placed = [(step, *place) for one in people for step, place in one.places.items()]
        if sorted(placed) != sorted(document.places.get(identity.name, ())) or not placed:
            fail(f"the records of {identity.name} differ from the run's document.")
        super().__init__(document, identity, journal)
        self._people, self._key, self._folder = tuple(people), key, state
        self._places = places or Places()

    async def run(self) -> None:
        """Send all messages, stage by stage, each until it is accepted or refused, or until time is over."""
        document, state = self.document, self.document.query.start
        for stage in document.stages:
            number = stage[0]
            until = self._at(document.deadline(number))
            if number > 1:
                state = await self._known_before(number, until)
            which = f"-{number}" if document.query.rounds else ""
            path = self._folder / f"{document.run}-{self.name}{which}.messages"
            await self._settle(path, entries_of(document, self._people, stage, state), until)
        lost = self.journal.facts.get("undelivered", 0)
        if lost and not self.journal.sent:
            reasons = ", ".join(reason.words for reason in sorted(self.journal.rejected))
            message = f"none of its {lost:,} messages was accepted ({reasons}): this node has no part in the result."
            raise NotDeliveredError(message)
        self.journal.enter("done", **({"undelivered": lost} if lost else {}))

    async def _known_before(self, number: int, until: float) -> Floats:
        """Query the result until it returns the start centroids of a step."""
        loop = asyncio.get_running_loop()
        while True:
            over = loop.time() >= until or self._stop.is_set()
            try:
                async with self._places.of[self.document.result]:
                    return await self._asked(number)
            except ConnectionLostError as error:
                if error.final or over:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _asked(self, number: int) -> Floats:
        query, lost = self.document.query, self.document.query.lost
        size = 8 * query.figures
        connection = await self._connect(self.document.result, until=asyncio.get_running_loop().time())
        shown, ends = b"", list[Control]()
        try:
            await connection.send(Control(Kind.WANT, number))
            async for message in self._messages(connection, ends):
                shown = (shown + message.sealed)[:size]
        finally:
            await connection.close()
        (end,) = ends
        if end.kind is not Kind.END:
            final = end.reason not in {Reason.NOT_YET, Reason.BUSY}
            error = f"the {lost} of step {number} could not be fetched ({end.reason.words})."
            raise ConnectionLostError(end.reason, error, final=final)
        if len(shown) != size:
            fail(f"the result node sent values that are not the {lost} of this plan.")
        return query.known(np.frombuffer(shown, dtype="<f8"))

    async def _settle(self, path: Path, entries: Sequence[Entry], until: float) -> None:
        """Send the messages of records; if `path` exists, send the messages stored there."""
        async with self._places.work:
            # The sent messages are always read from the file: another process of this node may have written it first.
            while (written := _read(path, self.document)) is None:
                drawn = deliveries(self.document, entries, self._key)
                await asyncio.to_thread(_write, path, self.document, drawn)  # in a thread, since it waits for the disk
        self.journal.enter("sending", messages=sum(len(one.messages) for one in written))
        await asyncio.gather(*(self._send(delivery, until) for delivery in written))

    async def _send(self, delivery: Delivery, until: float) -> None:
        count, messages = len(delivery.messages), list(delivery.messages)
        try:
            answer = await self._deliver(delivery.to, messages, sources=count, until=until, places=self._places)
        except ConnectionLostError as error:
            reason = error.reason
        else:
            reason = answer.reason
            if answer.kind is Kind.ACCEPTED:
                self.journal.sent += count
                return
        self.journal.reject(reason, count)
        self.journal.facts["undelivered"] = self.journal.facts.get("undelivered", 0) + count
        self.journal.event("lost", to=delivery.to, reason=reason.words)


_NAME: Final = 64


def _write(path: Path, document: RunDocument, deliveries: list[Delivery]) -> None:
    """Write all messages to the disk atomically; an existing file stays unchanged."""
    parts = [document.digest]
    for delivery in deliveries:
        head = delivery.to.encode().ljust(_NAME) + len(delivery.messages).to_bytes(4, "little")
        parts += [head, *(document.layout.pack(message) for message in delivery.messages)]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with private_file(path, first=True) as file:
            file.write(b"".join(parts))
    except FileExistsError:
        return
    except OSError as error:
        fail(f"{path.parent} cannot be written: {cause(error)}. Nothing was sent.")


def _read(path: Path, document: RunDocument) -> list[Delivery] | None:
    """Return the messages that were stored at the first start of this node; None at the first start."""
    try:
        data = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}.")
    if bytes(data[:32]) != document.digest:
        fail(
            f"{path} was written for another document of the same run: nothing was sent. "
            "Use the document of the first start."
        )
    deliveries, place, size = [], 32, document.layout.size
    while place < len(data):
        to = bytes(data[place : place + _NAME]).decode("ascii", errors="replace").rstrip()
        count = int.from_bytes(data[place + _NAME : place + _NAME + 4], "little")
        place += _NAME + 4
        if to not in document.servers or not 0 < count <= (len(data) - place) // size:
            _damaged(path)
        frames = (bytes(data[start : start + size]) for start in range(place, place + count * size, size))
        deliveries.append(Delivery(to=to, messages=tuple(_message(document, frame, path) for frame in frames)))
        place += count * size
    return deliveries


def _message(document: RunDocument, frame: bytes, path: Path) -> Message:
    head, rest = frame[:HEAD], frame[HEAD:]
    try:
        whole = document.layout.left(head) == len(rest)
    except DataError:
        whole = False
    message = document.layout.unpack(head, rest) if whole else None
    if not isinstance(message, Message):
        _damaged(path)
    return message


def _damaged(path: Path) -> NoReturn:
    fail(f"{path} is damaged: nothing was sent. Remove the file only if none of its messages was ever sent.")
