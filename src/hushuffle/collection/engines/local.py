"""The engine of one machine: blocks of values in, randomized reports out in an order that says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.collection.engines.external_shuffle import MEMORY, ExternalShuffle
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.mechanisms.shufflers import Reveals, Shuffler
from hushuffle.model.report_layout import Packed
from hushuffle.randomness import Randomness, secure

_DUMMIES: Final = 1 << 18
_RELEASED: Final = 1 << 18


class LocalCollection:
    """One collection: `add` blocks of records, then read `blocks` of shuffled reports, dummies among them.

    Args:
        kernel: what happens to a record; with a key, records need numbers.
        folder: a private, empty one for reports that do not fit into `memory` bytes.
        rng: of the shuffle, and of the reports without a key; `secure()` unless given.

    >>> import tempfile
    >>> from hushuffle import RandomizedResponse, Scrambler
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     engine = LocalCollection(Kernel(randomizer=RandomizedResponse(k=3, epsilon=1.0)), Path(folder))
    ...     engine.add(np.array([0, 2, 1, 1]))
    ...     sum(block.size for block in engine.blocks(Scrambler(dummies=2)))
    6
    """

    def __init__(self, kernel: Kernel, folder: Path, *, memory: int = MEMORY, rng: Randomness | None = None) -> None:
        self._kernel = kernel
        self._rng = secure() if rng is None else rng
        self._shuffle = ExternalShuffle(kernel.layout.dtype, folder, rng=self._rng, memory=memory)
        self.people = 0

    def add(self, values: npt.NDArray[np.int64], records: npt.NDArray[np.uint64] | None = None) -> None:
        """Randomize the codes of more people, shape (n,), and take their reports."""
        self._shuffle.add(self._kernel.reports(values, records=records, rng=self._rng))
        self.people += values.size

    def blocks(self, shuffler: Shuffler, dummy_key: bytes | None = None) -> Iterator[Packed]:
        """Yield everybody's report and the dummies of a shuffler in a uniformly random order; once.

        `dummy_key`: with a keyed kernel, a key of this batch alone, so that a repetition has the same dummies.
        """
        assert shuffler.reveals is Reveals.MULTISET
        dummies = shuffler.dummies
        if dummies and (self._kernel.key is None) != (dummy_key is None):
            _checks.reject("dummy_key", "given exactly when the kernel has a key", "<the other>")
        kernel = replace(self._kernel, key=dummy_key)
        for start in range(0, dummies, _DUMMIES):
            self._shuffle.add(kernel.dummies(min(_DUMMIES, dummies - start), start=start, rng=self._rng))
        yield from self._shuffle.blocks()


class OrderedCollection:
    """One collection whose reports leave near a public order; everybody's report is held in memory, packed.

    Besides the reports, a release takes about 50 bytes for each person.

    Args:
        kernel: what happens to a record; without a key.
        rng: of the shuffle and of the reports; `secure()` unless given.

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
        """Randomize the codes of more people, shape (n,), and keep their reports in this order."""
        self._held.append(self._kernel.reports(values, records=records, rng=self._rng))
        self.people += values.size

    def blocks(self, shuffler: Shuffler, dummy_key: bytes | None = None) -> Iterator[Packed]:
        """Yield everybody's report in the order that the shuffler draws, some at a time; once.

        It adds no dummies, so that there is no `dummy_key`.

        Raises:
            InvalidInputError: the shuffler is one of other people.
        """
        assert dummy_key is None
        assert not shuffler.dummies
        whole = np.concatenate(self._held)
        self._held = []
        released = shuffler.release(np.arange(whole.size), rng=self._rng)
        for start in range(0, released.size, _RELEASED):
            yield whole[released[start : start + _RELEASED]]
