"""A `Target`: one table or figure of a paper, and what recomputes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hushuffle.errors import DataError
from hushuffle.model import Study


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a reproduction may use: the folder of data sets, a seed for what is simulated, who is told of progress."""

    data: Path | None = None
    seed: int = 1
    tell: Callable[[str, float], None] = lambda _what, _share: None

    def folder(self, name: str) -> Path:
        """Return the folder of the data set `name`.

        Raises:
            DataError: no folder of data sets was given, or it lacks this one.
        """
        hint = f"Give the folder that holds {name}/ with --data or in HUSHUFFLE_DATA."
        if self.data is None:
            message = f"this target needs the data set {name}. {hint}"
            raise DataError(message)
        folder = self.data / name
        if not folder.is_dir():
            message = f"{folder}: there is no such folder. {hint}"
            raise DataError(message)
        return folder


@dataclass(frozen=True, kw_only=True)
class Target:
    """A table or figure: `name` is SEED/figure-N or SEED/table-N, `data` the data sets that it needs.

    `seconds` is about how long it takes on two cores.
    """

    name: str
    title: str
    build: Callable[[Request], Study]
    data: tuple[str, ...] = ()
    seconds: float = 1.0
