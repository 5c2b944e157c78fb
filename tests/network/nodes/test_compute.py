"""Compute nodes: what counts, once, and what does not."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.connections import ConnectionLostError, Control, Frame, Kind, Message, Reason
from hushuffle.network.nodes.document import RESULT
from hushuffle.network.nodes.intake import Told, ToldCodec
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node
from runtime_cases import Case, bounded, case, holders, identity, seal_key, step, until

NAME = "compute-1-1"
"""The node of groups 0 and 1 of six."""


def content(group: int, value: float = 1.0) -> bytes:
    return struct.pack("<id", group, value)


def sealed(one: Case, what: bytes | None, *, number: int = 1, target: str = NAME) -> Message:
    """Return a message for a node."""
    document = one.document
    return Message(1, 0, 0, document.seals(number).seal(what, document.seal_key(target), target=target))


def end(count: int, sources: int, *, number: int = 1, kind: Kind = Kind.END) -> Control:
    return Control(kind, number, numbers=(count, sources))


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let tests say when time is over: `over.append(True)`."""
    ended: list[bool] = []

    async def wait(self: Node, event: asyncio.Event, _seconds: float) -> None:
        await until(lambda: ended or event.is_set() or self._stop.is_set())

    monkeypatch.setattr(Node, "_wait", wait)
    return ended


def computed(one: Case, play: Callable[[ComputeNode], Awaitable[None]]) -> Told | None:
    """Run the node while `play` says things to it; return what it tells the result, None if nothing."""

    async def work() -> Told | None:
        async with one.tapped("result") as heard:
            node = one.compute()
            running = asyncio.create_task(node.run())
            try:
                await play(node)
                await running
            finally:
                running.cancel()
            contents = [
                one.document.seals(RESULT).open(frame.sealed, seal_key("result"), target="result")
                for _, _, frame in heard
                if isinstance(frame, Message)
            ]
            if not contents:
                return None
            codec = ToldCodec(one.document)
            assert heard[-1][2] == Control(Kind.END, RESULT, numbers=(codec.messages(1), 1, 0, 0, 0))
            return codec.unpack((1, 0), [found or b"" for found in contents])

    return bounded(work())


def counts(part: Told | None) -> tuple[Any, ...]:
    assert part is not None
    return (
        part.numbers[0].tolist()[:2],
        part.numbers[1].tolist()[:2],
        sum(sources for sources, _ in part.counts),
        sum(messages for _, messages in part.counts),
        sum(not sources for sources, _ in part.counts),
    )


def refused(reason: Reason, number: int = 1) -> Control:
    return Control(Kind.REFUSED, number, reason, (0,) * 5)


ACCEPTED = Control(Kind.ACCEPTED, 1, numbers=(0,) * 5)


def two_scramblers() -> Any:
    return case(step(1, [holders(3), holders(2, start=3)], dummies=2))


def test_batches_are_summed_up_without_their_dummies() -> None:
    with two_scramblers() as one:

        async def play(_node: ComputeNode) -> None:
            batch = [sealed(one, content(0, 2.0)), sealed(one, None), sealed(one, content(1, 3.0))]
            assert await one.say("scrambler-1-1", NAME, [*batch, end(3, 3)]) == ACCEPTED
            assert await one.say("scrambler-1-2", NAME, [sealed(one, content(1, 5.0)), end(1, 2)]) == ACCEPTED

        assert counts(computed(one, play)) == ([1.0, 2.0], [2.0, 8.0], 5, 4, 0)
        journal = one.journal(NAME)
        assert (journal.state, journal.accepted, dict(journal.rejected)) == ("done", 4, {})


def test_what_cannot_be_used_is_counted_by_reason() -> None:
    with case(step(1, [holders(9)], dummies=2)) as one:
        again, flipped = sealed(one, content(0)), sealed(one, content(0))
        damaged = Message(1, 0, 0, flipped.sealed[:-1] + bytes([flipped.sealed[-1] ^ 1]))
        wrong_step = Message(2, 0, 0, flipped.sealed)
        batch = [
            again,
            again,
            damaged,
            wrong_step,
            sealed(one, content(0), target="compute-1-2"),
            sealed(one, content(0), number=2),
            sealed(one, content(2)),  # a group of another node
            sealed(one, content(0, float("nan"))),
            sealed(one, b"short"),
        ]

        async def play(_node: ComputeNode) -> None:
            assert await one.say("scrambler-1-1", NAME, [*batch, end(9, 9)]) == ACCEPTED

        found = counts(computed(one, play))
        assert found[:3] == ([1.0, 0.0], [1.0, 0.0], 9)
        rejected = one.journal(NAME).rejected
        assert rejected == {Reason.DUPLICATE: 1, Reason.UNREADABLE: 3, Reason.STEP: 1, Reason.MALFORMED: 3}
        assert one.journal(NAME).accepted == 1


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (end(2, 3), Reason.TRUNCATED),
        (end(0, 3), Reason.TRUNCATED),
        (end(1, 4), Reason.MISCOUNTED),
        (end(1, 3, number=2), Reason.TRUNCATED),
        (end(1, 3, kind=Kind.ACCEPTED), Reason.TRUNCATED),
        (Control(Kind.ABORT, 1, Reason.BELOW_MINIMUM), Reason.BELOW_MINIMUM),
    ],
)
def test_a_batch_that_is_not_whole_is_lost_for_good(last: Control, reason: Reason) -> None:
    with two_scramblers() as one:

        async def play(_node: ComputeNode) -> None:
            batch = [sealed(one, content(0))]
            assert await one.say("scrambler-1-1", NAME, [*batch, last]) == refused(reason)
            assert await one.say("scrambler-1-1", NAME, [*batch, end(1, 3)]) == refused(Reason.DUPLICATE)
            assert await one.say("scrambler-1-2", NAME, [sealed(one, content(1)), end(1, 2)]) == ACCEPTED

        assert counts(computed(one, play)) == ([0.0, 1.0], [0.0, 1.0], 2, 1, 1)
        assert one.journal(NAME).rejected == {reason: 1, Reason.DUPLICATE: 1}


def test_a_second_batch_of_one_scrambler_does_not_count() -> None:
    with two_scramblers() as one:

        async def play(_node: ComputeNode) -> None:
            for answer in (ACCEPTED, refused(Reason.DUPLICATE)):
                assert await one.say("scrambler-1-1", NAME, [sealed(one, content(0)), end(1, 3)]) == answer
            assert await one.say("scrambler-1-2", NAME, [end(0, 2)]) == ACCEPTED

        assert counts(computed(one, play)) == ([1.0, 0.0], [1.0, 0.0], 5, 1, 0)


def test_a_message_of_another_batch_does_not_count_again() -> None:
    with two_scramblers() as one:
        shared = sealed(one, content(0))

        async def play(_node: ComputeNode) -> None:
            assert await one.say("scrambler-1-1", NAME, [shared, end(1, 3)]) == ACCEPTED
            assert await one.say("scrambler-1-2", NAME, [shared, end(1, 2)]) == ACCEPTED

        assert counts(computed(one, play))[0] == [1.0, 0.0]
        assert one.journal(NAME).rejected == {Reason.DUPLICATE: 1}


def test_a_scrambler_that_sends_too_much_is_cut_off() -> None:
    with case(step(1, [holders(2)], dummies=1)) as one:

        async def play(_node: ComputeNode) -> None:
            batch = [sealed(one, content(0)) for _ in range(4)]
            answer = await one.say("scrambler-1-1", NAME, [*batch, end(4, 2)])
            assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.MALFORMED)

        assert counts(computed(one, play)) == ([0.0, 0.0], [0.0, 0.0], 0, 0, 1)
        assert one.journal(NAME).rejected == {Reason.MALFORMED: 1}


def test_a_scrambler_that_breaks_off_is_lost(over: list[bool]) -> None:
    with two_scramblers() as one:

        async def play(node: ComputeNode) -> None:
            connection = await one.client("scrambler-1-1", NAME)
            await connection.send(sealed(one, content(0)))
            await connection.close()
            await until(lambda: node.journal.rejected)
            assert await one.say("scrambler-1-2", NAME, [sealed(one, content(1)), end(1, 2)]) == ACCEPTED
            over.append(True)

        assert counts(computed(one, play)) == ([0.0, 1.0], [0.0, 1.0], 2, 1, 1)
        assert one.journal(NAME).rejected == {Reason.TRUNCATED: 1}


def test_a_connection_without_a_message_costs_a_scrambler_nothing() -> None:
    with case() as one:

        async def play(node: ComputeNode) -> None:
            connection = await one.client("scrambler-1-1", NAME)
            await connection.close()
            await until(lambda: node.journal.rejected)
            assert await one.say("scrambler-1-1", NAME, [sealed(one, content(1)), end(1, 3)]) == ACCEPTED

        assert counts(computed(one, play)) == ([0.0, 1.0], [0.0, 1.0], 3, 1, 0)


def test_a_stop_before_the_beginning(over: list[bool]) -> None:
    del over
    with case() as one:
        node = one.compute()
        node._listening = nullcontext  # type: ignore[assignment]
        node.stop()
        bounded(node.run())
        assert node.journal.state == "gave up"


def test_what_was_found_is_told_when_time_is_over(over: list[bool]) -> None:
    over.append(True)
    told = list[str]()

    async def report(_contents: list[bytes], **_: object) -> None:
        told.append(NAME)

    with case() as one:
        node = one.compute()
        node._listening, node._report = nullcontext, report  # type: ignore[assignment, method-assign]
        bounded(node.run())
        assert (node.journal.state, told) == ("done", [NAME])


def test_nothing_at_all_is_told_too(over: list[bool]) -> None:
    with two_scramblers() as one:

        async def play(_node: ComputeNode) -> None:
            over.append(True)

        assert counts(computed(one, play)) == ([0.0, 0.0], [0.0, 0.0], 0, 0, 2)


def test_a_node_that_is_stopped_tells_nothing() -> None:
    with two_scramblers() as one:

        async def play(node: ComputeNode) -> None:
            await until(lambda: node.journal.state == "computing")
            node.stop()

        assert computed(one, play) is None
        assert one.journal(NAME).state == "gave up"


def test_strangers_and_the_node_itself_put_nothing_in(over: list[bool]) -> None:
    with two_scramblers() as one:

        async def play(_node: ComputeNode) -> None:
            batch: Sequence[Frame] = [sealed(one, content(0)), end(1, 0)]
            for who in ("source-0", "compute-1-2", "result"):
                assert await one.say(who, NAME, batch) == refused(Reason.IDENTITY, 0)
            assert (await one.say(NAME, NAME, batch)).kind is Kind.REFUSED
            assert (await one.say(NAME, NAME, [end(0, 0)])) == refused(Reason.IDENTITY)
            assert (await one.say(NAME, NAME, [Control(Kind.HEALTH)])).numbers[:2] == (4, 0)
            over.append(True)

        assert counts(computed(one, play)) == ([0.0, 0.0], [0.0, 0.0], 0, 0, 2)
        assert one.journal(NAME).rejected[Reason.IDENTITY] >= 3


# ---- without scramblers


def direct() -> Any:
    return case(step(1, [["source-0", "source-1", "source-1"]], scrambled=False, flood=1))


def test_a_source_whose_connection_broke_counts_once_when_it_comes_again(over: list[bool]) -> None:
    with direct() as one:
        batch = [sealed(one, content(0)), sealed(one, content(1))]

        async def play(node: ComputeNode) -> None:
            connection = await one.client("source-1", NAME)
            await connection.send(batch[0])
            await connection.close()
            await until(lambda: node.journal.rejected)
            for _ in range(2):  # the answer to the first may be lost
                assert await one.say("source-1", NAME, [*batch, end(2, 2)]) == ACCEPTED
            other = [sealed(one, content(0)), end(1, 1)]
            assert await one.say("source-1", NAME, other) == refused(Reason.DUPLICATE)
            over.append(True)

        assert counts(computed(one, play))[:4] == ([1.0, 1.0], [1.0, 1.0], 2, 2)
        assert one.journal(NAME).repeated == 2


def test_a_source_counts_for_as_many_as_it_speaks_for() -> None:
    with direct() as one:

        async def play(_node: ComputeNode) -> None:
            twice = [sealed(one, content(0)), sealed(one, content(0))]
            assert await one.say("source-0", NAME, [*twice, end(2, 2)]) == refused(Reason.MALFORMED, 0)
            assert await one.say("source-0", NAME, [twice[0], end(1, 1)]) == ACCEPTED
            assert await one.say("source-1", NAME, [sealed(one, content(0)), twice[1], end(2, 2)]) == ACCEPTED

        assert counts(computed(one, play))[0] == [3.0, 0.0]


# ---- beginnings and ends


def test_nodes_that_the_document_does_not_know() -> None:
    with case() as one:
        where, journal = one.sockets[NAME], Journal(node="x")
        for name, key in (("scrambler-1-1", seal_key(NAME)), (NAME, seal_key("other"))):
            with pytest.raises(DataError, match=f"{name} does not have this role in the run, or its seal key differs"):
                ComputeNode(one.document, identity(name), where, key=key, journal=journal)


def test_a_result_that_refuses_is_a_failure(over: list[bool]) -> None:
    with case() as one:

        async def work() -> None:
            async def refuse(connection: Any) -> None:
                while isinstance(await connection.receive(), Message):
                    pass
                await connection.send(Control(Kind.REFUSED, RESULT, Reason.MALFORMED))

            over.append(True)
            async with one.played("result", refuse):
                with pytest.raises(ConnectionLostError, match=f"result refused the numbers of {NAME} \\(malformed\\)"):
                    await one.compute().run()

        bounded(work())
        assert np.array_equal(one.journal(NAME).sent, 0)
