"""The persistent state of a service: `Store` in a private SQLite database, `SharedStore` in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, Self, TypeVar

from hushuffle._checks import fail
from hushuffle.errors import DataError, MissingDependencyError
from hushuffle.files.causes import failing
from hushuffle.files.private_files import make_folder
from hushuffle.files.secret_keys import text_of_secret

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

_LOCK: Final = 0x68757368
"""Advisory lock for creating the tables: one process at a time has it."""

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

    _begin: ClassVar[tuple[str, ...]] = (
        "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA secure_delete = ON",
        "BEGIN EXCLUSIVE",
    )
    _empty: ClassVar[str] = "SELECT count(*) = 0 FROM sqlite_master"

    def __init__(self, path: Path, *, service: str) -> None:
        self._path = path
        with failing(f"{path} cannot be opened"):
            make_folder(path.parent, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._start(str(path), service)

    def _start(self, called: str, service: str) -> None:
        """Open the database in the thread that alone uses it; messages call the database `called`."""
        self._called, self._service = called, service
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._waiting: list[tuple[Callable[[sqlite3.Connection], Any], asyncio.Future[Any]]] = []
        self._busy: asyncio.Task[None] | None = None
        try:
            self._db = self._worker.submit(self._open).result()
        except BaseException:
            self._worker.shutdown()
            raise

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=0.0, isolation_level=None)

    def _open(self) -> sqlite3.Connection:
        """Connect, and create the tables of an empty database; refuse one of another version or service."""
        db: sqlite3.Connection | None = None
        try:
            db = self._connected()
            for statement in self._begin:
                db.execute(statement)
            if db.execute(self._empty).fetchone() == (True,):
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
            fail(f"{self._called} was written by another version, or for another service than {self._service}.")
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
        await asyncio.get_running_loop().run_in_executor(self._worker, self._emptied)

    def _emptied(self) -> None:
        """Remove deleted data from the write-ahead log as well."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

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


class SharedStore(Store):
    """A `Store` in a PostgreSQL database that several processes of one service share.

    One process writes at a time, so all processes see the same state: a code that one process has recorded as used is
    used for all processes. `where`: the connection string of libpq ("postgresql://host/name"), or env:NAME.
    """

    _db: Any
    _begin = ("BEGIN", f"SELECT pg_advisory_xact_lock({_LOCK})")
    _empty = "SELECT to_regclass('about') IS NULL"

    def __init__(self, where: str, *, service: str) -> None:
        self._info = text_of_secret(where).strip() if where.startswith("env:") else where
        self._start("the database", service)

    def _connected(self) -> Any:
        return _Connection(self._info)

    def _together(self, works: list[Any]) -> list[Any]:
        if self._db.broken:  # for example after a restart of the server
            try:
                self._db = self._open()
            except DataError as refused:
                return [refused] * len(works)
        return super()._together(works)

    def _emptied(self) -> None:
        """Do nothing: the PostgreSQL server removes deleted rows when it vacuums."""

    def _refuse(self, error: sqlite3.Error) -> NoReturn:
        fail(f"the database cannot be used: {error}.")


class _Connection:
    """A PostgreSQL connection that accepts the statements of a store unchanged."""

    def __init__(self, info: str) -> None:
        try:
            import psycopg  # noqa: PLC0415 - only a shared database needs it
        except ImportError:
            message = 'a shared database needs psycopg: pip install "hushuffle[postgresql]"'
            raise MissingDependencyError(message) from None
        self._error = psycopg.Error
        try:
            self._db = psycopg.connect(info, autocommit=True, connect_timeout=10)
        except psycopg.Error:
            fail("the database cannot be reached: check its address, its user and its password.")

    @property
    def broken(self) -> bool:
        return bool(self._db.closed)

    @property
    def in_transaction(self) -> bool:
        return not self._db.closed and self._db.info.transaction_status.name in {"INTRANS", "INERROR"}

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        text = statement.replace("?", "%s").replace("BLOB", "BYTEA").replace("WITHOUT ROWID", "")
        if text.startswith("INSERT OR IGNORE"):
            text = text.replace(" OR IGNORE", "", 1) + " ON CONFLICT DO NOTHING"
        try:
            if text == "BEGIN IMMEDIATE":
                self._db.execute("BEGIN")
                return self._db.execute("LOCK TABLE about IN EXCLUSIVE MODE")  # one process at a time
            return self._db.execute(text, values)
        except self._error as error:  # the server's text may quote values
            message = f"the server has refused a statement ({error.sqlstate or 'no connection'})"
            raise sqlite3.OperationalError(message) from None

    def close(self) -> None:
        self._db.close()


_WORDS: Final = {
    sqlite3.SQLITE_FULL: os.strerror(errno.ENOSPC),
    sqlite3.SQLITE_BUSY: "another process uses it",
    sqlite3.SQLITE_LOCKED: "another process uses it",
    sqlite3.SQLITE_READONLY: os.strerror(errno.EROFS),
    sqlite3.SQLITE_IOERR: os.strerror(errno.EIO),
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
}
