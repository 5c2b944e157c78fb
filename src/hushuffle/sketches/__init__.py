"""Encoders in front of a randomizer: identifiers to Bloom filters."""

from hushuffle.sketches.encoder import BloomEncoder
from hushuffle.sketches.filters import BloomFilter
from hushuffle.sketches.logos import align, logo_counts, per_bit

__all__ = ["BloomEncoder", "BloomFilter", "align", "logo_counts", "per_bit"]
