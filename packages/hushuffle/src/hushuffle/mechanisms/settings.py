"""The keys of each mechanism in a specification, and the checks of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from hushuffle.errors import InvalidInputError, Problem


class Best(int):
    """Stands for a number that the specification omits; the mechanism then computes the best number."""


BEST: Final = Best()

LARGEST_EPSILON: Final = 40.0
"""Largest finite epsilon: exp(-40) is 4e-18, so reports are practically always truthful; use "inf" for no noise."""

SILENT: Final = "Reports would not depend on the answers."


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A key of a mechanism or shuffler in a specification: an epsilon (up to 40, or "inf"), a number or an integer.

    `limits` has bounds ge, gt, le or lt. The value may also be a word from `choices`, a matrix of probabilities, or the
    name of a file with a matrix, which replaces the name before the mechanism is built. `tried`: further numbers, below
    the number of categories, that the search for the best mechanism tries. Further types are the word `true`, a number
    of dummies with or without its distribution, and a distribution of dummies that may have no largest number.
    """

    type: Literal["epsilon", "number", "integer", "choice", "matrix", "file", "true", "dummies", "endless dummies"]
    about: str
    limits: Mapping[str, float] = field(default_factory=dict)
    optional: bool = False
    default: float | None = None
    choices: tuple[str, ...] = ()
    tried: tuple[int, ...] = ()

    def fits(self, value: Any) -> bool:
        """Return whether type and limits (without those that depend on k) fit; an unread file's name does not fit."""
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
class SettingsTable:
    """The table of a mechanism, [randomizer], or of a shuffler, [shuffler], in a specification.

    `about` describes it, and `either` has two alternative keys. `numbers`: the mechanism is for ordered values and
    distinguishes near values less than distant values. `messages`: the shuffler, or its clients, add messages that
    depend on no value. `calibrated`: what `hushuffle calibrate` chooses. `trusted_with`: what the shuffler's operator
    is trusted with, in addition to hiding who sent what.
    """

    kind: str
    about: str
    settings: Mapping[str, Setting]
    either: tuple[str, str] | None = None
    example: str = "epsilon = 2.0"
    numbers: bool = False
    messages: bool = False
    calibrated: Literal["noise", "messages", "nothing"] = "noise"
    trusted_with: str = ""

    def broken(self, raw: Mapping[str, Any], section: str = "randomizer") -> Iterator[Problem]:
        """Yield the problem of a table of `section` that has both or none of two alternative keys."""
        if self.either is not None:
            given = [name for name in self.either if name in raw]
            if len(given) != 1:
                hint = "Both describe the same setting." if given else f"For example {self.example}."
                rule = f"must have either {self.either[0]} or {self.either[1]}"
                yield Problem(key=section, rule=rule, value="both" if given else "neither", hint=hint)

    def given(self, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        present = {name: raw[name] for name in self.settings if raw.get(name) is not None}
        complete = all(setting.optional or name in present for name, setting in self.settings.items())
        fitting = all(self.settings[name].fits(value) for name, value in present.items())
        if not complete or not fitting or (self.either and sum(name in present for name in self.either) != 1):
            return None
        return {name: math.inf if value == "inf" else value for name, value in present.items()}


def refused(error: InvalidInputError, table: SettingsTable) -> Problem:
    """Convert an error that a mechanism raises into a problem of the key that the error names."""
    problem = error.problem
    if problem.key in table.settings:
        return replace(problem, key=f"randomizer.{problem.key}")
    rule = f"must be a mechanism that fits these data: its {problem.key} {problem.rule}"  # how many values there are
    return replace(problem, key="randomizer", rule=rule)


def _row(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_number(entry, float) and 0 <= entry <= 1 for entry in value)


def _number(value: Any, kind: type) -> bool:
    return isinstance(value, int | kind) and not isinstance(value, bool)
