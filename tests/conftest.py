"""One profile for property tests: the same examples on every run, no clock. What keys are used for stays in a test."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("hushuffle", derandomize=True, deadline=None, database=None)
settings.load_profile("hushuffle")


@pytest.fixture(autouse=True)
def memory_of_keys(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test a memory of its own."""
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path_factory.mktemp("state")))
