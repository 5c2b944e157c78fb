"""Compute a permutation from its inversion counts, in O(n log n).

Item i is inserted into the list of the items 0..i-1 so that `code[i]` of them follow it. The final list has
sum(code) inversions, and every permutation has exactly one code.

Two algorithms give the same list. The first merges blocks of insertions of doubling size with NumPy. The second, for
long lists if Numba is installed, walks a tree of free places once per item.

Source: D. E. Knuth, The Art of Computer Programming 3, section 5.1.1 (inversion tables).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_LONG: Final = 1 << 18
"""Minimum length of a list for the compiled algorithm (compilation takes about a second per process)."""

_WIDTH: Final = 64
"""Length of the blocks that are built by insertion."""

_CHUNK: Final = 1 << 17
"""Number of items that are inserted or merged at a time, so that their arrays stay in the processor's cache."""

_LEAF: Final = 64
"""Number of places per leaf in the compiled algorithm: a leaf's counts fit into one line of the processor's cache."""


def decode(code: Integers) -> Integers:
    """Return the list of items whose inversion counts are `code`, both shape (n,), 0 <= code[i] <= i.

    >>> decode(np.array([0, 1, 0, 2])).tolist()
    [1, 3, 0, 2]
    """
    compiled = accelerator() if code.size >= _LONG else None
    return by_merging(code) if compiled is None else by_walking(code, walk=compiled)


def by_merging(code: Integers) -> Integers:
    """Return the list of items with these inversion counts, computed with NumPy only.

    Each block of consecutive items is a list in its final relative order; the shortest are built by insertion. The gap
    of an item is the number of items that come before the block and precede the item. Neighbouring blocks are merged in
    pairs.

    >>> by_merging(np.array([0, 1, 0, 2])).tolist()
    [1, 3, 0, 2]
    """
    n, size = code.size, _WIDTH
    blocks = (_inserted(code[start : start + _CHUNK], start) for start in range(0, max(n, 1), _CHUNK))
    items, gaps = map(np.concatenate, zip(*blocks, strict=True))
    while size < n:
        full, step = n // (2 * size) * 2 * size, max(2 * size, _CHUNK)
        pieces = [(start, min(start + step, full), size) for start in range(0, full, step)]
        for start, stop, second in [*pieces, (full, n, n - full - size)]:
            # Full pairs of blocks come first, then the last pair, whose second block may be short or missing.
            if stop > start and second > 0:
                shape = (-1, size + second)
                _merge(items[start:stop].reshape(shape), gaps[start:stop].reshape(shape), size, start)
        size *= 2
    return items


def _inserted(code: Integers, start: int) -> tuple[Integers, Integers]:
    """Return the items from `start` on in the final order of each block of `_WIDTH` items, and their gaps."""
    n, width = code.size, _WIDTH
    items = np.arange(start, start - (-n // width) * width)
    # The places of a block's items, one in each row, in the list that ends with the block.
    places = np.append(items[:n] - code, items[n:]).astype(np.int32).reshape(-1, width).T.copy()
    for last in range(1, width):
        # An item that stands at the new item's place or after it moves by one place; the sign is -1 for it.
        sign = np.right_shift(places[last] - 1 - places[:last], 31)
        places[:last] -= sign
    keys = np.sort(places.T.astype(np.int64) * width + np.arange(width), axis=1)
    starts = items.reshape(-1, width)[:, :1]
    return (keys % width + starts).ravel()[:n], (keys // width - np.arange(width)).ravel()[:n]


def _merge(items: Integers, gaps: Integers, size: int, start: int) -> None:
    """Merge the first `size` columns of each row with the rest, in place; `start` items come before the first row.

    The j-th item of the first block stands at place gap + j before the second block comes. An item of the second
    block with gap h precedes the place h. So only the last items of the first block and the first of the second mix.
    """
    rows, width = items.shape
    before = start + size + width * np.arange(rows)[:, None]
    second = int(np.count_nonzero(gaps[:, size:] < before, axis=1).max())
    first = min(size, int((before - gaps[:, size : size + 1]).max()))
    gaps[:, size + second :] -= size
    mixed, width = slice(size - first, size + second), first + second
    keys = np.hstack([gaps[:, size : mixed.stop], gaps[:, mixed.start : size] + np.arange(mixed.start, size)])
    moved = np.hstack([items[:, size : mixed.stop], items[:, mixed.start : size]])
    order = np.argsort(keys, axis=1, kind="stable")  # merges sorted runs
    earlier = order >= second
    order += width * np.arange(rows)[:, None]
    items[:, mixed] = moved.take(order)
    gaps[:, mixed] = keys.take(order) - np.cumsum(earlier, axis=1) + earlier - mixed.start


@cache
def accelerator() -> Callable[..., None] | None:
    if importlib.util.find_spec("numba") is None:
        return None
    numba: Any = importlib.import_module("numba")
    compiled: Callable[..., None] = numba.njit(_walk)
    return compiled


def by_walking(code: Integers, *, walk: Callable[..., None] | None = None) -> Integers:
    """Return the same list as `decode`, from the last item to the first: item i takes free place number i - code[i].

    >>> by_walking(np.array([0, 1, 0, 2])).tolist()
    [1, 3, 0, 2]
    """
    n = code.size
    leaves = 1 << max(0, (-(-n // _LEAF) - 1).bit_length())
    result = np.empty(n, dtype=np.int64)
    # Two heaps hold the number of free places in each left half: of the leaves (root 1), and inside each leaf.
    tops = _left_counts(n, leaves, _LEAF)
    inner = np.tile(_left_counts(_LEAF, _LEAF, 1), leaves).astype(np.uint8)
    (walk or _walk)(code, result, tops, inner, leaves, _LEAF)
    return result


def _left_counts(n: int, leaves: int, width: int) -> npt.NDArray[np.int32]:
    """Return, for each node of a heap, how many of the places 0..n-1 lie in its left half; shape (leaves,)."""
    counts = np.zeros(leaves, dtype=np.int32)
    nodes, span = 1, leaves * width
    while nodes < leaves:
        counts[nodes : 2 * nodes] = np.clip(n - np.arange(nodes, dtype=np.int64) * span, 0, span // 2)
        nodes, span = 2 * nodes, span // 2
    return counts


def _walk(
    code: Integers,
    result: Integers,
    tops: npt.NDArray[np.int32],
    inner: npt.NDArray[np.uint8],
    leaves: int,
    width: int,
) -> None:
    """Put every item in its place and remove the place from the counts, without branches (compiled by Numba)."""
    for item in range(code.size - 1, -1, -1):
        rank, node = item - code[item], np.int64(1)
        while node < leaves:
            left = tops[node]
            right = np.int64(rank >= left)
            tops[node] = left - (1 - right)
            rank -= left * right
            node = 2 * node + right
        leaf, place = (node - leaves) * width, np.int64(1)
        while place < width:
            here = inner[leaf + place]
            right = np.int64(rank >= here)
            inner[leaf + place] = here - (1 - right)
            rank -= here * right
            place = 2 * place + right
        result[leaf + place - width] = item
