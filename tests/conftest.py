"""One profile for property tests: the same examples on every run, no clock."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("hushuffle", derandomize=True, deadline=None, database=None)
settings.load_profile("hushuffle")
