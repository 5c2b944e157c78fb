"""A uniform shuffle of more reports than fit into memory: random buckets, each shuffled, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle.io.report_files import Packed
from hushuffle.randomness import Randomness

BUCKETS: Final = 256
"""Into how many parts the reports go before each is shuffled."""

MEMORY: Final = 1 << 28
"""Bytes of reports that are held before they are written to disk."""

LARGEST: Final = 1 << 23
"""Reports that are shuffled in memory at a time: 24 bytes each besides the reports."""

_READ: Final = 1 << 20


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
        self._memory, self._largest, self._buckets = memory, largest, buckets
        self._held: list[list[Packed]] = [[] for _ in range(buckets)]
        self._sizes = np.zeros(buckets, dtype=np.int64)
        self._bytes = 0
        self._spilled = False

    @property
    def size(self) -> int:
        """Reports taken so far."""
        return int(self._sizes.sum())

    def add(self, reports: Packed) -> None:
        """Take more reports, shape (n,)."""
        buckets = self._rng.integers(self._buckets, reports.size).astype(np.uint8)  # sorted fast
        grouped = reports[np.argsort(buckets, kind="stable")]
        sizes = np.bincount(buckets, minlength=self._buckets)
        ends = np.cumsum(sizes)
        for bucket in np.flatnonzero(sizes):
            self._held[bucket].append(grouped[ends[bucket] - sizes[bucket] : ends[bucket]])
        self._sizes += sizes
        self._bytes += reports.nbytes
        if self._bytes > self._memory:
            self._spill()

    def blocks(self) -> Iterator[Packed]:
        """Yield all reports in a uniformly random order, some at a time."""
        for bucket in range(self._buckets):
            if self._sizes[bucket] > self._largest:
                yield from self._nested(bucket)
            elif self._sizes[bucket]:
                whole = np.concatenate(list(self._pieces(bucket)))
                yield whole[self._rng.permutation(whole.size)]
            if self._spilled:
                self._path(bucket).unlink(missing_ok=True)

    def _nested(self, bucket: int) -> Iterator[Packed]:
        folder = self._folder / f"{bucket:03}"
        folder.mkdir(mode=0o700)
        inner = ExternalShuffle(
            self._dtype, folder, rng=self._rng, memory=self._memory, largest=self._largest, buckets=self._buckets
        )
        for piece in self._pieces(bucket):
            inner.add(piece)
        yield from inner.blocks()
        folder.rmdir()

    def _pieces(self, bucket: int) -> Iterator[Packed]:
        if self._spilled:
            with self._path(bucket).open("rb") as file:
                while (piece := np.fromfile(file, dtype=self._dtype, count=_READ)).size:
                    yield piece
        held, self._held[bucket] = self._held[bucket], []
        yield from held

    def _spill(self) -> None:
        for bucket, pieces in enumerate(self._held):
            with self._path(bucket).open("ab") as file:
                for piece in pieces:
                    file.write(piece.tobytes())
            self._held[bucket] = []
        self._bytes, self._spilled = 0, True

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{bucket:03}.reports"
