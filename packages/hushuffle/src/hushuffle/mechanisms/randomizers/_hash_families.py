"""Families of public hash functions {0..k-1} -> {0..g-1} whose collision probability is known exactly.

A hash function is stored as a row of integers. A family draws hash functions and applies them. A (hash, bucket) pair
supports a value if the hash sends the value to the bucket; the family counts the supporting pairs of every value.

Source: docs/theory/estimation.md, Theorems 3 and 4.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle._checks import Flags, Integers
from hushuffle.randomness import Randomness

_STEP: Final = 1 << 20
"""Smallest number of preimages that one step computes."""


class HashFamily(ABC):
    """A family of hash functions from k values to g buckets; `draw` draws each function with equal probability."""

    k: int
    g: int
    prime: int | None = None
    """If not None, every function permutes the values below this prime, the buckets being the results mod g."""

    @property
    @abstractmethod
    def limits(self) -> tuple[int, ...]:
        """Exclusive upper limits of the integers that describe a hash function, length `words`."""

    @property
    @abstractmethod
    def collision(self) -> Fraction:
        """The probability that two different values share a bucket; it is the same for every pair of values."""

    @property
    @abstractmethod
    def triples(self) -> tuple[Fraction, Fraction, Fraction]:
        """The probability that the values 0, 1 and 2 share a bucket, and bounds on that of any three values."""

    @abstractmethod
    def draw(self, size: int, rng: Randomness) -> Integers:
        """Draw `size` independent hash functions, shape (size, words)."""

    @abstractmethod
    def buckets(self, hashes: Integers, values: Integers) -> Integers:
        """Return the bucket of value i under hash function i, shape (n,)."""

    def drawn(self, hashes: Integers) -> Flags:
        """Return whether each row is a hash function that `draw` can give, shape (n,); other rows are forged."""
        return np.ones(hashes.shape[0], dtype=np.bool_)

    @abstractmethod
    def supporters(self, hashes: Integers, buckets: Integers) -> Integers:
        """Count, for each value, the pairs (hash i, bucket i) whose hash sends it to the bucket, shape (k,)."""

    @abstractmethod
    def every(self) -> Iterator[tuple[int, ...]]:
        """Yield every hash function of the family as a tuple of integers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of hash functions in the family."""


@dataclass(frozen=True, kw_only=True)
class BinaryHashes(HashFamily):
    """h(x) = M x over GF(2), row i of M being bits i, i+1, ... of the seed; g a power of two.

    Shifts of a vector other than 0 are independent, so M x is uniform for every x other than 0, and two values
    share a bucket with probability 1/g exactly. Three values share one with probability 1/g**2 to 1/(2 g)
    (docs/theory/pool.md, Corollary 6).
    """

    k: int
    g: int

    @property
    def places(self) -> int:
        return (self.k - 1).bit_length()

    @property
    def bits(self) -> int:
        return self.g.bit_length() - 1

    @property
    def limits(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def size(self) -> int:
        return 1 << (self.places + self.bits - 1)

    @property
    def collision(self) -> Fraction:
        return Fraction(1, self.g)

    @property
    def triples(self) -> tuple[Fraction, Fraction, Fraction]:
        most = Fraction(1, 2 * self.g)
        return most, Fraction(1, self.g**2), most

    def draw(self, size: int, rng: Randomness) -> Integers:
        return rng.integers(self.size, size)[:, None]

    def every(self) -> Iterator[tuple[int, ...]]:
        return ((seed,) for seed in range(self.size))

    def buckets(self, hashes: Integers, values: Integers) -> Integers:
        result = np.zeros_like(values)
        for bit in range(self.bits):
            result |= (np.bitwise_count((hashes[:, 0] >> bit) & values) & 1).astype(np.int64) << bit
        return result

    def supporters(self, hashes: Integers, buckets: Integers) -> Integers:
        """Count by one Walsh-Hadamard transform: 1[h(x) = y] = (1/g) sum over s of (-1)**(s.y) (-1)**((M's).x)."""
        cells = 1 << self.places
        sketch = np.zeros(cells, dtype=np.int64)
        sketch[0] = buckets.size
        place, sign = np.zeros_like(buckets), np.zeros_like(buckets)
        # Few reports and a large table: several steps are counted in one pass over the table.
        together = min(self.g - 1, max(1, 2 * cells // max(buckets.size, 1)))
        signs = np.empty((together, buckets.size), dtype=np.int64)
        for step in range(1, self.g):
            bit = (step & -step).bit_length() - 1  # s runs through a Gray code: one bit changes at a time
            place ^= (hashes[:, 0] >> bit) & (cells - 1)
            sign ^= (buckets >> bit) & 1
            row = (step - 1) % together
            signs[row] = 2 * place + sign
            if row == together - 1 or step == self.g - 1:
                signed = np.bincount(signs[: row + 1].ravel(), minlength=2 * cells)
                sketch += signed[::2] - signed[1::2]
        return walsh_hadamard(sketch)[: self.k] // self.g


@dataclass(frozen=True, kw_only=True)
class AffineHashes(HashFamily):
    """h(x) = ((u x + v) mod P) mod g, P the smallest prime >= k, u from 1, v from 0 to P - 1.

    (u x + v, u x' + v) mod P is uniform over ordered pairs of different residues, so two values share
    a bucket with the probability that two different residues do (three values: docs/theory/pool.md, Corollary 6).
    """

    k: int
    g: int
    prime: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prime", next_prime(self.k))

    @property
    def limits(self) -> tuple[int, ...]:
        return self.prime, self.prime

    @property
    def size(self) -> int:
        return self.prime * (self.prime - 1)

    @property
    def collision(self) -> Fraction:
        each, larger = divmod(self.prime, self.g)
        pairs = larger * (each + 1) * each + (self.g - larger) * each * (each - 1)
        return Fraction(pairs, self.size)

    @property
    def triples(self) -> tuple[Fraction, Fraction, Fraction]:
        pair, prime, g = self.collision, self.prime, self.g
        least = max(Fraction(0), (3 * pair - 1) / 2)
        if g == 2:  # of three values, two share a bucket
            return least, least, least
        steps = (prime - 1) // (2 * g)
        first = Fraction(2 * steps * (prime - g * (steps + 1)), self.size)
        # The lattice has short vectors on one line, or on several; then the shortest has length g + 1 to sqrt(4 P/3).
        lengths = (g + 1, math.isqrt(4 * prime // 3) + 1) if 3 * (g + 1) ** 2 <= 4 * prime else ()
        sums = [Fraction(prime, g * g) + Fraction(prime, g * length) + Fraction(length, g) for length in lengths]
        return first, least, min(pair, max([Fraction(prime, 2 * g), *sums]) / (prime - 1))

    def draw(self, size: int, rng: Randomness) -> Integers:
        return np.stack([1 + rng.integers(self.prime - 1, size), rng.integers(self.prime, size)], axis=1)

    def drawn(self, hashes: Integers) -> Flags:
        return hashes[:, 0] > 0

    def every(self) -> Iterator[tuple[int, ...]]:
        return ((u, v) for u in range(1, self.prime) for v in range(self.prime))

    def buckets(self, hashes: Integers, values: Integers) -> Integers:
        return (hashes[:, 0] * values + hashes[:, 1]) % self.prime % self.g

    def supporters(self, hashes: Integers, buckets: Integers) -> Integers:
        """Count preimages of all buckets: u**-1 (y + i g - v) mod P for i with y + i g < P, if below k."""
        counts = np.zeros(self.k, dtype=np.int64)
        inverse, shift = self._inverses(hashes[:, 0]), hashes[:, 1]
        rounds = -(-self.prime // self.g)
        together = max(1, max(self.k, _STEP) // max(buckets.size, 1))
        for first in range(0, rounds, together):
            lifts = self.g * np.arange(first, min(first + together, rounds))[:, None]
            residues = buckets + lifts
            values = inverse * ((residues - shift) % self.prime) % self.prime
            counts += np.bincount(values[(residues < self.prime) & (values < self.k)], minlength=self.k)
        return counts

    def _inverses(self, factors: Integers) -> Integers:
        """Return the inverses factors**(P-2) mod P, shape (n,); from a table if that takes less work than powers."""
        table = self.prime < factors.size
        base = np.arange(self.prime, dtype=np.int64) if table else factors
        result = np.ones_like(base)
        for digit in f"{self.prime - 2:b}":
            result = result * result % self.prime
            if digit == "1":
                result = result * base % self.prime
        return result[factors] if table else result


def walsh_hadamard(values: Integers) -> Integers:
    """Return sum over j of values[j] (-1)**(j.x) for every x; the size is a power of two.

    >>> walsh_hadamard(np.array([1, 0, 0, 2])).tolist()
    [3, -1, -1, 3]
    """
    result = values.copy()
    half = 1
    while half < result.size:
        pairs = result.reshape(-1, 2, half)
        result = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return result


def next_prime(low: int) -> int:
    """Return the smallest prime >= low, low >= 2, by trial division.

    >>> next_prime(100_000)
    100003
    """
    candidate = low
    while not bool(np.all(candidate % np.arange(2, math.isqrt(candidate) + 1))):
        candidate += 1
    return candidate
