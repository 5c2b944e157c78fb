"""The persistent state of a service, in a private SQLite database."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NoReturn, Self, TypeVar

from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.files.causes import failing
from hushuffle.files.private_files import make_folder

VERSION: Final = 3
SCHEMA: Final = (
    "CREATE TABLE about (version INTEGER NOT NULL, service TEXT NOT NULL)",
    """CREATE TABLE taken (
    task BLOB NOT NULL, step INTEGER NOT NULL, once BLOB NOT NULL, digest BLOB NOT NULL, batch INTEGER NOT NULL,
    PRIMARY KEY (task, step, once)) WITHOUT ROWID""",
    """CREATE TABLE message (
    number INTEGER PRIMARY KEY, task BLOB NOT NULL, step INTEGER NOT NULL,
    body BLOB NOT NULL)""",
    """CREATE TABLE released (
    task BLOB NOT NULL, step INTEGER NOT NULL, batch INTEGER NOT NULL, sources INTEGER NOT NULL,
    PRIMARY KEY (task, step, batch)) WITHOUT ROWID""",
    """CREATE TABLE outgoing (
    task BLOB NOT NULL, step INTEGER NOT NULL, batch INTEGER NOT NULL, receiver TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (task, step, batch, receiver))""",
    """CREATE TABLE came (
    task BLOB NOT NULL, step INTEGER NOT NULL, batch INTEGER NOT NULL, digest BLOB NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (task, step, batch)) WITHOUT ROWID""",
    "CREATE TABLE spent (task BLOB NOT NULL, nonce BLOB NOT NULL, PRIMARY KEY (task, nonce)) WITHOUT ROWID",
    """CREATE TABLE merged (
    task BLOB NOT NULL, step INTEGER NOT NULL, batch INTEGER NOT NULL, numbers BLOB NOT NULL,
    PRIMARY KEY (task, step, batch)) WITHOUT ROWID""",
    """CREATE TABLE counted (
    task BLOB NOT NULL, step INTEGER NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (task, step)) WITHOUT ROWID""",
    "CREATE TABLE told (task BLOB NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (task, kind))",
    """CREATE TABLE passage (
    task BLOB NOT NULL, step INTEGER NOT NULL, batch INTEGER NOT NULL, entries BLOB NOT NULL,
    PRIMARY KEY (task, step, batch)) WITHOUT ROWID""",
    """CREATE TABLE issued (
    task BLOB NOT NULL, step INTEGER NOT NULL, kind TEXT NOT NULL, code BLOB NOT NULL, request BLOB NOT NULL,
    PRIMARY KEY (task, step, kind, code)) WITHOUT ROWID""",
    """CREATE TABLE part (
    task BLOB NOT NULL, kind TEXT NOT NULL, sender TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (task, kind, sender)) WITHOUT ROWID""",
    "CREATE TABLE published (task BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE over (task BLOB PRIMARY KEY) WITHOUT ROWID",
)
"""The SQL statements that create the tables; docs/reference/phone-services.md describes each table."""
TABLES: Final = tuple(name for one in SCHEMA if (name := one.split()[2]) not in {"about", "over"})
"""Names of the tables with data of a task."""

_BEGIN: Final = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "BEGIN EXCLUSIVE",
)
_EMPTY: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
"""Removes deleted data from the write-ahead log as well."""
T = TypeVar("T")


class Store:
    """The database of one service, in the file `path`; a database of another `service` is refused.

    Functions that are passed to `do` at the same time share one transaction. A result is returned only after the writes
    are on the disk (`synchronous = FULL`, a write-ahead log), so acknowledged data survive a kill and a loss of power.
    A failed function leaves no data. The process has exclusive access to the database.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Store(Path(folder) / "a.sqlite", service="a") as store:
    ...     _ = asyncio.run(store.do(lambda db: db.execute("INSERT INTO published VALUES (?, ?)", (b"1", b"{}"))))
    ...     asyncio.run(store.do(lambda db: db.execute("SELECT content FROM published").fetchone()))
    (b'{}',)
    """

    def __init__(self, path: Path, *, service: str) -> None:
        self._path, self._service = path, service
        self._waiting: list[tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any]]] = []
        self._busy: asyncio.Task[None] | None = None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        try:
            self._db = self._worker.submit(self._open).result()
        except BaseException:
            self._worker.shutdown()
            raise

    def _connected(self) -> sqlite3.Connection:
        with failing(f"{self._path} cannot be opened"):
            make_folder(self._path.parent, mode=0o700)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        return sqlite3.connect(self._path, timeout=0.0, isolation_level=None)

    def _open(self) -> sqlite3.Connection:
        """Connect, and create the tables of an empty database; refuse one of another version or service."""
        db: sqlite3.Connection | None = None
        try:
            db = self._connected()
            for statement in _BEGIN:
                db.execute(statement)
            if db.execute("SELECT count(*) = 0 FROM sqlite_master").fetchone() == (True,):
                for statement in SCHEMA:
                    db.execute(statement)
                db.execute("INSERT INTO about VALUES (?, ?)", (VERSION, self._service))
            about = db.execute("SELECT version, service FROM about").fetchall()
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db is not None:
                db.close()
            self._refuse(error)
        if about != [(VERSION, self._service)]:
            db.close()
            fail(f"{self._path} was written by another version, or for another service than {self._service}.")
        return db

    def _refuse(self, error: sqlite3.Error) -> NoReturn:
        why = _WORDS.get(error.sqlite_errorcode & 0xFF, "the file is not a SQLite database")
        fail(f"{self._path} cannot be used: {why}.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._worker.submit(self._db.close).result()
        self._worker.shutdown()

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction, and return its result once the disk has its writes; an error leaves none."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        if self._busy is None:
            self._busy = asyncio.create_task(self._run())
        return await future

    async def over(self) -> set[bytes]:
        """Return the ids of tasks whose data were deleted."""
        return {task for (task,) in await self.do(lambda db: db.execute("SELECT task FROM over").fetchall())}

    async def forget(self, task: bytes, *, but: Collection[str] = ()) -> None:
        """Delete all data of a task, except its id and the tables `but`; the data are overwritten on the disk."""

        def delete(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR IGNORE INTO over VALUES (?)", (task,))
            for table in TABLES:
                if table not in but:
                    db.execute(f"DELETE FROM {table} WHERE task = ?", (task,))  # noqa: S608 - no name from outside

        await self.do(delete)
        await asyncio.get_running_loop().run_in_executor(self._worker, lambda: self._db.execute(_EMPTY).close())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            together, self._waiting = self._waiting, []
            done = await loop.run_in_executor(self._worker, self._together, [work for work, _ in together])
            for (_, future), outcome in zip(together, done, strict=True):
                if future.cancelled():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
        self._busy = None

    def _together(self, works: list[Callable[[sqlite3.Connection], Any]]) -> list[Any]:
        """Run several functions in one transaction; the writes of a failed function alone are undone."""
        done: list[Any] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for work in works:
                self._db.execute("SAVEPOINT work")
                try:
                    done.append(work(self._db))
                except sqlite3.Error:
                    raise
                except Exception as error:  # noqa: BLE001 - `do` raises it for its caller
                    self._db.execute("ROLLBACK TO work")
                    done.append(error)
                self._db.execute("RELEASE work")
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            try:
                self._refuse(error)
            except DataError as refused:
                return [refused] * len(works)
        return done


def spend(db: sqlite3.Connection, task: bytes, nonce: bytes) -> bool:
    """Record that a token is used; return whether it was unused before."""
    return bool(db.execute("INSERT OR IGNORE INTO spent VALUES (?, ?)", (task, nonce)).rowcount)


_WORDS: Final = {
    sqlite3.SQLITE_FULL: os.strerror(errno.ENOSPC),
    sqlite3.SQLITE_BUSY: "another process uses it",
    sqlite3.SQLITE_LOCKED: "another process uses it",
    sqlite3.SQLITE_READONLY: os.strerror(errno.EROFS),
    sqlite3.SQLITE_IOERR: os.strerror(errno.EIO),
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
}
