"""Meehan, Chowdhury, Chaudhuri, Jha: Privacy implications of shuffling (2022)."""
