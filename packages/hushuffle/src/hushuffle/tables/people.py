"""Limit the number of records of each person; the records are chosen independently of their values.

Ids are compared in a normal form: `7`, `0007`, `+7`, `7.0` and ` 7` have the same one, and so have `U17` and `u17`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import Integers, Words, fail

_ROOM: Final = 1 << 20
"""Number of surplus records in memory before records beyond the limit are dropped."""


@dataclass(frozen=True, kw_only=True)
class _HeldRecords:
    """Records in memory as parallel arrays: hash of the person, random word, value and number.

    `spelled` is a hash of the id as it is written. `seen` is the number of records of the person so far, stored at the
    person's first record in memory; 0 at the others.
    """

    whose: Words
    words: Words
    values: Integers
    numbers: Words
    spelled: Words
    seen: Integers

    def taken(self, places: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> _HeldRecords:
        return _HeldRecords(**{name: column[places] for name, column in vars(self).items()})


class FewOfEach:
    """Selects at most `most` records per person, from blocks of records: those with the smallest random words.

    The words do not depend on values, so every selection among a person's records is equally likely. Memory is 48 bytes
    for each selected record, and for at most 2**20 more. People are identified by a 64-bit hash (with a random seed) of
    the normal form of their ids (`normal`). Two people with the same hash (for n people with probability
    n**2/2**65) count as one person; then fewer records are selected, and the guarantee still holds.

    >>> keep = FewOfEach(2)
    >>> words = np.array([5, 1, 4, 3], dtype=np.uint64)
    >>> keep.add(pl.Series(["a", "a", "a", "b"]), words, np.array([0, 1, 2, 3]))
    >>> keep.people, sorted(keep.values.tolist()), keep.left_out, keep.largest
    (2, [1, 2, 3], 1, 3)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seed = secrets.randbits(64)
        none, zeros = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        self._held = [_HeldRecords(whose=none, words=none, values=zeros, numbers=none, spelled=none, seen=zeros)]
        self._several: set[int] = set()
        self._fresh = self._taken = 0

    def add(
        self, persons: pl.Series, words: Words, values: Integers, records: npt.NDArray[np.integer] | None = None
    ) -> None:
        block = _HeldRecords(
            whose=normal_ids(persons).hash(seed=self._seed).to_numpy(),
            words=words,
            values=values,
            numbers=np.zeros(values.size, dtype=np.uint64) if records is None else records.astype(np.uint64),
            spelled=persons.hash(seed=self._seed).to_numpy(),
            seen=np.ones(values.size, dtype=np.int64),
        )
        self._held.append(block)
        self._fresh += values.size
        self._taken += values.size
        if self._fresh > _ROOM + self._held[0].values.size:
            self._settle()

    @property
    def people(self) -> int:
        return int(np.unique(self._settle().whose).size)

    @property
    def values(self) -> Integers:
        """The values of the selected records, in an order independent of the data."""
        return self._settle().values

    @property
    def records(self) -> Words:
        return self._settle().numbers

    @property
    def left_out(self) -> int:
        return self._taken - self.values.size

    @property
    def largest(self) -> int:
        return int(self._settle().seen.max(initial=0))

    def refuse_spellings(self, column: str) -> None:
        """Raise `DataError` if an id in the `column` is written in several ways."""
        self._settle()
        if self._several:
            fail(
                f"column {column!r}: {len(self._several):,} ids are written in several ways: with and without capital "
                "letters, spaces, leading zeros, a plus sign or .0. Such ids may belong to the same person. "
                "Write each id in one way. If two people have ids that differ only in this, give one of them a new id."
            )

    def _settle(self) -> _HeldRecords:
        if self._fresh:
            blocks = [vars(block) for block in self._held]
            held = _HeldRecords(**{name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]})
            held = held.taken(np.lexsort((held.words, held.whose)))
            first = np.append(True, held.whose[1:] != held.whose[:-1])
            start = np.flatnonzero(first)
            seen = np.zeros_like(held.seen)
            seen[start] = np.add.reduceat(held.seen, start)
            whose = np.maximum.accumulate(np.where(first, np.arange(first.size), 0))
            self._several.update(held.whose[held.spelled != held.spelled[whose]].tolist())
            within = np.arange(first.size) - whose < self._most
            self._held, self._fresh = [replace(held, seen=seen).taken(within)], 0
        return self._held[0]


_UNSEEN: Final = r"\p{Cf}"
"""Invisible characters, such as direction marks and joiners."""

_NUMBER: Final = r"^\+?(-?)0*([0-9]+)(?:\.0*)?$"
"""A pattern for whole numbers with or without a plus sign, leading zeros and `.0`."""


def normal(ids: pl.Expr) -> pl.Expr:
    """Return ids (text) in a normal form, which is the same for all spellings of an id.

    Compatibility characters such as full-width digits become plain characters (NFKC). Invisible characters, spaces
    around the id, capital letters, a plus sign, leading zeros and `.0` of a whole number make no difference.

    >>> spellings = pl.Series(["7", " 0007", "+7", "7.0", "\uff17", "U17 ", "u17", "7.5"])
    >>> pl.select(normal(pl.lit(spellings))).to_series().to_list()
    ['7', '7', '7', '7', '7', 'u17', 'u17', '7.5']
    """
    plain = ids.str.normalize("NFKC").str.replace_all(_UNSEEN, "").str.strip_chars().str.to_lowercase()
    return plain.str.replace(_NUMBER, "${1}${2}")


_NORMAL: Final = r"^(?:0|[1-9][0-9]*|[a-z0-9_@.-]*[a-z_@][a-z0-9_@.-]*)$"
"""A pattern that matches only ids in normal form."""


def normal_ids(ids: pl.Series) -> pl.Series:
    if ids.str.contains(_NORMAL).all(ignore_nulls=False):
        return ids
    return pl.select(normal(pl.lit(ids))).to_series().alias(ids.name)
