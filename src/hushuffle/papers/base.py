"""A `Target`: one table or figure of a paper, and what recomputes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.model import Report

_NAME: Final = re.compile(
    r"(?P<paper>[a-z]+(\d{4})?)/(?P<what>figure|table)-(?P<number>\d+)(?P<suffix>[a-z]?(-[a-z0-9]+)*)"
)


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
    """A table or figure: `name` is PAPER/figure-N or PAPER/table-N, `data` the data sets that it needs.

    The name may have a suffix: jurado2023/figure-3a, jurado2023/figure-3-knowledge. `seconds` is about how long it
    takes on two cores.

    Raises:
        InvalidInputError: a name of another form.
    """

    name: str
    title: str
    build: Callable[[Request], Report]
    data: tuple[str, ...] = ()
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            _checks.reject("name", "PAPER/figure-N or PAPER/table-N, with a suffix or without", self.name)

    @property
    def paper(self) -> str:
        """The paper's name: author and year, or title."""
        return self.name.partition("/")[0]

    @property
    def order(self) -> tuple[str, str, int, str]:
        """What targets are sorted by: figure-2 before figure-10."""
        match = _NAME.fullmatch(self.name)
        assert match is not None
        return match["paper"], match["what"], int(match["number"]), match["suffix"]
