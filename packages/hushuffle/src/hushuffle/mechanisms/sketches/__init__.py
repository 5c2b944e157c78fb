"""Encoders that turn identifiers into Bloom filters, before a randomizer is applied."""

from hushuffle.mechanisms.sketches.encoder import BloomEncoder
from hushuffle.mechanisms.sketches.filters import BloomFilter, align, logo_counts, per_bit

__all__ = ["BloomEncoder", "BloomFilter", "align", "logo_counts", "per_bit"]
