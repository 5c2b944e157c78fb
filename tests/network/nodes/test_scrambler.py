"""Scramblers: one message a place, one release or none, dummies and order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from hushuffle.network.nodes.connections import ConnectionLostError, Control, Frame, Kind, Message, Reason, connect
from hushuffle.network.nodes.document import Batch
from hushuffle.network.nodes.node import Node
from hushuffle.network.nodes.scrambler import Gathering, ScramblerNode
from hushuffle.randomness import Randomness, reproducible
from runtime_cases import Case, bounded, case, holders, identity, seal_key, step, until

COMPUTES = ("compute-1-1", "compute-1-2", "compute-1-3")


def message(slot: int, target: int, number: int = 1, mark: int = 0) -> Message:
    """Return a message that can be told from all others."""
    return Message(number, slot, target, bytes([slot + 1, mark]) * 120)


# ---- one batch


def gathering() -> Gathering:
    return Gathering(1, Batch(scrambler="scrambler-1-1", holders=("source-0", "source-1", "source-0")), 3)


def test_every_place_takes_one_message_of_its_holder_for_ever() -> None:
    one = gathering()
    assert one.add("source-0", message(0, 2)) is Reason.NONE
    assert one.add("source-0", message(0, 2)) is Reason.NONE  # again, the same
    assert len(one.messages) == 1
    assert one.add("source-0", message(0, 1)) is Reason.CONFLICT  # another target
    assert one.add("source-0", message(0, 2, mark=1)) is Reason.CONFLICT  # another text
    assert one.add("source-1", message(0, 2)) is Reason.SLOT
    assert one.add("source-1", message(2, 2)) is Reason.SLOT
    assert one.add("source-1", message(3, 2)) is Reason.SLOT
    assert one.add("nobody", message(1, 2)) is Reason.SLOT
    assert one.add("source-1", message(1, 3)) is Reason.TARGET
    assert not one.whole.is_set()
    assert one.add("source-1", message(1, 0)) is Reason.NONE
    assert one.add("source-0", message(2, 0)) is Reason.NONE
    assert one.whole.is_set()
    assert [one.messages[slot].target for slot in range(3)] == [2, 0, 0]


def test_nothing_comes_in_once_it_is_closed() -> None:
    one = gathering()
    one.add("source-0", message(0, 2))
    one.closed = True
    assert one.add("source-1", message(1, 2)) is Reason.LATE
    assert one.add("source-0", message(0, 2)) is Reason.NONE  # it was there before
    assert len(one.messages) == 1


# ---- release, with channels that only remember


class Channel:
    """A connection to a target; `fails` says what goes wrong."""

    def __init__(
        self, name: str, log: list[tuple[str, Any]], fails: str = "", gate: asyncio.Event | None = None
    ) -> None:
        self.name, self.log, self.fails, self.gate = name, log, fails, gate

    async def send(self, *frames: Frame) -> None:
        if self.gate is not None:
            await self.gate.wait()
        for frame in frames:
            if self.fails == "send" or (self.fails == "end" and isinstance(frame, Control)):
                raise ConnectionLostError(Reason.TRUNCATED, self.name)
            self.log.append((self.name, frame))

    async def answer(self) -> Control:
        if self.fails == "answer":
            raise ConnectionLostError(Reason.SLOW, self.name)
        return Control(Kind.REFUSED if self.fails == "refused" else Kind.ACCEPTED, 1)

    async def close(self) -> None:
        self.log.append((self.name, "closed"))

    def abort(self) -> None:
        self.log.append((self.name, "aborted"))


@pytest.fixture
def over(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Let tests say when time is over: `over.append(True)`."""
    ended: list[bool] = []

    async def wait(self: Node, event: asyncio.Event, _seconds: float) -> None:
        await until(lambda: ended or event.is_set() or self._stop.is_set())

    monkeypatch.setattr(Node, "_wait", wait)
    return ended


def release(
    one: Case,
    messages: list[Message],
    *,
    rng: Randomness | None = None,
    fails: dict[str, str] | None = None,
    before: Callable[[ScramblerNode], Awaitable[None]] | None = None,
    gate: asyncio.Event | None = None,
    state: Path | None = None,
) -> list[tuple[str, Any]]:
    """Fill a scrambler's batch, run it, and return what its targets were sent."""
    log: list[tuple[str, Any]] = []

    async def work() -> None:
        node = one.scrambler(rng=rng, state=state)
        made = node._dummy

        def dummy(number: int, target: int) -> bytes:
            log.append(("dummy", target))
            return made(number, target)

        async def connect(name: str, **_: object) -> Channel:
            if (fails or {}).get(name) == "connect":
                raise ConnectionLostError(Reason.SLOW, name)
            log.append((name, "opened"))
            return Channel(name, log, (fails or {}).get(name, ""), gate)

        for what, instead in (("_dummy", dummy), ("_connect", connect), ("_listening", nullcontext)):
            setattr(node, what, instead)
        batch = one.document.step(1).batches[0]
        for own in messages:
            assert node._put(batch.holders[own.slot], own) is Reason.NONE
        running = asyncio.create_task(node.run())
        if before is not None:
            await before(node)
        await running
        assert not any(gathered.messages for gathered in node._gatherings.values())

    bounded(work())
    return log


def sent(log: list[tuple[str, Any]]) -> list[tuple[str, Message]]:
    return [(name, frame) for name, frame in log if isinstance(frame, Message)]


def controls(log: list[tuple[str, Any]]) -> dict[str, Control]:
    return {name: frame for name, frame in log if isinstance(frame, Control)}


def test_a_batch_goes_out_once_with_its_dummies() -> None:
    with case(step(1, [holders(4)], dummies=5)) as one:
        batch = [message(slot, target) for slot, target in enumerate([0, 0, 2, 0])]
        log = release(one, batch)
        went = sent(log)
        assert len(went) == 9
        sealed = {own.sealed: COMPUTES[own.target] for own in batch}
        real = {frame.sealed: name for name, frame in went if frame.sealed in sealed}
        assert real == sealed
        dummies = [(name, frame) for name, frame in went if frame.sealed not in sealed]
        seals = one.document.seals(1)
        assert all(seals.open(frame.sealed, seal_key(name), target=name) is None for name, frame in dummies)
        # Places in the batch are not told, and everything else is what everybody sees.
        assert {(frame.step, frame.slot) for _, frame in went} == {(1, 0)}
        assert all(COMPUTES[frame.target] == name for name, frame in went)
        assert len({len(frame.sealed) for _, frame in went}) == 1
        counts = Counter(name for name, _ in went)
        assert {name: end.numbers for name, end in controls(log).items()} == {
            name: (counts[name], 4) for name in COMPUTES
        }
        assert one.journal("scrambler-1-1").counters() == {
            "state": "done",
            "accepted": 4,
            "repeated": 0,
            "sent": 9,
            "dummies": 5,
            "rejected": {},
            "stragglers": 0,
        }


def test_channels_and_dummies_are_ready_before_the_first_message_leaves() -> None:
    with case(step(1, [holders(3)], dummies=6)) as one:
        log = release(one, [message(slot, 0) for slot in range(3)])
        kinds = ["send" if isinstance(what, Message | Control) else str(what) for _, what in log]
        first = kinds.index("send")
        assert [name for name, what in log[:first] if what == "opened"] == list(COMPUTES)
        assert sum(name == "dummy" for name, _ in log[:first]) == 6
        assert all(name != "dummy" for name, _ in log[first:])


def test_capped_targets_get_no_more_messages_than_there_are_sources() -> None:
    with case(step(1, [holders(4)], dummies=7, capped=True, min_batch=4)) as one:
        rng = reproducible(3)
        for targets in ([0, 0, 0, 0], [0, 1, 2, 0], [1, 1, 1, 2]):
            for _ in range(20):
                log = release(one, [message(slot, target) for slot, target in enumerate(targets)], rng=rng)
                counts = Counter(name for name, _ in sent(log))
                assert sum(counts.values()) == 11
                assert max(counts.values()) <= 4
                assert all(counts[COMPUTES[target]] >= targets.count(target) for target in targets)


def test_the_order_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    # Three chi-square tests, each with a false alarm of 1e-7.
    monkeypatch.setattr(ScramblerNode, "_dummy", lambda _self, _number, _target: bytes(240))
    rng, batches = reproducible(7), 600
    together, apart, places = Counter[Any](), Counter[Any](), Counter[int]()
    with case(step(1, [holders(3)], dummies=1)) as one:
        for _ in range(batches):
            log = sent(release(one, [message(slot, 0) for slot in range(3)], rng=rng))
            marks = [frame.sealed[0] for name, frame in log if name == COMPUTES[0]]
            together[tuple(mark for mark in marks if mark)] += 1
            if 0 in marks:
                places[marks.index(0)] += 1
    with case(step(1, [holders(3)], dummies=0)) as one:
        for _ in range(batches):
            apart[
                tuple(name for name, _ in sent(release(one, [message(slot, slot) for slot in range(3)], rng=rng)))
            ] += 1
    assert set(together) == set(permutations((1, 2, 3)))
    assert set(apart) == set(permutations(COMPUTES))
    for counts, outcomes in ((together, 6), (apart, 6), (places, 4)):
        found = [*counts.values(), *[0] * (outcomes - len(counts))]
        assert stats.chisquare(found).pvalue > 1e-7, counts
    # A dummy goes to each target with probability 1/3: 600 of them are off by 84 (7 standard errors) below 1e-11.
    assert abs(places.total() - batches / 3) < 84


def test_the_order_of_many_messages_is_kept_within_blocks() -> None:
    # More than go out together: everything still comes once.
    people = 120
    with case(step(1, [holders(people)], dummies=30)) as one:
        log = sent(release(one, [message(slot, slot % 3) for slot in range(people)]))
        assert len(log) == 150
        assert len({frame.sealed for _, frame in log}) == 150


def test_nobody_gets_in_while_a_batch_is_released() -> None:
    with case(step(1, [holders(2)], min_batch=2)) as one:
        gate = asyncio.Event()

        async def before(node: ScramblerNode) -> None:
            await until(lambda: node.journal.state == "releasing")
            assert node._put("source-0", message(0, 2, mark=1)) is Reason.CONFLICT
            assert node._put("source-0", message(0, 0)) is Reason.NONE
            node.stop()  # what has begun is finished
            gate.set()

        log = release(one, [message(0, 0), message(1, 1)], before=before, gate=gate)
        assert len(sent(log)) == 4
        assert {end.kind for end in controls(log).values()} == {Kind.END}
        assert one.journal("scrambler-1-1").counters()["rejected"] == {"conflict": 1}
        assert one.journal("scrambler-1-1").repeated == 1


def test_stragglers_are_counted_and_come_too_late(over: list[bool]) -> None:
    with case(step(1, [holders(4)], min_batch=3)) as one:
        gate = asyncio.Event()

        async def before(node: ScramblerNode) -> None:
            over.append(True)
            await until(lambda: node.journal.state == "releasing")
            assert node._put("source-3", message(3, 0)) is Reason.LATE
            gate.set()

        log = release(one, [message(slot, 0) for slot in range(3)], before=before, gate=gate)
        assert len(sent(log)) == 5
        assert {end.numbers[1] for end in controls(log).values()} == {3}
        counters = one.journal("scrambler-1-1").counters()
        assert (counters["stragglers"], counters["rejected"]) == (1, {"late": 1})


@pytest.mark.parametrize("present", [0, 1, 2])
def test_below_the_minimum_nothing_is_sent_but_that_nothing_comes(over: list[bool], present: int) -> None:
    with case(step(1, [holders(4)], min_batch=3)) as one:
        over.append(True)
        log = release(one, [message(slot, 0) for slot in range(present)])
        assert sent(log) == []
        assert controls(log) == dict.fromkeys(COMPUTES, Control(Kind.ABORT, 1, Reason.BELOW_MINIMUM))
        assert all(name != "dummy" for name, _ in log)
        assert {what for _, what in log if isinstance(what, str)} == {"opened", "closed"}
        assert one.journal("scrambler-1-1").counters()["rejected"] == {"below minimum": 1}


def test_a_scrambler_that_is_stopped_gives_up_what_is_not_whole(over: list[bool]) -> None:
    del over

    async def before(node: ScramblerNode) -> None:
        node.stop()

    with case(step(1, [holders(4)], min_batch=3)) as one:
        log = release(one, [message(slot, 0) for slot in range(3)], before=before)
        assert sent(log) == []
        assert controls(log) == dict.fromkeys(COMPUTES, Control(Kind.ABORT, 1, Reason.STOPPED))


def test_nothing_leaves_before_every_target_is_there() -> None:
    with case(step(1, [holders(6)], dummies=0), collect=0.2, patience=0.2) as one:
        log = release(one, [message(slot, slot % 3) for slot in range(6)], fails={COMPUTES[1]: "connect"})
        assert sent(log) == []
        told = Control(Kind.ABORT, 1, Reason.SLOW)
        assert controls(log) == {COMPUTES[0]: told, COMPUTES[2]: told}
        assert one.journal("scrambler-1-1").facts["targets lost"] == 1


@pytest.mark.parametrize("fault", ["send", "end", "answer", "refused"])
def test_a_target_that_is_lost_is_counted_and_the_others_get_theirs(fault: str) -> None:
    with case(step(1, [holders(6)], dummies=0)) as one:
        log = release(one, [message(slot, slot % 3) for slot in range(6)], fails={COMPUTES[1]: fault})
        for name in (COMPUTES[0], COMPUTES[2]):
            assert sum(to == name for to, _ in sent(log)) == 2
            # What one is known to lack, the others need not keep: the result would not take it.
            lost = fault == "send"
            kind, reason = (Kind.ABORT, Reason.TRUNCATED) if lost else (Kind.END, Reason.NONE)
            assert controls(log)[name] == Control(kind, 1, reason, numbers=(2, 6))
            assert (name, "closed") in log
        assert one.journal("scrambler-1-1").facts["targets lost"] == 1
        assert ((COMPUTES[1], "aborted") in log) == (fault == "send")
        assert ((COMPUTES[1], "closed") in log) == (fault in ("end", "answer", "refused"))


@pytest.mark.parametrize("fault", ["connect", "send"])
def test_a_target_that_cannot_be_told_hinders_nobody(over: list[bool], fault: str) -> None:
    over.append(True)
    with case(step(1, [holders(4)], min_batch=3)) as one:
        log = release(one, [], fails={COMPUTES[1]: fault})
        assert controls(log).keys() == {COMPUTES[0], COMPUTES[2]}
        assert sum(what == "opened" for _, what in log) == sum(what == "closed" for _, what in log)


def test_two_batches_of_one_scrambler_do_not_wait_for_each_other() -> None:
    one_step, other = step(1, [holders(2)]), step(2, [holders(2, start=2)])
    other = other.model_copy(update={"batches": (other.batches[0].model_copy(update={"scrambler": "scrambler-1-1"}),)})
    with case(one_step, other) as one:
        log: list[tuple[str, Any]] = []

        async def work() -> None:
            node = one.scrambler()

            async def connect(name: str, **_: object) -> Channel:
                return Channel(name, log)

            for what, instead in (("_connect", connect), ("_listening", nullcontext)):
                setattr(node, what, instead)
            running = asyncio.create_task(node.run())
            assert node._put("source-0", message(0, 0, number=3)) is Reason.STEP
            assert node._put("source-0", message(0, 0, number=2)) is Reason.SLOT
            for slot in range(2):
                assert node._put(f"source-{slot}", message(slot, 0)) is Reason.NONE
            await until(lambda: "compute-1-3" in controls(log))
            assert not running.done()
            for slot in range(2):
                assert node._put(f"source-{slot + 2}", message(slot, 0, number=2)) is Reason.NONE
            await running

        bounded(work())
        assert {name[:9] for name in controls(log)} == {"compute-1", "compute-2"}
        assert one.journal("scrambler-1-1").counters()["rejected"] == {"step": 1, "slot": 1}


# ---- over the network


def test_what_sources_are_told() -> None:
    with case(step(1, [["source-0", "source-0", "source-1"]])) as one:

        async def work() -> None:
            name = "scrambler-1-1"
            async with one.tapped(*COMPUTES) as heard:
                node = one.scrambler(name)
                running = asyncio.create_task(node.run())
                connection = await one.client("source-0", name)
                await connection.send(message(0, 1))  # and gone, without an end
                await connection.close()
                await until(lambda: node.journal.rejected)
                end = Control(Kind.END, 1, numbers=(1, 1))
                answer = await one.say("source-0", name, [message(0, 1), message(2, 1), end])
                assert answer == Control(Kind.REFUSED, 1, Reason.SLOT, (1, 0, 0, 0, 0))
                answer = await one.say("source-0", name, [message(0, 1), message(1, 1), end])
                assert answer == Control(Kind.ACCEPTED, 1, Reason.NONE, (2, 0, 0, 0, 0))
                answer = await one.say("source-2", name, [message(2, 1), end])
                assert answer == Control(Kind.REFUSED, reason=Reason.IDENTITY, numbers=(0,) * 5)
                answer = await one.say(name, name, [Control(Kind.HEALTH)])
                assert answer == Control(Kind.HEALTH, numbers=(2, 2, 3, 0, 2))
                assert heard == []
                assert (await one.say("source-1", name, [message(2, 1), end])).kind is Kind.ACCEPTED
                await running
                assert sum(isinstance(frame, Message) for _, _, frame in heard) == 5
                assert {sender for _, sender, _ in heard} == {name}

        bounded(work())
        rejected = one.journal("scrambler-1-1").rejected
        assert rejected == {Reason.SLOT: 1, Reason.IDENTITY: 1, Reason.TRUNCATED: 1}


def test_a_scrambler_of_nothing_has_nothing_to_do() -> None:
    with case() as one:
        node = ScramblerNode(
            one.document, identity("compute-1-1"), one.sockets["compute-1-1"], journal=one.journal("compute-1-1")
        )
        bounded(node.run())
        assert node.journal.state == "done"


def test_a_batch_is_released_once_also_by_a_scrambler_that_was_started_again(tmp_path: Path) -> None:
    with case(step(1, [holders(3)], dummies=2)) as one:
        batch = [message(slot, slot) for slot in range(3)]
        assert len(sent(release(one, batch, state=tmp_path / "state"))) == 5
        log = release(one, batch, state=tmp_path / "state")  # the sources come again, with the same bytes
        assert sent(log) == []
        assert controls(log) == dict.fromkeys(COMPUTES, Control(Kind.ABORT, 1, Reason.DUPLICATE))
        (kept,) = (tmp_path / "state").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
    with case(step(1, [holders(3)], dummies=2)) as another:
        assert len(sent(release(another, batch, state=tmp_path / "state"))) == 5  # another run


def test_a_scrambler_that_cannot_remember_releases_nothing(tmp_path: Path) -> None:
    async def before(_node: ScramblerNode) -> None:
        await asyncio.sleep(0)  # it has read what it kept
        (tmp_path / "state").write_text("in the way")

    with case(step(1, [holders(3)])) as one:
        log = release(one, [message(slot, slot) for slot in range(3)], state=tmp_path / "state", before=before)
        assert sent(log) == []
        assert controls(log) == dict.fromkeys(COMPUTES, Control(Kind.ABORT, 1, Reason.STOPPED))


def test_who_sends_again_after_the_release_is_told_that_it_was_taken() -> None:
    one = gathering()
    one.add("source-0", message(0, 2))
    one.closed = True
    one.forget()
    assert not one.messages
    assert one.add("source-0", message(0, 2)) is Reason.NONE
    assert one.add("source-0", message(0, 1)) is Reason.CONFLICT
    assert one.add("source-0", message(0, 2, mark=9)) is Reason.CONFLICT
    assert one.add("source-1", message(1, 2)) is Reason.LATE


def test_a_holder_cannot_keep_a_scrambler_busy_for_ever() -> None:
    async def work(one: Case) -> None:
        running = asyncio.create_task(one.scrambler().run())
        frames = [message(0, 0)] * 2
        assert (await one.say("source-0", "scrambler-1-1", [*frames, Control(Kind.END, 1)])).kind is Kind.ACCEPTED
        again = await one.say("source-0", "scrambler-1-1", [message(0, 0)] * 3)
        assert again == Control(Kind.REFUSED, 0, Reason.MALFORMED, (0, 0, 0, 0, 0))
        running.cancel()
        await asyncio.wait([running])

    with case(step(1, [holders(3)])) as one:
        bounded(work(one))


def test_who_still_sends_for_an_earlier_run_is_not_heard() -> None:
    async def work(now: Case, before: Case) -> None:
        node = now.scrambler()
        running = asyncio.create_task(node.run())
        place = now.document.servers["scrambler-1-1"].place
        loop, layout = asyncio.get_running_loop(), before.document.layout
        old = await connect(
            "scrambler-1-1", place, identity("source-0"), layout=layout, patience=5, until=loop.time() + 5
        )
        await old.send(message(0, 0), Control(Kind.END, 1, numbers=(1, 1)))
        with pytest.raises(ConnectionLostError):
            await old.answer()
        await old.close()
        assert not node._gatherings[1].messages
        assert now.journal("scrambler-1-1").rejected[Reason.OTHER_RUN] == 1
        running.cancel()
        await asyncio.wait([running])

    with case(step(1, [holders(3)])) as now, case(step(1, [holders(3)])) as before:
        assert now.document.digest != before.document.digest
        bounded(work(now, before))


def test_one_sealed_text_cannot_fill_two_places() -> None:
    with case(step(1, [["source-0", "source-0", "source-1"]])) as one:
        gathering = Gathering(1, one.document.step(1).batches[0], 3)
        first = message(0, 0)
        assert gathering.add("source-0", first) is Reason.NONE
        copy = Message(first.step, 1, first.target, first.sealed)
        assert gathering.add("source-0", copy) is Reason.DUPLICATE
        assert gathering.add("source-0", first) is Reason.NONE  # the same again
        assert (len(gathering.messages), gathering.people) == (1, 1)
        assert gathering.add("source-0", message(1, 0)) is Reason.NONE
        assert (len(gathering.messages), gathering.people) == (2, 1)
