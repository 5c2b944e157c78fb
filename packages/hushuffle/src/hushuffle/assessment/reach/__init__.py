"""Assesses reach studies, which count the people in audiences with randomly flipped Bloom filters."""
