"""Whose coins of a secret key are used up: a ledger beside the key, of digests that say nothing without it.

Under one key and round a record has one set of coins. Two reports from the same coins, of two values, two
randomizers or two columns, can reveal the values; and two releases whose people overlap in part can be
subtracted from each other. So in each round a record is in one batch, which may only be repeated as it was.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from hushuffle.errors import DataError
from hushuffle.io.parquet import UnreadableFile, read_parquet
from hushuffle.io.private_files import flush_folder
from hushuffle.io.secret_keys import derived

Words = npt.NDArray[np.uint64]

_SCHEMA: Final = {"record": pl.UInt64, "value": pl.UInt64, "batch": pl.UInt64}
_HALF: Final = 1 << 63
_TWICE: Final = "an id is there twice: two records would share their coins. Give every record an id of its own."


def record_numbers(ids: pl.Series, *, key: bytes) -> Words:
    """Return a number for each id (text), shape (n,): the same for the same text, in every file.

    Integers below 2**63 written as usual are their own numbers; other text gets 63 bits of a keyed digest, with
    the highest bit set: among n of them two are the same with probability at most n**2 / 2**64.

    >>> record_numbers(pl.Series(["7", "0"]), key=bytes(32)).tolist()
    [7, 0]
    """
    numbers = ids.cast(pl.UInt64, strict=False)
    plain = ((numbers.cast(pl.String) == ids) & (numbers < _HALF)).fill_null(value=False)
    result = numbers.fill_null(0).to_numpy().copy()
    others = np.flatnonzero(~plain.to_numpy())
    if others.size:
        subkey = derived(key, "record ids 1")
        texts = ids.gather(others).to_list()
        result[others] = [_HALF | (int.from_bytes(_digest(text, subkey)) >> 1) for text in texts]
    return result


def _digest(text: str, key: bytes) -> bytes:
    return hashlib.blake2b(text.encode(), key=key, digest_size=8).digest()


class Tags:
    """Digests of records, and of what was done with their values, under a key and a round.

    `mechanism` says how values become reports: column, categories, randomizer.
    """

    def __init__(self, *, key: bytes, round_number: int, mechanism: str) -> None:
        what = hashlib.sha256(mechanism.encode()).hexdigest()
        self._record = _encryptor(derived(key, f"ledger 1 records, round {round_number}"))
        self._value = _encryptor(derived(key, f"ledger 1 values, round {round_number}, {what}"))
        self._pairs: list[npt.NDArray[np.uint64]] = []

    def add(self, records: Words, values: npt.NDArray[np.int64]) -> None:
        """Take more records of the batch, shape (n,), and their values; 16 bytes for each are kept.

        Raises:
            DataError: a record is there twice.
        """
        if np.unique(records).size < records.size:
            _fail(_TWICE)
        blocks = np.zeros((records.size, 2), dtype="<u8")
        blocks[:, 0] = records
        first = np.frombuffer(self._record.update(blocks.tobytes()), dtype="<u8")[::2]
        blocks[:, 1] = values
        second = np.frombuffer(self._value.update(blocks.tobytes()), dtype="<u8")[::2]
        self._pairs.append(np.stack([first, second], axis=1))

    def entries(self) -> Entries:
        """Return what the ledger would hold of the batch.

        Raises:
            DataError: an id is there twice.
        """
        pairs = np.concatenate([np.empty((0, 2), dtype="<u8"), *self._pairs])
        pairs = pairs[np.argsort(pairs[:, 0])]
        if bool(np.any(pairs[1:, 0] == pairs[:-1, 0])):
            _fail(_TWICE)
        digest = hashlib.sha256(pairs.tobytes()).digest()
        columns = {"record": pairs[:, 0], "value": pairs[:, 1]}
        batch = int.from_bytes(digest[:8])
        table = pl.DataFrame(columns).with_columns(pl.lit(batch, dtype=pl.UInt64).alias("batch"))
        return Entries(table=table, digest=digest)


@dataclass(frozen=True, kw_only=True, eq=False)
class Entries:
    """One batch in a ledger; `digest` is the same exactly for the same records with the same values."""

    table: pl.DataFrame
    digest: bytes

    def __repr__(self) -> str:
        return f"Entries({self.table.height} records)"


def ledger_of(key_file: Path) -> Path:
    """Return where the ledger of a key is: beside it.

    >>> ledger_of(Path("my.key")).name
    'my.key.ledger'
    """
    return key_file.with_name(f"{key_file.name}.ledger")


def admit(key_file: Path, entries: Entries) -> bool:
    """Write the batch into the ledger, through to the disk; return False if this very batch is there already.

    Raises:
        DataError: records are there with other values, or in another batch; or the ledger cannot be used.
    """
    return admit_all(key_file, [entries])[0]


def admit_all(key_file: Path, batches: Sequence[Entries]) -> tuple[bool, ...]:
    """Write batches of different coins (one for each column) into the ledger, all or none; see `admit`.

    Raises:
        DataError: as `admit`.
    """
    path, admitted = ledger_of(key_file), []
    with _alone(key_file):
        table = old = _read(path)
        for entries in batches:
            mine = entries.table
            again = bool((old["batch"] == mine["batch"][0]).any())
            admitted.append(not again)
            if again:
                continue
            met = old.join(mine, on="record", how="inner", suffix="_now")
            if met.height:
                _refuse(met)
            table = pl.concat([table, mine])
        if any(admitted):
            _write(path, table)
    return tuple(admitted)


def _refuse(met: pl.DataFrame) -> NoReturn:
    changed = met.filter(pl.col("value") != pl.col("value_now")).height
    if changed:
        _fail(
            f"{changed:,} people have reported under this key and round with other values, categories or another "
            "randomizer. From the same coins both reports together would reveal values. Take a new --round."
        )
    _fail(
        f"{met.height:,} people are in an earlier batch of this key and round, and this batch is another one. What "
        "both have in common could be subtracted. Repeat the batch as it was, or take a new --round."
    )


@contextmanager
def _alone(key_file: Path) -> Iterator[None]:
    """Let no other collection with this key look into the ledger meanwhile."""
    with key_file.open("rb") as file:
        if os.name == "posix":
            import fcntl  # noqa: PLC0415 - is not everywhere

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> pl.DataFrame:
    if not path.exists():
        return pl.DataFrame(schema=_SCHEMA)
    tables: list[pl.DataFrame] = []
    with suppress(UnreadableFile):
        tables = list(read_parquet(pl.scan_parquet(path.absolute(), glob=False), path, name=f"the ledger {path}"))
    if not tables or dict(tables[0].schema) != _SCHEMA:
        _fail(f"the ledger {path} is damaged. Without it nobody knows whose coins are used up: take a new key.")
    return pl.concat(tables)


def _write(path: Path, table: pl.DataFrame) -> None:
    new = path.with_name(f".{path.name}.new")
    with ExitStack() as undo:
        undo.callback(new.unlink, missing_ok=True)
        try:
            new.unlink(missing_ok=True)
            with open(new, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                table.write_parquet(file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
            flush_folder(path.parent)
        except OSError as error:
            _fail(f"the ledger {path} cannot be written: {error.strerror or 'an error'}. Nothing was released.")


def _encryptor(key: bytes) -> CipherContext:
    # ECB on blocks that never repeat is a pseudorandom function of them.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
