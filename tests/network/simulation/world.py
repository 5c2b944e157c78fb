"""One simulation: nodes as processes that start, are killed and start again, and everything that was seen of them."""

from __future__ import annotations

import asyncio
import hashlib
import random
import shutil
import tempfile
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hushuffle.errors import HushuffleError
from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.connections import Control, Frame
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Places
from hushuffle.network.nodes.result import ResultNode
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.source import SourceNode
from network.simulation.clock import Loop
from network.simulation.hosts import HERE, DiedError, Process, machine, secret
from network.simulation.mint import Mint
from network.simulation.network import Listener, Network
from network.simulation.plans import Scene, seal_key
from network.simulation.wires import Wire, badge

FOR_EVER: Final = 5_000.0
"""Seconds of the simulation after which nothing may be left."""

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it


class Ledger(Journal):
    """A journal that the trace of the simulation hears."""

    def __init__(self, world: World, process: Process) -> None:
        super().__init__(node=process.name)
        self._world, self._process = world, process

    def event(self, what: str, **facts: Any) -> None:
        self._world.note(f"{self._process} {what} {sorted(facts.items())}")


@dataclass(eq=False)
class World:
    """Everything of one simulation.

    `lives` are all processes that ever were; `fine_from[name]` is the time from which nothing is wrong with a node any
    more (infinite: for ever); `trace` says in order what happened.
    """

    scene: Scene
    loop: Loop
    network: Network
    mint: Mint
    folder: Path
    random: random.Random
    places: Places | None = None
    """Where sources share a process."""
    lives: list[Process] = field(default_factory=list)
    fine_from: dict[str, float] = field(default_factory=dict)
    liars: set[str] = field(default_factory=set)
    lies: dict[str, str] = field(default_factory=dict)
    """How the false scramblers lie."""
    wiped: set[str] = field(default_factory=set)
    """Who lost its disk."""
    documents: dict[str, RunDocument] = field(default_factory=dict)
    """Who holds another document."""
    skews: dict[str, float] = field(default_factory=dict)
    impostors: dict[str, Callable[[World, Process], Any]] = field(default_factory=dict)
    watch: Callable[[Process, str, int], None] | None = None
    trace: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    """Tasks that a node left behind when it ended."""
    due: int = 0
    """Starts that are still to come."""

    def note(self, line: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.loop.time():.6f} {line}")

    def saw(self, what: str, wire: Wire, frame: Frame) -> None:
        """Add a frame to the trace; a seal by its number."""
        if isinstance(frame, Control):
            words = f"{frame.kind.name} {frame.step} {frame.reason.name} {frame.numbers}"
        else:
            made = self.mint.of(frame.sealed)
            known = "?" if made is None else made.number
            words = f"MESSAGE {frame.step} {frame.slot} {frame.target} seal {known}"
        self.note(f"{wire.process} {what} {words} ({wire.talk.number}: {wire.other.process})")

    def state(self, name: str) -> Path:
        """Return the folder of a node's disk."""
        return self.folder / name

    def start(self, name: str, *, wipe: bool = False) -> Process:
        """Start a node; `wipe`: on an empty disk."""
        if wipe:
            shutil.rmtree(self.state(name), ignore_errors=True)
        life = sum(process.name == name for process in self.lives)
        process = Process(
            name=name,
            life=life,
            address=self.scene.addresses.get(name, "10.0.9.9"),
            random=random.Random(self.random.getrandbits(64)),
            skew=self.skews.get(name, 0.0),
            started=self.loop.time(),
            watch=self.watch,
        )
        self.lives.append(process)
        self.note(f"{process} starts")
        context = copy_context()
        context.run(HERE.set, process)
        self.loop.create_task(self._live(process), context=context)
        return process

    def later(self, seconds: float, name: str, *, wipe: bool = False) -> None:
        """Start a node after some time."""
        self.due += 1

        def begin() -> None:
            self.due -= 1
            self.start(name, wipe=wipe)

        self.loop.call_later(seconds, begin)

    async def _live(self, process: Process) -> None:
        try:
            process.node = self._built(process)
            process.outcome = await process.node.run()
        except DiedError as error:
            process.error = error
        except asyncio.CancelledError as error:
            process.error = error
        except Exception as error:  # noqa: BLE001 - the checks ask what it was
            process.error = error
            words = str(error) if isinstance(error, HushuffleError) else repr(error)
            self.note(f"{process} ends: {words}")
        else:
            self.note(f"{process} ends well")
        finally:
            process.ended = self.loop.time()
            for listener in list(process.listeners):
                listener.close()
            self.loop.call_later(0.5, self._look, process)

    def _look(self, process: Process) -> None:
        """See what a node has left that ended well or ill, but of itself."""
        if process.alive:
            self.leaks += [f"{process} left {task.get_coro()!r}" for task in process.tasks if not task.done()]

    def outsider(self, address: str) -> Process:
        """Return a process that is no node."""
        return Process(name="outsider", life=0, address=address, random=self.random)

    def _built(self, process: Process) -> Any:
        """Return the real node, or who plays its part."""
        name, scene = process.name, self.scene
        document = self.documents.get(name, scene.document)
        if name in self.impostors:
            return self.impostors[name](self, process)
        journal, identity = Ledger(self, process), badge(name)
        role = scene.role(name)
        if role == "source":
            options: dict[str, Any] = {"state": self.state(name), "journal": journal, "places": self.places}
            return SourceNode(document, identity, scene.people[name], key=secret(f"coins of {name}"), **options)
        address, port = document.servers[name].place
        where: Any = Listener(self.network, process, (address, port))
        if role == "scrambler":
            return ScramblerNode(document, identity, where, journal=journal, state=self.state(name))
        kind = ComputeNode if role == "compute" else ResultNode
        return kind(document, identity, where, key=seal_key(name), journal=journal, state=self.state(name))

    def kill(self, process: Process) -> None:
        """End a process at once, wherever it is."""
        if process.ended is not None or not process.alive:
            return
        self.note(f"{process} is killed")
        process.alive = False
        for listener in list(process.listeners):
            listener.close()
        for wire in list(process.wires):
            wire.abort()
        for task in process.tasks:
            task.cancel()

    def living(self, name: str) -> list[Process]:
        """Return the processes of a node that run."""
        return [process for process in self.lives if process.name == name and process.alive and process.ended is None]

    @property
    def left(self) -> list[asyncio.Task[Any]]:
        """Tasks of all processes that are not done."""
        return [task for process in self.lives for task in process.tasks if not task.done()]

    @property
    def digest(self) -> str:
        """SHA-256 of the trace."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


def run(world_of: Callable[[Loop, Path], World], *, seed: int, prepare: Callable[[World], None]) -> World:
    """Run a world to its end, and return it.

    Args:
        world_of: makes it.
        seed: of delays and pauses.
        prepare: plans starts and faults.
    """
    pauses = random.Random(f"pauses {seed}")
    loop = Loop(lambda: pauses.expovariate(200.0))
    folder = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None, prefix="hushuffle-simulation-"))
    try:
        world = world_of(loop, folder)
        world.network.seen = world.saw

        async def whole() -> None:
            prepare(world)
            while (world.due or world.left) and loop.time() < FOR_EVER:  # noqa: ASYNC110 - time costs nothing here
                await asyncio.sleep(3.0)
            await asyncio.sleep(world.network.goodbye + 1.0)

        with machine(loop.time), world.mint.working():
            random.seed(seed)
            loop.run_until_complete(whole())
            loop.run_until_complete(loop.shutdown_asyncgens())
        return world
    finally:
        loop.close()
        shutil.rmtree(folder, ignore_errors=True)
