"""How long work tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Told what is being done, in words, and the share of all work that is done, about: from 0 to 1."""


def silent(_stage: str, _share: float) -> None:
    """Tell nobody."""
