"""What somebody on the wire writes down: streams of TLS records cut anywhere, and tables made of them."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import DataError
from hushuffle.network.nodes.recorder import Recorder, Trace, _pump, _Records, record_size
from runtime_cases import bounded, until


def stream(sizes: list[int]) -> bytes:
    return b"".join(b"\x17\x03\x03" + size.to_bytes(2, "big") + bytes(size) for size in sizes)


def sizes(trace: Trace) -> list[int]:
    found: list[int] = trace.table()["bytes"].to_list()
    return found


@given(st.lists(st.integers(0, 40), max_size=6), st.lists(st.integers(0, 200), max_size=8))
def test_records_are_found_wherever_the_stream_is_cut(lengths: list[int], cuts: list[int]) -> None:
    data = stream(lengths)
    trace = Trace(hosts={}, cell=17)
    records, place = _Records(trace, "a", "b"), 0
    for end in (*sorted(cut for cut in cuts if cut < len(data)), len(data)):
        records.feed(data[place:end])
        place = end
    assert sizes(trace) == lengths
    assert trace.cells == lengths.count(17)


def test_byte_by_byte() -> None:
    trace = Trace(hosts={}, cell=3)
    records = _Records(trace, "a", "b")
    for byte in stream([3, 0, 300, 3]):
        records.feed(bytes([byte]))
    assert sizes(trace) == [3, 0, 300, 3]
    records.feed(b"\x17\x03")  # the beginning of a header is no record yet
    assert sizes(trace) == [3, 0, 300, 3]


def test_tables() -> None:
    trace = Trace(hosts={"127.0.0.1": "source-1", "127.0.0.2": "compute-1"}, cell=record_size(256))
    assert trace.table().is_empty()
    assert trace.messages().is_empty()
    for sender, receiver, size in (
        ("127.0.0.1", "127.0.0.2", 273),
        ("127.0.0.2", "127.0.0.1", 81),
        ("127.0.0.1", "127.0.0.2", 273),
        ("127.0.0.9", "127.0.0.2", 273),
    ):
        trace.add(sender, receiver, size)
    assert trace.table().rows() == [
        (0, "source-1", "compute-1", 273),
        (1, "compute-1", "source-1", 81),
        (2, "source-1", "compute-1", 273),
        (3, "127.0.0.9", "compute-1", 273),
    ]
    assert trace.messages().rows() == [("127.0.0.9", "compute-1", 1), ("source-1", "compute-1", 2)]
    assert trace.cells == 3


def test_files(tmp_path: Path) -> None:
    trace = Trace(hosts={}, cell=1)
    trace.add("a", "b", 1)
    trace.write(tmp_path / "trace.parquet")
    assert pl.read_parquet(tmp_path / "trace.parquet").equals(trace.table())
    with pytest.raises(DataError, match=r"the trace .* cannot be written: No such file"):
        trace.write(tmp_path / "none" / "trace.parquet")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, _whole: object) -> int:
        with self.open("wb") as file:
            file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    path = tmp_path / "trace.parquet"
    with pytest.raises(DataError, match=r"cannot be written: No space left on device\."):
        Trace(hosts={}, cell=1).write(path)
    assert not path.exists()


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def free() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def test_connections_are_passed_on_both_ways_and_ends_too() -> None:
    async def work() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(100):
                writer.write(data)
            writer.write(stream([9]))  # after the other side has ended
            await writer.drain()
            writer.close()

        there, front = free(), free()
        server = await asyncio.start_server(echo, sock=there)
        trace = Trace(hosts={"127.0.0.1": "all"}, cell=5)
        async with server, Recorder(trace, [(front, there.getsockname()[:2])]):
            reader, writer = await asyncio.open_connection(*front.getsockname()[:2])
            writer.write(stream([5, 7]))
            writer.write_eof()
            assert await reader.read() == stream([5, 7, 9])
            await shut(writer)
        assert sorted(sizes(trace)) == [5, 5, 7, 7, 9]
        assert trace.messages().rows() == [("all", "all", 2)]

    bounded(work())


def test_nobody_behind_the_recorder() -> None:
    async def work() -> None:
        closed, front = free(), free()
        place = closed.getsockname()[:2]
        closed.close()
        trace = Trace(hosts={}, cell=5)
        async with Recorder(trace, [(front, place)]):
            reader, writer = await asyncio.open_connection(*front.getsockname()[:2])
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            await shut(writer)
        assert trace.table().is_empty()

    bounded(work())


@pytest.mark.parametrize("who", ["client", "server", "nobody"])
def test_broken_connections_end_the_other_side_too(who: str) -> None:
    async def work() -> None:
        inside, ended = list[asyncio.StreamWriter](), asyncio.Event()

        async def node(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            inside.append(writer)
            try:
                await reader.read()
            except OSError:
                pass
            finally:
                ended.set()
                writer.close()

        there, front = free(), free()
        server = await asyncio.start_server(node, sock=there)
        async with server, Recorder(Trace(hosts={}, cell=5), [(front, there.getsockname()[:2])]) as recorder:
            reader, writer = await asyncio.open_connection(*front.getsockname()[:2])
            await until(lambda: inside)
            if who == "client":
                writer.transport.abort()
                await ended.wait()
            elif who == "server":
                inside[0].transport.abort()
                await reader.read()  # an end, in whichever way
            del recorder
        await ended.wait()  # the recorder closes what it had open
        await shut(writer)

    bounded(work())


class Side:
    """One side of a connection that fails: `when` it reads, or when its end is told."""

    def __init__(self, when: str = "") -> None:
        self.when, self.aborted, self.ended = when, False, False

    @property
    def transport(self) -> Side:
        return self

    async def read(self, _most: int) -> bytes:
        if self.when == "read":
            raise ConnectionResetError
        return b""

    def abort(self) -> None:
        self.aborted = True

    def can_write_eof(self) -> bool:
        return self.when != "no end"

    def write_eof(self) -> None:
        self.ended = True
        if self.when == "end":
            raise OSError


@pytest.mark.parametrize("when", ["", "end", "no end"])
def test_ends_are_passed_on_where_that_is_possible(when: str) -> None:
    one, other = Side(), Side(when)
    bounded(_pump(one, other, _Records(Trace(hosts={}, cell=1), "a", "b")))  # type: ignore[arg-type]
    assert (other.ended, other.aborted) == (when != "no end", False)


def test_a_side_that_breaks_breaks_the_other() -> None:
    one, other = Side("read"), Side()
    with pytest.raises(ConnectionResetError):
        bounded(_pump(one, other, _Records(Trace(hosts={}, cell=1), "a", "b")))  # type: ignore[arg-type]
    assert other.aborted
