"""The options --engine and --master: where records or reports are worked on."""

from __future__ import annotations

from typing import Literal

from hushuffle.cli.exits import UsageError


def master_of(engine: Literal["local", "spark"], master: str | None) -> str | None:
    """Return the address of the Spark cluster that is asked for, or None.

    >>> master_of("spark", None)
    'local[*]'
    """
    if engine == "spark":
        return master or "local[*]"
    if master is not None:
        message = "--master goes with --engine spark."
        raise UsageError(message)
    return None
