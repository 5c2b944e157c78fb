"""What the wire and the mint say of a simulation, without asking the nodes: who sent, took and counted what."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np

from hushuffle.network.nodes.connections import Control, Kind, Message
from hushuffle.network.nodes.seals import KEY
from hushuffle.network.nodes.source import coins
from hushuffle.queries import Aggregate
from network.simulation.hosts import Process, secret
from network.simulation.wires import Talk
from network.simulation.world import World

_RECORD: Final = struct.Struct("<id")
_POINT: Final = struct.Struct("<2d")


class Take:
    """What one life of a target accepted on one connection."""

    def __init__(self, talk: Talk) -> None:
        self.talk, self.messages = talk, list[Message]()
        self.end: Control | None = None
        for frame in talk.reached(talk.server):
            if isinstance(frame, Control):
                self.end = frame
                break
            self.messages.append(frame)


class Evidence:
    """Facts of a finished simulation."""

    def __init__(self, world: World) -> None:
        self.world, self.document = world, world.scene.document

    @cached_property
    def _talks(self) -> dict[Process, list[Talk]]:
        """The connections of each server."""
        found: dict[Process, list[Talk]] = defaultdict(list)
        for talk in self.world.network.talks:
            found[talk.server].append(talk)
        return found

    @cached_property
    def _calls(self) -> dict[Process, list[Talk]]:
        """The connections of each client."""
        found: dict[Process, list[Talk]] = defaultdict(list)
        for talk in self.world.network.talks:
            found[talk.client].append(talk)
        return found

    def calls(self, client: Process) -> list[Talk]:
        """Return the connections that one life of a node made."""
        return self._calls.get(client, [])

    def talks(self, server: Process) -> list[Talk]:
        """Return the connections to one life of a server."""
        return self._talks.get(server, [])

    def lives(self, name: str) -> list[Process]:
        """Return all lives of a node."""
        return [process for process in self.world.lives if process.name == name]

    def known(self, process: Process) -> Iterator[tuple[Process, Talk]]:
        """Yield the connections that a life of a server knows of: its own, and those whose messages were kept."""
        for life in self.lives(process.name):
            if life is process or (life.life < process.life and process.name not in self.world.wiped):
                yield from ((life, talk) for talk in self.talks(life))

    def unsure(self, process: Process | None) -> bool:
        """Say whether an earlier life was killed between taking a batch and saying so: whether it was kept is open."""
        return process is not None and any(
            life is not process
            and self.said(talk, life) == float("inf")
            and any(isinstance(frame, Control) and frame.kind is Kind.END for frame in talk.reached(life))
            for life, talk in self.known(process)
        )

    def takes(self, process: Process, step: int) -> list[Take]:
        """Return what a target accepted in one step."""
        takes = []
        for life, talk in self.known(process):
            if talk.accepted_by(life):
                take = Take(talk)
                if take.end is not None and (take.messages[0] if take.messages else take.end).step == step:
                    takes.append(take)
        return takes

    def contents(self, process: Process, step: int) -> dict[bytes, bytes]:
        """Return the records that a target must have counted in one step, by the one-time keys of their seals."""
        found: dict[bytes, bytes] = {}
        for take in self.takes(process, step):
            for message in take.messages:
                made = self.world.mint.of(message.sealed)
                right = made is not None and made.step == message.step == step and made.target == process.name
                if made is not None and right and made.content is not None and self.valid(made.content, process, step):
                    found[message.sealed[:KEY]] = made.content
        return found

    def valid(self, content: bytes, process: Process, step: int) -> bool:
        """Say whether a content is a record that belongs to a target."""
        node = self.document.step(step).computes.index(process.name)
        if isinstance(self.document.query, Aggregate):
            if len(content) != _RECORD.size:
                return False
            group, value = _RECORD.unpack(content)
            groups = self.document.query.grouping_sets[step - 1][1][0]
            inside = 0 <= group < groups and group * self.document.query.partitions // groups == node
            return inside and bool(np.isfinite(value))
        return len(content) == _POINT.size and all(abs(value) < 1e100 for value in _POINT.unpack(content))

    def sent(self, process: Process, step: int) -> list[tuple[float, Talk, Message]]:
        """Return the messages of a step that a life of a node put on the wire."""
        return [
            (time, talk, frame)
            for talk in self.calls(process)
            for time, sender, frame in talk.frames
            if sender is process and isinstance(frame, Message) and frame.step == step
        ]

    def came(self, process: Process, step: int) -> Iterator[tuple[Talk, Message, bool]]:
        """Yield the messages that reached a scrambler from the holders of their places, and whether it said so."""
        number = dict(self.document.batches_of(process.name))
        batch = number.get(step)
        if batch is None:
            return
        for life, talk in self.known(process):
            accepted = talk.accepted_by(life)
            for frame in talk.reached(life):
                if isinstance(frame, Control):
                    break
                inside = frame.slot < len(batch.holders) and batch.holders[frame.slot] == talk.name
                if inside and frame.step == step and frame.target < len(self.document.step(step).computes):
                    yield talk, frame, accepted

    def ends(self, process: Process, number: int) -> list[tuple[str, Control]]:
        """Return the ends of a step that a scrambler sent, with the targets they went to."""
        return [
            (talk.server.name, frame)
            for talk in self.calls(process)
            for frame in talk.sent_by(process)
            if isinstance(frame, Control) and frame.kind is Kind.END and frame.step == number
        ]

    def ended(self, process: Process, number: int, target: int) -> bool:
        """Say whether a scrambler told one target that this was all."""
        return self.document.step(number).computes[target] in {name for name, _end in self.ends(process, number)}

    def all_ended(self, process: Process, number: int) -> bool:
        """Say whether a scrambler told all targets that this was all."""
        names = {name for name, _end in self.ends(process, number)}
        return names == set(self.document.step(number).computes)

    def said(self, talk: Talk, process: Process) -> float:
        """Return when a node first answered on a connection; infinite if it never did."""
        times = [time for time, sender, frame in talk.frames if sender is process and isinstance(frame, Control)]
        return min(times, default=float("inf"))

    def part_of(self, name: str, result: Process, step: int) -> Process | None:
        """Return the life of a compute node whose word on a step the result took."""
        for life, talk in self.known(result):
            if talk.client.name != name:
                continue
            messages = Take(talk).messages
            if not talk.accepted_by(life) or not messages:
                continue
            made = self.world.mint.of(messages[0].sealed)
            if not self.world.scene.clusters:
                return talk.client
            if made is not None and made.content is not None and struct.unpack_from("<Q", made.content)[0] == step:
                return talk.client
        return None

    def choices(self, name: str) -> dict[tuple[int, int, int], tuple[tuple[int, ...], tuple[bool, ...]]]:
        """Return where the coins of a source send each of its records, and which of the messages carry it.

        By step, batch and slot; for records with a fixed own target.
        """
        found = {}
        for entry in self.world.scene.entries(name):
            step = self.document.step(entry.step)
            rng = coins(secret(f"coins of {name}"), run=self.document.drawn, step=entry.step, records=[entry.record])
            sent, meant = step.sampling.sample([entry.own], rng=rng)
            targets = tuple(int(target) for target in np.ravel(sent))
            carries = tuple(target == entry.own and (bool(meant[0]) or not step.only_on_purpose) for target in targets)
            found[entry.step, entry.batch, entry.slot] = targets, carries
        return found

    def statistics(self, process: Process, step: int) -> dict[str, Any]:
        """Return count and sums of what a target must have found, by group."""
        assert isinstance(self.document.query, Aggregate)
        groups = self.document.query.grouping_sets[step - 1][1][0]
        count, total = [0.0] * groups, [0.0] * groups
        for content in self.contents(process, step).values():
            group, value = _RECORD.unpack(content)
            count[group] += 1
            total[group] += value
        return {"count": count, "sum": total}

    def points(self, process: Process, step: int) -> list[tuple[float, ...]]:
        """Return the points that a centroid's node must have averaged."""
        return [_POINT.unpack(content) for content in self.contents(process, step).values()]
