"""The recorder: what an observer sees of requests, whatever pieces they arrive in; and nothing else."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
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
