"""How a mechanism is written in a specification: its kind, its keys, and what is wrong with their values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hushuffle.errors import InvalidInputError, Problem

_REFUSED: Final = re.compile(r"`(\w+)` (must .*), got \1=(.*?)\.(?: (.*))?", re.DOTALL)

LARGEST_EPSILON: Final = 40.0
"""exp(-40) is 4e-18: nobody would ever lie, so that no noise is what is meant."""

SILENT: Final = "Reports would say nothing about the answers."


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One key: an epsilon (a number up to 40, or "inf"), a number or an integer; `limits` as ge, gt, le, lt.

    Or one of the words in `choices`, a matrix of probabilities, or the name of a file with one, which is read before
    anything is built: the matrix takes its place. `tried` are other numbers, below the number of categories, that are
    worth a try where the best mechanism is looked for.
    """

    type: Literal["epsilon", "number", "integer", "choice", "matrix", "file"]
    about: str
    limits: Mapping[str, float] = field(default_factory=dict)
    optional: bool = False
    choices: tuple[str, ...] = ()
    tried: tuple[int, ...] = ()

    def fits(self, value: Any) -> bool:
        """Return whether a value is of the right type and within the limits that hold whatever k is.

        A file does not fit: it has not been read.
        """
        if self.type in ("choice", "file"):
            return value in self.choices
        if self.type == "matrix":
            return isinstance(value, list | tuple) and all(map(_row, value))
        if self.type == "epsilon":
            return value in ("inf", math.inf) or (_number(value, float) and 0 < value <= LARGEST_EPSILON)
        if not _number(value, int if self.type == "integer" else float):
            return False
        low, high = self.limits.get("ge", -math.inf), self.limits.get("le", math.inf)
        inside: bool = low <= value <= high
        return inside and self.limits.get("gt", -math.inf) < value < self.limits.get("lt", math.inf)


@dataclass(frozen=True, kw_only=True)
class Table:
    """The table [randomizer] of one kind: `about` it, its keys, and two of them (`either`) of which one is given.

    `numbers`: it is for values in order, and says little about which one of them it was.
    """

    kind: str
    about: str
    settings: Mapping[str, Setting]
    either: tuple[str, str] | None = None
    example: str = "epsilon = 2.0"
    numbers: bool = False

    def broken(self, raw: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield what is wrong with the keys that are there."""
        if self.either is not None:
            given = [name for name in self.either if name in raw]
            if len(given) != 1:
                hint = "They say the same thing in two ways." if given else f"For example {self.example}."
                rule = f"must have either {self.either[0]} or {self.either[1]}"
                yield Problem(key="randomizer", rule=rule, value="both" if given else "neither", hint=hint)

    def given(self, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the settings in a table as it is read; None if one is missing or of another type."""
        found = {name: raw[name] for name in self.settings if raw.get(name) is not None}
        complete = all(setting.optional or name in found for name, setting in self.settings.items())
        fitting = all(self.settings[name].fits(value) for name, value in found.items())
        if not complete or not fitting or (self.either and sum(name in found for name in self.either) != 1):
            return None
        return {name: math.inf if value == "inf" else value for name, value in found.items()}


def refused(error: InvalidInputError, table: Table) -> Problem:
    """Return what a mechanism refuses as a problem of the key that it names."""
    found = _REFUSED.fullmatch(str(error))
    if found is not None and found[1] not in table.settings:  # how many values there are
        rule = f"must be another mechanism here: its {found[1]} {found[2]}"
        return Problem(key="randomizer", rule=rule, value=found[3], hint=found[4] or "")
    if found is None:
        return Problem(key="randomizer", rule="must be a mechanism that exists", value=table.kind, hint=str(error))
    return Problem(key=f"randomizer.{found[1]}", rule=found[2], value=found[3], hint=found[4] or "")


def _row(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_number(entry, float) and 0 <= entry <= 1 for entry in value)


def _number(value: Any, kind: type) -> bool:
    return isinstance(value, int | kind) and not isinstance(value, bool)
