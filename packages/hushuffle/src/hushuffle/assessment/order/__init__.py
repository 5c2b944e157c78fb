"""Assesses Mallows shuffles, whose order of release depends on public data."""
