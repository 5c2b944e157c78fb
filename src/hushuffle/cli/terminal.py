"""How wide the terminal is, and whether it shows colours."""

from __future__ import annotations

import os
import shutil
import sys

_WIDEST = 120
_NARROWEST = 40


def width() -> int:
    """Return how many columns a summary on standard output may take; 80 in a pipe."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return min(max(columns, _NARROWEST), _WIDEST)


def color() -> bool:
    """Return whether standard output shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
