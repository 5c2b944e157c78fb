"""The published test vectors of the standards that phones speak, read from their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "vectors"


def published(name: str) -> dict[str, Any]:
    """Return the vectors in a file; `source` says which standard they stand in."""
    read: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return read


def drawing(*parts: bytes) -> Any:
    """Return a source of randomness that gives these bytes, one after the other."""
    left = list(parts)

    def draw(size: int) -> bytes:
        part = left.pop(0)
        assert len(part) == size
        return part

    return draw
