"""Shuffled and flipped Bloom filters: central privacy, signal to noise."""
