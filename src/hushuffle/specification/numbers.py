"""Answers that are numbers: their public bounds in the file, and the levels between the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from hushuffle.errors import InvalidInputError, Problem
from hushuffle.model import NumberGrid
from hushuffle.model.number_grid import LARGEST
from hushuffle.specification._base import Section

_GRID: Final = ("low", "high", "levels")
_PUBLIC: Final = "Choose the bounds before the collection: bounds taken from the answers reveal the extreme answers."
_OF_CATEGORIES: Final = ("otherwise", "trim", "casefold", "allow_categories_from_data")


class Numeric(Section):
    """Answers that are numbers between public bounds, with stochastic rounding to equally spaced levels."""

    kind: Literal["number"] | None = None
    """"number": answers are numbers from `low` to `high`; instead of categories."""
    low: float | None = None
    """With kind = "number": the smallest number, public; smaller answers are raised to it."""
    high: float | None = None
    """With kind = "number": the largest number, public; larger answers are lowered to it."""
    levels: Annotated[int, Field(ge=2, le=LARGEST)] | None = None
    """With kind = "number": number of equally spaced levels, to which answers are stochastically rounded."""

    @property
    def grid(self) -> NumberGrid | None:
        """The levels; None where answers are categories."""
        if self.low is None or self.high is None or self.levels is None:
            return None
        return NumberGrid(low=self.low, high=self.high, levels=self.levels)


def grid_of(population: Mapping[str, Any]) -> NumberGrid | None:
    """Return the levels that a table describes; None if the table is invalid.

    >>> grid_of({"low": 0, "high": 10, "levels": 3})
    NumberGrid(low=0.0, high=10.0, levels=3)
    """
    grid = _made(population)
    return grid if isinstance(grid, NumberGrid) else None


def _made(population: Mapping[str, Any]) -> NumberGrid | InvalidInputError | None:
    """Return the levels, the error, or None if a key is missing or has the wrong type (reported elsewhere)."""
    low, high, levels = (population.get(key) for key in _GRID)
    if type(low) not in (int, float) or type(high) not in (int, float) or type(levels) is not int:
        return None
    if not 2 <= levels <= LARGEST:
        return None
    try:
        return NumberGrid(low=low, high=high, levels=levels)  # type: ignore[arg-type]
    except InvalidInputError as error:
        return error


def number_problems(population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with keys of numbers; the bounds are public and must be in the file."""
    if population.get("kind") != "number":
        for key in (key for key in _GRID if key in population):
            rule = 'must go with kind = "number"'
            hint = 'For example kind = "number", low = 0, high = 100, levels = 21.'
            yield Problem(key=f"population.{key}", rule=rule, value=f"{population[key]}", hint=hint)
        return
    for key in (key for key in _GRID if key not in population):
        hint = "For example levels = 21." if key == "levels" else _PUBLIC
        yield Problem(key=f"population.{key}", rule='must be given for kind = "number"', value="nothing", hint=hint)
    grid = _made(population)
    if isinstance(grid, InvalidInputError):
        name = grid.problem.key
        yield replace(grid.problem, key=f"population.{name}", value=f"{population[name]}")
    for key in (key for key in _OF_CATEGORIES if population.get(key)):
        rule = 'must be left out for kind = "number"'
        yield Problem(key=f"population.{key}", rule=rule, value=f"{population[key]}", hint="It is about categories.")
    missing = population.get("missing", "refuse")
    if isinstance(missing, str) and missing not in ("refuse", "drop"):
        rule, hint = 'must be "refuse" or "drop" for kind = "number"', "There is no category for missing numbers."
        yield Problem(key="population.missing", rule=rule, value=f'"{missing}"', hint=hint)
