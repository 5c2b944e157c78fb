"""What a service must not forget: private, whole or not at all, one process at a time, errors in our words."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hushuffle.errors import DataError
from hushuffle_network.store import SCHEMA, Store


def insert(task: bytes) -> Callable[[sqlite3.Connection], int]:
    return lambda db: db.execute("INSERT INTO published VALUES (?, ?)", (task, b"{}")).rowcount


def count(store: Store) -> int:
    return int(asyncio.run(store.do(lambda db: db.execute("SELECT count(*) FROM published").fetchone()[0])))


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    with Store(tmp_path / "state" / "a.sqlite", service="a") as store:
        assert asyncio.run(store.do(insert(b"1"))) == 1
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == {"a.sqlite": 0o600, "a.sqlite-wal": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_one_work_that_fails_takes_nobody_with_it(tmp_path: Path) -> None:
    def wrong(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO published VALUES (?, ?)", (b"half", b""))
        message = "no"
        raise DataError(message)

    async def work(store: Store) -> list[object]:
        works = (store.do(insert(b"1")), store.do(wrong), store.do(insert(b"2")))
        return list(await asyncio.gather(*works, return_exceptions=True))

    with Store(tmp_path / "a.sqlite", service="a") as store:
        first, second, third = asyncio.run(work(store))
        assert (first, third) == (1, 1)
        assert isinstance(second, DataError)
        assert count(store) == 2


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from hushuffle_network.store import Store
try:
    Store(Path({str(tmp_path / "a.sqlite")!r}), service="a")
except Exception as error:
    print(type(error).__name__, error)
"""
    with Store(tmp_path / "a.sqlite", service="a"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("DataError")
    assert "another process uses it" in done.stdout


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, signal
from pathlib import Path
from hushuffle_network.store import Store
store = Store(Path({str(tmp_path / "a.sqlite")!r}), service="a")
async def work():
    for number in range(20):
        await store.do(lambda db: db.execute("REPLACE INTO published VALUES (?, ?)", (bytes([number]), b"x")))
asyncio.run(work())
os.kill(os.getpid(), signal.SIGKILL)
"""  # noqa: S608 - no input
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    with Store(tmp_path / "a.sqlite", service="a") as store:
        assert count(store) == 20


def test_a_full_disk_is_said_and_nothing_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite", service="a") as store:
        pages = asyncio.run(store.do(lambda db: db.execute("PRAGMA page_count").fetchone()[0]))
        store._worker.submit(store._db.execute, f"PRAGMA max_page_count = {pages}").result()
        big = (b"1", bytes(100_000))
        with pytest.raises(DataError, match="cannot be used: No space left on device"):
            asyncio.run(store.do(lambda db: db.execute("INSERT INTO published VALUES (?, ?)", big)))
        assert count(store) == 0


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"no database, and long enough to be looked at " * 100)
    with pytest.raises(DataError, match="the file is not a SQLite database"):
        Store(tmp_path / "text", service="a")
    Store(tmp_path / "a.sqlite", service="a").close()
    with pytest.raises(DataError, match="for another service than b"):
        Store(tmp_path / "a.sqlite", service="b")
    (tmp_path / "other").touch()
    with sqlite3.connect(tmp_path / "other") as db:
        db.execute("CREATE TABLE x (y)")
    db.close()
    with pytest.raises(DataError, match="the file is not a SQLite database"):
        Store(tmp_path / "other", service="a")
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(DataError, match="Permission denied"):
            Store(tmp_path / "closed" / "a.sqlite", service="a")
    with pytest.raises(DataError, match=r"cannot be opened: (Not a directory|File exists)"):
        Store(tmp_path / "text" / "a.sqlite", service="a")


def test_rows_and_files_are_kept_under_the_names_of_the_schema() -> None:
    names = [statement.split()[2] for statement in SCHEMA]
    assert len(names) == len(set(names)) == 15
