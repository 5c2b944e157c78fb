"""The result of rounds: what it takes from whom, what it shows, when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import Control, Kind, Message, Reason
from hushuffle.network.nodes.intake import Counts
from hushuffle.network.nodes.result import ResultNode, RunFailedError, RunResult
from hushuffle.network.nodes.seals import SealKey
from k_means_cases import Clusters, clusters, ended, plan_text, release
from runtime_cases import bounded, identity

NODES = ("compute-1", "compute-2", "compute-3")
MESSAGES = {"compute-1": 5, "compute-2": 0, "compute-3": 3}  # 6 and 2 dummies
ACCEPTED = (Kind.ACCEPTED, Reason.NONE)


def messages(one: Clusters, contents: Sequence[bytes | None]) -> list[Message]:
    """Return contents sealed for the result."""
    seals, key = one.document.seals(0), one.document.seal_key("result")
    return [Message(0, slot, 1, seals.seal(own, key, target="result")) for slot, own in enumerate(contents)]


async def said(one: Clusters, name: str, frames: Sequence[Message | Control]) -> tuple[Kind, Reason]:
    answer = await one.say(name, "result", frames)
    return answer.kind, answer.reason


async def tell(
    one: Clusters, name: str, number: int, place: float = 0.0, counts: Counts | None = None
) -> tuple[Kind, Reason]:
    """Tell the result of one centroid."""
    node = int(name.split("-")[1]) - 1
    sealed = messages(one, release(one, number, np.array([place, number]), counts, node=node))
    return await said(one, name, [*sealed, Control(Kind.END, 0, numbers=(len(sealed), 1))])


async def shown(one: Clusters, number: int, name: str = "source-01") -> tuple[bytes, Control]:
    """Ask for the centroids that a step starts from."""
    connection = await one.client(name, "result")
    try:
        await connection.send(Control(Kind.WANT, number))
        found = b""
        while not isinstance(frame := await connection.receive(), Control):
            assert frame is not None
            found += frame.sealed
        return found, frame
    finally:
        await connection.close()


def gathered(one: Clusters, play: Callable[[], Awaitable[None]], *, hurry: bool = False) -> RunResult:
    """Run the result while `play` says things to it; `hurry`: nothing else will come."""

    async def work() -> RunResult:
        node = one.board()
        running = asyncio.create_task(node.run())
        try:
            await play()
            if hurry:
                node._all.set()
            return await running
        finally:
            await ended(running)

    return bounded(work())


def test_centroids_come_together_and_are_shown() -> None:
    with clusters(plan_text(iterations=2), change={"least": 0.5}) as one:

        async def play() -> None:
            for name, place in zip(NODES, (1.5, 2.5, 3.5), strict=True):
                assert (await shown(one, 2))[1].reason is Reason.NOT_YET
                assert await tell(one, name, 1, place) == ACCEPTED
            assert await tell(one, "compute-1", 1, 99.0) == ACCEPTED  # as if the first answer had been lost
            for name in ("source-12", "compute-2"):
                found, end = await shown(one, 2, name)
                assert end == Control(Kind.END, 2, numbers=(0,) * 5)
                assert len(found) % one.document.layout.sealed == 0
                assert np.frombuffer(found[:48]).tolist() == [1.5, 1.0, 2.5, 1.0, 3.5, 1.0]
                assert not any(found[48:])
            for number in (0, 1, 3, 65_535):
                assert (await shown(one, number))[1] == Control(Kind.REFUSED, number, Reason.STEP, (0,) * 5)
            for name in NODES:
                assert await tell(one, name, 2, counts=((6, MESSAGES[name]), (0, 0))) == ACCEPTED

        result = gathered(one, play)
        first, second = result.steps
        assert first.combined.tolist() == [[1.5, 1.0], [2.5, 1.0], [3.5, 1.0]]
        assert (first.planned, first.sources, first.messages, first.lost_batches) == (12, 12, 16, 0)
        assert (second.planned, second.sources, second.messages, second.lost_batches) == (12, 6, 8, 1)
        assert (result.run, result.people) == (one.document.run, 12)
        journal = one.journal("result")
        assert (journal.state, journal.accepted, journal.repeated) == ("done", 6, 1)
        assert journal.rejected == {Reason.STEP: 4}


def test_many_centroids_take_several_messages() -> None:
    text = plan_text().replace("centroids = 3", "centroids = 30").replace("processes = 1", "message = 256")
    with clusters(text) as one:
        nodes = one.document.steps[0].computes

        async def play() -> None:
            for place, name in enumerate(nodes):
                assert await tell(one, name, 1, float(place)) == ACCEPTED
            found, _ = await shown(one, 2)
            assert len(found) == 2 * one.document.layout.sealed
            assert np.frombuffer(found[:480]).reshape(30, 2)[:, 0].tolist() == list(range(30))
            for name in nodes:
                assert await tell(one, name, 2) == ACCEPTED

        assert gathered(one, play).steps[0].combined.shape == (30, 2)


def test_what_is_no_centroid_of_this_run_is_refused() -> None:
    with clusters(plan_text(iterations=1)) as one:

        async def play() -> None:
            end = Control(Kind.END, 0, numbers=(1, 1))
            good = release(one, 1, np.zeros(2))
            assert (await one.say("result", "result", [Control(Kind.HEALTH)])).kind is Kind.HEALTH
            assert await said(one, "stranger-1", [*messages(one, good), end]) == (Kind.REFUSED, Reason.IDENTITY)
            assert await said(one, "scrambler-1-1", [Control(Kind.WANT, 1)]) == (Kind.REFUSED, Reason.IDENTITY)
            assert await said(one, "source-01", [*messages(one, good), end]) == (Kind.REFUSED, Reason.IDENTITY)
            for contents in ([], [None], [b"x"], [*good, b"x"], release(one, 1, np.array([np.nan, 0.0]))):
                answer = await said(one, "compute-1", [*messages(one, contents), end])
                assert answer == (Kind.REFUSED, Reason.MALFORMED)
            many = messages(one, [*good, *good, *good])
            assert await said(one, "compute-1", [*many, end]) == (Kind.REFUSED, Reason.MALFORMED)
            wrong = one.document.seals(1).seal(good[0], one.document.seal_key("result"), target="result")
            answer = await said(one, "compute-1", [Message(0, 0, 1, wrong), end])
            assert answer == (Kind.REFUSED, Reason.UNREADABLE)
            for number in (0, 2, 2**60):
                assert await tell(one, "compute-1", number) == (Kind.REFUSED, Reason.STEP)
            for name in NODES:
                assert await tell(one, name, 1) == ACCEPTED

        gathered(one, play)
        assert one.journal("result").rejected == {
            Reason.IDENTITY: 3,
            Reason.MALFORMED: 6,
            Reason.UNREADABLE: 1,
            Reason.STEP: 3,
        }


@pytest.mark.parametrize(
    ("text", "counts", "words"),
    [
        (plan_text(iterations=1), ((0, 0), (0, 0)), "only 0 of 12 sources came through"),
        (plan_text(iterations=1, traffic="flood = 1"), ((99, 4),), "only 6 of 12 sources"),
        (plan_text(iterations=1, traffic="flood = 1"), ((4, 9),), "27 messages, more than 12 sources can send"),
    ],
)
def test_too_few_sources_fail_the_run(text: str, counts: Counts, words: str) -> None:
    with clusters(text) as one:

        async def play() -> None:
            for name in NODES:
                assert await tell(one, name, 1, counts=counts) == ACCEPTED

        with pytest.raises(RunFailedError, match=words):
            gathered(one, play)
        assert one.journal("result").state == "failed"


@pytest.mark.parametrize("iterations", [1, 2])
def test_an_iteration_whose_numbers_do_not_add_up_is_never_shown(iterations: int) -> None:
    with clusters(plan_text(iterations=iterations)) as one:

        async def play() -> None:
            for name, messages in zip(NODES, (0, 1, 0), strict=True):  # one message of six, and no dummies
                assert await tell(one, name, 1, counts=((6, messages), (6, MESSAGES[name]))) == ACCEPTED

        words = "the batch of scrambler-1-1 has 1 messages for 6 sources and 2 dummies"
        with pytest.raises(RunFailedError, match=words):
            gathered(one, play)
        assert one.journal("result").rejected == {Reason.MISCOUNTED: 1}


def test_without_scramblers_messages_tell_how_many_sources_there_were() -> None:
    with clusters(plan_text(iterations=1, traffic="flood = 1")) as one:

        async def play() -> None:
            for name, count in zip(NODES, (3, 9, 8), strict=True):
                assert await tell(one, name, 1, counts=((count, count),)) == ACCEPTED

        (iteration,) = gathered(one, play).steps
        assert (iteration.messages, iteration.sources, iteration.lost_batches) == (20, 10, 0)


def test_a_centroid_that_is_missing_fails_the_run() -> None:
    with clusters(plan_text(iterations=2)) as one:

        async def play() -> None:
            for name in NODES:
                assert await tell(one, name, 1) == ACCEPTED
            assert await tell(one, "compute-2", 2) == ACCEPTED

        words = r"iteration 2: 2 of 3 compute nodes did not report \(compute-1, compute-3\)"
        with pytest.raises(RunFailedError, match=words):
            gathered(one, play, hurry=True)


def test_only_the_result_with_its_own_key_can_be_the_board() -> None:
    with clusters(plan_text()) as one:
        for name, key in (("result", SealKey.generate()), ("compute-1", one.deployment.seals["compute-1"])):
            with pytest.raises(DataError, match="does not have this role in the run"):
                ResultNode(one.document, identity(name), one.sockets[name], key=key, journal=one.journal(name))
