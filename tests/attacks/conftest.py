"""Audits draw the same on every run: an honest claim is accused in at most a stated share of them, not in none."""

from __future__ import annotations

import pytest

from hushuffle.randomness import reproducible


@pytest.fixture(autouse=True)
def same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test one reproducible source where it would get a secure one."""
    source = reproducible(1)
    for module in ("audit", "audit_study"):
        monkeypatch.setattr(f"hushuffle.attacks.{module}.secure", lambda: source)
