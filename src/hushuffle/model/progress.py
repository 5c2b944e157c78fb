"""The type of functions to which long computations report their progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""A function that receives the current step in words, and the approximate share of the work done, from 0 to 1."""


def silent(_stage: str, _share: float) -> None:
    """Ignore the progress; this is the default function if the caller passes none."""
