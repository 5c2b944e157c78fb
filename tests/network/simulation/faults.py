"""What goes wrong in one simulation, drawn at random: when a node starts, dies, lies; what the network and disks do."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hushuffle.network.nodes.connections import Message
from hushuffle.network.nodes.node import Places
from network.simulation.hosts import Process
from network.simulation.liars import LIES, FalseScrambler, Impostor, false_part
from network.simulation.world import World

KINDS: Final = (
    ("kill", 6),
    ("cut", 5),
    ("partition", 4),
    ("full", 2),
    ("stop", 1),
    ("twin", 2),
    ("portal", 2),
    ("late", 3),
    ("skew", 1),
    ("impostor", 3),
    ("stranger", 2),
    ("silence", 1),
    ("false scrambler", 5),
    ("false compute", 1),
    ("weak document", 1),
    ("again", 2),
)
"""What can go wrong, and how often, relative to each other."""

Action = Callable[[Process | None], None]


@dataclass(eq=False)
class Faults:
    """The plan of faults of one simulation.

    Args:
        world: of the simulation.
        random: decides.
        kinds: what may go wrong.
    """

    world: World
    random: random.Random
    kinds: tuple[tuple[str, int], ...] = KINDS
    _watched: dict[tuple[str, str], list[tuple[int, Action]]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    starts: dict[str, float] = field(default_factory=dict)
    twins: dict[str, float] = field(default_factory=dict)

    def plan(self, count: int) -> None:
        """Start all nodes, and plan `count` faults."""
        world, document = self.world, self.world.scene.document
        self.starts = {name: self.random.uniform(0, min(2.0, document.patience / 4)) for name in world.scene.addresses}
        for name in document.places:
            if self.random.random() < 0.3:
                self.starts[name] += self.random.uniform(0, document.collect / 3)
        kinds = self.kinds
        if self.random.random() < 0.5:  # few kinds of faults, more of each
            kinds = tuple(self.random.sample(self.kinds, self.random.randint(1, 3)))
        names, weights = zip(*kinds, strict=True)
        for kind in self.random.choices(names, weights, k=count):
            getattr(self, f"_{kind.replace(' ', '_')}")()
        if self.random.random() < 0.3:
            self._share_limits()
        for name, start in self.starts.items():
            world.fine_from[name] = max(world.fine_from.get(name, 0.0), start)
            world.later(start, name)
        for name, seconds in self.twins.items():
            world.later(self.starts[name] + seconds, name)
        world.watch = self._watch

    def _watch(self, process: Process, what: str, count: int) -> None:
        watched = self._watched.get((process.name, what), [])
        for due in [one for one in watched if one[0] == count]:
            watched.remove(due)  # once, whatever its later lives do
            due[1](process)

    def _name(self, *roles: str) -> str:
        names = sorted(self.world.scene.addresses)
        return self.random.choice([name for name in names if self.world.scene.role(name) in roles] or ["result"])

    def _any(self) -> str:
        return self._name(self.random.choice(("source", "source", "scrambler", "scrambler", "compute", "result")))

    def _when(self, name: str, action: Action, words: str) -> None:
        """Let something happen at a time, or as a node does something for the k-th time."""
        what = self.random.choice(("time", "sent", "taken", "calls", "sent"))
        if what == "time":
            seconds = self.random.choice((self.random.uniform(0, 5), self.random.uniform(0, 80)))
            self.world.due += 1
            self.world.loop.call_later(seconds, self._now, name, action)
            self.said.append(f"{words} at {seconds:.2f} s")
            return
        count = self.random.choice((1, 1, 2, 3, self.random.randint(1, 30)))
        self._watched.setdefault((name, what), []).append((count, action))
        self.said.append(f"{words} at {what} {count}")

    def _now(self, name: str, action: Action) -> None:
        self.world.due -= 1
        living = self.world.living(name)
        action(living[-1] if living else None)

    def _hurt(self, name: str, until: float) -> None:
        """Say that a node cannot be relied on before some time."""
        self.world.fine_from[name] = max(self.world.fine_from.get(name, 0.0), until)

    def _kill(self) -> None:
        name, wipe = self._any(), self.random.random() < 0.15
        again = self.random.choice((None, 0.0, 1.0, self.random.uniform(0, 30)))

        def action(process: Process | None) -> None:
            world = self.world
            if process is None:
                return
            lasting = again is None or wipe or not self._resumes(process, again)
            world.kill(process)
            self._hurt(name, math.inf if lasting else world.loop.time() + (again or 0.0))
            if wipe:
                world.wiped.add(name)
            if again is not None:
                world.later(again, name, wipe=wipe)

        self._when(name, action, f"kill {name}, again {again}, wipe {wipe}")

    def _resumes(self, process: Process, seconds: float) -> bool:
        """Say whether a node that is killed now, and started again after some time, goes on as if nothing had been."""
        role = self.world.scene.role(process.name)
        if role == "compute":  # a batch that breaks off is lost
            return not process.wires and seconds <= 1.0
        released = any(
            isinstance(frame, Message)
            for talk in self.world.network.talks
            if talk.client is process
            for frame in talk.sent_by(process)
        )
        return role in {"source", "result"} or (role == "scrambler" and not released)

    def _again(self) -> None:
        """Kill a scrambler at some moment, and start it and all its sources again."""
        name, world = self._name("scrambler"), self.world
        if world.scene.role(name) != "scrambler":
            return
        own = [batch for _number, batch in world.scene.document.batches_of(name)]
        sources = sorted({holder for batch in own for holder in batch.holders})

        def action(process: Process | None) -> None:
            if process is None:
                return
            world.kill(process)
            for end in (name, *sources):
                self._hurt(end, math.inf)
            world.later(0.5, name)
            for source in sources:
                world.later(self.random.uniform(0.5, 3.0), source)

        self._when(name, action, f"kill {name}, start it and its sources again")

    def _cut(self) -> None:
        name = self._any()

        def action(process: Process | None) -> None:
            if process is None or not process.wires:
                return
            wire = self.random.choice(process.wires)
            ends = (wire.process.name, wire.other.process.name)
            source = next((end for end in ends if self.world.scene.role(end) == "source"), None)
            for end in ends if source is None else (source,):
                self._hurt(end, self.world.loop.time() if end == source else math.inf)
            self.world.note(f"cut {wire.talk.number}")
            wire.cut()

        self._when(name, action, f"cut {name}")

    def _partition(self) -> None:
        name, other = self._any(), self._any()
        alone = self.random.random() < 0.5
        seconds = self.random.choice((0.5, 3.0, self.random.uniform(0, 60)))
        addresses = [self.world.scene.addresses[end] for end in ((name,) if alone else (name, other))]

        def action(_process: Process | None) -> None:
            now = self.world.loop.time()
            self.world.network.cuts[frozenset(addresses)] = now + seconds
            for end in (name,) if alone else (name, other):
                self._hurt(end, now + seconds if self.world.scene.role(end) == "source" else math.inf)

        self._when(name, action, f"partition {name} {'' if alone else other} for {seconds:.2f} s")

    def _full(self) -> None:
        name = self._name(self.random.choice(("source", "scrambler")))
        seconds = self.random.choice((0.0, 1.0, 20.0))

        def action(process: Process | None) -> None:
            if process is None:
                return
            process.full = True
            role, world = self.world.scene.role(name), self.world
            self._hurt(name, world.loop.time() + seconds + 0.1 if role == "source" else math.inf)
            world.due += 1

            def room() -> None:
                world.due -= 1
                process.full = False
                if role == "source" and not world.living(name):
                    world.start(name)

            world.loop.call_later(seconds + 0.1, room)

        self._when(name, action, f"full disk of {name} for {seconds} s")

    def _stop(self) -> None:
        name = self._any()

        def action(process: Process | None) -> None:
            if process is not None and hasattr(process.node, "stop"):
                self._hurt(name, math.inf)
                process.node.stop()

        self._when(name, action, f"stop {name}")

    def _twin(self) -> None:
        name, seconds = self._name("source"), self.random.choice((0.0, self.random.expovariate(1)))
        if self.random.random() < 0.5:
            self.twins[name] = seconds
            self.said.append(f"a twin of {name} starts {seconds:.2f} s after it")
        else:
            self._when(name, lambda _process: self.world.later(seconds, name), f"twin of {name}")

    def _portal(self) -> None:
        name, times = self._name("source"), self.random.randint(1, 3)
        for server in self.world.scene.document.servers:
            self.world.network.portals[name, server] = times
        self.said.append(f"a portal answers {name} {times} times")

    def _late(self) -> None:
        name = self._any()
        self.starts[name] += self.random.uniform(0, 60)
        if self.world.scene.role(name) == "compute":
            self._hurt(name, math.inf)
        self.said.append(f"{name} starts at {self.starts[name]:.2f} s")

    def _skew(self) -> None:
        name, most = self._any(), self.world.scene.document.patience / 4
        seconds = self.random.choice((self.random.uniform(-most, most), self.random.uniform(-100, 100)))
        self.world.skews[name] = seconds
        if abs(seconds) > most:
            self._hurt(name, math.inf)
        self.said.append(f"the clock of {name} is wrong by {seconds:.1f} s")

    def _impostor(self) -> None:
        name = self._name("source")
        self.world.impostors[name] = Impostor
        self.world.liars.add(name)
        self.said.append(f"{name} says what it likes")

    def _stranger(self) -> None:
        name = f"stranger-{len(self.starts)}"
        self.world.impostors[name] = Impostor
        self.world.liars.add(name)
        self.starts[name] = self.random.uniform(0, 20)
        self.said.append(name)

    def _silence(self) -> None:
        """Let many connect to a server from a few addresses, and say nothing."""
        world, name = self.world, self._name("scrambler", "compute", "result")
        place, count = world.scene.document.servers[name].place, self.random.randint(1, 150)
        crowd = [world.outsider(f"10.0.8.{number}") for number in range(self.random.randint(1, 9))]
        seconds = self.random.uniform(0, 10)
        for _ in range(count):
            world.loop.call_later(seconds, world.network.knock, self.random.choice(crowd), place)
        self.said.append(f"{count} silent connections to {name} at {seconds:.2f} s")

    def _false_scrambler(self) -> None:
        name, lie = self._name("scrambler"), self.random.choice(LIES)
        if self.world.scene.role(name) != "scrambler" or name in self.world.liars:
            return
        self.world.liars.add(name)
        self.world.lies[name] = lie
        self.world.network.lies[name] = FalseScrambler(self.world.scene.document, lie, self.random)
        self.said.append(f"{name} lies: {lie}")

    def _false_compute(self) -> None:
        name = self._name("compute")
        self.world.liars.add(name)
        self.world.mint.lies[name] = false_part(self.random)
        self.said.append(f"{name} lies to the result")

    def _weak_document(self) -> None:
        """Let a scrambler hold another document, that protects less; all but one bit of its digest agrees."""
        world, name = self.world, self._name("scrambler")
        document = world.scene.document
        if world.scene.role(name) != "scrambler":
            return
        values = document.model_dump()
        for step in values["steps"]:
            step |= {"min_batch": 1, "dummies": 0, "capped": False}
        weak = type(document).model_validate(values)
        vars(weak)["digest"] = document.digest[:-1] + bytes([document.digest[-1] ^ 1])
        world.documents[name] = weak
        self._hurt(name, math.inf)
        self.said.append(f"{name} holds a weaker document")

    def _share_limits(self) -> None:
        """Let sources share few places, as nodes of one process do."""
        self.world.places = Places()
        self.said.append("sources share places")
