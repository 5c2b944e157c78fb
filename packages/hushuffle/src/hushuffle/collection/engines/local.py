"""The engine of one machine: it takes blocks of values and returns randomized reports in uniformly random order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.files.buckets import Buckets
from hushuffle.files.secret_keys import derived
from hushuffle.mechanisms.shufflers import Reveals, Shuffler
from hushuffle.model.report_layout import Packed
from hushuffle.randomness import Randomness, keyed, secure

BUCKETS: Final = 256
"""Number of buckets over which reports are distributed before each bucket is shuffled."""

MEMORY: Final = 1 << 28
"""Bytes of reports that stay in memory before reports are written to disk."""

LARGEST: Final = 1 << 23
"""Number of reports that are shuffled in memory at once; each needs 24 additional bytes."""


class ExternalShuffle:
    """Takes reports in any order, and yields them once in a uniformly random order.

    Every report goes to one of `buckets` buckets, uniformly and independently. Then each bucket is shuffled uniformly,
    and the buckets are read one after the other. A bucket with more than `largest` reports is first divided again.
    Reports are written into the private `folder` only if they exceed `memory` bytes.

    All orders are equally likely. An order of the n reports results exactly if, for some sizes n_1 + ... + n_B = n of
    the buckets, the first n_1 reports of the order are those in the first bucket and so on (probability B**-n, whatever
    the order), and every bucket is left in that order (probability 1 / (n_1! ... n_B!)). The sum over the sizes is the
    same number for every order.

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
        return int(self._sizes.sum())

    def add(self, reports: Packed) -> None:
        buckets = self._rng.integers(self._sizes.size, reports.size).astype(np.uint8)  # this type is sorted fast
        grouped = reports[np.argsort(buckets, kind="stable")]
        sizes = np.bincount(buckets, minlength=self._sizes.size)
        ends = np.cumsum(sizes)
        for bucket in np.flatnonzero(sizes).tolist():
            self._buckets.add(bucket, grouped[ends[bucket] - sizes[bucket] : ends[bucket]])
        self._sizes += sizes
        self._buckets.make_room()

    def blocks(self) -> Iterator[Packed]:
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


_DUMMIES: Final = 1 << 18
_RELEASED: Final = 1 << 18


class LocalCollection:
    """A collection on this machine: `add` takes blocks of records, `blocks` yields shuffled reports and dummies.

    With a key in the kernel, records need numbers. `sampler` is the shuffler, if it keeps only a sample of the reports.

    >>> import tempfile
    >>> from hushuffle import RandomizedResponse, Scrambler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     engine = LocalCollection(Kernel(randomizer=RandomizedResponse(k=3, epsilon=1.0)), Path(folder))
    ...     engine.add(np.array([0, 2, 1, 1]))
    ...     sum(block.size for block in engine.blocks(Scrambler(dummies=2)))
    6
    """

    def __init__(
        self,
        kernel: Kernel,
        folder: Path,
        *,
        memory: int = MEMORY,
        rng: Randomness | None = None,
        sampler: Shuffler | None = None,
    ) -> None:
        self._kernel = kernel
        self._sampler = None if sampler is None or sampler.kept == 1 else sampler
        self._rng = secure() if rng is None else rng
        self._shuffle = ExternalShuffle(kernel.layout.dtype, folder, rng=self._rng, memory=memory)
        self.people = 0

    def add(self, values: npt.NDArray[np.int64], records: npt.NDArray[np.uint64] | None = None) -> None:
        reports = self._kernel.reports(values, records=records, rng=self._rng)
        self._shuffle.add(reports if self._sampler is None else self._kept(self._sampler, reports, records))
        self.people += values.size

    def _kept(self, sampler: Shuffler, reports: Packed, records: npt.NDArray[np.uint64] | None) -> Packed:
        """Return the sampled reports; with a key, a repeated batch samples the same records."""
        coins, key = self._rng, self._kernel.key
        if key is not None and records is not None:
            coins = keyed(key=derived(key, "sample 1"), records=records, round=self._kernel.round)
        return sampler.thinned(reports, rng=coins)

    def blocks(self, shuffler: Shuffler, dummy_key: bytes | None = None) -> Iterator[Packed]:
        """Can be called once. `dummy_key` is for this batch only, so that a repetition has the same dummies."""
        assert shuffler.reveals in (Reveals.MULTISET, Reveals.SUMS)
        dummies, placed = shuffler.dummies, shuffler.placed
        if dummies and (self._kernel.key is None) != (dummy_key is None):
            _checks.reject("dummy_key", "set if and only if the kernel has a key", "<the other>")
        kernel = replace(self._kernel, key=dummy_key)
        for start in range(0, dummies, _DUMMIES):
            count = min(_DUMMIES, dummies - start)
            self._shuffle.add(kernel.dummies(count, start=start, rng=self._rng, placed=placed))
        yield from self._shuffle.blocks()


class OrderedCollection:
    """A collection whose reports are released in an order near a public order; the kernel must have no key.

    A release takes the memory of all reports and about 50 bytes per person.

    >>> from hushuffle import MallowsShuffle, RandomizedResponse
    >>> engine = OrderedCollection(Kernel(randomizer=RandomizedResponse(k=3, epsilon=1.0)))
    >>> engine.add(np.array([0, 2, 1]))
    >>> sum(block.size for block in engine.blocks(MallowsShuffle(reference=[2, 0, 1], theta=0.1)))
    3
    """

    def __init__(self, kernel: Kernel, *, rng: Randomness | None = None) -> None:
        self._kernel = kernel
        self._rng = secure() if rng is None else rng
        self._held: list[Packed] = [np.empty(0, dtype=kernel.layout.dtype)]
        self.people = 0

    def add(self, values: npt.NDArray[np.int64], records: npt.NDArray[np.uint64] | None = None) -> None:
        self._held.append(self._kernel.reports(values, records=records, rng=self._rng))
        self.people += values.size

    def blocks(self, shuffler: Shuffler, dummy_key: bytes | None = None) -> Iterator[Packed]:
        """This method can be called once. The shuffler adds no dummies, so there is no `dummy_key`."""
        assert dummy_key is None
        assert not shuffler.dummies
        whole = np.concatenate(self._held)
        self._held = []
        released = shuffler.release(np.arange(whole.size), rng=self._rng)
        for start in range(0, released.size, _RELEASED):
            yield whole[released[start : start + _RELEASED]]
