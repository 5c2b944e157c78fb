"""Connections: who gets in, who does not, and what becomes of those that misbehave."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes import listening
from hushuffle.network.nodes.connections import (
    Connection,
    ConnectionLostError,
    Control,
    Kind,
    Layout,
    Message,
    Reason,
    connect,
)
from hushuffle.network.nodes.identities import Authority, Identity, _as_file
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.listening import listen
from runtime_cases import LONG, authority, bounded, identity, later, shifted, until

LAYOUT = Layout(size=256)
DONE = Control(Kind.ACCEPTED, 1, numbers=(0,) * 5)
Place = tuple[str, int]


def message(slot: int = 0) -> Message:
    return Message(1, slot, 2, bytes([slot]) * LAYOUT.sealed)


class Server:
    """A listening node of the test: what it heard, and its journal."""

    def __init__(self, where: socket.socket) -> None:
        self.place: Place = where.getsockname()[:2]
        self.journal = Journal(node="compute-1")
        self.heard: list[Any] = []
        self.peers: list[str] = []
        self.task: asyncio.Task[None] | None = None

    async def echo(self, connection: Connection) -> None:
        """Take everything until an END."""
        self.peers.append(connection.peer)
        while not isinstance(frame := await connection.receive(), Control | None):
            self.heard.append(frame)
        await connection.send(DONE)


@asynccontextmanager
async def serving(
    handler: Callable[[Connection], Awaitable[None]] | None = None,
    *,
    who: Identity | None = None,
    patience: float = LONG,
) -> AsyncIterator[Server]:
    with socket.create_server(("127.0.0.1", 0), backlog=16) as where:
        server = Server(where)
        context = (who or identity("compute-1")).server()
        server.task = asyncio.create_task(
            listen(where, context, handler or server.echo, layout=LAYOUT, patience=patience, journal=server.journal)
        )
        try:
            yield server
        finally:
            server.task.cancel()
            await asyncio.wait([server.task])


async def client(place: Place, who: Identity | None = None, *, wait: float = LONG) -> Connection:
    until_then = asyncio.get_running_loop().time() + wait
    own = who or identity("source-1")
    return await connect("compute-1", place, own, layout=LAYOUT, patience=LONG, until=until_then)


def test_frames_go_both_ways_between_names_that_were_checked() -> None:
    async def work() -> None:
        async with serving() as server:
            one = await client(server.place)
            await one.send(*(message(slot) for slot in range(200)))
            await one.send(message(200), Control(Kind.END, 1))
            assert await one.answer() == DONE
            assert await one.receive() is None
            await one.close()
            assert server.peers == ["source-1"]
            assert server.heard == [message(slot) for slot in range(201)]
            assert dict(server.journal.rejected) == {}

    bounded(work())


async def said(place: Place, who: Identity) -> Control:
    """Send a message, and return the answer."""
    one = await client(place, who)
    try:
        await one.send(message(), Control(Kind.END, 1))
        return await one.answer()
    finally:
        await one.close()


def bare(who: Identity, *, certificate: bool = True, newest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Return a client's context that a careless client might have."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=who.authority)
    if certificate:
        with _as_file(who.certificate + who.key) as path:
            context.load_cert_chain(path)
    if newest is not None:
        context.maximum_version = newest
    return context


@pytest.mark.parametrize("which", ["expired", "not valid yet", "of another authority", "none", "of itself"])
def test_clients_without_a_good_certificate_get_nowhere(which: str) -> None:
    async def work() -> None:
        good = identity("source-1")
        other = Authority()
        bad = {
            "expired": shifted("source-1", days=-9),
            "not valid yet": shifted("source-1", days=9),
            "of another authority": other.issue("source-1"),
            "none": good,
            "of itself": Identity(name="source-1", certificate=other.certificate, authority="", key=other.key),
        }[which]
        own = Identity(name="source-1", certificate=bad.certificate, authority=good.authority, key=bad.key)
        async with serving() as server:
            context = bare(own, certificate=which != "none")
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*server.place, ssl=context, server_hostname="compute-1")
                writer.write(LAYOUT.pack(message()) + LAYOUT.pack(Control(Kind.END, 1)))
                with suppress(OSError):
                    assert await reader.read() == b""
                writer.close()
                await writer.wait_closed()
            await until(lambda: server.journal.rejected)
            assert server.journal.rejected == {Reason.CERTIFICATE: 1}
            assert (server.peers, server.heard) == ([], [])
            if which != "none":
                with pytest.raises(ConnectionLostError) as caught:
                    await said(server.place, own)
                assert caught.value.reason in {Reason.CERTIFICATE, Reason.TRUNCATED}
                assert server.heard == []

    bounded(work())


def test_older_tls_is_refused() -> None:
    async def work() -> None:
        async with serving() as server:
            context = bare(identity("source-1"), newest=ssl.TLSVersion.TLSv1_2)
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                await asyncio.open_connection(*server.place, ssl=context, server_hostname="compute-1")
            await until(lambda: server.journal.rejected)
            assert server.journal.rejected == {Reason.CERTIFICATE: 1}

    bounded(work())


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (lambda: identity("compute-2"), "[Hh]ostname mismatch"),
        (lambda: shifted("compute-1", days=-9), "certificate has expired"),
        (lambda: shifted("compute-1", days=9), "certificate is not yet valid"),
        (lambda: Authority().issue("compute-1"), "unable to get local issuer|self-signed|signature failure"),
    ],
)
def test_servers_that_are_not_who_was_wanted_are_told_nothing(who: Callable[[], Identity], words: str) -> None:
    async def work() -> None:
        async with serving(who=who()) as server:
            with pytest.raises(ConnectionLostError, match=rf"untrusted certificate.*({words})") as caught:
                await client(server.place, wait=0.3)  # tried again until time is over
            assert (caught.value.reason, caught.value.final) == (Reason.CERTIFICATE, False)
            await until(lambda: server.journal.rejected.total() > 1)
            assert server.peers == []

    bounded(work())


def test_more_than_the_most_connections_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST", 2)

    async def work() -> None:
        async with serving() as server:
            first, second = await client(server.place), await client(server.place)
            await until(lambda: len(server.peers) == 2)
            third = await client(server.place)
            await third.send(Control(Kind.END, 1))
            answer = asyncio.create_task(third.answer())
            await asyncio.sleep(0.1)  # however long: it must not be heard
            assert not answer.done()
            await first.close()
            assert await answer == DONE
            for one in (second, third):
                await one.close()

    bounded(work())


def test_a_full_table_of_files_does_not_end_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        accept, failed = listening._next, 0

        async def full(where: socket.socket) -> tuple[socket.socket, str]:
            nonlocal failed
            failed += 1
            if failed <= 3:
                raise OSError(errno.EMFILE, "Too many open files")
            return await accept(where)

        monkeypatch.setattr(listening, "_next", full)
        async with serving() as server:
            one = await client(server.place)
            await one.send(Control(Kind.END, 1))
            assert await one.answer() == DONE
            await one.close()

    bounded(work())


# ---- peers that misbehave


@pytest.mark.parametrize(
    ("sends", "reason"),
    [
        (b"\xff" * 300, Reason.MALFORMED),
        (LAYOUT.pack(message()) + b"\1\0" + bytes(14), Reason.MALFORMED),
        (LAYOUT.pack(Control(Kind.REFUSED, 1)).replace(b"\0\0", b"\xfe\xfe"), Reason.MALFORMED),
        (LAYOUT.pack(message())[:100], Reason.TRUNCATED),
        (LAYOUT.pack(message())[:3], Reason.TRUNCATED),
    ],
)
def test_garbage_and_halves_end_a_connection(sends: bytes, reason: Reason) -> None:
    async def work() -> None:
        async with serving() as server:
            one = await client(server.place)
            one._writer.write(sends)
            await one._writer.drain()
            if reason is Reason.TRUNCATED:
                one._writer.close()
            else:
                answer = await one.answer()
                assert (answer.kind, answer.reason) == (Kind.REFUSED, reason)
            await until(lambda: server.journal.rejected)
            assert server.journal.rejected == {reason: 1}
            await one.close()

    bounded(work())


def test_peers_that_say_nothing_are_let_go() -> None:
    async def work() -> None:
        async with serving(patience=LONG / 4) as server:
            one = await client(server.place)
            await until(lambda: server.peers)
            later(LONG / 4)
            answer = await one.answer()
            assert (answer.kind, answer.reason) == (Kind.REFUSED, Reason.SLOW)
            assert server.journal.rejected == {Reason.SLOW: 1}
            await one.close()

    bounded(work())


@pytest.mark.parametrize(
    ("says", "reasons"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", {Reason.CERTIFICATE}),
        (b"", {Reason.SLOW}),
        (None, {Reason.TRUNCATED, Reason.CERTIFICATE}),
    ],
)
def test_who_does_not_speak_tls_gets_nowhere(says: bytes | None, reasons: set[Reason]) -> None:
    async def work() -> None:
        async with serving(patience=0.5 if says == b"" else LONG) as server:
            reader, writer = await asyncio.open_connection(*server.place)
            if says:
                writer.write(says)
            if says is None:
                writer.transport.abort()
            await until(lambda: server.journal.rejected)
            assert set(server.journal.rejected) <= reasons
            assert server.peers == []
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            del reader

    bounded(work())


def test_a_peer_that_takes_nothing_is_slow() -> None:
    async def work() -> None:
        gate = asyncio.Event()

        async def deaf(_connection: Connection) -> None:
            await gate.wait()

        async with serving(deaf) as server:
            one = await client(server.place)
            one._patience = 0.3

            async def much() -> None:
                for _ in range(10_000):  # more than all buffers on the way hold
                    await one.send(*[message()] * 128)

            with pytest.raises(ConnectionLostError, match="compute-1 was too slow") as caught:
                await much()
            assert (caught.value.reason, caught.value.final) == (Reason.SLOW, False)
            assert one._writer.transport.get_write_buffer_size() < 1 << 20
            one.abort()
            gate.set()

    bounded(work())


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ConnectionLostError(Reason.LATE, "gone"), Reason.LATE), (DataError("private"), Reason.MALFORMED)],
)
def test_what_goes_wrong_is_counted_and_told_by_its_reason(error: Exception, reason: Reason) -> None:
    async def work() -> None:
        async def breaks(_connection: Connection) -> None:
            raise error

        async with serving(breaks) as server:
            one = await client(server.place)
            answer = await one.answer()
            assert (answer.kind, answer.reason) == (Kind.REFUSED, reason)
            await one.close()
            assert server.journal.rejected == {reason: 1}

    bounded(work())


def test_peers_that_break_off_while_they_are_told() -> None:
    async def work() -> None:
        gate, failed = asyncio.Event(), list[ConnectionLostError]()

        async def tells(connection: Connection) -> None:
            await gate.wait()
            connection._patience = 0.3
            try:
                while True:
                    await connection.send(*[message()] * 2048)
                    await asyncio.sleep(0)
            except ConnectionLostError as error:
                failed.append(error)
                raise

        async with serving(tells) as server:
            one = await client(server.place)
            one.abort()
            gate.set()
            await until(lambda: failed)
            await until(lambda: server.journal.rejected)
            assert failed[0].reason in {Reason.TRUNCATED, Reason.SLOW}

    bounded(work())


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (LAYOUT.pack(message()), Reason.TRUNCATED),
        (b"\xff" * 64, Reason.MALFORMED),
        (b"", Reason.TRUNCATED),
        (LAYOUT.pack(DONE)[:20], Reason.TRUNCATED),
    ],
)
def test_answers_that_are_none(says: bytes, reason: Reason) -> None:
    async def work() -> None:
        async def play(connection: Connection) -> None:
            connection._writer.write(says)

        async with serving(play) as server:
            one = await client(server.place)
            with pytest.raises(ConnectionLostError, match=r"compute-1 (ended|does not speak)") as caught:
                await one.answer()
            assert caught.value.reason is reason
            await one.close()

    bounded(work())


def test_a_node_that_ends_does_not_wait_for_its_peers() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        async with serving(patience=3600.0) as server:
            silent = [await client(server.place) for _ in range(3)]
            reader, writer = await asyncio.open_connection(*server.place)  # in the middle of the handshake
            await until(lambda: len(server.peers) == 3)
            began = loop.time()
        assert loop.time() - began < LONG / 2
        for one in silent:
            with suppress(ConnectionLostError):
                assert await one.receive() is None
            await one.close()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        del reader

    bounded(work())


# ---- connecting


def test_nobody_is_there() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as where:
            place = where.getsockname()[:2]
        for wait in (0.0, 0.2):
            with pytest.raises(ConnectionLostError, match="compute-1 could not be reached in time") as caught:
                await client(place, wait=wait)
            assert (caught.value.reason, caught.value.final) == (Reason.SLOW, False)

    bounded(work())


def test_somebody_comes_later() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as where:
            place = where.getsockname()[:2]
        waiting = asyncio.create_task(client(place))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        with socket.create_server(place) as where:
            server = Server(where)
            context = identity("compute-1").server()
            task = asyncio.create_task(
                listen(where, context, server.echo, layout=LAYOUT, patience=LONG, journal=server.journal)
            )
            one = await waiting
            await one.close()
            task.cancel()
            await asyncio.wait([task])

    bounded(work())


def test_who_is_told_to_stop_stops_trying() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as where:
            place = where.getsockname()[:2]
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.call_later(0.1, stop.set)
        with pytest.raises(ConnectionLostError, match="could not be reached"):
            await connect(
                "compute-1",
                place,
                identity("source-1"),
                layout=LAYOUT,
                patience=LONG,
                until=loop.time() + 10 * LONG,
                stop=stop,
            )

    bounded(work())


def test_the_address_that_is_sent_from() -> None:
    async def work() -> None:
        seen = list[str]()

        async def play(connection: Connection) -> None:
            seen.append(connection._writer.get_extra_info("peername")[0])

        async with serving(play) as server:
            one = await client(server.place, authority().issue("source-1", address="127.9.8.7"))
            assert await one.receive() is None
            await one.close()
        assert seen == ["127.9.8.7"]

    bounded(work())


# ---- what the layers below may say


class Broken:
    """A reader and writer whose connection has failed."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def transport(self) -> Broken:
        return self

    async def read(self, _most: int) -> bytes:
        raise self.error

    async def drain(self) -> None:
        raise self.error

    def writelines(self, _lines: list[bytes]) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 1 << 30

    def is_closing(self) -> bool:
        return False


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (tls_error("TLSV1_ALERT_UNKNOWN_CA"), Reason.CERTIFICATE),
        (tls_error("SSLV3_ALERT_CERTIFICATE_EXPIRED"), Reason.CERTIFICATE),
        (tls_error("DECRYPTION_FAILED_OR_BAD_RECORD_MAC"), Reason.TRUNCATED),
        (ConnectionResetError(), Reason.TRUNCATED),
        (BrokenPipeError(), Reason.TRUNCATED),
        (TimeoutError(), Reason.SLOW),
    ],
)
def test_errors_below_have_reasons(error: Exception, reason: Reason) -> None:
    broken: Any = Broken(error)
    one = Connection("compute-1", broken, broken, layout=LAYOUT, patience=LONG)

    async def work(sends: bool) -> None:
        if sends:
            await one.send(message())
        else:
            await one.receive()

    for sends in (True, False):
        with pytest.raises(ConnectionLostError, match="compute-1") as caught:
            bounded(work(sends))
        assert (caught.value.reason, caught.value.final) == (reason, False)


def test_one_node_has_few_connections_at_a_time() -> None:
    async def work() -> None:
        async with serving() as server:
            own = [await client(server.place) for _ in range(listening.OF_ONE)]
            await until(lambda: len(server.peers) == listening.OF_ONE)
            more = await client(server.place)
            assert (await more.answer()).reason is Reason.BUSY
            other = await client(server.place, identity("source-2"))
            await until(lambda: len(server.peers) == listening.OF_ONE + 1)
            for one in (*own, more, other):
                await one.close()
            assert server.journal.rejected[Reason.BUSY] == 1

    bounded(work())


def test_whoever_holds_another_document_is_not_heard() -> None:
    nearly = Layout(size=LAYOUT.size, digest=LAYOUT.digest[:-1] + b"\1")

    async def work() -> None:
        async with serving() as server:
            then, own = asyncio.get_running_loop().time() + LONG, identity("source-1")
            one = await connect("compute-1", server.place, own, layout=nearly, patience=LONG, until=then)
            await one.send(message(), Control(Kind.END, 1))
            with pytest.raises(ConnectionLostError, match="has another document of the run") as caught:
                await one.answer()
            assert (caught.value.reason, caught.value.final) == (Reason.OTHER_RUN, False)
            await one.close()
            await until(lambda: server.journal.rejected)
            assert server.journal.rejected == {Reason.OTHER_RUN: 1}
            assert server.heard == []

    bounded(work())


def test_whoever_does_not_greet_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with serving() as server:
            with monkeypatch.context() as patched:
                patched.setattr(Connection, "greet", lambda _self: None)
                one = await client(server.place)
                await one.send(message(), Control(Kind.END, 1))
                await until(lambda: server.journal.rejected)
                await one.close()
            assert server.journal.rejected == {Reason.OTHER_RUN: 1}
            assert server.heard == []

    bounded(work())


def test_members_with_many_connections_give_way_to_one_who_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST", 2 * listening.OF_ONE)

    async def work() -> None:
        async with serving() as server:
            greedy = [authority().issue(f"greedy-{number}") for number in range(2)]
            silent = [await client(server.place, who) for who in greedy for _ in range(listening.OF_ONE)]
            await until(lambda: len(server.peers) == len(silent))
            for number in range(4):  # each of them is served at once: LONG would be too long for the test
                assert await said(server.place, authority().issue(f"source-{number}")) == DONE
            assert server.journal.rejected[Reason.TRUNCATED] <= 2
            for one in silent:
                one.abort()

    bounded(work())


def test_a_member_for_whom_there_is_no_place_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST", 1)

    async def work() -> None:
        async with serving(patience=0.3) as server:
            first = await client(server.place)
            await until(lambda: server.peers)
            answer = await said(server.place, identity("source-2"))
            assert (answer.kind, answer.reason) in {(Kind.REFUSED, Reason.BUSY), (Kind.ACCEPTED, Reason.NONE)}
            first.abort()

    bounded(work())


async def silence(place: Place, count: int) -> list[socket.socket]:
    """Return connections that will never say a word."""
    opened = []
    for _ in range(count):
        one = socket.socket()
        one.settimeout(0)
        one.connect_ex(place)
        opened.append(one)
        await asyncio.sleep(0)
    return opened


def test_silent_strangers_make_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than in real life, so that the test is quick; each that is dropped is replaced."""
    monkeypatch.setattr(listening, "OF_ADDRESS", 10)

    async def work() -> None:
        async with serving() as server:
            silent = await silence(server.place, 30)
            await until(lambda: server.journal.rejected[Reason.SLOW] >= 20)
            for number in range(3):
                assert await said(server.place, identity(f"source-{number}")) == DONE
                silent += await silence(server.place, 10)
            for one in silent:
                one.close()

    bounded(work())


def test_an_address_with_strangers_only_has_its_places_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "OF_ADDRESS", 4)

    async def work() -> None:
        async with serving() as server:
            halves = await silence(server.place, 4)
            await asyncio.sleep(0.05)
            for one in halves:
                one.send(b"\x16")  # the first byte of a handshake, and no more
            await asyncio.sleep(0.05)
            more = await silence(server.place, 1)
            await until(lambda: server.journal.rejected[Reason.BUSY])
            own = authority().issue("source-1", address="127.9.9.9")
            assert await said(server.place, own) == DONE  # another address does not suffer
            for one in (*halves, *more):
                one.close()

    bounded(work())


def test_strangers_of_many_addresses_make_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "STRANGERS", 4)

    async def work() -> None:
        async with serving() as server:
            opened = []
            for number in range(8):
                one = socket.socket()
                one.bind((f"127.8.8.{1 + number}", 0))
                one.settimeout(0)
                one.connect_ex(server.place)
                opened.append(one)
            await until(lambda: server.journal.rejected[Reason.SLOW] == 4)
            assert await said(server.place, identity("source-1")) == DONE
            for one in opened:
                one.close()

    bounded(work())
