"""`SharedStore`: the state of one service in PostgreSQL, shared by several processes of the service."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

from hushuffle._checks import fail
from hushuffle.errors import DataError, MissingDependencyError
from hushuffle.files.secret_keys import text_of_secret
from hushuffle.network.phones.store import SCHEMA, VERSION, Store

_LOCK: Final = 0x68757368
"""Advisory lock for creating the tables: one process at a time has it."""


class SharedStore(Store):
    """A `Store` in a PostgreSQL database that several processes of one service share.

    One process writes at a time, so all processes see the same state: a code that one process has recorded as used is
    used for all processes.

    Args:
        where: the connection string of libpq ("postgresql://host/name"), or env:NAME.
        service: the name of the service; a database of another service is refused.

    Raises:
        DataError: the database cannot be reached, or belongs to another service or version.
        MissingDependencyError: psycopg is not installed.
    """

    _db: Any

    def __init__(self, where: str, *, service: str) -> None:
        self._info = text_of_secret(where).strip() if where.startswith("env:") else where
        self._service = service
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._waiting, self._busy = [], None
        try:
            self._db = self._worker.submit(self._open).result()
        except BaseException:
            self._worker.shutdown()
            raise

    def _open(self) -> Any:
        db = _Connection(self._info)
        try:
            db.execute("BEGIN")
            db.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            if db.execute("SELECT to_regclass('about') IS NULL").fetchone() == (True,):
                for statement in SCHEMA:
                    db.execute(statement.replace("BLOB", "BYTEA").replace("WITHOUT ROWID", ""))
                db.execute("INSERT INTO about VALUES (?, ?)", (VERSION, self._service))
            about = db.execute("SELECT version, service FROM about").fetchall()
            db.execute("COMMIT")
        except sqlite3.Error as error:
            db.close()
            self._refuse(error)
        if about != [(VERSION, self._service)]:
            db.close()
            fail(f"the database was written by another version, or for another service than {self._service}.")
        return db

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
        text = statement.replace("?", "%s")
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
