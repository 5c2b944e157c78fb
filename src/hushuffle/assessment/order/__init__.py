"""Assesses shuffles whose order of release depends on public data (Mallows shuffles)."""
