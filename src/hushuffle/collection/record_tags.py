"""Digests of records and of their values under a key: random numbers to whoever lacks it, sorted in bounded memory.

That a key was used, noted in two places besides its ledger; and the ledgers that earlier versions kept beside keys.

A mark lies in the folder of all memory, another beside the key file. So a ledger that was deleted is missed, and so
is a folder of memory that was, as long as the key file lies where it was.
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

from hushuffle._checks import fail
from hushuffle.files.buckets import Buckets
from hushuffle.files.private_files import flush_folder, mark_once, write_private
from hushuffle.files.secret_keys import damaged, derived, fingerprint, key_folder, state_folder
from hushuffle.tables.ids import normal_ids
from hushuffle.tables.parquet import UnreadableFile, read_parquet

Words = npt.NDArray[np.uint64]
_PAIR_TYPE: Final = np.dtype(("<u8", (2,)))

PAIR: Final = 16
"""Bytes of a record in a file of tags: its tag, then that of its value."""

_HALF: Final = 1 << 63
_BUCKETS: Final = 256
_MEMORY: Final = 1 << 26  # bytes of tags that are held before they are written to the disk
_TWICE: Final = (
    "an id is there twice: two records would share their coins. Capital letters, spaces, leading zeros, a plus sign or "
    ".0 make no other id. Give every record an id of its own, or where reports are kept (memoised) leave one record of "
    "each person."
)


def record_numbers(ids: pl.Series, *, key: bytes) -> Words:
    """Return a number for each id (text), shape (n,): the same for all spellings of one id, in every file.

    Which spellings those are is said by `hushuffle.tables.ids`. Integers below 2**63 are their own numbers; other text
    gets 63 bits of a keyed digest, with the highest bit set: among n of them two are the same with probability at most
    n**2 / 2**64.

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
        result[others] = [_HALF | (int.from_bytes(_digest(text, subkey)) >> 1) for text in texts]
    return result


def written_normally(ids: pl.Series) -> bool:
    """Return whether ids are written as their normal form, so that earlier versions gave them the same numbers."""
    return ids.equals(normal_ids(ids))


def _digest(text: str, key: bytes) -> bytes:
    return hashlib.blake2b(text.encode(), key=key, digest_size=8).digest()


class Tags:
    """Makes the tags of records, and of what was done with their values, under a key and a round.

    `mechanism` says how values become reports: column, categories, randomizer. `scope` names the coins that records
    are given: the same for the same key and round, and only then can two tags of records be the same.

    `memoised`: the key is that of reports that are kept. Tags are then the same in all rounds, and `deployment` names
    the key; `scope` still names the round.
    """

    def __init__(self, *, key: bytes, round_number: int, mechanism: str, memoised: bool = False) -> None:
        what = hashlib.sha256(mechanism.encode()).hexdigest()
        of = "every round" if memoised else f"round {round_number}"
        self._record = _encryptor(derived(key, f"ledger 1 records, {of}"))
        self._value = _encryptor(derived(key, f"ledger 1 values, {of}, {what}"))
        self.scope = derived(key, f"ledger 2 scope, round {round_number}")[:16].hex()
        self.deployment = derived(key, "ledger 2 deployment")[:16].hex() if memoised else None

    def of(self, records: Words, values: npt.NDArray[np.int64]) -> Words:
        """Return the tag of each record and of its value, shape (n, 2)."""
        blocks = np.zeros((records.size, 2), dtype="<u8")
        blocks[:, 0] = records
        first = np.frombuffer(self._record.update(blocks.tobytes()), dtype="<u8")[::2]
        blocks[:, 1] = values
        second = np.frombuffer(self._value.update(blocks.tobytes()), dtype="<u8")[::2]
        return np.stack([first, second], axis=1)


@dataclass(frozen=True, kw_only=True)
class Entries:
    """The tags of one batch, sorted by record, in a private `file`.

    `digest` is the same exactly for the same records with the same values under one mechanism; `scope` and
    `deployment` are those of the tags. `plain`: every id is known to be written as its normal form.
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
    """Takes the tags of a batch in any order, and writes them down in their own.

    Tags of records are uniform, so 256 buckets by their highest bits are of about one size; each is sorted in memory.

    Args:
        folder: a private one that is there; in the end it holds one file, of 16 bytes for each record.
        scope: `Tags.scope`.
        deployment: `Tags.deployment`.
        plain: whether every id is known to be written as its normal form, until somebody says otherwise.
        memory: bytes of tags to hold before they are written into the folder.

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
        """Take more tags of the batch, shape (n, 2)."""
        pairs = _sorted(pairs)
        firsts = np.arange(1, _BUCKETS, dtype=np.uint64) << np.uint64(56)
        for bucket, part in enumerate(np.split(pairs, np.searchsorted(pairs[:, 0], firsts))):
            if part.size:
                self._buckets.add(bucket, part)
        self._buckets.make_room()

    def entries(self) -> Entries:
        """Return what the ledger would hold of the batch; once."""
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
    """Return `count` pairs of a file of tags from number `start` on (all, if it is -1), shape (count, 2)."""
    words = np.fromfile(path, dtype="<u8", offset=start * PAIR, count=2 * count if count >= 0 else -1)
    return words.reshape(-1, 2)


def _sorted(pairs: Words) -> Words:
    """Return pairs in the order of their records, which are all different."""
    pairs = pairs[np.argsort(pairs[:, 0])]
    if bool(np.any(pairs[1:, 0] == pairs[:-1, 0])):
        fail(_TWICE)
    return pairs


def _encryptor(key: bytes) -> CipherContext:
    # ECB on blocks that never repeat is a pseudorandom function of them.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305


_OLD: Final = {"record": pl.UInt64, "value": pl.UInt64, "batch": pl.UInt64}


def leave_traces(key: bytes, key_file: Path) -> None:
    """Note that a key is in use, where it can be noted: a folder of keys may be read-only."""
    mark_once(_mark(key))
    text = f"The key {fingerprint(key)} is in use. What it was used for is in {key_folder(key)}: keep both.\n"
    with suppress(OSError):
        write_private(_mark_beside(key, key_file), text.encode())


def refuse_traces(key: bytes, key_file: Path) -> None:
    """Refuse a key without a ledger that was in use."""
    for mark in (_mark(key), _mark_beside(key, key_file)):
        if mark.exists():
            fail(
                f"{key_file} was used before, says {mark}, and its ledger is not at {key_folder(key)}: nobody knows "
                "whose coins are used up. Put the ledger back (or name its place by HUSHUFFLE_STATE), or take a new "
                "key."
            )


def old_ledgers(key_file: Path) -> tuple[Path, ...]:
    """Return the ledgers of earlier versions beside a key file, or beside the one that it is a link to."""
    places = {path.with_name(f"{path.name}.ledger") for path in (key_file.absolute(), key_file.resolve())}
    return tuple(sorted(place for place in places if place.exists()))


def tags_of_old(place: Path) -> tuple[Words, str]:
    """Return the tags in a ledger of an earlier version, shape (n, 2), sorted by record, and a digest of them."""
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
    """Give a ledger that was taken over another name: it is never read again."""
    place.replace(place.with_name(f"{place.name}.imported"))
    flush_folder(place.parent)


def _mark(key: bytes) -> Path:
    return state_folder() / "used" / fingerprint(key)


def _mark_beside(key: bytes, key_file: Path) -> Path:
    return key_file.resolve().with_name(f"hushuffle-{fingerprint(key)[:8]}.used")
