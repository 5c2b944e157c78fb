"""Encoders in front of a randomizer: identifiers to Bloom filters."""
