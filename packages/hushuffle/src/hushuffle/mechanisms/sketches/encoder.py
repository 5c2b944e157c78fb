"""`BloomEncoder` turns identifiers into Bloom filters under a secret key that all publishers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.sketches.filters import MOST_BITS, MOST_HASHES, BloomFilter
from hushuffle.randomness import derived

if TYPE_CHECKING:
    import polars as pl

Identifiers: TypeAlias = "pl.Series | npt.NDArray[np.generic] | Sequence[str] | Sequence[bytes] | Sequence[int]"

_BLOCK: Final = 1 << 16  # identifiers per step
_WORDS: Final = 3  # 32-bit words behind one position
_PER_DIGEST: Final = 64 // (4 * _WORDS)  # positions that one digest of 64 bytes gives
_LEAST_KEY: Final = 32


@dataclass(frozen=True, kw_only=True)
class BloomEncoder:
    """Encodes identifiers as a Bloom filter: h keyed hash functions send each identifier to positions among m bits.

    BLAKE2b computes the positions under a key derived from `key`, m and h. Without the key no adversary can test
    whether an identifier is in a filter, so the analyst must not have the key. Text is encoded as UTF-8 and an integer
    as its decimal digits, so that identifiers stored as text and as integers agree; other spellings stay different
    ("007" is not 7, "A" is not "a"). Each position is uniform up to 2**-66 in total variation, given that BLAKE2b is a
    pseudorandom function.

    Args:
        bits: m, 1 to 2**31 - 1.
        key: at least 32 secret bytes, the same for all publishers; `os.urandom(32)` returns a new key.
        hashes: number h of hash functions, 1 to 255.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: J.-P. Aumasson and others, BLAKE2 (2013).

    >>> import hushuffle as hs
    >>> encoder = hs.BloomEncoder(bits=1000, key=bytes(32))  # a key for this example only
    >>> encoder.encode(["ann@example.org", "bob@example.org"]).ones
    2
    """

    bits: int
    key: bytes = field(repr=False, compare=False)
    hashes: int = 1
    key_check: str = field(init=False)

    def __post_init__(self) -> None:
        _checks.set_fields(
            self,
            bits=_checks.integer("bits", self.bits, low=1, high=MOST_BITS),
            hashes=_checks.integer("hashes", self.hashes, low=1, high=MOST_HASHES),
        )
        if not isinstance(self.key, bytes) or len(self.key) < _LEAST_KEY:
            size = f"<{len(self.key)} bytes>" if isinstance(self.key, bytes) else f"<{type(self.key).__name__}>"
            _checks.reject("key", f"at least {_LEAST_KEY} secret bytes", size, "Make one with os.urandom(32).")
        object.__setattr__(self, "key_check", self._derive("key check", 8).hex())

    def encode(self, identifiers: Identifiers) -> BloomFilter:
        """Return the Bloom filter of `identifiers`, a series, an array or a list of text, bytes or integers.

        Raises:
            InvalidInputError: missing or empty identifiers, or another type.
        """
        return self.encode_chunks([identifiers])

    def encode_chunks(self, chunks: Iterable[Identifiers]) -> BloomFilter:
        """Return one Bloom filter for the identifiers of all chunks; only one chunk is in memory at a time."""
        columns = np.zeros(self.bits, dtype=np.bool_)
        for chunk in chunks:
            for positions in self._positions(_as_bytes(chunk)):
                columns[positions] = True
        return BloomFilter(bits=self.bits, hashes=self.hashes, key_check=self.key_check, packed=np.packbits(columns))

    def positions(self, identifiers: Identifiers) -> npt.NDArray[np.int64]:
        """Return the h positions of each identifier, shape (n, h), 0..m-1 (private)."""
        blocks = list(self._positions(_as_bytes(identifiers)))
        return np.concatenate([np.empty((0, self.hashes), dtype=np.int64), *blocks])

    def _positions(self, identifiers: pl.Series) -> Iterator[npt.NDArray[np.int64]]:
        secret = self._derive(f"positions, {self.bits} bits, {self.hashes} hashes", 32)
        firsts = range(0, self.hashes, _PER_DIGEST)
        counts = [min(_PER_DIGEST, self.hashes - first) for first in firsts]
        keyed = [
            blake2b(key=secret, digest_size=4 * _WORDS * count, salt=first.to_bytes(2, "little"))
            for first, count in zip(firsts, counts, strict=True)
        ]

        def digest(state: blake2b, identifier: bytes) -> bytes:
            fresh = state.copy()
            fresh.update(identifier)
            return fresh.digest()

        for start in range(0, len(identifiers), _BLOCK):
            block = identifiers[start : start + _BLOCK].to_list()
            parts = [
                np.frombuffer(b"".join([digest(state, each) for each in block]), dtype="<u4").reshape(-1, count, _WORDS)
                for state, count in zip(keyed, counts, strict=True)
            ]
            yield _scaled(np.concatenate(parts, axis=1), self.bits)

    def _derive(self, purpose: str, length: int) -> bytes:
        info = f"hushuffle bloom 1, {purpose}".encode()
        return derived(self.key, info, length)


def _scaled(words: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.int64]:
    """Return floor(W bits / 2**96) for the 96-bit numbers W = words[..., 0] + 2**32 words[..., 1] + ...

    Each position has probability 1/bits up to 2**-96, so positions are uniform up to bits 2**-97 <= 2**-66
    in total variation; for bits <= 2**24 up to 2**-73.
    """
    carry = np.zeros(words.shape[:-1], dtype=np.uint64)
    for place in range(_WORDS):
        carry = (words[..., place].astype(np.uint64) * np.uint64(bits) + carry) >> np.uint64(32)
    return carry.astype(np.int64)


def _as_bytes(identifiers: Identifiers) -> pl.Series:
    """Return the identifiers as a series of bytes; error messages never show an identifier."""
    import polars as pl  # noqa: PLC0415 - reading a specification needs no polars

    rule = "a series, array or list of text, bytes or integers"
    if isinstance(identifiers, str | bytes):
        _checks.reject("identifiers", rule, f"<one {type(identifiers).__name__}>")
    try:
        series = identifiers if isinstance(identifiers, pl.Series) else pl.Series(identifiers)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        series = None
    if series is None:
        _checks.reject("identifiers", rule, f"<{type(identifiers).__name__}>", "One type for all of them.")
    missing = series.null_count()
    if missing:
        _checks.reject("identifiers", "all present", f"<{missing} missing>", "Leave out records without identifier.")
    kind = series.dtype
    if kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum):
        series = series.cast(pl.String).cast(pl.Binary)
    elif kind == pl.Null:  # no identifier at all
        series = series.cast(pl.Binary)
    elif kind != pl.Binary:
        _checks.reject(
            "identifiers",
            rule,
            f"<dtype {kind.base_type().__name__}>",
            "Convert them to text in the same way for all publishers.",
        )
    empty = int((series.bin.size() == 0).sum())
    if empty:
        _checks.reject("identifiers", "not empty", f"<{empty} empty>", "They would count as one person.")
    return series
