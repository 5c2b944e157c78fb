"""The recorder: what an observer sees of requests, whatever pieces they arrive in; and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from pathlib import Path
from unittest import TestCase

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle_network.batches import head_of, pack
from hushuffle_network.recorder import Recorder, Requests, Trace
from network.phone_cases import drawn

DOCUMENT = drawn()
PATH = f"/tasks/{DOCUMENT.id.hex()}/batches"
MESSAGES = [bytes([number]) * 500 for number in range(3)]


def request(path: str, body: bytes, method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: {len(body)}\r\n\r\n".encode() + body


def batch(messages: list[bytes], *, closed: bool = False) -> bytes:
    head = head_of(DOCUMENT, 1, 7, "scrambler-2", "target-1-1", messages, closed=closed)
    return pack(head, messages, Ed25519PrivateKey.generate())


WIRE = [
    request("/health", b"", "GET"),
    request("/", b"sealed!"),
    request("/gateway", b"opened"),
    request(PATH, batch(MESSAGES)),
    request(PATH, batch([], closed=True)),
    request(PATH.replace("batches", "counts"), batch(MESSAGES[:1])),
]
SEEN = [
    ("phones", None, None, 1),
    ("relay", None, None, 1),
    ("scrambler-2", 1, 7, 3),
    ("scrambler-2", None, None, 0),
    ("scrambler-2", None, None, 1),
]


@given(st.lists(st.integers(1, len(b"".join(WIRE)) - 1), max_size=12))
def test_requests_are_recorded_alike_in_whatever_pieces_they_arrive(cuts: list[int]) -> None:
    whole, trace = b"".join(WIRE), Trace()
    requests = Requests(trace, "target-1-1")
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(whole)], strict=True):
        requests.feed(whole[start:end])
    assert [(sender, *rest[:2], messages) for sender, _, *rest, _, messages in trace.rows] == SEEN
    assert {row[1] for row in trace.rows} == {"target-1-1"}
    assert trace.received(1, {"scrambler-2"}) == {7: {"target-1-1": 3}}
    assert trace.received(1, {"scrambler-1"}) == trace.received(2, {"scrambler-2"}) == {}


def head(text: bytes) -> bytes:
    return request(PATH, len(text).to_bytes(4) + text + bytes(64))


BROKEN = [
    *(b"\r\n\r\n", b"POST\r\n\r\n", b"\x16\x03\x01\x02\0\r\n\r\n", b"POST /\xff HTTP/1.1\r\n\r\n", b"POST" * 20_000),
    *(
        b"POST / HTTP/1.1\r\n" + fields + b"\r\n\r\nab"
        for fields in (
            *(b"Content-Length: x", b"Content-Length: -5", b"Content-Length:", b"Content-Length: " + b"9" * 5000),
            *(b"Content-Length: 2\r\nContent-Length: 2", b"Transfer-Encoding: chunked", b"content-length: \xb2"),
        )
    ),
    *(request(PATH, body) for body in (b"a", b"\xff" * 99, (8193).to_bytes(4) + b"{" * 9000)),
    *map(head, (b"", b"[]", b"{}", b"[" * 8000, b"1e999", b"9" * 5000, b"\xff", b'{"sender": "\\ud800"}')),
    *(
        head(batch([])[4:-64].replace(*pair))
        for pair in ((b'"batch":7', b'"batch":-7'), (b'"messages":0', b'"messages":1e99'))
    ),
]


@st.composite
def traffic(draw: st.DrawFn) -> list[bytes]:
    """Return the bytes of a connection in pieces: requests, broken requests, damaged requests, and random bytes."""
    damaged = st.builds(
        lambda whole, at, other: whole[: at % len(whole)] + other + whole[at % len(whole) + len(other) :],
        st.sampled_from(WIRE),
        st.integers(0, 9999),
        st.binary(max_size=4),
    )
    parts = st.one_of(st.sampled_from(WIRE), st.sampled_from(BROKEN), damaged, st.binary(max_size=60))
    whole = b"".join(draw(st.lists(parts, min_size=1, max_size=6)))
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@given(traffic())
def test_no_bytes_of_a_connection_stop_the_recorder(pieces: list[bytes]) -> None:
    trace = Trace()
    requests = Requests(trace, "relay")
    for piece in pieces:
        requests.feed(piece)
    assert trace.table().height == len(trace.rows)


@pytest.mark.parametrize("broken", BROKEN)
def test_requests_before_a_broken_request_are_recorded(broken: bytes) -> None:
    trace = Trace()
    Requests(trace, "target-1-1").feed(b"".join(WIRE) + broken)
    seen = [(sender, *rest[:2], messages) for sender, _, *rest, _, messages in trace.rows]
    assert seen[: len(SEEN)] == SEEN
    assert seen[len(SEEN) :] in ([], [("phones", None, None, 1)])


@settings(max_examples=25)
@given(st.lists(traffic(), min_size=1, max_size=4), st.booleans())
def test_broken_connections_disturb_no_other_connection(connections: list[list[bytes]], ends: bool) -> None:
    """Every connection reaches the service unchanged; one that stays open and silent delays none."""
    arrived = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read())
        writer.close()

    async def send(public: socket.socket, pieces: list[bytes]) -> None:
        reader, writer = await asyncio.open_connection(*public.getsockname()[:2])
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        writer.write_eof()
        await reader.read()
        writer.close()

    async def run() -> None:
        public, own = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        async with await asyncio.start_server(serve, sock=own), Recorder(Trace(), {"relay": (public, own)}):
            _, silent = await asyncio.open_connection(*public.getsockname()[:2])
            silent.write(b"POST / HTTP/1.1\r\nContent-")
            async with asyncio.timeout(20.0):
                await asyncio.gather(*(send(public, pieces) for pieces in connections))
            if ends:
                silent.transport.abort()
        silent.close()

    with TestCase().assertNoLogs("asyncio", "WARNING"):
        asyncio.run(run())
    assert Counter(map(b"".join, connections)) <= Counter(arrived)


def test_further_tasks_are_further_steps() -> None:
    trace = Trace()
    for number in (b"a" * 64, b"b" * 64, b"a" * 64):
        trace.add(f"/tasks/{number.decode()}/batches", "target-1-1", batch(MESSAGES))
    assert [row[2] for row in trace.rows] == [1, 2, 1]


def test_the_file_contains_numbers_and_names_only(tmp_path: Path) -> None:
    trace = Trace()
    trace.add(PATH, "target-1-1", batch(MESSAGES))
    trace.add("/", "relay", b"secret")
    trace.write(tmp_path / "trace.parquet")
    table = pl.read_parquet(tmp_path / "trace.parquet")
    assert table.columns == ["order", "sender", "receiver", "step", "batch", "bytes", "messages"]
    assert table.select("sender", "receiver", "step", "batch", "messages").rows() == [
        ("scrambler-2", "target-1-1", 1, 7, 3),
        ("phones", "relay", None, None, 1),
    ]
    assert b"secret" not in (tmp_path / "trace.parquet").read_bytes()
    assert Trace().table().height == 0


@pytest.mark.parametrize("served", [True, False])
def test_connections_are_forwarded_both_ways_and_closed_without_a_service(served: bool) -> None:
    async def run() -> tuple[bytes, Trace]:
        public, own = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
        trace = Trace()

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.read(10_000)).upper())
            writer.close()

        if not served:
            place = own.getsockname()
            own.close()
            with socket.socket() as own_again:
                own_again.bind(place)
                async with Recorder(trace, {"relay": (public, own_again)}):
                    return await asked(public), trace
        async with await asyncio.start_server(echo, sock=own), Recorder(trace, {"relay": (public, own)}):
            return await asked(public), trace

    async def asked(public: socket.socket) -> bytes:
        reader, writer = await asyncio.open_connection(*public.getsockname()[:2])
        writer.write(request("/", b"hello"))
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    answer, trace = asyncio.run(run())
    assert answer.endswith(b"HELLO") == served
    assert trace.rows == [("phones", "relay", None, None, 5, 1)] * served
