"""Keyed digests (tags) of records and values, which are pseudorandom without the key and are sorted on disk.

The module also writes two marks that show that a key is in use, and reads the ledgers of earlier versions.

One mark is in the folder of all key records, the other beside the key file. So a deleted ledger is detected, and so is
a deleted folder of records, as long as the key file has not been moved.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from hushuffle._checks import Words, fail
from hushuffle.files.buckets import Buckets
from hushuffle.files.private_files import flush_folder, mark_once, write_private
from hushuffle.files.secret_keys import damaged, derived, fingerprint, key_folder, state_folder
from hushuffle.tables.csv_form import UnreadableFile
from hushuffle.tables.parquet import read_parquet
from hushuffle.tables.people import normal_ids

_PAIR_TYPE: Final = np.dtype(("<u8", (2,)))

PAIR: Final = 16
"""Bytes per record in a file of tags. Each record has a tag of its id and a tag of its value."""

_HALF: Final = 1 << 63
_BUCKETS: Final = 256
_MEMORY: Final = 1 << 26  # bytes of tags that stay in memory before they are written to disk
_TWICE: Final = (
    "two records have the same id, so they would share their randomness. Ids that differ only in capital letters, "
    "spaces, leading zeros, a plus sign or .0 are the same. Give every record its own id; for memoized reports, keep "
    "one record per person."
)


def record_numbers(ids: pl.Series, *, key: bytes) -> Words:
    """Return a number for each id (text), shape (n,); all spellings of an id have the same number, in every file.

    `hushuffle.tables.people` defines the spellings. Integers below 2**63 are their own numbers. Other text gets 63 bits
    of a keyed digest, with the highest bit set; two of n digests are equal with probability at most n**2 / 2**64.

    >>> record_numbers(pl.Series(["7", "0", " 007"]), key=bytes(32)).tolist()
    [7, 0, 7]
    """
    ids = normal_ids(ids)
    numbers = ids.cast(pl.UInt64, strict=False)
    plain = ((numbers.cast(pl.String) == ids) & (numbers < _HALF)).fill_null(value=False)
    result = numbers.fill_null(0).to_numpy().copy()
    others = np.flatnonzero(~plain.to_numpy())
    if others.size:
        subkey = derived(key, "record ids 1")
        texts = ids.gather(others).to_list()
        digests = [hashlib.blake2b(text.encode(), key=subkey, digest_size=8).digest() for text in texts]
        result[others] = [_HALF | (int.from_bytes(digest) >> 1) for digest in digests]
    return result


def written_normally(ids: pl.Series) -> bool:
    """Return whether every id is in normal form, so that earlier versions gave it the same number as this version."""
    return ids.equals(normal_ids(ids))


class Tags:
    """Computes the tags of records and of their randomized values, under a key and a round.

    `mechanism` describes how values become reports: column, categories, randomizer. `scope` identifies the randomness
    of the records: it is the same for the same key and round, and only then can two tags of records be equal.
    """

    deployment: str | None = None
    """Identifies a key of memoized reports; None: fresh reports."""

    def __init__(self, *, key: bytes, round_number: int, mechanism: str) -> None:
        what, of = hashlib.sha256(mechanism.encode()).hexdigest(), self.of_round(round_number)
        self._record = _encryptor(derived(key, f"ledger 1 records, {of}"))
        self._value = _encryptor(derived(key, f"ledger 1 values, {of}, {what}"))
        self.scope = derived(key, f"ledger 2 scope, round {round_number}")[:16].hex()

    def of_round(self, round_number: int) -> str:
        return f"round {round_number}"

    def of(self, records: Words, values: npt.NDArray[np.int64]) -> Words:
        """Return the tags of each record and of its value, shape (n, 2)."""
        blocks = np.zeros((records.size, 2), dtype="<u8")
        blocks[:, 0] = records
        first = np.frombuffer(self._record.update(blocks.tobytes()), dtype="<u8")[::2]
        blocks[:, 1] = values
        second = np.frombuffer(self._value.update(blocks.tobytes()), dtype="<u8")[::2]
        return np.stack([first, second], axis=1)


class MemoizedTags(Tags):
    """The tags of memoized reports are the same in all rounds; `scope` still identifies the round."""

    def __init__(self, *, key: bytes, round_number: int, mechanism: str) -> None:
        super().__init__(key=key, round_number=round_number, mechanism=mechanism)
        self.deployment = derived(key, "ledger 2 deployment")[:16].hex()

    def of_round(self, round_number: int) -> str:
        return "every round"


@dataclass(frozen=True, kw_only=True)
class Entries:
    """The tags of one batch, sorted by record, in a private `file`.

    Batches have equal `digest` exactly if records, values and mechanism are equal. `plain`: every id is in normal form.
    """

    file: Path
    people: int
    digest: bytes
    scope: str
    deployment: str | None = None
    plain: bool = False

    def __repr__(self) -> str:
        return f"Entries({self.people} records)"


class TagSorter:
    """Takes the tags of a batch in any order, and writes them to a file, sorted by record.

    Tags of records are uniform, so 256 buckets by their highest bits have similar sizes; each is sorted in memory. The
    private `folder` in the end holds one file, of 16 bytes for each record. `memory`: maximum bytes in memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tags = Tags(key=bytes(32), round_number=0, mechanism="answers")
    ...     sorter = TagSorter(Path(folder), scope=tags.scope)
    ...     sorter.add(tags.of(np.array([7, 3], dtype=np.uint64), np.array([0, 1])))
    ...     sorter.entries()
    Entries(2 records)
    """

    def __init__(
        self, folder: Path, *, scope: str, deployment: str | None = None, plain: bool = False, memory: int = _MEMORY
    ) -> None:
        self.plain = plain
        self._folder, self._scope, self._deployment = folder, scope, deployment
        self._buckets = Buckets[Words](folder, dtype=_PAIR_TYPE, count=_BUCKETS, memory=memory)

    def add(self, pairs: Words) -> None:
        pairs = _sorted(pairs)
        firsts = np.arange(1, _BUCKETS, dtype=np.uint64) << np.uint64(56)
        for bucket, part in enumerate(np.split(pairs, np.searchsorted(pairs[:, 0], firsts))):
            if part.size:
                self._buckets.add(bucket, part)
        self._buckets.make_room()

    def entries(self) -> Entries:
        """This method can be called only once."""
        file, digest, people = self._folder / "sorted.tags", hashlib.sha256(), 0
        with file.open("xb") as target:
            for bucket in range(_BUCKETS):
                block = _sorted(
                    np.concatenate([np.empty((0, 2), dtype="<u8"), *self._buckets.pieces(bucket)])
                ).tobytes()
                digest.update(block)
                target.write(block)
                people += len(block) // PAIR
        return Entries(
            file=file,
            people=people,
            digest=digest.digest(),
            scope=self._scope,
            deployment=self._deployment,
            plain=self.plain,
        )


def read_pairs(path: Path, start: int = 0, count: int = -1) -> Words:
    """Return `count` pairs (-1: all) from a file of tags, beginning at pair number `start`, shape (count, 2)."""
    return np.fromfile(path, dtype="<u8", offset=start * PAIR, count=2 * count if count >= 0 else -1).reshape(-1, 2)


def _sorted(pairs: Words) -> Words:
    """Return the pairs sorted by record; all records differ."""
    pairs = pairs[np.argsort(pairs[:, 0])]
    if bool(np.any(pairs[1:, 0] == pairs[:-1, 0])):
        fail(_TWICE)
    return pairs


def _encryptor(key: bytes) -> CipherContext:
    # ECB on blocks that never repeat is a pseudorandom function of the blocks.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305


_OLD: Final = {"record": pl.UInt64, "value": pl.UInt64, "batch": pl.UInt64}


def leave_traces(key: bytes, key_file: Path) -> None:
    """Write the marks that a key is in use; a mark that cannot be written, as in a read-only folder, is skipped."""
    mark_once(_mark(key))
    text = f"The key {fingerprint(key)} is in use. Its uses are recorded in {key_folder(key)}: keep both.\n"
    with suppress(OSError):
        write_private(_mark_beside(key, key_file), text.encode())


def refuse_traces(key: bytes, key_file: Path) -> None:
    for mark in (_mark(key), _mark_beside(key, key_file)):
        if mark.exists():
            fail(
                f"{mark} says that {key_file} was used before, and its ledger is not at {key_folder(key)}, so reuse of "
                "its randomness cannot be ruled out. Restore the ledger (or set HUSHUFFLE_STATE to its folder), or "
                "create a new key."
            )


def old_ledgers(key_file: Path) -> tuple[Path, ...]:
    """Return the ledgers of earlier versions beside a key file, or beside the file to which it is a link."""
    places = {path.with_name(f"{path.name}.ledger") for path in (key_file.absolute(), key_file.resolve())}
    return tuple(sorted(place for place in places if place.exists()))


def tags_of_old(place: Path) -> tuple[Words, str]:
    """Return the tags in a ledger of an earlier version, shape (n, 2), sorted by record, and a digest of the tags."""
    try:
        tables = list(read_parquet(pl.scan_parquet(place.absolute(), glob=False), place, name=str(place)))
    except UnreadableFile:
        damaged(place)
    if dict(tables[0].schema) != _OLD:
        damaged(place)
    pairs = pl.concat(tables).select("record", "value").to_numpy().astype("<u8")
    pairs = np.ascontiguousarray(pairs[np.argsort(pairs[:, 0])])
    return pairs, hashlib.sha256(pairs.tobytes()).hexdigest()


def put_away(place: Path) -> None:
    """Rename an earlier version's ledger that was imported, so that it is never read again."""
    place.replace(place.with_name(f"{place.name}.imported"))
    flush_folder(place.parent)


def _mark(key: bytes) -> Path:
    return state_folder() / "used" / fingerprint(key)


def _mark_beside(key: bytes, key_file: Path) -> Path:
    return key_file.resolve().with_name(f"hushuffle-{fingerprint(key)[:8]}.used")
