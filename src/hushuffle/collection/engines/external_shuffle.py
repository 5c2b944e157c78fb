"""A uniform shuffle of more reports than fit into memory: random buckets, each shuffled, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle.files.buckets import Buckets
from hushuffle.model.report_layout import Packed
from hushuffle.randomness import Randomness

BUCKETS: Final = 256
"""Into how many parts the reports go before each is shuffled."""

MEMORY: Final = 1 << 28
"""Bytes of reports that are held before they are written to disk."""

LARGEST: Final = 1 << 23
"""Reports that are shuffled in memory at a time: 24 bytes each besides the reports."""


class ExternalShuffle:
    """Takes reports in any order, gives them in a uniformly random one; one use only.

    Every report goes to one of `buckets` buckets, uniformly and independently. Then each bucket is shuffled
    uniformly, and the buckets are read one after the other (a bucket that is too large in the same way again).

    All orders are equally likely. An order of the n reports comes about exactly if, for some sizes n_1 + ... + n_B = n
    of the buckets, the first n_1 reports of the order are those in the first bucket and so on (probability B**-n,
    whatever the order), and every bucket is left in that order (probability 1 / (n_1! ... n_B!)). The sum over the
    sizes is the same number for every order.

    Args:
        dtype: of a report.
        folder: an empty, private one for spilled reports; nothing is written while they fit into `memory`.
        rng: a sequential generator.
        memory: bytes of reports to hold.
        largest: reports to shuffle in memory at a time.
        buckets: at least 2, at most 256.

    Source: Rao 1961 (on paper, with tables of random digits).

    >>> import tempfile
    >>> from hushuffle import reproducible
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shuffle = ExternalShuffle(np.dtype([("report", "u1")]), Path(folder), rng=reproducible(1))
    ...     shuffle.add(np.array([(1,), (2,), (3,)], dtype=[("report", "u1")]))
    ...     sorted(int(one) for block in shuffle.blocks() for one in block["report"])
    [1, 2, 3]
    """

    def __init__(
        self,
        dtype: np.dtype[np.void],
        folder: Path,
        *,
        rng: Randomness,
        memory: int = MEMORY,
        largest: int = LARGEST,
        buckets: int = BUCKETS,
    ) -> None:
        self._dtype, self._folder, self._rng = dtype, folder, rng
        self._memory, self._largest = memory, largest
        self._buckets = Buckets[Packed](folder, dtype=dtype, count=buckets, memory=memory)
        self._sizes = np.zeros(buckets, dtype=np.int64)

    @property
    def size(self) -> int:
        """Reports taken so far."""
        return int(self._sizes.sum())

    def add(self, reports: Packed) -> None:
        """Take more reports, shape (n,)."""
        buckets = self._rng.integers(self._sizes.size, reports.size).astype(np.uint8)  # sorted fast
        grouped = reports[np.argsort(buckets, kind="stable")]
        sizes = np.bincount(buckets, minlength=self._sizes.size)
        ends = np.cumsum(sizes)
        for bucket in np.flatnonzero(sizes).tolist():
            self._buckets.add(bucket, grouped[ends[bucket] - sizes[bucket] : ends[bucket]])
        self._sizes += sizes
        self._buckets.make_room()

    def blocks(self) -> Iterator[Packed]:
        """Yield all reports in a uniformly random order, some at a time."""
        for bucket, size in enumerate(self._sizes):
            if size > self._largest:
                yield from self._nested(bucket)
            elif size:
                whole = np.concatenate(list(self._buckets.pieces(bucket)))
                yield whole[self._rng.permutation(whole.size)]

    def _nested(self, bucket: int) -> Iterator[Packed]:
        folder = self._folder / f"{bucket:03}"
        folder.mkdir(mode=0o700)
        inner = ExternalShuffle(
            self._dtype, folder, rng=self._rng, memory=self._memory, largest=self._largest, buckets=self._sizes.size
        )
        for piece in self._buckets.pieces(bucket):
            inner.add(piece)
        yield from inner.blocks()
        folder.rmdir()
