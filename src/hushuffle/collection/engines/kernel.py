"""The kernel of every engine: a block of values becomes a block of packed reports, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import NumberGrid
from hushuffle.model.report_layout import Packed, ReportLayout
from hushuffle.randomness import KeyedRandomness, Randomness, keyed, secure

_BLOCK = 1 << 16  # records per step: the working arrays stay in the processor's cache


class AnyKernel(Protocol):
    """What an engine asks of a kernel."""

    @property
    def key(self) -> bytes | None:
        """At least 32 secret bytes, or None."""

    @property
    def round(self) -> int:
        """Of the key."""

    @property
    def memoised(self) -> bool:
        """Whether coins depend on the value and not on the round."""

    @property
    def layout(self) -> ReportLayout:
        """That of a packed report."""

    def reports(
        self,
        values: npt.NDArray[np.int64],
        *,
        records: npt.NDArray[np.uint64] | None = None,
        rng: Randomness | None = None,
    ) -> Packed:
        """Return one report for each value, shape (n,), in the same order."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """What happens to one block of records; it holds no generator, so that it can be sent to other machines.

    Args:
        randomizer: what every person's device does.
        grid: what rounds numbers to codes by the same coins, where values are positions on it.
        key: at least 32 secret bytes, or None. With a key, a record's coins depend on (key, record, round) alone, so
            that an engine that executes a record twice repeats its report.
        round: of the key; a new number whenever values may have changed.
        memoised: with a key: coins depend on the value and not on the round, so that each value of a record has a
            report of its own, which stays.

    >>> import hushuffle as hs
    >>> kernel = Kernel(randomizer=hs.RandomizedResponse(k=100, epsilon=2.0), key=bytes(32))  # a secret key, really
    >>> once = kernel.reports(np.arange(100), records=np.arange(100, dtype=np.uint64))
    >>> again = kernel.reports(np.array([7]), records=np.array([7], dtype=np.uint64))
    >>> bool(once[7] == again[0]), once.dtype.itemsize
    (True, 1)
    """

    randomizer: Mechanism
    grid: NumberGrid | None = None
    key: bytes | None = field(default=None, repr=False)
    round: int = 0
    memoised: bool = False
    layout: ReportLayout = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", self.randomizer.layout)

    def reports(
        self,
        values: npt.NDArray[np.int64],
        *,
        records: npt.NDArray[np.uint64] | None = None,
        rng: Randomness | None = None,
    ) -> Packed:
        """Return one report for each value 0..k-1, shape (n,), in the same order.

        Args:
            values: codes, shape (n,), or positions on the grid.
            records: with a key: the number of each record, distinct, shape (n,).
            rng: without a key: `secure()` unless given.
        """
        if (self.key is None) != (records is None):
            _checks.reject("records", "given exactly when there is a key", "<the other>")
        source = secure() if rng is None else rng
        packed = np.empty(values.size, dtype=self.layout.dtype)
        for start in range(0, values.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            if self.key is not None and records is not None:
                source = KeyedRandomness(
                    key=self.key,
                    records=records[block],
                    round_number=0 if self.memoised else self.round,
                    values=values[block] if self.memoised else None,
                )
            codes = values[block] if self.grid is None else self.grid.rounded(values[block], rng=source)
            packed[block] = self.layout.pack(self.randomizer.randomize(codes, rng=source))
        return packed

    def dummies(
        self,
        count: int,
        *,
        start: int = 0,
        rng: Randomness | None = None,
        placed: npt.NDArray[np.int64] | None = None,
    ) -> Packed:
        """Return so many dummies, with a key those numbered from `start` on; `placed` are all where they are known."""
        if placed is not None:
            return self.layout.pack(placed[start : start + count])
        source = secure() if rng is None else rng
        if self.key is not None:
            source = keyed(key=self.key, records=np.arange(start, start + count), round=self.round)
        return self.layout.pack(self.randomizer.dummies(count, rng=source))
