"""Small runs for the tests of nodes: documents written by hand, identities, clients that say what they like."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.connections import Connection, Control, Frame, Kind, connect
from hushuffle.network.nodes.document import Batch, RunDocument, Server, Step
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.intake import Counts
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.listening import listen
from hushuffle.network.nodes.result import ResultNode
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Entry, Person, SourceNode, entries_of
from hushuffle.plans import GroupingQuery, GroupingSet, generate_table
from hushuffle.queries import Aggregate
from hushuffle.randomness import Randomness

Found = TypeVar("Found")

COINS: Final = bytes(range(32))
LONG: Final = 120.0
"""Seconds that nothing in these tests takes unless it hangs."""


class Clock(asyncio.SelectorEventLoop):
    """A loop of real time that a test may put forward: see `later`."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def later(seconds: float) -> None:
    """Let so much time pass for all nodes of a test: nobody waits, and a busy machine is no faster than the clock."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clock)
    loop.ahead += seconds


@cache
def authority() -> Authority:
    """Return one authority for all tests: keys take time."""
    return Authority(days=1)


@cache
def identity(name: str) -> Identity:
    """Return a good identity."""
    return authority().issue(name)


def shifted(name: str, **shift: float) -> Identity:
    """Return an identity whose time of validity is moved."""
    return authority().issue(name, shift=dt.timedelta(**shift))


@cache
def seal_key(name: str) -> SealKey:
    """Return the secret seal key of a node."""
    del name
    return SealKey.generate()


def bounded(work: Coroutine[Any, Any, Found]) -> Found:
    """Run to the end, or fail."""
    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(asyncio.wait_for(work, 3 * LONG))


async def until(done: Callable[[], object]) -> None:
    """Wait until something holds, or fail."""
    async with asyncio.timeout(LONG):
        while not done():  # noqa: ASYNC110 - what is waited for is no event
            await asyncio.sleep(0.001)


class Case:
    """A run with everything that its nodes need."""

    def __init__(self, document: RunDocument, sockets: dict[str, socket.socket], people: int) -> None:
        self.document, self.sockets = document, sockets
        self.table = generate_table(aggregate_of(document).query, people, seed=1)
        self.journals: dict[str, Journal] = {}

    def journal(self, name: str) -> Journal:
        return self.journals.setdefault(name, Journal(node=name))

    def people(self, name: str) -> tuple[Person, ...]:
        """Return the records of a source, one for each place: source-3 holds row 3."""
        number = int(name.split("-")[1])
        row = np.array([values[number] for values in self.table.values()], dtype=np.float64)
        return tuple(Person(record=number, places={one[0]: one[1:]}, row=row) for one in self.document.places[name])

    def entries(self, name: str, people: Sequence[Person] | None = None) -> tuple[Entry, ...]:
        """Return what a source has to say; `people`: others than its own."""
        steps = range(1, len(self.document.steps) + 1)
        return tuple(entries_of(self.document, self.people(name) if people is None else people, steps, None))

    def source(self, name: str, folder: Path) -> SourceNode:
        return SourceNode(
            self.document,
            identity(name),
            self.people(name),
            key=COINS,
            state=folder / "state",
            journal=self.journal(name),
        )

    def scrambler(
        self, name: str = "scrambler-1-1", *, rng: Randomness | None = None, state: Path | None = None
    ) -> ScramblerNode:
        return ScramblerNode(
            self.document, identity(name), self.sockets[name], journal=self.journal(name), rng=rng, state=state
        )

    def compute(self, name: str = "compute-1-1") -> ComputeNode:
        where = self.sockets[name]
        return ComputeNode(self.document, identity(name), where, key=seal_key(name), journal=self.journal(name))

    def result(self) -> ResultNode:
        where = self.sockets["result"]
        return ResultNode(self.document, identity("result"), where, key=seal_key("result"), journal=self.journal("r"))

    async def client(self, name: str, to: str, *, who: Identity | None = None) -> Connection:
        """Return a connection of `name` to a node."""
        loop, document = asyncio.get_running_loop(), self.document
        place, layout = document.servers[to].place, document.layout
        return await connect(to, place, who or identity(name), layout=layout, patience=LONG, until=loop.time() + LONG)

    async def say(self, name: str, to: str, frames: Sequence[Frame]) -> Control:
        """Send frames and return the answer."""
        connection = await self.client(name, to)
        try:
            await connection.send(*frames)
            return await connection.answer()
        finally:
            await connection.close()

    @asynccontextmanager
    async def played(self, name: str, play: Callable[[Connection], Awaitable[None]]) -> AsyncIterator[Journal]:
        """Put a function of the test in the place of a node."""
        journal, context, patience = Journal(node=name), identity(name).server(), self.document.patience
        where, layout = self.sockets[name], self.document.layout
        task = asyncio.create_task(listen(where, context, play, layout=layout, patience=patience, journal=journal))
        try:
            yield journal
        finally:
            task.cancel()
            await asyncio.wait([task])

    @asynccontextmanager
    async def tapped(self, *names: str) -> AsyncIterator[list[tuple[str, str, Frame]]]:
        """Put nodes that take everything in the place of others; give what they were sent: to, from, frame."""
        heard: list[tuple[str, str, Frame]] = []

        def tap(name: str) -> Callable[[Connection], Awaitable[None]]:
            async def play(connection: Connection) -> None:
                while (frame := await connection.receive()) is not None:
                    heard.append((name, connection.peer, frame))
                    if isinstance(frame, Control):
                        await connection.send(Control(Kind.ACCEPTED, frame.step))

            return play

        async with AsyncExitStack() as stack:
            for name in names:
                await stack.enter_async_context(self.played(name, tap(name)))
            yield heard


def aggregate_of(document: RunDocument) -> Aggregate:
    """Return the query of a run with grouping sets, as nodes know it."""
    assert isinstance(document.query, Aggregate)
    return document.query


def query(sets: int = 1, values: Sequence[str] = ("x",), groups: int = 6) -> GroupingQuery:
    """Return a query with three partitions."""
    names = ("age", "size", "place")[:sets]
    return GroupingQuery(
        grouping_sets=tuple(GroupingSet(columns=(name,), sizes=(groups,)) for name in names),
        values=tuple(values),
        functions=("count", "sum", "avg", "min", "max") if values else ("count",),
        partitions=3,
    )


def step(number: int, batches: Sequence[Sequence[str]], *, scrambled: bool = True, **changes: Any) -> Step:
    """Return a step with three targets."""
    made = tuple(
        Batch(scrambler=f"scrambler-{number}-{place}" if scrambled else None, holders=tuple(own))
        for place, own in enumerate(batches, start=1)
    )
    computes = tuple(f"compute-{number}-{target}" for target in (1, 2, 3))
    values: dict[str, Any] = {"name": f"step {number}", "sigma": 0.5, "min_batch": 1, "dummies": 2 if scrambled else 0}
    return Step(computes=computes, batches=made, **(values | changes))


def holders(count: int, *, start: int = 0) -> list[str]:
    """Return the names of sources."""
    return [f"source-{row}" for row in range(start, start + count)]


@contextmanager
def case(*steps: Step, values: Sequence[str] = ("x",), groups: int = 6, **changes: Any) -> Iterator[Case]:
    """Give a run of these steps; one of three sources behind one scrambler by default."""
    parts = steps or (step(1, [holders(3)]),)
    names = ["result"]
    for part in parts:
        names += [*part.computes, *(batch.scrambler for batch in part.batches if batch.scrambler is not None)]
    sockets = {name: socket.create_server(("127.0.0.1", 0), backlog=64) for name in dict.fromkeys(names)}
    servers = {
        name: Server(
            address=f"127.0.0.1:{own.getsockname()[1]}",
            seal=None if name.startswith("scrambler") else seal_key(name).public.text,
        )
        for name, own in sockets.items()
    }
    rows = {int(name.split("-")[1]) for part in parts for batch in part.batches for name in batch.holders}
    options: dict[str, Any] = {
        "run": "5e" * 16,  # the same coins every time
        "plan": "none",
        "people": max(rows) + 1,
        "query": Aggregate.of(query(len(parts), values, groups)),
        "steps": parts,
        "result": "result",
        "servers": servers,
        "message": 256,
        "collect": 60.0,
        "patience": 30.0,
        "least": 0.5,
    }
    try:
        document = RunDocument(**(options | changes))
        yield Case(document, sockets, document.people)
    finally:
        for own in sockets.values():
            own.close()


def adding_up(step: Step, node: int, sources: Sequence[int], *, targets: int = 3) -> Counts:
    """Return the counts of one target, as they are where all messages and dummies came."""
    return tuple((own, (own + step.dummies + targets - 1 - node) // targets if own else 0) for own in sources)


def plain(arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, list[float]]:
    """Return arrays as lists."""
    return {name: values.tolist() for name, values in arrays.items()}
