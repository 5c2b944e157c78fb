"""The keys of kinds of answers in [population] and [[columns]], declared by the classes in `hushuffle.answers`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, create_model

from hushuffle import answers
from hushuffle.answers.base import SHARES, Answer
from hushuffle.errors import InvalidInputError, Problem
from hushuffle.mechanisms.settings import SettingsTable
from hushuffle.model import NumberGrid
from hushuffle.specification._base import Section, declared_in

_OF_CATEGORIES: Final = ("otherwise", "trim", "casefold", "allow_categories_from_data")
_TYPES: Final[dict[str, Any]] = {"number": float, "integer": int}

ANSWERS: Final[dict[str, type[Answer]]] = dict(
    sorted((keys.kind, kind) for kind in declared_in(answers, Answer) if (keys := kind.keys) is not None)
)
"""The class of each kind of answer with keys, by its `kind`."""

_TABLES: Final[tuple[SettingsTable, ...]] = tuple(kind.keys for kind in ANSWERS.values() if kind.keys is not None)

ANSWER_KEYS: Final = ("kind", *dict.fromkeys(key for table in _TABLES for key in table.settings))
"""All keys of kinds of answers."""


class _Keys(Section):
    kind_of_deployment: ClassVar[str] = "column"
    kind: str | None = None

    def explored(self) -> None:
        """Raise an error if `explore` cannot vary these people."""

    @property
    def answer(self) -> Answer:
        """The kind of the answers."""
        kind = ANSWERS.get(self.kind or "")
        if kind is None or kind.keys is None:
            return SHARES
        return kind.from_settings({name: getattr(self, name) for name in kind.keys.settings})

    @property
    def grid(self) -> NumberGrid | None:
        """The levels to which numbers are rounded; None where answers are categories."""
        return self.answer.grid


_FIELDS: Final[dict[str, Any]] = {
    "kind": (Literal[tuple(ANSWERS)] | None, Field(default=None, description=" ".join(each.about for each in _TABLES)))
}
for _name, _setting in (pair for table in _TABLES for pair in table.settings.items()):
    _limits: dict[str, Any] = dict(_setting.limits)
    _type = Annotated[_TYPES[_setting.type], Field(**_limits)] if _limits else _TYPES[_setting.type]
    _FIELDS[_name] = (_type | None, Field(default=None, description=_setting.about))

if TYPE_CHECKING:
    AnswerKeys = _Keys
else:
    AnswerKeys = create_model("AnswerKeys", __base__=_Keys, **_FIELDS)


def answer_in(population: Mapping[str, Any]) -> Answer | None:
    """Return the kind of answer that a table describes; None if it has no such keys, or if they are invalid.

    >>> answer_in({"kind": "number", "low": 0, "high": 10, "levels": 3})
    Numbers(low=0, high=10, levels=3)
    """
    answer = _made(population)
    return answer if isinstance(answer, Answer) else None


def _made(population: Mapping[str, Any]) -> Answer | InvalidInputError | None:
    """Return the answer, the error, or None if a key is missing or has the wrong type (reported elsewhere)."""
    kind = ANSWERS.get(str(population.get("kind")))
    if kind is None or kind.keys is None:
        return None
    settings = {name: population[name] for name in kind.keys.settings if name in population}
    infinite = [value for value in settings.values() if isinstance(value, float) and not math.isfinite(value)]
    if not infinite and kind.keys.given(population) is None:
        return None
    try:
        return kind.from_settings(settings)
    except InvalidInputError as error:
        return error


def answer_problems(population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems with keys of kinds of answers; what is public must be in the file."""
    kind = population.get("kind")
    chosen = ANSWERS.get(str(kind))
    own = () if chosen is None or chosen.keys is None else tuple(chosen.keys.settings)
    for name, other in ANSWERS.items():
        assert other.keys is not None
        for key in (key for key in other.keys.settings if key in population and key not in own):
            hint = f"For example {other.keys.example}."
            rule, value = f'is allowed only with kind = "{name}"', f"{key} = {population[key]}"
            yield Problem(key=f"population.{key}", rule=rule, value=value, hint=hint)
    if chosen is None or chosen.keys is None:
        return
    for key in (key for key in own if key not in population):
        hint = chosen.hints.get(key, f"For example {chosen.keys.example}.")
        yield Problem(key=f"population.{key}", rule=f'must be given for kind = "{kind}"', value="nothing", hint=hint)
    answer = _made(population)
    if isinstance(answer, InvalidInputError):
        key = answer.problem.key
        yield replace(answer.problem, key=f"population.{key}", value=f"{population[key]}")
    for key in (key for key in _OF_CATEGORIES if population.get(key)):
        rule = f'must be left out for kind = "{kind}"'
        yield Problem(key=f"population.{key}", rule=rule, value=f"{population[key]}", hint="It is about categories.")
    missing = population.get("missing", "refuse")
    if isinstance(missing, str) and missing not in ("refuse", "drop"):
        rule, hint = f'must be "refuse" or "drop" for kind = "{kind}"', "There is no category for missing numbers."
        yield Problem(key="population.missing", rule=rule, value=f'"{missing}"', hint=hint)
