"""Local hashing written down: every hash, every report, every assignment of values to people."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

Exact = list[list[Fraction]]


def binary_hashes(k: int, g: int) -> list[tuple[int, ...]]:
    """All hashes to g = 2**b buckets: bit i of the bucket is the parity of x & (seed >> i)."""
    bits, places = g.bit_length() - 1, (k - 1).bit_length()
    found = []
    for seed in range(2 ** (places + bits - 1)):
        rows = [[(seed >> (i + place)) % 2 for place in range(places)] for i in range(bits)]
        found.append(
            tuple(
                sum(2**i * (sum(r * ((x >> p) % 2) for p, r in enumerate(row)) % 2) for i, row in enumerate(rows))
                for x in range(k)
            )
        )
    return found


def affine_hashes(k: int, g: int) -> list[tuple[int, ...]]:
    """All hashes x -> ((u x + v) mod P) mod g, P the first prime from k on."""
    prime = next(p for p in itertools.count(k) if all(p % d for d in range(2, p)))
    return [tuple((u * x + v) % prime % g for x in range(k)) for u in range(1, prime) for v in range(prime)]


def published_hash_channel(hashes: Sequence[tuple[int, ...]], g: int, truth: Fraction, lie: Fraction) -> Exact:
    """Q((h, y) | x): the hash is published beside the randomized bucket."""
    return [
        [(truth if h[x] == y else lie) / len(hashes) for h in hashes for y in range(g)] for x in range(len(hashes[0]))
    ]


def best_success_with_prior(channel: Sequence[Sequence[Fraction]], prior: Sequence[Fraction]) -> Fraction:
    """The best chance of naming the person over every assignment of one value to each person."""
    best = Fraction(0)
    for held in itertools.product(range(len(channel)), repeat=len(prior)):
        success = Fraction(0)
        for y in range(len(channel[0])):
            success += max(p * channel[x][y] for p, x in zip(prior, held, strict=True))
        best = max(best, success)
    return best
