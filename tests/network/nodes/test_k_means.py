"""K-means by real nodes in one event loop: whole runs, and what sources and nodes of centroids refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError, UnsupportedProtocolError
from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.connections import Connection, ConnectionLostError, Control, Kind, Message, Reason
from hushuffle.network.nodes.document import RESULT
from hushuffle.network.nodes.intake import ToldCodec
from hushuffle.network.nodes.result import ResultNode, RunFailedError, RunResult
from hushuffle.network.nodes.scrambler import ScramblerNode
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import SourceNode
from hushuffle.network.setup import deploy
from hushuffle.plans.centroids import Floats, means, noisy_means
from hushuffle.queries import parse_plan, run_k_means
from hushuffle.randomness import reproducible
from k_means_cases import SCRAMBLED, Clusters, clusters, ended, plan_text
from runtime_cases import bounded, identity, later, until

ACCEPTED = (Kind.ACCEPTED, Reason.NONE)


async def played(one: Clusters, folder: Path, *, absent: str = "") -> RunResult:
    """Run all nodes but one, for whom the others wait no longer than they have work; noise of fixed seeds."""
    document = one.document
    computes = document.steps[0].computes
    if absent:
        one.sockets[absent].close()
    nodes: list[Any] = [one.board()]
    nodes += [one.centroid(name, rng=reproducible(seed)) for seed, name in enumerate(computes) if name != absent]
    nodes += [one.scrambler(name, rng=reproducible(5)) for name in one.scramblers if name != absent]
    nodes += [one.person(name, folder) for name in document.places if name != absent]
    tasks = [asyncio.create_task(node.run()) for node in nodes]
    helper = asyncio.create_task(
        passing(one, nodes, tasks)
        if absent
        else hurried(one, [node for node in nodes if isinstance(node, ComputeNode)])
    )
    try:
        result: RunResult = await tasks[0]
        await asyncio.gather(*tasks[1:])
    finally:
        await ended(*tasks, helper)
    return result


def all_sent(one: Clusters, count: int) -> bool:
    """Say whether the sources have sent so many messages."""
    return sum(one.journal(name).sent for name in one.document.places) == count


async def hurried(one: Clusters, nodes: list[ComputeNode]) -> None:
    """Without scramblers no target knows who will send it something: say when all have sent, not to wait for time."""
    for number, step in enumerate(one.document.steps, start=1):
        if not step.scrambled:
            count = number * (step.flood + 1) * step.sources
            await until(partial(all_sent, one, count))
            for node in nodes:
                node._intakes[number].all_ended.set()


async def passing(one: Clusters, nodes: list[Any], tasks: list[asyncio.Task[Any]]) -> None:
    """Let the times pass in which somebody could still come, each when all who are there have done their part."""
    document, kinds = one.document, [type(node) for node in nodes]
    await until(lambda: all(one.journal(node.name).state == "done" for node in nodes if type(node) is ScramblerNode))
    for kind, seconds in (
        (SourceNode, document.collect),
        (ComputeNode, document.target_deadline(1) - document.collect),
        (ResultNode, document.patience),
    ):
        later(seconds)
        some = [task for task, own in zip(tasks, kinds, strict=True) if own is kind]
        await asyncio.gather(*some, return_exceptions=True)


@pytest.mark.parametrize("traffic", [SCRAMBLED, "flood = 1"])
def test_public_centroids_are_those_of_the_simulation(traffic: str, tmp_path: Path) -> None:
    with clusters(plan_text(traffic=traffic)) as one:
        result = bounded(played(one, tmp_path))
        centroids = np.array(one.task.initial)
        for number, found in enumerate(result.steps, start=1):
            sums, counts = one.simulated(number, centroids, only_honest=False)
            assert counts.sum() < 12 or traffic != SCRAMBLED
            centroids = means(sums, counts, centroids)
            assert found.combined == pytest.approx(centroids, abs=1e-9)
            assert (found.planned, found.sources, found.lost_batches) == (12, 12, 0)
            assert found.messages == (16 if traffic == SCRAMBLED else 24)
        assert {one.journal(name).state for name in (*one.document.places, *one.document.servers)} == {"done"}
        assert len(result.steps) == 2


@pytest.mark.parametrize("traffic", [SCRAMBLED, "flood = 1"])
def test_behind_noise_only_points_on_purpose_count(traffic: str, tmp_path: Path) -> None:
    with clusters(plan_text(traffic=traffic, private=True)) as one:
        assert all(step.only_on_purpose for step in one.document.steps)
        result = bounded(played(one, tmp_path))
        centroids, noise = np.array(one.task.initial), one.task.noise
        assert noise is not None
        rngs, by_luck = [reproducible(seed) for seed in range(3)], 0.0
        for number, found in enumerate(result.steps, start=1):
            sums, counts = one.simulated(number, centroids, only_honest=True)
            by_luck += one.simulated(number, centroids, only_honest=False)[1].sum() - counts.sum()
            before = centroids
            centroids = np.concatenate(
                [noisy_means(sums[[k]], counts[[k]], before[[k]], noise=noise.build(), rng=rngs[k]) for k in range(3)]
            )
            assert found.combined == pytest.approx(centroids, abs=1e-9)
        assert by_luck > 0  # some fell on their own target without being meant to


def test_without_redirection_it_is_the_engine(tmp_path: Path) -> None:
    text = plan_text(traffic="").replace("sigma = 0.4", "sigma = 0.0")
    with clusters(text) as one:
        result = bounded(played(one, tmp_path))
        assert one.records.start is not None
        run = run_k_means(one.plan, one.records.rows, one.records.start, rng=reproducible(1))
        found = np.stack([iteration.combined for iteration in result.steps])
        assert found == pytest.approx(run.centroids[1:], abs=1e-9)


def test_a_scrambler_that_is_missing_fails_the_run_where_too_few_are_left(tmp_path: Path) -> None:
    with clusters(plan_text(iterations=1, collect=30.0, patience=40.0)) as one:
        with pytest.raises(RunFailedError, match="only 6 of 12 sources came through"):
            bounded(played(one, tmp_path, absent=one.scramblers[0]))
        assert one.journal("result").state == "failed"


def test_a_node_of_a_centroid_that_is_missing_fails_the_run(tmp_path: Path) -> None:
    text, words = (
        plan_text(iterations=1, traffic="", collect=30.0, patience=40.0),
        "1 of 3 compute nodes did not report",
    )
    with clusters(text) as one, pytest.raises(RunFailedError, match=rf"{words} \(compute-2\)"):
        bounded(played(one, tmp_path, absent="compute-2"))


@pytest.mark.parametrize("iterations", [1, 2])
def test_hidden_centroids_are_not_run_over_a_network(iterations: int) -> None:
    text = plan_text(iterations=iterations, traffic="").replace("public-centroids", "hidden")
    specification = parse_plan(text)
    records = specification.query.records(Path())
    words = "every node sees the centroids" if iterations == 1 else "no guarantee: it must not use people"
    with pytest.raises(UnsupportedProtocolError, match=words):
        deploy(
            specification,
            specification.plan(records.n),
            records,
            address=lambda name: f"{name}:1",
            rng=reproducible(1),
        )


# Sources.

SECOND = np.array([[0.1, 0.2], [0.9, 0.9], [-0.9, 0.0]])


def shows(one: Clusters, answers: list[Any]) -> Callable[[Connection], Awaitable[None]]:
    """Return a result that gives one answer to each question: centroids, a reason, or None to hang up."""

    async def play(connection: Connection) -> None:
        question = await connection.receive()
        assert isinstance(question, Control)
        assert question.kind is Kind.WANT
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        size = one.document.layout.sealed
        if answer is None:
            return
        if isinstance(answer, Reason):
            await connection.send(Control(Kind.REFUSED, question.step, answer))
            return
        await connection.send(Message(question.step, 0, 0, answer.astype("<f8").tobytes().ljust(size, b"\0")))
        await connection.send(Control(Kind.END, question.step))

    return play


async def asked(
    one: Clusters, folder: Path, answers: list[Any], *, point: Floats | None = None, stop: bool = False
) -> list[Message]:
    """Run one source against a result of the test; return what it sent."""
    async with one.tapped(*one.scramblers) as heard, one.played("result", shows(one, answers)):
        node = one.person(next(iter(one.document.places)), folder, point=point)
        running = asyncio.create_task(node.run())
        if stop:
            await until(lambda: heard)
            node.stop()
        await running
    return [frame for _, _, frame in heard if isinstance(frame, Message)]


def test_a_source_that_starts_again_sends_the_same(tmp_path: Path) -> None:
    with clusters(plan_text()) as one:
        first = bounded(asked(one, tmp_path, [SECOND]))
        assert [message.step for message in first] == [1, 2]
        again = bounded(asked(one, tmp_path, [-SECOND], point=np.array([5.0, -5.0])))
        assert again == first
        assert len(list((tmp_path / "state").iterdir())) == 2


def test_a_source_asks_until_the_centroids_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.network.nodes.source._PAUSE", 0.01)
    with clusters(plan_text()) as one:
        answers: list[Any] = [Reason.NOT_YET, None, Reason.NOT_YET, SECOND]
        sent = bounded(asked(one, tmp_path, answers))
        assert len(sent) == 2
        assert len(answers) == 1


def test_a_source_goes_to_the_centroid_that_is_nearest_then(tmp_path: Path) -> None:
    with clusters(plan_text().replace("sigma = 0.4", "sigma = 0.0")) as one:
        for place, target in enumerate((1, 2, 0)):
            sent = bounded(asked(one, tmp_path / str(place), [SECOND], point=SECOND[target]))
            assert sent[1].target == target


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Reason.STEP, r"centroids of step 2 could not be fetched \(step\)"),
        (np.zeros((2, 2)), None),
        (np.zeros((60, 2)), None),
    ],
)
def test_a_source_ends_where_the_result_makes_no_sense(answer: Any, words: str | None, tmp_path: Path) -> None:
    with clusters(plan_text(iterations=2)) as one:
        if words is None:  # padded with zeros: no other size can be seen
            assert len(bounded(asked(one, tmp_path, [answer]))) == 2
            return
        with pytest.raises(ConnectionLostError, match=words):
            bounded(asked(one, tmp_path, [answer]))


def test_a_result_that_shows_nothing_is_no_result(tmp_path: Path) -> None:
    with clusters(plan_text()) as one:

        async def empty(connection: Connection) -> None:
            await connection.receive()
            await connection.send(Control(Kind.END, 2))

        async def work() -> None:
            async with one.tapped(*one.scramblers), one.played("result", empty):
                await one.person(next(iter(one.document.places)), tmp_path).run()

        with pytest.raises(DataError, match="not the centroids of this plan"):
            bounded(work())


def test_a_source_that_is_stopped_asks_no_longer(tmp_path: Path) -> None:
    with clusters(plan_text()) as one, pytest.raises(ConnectionLostError, match="not yet"):
        bounded(asked(one, tmp_path, [Reason.NOT_YET], stop=True))


def test_a_source_gives_up_when_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with clusters(plan_text()) as one:
        # Enough for the first step, however busy the machine is; but no time for a second question.
        monkeypatch.setattr(type(one.document), "deadline", lambda _self, number: 60.0 if number == 1 else 0.0)
        with pytest.raises(ConnectionLostError, match="not yet"):
            bounded(asked(one, tmp_path, [Reason.NOT_YET]))


def test_the_points_must_be_the_source_s_own(tmp_path: Path) -> None:
    with clusters(plan_text()) as one:
        first, second = list(one.document.places)[:2]
        with pytest.raises(DataError, match="differ from the run's document"):
            SourceNode(
                one.document,
                identity(first),
                one.people(second),
                key=bytes(32),
                state=tmp_path,
                journal=one.journal(first),
            )
        assert "row" not in repr(one.people(first)[0])


# Nodes of centroids.


def point(one: Clusters, *coordinates: float, step: int = 1, seal: int | None = None) -> Message:
    """Return a sealed point for the first node."""
    content = np.array(coordinates).tobytes() if coordinates else None
    seals, key = one.document.seals(step if seal is None else seal), one.document.seal_key("compute-1")
    return Message(step, 0, 0, seals.seal(content, key, target="compute-1"))


def end(step: int, *numbers: int, kind: Kind = Kind.END) -> Control:
    return Control(kind, step, numbers=numbers)


def told(one: Clusters, play: Callable[[ComputeNode], Awaitable[None]], *, answer: Control | None = None) -> list[Any]:
    """Run the first node while `play` says things to it; return what it releases."""

    async def work() -> list[Any]:
        contents: list[list[bytes]] = []

        async def board(connection: Connection) -> None:
            own: list[bytes] = []
            while isinstance(frame := await connection.receive(), Message):
                key = one.deployment.seals["result"]
                own.append(one.document.seals(RESULT).open(frame.sealed, key, target="result") or b"")
            contents.append(own)
            await connection.send(answer or Control(Kind.ACCEPTED, RESULT))

        async with one.played("result", board):
            node = one.centroid()
            running = asyncio.create_task(node.run())
            try:
                await play(node)
                await running
            finally:
                await ended(running)
        codec = ToldCodec(one.document)
        return [codec.unpack((1, 0), own) for own in contents]

    return bounded(work())


async def said(one: Clusters, name: str, *frames: Message | Control) -> tuple[Kind, Reason]:
    answer = await one.say(name, "compute-1", frames)
    return answer.kind, answer.reason


def test_what_a_node_takes_and_what_not() -> None:
    with clusters(plan_text()) as one:
        a, b, c, d = one.scramblers

        async def play(node: ComputeNode) -> None:
            asked = await one.say("compute-1", "compute-1", [Control(Kind.HEALTH)])
            assert asked.kind is Kind.HEALTH
            assert await said(one, "stranger-1", end(1, 0, 6)) == (Kind.REFUSED, Reason.IDENTITY)
            assert await said(one, "compute-2", end(1, 0, 6)) == (Kind.REFUSED, Reason.IDENTITY)
            assert await said(one, "source-01", end(1, 0, 6)) == (Kind.REFUSED, Reason.IDENTITY)
            assert await said(one, "compute-1", end(1, 0, 6)) == (Kind.REFUSED, Reason.IDENTITY)
            # Of another iteration, or of none.
            assert await said(one, a, end(2, 0, 6)) == (Kind.REFUSED, Reason.IDENTITY)
            for number in (1, 3, 0, 65_535):
                assert await said(one, c, end(number, 0, 6)) == (Kind.REFUSED, Reason.IDENTITY)
            refused = await said(one, c, point(one, 0.0, 0.0, step=3), end(3, 1, 6))
            assert refused == (Kind.REFUSED, Reason.IDENTITY)
            refused = await said(one, c, *[point(one, 0.0, 0.0)] * 3, end(1, 3, 6))
            assert refused == (Kind.REFUSED, Reason.MALFORMED)  # more than its dummies: it has no sources here
            # Good ones, among them a dummy, one sealed for another step, one of another step, one with NaN.
            batch = [
                point(one, 1.0, 3.0),
                point(one),
                point(one, 1.0, 1.0, seal=2),
                point(one, 1.0, 1.0, step=2),
                point(one, np.nan, 1.0),
            ]
            assert await said(one, a, *batch, end(1, 5, 6)) == ACCEPTED
            # The second iteration may start before the first has ended.
            assert await said(one, c, point(one, 4.0, 4.0, step=2), end(2, 1, 6)) == ACCEPTED
            assert await said(one, b, point(one, 3.0, 1.0), end(1, 1, 6)) == ACCEPTED
            await until(lambda: one.journal("compute-1").sent)
            assert await said(one, b, point(one, 3.0, 1.0), end(1, 1, 6)) == (Kind.REFUSED, Reason.DUPLICATE)
            assert await said(one, d, end(2, 0, 6)) == ACCEPTED
            del node

        first, second = told(one, play)
        assert first.numbers.tolist() == [2.0, 2.0]
        assert (first.step, first.counts) == (1, ((6, 4), (6, 1)))
        assert second.numbers.tolist() == [4.0, 4.0]
        journal = one.journal("compute-1")
        assert journal.state == "done"
        assert journal.rejected == {
            Reason.IDENTITY: 10,
            Reason.STEP: 2,
            Reason.MALFORMED: 2,
            Reason.UNREADABLE: 1,
            Reason.DUPLICATE: 1 + 1,
        }


def test_a_batch_that_breaks_is_lost_and_one_that_is_late_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with clusters(plan_text()) as one:
        a, b, c, d = one.scramblers
        over = asyncio.Event()

        async def wait(self: ComputeNode, event: asyncio.Event, _seconds: float) -> None:
            await until(lambda: event.is_set() or over.is_set())
            over.clear()
            del self

        monkeypatch.setattr(ComputeNode, "_wait", wait)

        async def play(node: ComputeNode) -> None:
            connection = await one.client(a, "compute-1")
            await connection.send(point(one, 1.0, 1.0))
            await connection.close()
            await until(lambda: one.journal("compute-1").rejected[Reason.TRUNCATED])
            over.set()  # b never comes in time
            await until(lambda: one.journal("compute-1").sent == 1)
            assert await said(one, b, point(one, 3.0, 1.0), end(1, 1, 6)) == (Kind.REFUSED, Reason.LATE)
            for name in (c, d):
                assert await said(one, name, point(one, 1.0, 0.0, step=2), end(2, 1, 6)) == ACCEPTED
            del node

        first, second = told(one, play)
        assert first.numbers.tolist() == list(one.task.initial[0])
        assert (first.counts, second.counts) == (((0, 0), (0, 0)), ((6, 1), (6, 1)))
        assert one.journal("compute-1").rejected == {Reason.TRUNCATED: 1, Reason.LATE: 1}


def test_a_node_that_is_stopped_tells_nothing() -> None:
    with clusters(plan_text()) as one:

        async def play(node: ComputeNode) -> None:
            node.stop()

        assert told(one, play) == []
        assert one.journal("compute-1").state == "gave up"


def test_a_node_that_the_result_refuses_fails() -> None:
    with clusters(plan_text(iterations=1, traffic="")) as one:

        async def play(node: ComputeNode) -> None:
            for name in one.document.places:
                assert await said(one, name, end(1, 0, 0)) == ACCEPTED
            del node

        with pytest.raises(ConnectionLostError, match=r"result refused the numbers of compute-1 \(step\)"):
            told(one, play, answer=Control(Kind.REFUSED, RESULT, Reason.STEP))


def test_only_a_node_of_the_run_with_its_own_key_can_be_one() -> None:
    with clusters(plan_text()) as one:
        for name, key in (("compute-1", SealKey.generate()), ("scrambler-1-1", one.deployment.seals["compute-1"])):
            with pytest.raises(DataError, match="does not have this role in the run"):
                ComputeNode(one.document, identity(name), one.sockets[name], key=key, journal=one.journal(name))


async def released(one: Clusters, told: list[list[bytes]], state: Path, *, kills: int = 0, lost: int = 0) -> None:
    """Run a node that adds what it tells to `told`; `kills`: where it dies; `lost`: a step that it cannot keep."""
    key, name = one.deployment.seals["compute-1"], "compute-1"
    node = ComputeNode(one.document, identity(name), one.sockets[name], key=key, journal=one.journal(name), state=state)
    keep, kept = node.keep, 0

    async def at_once(*_: object) -> None:
        pass

    async def report(contents: list[bytes], **_: object) -> None:
        told.append(contents)
        if len(told) == kills:
            raise ConnectionLostError(Reason.SLOW, name)

    async def not_always(spool: Any, records: Any) -> bool:
        nonlocal kept
        kept += 1
        return kept != lost and await keep(spool, records)

    for what, instead in (("_listening", nullcontext), ("_wait", at_once), ("_report", report), ("keep", not_always)):
        setattr(node, what, instead)
    for step in node._merged:
        node._merge(step, [one.task.sample(step, 0)] * 5, [True] * 5)
    await node.run()


def test_a_released_centroid_is_the_same_after_a_new_start(tmp_path: Path) -> None:
    """Released anew it would have other noise, and two of them show more than one."""
    with clusters(plan_text(traffic=SCRAMBLED, private=True)) as one:
        told: list[list[bytes]] = []
        with pytest.raises(ConnectionLostError):
            bounded(released(one, told, tmp_path, kills=1))
        bounded(released(one, told, tmp_path))
        assert len(told) == 3  # the first, the same again, and that of the second iteration
        assert told[0] == told[1]
        bounded(released(one, told, tmp_path))
        assert len(told) == 3  # all is told: it knows
        bounded(released(one, told, tmp_path / "another"))
        assert told[3] != told[0]
        (tmp_path / "file").write_text("")  # where it cannot be kept, nothing is released
        with pytest.raises(DataError, match=r"file/.* cannot be read"):
            bounded(released(one, told, tmp_path / "file"))
        with pytest.raises(DataError, match=r"cannot store its noisy numbers, .* Nothing was released"):
            bounded(released(one, told, tmp_path / "third", lost=2))
        assert len(told) == 6


def test_a_step_that_could_not_be_kept_is_not_taken_for_a_later_one(tmp_path: Path) -> None:
    with clusters(plan_text(traffic=SCRAMBLED)) as one:
        told: list[list[bytes]] = []
        with pytest.raises(ConnectionLostError):
            bounded(released(one, told, tmp_path, kills=2, lost=1))
        bounded(released(one, told, tmp_path))
        assert told[2:] == told[:2]
