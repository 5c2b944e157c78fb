"""What other installed packages add to hushuffle, found through their entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Final

from hushuffle.errors import MissingDependencyError

COMMANDS: Final = "hushuffle.commands"
"""Group of commands: each entry point is a command, or a group of commands, of cyclopts."""
AUDITS: Final = "hushuffle.audits"
"""Group of audits of files, by the table that only such a file has; called with the file and options of `audit`."""
MECHANISMS: Final = "hushuffle.mechanisms"
"""Group of modules that define randomizers or shufflers."""

PACKAGES: Final = {"node": "hushuffle-network", "plan": "hushuffle-network", "query": "hushuffle-network"} | {
    "reproduce": "hushuffle-papers"
}
"""Package of each extension that the project itself publishes."""


def extensions(group: str) -> dict[str, Any]:
    """Return the loaded extensions of a group by name."""
    return {point.name: point.load() for point in entry_points(group=group)}


def extension(group: str, name: str) -> Any:
    """Return one extension.

    Raises:
        MissingDependencyError: no installed package adds it.
    """
    for point in entry_points(group=group, name=name):
        return point.load()
    package = PACKAGES[name]
    message = f"`{name}` is in the package {package}. Install it with: pip install {package}"
    raise MissingDependencyError(message)
