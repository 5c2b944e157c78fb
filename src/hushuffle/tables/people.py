"""Whose records are whose: at most so many of each person are kept, by coins that know nothing of the values."""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_ROOM: Final = 1 << 20
"""So many records more than are kept are held before those beyond the limit are dropped."""


class FewOfEach:
    """Takes records of people block by block, and keeps at most `most` of each: those with the smallest random words.

    The words are drawn for records, whatever their values: every choice among one person's records is equally likely.
    32 bytes are held for each record that is kept, and those of at most 2**20 more. Persons are told apart by 64 bits
    of a hash with a seed of its own; two that share it (for n people a chance of n**2/2**65) count as one
    person, which keeps fewer records and promises no less.

    >>> keep = FewOfEach(2)
    >>> words = np.array([5, 1, 4, 3], dtype=np.uint64)
    >>> keep.add(pl.Series(["a", "a", "a", "b"]), words, np.array([0, 1, 2, 3]))
    >>> keep.people, sorted(keep.values.tolist()), keep.left_out
    (2, [1, 2, 3], 1)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seed = secrets.randbits(64)
        self._held: list[tuple[Words, Words, Integers, Words]] = []
        self._fresh = self._taken = 0

    def add(
        self, persons: pl.Series, words: Words, values: Integers, records: npt.NDArray[np.integer] | None = None
    ) -> None:
        """Take more records: whose they are (text), a random word for each, their values, and their numbers if any."""
        numbers = np.zeros(values.size, dtype=np.uint64) if records is None else records.astype(np.uint64)
        digests = persons.hash(seed=self._seed).to_numpy()
        self._held.append((digests, words, values, numbers))
        self._fresh += values.size
        self._taken += values.size
        if self._fresh > _ROOM + (self._held[0][0].size if len(self._held) > 1 else 0):
            self._settle()

    @property
    def people(self) -> int:
        """How many different people have records."""
        return int(np.unique(self._settle()[0]).size)

    @property
    def values(self) -> Integers:
        """The values of the records that are kept, in an order that says nothing."""
        return self._settle()[2]

    @property
    def records(self) -> Words:
        """The numbers of the records that are kept, in the same order."""
        return self._settle()[3]

    @property
    def left_out(self) -> int:
        """How many records were too many."""
        return self._taken - self.values.size

    def _settle(self) -> tuple[Words, Words, Integers, Words]:
        """Drop what is too much, and return what is kept."""
        if self._fresh or not self._held:
            empty = np.zeros(0, dtype=np.uint64)
            parts = [*self._held, (empty, empty, np.zeros(0, dtype=np.int64), empty)]
            digests, words, values, numbers = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.lexsort((words, digests))
            digests = digests[order]
            first = np.append(True, digests[1:] != digests[:-1])[: digests.size]
            place = np.arange(digests.size)
            kept = place - np.maximum.accumulate(np.where(first, place, 0)) < self._most
            chosen = order[kept]
            self._held, self._fresh = [(digests[kept], words[chosen], values[chosen], numbers[chosen])], 0
        return self._held[0]
