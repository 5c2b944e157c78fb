"""The ledger of a secret key: a record of its used randomness, as keyed digests that reveal nothing without the key.

Under one key and round a record has one source of randomness. Two reports from the same randomness, of two values, two
randomizers or two columns, can reveal the values. Two releases whose people overlap in part, or with different dummies,
can be subtracted from each other. So in each round a record is in one batch, which may only be repeated exactly.
Memoized reports have one source of randomness per value, the same in all rounds: their key is for one deployment alone,
with one batch in each round. The key's fingerprint names the folder of the ledger (`hushuffle.files.secret_keys`),
wherever the key file lies.

A ledger is a list of batches, ledger.json, and a file of sorted tags for each batch. A file of tags is first written
under a name for pending files; then the list that names it is written; then the file is renamed. The list decides.
"""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, NoReturn

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from hushuffle._checks import Words, fail
from hushuffle.collection.record_tags import (
    PAIR,
    Entries,
    leave_traces,
    old_ledgers,
    put_away,
    read_pairs,
    refuse_traces,
    tags_of_old,
)
from hushuffle.files.causes import failing
from hushuffle.files.private_files import flush_folder, private_file
from hushuffle.files.secret_keys import damaged, key_folder, locked, read_memory, write_memory

_CONTENT: Final = "ledger"
_CHUNK: Final = 1 << 18  # pairs that are compared at once
_SPARSE: Final = 4096  # records are looked up singly if the other file has this many times more pairs


_NORMAL: Final = "normal form"
"""The name of the rule in `hushuffle.tables.people` that decides whether two ids are equal."""


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, kw_only=True)
class LedgerBatch:
    """The ledger's entry for one batch; `scope`, `digest` and `people` have the meaning that they have in `Entries`.

    `shuffler` identifies the dummies; `specification` is that of the manifest. `scope`, `shuffler` and `specification`
    are None in entries of an earlier version. `deployment` identifies memoized reports; None: they were fresh. `ids` is
    the rule for comparing ids; None: an earlier version compared them literally.
    """

    digest: str
    people: Annotated[int, Field(strict=True)]
    scope: str | None = None
    shuffler: str | None = None
    specification: str | None = None
    deployment: str | None = None
    ids: str | None = None


_LIST: Final = TypeAdapter(tuple[LedgerBatch, ...])


@dataclass(frozen=True, kw_only=True)
class Candidate:
    entries: Entries
    shuffler: str
    specification: str

    @property
    def batch(self) -> LedgerBatch:
        return LedgerBatch(
            digest=self.entries.digest.hex(),
            people=self.entries.people,
            scope=self.entries.scope,
            shuffler=self.shuffler,
            specification=self.specification,
            deployment=self.entries.deployment,
            ids=_NORMAL,
        )


def begin(key: bytes, key_file: Path, *, new: bool = False) -> None:
    """Ensure that a key has a ledger before its use; import the ledger of an earlier version beside `key_file`."""
    with opened(key, key_file, new=new):
        pass


@contextmanager
def opened(key: bytes, key_file: Path, *, new: bool = False) -> Iterator[Ledger]:
    """Open the ledger of a key and lock it, so that other collections with this key wait.

    The ledger must exist exactly if the key was not declared new (`--new-key`).
    """
    folder, old = key_folder(key), old_ledgers(key_file)
    if not folder.exists():
        refuse_traces(key, key_file)
        if not (new or old):
            _undeclared(key_file, folder)
    with locked(folder):
        path = folder / "ledger.json"
        document = read_memory(path, _CONTENT)
        if document is None:
            if any(folder.glob("*.tags")):
                damaged(path)
            refuse_traces(key, key_file)
            if not (new or old):
                _undeclared(key_file, folder)
        ledger = Ledger(folder, _batches(document, path))
        if new and (ledger.batches or old):
            fail(
                f"{key_file} is not a new key: {old[0] if old else path} lists batches collected with it. Remove "
                "`--new-key`, or choose a key file that does not exist yet."
            )
        readable = [(place, *tags_of_old(place)) for place in old]
        with failing(f"the ledger {path} cannot be written", " Nothing was released."):
            if document is None:
                ledger.save()
                leave_traces(key, key_file)
            ledger.settle()
            for place, pairs, digest in readable:
                ledger.take_over(pairs, digest)
                put_away(place)
        yield ledger


class Ledger:
    def __init__(self, folder: Path, batches: Sequence[LedgerBatch]) -> None:
        self._folder = folder
        self.batches = tuple(batches)

    def check(self, candidates: Sequence[Candidate]) -> tuple[bool, ...]:
        """Return True for a new batch, and False for an exact repetition; any other reuse of randomness is an error."""
        earlier = [(batch, self._tags(number)) for number, batch in enumerate(self.batches)]
        fresh: list[bool] = []
        as_written = any(batch.ids is None for batch in self.batches)
        for candidate in candidates:
            if as_written and not candidate.entries.plain:
                fail(
                    "An earlier version of hushuffle compared the ids in this ledger literally. Ids with capital "
                    "letters, spaces, leading zeros, a plus sign or .0 (with Spark, any ids) cannot be compared with "
                    "them. Remove these from the ids, or use a new key."
                )
            batch = candidate.batch
            fresh.append(_is_new(batch, candidate.entries.file, earlier))
            if fresh[-1]:
                earlier.append((batch, candidate.entries.file))
        return tuple(fresh)

    def kept(self, candidate: Candidate) -> tuple[int, int, int]:
        """Count people with one report in all rounds, people with several, and the most distinct reports of one."""
        own = candidate.entries
        others = [self._tags(number) for number, batch in enumerate(self.batches) if batch.scope != own.scope]
        same, changed, most = 0, 0, 1
        together = max(1, _CHUNK // (len(others) + 1))  # the reports of all rounds are compared side by side
        for start in range(0, own.people, together):
            mine = read_pairs(own.file, start, min(together, own.people - start))
            always = np.ones(mine.shape[0], dtype=np.bool_)
            sent = np.repeat(mine[:, 1][np.newaxis], len(others) + 1, axis=0)  # absent people sent no other report
            for path, other in zip(others, sent[1:], strict=True):
                met = np.zeros_like(always)
                with path.open("rb", buffering=0) as file:
                    for theirs in _near(mine, path, file, path.stat().st_size // PAIR, sparse=False):
                        places = _places(mine, theirs)
                        here = theirs[places, 0] == mine[:, 0]
                        other[here] = theirs[places[here], 1]
                        met |= here
                always &= met
            different = 1 + np.count_nonzero(np.diff(np.sort(sent, axis=0), axis=0), axis=0)
            same += int(np.count_nonzero(always & (different == 1)))
            changed += int(np.count_nonzero(different > 1))
            most = max(most, int(different.max(initial=1)))
        return same, changed, most

    def admit(self, candidates: Sequence[Candidate]) -> None:
        """Enter all new batches into the ledger, or none, flushed to the disk."""
        before = self.batches
        with failing(f"the ledger {self._folder / 'ledger.json'} cannot be written", " Nothing was released."):
            try:
                for number, candidate in enumerate(candidates, start=len(before)):
                    with candidate.entries.file.open("rb") as source, private_file(self._pending(number)) as target:
                        shutil.copyfileobj(source, target, 1 << 20)
                self.batches = (*before, *(candidate.batch for candidate in candidates))
                self.save()
            except BaseException:
                self.batches = before
                raise
            self.settle()

    def save(self) -> None:
        write_memory(self._folder / "ledger.json", _CONTENT, {"batches": [asdict(batch) for batch in self.batches]})

    def settle(self) -> None:
        """Rename pending files of tags, remove files of batches never admitted, and check that no file is missing."""
        path = self._folder / "ledger.json"
        for number, batch in enumerate(self.batches):
            tags, pending = self._tags(number), self._pending(number)
            if not tags.exists() and pending.exists():
                pending.replace(tags)
                flush_folder(self._folder)
            if not tags.exists() or tags.stat().st_size != PAIR * batch.people:
                damaged(tags)
        for left in (*self._folder.glob("*.pending"), *self._folder.glob(".*.new")):
            left.unlink()
        if sum(1 for _ in self._folder.glob("*.tags")) > len(self.batches):
            damaged(path)

    def take_over(self, pairs: Words, digest: str) -> None:
        """Import the records of an earlier version's ledger, unless they were imported before."""
        if not any(batch.digest == digest for batch in self.batches):
            with private_file(self._pending(len(self.batches))) as file:
                file.write(pairs.tobytes())
            self.batches = (*self.batches, LedgerBatch(digest=digest, people=pairs.shape[0]))
            self.save()
            self.settle()

    def _tags(self, number: int) -> Path:
        return self._folder / f"{number + 1:06}.tags"

    def _pending(self, number: int) -> Path:
        return self._folder / f"{number + 1:06}.pending"


def _is_new(batch: LedgerBatch, file: Path, earlier: Sequence[tuple[LedgerBatch, Path]]) -> bool:
    """Return whether a batch, whose tags are in `file`, has no record in common with any batch in `earlier`."""
    met = changed = unknown = 0
    for other, tags in earlier:
        _refuse_other_use(batch, other)
        if other.scope == batch.scope and other.digest == batch.digest:
            if other.shuffler != batch.shuffler:
                fail(
                    "This batch was collected with this key and round before, with another shuffler or another number "
                    "of dummies. An observer could subtract one release from the other. Repeat the batch exactly, or "
                    "use a new `--round`."
                )
            return False
        if other.scope in (None, batch.scope):
            both, different = _in_both(file, tags)
            met, changed = met + both, changed + different
            unknown += both if other.scope is None else 0
    if unknown:
        fail(
            f"{unknown:,} people have reported under this key and round to an earlier version of hushuffle, which did "
            "not record the number of dummies. Use a new `--round`."
        )
    if changed:
        fail(
            f"{changed:,} people have reported under this key and round with other values, categories or another "
            "randomizer. Two reports from the same randomness would reveal their values. Use a new `--round`."
        )
    if met:
        fail(
            f"{met:,} people are in an earlier, different batch of this key and round. An observer could compare both "
            "and isolate the difference. Repeat the batch exactly, or use a new `--round`."
        )
    if batch.deployment is not None and any(other.scope == batch.scope for other, _ in earlier):
        fail(
            "This round was collected with this key from other people. All people of a memoized round must be "
            "collected together. Use a new `--round`."
        )
    return True


def _refuse_other_use(batch: LedgerBatch, other: LedgerBatch) -> None:
    if batch.deployment == other.deployment:
        return
    if batch.deployment is None:
        fail("This key is reserved for memoized reports. Use another key.")
    if other.deployment is None:
        fail("This key was used for fresh reports. Use a new key for memoized reports.")
    fail(
        "The memoized reports of this key have another column, other categories or another randomizer, so people would "
        "send a second report. Restore the specification, or use another key for another deployment."
    )


def _in_both(first: Path, other: Path) -> tuple[int, int]:
    """Return how many records two files of sorted tags have in common, and how many of these with different values."""
    small, large = sorted((first, other), key=lambda path: path.stat().st_size)
    count, total = (path.stat().st_size // PAIR for path in (small, large))
    met = changed = 0
    with large.open("rb", buffering=0) as file:
        for start in range(0, count, _CHUNK):
            mine = read_pairs(small, start, min(_CHUNK, count - start))
            for theirs in _near(mine, large, file, total, sparse=count * _SPARSE < total):
                places = _places(mine, theirs)
                same = theirs[places, 0] == mine[:, 0]
                met += int(np.count_nonzero(same))
                changed += int(np.count_nonzero(same & (theirs[places, 1] != mine[:, 1])))
    return met, changed


def _places(mine: Words, theirs: Words) -> npt.NDArray[np.intp]:
    places: npt.NDArray[np.intp] = np.minimum(np.searchsorted(theirs[:, 0], mine[:, 0]), theirs.shape[0] - 1)
    return places


def _near(mine: Words, path: Path, file: BinaryIO, total: int, *, sparse: bool) -> Iterator[Words]:
    """Yield blocks of pairs from a file of `total` pairs that include every record in `mine`."""
    if sparse:
        places = [min(_place(file, total, record), total - 1) for record in mine[:, 0].tolist()]
        yield np.concatenate([read_pairs(path, place, 1) for place in places])
        return
    first, last = (_place(file, total, record) for record in mine[[0, -1], 0].tolist())
    for start in range(first, min(last + 1, total), _CHUNK):
        yield read_pairs(path, start, min(_CHUNK, last + 1 - start))


def _place(file: BinaryIO, total: int, record: int) -> int:
    """Return the position of the first pair in a file whose record is at least `record`."""

    def at(place: int) -> int:
        file.seek(place * PAIR)
        return int.from_bytes(file.read(8), "little")

    return bisect_left(range(total), record, key=at)


def _batches(document: dict[str, Any] | None, path: Path) -> tuple[LedgerBatch, ...]:
    try:
        return () if document is None else _LIST.validate_python(document["batches"])
    except (KeyError, ValidationError):
        damaged(path)


def _undeclared(key_file: Path, folder: Path) -> NoReturn:
    fail(
        f"{key_file} has no ledger, so reuse of its randomness cannot be ruled out. If the key has never been used "
        f"anywhere, pass `--new-key`. Otherwise restore its ledger at {folder} (or set HUSHUFFLE_STATE to its folder), "
        "or create a new key."
    )
