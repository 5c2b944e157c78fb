"""Exit codes of the program, and the error for a wrong command line."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a run ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    MISSED = 3
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """Say it in plain words."""
        return {
            Exit.DONE: "done",
            Exit.FAILED: "failed while running: the data, the machine, the numerics",
            Exit.USAGE: "wrong command line or specification; nothing was done",
            Exit.MISSED: "done, but a target is not met (with --strict only)",
            Exit.INTERRUPTED: "interrupted by Ctrl-C; nothing is half written",
        }[self]


class UsageError(Exception):
    """The command line asks for something that cannot be done."""
