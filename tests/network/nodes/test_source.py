"""Sources: one randomized, sealed message for each record, for ever."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import Connection, Control, Kind, Message, Reason
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.source import Entry, NotDeliveredError, Person, SourceNode, coins, deliveries
from runtime_cases import COINS, Case, bounded, case, holders, identity, seal_key, step, until

BOTH = [["source-0", "source-1", "source-0"], ["source-2", "source-0"]]
"""Two batches; source-0 speaks for three."""


def opened(one: Case, message: Message) -> bytes | None:
    name = one.document.step(message.step).computes[message.target]
    return one.document.seals(message.step).open(message.sealed, seal_key(name), target=name)


def people(one: Case, name: str) -> list[Person]:
    """Return the records of a source, all different."""
    return [replace(own, record=place) for place, own in enumerate(one.people(name))]


def entries(one: Case, name: str) -> list[Entry]:
    """Return what they have to say."""
    return list(one.entries(name, people(one, name)))


def test_targets_are_those_of_the_coins_and_redirected_messages_carry_nothing() -> None:
    with case(step(1, [holders(40)], sigma=0.6)) as one:
        kept = 0
        for name in holders(40):
            (entry,) = one.entries(name)
            (delivery,) = deliveries(one.document, [entry], COINS)
            (message,) = delivery.messages
            rng = coins(COINS, run=one.document.drawn, step=1, records=[entry.record])
            (target,) = one.document.step(1).sampling.randomize([entry.own], rng=rng).tolist()
            assert (delivery.to, message.step, message.slot, message.target) == ("scrambler-1-1", 1, entry.slot, target)
            assert opened(one, message) == (entry.content if target == entry.own else None)
            kept += target == entry.own
        # A message stays with probability 0.6: none or all 40 of them below 1e-8.
        assert 0 < kept < 40


def test_coins_are_those_of_record_step_and_run() -> None:
    words = [
        coins(COINS, run=run, step=number, records=[record]).words(1).tolist()
        for run, number, record in (("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("a", 1, 1), ("a", 1, 0))
    ]
    assert len({tuple(own) for own in words}) == 4
    assert words[0] == words[4]
    together = coins(COINS, run="a", step=1, records=[0, 1]).words(2).tolist()
    assert together == [words[0][0], words[3][0]]


def test_a_source_of_several_records_sends_each_to_its_scrambler() -> None:
    with case(step(1, BOTH)) as one:
        found = deliveries(one.document, entries(one, "source-0"), COINS)
        assert [(own.to, [message.slot for message in own.messages]) for own in found] == [
            ("scrambler-1-1", [0, 2]),
            ("scrambler-1-2", [1]),
        ]


def test_flooded_messages_go_to_different_targets_and_one_at_most_has_data() -> None:
    with case(step(1, [holders(20)], scrambled=False, flood=1, sigma=0.9)) as one:
        data = Counter[bool]()
        for name in holders(20):
            (entry,) = one.entries(name)
            found = deliveries(one.document, [entry], COINS)
            assert len({own.to for own in found}) == len(found) == 2
            contents = {own.to: opened(one, own.messages[0]) for own in found}
            true = one.document.step(1).computes[entry.own]
            assert contents == {to: entry.content if to == true else None for to in contents}
            data[true in contents] += 1
        assert len(data) == 2


def test_luck_carries_no_data_where_that_is_asked() -> None:
    with case(step(1, [holders(60)], sigma=1.0, only_on_purpose=True)) as one:
        for name in holders(60):
            (delivery,) = deliveries(one.document, one.entries(name), COINS)
            assert opened(one, delivery.messages[0]) is None


def test_the_same_messages_go_out_again(tmp_path: Path) -> None:
    with case(step(1, BOTH)) as one:

        async def once() -> list[Any]:
            async with one.tapped("scrambler-1-1", "scrambler-1-2") as heard:
                node = SourceNode(
                    one.document,
                    identity("source-0"),
                    people(one, "source-0"),
                    key=COINS,
                    state=tmp_path / "state",
                    journal=Journal(node="source-0"),
                )
                await node.run()
                assert (node.journal.state, node.journal.sent) == ("done", 3)
                return sorted(heard, key=lambda own: own[0])

        first, second = bounded(once()), bounded(once())
        assert first == second
        assert [frame.numbers[:2] for _, _, frame in first if isinstance(frame, Control)] == [(2, 2), (1, 1)]
        (kept,) = (tmp_path / "state").iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_two_processes_of_one_source_send_the_same_bytes(tmp_path: Path) -> None:
    with case() as one:

        async def work() -> None:
            async with one.tapped("scrambler-1-1") as heard:
                twins = [one.source("source-1", tmp_path) for _ in range(3)]
                await asyncio.gather(*(node.run() for node in twins))  # all find that nothing was sent before
            messages = [frame for _, _, frame in heard if isinstance(frame, Message)]
            assert (len(messages), len(set(messages))) == (3, 1)
            assert len(list((tmp_path / "state").iterdir())) == 1

        bounded(work())


def test_a_broken_connection_is_tried_again_with_the_same_bytes(tmp_path: Path) -> None:
    with case() as one:

        async def work() -> None:
            heard = list[Message]()

            async def drops(connection: Connection) -> None:
                while isinstance(frame := await connection.receive(), Message):
                    heard.append(frame)
                if len(heard) < 3:
                    connection.abort()
                elif len(heard) < 4:
                    await connection.send(Message(1, 0, 0, bytes(240)))  # no answer at all
                else:
                    await connection.send(Control(Kind.ACCEPTED, 1))

            async with one.played("scrambler-1-1", drops):
                node = one.source("source-1", tmp_path)
                await node.run()
            assert len(heard) == 4
            assert len(set(heard)) == 1
            assert node.journal.sent == 1

        bounded(work())


def test_answers_that_are_no_frames_do_not_end_a_source(tmp_path: Path) -> None:
    with case(step(1, BOTH)) as one:

        async def work() -> None:
            told = 0

            async def garbage(connection: Connection) -> None:
                nonlocal told
                while isinstance(await connection.receive(), Message):
                    pass
                told += 1
                if told == 1:
                    connection._writer.write(b"\xff" * 64)
                else:
                    await connection.send(Control(Kind.ACCEPTED, 1))

            async with one.played("scrambler-1-1", garbage), one.tapped("scrambler-1-2"):
                node = SourceNode(
                    one.document,
                    identity("source-0"),
                    people(one, "source-0"),
                    key=COINS,
                    state=tmp_path,
                    journal=Journal(node="source-0"),
                )
                await node.run()
            assert node.journal.sent == 3

        bounded(work())


def test_what_is_refused_is_counted_and_not_sent_again(tmp_path: Path) -> None:
    with case() as one:

        async def work() -> None:
            heard = 0

            async def refuses(connection: Connection) -> None:
                nonlocal heard
                while isinstance(await connection.receive(), Message):
                    heard += 1
                await connection.send(Control(Kind.REFUSED, 1, Reason.LATE))

            async with one.played("scrambler-1-1", refuses):
                node = one.source("source-1", tmp_path)
                with pytest.raises(NotDeliveredError, match=r"none of its 1 messages was accepted \(late\)"):
                    await node.run()
            assert (heard, node.journal.sent) == (1, 0)
            assert node.journal.rejected == {Reason.LATE: 1}

        bounded(work())


def test_a_source_gives_up_in_time_or_when_it_is_stopped(tmp_path: Path) -> None:
    with case(collect=0.01) as one:
        one.sockets["scrambler-1-1"].close()
        node = one.source("source-1", tmp_path)
        with pytest.raises(NotDeliveredError, match=r"none of its 1 messages was accepted \(slow\)"):
            bounded(node.run())
        assert node.journal.rejected == {Reason.SLOW: 1}
    with case(collect=3000.0) as one:

        async def work() -> None:
            one.sockets["scrambler-1-1"].close()
            node = one.source("source-2", tmp_path)
            running = asyncio.create_task(node.run())
            await until(lambda: node.journal.state == "sending")
            node.stop()
            with pytest.raises(NotDeliveredError):
                await running

        bounded(work())


def test_a_source_of_which_only_a_part_was_taken_says_so(tmp_path: Path) -> None:
    with case(step(1, [["source-0", "source-0"]], scrambled=False, flood=1)) as one:

        async def takes(connection: Connection) -> None:
            while isinstance(await connection.receive(), Message):
                pass
            await connection.send(Control(Kind.ACCEPTED, 1))

        async def refuses(connection: Connection) -> None:
            while isinstance(await connection.receive(), Message):
                pass
            await connection.send(Control(Kind.REFUSED, 1, Reason.LATE))

        async def work() -> None:
            node = SourceNode(
                one.document,
                identity("source-0"),
                people(one, "source-0"),
                key=COINS,
                state=tmp_path,
                journal=Journal(node="source-0"),
            )
            names = sorted({delivery.to for delivery in deliveries(one.document, entries(one, "source-0"), COINS)})
            assert len(names) > 1
            async with AsyncExitStack() as stack:
                for place, name in enumerate(names):
                    await stack.enter_async_context(one.played(name, refuses if place else takes))
                await node.run()
            counters = node.journal.counters()
            assert counters["state"] == "done"
            assert counters["undelivered"] + counters["sent"] == 4
            assert 0 < counters["undelivered"] < 4

        bounded(work())


# ---- state


def written(one: Case, folder: Path) -> Path:
    """Run source-1 once, and return the file that it keeps."""

    async def work() -> None:
        async with one.tapped("scrambler-1-1"):
            await one.source("source-1", folder).run()

    bounded(work())
    (kept,) = (folder / "state").iterdir()
    return kept


def fails(one: Case, folder: Path, message: str) -> None:
    """See that source-1 fails, and sends nothing."""

    async def work() -> None:
        async with one.tapped("scrambler-1-1") as heard:
            with pytest.raises(DataError, match=message):
                await one.source("source-1", folder).run()
            assert heard == []

    bounded(work())


def test_state_of_another_document_is_refused(tmp_path: Path) -> None:
    with case() as one:
        kept = written(one, tmp_path)
        other = RunDocument.model_validate_json(one.document.text.replace('"people": 3', '"people": 4'))
        assert (other.run, other.digest == one.document.digest) == (one.document.run, False)
        one.document = other
        fails(one, tmp_path, "was written for another document of the same run: nothing was sent")
        assert kept.exists()


@pytest.mark.parametrize("cut", [33, 95, 99, 101, -1])
def test_damaged_state_is_refused(tmp_path: Path, cut: int) -> None:
    with case() as one:
        kept = written(one, tmp_path)
        whole = kept.read_bytes()
        kept.write_bytes(whole[:cut])
        fails(one, tmp_path, "is damaged: nothing was sent")
        kept.write_bytes(whole[:32] + b"\xff" + whole[33:])
        fails(one, tmp_path, "is damaged: nothing was sent")
        for kind in (Kind.END, 99):  # a frame of another kind, and none of the protocol
            kept.write_bytes(whole[:101] + bytes([kind]) + whole[102:])
            fails(one, tmp_path, "is damaged: nothing was sent")
        kept.write_bytes(whole)
        written(one, tmp_path)


def test_state_that_cannot_be_written_means_that_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    with case() as one:
        monkeypatch.setattr(os, "fsync", full)
        fails(one, tmp_path, r"cannot be written: No space left on device\. Nothing was sent")
        monkeypatch.undo()
        (tmp_path / "state").rmdir()
        (tmp_path / "state").write_text("a file where the folder should be")
        fails(one, tmp_path, "cannot be")


def test_state_that_cannot_be_read(tmp_path: Path) -> None:
    with case() as one:
        kept = written(one, tmp_path)
        kept.unlink()
        kept.mkdir()
        fails(one, tmp_path, "cannot be read: Is a directory")


def test_a_source_knows_its_places(tmp_path: Path) -> None:
    with case(step(1, BOTH)) as one:
        mine = people(one, "source-0")
        for wrong in (mine[:-1], [*mine, mine[0]], people(one, "source-1"), []):
            with pytest.raises(DataError, match="records of source-0 differ from the run's document"):
                SourceNode(
                    one.document, identity("source-0"), wrong, key=COINS, state=tmp_path, journal=Journal(node="x")
                )
        with pytest.raises(DataError, match="records of stranger"):
            SourceNode(one.document, identity("stranger"), mine, key=COINS, state=tmp_path, journal=Journal(node="x"))


def test_records_are_not_shown() -> None:
    shown = repr(Entry(step=1, batch=0, slot=0, record=3, own=2, content=b"private"))
    assert "private" not in shown
    assert "own" not in shown
    assert "77" not in repr(Person(record=3, places={1: (0, 0)}, row=np.array([77.5])))
    assert np.array_equal(coins(COINS, run="a", step=1, records=[1]).words(1).size, 1)
