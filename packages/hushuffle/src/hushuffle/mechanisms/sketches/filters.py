"""`BloomFilter` stores a publisher's filter in packed bits; `align` turns several filters into bit patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Histogram
from hushuffle.randomness import SCALE, Randomness, secure

MOST_BITS: Final = 2**31 - 1
MOST_HASHES: Final = 255
_CHECK_LENGTH: Final = 16


class FlipsBits(Protocol):
    """The interface that `BloomFilter.flip` needs; `BitFlipping` implements it."""

    @property
    def threshold(self) -> int:
        """The probability of a flip, times 2**64."""

    def flip_packed(self, packed: npt.NDArray[np.uint8], *, rng: Randomness) -> npt.NDArray[np.uint8]:
        """Return `packed` with every bit flipped independently with probability threshold / 2**64."""


class Design(TypedDict):
    """The parameters that all publishers must share, so that bit i has the same meaning in all their filters."""

    bits: int
    hashes: int
    key_check: str


@dataclass(frozen=True, kw_only=True, eq=False)
class BloomFilter:
    """A publisher's Bloom filter of m bits; bit i is set if a hash function sends one of its identifiers to i.

    `BloomEncoder.encode` returns such a filter. For two filters of the same design (m, hash functions, key), `|` gives
    the filter of the union of their identifiers. A flipped filter is a random release, for which `|` raises an error.

    Args:
        bits: m, 1 to 2**31 - 1.
        hashes: number h of hash functions, 1 to 255.
        key_check: 16 hexadecimal digits; equal for equal keys, and public.
        packed: the bits in bytes, shape (ceil(m/8),), most significant bit first; zeros fill the last byte.
        threshold: every bit has been flipped with probability threshold / 2**64; 0 for a filter not flipped.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: B. H. Bloom (1970).

    >>> import hushuffle as hs
    >>> small = hs.BloomFilter(bits=4, hashes=1, key_check="0" * 16, packed=np.array([0b10100000], dtype=np.uint8))
    >>> small.ones, small.is_flipped, small.columns().tolist()
    (2, False, [True, False, True, False])
    """

    bits: int
    hashes: int
    key_check: str
    packed: npt.NDArray[np.uint8]
    threshold: int = 0

    def __post_init__(self) -> None:
        bits = _checks.integer("bits", self.bits, low=1, high=MOST_BITS)
        _checks.integer("hashes", self.hashes, low=1, high=MOST_HASHES)
        _checks.integer("threshold", self.threshold, low=0, high=SCALE // 2)
        if len(self.key_check) != _CHECK_LENGTH or not set(self.key_check) <= set("0123456789abcdef"):
            _checks.reject("key_check", f"{_CHECK_LENGTH} hexadecimal digits", f"<{len(self.key_check)} characters>")
        packed = np.array(self.packed)
        if packed.dtype != np.uint8 or packed.shape != (-(-bits // 8),):
            _checks.reject("packed", f"{-(-bits // 8)} bytes, shape (ceil(bits/8),)", f"<{packed.dtype}{packed.shape}>")
        if packed[-1] & self._padding:
            _checks.reject("packed", "zero after the last bit", "<a bit set>")
        packed.flags.writeable = False
        object.__setattr__(self, "packed", packed)

    @property
    def _padding(self) -> int:
        """Mask of the padding bits in the last byte, which belong to no column."""
        return (1 << (-self.bits % 8)) - 1

    @property
    def design(self) -> Design:
        """The parameters that the filters of all publishers must share."""
        return Design(bits=self.bits, hashes=self.hashes, key_check=self.key_check)

    @property
    def is_flipped(self) -> bool:
        """Whether the bits of this filter have been flipped."""
        return self.threshold > 0

    @property
    def ones(self) -> int:
        """Number of set bits (private until the filter is flipped)."""
        return int(np.bitwise_count(self.packed).sum())

    def columns(self) -> npt.NDArray[np.bool_]:
        """Return the bits, shape (m,)."""
        return np.unpackbits(self.packed, count=self.bits).view(np.bool_)

    def __or__(self, other: BloomFilter) -> BloomFilter:
        same_design(self, other)
        if self.is_flipped or other.is_flipped:
            hint = "Join the filters first, and then flip the bits once."
            _checks.reject("other", "not flipped, as this filter is", "<a flipped filter>", hint)
        return replace(self, packed=self.packed | other.packed)

    def flip(self, *, randomizer: FlipsBits, rng: Randomness | None = None) -> BloomFilter:
        """Return the filter for release: each bit flipped with the randomizer's probability p.

        Flip a filter only once and keep the result: two flips of the same filter reveal more than one flip. `rng`
        defaults to `secure()`.

        Raises:
            InvalidInputError: the filter has been flipped already, or `rng` is keyed.
        """
        if self.is_flipped:
            _checks.reject("filter", "not flipped yet", "<a flipped filter>", "Release it without a second flip.")
        packed = randomizer.flip_packed(self.packed, rng=secure() if rng is None else rng)
        packed[-1] &= 0xFF ^ self._padding
        return replace(self, packed=packed, threshold=randomizer.threshold)

    def __repr__(self) -> str:
        state = f"each bit flipped with probability {self.threshold / SCALE:.4g}" if self.is_flipped else "not flipped"
        return f"BloomFilter(bits={self.bits}, hashes={self.hashes}, {state})"


def same_design(first: BloomFilter, other: BloomFilter) -> None:
    """Raise `InvalidInputError` unless the two filters have the same number of bits, hash functions and key."""
    if (first.bits, first.hashes) != (other.bits, other.hashes):
        expected, actual = (f"<{f.bits} bits, {f.hashes} hashes>" for f in (first, other))
        _checks.reject("filter", f"of the same design, {expected}", actual, "All publishers agree on one design.")
    if first.key_check != other.key_check:
        hint = "With different keys, the filters of the publishers do not match."
        _checks.reject("filter", "made with the same key", "<another key check>", hint)


MOST_COUNTED: Final = 20
_MOST_ALIGNED: Final = 62


def align(filters: Sequence[BloomFilter]) -> npt.NDArray[np.int64]:
    """Return the bit pattern of each column, shape (m,): bit b of bit pattern i is bit i of filter b.

    The bit patterns of filters that are not flipped are the values of a protocol with `BitFlipping(width=k)`, n = m;
    those of flipped filters are reports.

    Raises:
        InvalidInputError: there are no filters or more than 62; or designs or flip probabilities differ.

    >>> import hushuffle as hs
    >>> encoder = hs.BloomEncoder(bits=1000, key=bytes(32))  # a key for this example only
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
    """Return how many columns show each bit pattern, shape (2**k,), k <= 20; shuffled columns reveal no more.

    Raises:
        InvalidInputError: for the reasons of `align`, or there are more than 20 filters, or a filter is not flipped.
    """
    if len(filters) > MOST_COUNTED:
        hint = "Pass the filters of fewer publishers at a time."
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
