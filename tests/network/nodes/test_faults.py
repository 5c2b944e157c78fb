"""What goes wrong on the wire, done for real: all nodes run in this process, over real TLS on loopback."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hushuffle.errors import DataError
from hushuffle.files.private_files import write_whole
from hushuffle.network.nodes.connections import ConnectionLostError, Frame, Kind, Message, Reason
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.listening import OF_ADDRESS, STRANGERS
from hushuffle.network.nodes.recorder import Trace
from hushuffle.network.nodes.result import RunFailedError
from hushuffle.network.nodes.source import deliveries
from network.network_tools import KEY, Stage, arrived, counts, end, held, plan_text, say, stage
from runtime_cases import bounded, later, until

COLLECT = 60.0
PATIENT = plan_text(collect=COLLECT, patience=100.0)
"""The time of collecting may pass at once, and nobody loses patience."""
LONG_AGO, NOT_YET = dt.timedelta(days=-3), dt.timedelta(hours=2)


def message_of(scene: Stage, name: str) -> tuple[str, Message]:
    """Return where a source sends, and its message; sealed anew every time."""
    (found,) = deliveries(scene.document, held(scene.deployment)[name], KEY)
    return found.to, found.messages[0]


def sent_by(scene: Stage, scrambler: str) -> int:
    """Return how many messages somebody on the wire saw from a node."""
    return sum(count for sender, _receiver, count in scene.trace.messages().rows() if sender == scrambler)


def files(folder: Path) -> list[bytes]:
    """Return what is in the files of a folder."""
    return [path.read_bytes() for path in folder.iterdir()]


def raw(scene: Stage, name: str, data: bytes = b"") -> socket.socket:
    """Return a plain connection to a node, without TLS."""
    opened = socket.create_connection(scene.document.servers[name].place)
    opened.sendall(data)
    return opened


def test_without_faults_all_comes_through(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path, recorded=True) as scene:
            scene.start_servers()
            scene.start(*scene.sources)
            result = await scene.result()
            assert counts(result) == arrived(scene.deployment)
            assert (result.steps[0].sources, result.steps[0].lost_batches) == (12, 0)
            assert scene.rejected(*scene.journals) == {}
            assert [sent_by(scene, name) for name in scene.scramblers] == [9, 9]

    bounded(scenes())


def test_a_message_sent_twice_counts_once(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            to, message = message_of(scene, name)
            tries: list[list[Frame]] = [
                [message, end(1, 1, 1)],
                [message, end(1, 1, 1)],
                [message, message, end(1, 2, 1)],
            ]
            for frames in tries:
                answer = await say(await scene.client(name, to), frames)
                assert answer.kind is Kind.ACCEPTED
            scene.start(*scene.sources[1:])
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert (scene.journals[to].accepted, scene.journals[to].repeated) == (6, 3)

    bounded(scenes())


def test_a_second_message_for_the_same_record_is_refused(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            to, message = message_of(scene, name)
            assert (await say(await scene.client(name, to), [message, end(1, 1, 1)])).kind is Kind.ACCEPTED
            # The same coins, sealed anew: not the same bytes, so not the same message.
            answer = await say(await scene.client(name, to), [message_of(scene, name)[1], end(1, 1, 1)])
            assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.CONFLICT)
            scene.start(*scene.sources[1:])
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert scene.rejected(to) == {"conflict": 1}

    bounded(scenes())


def test_a_place_of_somebody_else_a_wrong_target_and_a_wrong_step_are_refused(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            to, good = message_of(scene, name)
            slots = len(scene.sources_of(to))
            for message, reason in (
                (Message(1, (good.slot + 1) % slots, good.target, good.sealed), Reason.SLOT),
                (Message(1, 1000, good.target, good.sealed), Reason.SLOT),
                (Message(1, good.slot, 3, good.sealed), Reason.TARGET),
                (Message(2, good.slot, good.target, good.sealed), Reason.STEP),
            ):
                answer = await say(await scene.client(name, to), [message, end(1, 1, 1)])
                assert (answer.kind, answer.reason) == (Kind.REFUSED, reason)
            scene.start(*scene.sources)
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert scene.rejected(to) == {"slot": 2, "target": 1, "step": 1}

    bounded(scenes())


def test_a_scrambler_that_sends_twice_is_found_out(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            false, other = scene.scramblers
            scene.start(scene.document.result, *scene.computes, other)
            own = [message_of(scene, name)[1] for name in scene.sources_of(false)]
            for target, to in enumerate(scene.computes):
                mine = [message for message in own if message.target == target]
                seals, key = scene.document.seals(1), scene.document.seal_key(to)
                mine.append(Message(1, 0, target, seals.seal(None, key, target=to)))  # one of its three dummies
                frames = [*mine, *mine[:1]]
                answer = await say(await scene.client(false, to), [*frames, end(1, len(frames), 6)])
                assert answer.kind is Kind.ACCEPTED
                answer = await say(await scene.client(false, to), [*mine, end(1, len(mine), 6)])
                assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.DUPLICATE)
            scene.start(*scene.sources_of(other))
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert scene.rejected(*scene.computes) == {"duplicate": 3 + 3}

    bounded(scenes())


def test_a_message_of_another_run_does_not_open(tmp_path: Path) -> None:
    async def scenes() -> None:
        # The same plan, people, names, coins, and even the same authority: only the number of the run differs.
        first = stage(plan_text(), tmp_path)
        async with first, stage(plan_text(), tmp_path, authority=first.authority) as scene:
            scene.start_servers()
            name = scene.sources[0]
            _, old = message_of(first, name)
            to, _ = message_of(scene, name)
            # A scrambler cannot read it; whoever it is for finds out, and counts the loss.
            answer = await say(await scene.client(name, to), [old, end(1, 1, 1)])
            scene.start(*scene.sources[1:])
            result = await scene.result()
            assert answer.kind is Kind.ACCEPTED
            assert counts(result) == arrived(scene.deployment, lost=[name])
            assert scene.rejected(*scene.computes) == {"unreadable": 1}

    bounded(scenes())


def test_damaged_seals_and_records_of_other_groups_are_dropped_and_counted(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            damaged, false, early = scene.sources[:3]
            seals = scene.document.seals(1)
            for name, content in ((damaged, None), (false, b"\xff" * 4), (early, b"no record")):
                to, message = message_of(scene, name)
                compute = scene.computes[message.target]
                sealed = os.urandom(len(message.sealed))
                if content is not None:
                    sealed = seals.seal(content, scene.document.seal_key(compute), target=compute)
                wrong = Message(1, message.slot, message.target, sealed)
                assert (await say(await scene.client(name, to), [wrong, end(1, 1, 1)])).kind is Kind.ACCEPTED
            scene.start(*scene.sources[3:])
            assert counts(await scene.result()) == arrived(scene.deployment, lost=[damaged, false, early])
            assert scene.rejected(*scene.computes) == {"unreadable": 1, "malformed": 2}

    bounded(scenes())


def test_a_message_cut_short_leaves_its_place_free(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            to, message = message_of(scene, name)
            whole = scene.document.layout.pack(message)
            for part in (b"", whole[:1], whole[:700]):
                connection = await scene.client(name, to)
                connection._writer.write(part)
                await connection.close()
            await until(lambda: scene.rejected(to) == {"truncated": 3})
            assert scene.journals[to].accepted == 0
            # All messages came, but not the word that these are all: they are kept, for ever the same ones.
            connection = await scene.client(name, to)
            await connection.send(message)
            await connection.close()
            await until(lambda: scene.rejected(to) == {"truncated": 4})
            answer = await say(await scene.client(name, to), [message, end(1, 1, 1)])
            assert answer.kind is Kind.ACCEPTED
            assert (scene.journals[to].accepted, scene.journals[to].repeated) == (1, 1)
            scene.start(*scene.sources[1:])
            assert counts(await scene.result()) == arrived(scene.deployment)

    bounded(scenes())


def test_bytes_that_are_no_frames_end_the_connection_and_nothing_else(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            to, _ = message_of(scene, name)
            for garbage in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes(2000), b"\x01\x02" + b"\xff" * 62):
                connection = await scene.client(name, to)
                connection._writer.write(garbage)
                answer = await connection.answer()
                await connection.close()
                assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.MALFORMED)
            assert scene.rejected(to) == {"malformed": 3}
            scene.start(*scene.sources)
            assert counts(await scene.result()) == arrived(scene.deployment)

    bounded(scenes())


def test_who_does_not_speak_tls_is_refused(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            servers = [scene.document.result, scene.computes[0], scene.scramblers[0]]
            opened = [raw(scene, name, b"no TLS at all, but more than the header of a record\n") for name in servers]
            raw(scene, servers[2]).close()
            await until(lambda: all(scene.journals[name].rejected[Reason.CERTIFICATE] for name in servers))
            await until(lambda: scene.journals[servers[2]].rejected[Reason.TRUNCATED])
            scene.start(*scene.sources)
            assert counts(await scene.result()) == arrived(scene.deployment)
            for one in opened:
                one.close()

    bounded(scenes())


async def refused(scene: Stage, identity: Identity, to: str) -> Reason:
    """Return why a client is refused; nobody takes its message."""
    _, message = message_of(scene, identity.name)
    try:
        answer = await say(await scene.client(identity.name, to, identity=identity), [message, end(1, 1, 1)])
    except ConnectionLostError as error:
        # With TLS 1.3 a client learns late, from an alert or from the end of the connection, whichever comes first.
        return error.reason
    assert answer.kind is Kind.REFUSED
    return answer.reason


@pytest.mark.parametrize("which", ["another authority", "expired", "not valid yet", "signed by itself"])
def test_a_wrong_certificate_of_a_client_is_refused(tmp_path: Path, which: str) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            good = scene.identity(name)
            authority = Authority(days=1) if which in {"another authority", "signed by itself"} else scene.authority
            shift = {"expired": LONG_AGO, "not valid yet": NOT_YET}.get(which)
            made = authority.issue(name, address=good.address, shift=shift)
            certificate, key = made.certificate, made.key
            if which == "signed by itself":
                certificate, key = authority.certificate, authority.key
            bad = Identity(name=name, certificate=certificate, authority=good.authority, key=key, address=good.address)
            to, _ = message_of(scene, name)
            for server in (to, scene.computes[0], scene.document.result):
                assert await refused(scene, bad, server) in {Reason.CERTIFICATE, Reason.TRUNCATED}
                assert scene.journals[server].rejected == {Reason.CERTIFICATE: 1}
                assert scene.journals[server].accepted == 0
            scene.start(*scene.sources)
            assert counts(await scene.result()) == arrived(scene.deployment)

    bounded(scenes())


@pytest.mark.parametrize("which", ["another authority", "expired", "not valid yet", "of another node"])
def test_nobody_sends_to_a_server_with_a_wrong_certificate(tmp_path: Path, which: str) -> None:
    async def scenes() -> None:
        async with stage(PATIENT, tmp_path, recorded=True) as scene:
            false, _ = scene.scramblers
            authority = Authority(days=1) if which == "another authority" else scene.authority
            shift = {"expired": LONG_AGO, "not valid yet": NOT_YET}.get(which)
            made = authority.issue("somebody" if which == "of another node" else false, shift=shift)
            # What it says of itself to others is wrong; what it asks of others is not.
            bad = Identity(
                name=false, certificate=made.certificate, authority=scene.identity(false).authority, key=made.key
            )
            scene.start(false, identity=bad)
            own = scene.sources_of(false)
            scene.start(*own)
            await until(lambda: sum(scene.rejected(false).values()) > len(own))
            for name in own:
                scene.nodes[name].stop()
            await scene.wait(*own)  # tried again until they were stopped, to no avail
            assert scene.trace.messages().height == 0
            assert scene.rejected(*own) == {"certificate": 6}
            seen = scene.rejected(false).keys()
            assert seen & {"certificate", "truncated"}  # an alert, or the connection's end
            assert seen <= {"certificate", "truncated", "below minimum"}
            assert scene.journals[false].accepted == 0

    bounded(scenes())


def test_somebody_on_the_way_who_answers_first_is_told_nothing_and_holds_up_nobody(tmp_path: Path) -> None:
    """As a captive portal does: every source's first connection shows the certificate of another authority."""

    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            first, second = scene.scramblers
            context = Authority(days=1).issue(first).server()
            context.verify_mode = ssl.CERT_NONE
            where = scene.loopback.private[first].dup()
            portal = await asyncio.start_server(lambda *_: None, sock=where, ssl=context)
            scene.start(scene.document.result, *scene.computes, second)
            scene.start(*scene.sources)
            await scene.wait(*scene.sources_of(second))
            await asyncio.sleep(0.3)
            portal.close()
            scene.start(first)
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert scene.rejected(*scene.sources) == {}

    bounded(scenes())


def test_who_is_not_on_the_roster_of_a_node_is_refused(tmp_path: Path) -> None:
    async def scenes() -> None:
        text = plan_text(sets='[["age"], ["sex"]]', more='per_person = "one"', people=24)
        async with stage(text, tmp_path) as scene:
            scene.start_servers()
            first, second = scene.scramblers[0], scene.scramblers[-1]
            source = scene.sources_of(first)[0]
            for name, to in (
                (source, second),  # a source of another step
                (source, scene.computes[0]),  # round the scrambler
                (source, scene.document.result),
                (first, scene.computes[-1]),  # a scrambler of another step
                (first, scene.document.result),
            ):
                answer = await say(await scene.client(name, to), [end(1, 0, 0)])
                assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.IDENTITY)
            stranger = scene.authority.issue("stranger")
            for to in (first, scene.computes[0], scene.document.result):
                answer = await say(await scene.client("stranger", to, identity=stranger), [end(1, 0, 0)])
                assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.IDENTITY)
            assert scene.rejected(*scene.journals) == {"identity": 8}
            scene.start(*scene.sources)
            assert counts(await scene.result()) == arrived(scene.deployment)

    bounded(scenes())


def test_slow_peers_are_dropped_and_hold_up_nobody_for_longer_than_patience(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(patience=30.0), tmp_path) as scene:
            scene.start_servers()
            name = scene.sources[0]
            to, _ = message_of(scene, name)
            # As many as a node has places for say nothing at all; one shows its certificate, and then says nothing.
            connection = await scene.client(name, to)
            silent = [raw(scene, to) for _ in range(STRANGERS)]
            scene.start(*scene.sources)
            await until(lambda: scene.rejected(to).get("slow", 0) >= OF_ADDRESS)
            later(31.0)
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert scene.journals[to].accepted == 6
            assert scene.rejected(to)["slow"] >= OF_ADDRESS  # more of one address than it may have: they go first
            connection.abort()
            for one in silent:
                one.close()

    bounded(scenes())


def test_a_batch_below_its_minimum_is_never_sent(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(PATIENT, tmp_path, recorded=True) as scene:
            scene.start_servers()
            small, whole = scene.scramblers
            some = [*scene.sources_of(whole), *scene.sources_of(small)[:3]]  # 4 is the minimum
            scene.start(*some)
            await scene.wait(*some, whole)
            later(COLLECT)
            with pytest.raises(RunFailedError, match="only 6 of 12 sources came through"):
                await scene.result()
            assert (sent_by(scene, small), sent_by(scene, whole)) == (0, 9)
            assert scene.journals[small].counters()["rejected"] == {"below minimum": 1}
            assert scene.journals[small].dummies == 0
            assert scene.rejected(*scene.computes) == {"below minimum": 3}

    bounded(scenes())


def test_stragglers_are_counted(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(PATIENT, tmp_path, recorded=True) as scene:
            scene.start_servers()
            small, whole = scene.scramblers
            missing = scene.sources_of(small)[4:]
            there = [name for name in scene.sources if name not in missing]
            scene.start(*there)
            await scene.wait(*there, whole)
            later(COLLECT)
            result = await scene.result()
            assert counts(result) == arrived(scene.deployment, lost=missing)
            assert (result.steps[0].sources, result.steps[0].planned) == (10, 12)
            assert scene.journals[small].facts["stragglers"] == 2
            assert sent_by(scene, small) == 4 + 3  # as many dummies as ever

    bounded(scenes())


def test_who_comes_late_is_told_so(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(PATIENT, tmp_path) as scene:
            scene.start(scene.document.result, *scene.computes, *scene.scramblers)
            small, whole = scene.scramblers
            *early, late = scene.sources_of(small)
            to, message = message_of(scene, late)
            connection = await scene.client(late, to)  # in time, but says nothing until the batch is closed
            scene.start(*scene.sources_of(whole), *early)
            await scene.wait(*early, whole)
            node = scene.nodes[small]
            gathering = node._gatherings[1]  # type: ignore[attr-defined]
            gathering.closed = True
            answer = await say(connection, [message, end(1, 1, 1)])
            assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.LATE)
            later(COLLECT)
            assert counts(await scene.result()) == arrived(scene.deployment, lost=[late])
            assert scene.rejected(small) == {"late": 1}

    bounded(scenes())


def test_a_scrambler_stopped_while_gathering_gives_up_and_says_so(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path, recorded=True) as scene:
            scene.start_servers()
            stopped, whole = scene.scramblers
            *early, _late = scene.sources_of(stopped)
            scene.start(*scene.sources_of(whole), *early)
            await scene.wait(*early)
            scene.nodes[stopped].stop()  # what SIGTERM does
            with pytest.raises(RunFailedError, match="only 6 of 12 sources came through"):
                await scene.result()
            assert scene.journals[stopped].counters()["rejected"] == {"stopped": 1}
            assert sent_by(scene, stopped) == 0  # five were there, and four would have been enough
            assert scene.rejected(*scene.computes) == {"stopped": 3}

    bounded(scenes())


def test_a_scrambler_stopped_while_releasing_finishes(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path, recorded=True) as scene:
            scene.start_servers()
            stopped = scene.scramblers[0]
            scene.start(*scene.sources)
            await until(lambda: scene.journals[stopped].state in {"releasing", "done"})
            scene.nodes[stopped].stop()
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert sent_by(scene, stopped) == 9

    bounded(scenes())


def test_a_batch_that_breaks_off_is_lost_as_a_whole(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            broken, whole = scene.scramblers
            scene.start(scene.document.result, *scene.computes, whole)
            own = [message_of(scene, name)[1] for name in scene.sources_of(broken)]
            for target, to in enumerate(scene.computes):
                mine = [message for message in own if message.target == target]
                connection = await scene.client(broken, to)
                for message in [*mine, Message(1, 0, target, own[0].sealed)]:
                    await connection.send(message)
                await connection.close()  # without the word that these were all
            lost = scene.sources_of(broken)
            scene.start(*scene.sources_of(whole))
            with pytest.raises(RunFailedError, match="only 6 of 12 sources came through"):
                await scene.result()
            assert scene.rejected(*scene.computes)["truncated"] == 3
            nodes = [scene.nodes[name] for name in scene.computes]
            sums = [node._merged[1][0] for node in nodes]  # type: ignore[attr-defined]
            assert sum(sums).tolist() == arrived(scene.deployment, lost=lost)[0]

    bounded(scenes())


def test_without_scramblers_what_broke_off_is_sent_again_and_counts(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(traffic="flood = 1"), tmp_path) as scene:
            scene.start_servers()
            first, second = scene.sources[:2]
            # A first try broke off when all but the end had come.
            kept = deliveries(scene.document, held(scene.deployment)[first], KEY)
            for delivery in kept:
                connection = await scene.client(first, delivery.to)
                await connection.send(delivery.messages[0])
                await connection.close()
            await until(lambda: scene.rejected(*scene.computes) == {"truncated": 2})
            for delivery in kept:
                answer = await say(await scene.client(first, delivery.to), [*delivery.messages, end(1, 1, 1)])
                assert answer.kind is Kind.ACCEPTED
            # Another's answer was lost: it sends all again.
            for delivery in deliveries(scene.document, held(scene.deployment)[second], KEY):
                for again in range(2):
                    answer = await say(await scene.client(second, delivery.to), [*delivery.messages, end(1, 1, 1)])
                    assert answer.kind is Kind.ACCEPTED, again
            scene.start(*scene.sources[2:])
            await scene.hurry(*scene.computes)
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert sum(scene.journals[name].repeated for name in scene.computes) == 2

    bounded(scenes())


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond half a message: writing fails as on a full disk, in the middle of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_source_that_cannot_keep_its_message_does_not_send_it(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path, recorded=True) as scene:
            name = scene.sources[0]
            with full_disk():
                scene.start(name)
                await scene.wait(name)
            with pytest.raises(DataError, match=r"cannot be written: File too large\. Nothing was sent\."):
                scene.tasks[name].result()
            assert files(tmp_path) == []  # not even half of it
            assert scene.trace.cells == 0
            scene.start_servers()
            scene.start(*scene.sources)  # when there is room again
            assert counts(await scene.result()) == arrived(scene.deployment)

    bounded(scenes())


def test_a_source_started_again_sends_the_same_bytes(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(), tmp_path) as scene:
            name = scene.sources[0]
            to, _ = message_of(scene, name)
            scene.start(name)  # nobody listens there yet
            await until(lambda: len(list(tmp_path.glob("*.messages"))))
            scene.tasks[name].cancel()
            await scene.wait(name)
            (kept,) = files(tmp_path)
            scene.start_servers()
            scene.start(name)
            await scene.wait(name)
            node = scene.nodes[to]
            ((_, message),) = node._gatherings[1].messages.items()  # type: ignore[attr-defined]
            assert scene.document.layout.pack(message) in kept  # what reached the scrambler
            scene.start(name)  # and once more, after all went well
            await scene.wait(name)
            assert (scene.journals[to].accepted, scene.journals[to].repeated) == (1, 1)
            assert files(tmp_path) == [kept]
            scene.start(*scene.sources[1:])
            assert counts(await scene.result()) == arrived(scene.deployment)
            assert scene.rejected(*scene.scramblers).keys() <= {"truncated"}  # the connection that was given up

    bounded(scenes())


def test_half_a_trace_is_none(tmp_path: Path) -> None:
    trace = Trace(hosts={}, cell=1041)
    for size in range(2000):
        trace.add("127.1.1.1", "127.1.1.2", size)
    with full_disk(), pytest.raises(DataError, match=r"trace\.parquet cannot be written: File too large"):
        trace.write(tmp_path / "trace.parquet")
    assert files(tmp_path) == []
    trace.write(tmp_path / "trace.parquet")
    assert len(files(tmp_path)) == 1


def test_half_a_result_is_none(tmp_path: Path) -> None:
    there, out = tmp_path / "result.json", tmp_path / "out"
    there.write_bytes(bytes(2000))
    out.mkdir()
    with full_disk(), pytest.raises(OSError, match="File too large"):
        write_whole(out / "result.json", there.read_bytes())
    assert files(out) == []
    write_whole(out / "result.json", there.read_bytes())
    assert files(out) == [bytes(2000)]
