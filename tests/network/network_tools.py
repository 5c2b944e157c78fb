"""Nodes of a run for tests: in this process, each started when a test says so; or clients that misbehave."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.connections import Connection, Control, Frame, Kind, connect
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node
from hushuffle.network.nodes.recorder import Recorder, Trace, record_size
from hushuffle.network.nodes.result import ResultNode, RunResult
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.source import Entry, Person, SourceNode, coins, entries_of
from hushuffle.network.run import Loopback
from hushuffle.network.setup import Deployment, deploy
from hushuffle.plans import GroupStatistics, Plan, group_statistics, use_chance
from hushuffle.queries import parse_plan
from hushuffle.queries.exchange import exchange
from hushuffle.randomness import Randomness, reproducible
from runtime_cases import LONG, aggregate_of

KEY: Final = bytes(range(32))
"""Of the sources' coins."""


def plan_text(
    *,
    people: int = 12,
    seed: int = 1,
    traffic: str = "dummies = 3\nbatch = 6\nmin_batch = 4",
    sets: str = '[["age"]]',
    collect: float = 60.0,
    patience: float = 30.0,
    least: float = 0.6,
    processes: int = 1,
    more: str = "",
) -> str:
    """Return the text of a small plan with three targets."""
    return f"""
[query]
kind = "aggregate"
generated = {{ people = {people}, seed = {seed} }}
columns = {{ age = 6, sex = ["a", "b", "c"] }}
grouping_sets = {sets}
partitions = 3
{more}
[traffic]
sigma = 0.3
{traffic}
[targets]
delta = 1e-6
[network]
collect = {collect}
patience = {patience}
least = {least}
processes = {processes}
"""


class Stage:
    """All nodes of a run; real TLS over loopback, in one event loop."""

    def __init__(
        self, deployment: Deployment, loopback: Loopback, state: Path, *, authority: Authority | None = None
    ) -> None:
        self.deployment, self.document, self.loopback = deployment, deployment.document, loopback
        self.authority = authority or Authority(days=1)
        self.state = state
        for name in deployment.people:
            loopback.host(name)
        self.trace = Trace(hosts=loopback.names, cell=record_size(self.document.message))
        self.journals: dict[str, Journal] = {}
        self.nodes: dict[str, Node] = {}
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        self.identities: dict[str, Identity] = {}
        self.people: Mapping[str, Sequence[Person]] = deployment.people
        self._places = {name: where.getsockname()[:2] for name, where in loopback.private.items()}
        self.kept: Path | None = None
        """Where servers keep what they must not forget, if a test wants that."""
        self._recorder: Recorder | None = None

    async def __aenter__(self) -> Self:
        if self.loopback.public:
            self._recorder = await Recorder(self.trace, self.loopback.routes()).__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        if self._recorder is not None:
            await self._recorder.__aexit__()
        self.loopback.close()

    @property
    def scramblers(self) -> list[str]:
        """Names of the scramblers."""
        batches = [batch for step in self.document.steps for batch in step.batches]
        return [batch.scrambler for batch in batches if batch.scrambler is not None]

    @property
    def computes(self) -> list[str]:
        """Names of the compute nodes."""
        return [name for step in self.document.steps for name in step.computes]

    @property
    def sources(self) -> list[str]:
        """Names of the sources."""
        return list(self.document.places)

    def sources_of(self, scrambler: str) -> list[str]:
        """Names of the sources of a scrambler."""
        return [name for _, batch in self.document.batches_of(scrambler) for name in batch.holders]

    def identity(self, name: str) -> Identity:
        """Return the identity of a node, the same one every time."""
        if name not in self.identities:
            self.identities[name] = self.authority.issue(name, address=self.loopback.host(name))
        return self.identities[name]

    def node(self, name: str, *, identity: Identity | None = None, rng: Randomness | None = None) -> Node:
        """Make a node, ready to run."""
        own, journal = identity or self.identity(name), self.journals.setdefault(name, Journal(node=name))
        document = self.document
        if name in document.places:
            made: Node = SourceNode(document, own, self.people[name], key=KEY, state=self.state, journal=journal)
        elif name in self.deployment.seals:
            kind = ResultNode if name == document.result else ComputeNode
            key = self.deployment.seals[name]
            made = kind(document, own, self._where(name), key=key, journal=journal, state=self.kept)
        else:
            made = ScramblerNode(document, own, self._where(name), journal=journal, rng=rng, state=self.kept)
        self.nodes[name] = made
        return made

    def _where(self, name: str) -> socket.socket:
        where = self.loopback.private[name]
        if where.fileno() < 0:  # as when a process is started again
            where = self.loopback.private[name] = socket.create_server(self._places[name])
        return where

    async def kill(self, *names: str) -> None:
        """End nodes as a signal does that nobody can handle, as far as that goes within a process."""
        for name in names:
            self.tasks[name].cancel()
        await self.wait(*names)
        await asyncio.sleep(0.05)

    def start(self, *names: str, rng: Randomness | None = None, identity: Identity | None = None) -> None:
        """Start nodes; `identity`: another certificate than their own."""
        for name in names:
            node: Any = self.node(name, rng=rng, identity=identity)
            task = asyncio.create_task(node.run())
            self.tasks[name] = task
            if name in self.loopback.private:  # nobody listens there any more, as when a process has ended
                task.add_done_callback(partial(_close, self._where(name)))

    async def hurry(self, *names: str) -> None:
        """Wait for the sources, and tell compute nodes that nobody else will come."""
        await self.wait(*(name for name in self.tasks if name in self.document.places))
        for name in names:
            node: Any = self.nodes[name]
            next(iter(node._intakes.values())).all_ended.set()

    def start_servers(self) -> None:
        """Start all nodes but the sources."""
        self.start(self.document.result, *self.computes, *self.scramblers)

    async def wait(self, *names: str) -> None:
        """Wait for the end of nodes, whatever it is."""
        tasks = [self.tasks[name] for name in names]
        async with asyncio.timeout(LONG):
            await asyncio.gather(*tasks, return_exceptions=True)

    async def result(self) -> RunResult:
        """Wait for the end of everything, and return the result.

        Raises:
            RunFailedError: there is none.
        """
        await self.wait(*self.tasks)
        found: RunResult = self.tasks[self.document.result].result()
        return found

    async def client(self, name: str, to: str, *, identity: Identity | None = None) -> Connection:
        """Return a connection to a node from a client with the identity of `name`."""
        return await connect(
            to,
            self.document.servers[to].place,
            identity or self.identity(name),
            layout=self.document.layout,
            patience=LONG,
            until=asyncio.get_running_loop().time() + LONG,
        )

    def rejected(self, *names: str) -> dict[str, int]:
        """Return the rejections of nodes, added up."""
        found: dict[str, int] = {}
        for name in names:
            for reason, count in self.journals[name].rejected.items():
                found[reason.words] = found.get(reason.words, 0) + count
        return found


def _close(where: socket.socket, _task: object) -> None:
    where.close()


def held(made: Deployment) -> dict[str, tuple[Entry, ...]]:
    """Return what every source of a run with grouping sets has to say."""
    steps = range(1, len(made.document.steps) + 1)
    return {name: tuple(entries_of(made.document, own, steps, None)) for name, own in made.people.items()}


def received(document: RunDocument, result: RunResult) -> list[GroupStatistics]:
    """Return what arrived in each step, as statistics."""
    return [aggregate_of(document).statistics(number, step.combined) for number, step in enumerate(result.steps, 1)]


def deployed(text: str, *, rng_seed: int = 1, recorded: bool = False) -> tuple[Deployment, Loopback]:
    """Return a run of a plan that nobody has started."""
    specification, loopback = parse_plan(text), Loopback(recorded=recorded)
    records = specification.query.records(Path())
    plan = specification.plan(records.n)
    made = deploy(specification, plan, records, address=loopback.listening, rng=reproducible(rng_seed))
    return made, loopback


def stage(text: str, state: Path, *, recorded: bool = False, authority: Authority | None = None) -> Stage:
    """Return the nodes of a plan."""
    made, loopback = deployed(text, recorded=recorded)
    return Stage(made, loopback, state, authority=authority)


async def say(connection: Connection, frames: Sequence[Frame]) -> Control:
    """Send frames and return the answer."""
    try:
        for frame in frames:
            await connection.send(frame)
        return await connection.answer()
    finally:
        await connection.close()


def end(step: int, *numbers: int) -> Control:
    """Return the frame that ends messages."""
    return Control(Kind.END, step, numbers=numbers)


def arrived(made: Deployment, *, lost: Sequence[str] = (), key: bytes = KEY) -> list[list[float]]:
    """Return how many records of each group arrive in each step, on the coins of `key`; some sources are lost."""
    document, found = made.document, []
    for number, step in enumerate(document.steps, start=1):
        own = [
            entry
            for name, entries in held(made).items()
            for entry in entries
            if entry.step == number and name not in lost
        ]
        rng = coins(key, run=document.drawn, step=number, records=[entry.record for entry in own])
        sent = step.sampling.randomize([entry.own for entry in own], rng=rng).reshape(len(own), -1)
        contents = [entry.content for entry, row in zip(own, sent.tolist(), strict=True) if entry.own in row]
        task = document.query
        found.append(task.merge(number, task.empty(number), contents, [True] * len(contents))[0].tolist())
    return found


def counts(result: RunResult) -> list[list[float]]:
    """Return the received counts of each step."""
    return [step.combined[0].tolist() for step in result.steps]


Processes = Mapping[str, asyncio.subprocess.Process]


def events(folder: Path, process: str) -> list[dict[str, Any]]:
    """Return what the nodes of a process have said."""
    with suppress(FileNotFoundError):
        lines = (folder / f"{process}.log").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return []


def kept(folder: Path, process: str = "source-nodes-1") -> dict[str, bytes]:
    """Return what the sources of a process keep: all they will ever send."""
    return {path.name: path.read_bytes() for path in sorted((folder / f"{process}.state").glob("*.messages"))}


async def start_again(folder: Path, process: str = "source-nodes-1") -> asyncio.subprocess.Process:
    """Start a process of sources as it was started before."""
    with (folder / f"{process}.again.log").open("wb") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hushuffle", "node", "start", str(folder / f"{process}.toml"), stdout=log, stderr=log
        )


async def finished(process: asyncio.subprocess.Process) -> int:
    """Wait for the end of a process."""
    async with asyncio.timeout(LONG):
        return await process.wait()


def simulation(
    plan: Plan, table: Mapping[str, Any], made: Deployment, key: bytes = KEY
) -> list[tuple[GroupStatistics, GroupStatistics]]:
    """Return what arrives, and what is estimated from it, in the simulation of each step on the same coins."""
    document, found = made.document, []
    query, people = aggregate_of(document).query, document.people
    entries = [entry for own in held(made).values() for entry in own]
    for position, grouping in enumerate(query.grouping_sets):
        cluster = plan.cluster(f"send by {grouping.name}")
        assert cluster.sampling is not None
        rows = np.array(sorted(entry.record for entry in entries if entry.step == position + 1))
        own = query.nodes(position, grouping.codes(table)[rows])
        drawn = coins(key, run=document.drawn, step=position + 1, records=rows.tolist())
        seen = exchange(cluster, own, coins=drawn, rng=reproducible(1))
        used = np.zeros(people, dtype=np.bool_)
        used[rows[seen.used]] = True
        received = group_statistics(query, position, table, used=used)
        found.append((received, received.scaled(people / (rows.size * use_chance(cluster.sampling)))))
    return found
