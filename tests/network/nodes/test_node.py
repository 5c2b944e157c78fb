"""All nodes of a run in one loop, over real TLS; the result is the simulation's on the same coins."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import ConnectionLostError, Control, Kind, Reason
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node, health
from hushuffle.network.nodes.result import ResultNode, RunResult
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.source import coins
from hushuffle.plans import group_statistics, messages, use_chance
from hushuffle.queries import exchange
from hushuffle.randomness import reproducible
from runtime_cases import COINS, Case, aggregate_of, bounded, case, holders, identity, step, until


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let tests say when time is over for all nodes but the result: `over.append(True)`."""
    ended: list[bool] = []

    async def wait(self: Node, event: asyncio.Event, _seconds: float) -> None:
        late = not isinstance(self, ResultNode)
        await until(lambda: (late and ended) or event.is_set() or self._stop.is_set())

    monkeypatch.setattr(Node, "_wait", wait)
    return ended


def run(one: Case, folder: Path, over: list[bool] | None = None) -> RunResult:
    """Run every node to its end; without scramblers time is over when all sources have sent."""

    async def work() -> RunResult:
        document = one.document
        servers: list[Any] = [one.compute(name) for part in document.steps for name in part.computes]
        servers += [
            one.scrambler(batch.scrambler) for part in document.steps for batch in part.batches if batch.scrambler
        ]
        running = [asyncio.create_task(node.run()) for node in servers]
        result = asyncio.create_task(one.result().run())
        for start in range(0, len(names := list(document.places)), 8):
            await asyncio.gather(*(one.source(name, folder).run() for name in names[start : start + 8]))
        if over is not None:
            over.append(True)
        await asyncio.gather(*running)
        return await result

    return bounded(work())


def compare(one: Case, result: RunResult) -> None:
    """See that the result is that of the tuples that the coins say were used."""
    document = one.document
    query = aggregate_of(document).query
    for position, (part, found) in enumerate(zip(document.steps, result.steps, strict=True)):
        rows = np.array([int(name.split("-")[1]) for batch in part.batches for name in batch.holders])
        scrambled: dict[str, Any] = {"dummies": part.dummies, "batch": len(part.batches[0].holders)}
        cluster = messages(
            "send",
            sources=rows.size,
            targets=3,
            sigma=part.sigma,
            reads=("people",),
            convention=part.convention,
            flood=part.flood,
            **(scrambled if part.scrambled else {}),
        )
        own = query.nodes(position, query.grouping_sets[position].codes(one.table)[rows])
        drawn = coins(COINS, run=document.drawn, step=position + 1, records=rows.tolist())
        simulated = exchange(cluster, own, coins=drawn, rng=reproducible(1))
        used = np.zeros(document.people, dtype=np.bool_)
        used[rows[simulated.used]] = True
        assert 0 < np.count_nonzero(used) < rows.size
        expected = group_statistics(query, position, one.table, used=used)
        factor = document.people / (rows.size * use_chance(part.sampling))
        received = aggregate_of(document).statistics(position + 1, found.combined)
        estimated = received.scaled(found.scale())
        for mine, theirs, scale in ((received, expected, 1.0), (estimated, expected, factor)):
            assert mine.count == pytest.approx(theirs.count * scale)
            for name in query.values:
                assert mine.sum[name] == pytest.approx(theirs.sum[name] * scale)
                assert mine.min[name] == pytest.approx(theirs.min[name], nan_ok=True)
                assert mine.max[name] == pytest.approx(theirs.max[name], nan_ok=True)
        assert (found.sources, found.planned, found.lost_batches) == (rows.size, rows.size, 0)
        accepted = [one.journals[name].accepted for name in part.computes]
        if part.scrambled:
            assert sum(accepted) == rows.size + part.dummies * len(part.batches)
        else:
            assert accepted == simulated.received.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"sigma": 0.5, "dummies": 4, "min_batch": 3},
        {"sigma": 0.6, "convention": "exclusive", "dummies": 0, "min_batch": 3},
        {"sigma": 0.5, "dummies": 3, "capped": True, "min_batch": 6},
    ],
    ids=["scramblers", "exclusive", "capped"],
)
@pytest.mark.parametrize("per_person", ["all", "one"])
def test_a_run_behind_scramblers(tmp_path: Path, changes: dict[str, Any], per_person: str) -> None:
    start = 0 if per_person == "all" else 12
    steps = [
        step(number, [holders(6, start=shift), holders(6, start=shift + 6)], **changes)
        for number, shift in ((1, 0), (2, start))
    ]
    with case(*steps, values=("x", "y")) as one:
        compare(one, run(one, tmp_path))
        states = {journal.state for journal in one.journals.values()}
        assert states == {"done"}
        assert all(not journal.rejected for journal in one.journals.values())


@pytest.mark.parametrize("flood", [0, 1, 2])
def test_a_run_without_scramblers(tmp_path: Path, over: list[bool], flood: int) -> None:
    # With two further targets everybody hears everything, and all tuples arrive: then there is nothing to compare.
    sigma = 0.8
    steps = [step(number, [holders(12)], scrambled=False, flood=flood, sigma=sigma, min_batch=1) for number in (1, 2)]
    with case(*steps) as one:
        result = run(one, tmp_path, over)
        if flood < 2:
            compare(one, result)
        else:
            for position, found in enumerate(result.steps):
                assert (
                    found.combined[0].tolist()
                    == group_statistics(aggregate_of(one.document).query, position, one.table).count.tolist()
                )


# ---- what all nodes do alike


def test_health() -> None:
    with case() as one:

        async def work() -> None:
            node = one.scrambler()
            running = asyncio.create_task(node.run())
            found = await health(one.document, identity("scrambler-1-1"))
            assert found == {"state": "gathering", "accepted": 0, "rejected": 0, "sent": 0, "repeated": 0}
            running.cancel()
            await asyncio.wait([running])
            one.sockets["scrambler-1-1"].close()
            with pytest.raises(ConnectionLostError, match="could not be reached"):
                await health(one.document, identity("scrambler-1-1"))

        bounded(work())


def test_only_a_node_itself_is_told_how_it_is() -> None:
    with case() as one:

        async def work() -> None:
            servers: list[Any] = [one.scrambler(), one.compute(), one.result()]
            running = [asyncio.create_task(node.run()) for node in servers]
            member = one.document.batches_of("scrambler-1-1")[0][1].holders[0]
            for name, to in ((member, "scrambler-1-1"), ("scrambler-1-1", "compute-1-1"), ("compute-1-1", "result")):
                connection = await one.client(name, to)
                await connection.send(Control(Kind.HEALTH))
                answer = await connection.answer()
                assert (answer.kind, answer.reason, answer.numbers) == (Kind.REFUSED, Reason.IDENTITY, (0,) * 5)
                await connection.close()
            for task in running:
                task.cancel()
            await asyncio.wait(running)

        bounded(work())


def test_a_certificate_that_cannot_be_used_is_said_at_once() -> None:
    with case(collect=3600.0) as one:
        good = identity("scrambler-1-1")
        bad = Identity(name=good.name, certificate=good.certificate, authority=good.authority, key="junk")
        node = ScramblerNode(one.document, bad, one.sockets[good.name], journal=Journal(node=good.name))
        with pytest.raises(DataError, match="certificate or key of scrambler-1-1 cannot be used"):
            bounded(node.run())


def test_waiting_ends_with_the_event_the_time_or_a_stop() -> None:
    with case() as one:

        async def work() -> None:
            loop = asyncio.get_running_loop()
            for way in ("event", "time", "stop"):
                node, event = one.scrambler(), asyncio.Event()
                if way == "event":
                    loop.call_later(0.02, event.set)
                if way == "stop":
                    loop.call_later(0.02, node.stop)
                await node._wait(event, 0.02 if way == "time" else 3600.0)
                assert event.is_set() == (way == "event")
            assert len(asyncio.all_tasks()) <= 2

        bounded(work())


def test_a_node_must_say_what_it_takes() -> None:
    with case() as one:
        node = Node(one.document, identity("result"), Journal(node="result"))
        with pytest.raises(NotImplementedError):
            bounded(node._take(None))  # type: ignore[arg-type]
        assert node.name == "result"
