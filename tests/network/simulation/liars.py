"""Nodes that lie: a scrambler whose frames are changed as they leave, a compute node, a source, a stranger."""

from __future__ import annotations

import asyncio
import random
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from hushuffle.errors import HushuffleError
from hushuffle.network.nodes.connections import HEAD, Connection, Control, Frame, Kind, Message, Reason, connect
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.source import deliveries
from network.simulation.hosts import Process, secret
from network.simulation.wires import Wire, badge
from network.simulation.world import World

LIES: Final = ("drop", "drop", "double", "replace", "redirect", "count", "sources")
"""What a false scrambler does. `replace` and `redirect` cannot be noticed: as many messages as ever, some spoiled."""

_COUNTS: Final = struct.Struct("<3Q")


class FalseScrambler:
    """Changes what a scrambler sends to its targets; the rest of it is honest."""

    def __init__(self, document: RunDocument, lie: str, rng: random.Random) -> None:
        self._document, self._lie, self._random = document, lie, rng
        self._more = Counter[Wire]()
        self._kept: dict[Wire, Message] = {}

    def __call__(self, wire: Wire, line: bytes) -> list[bytes]:
        """Return what leaves instead of one frame."""
        frame = _frame(self._document, line)
        if frame is None or not wire.other.process.name.startswith("compute"):
            return [line]
        if isinstance(frame, Control):
            return [self._pack(self._control(frame, wire))]
        if self._random.random() < 0.5:
            return [line]
        frames = self._message(frame, wire)
        self._more[wire] += len(frames) - 1
        return [self._pack(one) for one in frames]

    def _control(self, frame: Control, wire: Wire) -> Control:
        if frame.kind is not Kind.END:
            return frame
        count, sources, *rest = frame.numbers
        count += self._more[wire] + (self._random.choice((-1, 1)) if self._lie == "count" else 0)
        if self._lie == "sources":
            sources += self._random.choice((-1, 1, 1000))
        return replace(frame, numbers=(max(count, 0), max(sources, 0), *rest))

    def _message(self, frame: Message, wire: Wire) -> list[Frame]:
        if self._lie == "drop":
            return []
        if self._lie == "double":
            return [frame, frame]
        if self._lie == "redirect":
            other = next((own for own in self._kept if own is not wire), None)
            self._kept[wire] = frame
            return [frame] if other is None else [replace(self._kept.pop(other), target=frame.target)]
        if self._lie == "replace":
            name, seals = wire.other.process.name, self._document.seals(frame.step)
            return [replace(frame, sealed=seals.seal(None, self._document.seal_key(name), target=name))]
        return [frame]

    def _pack(self, frame: Frame) -> bytes:
        return self._document.layout.pack(frame)


def false_part(rng: random.Random) -> Callable[[int, bytes | None], bytes | None]:
    """Return what a lying compute node tells the result instead of what it found."""
    lie = rng.choice(("garbage", "short", "none", "counts", "long"))

    def told(step: int, content: bytes | None) -> bytes | None:
        if step or content is None:
            return content
        counts = _COUNTS.pack(*(rng.choice((0, 1, 2**63)) for _ in range(3)))
        return {
            "garbage": rng.randbytes(len(content)),
            "short": content[:-8],
            "none": None,
            "counts": counts + content[_COUNTS.size :],
            "long": (content + bytes(8))[:150],
        }[lie]

    return told


class Impostor:
    """A source that says what it likes, under its own good certificate; or a stranger."""

    def __init__(self, world: World, process: Process) -> None:
        self._world, self._process, self._random = world, process, process.random

    async def run(self) -> None:
        """Connect to nodes and misbehave, a few times."""
        document = self._world.scene.document
        places = document.places.get(self._process.name, ())
        own = [document.step(step).batches[batch].scrambler for step, batch, _slot in places]
        own += [name for step in document.steps for name in step.computes if not step.scrambled and places]
        for _ in range(self._random.randint(1, 6)):
            await asyncio.sleep(self._random.expovariate(0.2))
            near = [name for name in own if name is not None]
            name = self._random.choice(near if near and self._random.random() < 0.7 else sorted(document.servers))
            try:
                await self._talk(name)
            except (HushuffleError, OSError):
                continue

    async def _talk(self, name: str) -> None:
        document, loop = self._world.scene.document, asyncio.get_running_loop()
        connection = await connect(
            name,
            document.servers[name].place,
            badge(self._process.name, good=self._random.random() < 0.9),
            layout=document.layout,
            patience=document.patience,
            until=loop.time() + document.patience,
        )
        try:
            for frame in self._frames(name):
                if self._random.random() < 0.1:
                    connection._writer.write(self._random.randbytes(self._random.choice((1, 16, 64, 300))))
                await connection.send(frame)
            await self._end(connection)
        finally:
            if self._random.random() < 0.5:
                connection.abort()
            else:
                await connection.close()

    async def _end(self, connection: Connection) -> None:
        how = self._random.random()
        if how < 0.6:
            await connection.answer()
        elif how < 0.8:
            await asyncio.sleep(self._random.choice((1.0, 40.0)))

    def _frames(self, name: str) -> list[Frame]:
        """Return messages for its own places and others, some well sealed, and an end that may be true."""
        document, rng = self._world.scene.document, self._random
        frames: list[Frame] = [self._message() for _ in range(rng.randint(0, 4))]
        entries = self._world.scene.entries(self._process.name)
        if entries and rng.random() < 0.5:  # what it should have sent, sealed anew every time
            made = deliveries(document, entries, secret(f"coins of {self._process.name}"))
            frames += [message for delivery in made if delivery.to == name for message in delivery.messages]
        if rng.random() < 0.2 and frames:
            frames.append(rng.choice(frames))
        kind = rng.choice((Kind.END, Kind.END, Kind.END, Kind.ABORT, Kind.HEALTH, Kind.WANT, Kind.ACCEPTED))
        count = len(frames) + (rng.choice((-1, 1, 10**6)) if rng.random() < 0.2 else 0)
        step = rng.choice((0, 1, 1, 1, 2, 3))
        return [*frames, Control(kind, step, rng.choice(list(Reason)), (max(count, 0), rng.choice((1, 1, 2, 10**6))))]

    def _message(self) -> Message:
        document, rng = self._world.scene.document, self._random
        places = document.places.get(self._process.name, ((1, 0, 0),))
        number, _batch, slot = rng.choice(places)
        target = rng.randrange(len(document.step(number).computes))
        name, seals = document.step(number).computes[target], document.seals(number)
        content = rng.choice((None, b"", rng.randbytes(12), bytes(12), b"\xff" * 12))
        sealed = seals.seal(content, document.seal_key(name), target=name)
        message = Message(number, slot, target, sealed)
        changes: dict[str, Any] = rng.choice(
            (
                {},
                {},
                {},
                {"slot": slot + 1},
                {"slot": 2**32 - 1},
                {"target": 1000},
                {"target": (target + 1) % len(document.step(number).computes)},
                {"step": rng.randrange(4)},
                {"sealed": rng.randbytes(len(sealed))},
            )
        )
        return replace(message, **changes)


def _frame(document: RunDocument, line: bytes) -> Frame | None:
    try:
        return document.layout.unpack(line[:HEAD], line[HEAD:]) if document.layout.left(line[:HEAD]) else None
    except (HushuffleError, struct.error):
        return None
