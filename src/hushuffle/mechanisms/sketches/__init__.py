"""Encoders in front of a randomizer: identifiers to Bloom filters."""

from hushuffle.mechanisms.sketches.encoder import BloomEncoder
from hushuffle.mechanisms.sketches.filters import BloomFilter, align, logo_counts, per_bit

__all__ = ["BloomEncoder", "BloomFilter", "align", "logo_counts", "per_bit"]
