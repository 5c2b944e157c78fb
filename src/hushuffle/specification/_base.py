"""What all sections of a specification share: how strict they are, and the types of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hushuffle.errors import InvalidInputError, Problem, SpecificationError
from hushuffle.mechanisms.randomizers.settings import LARGEST_EPSILON
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.tables.conditions import parse_condition
from hushuffle.tables.labels import as_label


class Section(BaseModel):
    """One table of a specification: frozen, no unknown key, no guessing of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ShufflerSection(Section):
    """[shuffler]: what it builds, what its release says, and what its page has to say besides."""

    assumed: ClassVar[Mapping[str, str]] = {}
    """Sentences to add to assumptions, by their keys."""
    calibrated: ClassVar[Literal["noise", "messages", "nothing"]] = "noise"
    """What `hushuffle calibrate` chooses."""
    trusted_with: ClassVar[str] = ""
    """What whoever runs it is trusted with besides hiding who sent what."""

    def build(self) -> Shuffler:
        """Return the shuffler."""
        raise NotImplementedError

    @property
    def reveals(self) -> Reveals:
        """What the released order says."""
        return self.build().reveals


class File(Section):
    """The whole of one kind of file: its sections, and the rules that tie their values together.

    Raises:
        pydantic.ValidationError: a value or a combination of values breaks a rule; who reads a file raises a
            `SpecificationError` in plain words instead.
    """

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:  # noqa: ARG003
        """Yield every rule that ties values together and is broken; those of the wrong type are problems of their own.

        >>> list(File.problems({}))
        []
        """
        yield from ()

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        problems = list(self.problems(self.plain()))
        if problems:
            refuse("; ".join(str(problem) for problem in problems))
        return self

    def plain(self) -> dict[str, Any]:
        """Return the specification as tables, lists and values, every default spelled out; no statement is none."""
        tables = self.model_dump(exclude_none=True)
        statement = type(self).model_fields.get("statement")
        if statement is not None and self.statement == statement.default:  # type: ignore[attr-defined]
            del tables["statement"]
        return tables

    def effective(self) -> str:
        """Return TOML text with every default spelled out, from which the same specification is read."""
        return tomli_w.dumps(self.plain())


def either(first: str, second: str) -> dict[str, Any]:
    """Return JSON schema for: exactly one of the two keys is given."""
    return {"oneOf": [{"required": [first]}, {"required": [second]}]}


def refuse(rule: str, hint: str = "") -> NoReturn:
    """Raise what pydantic collects as a problem: the rule "must ...", and a hint."""
    template = "{rule}. {hint}" if hint else "{rule}"
    raise PydanticCustomError("rule", template, {"rule": rule, "hint": hint})  # noqa: EM101 - a type, no message


def unfit(key: str, rule: str, value: str, hint: str = "", *, where: str = "specification") -> NoReturn:
    """Raise `SpecificationError`: a specification that keeps all rules does not fit what is done with it."""
    raise SpecificationError(where, (Problem(key=key, rule=rule, value=value, hint=hint),)) from None


def _epsilon(value: Any) -> float:
    if value == "inf":
        return math.inf
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (0 < value <= LARGEST_EPSILON or value == math.inf):
        refuse(f'must be a number from 0 (excluded) to {LARGEST_EPSILON:g}, or "inf" for no noise')
    return float(value)


def _seed(value: Any) -> int | str:
    integer = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not integer and value != "secure":
        refuse('must be "secure" or an integer >= 0')
    seed: int | str = value
    return seed


def _text_of_label(value: Any) -> Any:
    return as_label(value) if isinstance(value, int) else value


def _printable(value: str) -> str:
    if not value.isprintable() or not value.strip():
        refuse("must be text that can be printed on one line")
    return value


def _condition(value: str) -> str:
    try:
        parse_condition(value)
    except InvalidInputError as error:
        refuse(*rule_and_hint(error, "condition", value))
    return value


def rule_and_hint(error: InvalidInputError, name: str, value: str) -> tuple[str, str]:
    """Return A and C of the message "`name` must be A, got name=value. C": key and value are shown anyway."""
    rule, _, hint = str(error).removeprefix(f"`{name}` ").partition(f", got {name}={value!r}.")
    return rule, hint.strip()


Probability = Annotated[float, Field(gt=0, lt=1)]
"""Strictly between 0 and 1."""

Epsilon = Annotated[
    float,
    PlainValidator(_epsilon),
    PlainSerializer(lambda value: "inf" if value == math.inf else value),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 40}, {"const": "inf"}]}),
]
"""Local privacy loss in nats; math.inf is no noise."""

Seed = Annotated[
    int | str,
    PlainValidator(_seed),
    WithJsonSchema({"anyOf": [{"const": "secure"}, {"type": "integer", "minimum": 0}]}),
]
"""Where randomness comes from."""

Label = Annotated[
    str,
    BeforeValidator(_text_of_label),
    AfterValidator(_printable),
    WithJsonSchema({"type": ["string", "integer", "boolean"]}),
]
"""The name of a category; integers and booleans are taken as text."""

Name = Annotated[str, AfterValidator(_printable)]
"""Text on one line."""

ConditionText = Annotated[str, AfterValidator(_condition)]
"""What makes a record belong to a category, such as "> 0" or ">= 18 and < 30"."""
