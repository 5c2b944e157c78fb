"""Sources: each record is randomized and sealed once, kept, and sent until it is taken; the same bytes every time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from hushuffle.errors import DataError, HushuffleError
from hushuffle.files.causes import cause
from hushuffle.files.private_files import private_file
from hushuffle.files.secret_keys import derived
from hushuffle.network.nodes.connections import ConnectionLostError
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.frames import HEAD, Control, Kind, Message, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, Places
from hushuffle.queries.query import Floats
from hushuffle.randomness import KeyedRandomness, keyed


class NotDeliveredError(HushuffleError):
    """Nothing that a source sent was taken; the message says why."""


_PAUSE: Final = 0.5
"""Seconds between two questions after what a step starts from, where it is not there yet."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """One person's record, a row of numbers; `record` numbers it for its coins, `places` are (batch, slot) by step."""

    record: int
    places: Mapping[int, tuple[int, int]]
    row: Floats = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One record in one step: its place there, its own target, its content; `record` numbers it for its coins."""

    step: int
    batch: int
    slot: int
    record: int
    own: int = field(repr=False)
    content: bytes = field(repr=False)


def entries_of(
    document: RunDocument, people: Sequence[Person], steps: Sequence[int], known: Floats | None
) -> list[Entry]:
    """Return what people have to say in some steps; `known`: what everybody knows before them."""
    found = []
    for step in steps:
        asked = [one for one in people if step in one.places]
        if not asked:
            continue
        rows = np.stack([one.row for one in asked])
        own, contents = document.query.own(step, rows, known).tolist(), document.query.pack(step, rows)
        for one, node, content in zip(asked, own, contents, strict=True):
            batch, slot = one.places[step]
            found.append(Entry(step=step, batch=batch, slot=slot, record=one.record, own=node, content=content))
    return found


def coins(key: bytes, *, run: str, step: int, records: Sequence[int]) -> KeyedRandomness:
    """Return the coins of records in one step of one run: drawn again, they fall as they fell.

    `key`: at least 32 secret bytes.
    `run`: what the coins are for, `RunDocument.drawn`; every run has coins of its own.
    `records`: their numbers, distinct.
    """
    return keyed(key=derived(key, f"run {run}"), records=np.asarray(records, dtype=np.uint64), round=step)


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Messages for one node, in the order in which they are sent."""

    to: str
    messages: tuple[Message, ...]


def deliveries(document: RunDocument, entries: Sequence[Entry], key: bytes) -> list[Delivery]:
    """Return what a source sends: randomized with the coins of `key`, sealed, redirected messages without data."""
    found: dict[str, list[Message]] = {}
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
                found.setdefault(scrambler or name, []).append(message)
    return [Delivery(to=name, messages=tuple(messages)) for name, messages in found.items()]


class SourceNode(Node):
    """A node that speaks for one or more people.

    Before the first byte of a step leaves, all that it will send there is written to `state`. Whoever starts it again,
    after it was killed or a connection broke, sends the same bytes: nobody ever sees a second, differently randomized
    message for the same record.

    `people`: the records and their places, all of `document.places[identity.name]`.
    `key`: secret bytes of this node, for its coins.
    `state`: a private folder.
    `places`: those of the process, where many nodes share one.
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
            message = f"the records of {identity.name} are not those that the run's document lists for it."
            raise DataError(message)
        super().__init__(document, identity, journal)
        self._people, self._key, self._folder = tuple(people), key, state
        self._places = places or Places()

    async def run(self) -> None:
        """Send everything, each node its own messages, until it is taken, refused, or time is over; stage by stage."""
        document, known = self._document, self._document.query.start
        for stage in document.stages:
            number = stage[0]
            until = self._at(document.deadline(number))
            if number > 1:
                known = await self._known_before(number, until)
            which = f"-{number}" if document.query.rounds else ""
            path = self._folder / f"{document.run}-{self.name}{which}.messages"
            await self._settle(path, entries_of(document, self._people, stage, known), until)
        self._conclude()

    async def _known_before(self, number: int, until: float) -> Floats:
        """Ask the result until it has what a step starts from."""
        loop = asyncio.get_running_loop()
        while True:
            over = loop.time() >= until or self._stop.is_set()
            try:
                async with self._places.of(self._document.result):
                    return await self._asked(number)
            except ConnectionLostError as error:
                if error.final or over:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _asked(self, number: int) -> Floats:
        query, lost = self._document.query, self._document.query.lost
        size = 8 * query.figures
        connection = await self._connect(self._document.result, until=asyncio.get_running_loop().time())
        shown, ends = b"", list[Control]()
        try:
            await connection.send(Control(Kind.WANT, number))
            async for message in self._messages(connection, ends):
                shown = (shown + message.sealed)[:size]
        finally:
            await connection.close()
        (end,) = ends
        if end.kind is not Kind.END:
            error = f"the {lost} of step {number} could not be had ({end.reason.words})."
            raise ConnectionLostError(error, reason=end.reason, final=end.reason not in {Reason.NOT_YET, Reason.BUSY})
        if len(shown) != size:
            error = f"what the result sent is not the {lost} of this plan."
            raise DataError(error)
        return query.known(np.frombuffer(shown, dtype="<f8"))

    def _conclude(self) -> None:
        """Say how the node ends: all was taken, or some of it."""
        lost = self._journal.facts.get("undelivered", 0)
        if lost and not self._journal.sent:
            reasons = ", ".join(reason.words for reason in sorted(self._journal.rejected))
            message = f"nobody took any of its {lost:,} messages ({reasons}): this node has no part in the result."
            raise NotDeliveredError(message)
        self._journal.enter("done", **({"undelivered": lost} if lost else {}))

    async def _settle(self, path: Path, entries: Sequence[Entry], until: float) -> None:
        """Send records, or what was sent for them before if `path` is there."""
        async with self._places.work:
            # What is sent is what was read: another process of this node may have been faster to write.
            while (found := _read(path, self._document)) is None:
                made = deliveries(self._document, entries, self._key)
                await asyncio.to_thread(_write, path, self._document, made)  # waits for the disk
        self._journal.enter("sending", messages=sum(len(one.messages) for one in found))
        await asyncio.gather(*(self._send(delivery, until) for delivery in found))

    async def _send(self, delivery: Delivery, until: float) -> None:
        count, messages = len(delivery.messages), list(delivery.messages)
        try:
            answer = await self._deliver(delivery.to, messages, sources=count, until=until, places=self._places)
        except ConnectionLostError as error:
            reason = error.reason
        else:
            reason = answer.reason
            if answer.kind is Kind.ACCEPTED:
                self._journal.sent += count
                return
        self._journal.reject(reason, count)
        self._journal.facts["undelivered"] = self._journal.facts.get("undelivered", 0) + count
        self._journal.event("lost", to=delivery.to, reason=reason.words)


_NAME: Final = 64


def _write(path: Path, document: RunDocument, found: list[Delivery]) -> None:
    """Write everything through to the disk, whole or not at all; what is there already stays."""
    parts = [document.digest]
    for delivery in found:
        head = delivery.to.encode().ljust(_NAME) + len(delivery.messages).to_bytes(4, "little")
        parts += [head, *(document.layout.pack(message) for message in delivery.messages)]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with private_file(path, first=True) as file:
            file.write(b"".join(parts))
    except FileExistsError:
        return
    except OSError as error:
        message = f"{path.parent} cannot be written: {cause(error)}. Nothing was sent."
        raise DataError(message) from None


def _read(path: Path, document: RunDocument) -> list[Delivery] | None:
    """Return what was to be sent when this node was first started; None if this is the first time."""
    try:
        data = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"{path} cannot be read: {cause(error)}."
        raise DataError(message) from None
    if bytes(data[:32]) != document.digest:
        message = f"{path} was written for another document of the same run: nothing is sent for it."
        raise DataError(message)
    found, place, size = [], 32, document.layout.size
    while place < len(data):
        to = bytes(data[place : place + _NAME]).decode("ascii", errors="replace").rstrip()
        count = int.from_bytes(data[place + _NAME : place + _NAME + 4], "little")
        place += _NAME + 4
        if to not in document.servers or not 0 < count <= (len(data) - place) // size:
            _damaged(path)
        frames = (bytes(data[start : start + size]) for start in range(place, place + count * size, size))
        found.append(Delivery(to=to, messages=tuple(_message(document, frame, path) for frame in frames)))
        place += count * size
    return found


def _message(document: RunDocument, frame: bytes, path: Path) -> Message:
    head, rest = frame[:HEAD], frame[HEAD:]
    try:
        whole = document.layout.left(head) == len(rest)
    except DataError:
        whole = False
    found = document.layout.unpack(head, rest) if whole else None
    if not isinstance(found, Message):
        _damaged(path)
    return found


def _damaged(path: Path) -> NoReturn:
    message = f"{path} is damaged: nothing is sent. Remove it only if nothing of it was ever sent."
    raise DataError(message) from None
