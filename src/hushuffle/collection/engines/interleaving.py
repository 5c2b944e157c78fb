"""Two sequences into one, so that every way to interleave them is equally likely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle.model.report_layout import Packed
from hushuffle.randomness import Randomness

_BLOCK: Final = 1 << 18  # items of the longer one at a time

Source: TypeAlias = tuple[int, Callable[[int, int], Packed]]
"""How many items there are, and how to get the next `count` of them from number `start` on."""


def interleaved(first: Source, second: Source, *, rng: Randomness) -> Iterator[Packed]:
    """Yield the items of both sources, each in its order, so that every way to interleave them is equally likely.

    If the items of one are in a uniformly random order and those of the other are independent of each other and alike,
    so are all in the end. Memory: 8 bytes for each item of the smaller source.

    >>> from hushuffle import reproducible
    >>> def zeros(count: int, start: int) -> Packed:
    ...     return np.zeros(count, dtype=[("report", "u1")])
    >>> sum(block.size for block in interleaved((5, zeros), (7, zeros), rng=reproducible(1)))
    12
    """
    (few, some), (many, others) = sorted((first, second), key=lambda source: source[0])
    # Item i of the few comes after so many of the many.
    before = _subset(few + many, few, rng) - np.arange(few)
    used = 0
    for start in range(0, many, _BLOCK):
        block = others(min(_BLOCK, many - start), start)
        stop = int(np.searchsorted(before, start + block.size))
        yield np.insert(block, before[used:stop] - start, some(stop - used, used))
        used = stop
    if used < few:
        yield some(few - used, used)


def _subset(size: int, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
    """Return `count` distinct integers from 0 to size - 1, ascending; all sets are equally likely (by symmetry)."""
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < count:
        chosen = np.union1d(chosen, rng.integers(size, count - chosen.size))
    return chosen
