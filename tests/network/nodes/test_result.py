"""The result node: parts of all compute nodes, or no result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import Control, Frame, Kind, Message, Reason
from hushuffle.network.nodes.document import RESULT
from hushuffle.network.nodes.intake import Counts, Told, ToldCodec
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.node import Node
from hushuffle.network.nodes.result import ResultNode, RunFailedError, RunResult, StepResult
from hushuffle.plans import GroupStatistics, use_chance
from hushuffle.randomness import reproducible
from runtime_cases import Case, adding_up, aggregate_of, bounded, case, holders, identity, seal_key, step, until

NAMES = ("compute-1-1", "compute-1-2", "compute-1-3")


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let tests say when time is over: `over.append(True)`."""
    ended: list[bool] = []

    async def wait(self: Node, event: asyncio.Event, _seconds: float) -> None:
        await until(lambda: ended or event.is_set() or self._stop.is_set())

    monkeypatch.setattr(Node, "_wait", wait)
    return ended


def part(one: Case, node: int, *, sources: int = 3, counts: Counts | None = None, number: int = 1) -> list[bytes]:
    """Return what a node tells that has found 10 + node in its first group; `counts`: others than those that add up."""
    task = aggregate_of(one.document)
    row = np.array([[2.0 * node] * len(task.grouping_sets) + [10.0 + node]])
    merged = task.merge(number, task.empty(number), task.pack(number, row), [True])
    numbers = task.tell(number, node, merged, None, reproducible(1))
    came = counts or adding_up(one.document.step(number), node, [sources])
    return ToldCodec(one.document).pack(Told(step=number, counts=came, numbers=numbers))


def received(one: Case, step: StepResult) -> GroupStatistics:
    """Return what arrived, as statistics."""
    return aggregate_of(one.document).statistics(1, step.combined)


def estimated(one: Case, step: StepResult) -> GroupStatistics:
    """Return what is estimated for everybody."""
    return received(one, step).scaled(step.scale())


def told(one: Case, contents: Sequence[bytes | None]) -> list[Frame]:
    seals = one.document.seals(RESULT)
    key = seal_key("result").public
    frames: list[Frame] = [
        Message(RESULT, slot, 0, seals.seal(content, key, target="result")) for slot, content in enumerate(contents)
    ]
    return [*frames, Control(Kind.END, RESULT, numbers=(len(frames), 1))]


def gathered(one: Case, play: Callable[[ResultNode], Awaitable[None]]) -> RunResult:
    async def work() -> RunResult:
        node = one.result()
        running = asyncio.create_task(node.run())
        try:
            await play(node)
            return await running
        finally:
            running.cancel()

    return bounded(work())


async def everybody(one: Case, **changes: Any) -> None:
    for node, name in enumerate(NAMES):
        answer = await one.say(name, "result", told(one, part(one, node, **changes)))
        assert answer.kind is Kind.ACCEPTED


def test_parts_become_received_and_estimated_statistics() -> None:
    with case(step(1, [holders(2), holders(2, start=2)], sigma=0.5), people=8, least=0.5) as one:
        counts = (((2, 1), (0, 0)), ((2, 3), (0, 0)), ((2, 0), (0, 0)))

        async def play(_node: ResultNode) -> None:
            for node, name in enumerate(NAMES):
                answer = await one.say(name, "result", told(one, part(one, node, counts=counts[node])))
                assert answer == Control(Kind.ACCEPTED, RESULT, numbers=(0,) * 5)

        result = gathered(one, play)
        (found,) = result.steps
        assert (result.run, result.people) == (one.document.run, 8)
        assert (found.name, found.planned, found.sources, found.lost_batches) == ("step 1", 4, 2, 1)
        assert received(one, found).count.tolist() == [1, 0, 1, 0, 1, 0]
        assert received(one, found).sum["x"].tolist() == [10, 0, 11, 0, 12, 0]
        chance = use_chance(one.document.step(1).sampling)
        factors = [8 / (2 * chance)] * 3
        assert estimated(one, found).count[::2] == pytest.approx(factors)
        assert estimated(one, found).sum["x"][::2] == pytest.approx([10 * factors[0], 11 * factors[1], 12 * factors[2]])
        assert estimated(one, found).avg["x"][::2] == pytest.approx([10, 11, 12])
        assert one.journal("r").state == "done"


def test_without_scramblers_all_messages_tell_how_many_sources_there_were() -> None:
    with case(step(1, [holders(4)], scrambled=False, flood=1), people=4) as one:

        async def play(_node: ResultNode) -> None:
            for node, name in enumerate(NAMES):
                own = part(one, node, counts=((1, (3, 2, 2)[node]),))
                assert (await one.say(name, "result", told(one, own))).kind is Kind.ACCEPTED

        (found,) = gathered(one, play).steps
        assert (found.sources, found.lost_batches) == (3, 0)
        chance = use_chance(one.document.step(1).sampling)
        assert estimated(one, found).count[::2] == pytest.approx([4 / (3 * chance)] * 3)


def test_repeated_parts_change_nothing() -> None:
    with case() as one:

        async def play(_node: ResultNode) -> None:
            for _ in range(2):
                answer = await one.say(NAMES[0], "result", told(one, part(one, 0)))
                assert answer.kind is Kind.ACCEPTED
            await everybody(one)

        (found,) = gathered(one, play).steps
        assert received(one, found).count.tolist() == [1, 0, 1, 0, 1, 0]
        assert (one.journal("r").accepted, one.journal("r").repeated) == (3, 2)


def test_a_missing_node_means_no_result(over: list[bool]) -> None:
    with case() as one:

        async def play(_node: ResultNode) -> None:
            await one.say(NAMES[1], "result", told(one, part(one, 1)))
            over.append(True)

        words = r"2 of 3 compute nodes did not report \(compute-1-1, compute-1-3\), so their groups are lost"
        with pytest.raises(RunFailedError, match=words):
            gathered(one, play)
        assert one.journal("r").state == "failed"


def test_many_missing_nodes_are_not_all_named(over: list[bool]) -> None:
    with case(step(1, [holders(4)]), step(2, [holders(4)])) as one:
        over.append(True)

        async def play(_node: ResultNode) -> None:
            pass

        with pytest.raises(RunFailedError, match=r"6 of 6 compute nodes did not report \(.*compute-2-2 and others\)"):
            gathered(one, play)


def test_too_few_sources_mean_no_result() -> None:
    words = r"'step 1': only 3 of 5 sources came through, fewer than .* 0\.8"
    with case(step(1, [holders(5)]), least=0.8) as one, pytest.raises(RunFailedError, match=words):
        gathered(one, lambda _node: everybody(one, sources=3))
    with case(step(1, [holders(5)]), least=0.8) as one:
        assert gathered(one, lambda _node: everybody(one, sources=4)).steps[0].sources == 4


def test_what_is_no_part_is_refused_and_the_part_may_still_come() -> None:
    with case(values=("x", "y", "z")) as one:
        codec = ToldCodec(one.document)
        assert codec.messages(1) == 1

        async def play(_node: ResultNode) -> None:
            good = told(one, codec.cut(1, b""))
            wrong: list[tuple[list[Frame], Reason]] = [
                (told(one, []), Reason.MALFORMED),
                (told(one, [b"short"]), Reason.MALFORMED),
                (told(one, [None]), Reason.MALFORMED),
                ([*good[:-1], *good], Reason.MALFORMED),
                ([Message(RESULT, 0, 0, bytes(240)), good[-1]], Reason.UNREADABLE),
                ([Control(Kind.HEALTH)], Reason.IDENTITY),
            ]
            for frames, reason in wrong:
                answer = await one.say(NAMES[0], "result", frames)
                assert (answer.kind, answer.reason) == (Kind.REFUSED, reason)
            assert (await one.say("result", "result", [Control(Kind.HEALTH)])).kind is Kind.HEALTH
            for name in NAMES:
                assert (await one.say(name, "result", good)).kind is Kind.ACCEPTED

        with pytest.raises(RunFailedError, match="only 0 of 3 sources came through"):
            gathered(one, play)
        assert one.journal("r").rejected == {Reason.MALFORMED: 4, Reason.UNREADABLE: 1, Reason.IDENTITY: 1}


def test_strangers_and_the_node_itself_put_nothing_in(over: list[bool]) -> None:
    with case() as one:

        async def play(_node: ResultNode) -> None:
            for who in ("source-0", "scrambler-1-1", "nobody"):
                answer = await one.say(who, "result", told(one, part(one, 0)))
                assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.IDENTITY)
            assert (await one.say("result", "result", told(one, part(one, 0)))).kind is Kind.REFUSED
            answer = await one.say("result", "result", told(one, []))
            assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.IDENTITY)
            over.append(True)

        with pytest.raises(RunFailedError, match="3 of 3"):
            gathered(one, play)


def test_a_result_that_is_stopped_has_no_result() -> None:
    with case() as one:

        async def play(node: ResultNode) -> None:
            await until(lambda: node.journal.state == "gathering")
            node.stop()

        with pytest.raises(RunFailedError, match="3 of 3 compute nodes did not report"):
            gathered(one, play)


def test_parts_that_are_there_are_enough(over: list[bool]) -> None:
    del over
    with case() as one:
        node = one.result()
        node._listening = nullcontext  # type: ignore[assignment]
        for place, name in enumerate(NAMES):
            told = ToldCodec(one.document).unpack((1, place), part(one, place))
            assert node._keep(name, told).kind is Kind.ACCEPTED
        assert received(one, bounded(node.run()).steps[0]).count.sum() == 3
        assert node.journal.state == "done"
        missing = one.result()
        missing._listening = nullcontext  # type: ignore[assignment]
        missing.stop()
        with pytest.raises(RunFailedError, match="3 of 3"):
            bounded(missing.run())
        assert missing.journal.state == "failed"


def test_nodes_that_the_document_does_not_know() -> None:
    with case() as one:
        where, journal = one.sockets["result"], Journal(node="x")
        for name, key in (("compute-1-1", seal_key("result")), ("result", seal_key("other"))):
            with pytest.raises(DataError, match=f"{name} does not have this role in the run, or its seal key differs"):
                ResultNode(one.document, identity(name), where, key=key, journal=journal)
