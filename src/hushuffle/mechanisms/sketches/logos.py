"""Logos: the columns of several publishers' filters read as integers, and transforms over all 2**k of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.sketches.filters import BloomFilter, same_design
from hushuffle.model import Histogram

MOST_COUNTED: Final = 20
_MOST_ALIGNED: Final = 62


def align(filters: Sequence[BloomFilter]) -> npt.NDArray[np.int64]:
    """Return the logo of each column, shape (m,): bit b of logo i is bit i of filter b.

    The logos of filters that are not flipped are the values of a protocol with `BitFlipping(width=k)`, n = m;
    those of flipped filters are reports.

    Raises:
        InvalidInputError: no filter, more than 62, different designs, or flipped in different ways.

    >>> from hushuffle.mechanisms.sketches import BloomEncoder
    >>> encoder = BloomEncoder(bits=1000, key=bytes(32))  # a key for this example only
    >>> first, second = encoder.encode(["ann", "bob"]), encoder.encode(["bob"])
    >>> sorted(set(align([first, second]).tolist()))
    [0, 1, 3]
    """
    if not 1 <= len(filters) <= _MOST_ALIGNED:
        _checks.reject("filters", f"1 to {_MOST_ALIGNED} filters", f"<{len(filters)} filters>")
    first = filters[0]
    logos = np.zeros(first.bits, dtype=np.int64)
    for bit, each in enumerate(filters):
        same_design(first, each)
        if each.threshold != first.threshold:
            _checks.reject("filters", "all flipped with the same probability", [repr(first), repr(each)])
        logos |= each.columns().astype(np.int64) << bit
    return logos


def logo_counts(filters: Sequence[BloomFilter]) -> Histogram:
    """Return how many columns show each logo, shape (2**k,), k <= 20: all that shuffling the columns leaves.

    Raises:
        InvalidInputError: as `align`; more than 20 filters; or filters not flipped.
    """
    if len(filters) > MOST_COUNTED:
        hint = "Align them, and estimate for some of the publishers at a time."
        _checks.reject("filters", f"at most {MOST_COUNTED} filters", f"<{len(filters)} filters>", hint)
    logos = align(filters)
    if not filters[0].is_flipped:
        _checks.reject("filters", "flipped", "<filters not flipped>", "Flip each filter before its bits are released.")
    return Histogram(counts=np.bincount(logos, minlength=1 << len(filters)))


def per_bit(matrix: npt.ArrayLike, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return (M x M x ... x M) v, the k-fold Kronecker power of a 2x2 matrix times v, in O(k 2**k).

    `values` has shape (2**k,), or (2**k, c) for c vectors side by side.

    >>> per_bit([[1, 1], [1, -1]], np.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    (a, b), (c, d) = np.asarray(matrix, dtype=np.float64)
    result, k = values, values.shape[0].bit_length() - 1
    for bit in range(k):
        pairs = result.reshape(1 << (k - 1 - bit), 2, -1)
        low, high = pairs[:, 0], pairs[:, 1]
        result = np.stack([a * low + b * high, c * low + d * high], axis=1)
    return result.reshape(values.shape)
