"""Recompute the technical document of the package buffling: privacy of shuffled and flipped Bloom filters."""
