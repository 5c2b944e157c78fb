"""What goes wrong in one run, drawn from its seed: networks, disks, clocks, kills, phones and services that cheat."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from hushuffle_network import batches, target
from hushuffle_network.scrambler import _LEAVES, Scrambler
from network.virtual.checks import check, head_in
from network.virtual.clock import HERE
from network.virtual.scene import COLLECT, ODD, PATIENCE, PEOPLE, SCENES, scene
from network.virtual.world import Disk, Links, World

SCRAMBLERS: Final = ("drops", "repeats", "swaps", "replaces", "miscounts", "hides", "sends again")
"""Lies of scramblers: a batch has a message fewer, a message twice more, one message twice instead of another, forged
messages instead of all but one, other signed counts, an arrival fewer (with correct counts), another number."""
TARGETS: Final = ("more messages", "fewer messages", "more tokens", "fewer tokens", "omits a batch", "another total")
"""Lies of targets, in their counts."""
_BUSY: Final = {"scrambler": 900, "target": 500, "result": 300, "relay": 1200, "issuer": 900}
"""About how many callbacks a service of a role runs before the end of its task."""
_COMMITS: Final = {"scrambler": 30, "target": 6, "result": 6, "relay": 1, "issuer": 40}

Wrong = Callable[[pytest.MonkeyPatch], object]
"""Turns services into wrong versions."""


class Faults:
    """Draws and plans the faults of one run. `words` lists them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"faults {seed}")  # noqa: S311 - repeatable faults
        self.words: list[str] = []
        rng = self.rng
        # In half of the runs all faults end before the deadline: then everything accepted must be in the result.
        late = rng.random() < 0.4
        self.quiet = COLLECT + (PATIENCE * rng.random() * 3 if late else -4.0)
        self.links = Links(quiet=self.quiet)
        if rng.random() < 0.7:
            self.links.loss = rng.choice((0.0, 0.03, 0.15))
            self.links.repeat = rng.choice((0.0, 0.05, 0.3))
            self.links.slow = rng.choice((0.02, 0.2, 1.0))
        self.words.append(f"{self.links}")

    def plan(self, world: World) -> None:
        """Plan the faults of a world, its services and its phones."""
        rng, names = self.rng, list(world.scene.roles)
        if rng.random() < 0.3:
            world.skews = {name: rng.uniform(-2.0, 2.0) for name in names}
            self.words.append("clocks run apart")
        if rng.random() < 0.3:
            self._liar(world)
        for name in names:
            start = rng.uniform(0.0, 20.0) if rng.random() < 0.1 else 0.0
            world.loop.call_later(start, world.start, name)
            world.disturb(name, start)
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3, 5))):
            self._kill(world)
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            self._fill(world)
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            self._cut(world)
        if rng.random() < 0.15:
            self._restore(world)
        if rng.random() < 0.1:
            self._interrupt(world)
        self._phones(world)

    def _name(self, world: World) -> str:
        role = self.rng.choice(("scrambler", "scrambler", "scrambler", "target", "target", "result", "issuer", "relay"))
        return self.rng.choice([name for name, other in world.scene.roles.items() if other == role])

    def _liar(self, world: World) -> None:
        role = self.rng.choice(("scrambler", "scrambler", "target"))
        name = self.rng.choice([name for name, other in world.scene.roles.items() if other == role])
        world.lies[name] = self.rng.choice(SCRAMBLERS if role == "scrambler" else TARGETS)
        self.words.append(f"{name} {world.lies[name]}")

    def _kill(self, world: World) -> None:
        rng, name = self.rng, self._name(world)
        again = None if rng.random() < 0.06 else rng.choice((0.0, 0.3, rng.uniform(0.0, 15.0)))
        what = rng.choice(("time", "stop", "steps", "commits", "commits"))
        self.words.append(f"{name} ends by {what}, starts again after {again}")
        if what in {"time", "stop"}:
            world.loop.call_later(rng.uniform(0.0, self.quiet), self._end, world, name, again, what == "stop")
            return
        role = world.scene.roles[name]
        most = _BUSY[role] if what == "steps" else _COMMITS[role]
        world.due.setdefault(name, set()).add((what, rng.randint(1, most)))
        world.again.setdefault(name, []).append(again)

    def _end(self, world: World, name: str, again: float | None, stop: bool) -> None:
        world.disturb(name, again)
        if again is not None:
            world.loop.call_later(again + 0.05, world.start, name)
        if stop:
            asyncio.ensure_future(world.stop(name))  # noqa: RUF006 - the loop outlives it
        else:
            world.kill(name)

    def _fill(self, world: World) -> None:
        rng, name = self.rng, self._name(world)
        start, seconds = rng.uniform(0.0, self.quiet), rng.choice((0.01, 1.0, 10.0))
        self.words.append(f"disk of {name} is full from {start:.2f} for {seconds}")

        def switch(full: bool) -> None:
            world.disks[name].full = full

        for moment, full in ((start, True), (start + seconds, False)):
            world.loop.call_later(moment, switch, full)
        world.loop.call_later(start, world.disturb, name, seconds)

    def _cut(self, world: World) -> None:
        rng = self.rng
        name, other, start = self._name(world), rng.choice(("", self._name(world))), rng.uniform(0.0, self.quiet)
        end = min(start + rng.choice((0.2, 5.0, 20.0)), self.quiet)
        world.links.cuts.append((name, other, start, end))
        self.words.append(f"{name} and {other or 'all'} are cut off from {start:.2f} to {end:.2f}")

    def _interrupt(self, world: World) -> None:
        """Kill the last scrambler before the deadline, and start it again when targets have reported."""
        name = world.scene.document.chain[-1].name
        first, last = self.rng.uniform(20.0, COLLECT), COLLECT + PATIENCE * self.rng.uniform(1.9, 2.9)
        self.words.append(f"{name} is down from {first:.2f} to {last:.2f}")
        world.loop.call_later(first, self._end, world, name, last - first, False)  # noqa: FBT003

    def _restore(self, world: World) -> None:
        """Kill a scrambler, most often the first one, or a target; start it again from an older state."""
        names = [name for name in world.scene.roles if name.startswith(("scrambler", "target"))]
        name = self.rng.choice(("scrambler-1", "scrambler-1", self.rng.choice(names)))
        first = self.rng.uniform(0.0, 50.0)
        last, older = first + self.rng.uniform(0.0, 25.0), Disk.new(world)
        world.restored.add(name)
        self.words.append(f"{name} is restored at {last:.2f} to its state of {first:.2f}")
        world.loop.call_later(first, lambda: world.disks[name].backup(older))

        def restore() -> None:
            world.kill(name)
            world.disks[name] = older
            world.start(name)

        world.loop.call_later(last, restore)

    def _phones(self, world: World) -> None:
        rng, new = self.rng, world.scene
        missing = set(rng.sample(range(PEOPLE), rng.choice((0, 0, 1, 3, 9))))
        cheats = rng.random() < 0.35
        burst = rng.random() < 0.3
        for person, messages in enumerate(new.phones):
            start = 1.0 + (rng.uniform(0, 2.0) if burst else rng.uniform(0.0, COLLECT * 0.9))
            if cheats and person < ODD:
                self._cheat(world, person, start)
            elif person not in missing:
                world.loop.create_task(world.phone(messages, start))
                if rng.random() < 0.1:  # the phone forgets that it has sent
                    world.loop.create_task(world.phone(messages, start + rng.uniform(0.0, 30.0)))
            else:
                self.words.append(f"person {person} sends nothing")

    def _cheat(self, world: World, person: int, start: float) -> None:
        new, kind = world.scene, self.rng.choice(("second", "bare", "copy", "anew"))
        messages = new.odd[kind, person]
        self.words.append(f"person {person} cheats: {kind}")
        if kind in {"second", "anew"}:
            world.loop.create_task(world.phone(new.phones[person], start))
        world.loop.create_task(world.phone(messages, start + self.rng.uniform(0.0, 5.0)))


# Lies of services


def _altered(messages: list[bytes], lie: str, forge: Callable[[int], list[bytes]]) -> list[bytes]:
    if lie == "drops":
        return messages[1:]
    if lie == "repeats":
        return [*messages, messages[0]]
    if lie == "swaps" and len(messages) > 1:
        return [messages[0], *messages[:-1]]
    if lie == "replaces":
        return [messages[0], *forge(len(messages) - 1)]
    return messages


@contextmanager
def lying(world: World, wrong: Wrong | None) -> Iterator[None]:
    """Let the services that lie do so; `wrong` changes the other services too."""
    shuffled, send, sealed = Scrambler._shuffled, Scrambler._send, target._sealed

    def false_shuffled(
        self: Scrambler, document: Any, number: int, batch: int, messages: list[bytes], trail: Any, sources: int
    ) -> dict[str, bytes]:
        process = HERE.get()
        lie = "" if process is None else process.lie
        if not lie or len(messages) < 2:
            return shuffled(self, document, number, batch, messages, trail, sources)
        world.lied.add(number)
        sources -= lie in {"miscounts", "hides"}
        messages = messages[1:] if lie == "hides" else messages
        bodies, hop = shuffled(self, document, number, batch, messages, trail, sources), self._hop(document)
        onions, forged = self._onions[document.id, number], dict[str, bytes]()
        for name, body in bodies.items():
            head = head_in(body)
            part = batches.messages_of(body, head, size=None)
            places = [one.name for one in document.step(number).targets]

            def forge(count: int, name: str = name, places: list[str] = places) -> list[bytes]:
                if hop + 1 < len(document.chain):
                    return [onions.wrap(0, onions.inner(0, None, None), after=hop) for _ in range(count)]
                return [onions.inner(places.index(name), None, None) for _ in range(count)]

            part = _altered(part, lie, forge) if part else part
            new = batches.head_of(document, number, batch, self.name, name, part, trail=head.trail)
            forged[name] = batches.pack(new, part, self.secret.sign)
        return forged

    async def false_send(self: Scrambler, task: Any, number: int, batch: int, receiver: str) -> None:
        process, place = HERE.get(), next(one for one in self._receivers(task.document, number) if one.name == receiver)
        row = (task.document.id, number, batch, receiver)
        stored = await self.store.do(lambda db: db.execute(_LEAVES, row).fetchone())
        await send(self, task, number, batch, receiver)
        if stored is None or not batch or process is None or process.lie != "sends again":
            return
        world.lied.add(number)
        head = head_in(stored[0])
        part, last, other = batches.messages_of(stored[0], head, size=None), head.trail[-1], batch + 50
        counts = (last.came, last.sources, last.sent)
        link = batches.Link.signed(self.secret.sign, task.document.id, number, other, self.name, *counts)
        trail = (*head.trail[:-1], link)
        again = batches.head_of(task.document, number, other, self.name, receiver, part, trail=trail)
        assert self._next is not None
        body = batches.pack(again, part, self.secret.sign)
        await self.deliver(self._next, place, f"/tasks/{task.document.id.hex()}/batches", body, task)

    def false_sealed(inbox: Any, content: dict[str, Any], sign: Any) -> bytes:
        process = HERE.get()
        lie = "" if process is None else process.lie
        if lie and content.get("batches"):
            world.lied.add(inbox.number)
            first = content["batches"][0]
            first["messages"] += {"more messages": 1, "fewer messages": -1}.get(lie, 0)
            first["valid"] += {"more tokens": 1, "fewer tokens": -1}.get(lie, 0)
            first |= {name: max(first[name], 0) for name in ("messages", "valid")}
            if lie == "omits a batch":
                content["batches"] = content["batches"][1:]
            if lie == "another total":
                content["closed"] = (content["closed"] or 0) + 1
        return sealed(inbox, content, sign)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scrambler, "_shuffled", false_shuffled)
        patch.setattr(Scrambler, "_send", false_send)
        patch.setattr(target, "_sealed", false_sealed)
        if wrong is not None:
            wrong(patch)
        yield


# One run


def _without_faults(world: World) -> None:
    for name in world.scene.roles:
        world.start(name)
    for person, messages in enumerate(world.scene.phones):
        world.loop.create_task(world.phone(messages, 1.0 + person))


class Run:
    """A run of a seed: `problems` is empty if every rule holds."""

    def __init__(self, seed: int, *, faultless: bool = False, wrong: Wrong | None = None) -> None:
        faults = Faults(seed)
        self.seed, self.faults = seed, faults
        new = scene(seed % len(SCENES))
        self.world = world = World(new, seed, Links(quiet=0.0) if faultless else faults.links)
        world.run(_without_faults if faultless else faults.plan, lying(world, wrong))
        self.problems = [*world.problems, *check(world)]
        self.digest = hashlib.sha256("\n".join(world.trace).encode()).hexdigest()

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *(f"  fault: {one}" for one in self.faults.words)]
        return "\n".join([*lines, *(f"  problem: {one}" for one in self.problems)])
