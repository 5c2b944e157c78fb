"""The kernel of every engine: it turns a block of values into a block of packed reports, on any machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Integers, Words
from hushuffle.collection.record_tags import MemoizedTags, Tags
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import NumberGrid
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.randomness import KeyedRandomness, Randomness, keyed, secure

_BLOCK = 1 << 16  # records per step, so that the working arrays stay in the processor's cache


class AnyKernel(Protocol):
    @property
    def key(self) -> bytes | None:
        """The secret key, at least 32 bytes; None: fresh randomness."""

    @property
    def layout(self) -> ReportLayout:
        """The layout of a packed report."""

    def reports(self, values: Integers, *, records: Words | None = None, rng: Randomness | None = None) -> Packed:
        """Return one report for each value, shape (n,), in the order of `values`."""

    def tags(self, mechanism: str) -> Tags:
        """Return the tags of records and values for the ledger of the key; `mechanism` says how they become reports."""


@dataclass(frozen=True, kw_only=True)
class Keyed:
    """Randomness that a `key` (at least 32 secret bytes; None: fresh) and a round determine."""

    key: bytes | None = field(default=None, repr=False)
    round: int = 0

    def tags(self, mechanism: str) -> Tags:
        assert self.key is not None  # only records with ids have tags
        return Tags(key=self.key, round_number=self.round, mechanism=mechanism)


@dataclass(frozen=True, kw_only=True)
class Kernel(Keyed):
    """Randomizes blocks of records. A kernel holds no random generator, so it can be sent to other machines.

    `grid`: for stochastic rounding, if values are positions on a grid of numbers. With a `key` (at least 32 secret
    bytes), the randomness of a record depends on (key, record, `round`) alone, so that an engine that executes a record
    twice repeats its report; values that may have changed need a new round.

    >>> import hushuffle as hs
    >>> kernel = Kernel(randomizer=hs.RandomizedResponse(k=100, epsilon=2.0), key=bytes(32))  # a secret key, really
    >>> once = kernel.reports(np.arange(100), records=np.arange(100, dtype=np.uint64))
    >>> again = kernel.reports(np.array([7]), records=np.array([7], dtype=np.uint64))
    >>> bool(once[7] == again[0]), once.dtype.itemsize
    (True, 1)
    """

    randomizer: Mechanism
    grid: NumberGrid | None = None
    layout: ReportLayout = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", self.randomizer.layout)

    def reports(self, values: Integers, *, records: Words | None = None, rng: Randomness | None = None) -> Packed:
        """Return one report for each value or position on the grid; with a key, every record has a distinct number."""
        if (self.key is None) != (records is None):
            _checks.reject("records", "set if and only if a key is used", "<the other>")
        source = secure() if rng is None else rng
        packed = np.empty(values.size, dtype=self.layout.dtype)
        for start in range(0, values.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            if self.key is not None and records is not None:
                source = self.coins(self.key, records[block], values[block])
            codes = values[block] if self.grid is None else self.grid.rounded(values[block], rng=source)
            packed[block] = self.layout.pack(self.randomizer.randomize(codes, rng=source))
        return packed

    def coins(self, key: bytes, records: Words, values: Integers) -> Randomness:
        return KeyedRandomness(key=key, records=records, round_number=self.round)

    def dummies(
        self, count: int, *, start: int = 0, rng: Randomness | None = None, placed: Integers | None = None
    ) -> Packed:
        """Return `count` dummies; with a key, dummies `start`, `start` + 1, ... `placed`: all dummies, if fixed."""
        if placed is not None:
            return self.layout.pack(placed[start : start + count])
        source = secure() if rng is None else rng
        if self.key is not None:
            source = keyed(key=self.key, records=np.arange(start, start + count), round=self.round)
        return self.layout.pack(self.randomizer.dummies(count, rng=source))


@dataclass(frozen=True, kw_only=True)
class MemoizedKernel(Kernel):
    """The randomness depends on the value and not on the round: each value of a record has one permanent report."""

    def coins(self, key: bytes, records: Words, values: Integers) -> Randomness:
        return KeyedRandomness(key=key, records=records, round_number=0, values=values)

    def tags(self, mechanism: str) -> Tags:
        assert self.key is not None  # memoized reports need a key
        return MemoizedTags(key=self.key, round_number=self.round, mechanism=mechanism)
