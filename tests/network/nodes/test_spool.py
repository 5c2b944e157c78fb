"""What a node keeps: whole records in their order, whatever ends the process, the disk or the file."""

from __future__ import annotations

import asyncio
import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes import journal as module
from hushuffle.network.nodes.journal import Room, Spool

RECORDS = [b"", b"first", bytes(1000), b"last"]


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_records_come_back_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "state" / "kept"
    for record in RECORDS:
        asyncio.run(Spool(path).append([record]))
    assert Spool(path).read() == RECORDS
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    Spool(path).remove()
    Spool(path).remove()
    assert Spool(path).read() == []


def test_a_file_that_was_cut_anywhere_gives_its_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    asyncio.run(Spool(path).append(RECORDS))
    whole, found = path.read_bytes(), set()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        records = Spool(path).read()
        assert records == RECORDS[: len(records)]
        found.add(len(records))
        if size % 97 == 0:  # what comes afterwards follows what was whole
            asyncio.run(Spool(path).append([b"new"]))
            assert Spool(path).read() == [*records, b"new"]
    assert found == {0, 1, 2, 3}


def test_a_damaged_record_and_what_follows_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    asyncio.run(Spool(path).append(RECORDS))
    whole = bytearray(path.read_bytes())
    whole[60] ^= 1
    path.write_bytes(whole)
    assert Spool(path).read() == RECORDS[:2]


def test_records_that_come_together_wait_for_the_disk_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls, append = tmp_path / "kept", list[int](), module._append

    def counted(where: Path, data: bytes) -> None:
        calls.append(len(data))
        append(where, data)

    monkeypatch.setattr(module, "_append", counted)

    async def work() -> None:
        kept = Spool(path)
        await asyncio.gather(*(kept.append([bytes([number])]) for number in range(50)))

    asyncio.run(work())
    assert Spool(path).read() == [bytes([number]) for number in range(50)]
    assert len(calls) <= 3


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    path = tmp_path / "kept"

    async def work() -> None:
        kept = Spool(path)
        await kept.append([b"before"])
        with full_disk(100):
            both = await asyncio.gather(kept.append([bytes(500)]), kept.append([bytes(500)]), return_exceptions=True)
        assert [type(one) for one in both] == [OSError, OSError]
        await kept.append([b"after"])

    asyncio.run(work())
    assert Spool(path).read() == [b"before", b"after"]


def test_who_is_cancelled_while_it_waits_takes_nobody_with_it(tmp_path: Path) -> None:
    async def work() -> list[bytes]:
        kept = Spool(tmp_path / "kept")
        tasks = [asyncio.create_task(kept.append([bytes([number])])) for number in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return kept.read()

    assert {bytes([number]) for number in (1, 2, 3)} <= set(asyncio.run(work()))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(DataError, match="kept cannot be read: Is a directory"):
        Spool(tmp_path / "kept").read()


def test_room_is_taken_and_given(tmp_path: Path) -> None:
    room = Room(tmp_path / "state" / ".room", 50_000)
    assert (tmp_path / "state" / ".room").stat().st_size == 50_000
    room.give()
    room.give()
    assert list((tmp_path / "state").iterdir()) == []


def test_without_room_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        full_disk(100),
        pytest.raises(DataError, match=r"has no room for the .* bytes that will be written there"),
    ):
        Room(tmp_path / ".room", 50_000)
    assert list(tmp_path.iterdir()) == []

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "_fill", full)
    with pytest.raises(DataError, match="will be written there: No space left on device"):
        Room(tmp_path / ".room", 1)
