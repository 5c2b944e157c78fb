"""Base classes of the sections of a specification, and the types of values."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar

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
from hushuffle.extensions import MECHANISMS, extensions
from hushuffle.mechanisms.settings import LARGEST_EPSILON, SettingsTable
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.tables.csv_form import UTF8, CsvForm, check_encoding, check_separator
from hushuffle.tables.labels import as_label, parse_condition

_Kind = TypeVar("_Kind")
_Value = TypeVar("_Value")


class Section(BaseModel):
    """One table of a specification: immutable, without unknown keys, and without conversion of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class WithoutFiles:
    """A population that names no file: no column identifies people, and no CSV file has a form."""

    person_known: ClassVar[bool] = True
    whose: ClassVar[None] = None
    files: ClassVar[None] = None

    @property
    def form(self) -> CsvForm | None:
        return None


class ShufflerSection(Section):
    """[shuffler]: builds the shuffler, and states what a release reveals and which assumptions are made."""

    kind: str
    mechanism: ClassVar[type[Shuffler]] = Shuffler

    @property
    def assumed(self) -> Mapping[str, str]:
        """Sentences to add to the assumptions, by the key of the assumption."""
        return {}

    @classmethod
    def declared(cls) -> SettingsTable:
        return cls.mechanism.table or SettingsTable(kind="", about="", settings={})

    def build(self) -> Shuffler:
        raise NotImplementedError

    @property
    def reveals(self) -> Reveals:
        return self.build().reveals


class File(Section):
    """A whole file, such as a specification: its sections, and the rules on combinations of values."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:  # noqa: ARG003
        """Yield every broken rule on combinations of values; wrong types are reported elsewhere.

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
        """Return the specification as tables, lists and values, with all defaults, but without an empty [statement]."""
        tables = self.model_dump(exclude_none=True)
        statement = type(self).model_fields.get("statement")
        if statement is not None and self.statement == statement.default:  # type: ignore[attr-defined]
            del tables["statement"]
        return tables

    @property
    def deployed(self) -> Self:
        """What a deployment is built from."""
        return self

    def effective(self) -> str:
        """Return the specification as TOML text with all defaults written out."""
        return tomli_w.dumps(self.plain())


def declared_in(package: Any, base: type[_Kind]) -> Iterator[type[_Kind]]:
    """Yield each subclass of `base` that a module of a package, or an extension, defines, after loading all of them."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    places = (package.__name__, *(module.__name__ for module in extensions(MECHANISMS).values()))
    waiting: list[type[_Kind]] = [base]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(places):
            yield kind


def table_in(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the table under a key; an empty table if the entry is missing or has another type."""
    entry = raw.get(key)
    return entry if isinstance(entry, dict) else {}


def tables_in(raw: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the tables in the list under a key, with an empty table in place of each entry of another type."""
    entry = raw.get(key)
    tables = entry if isinstance(entry, list | tuple) else ()
    return [table if isinstance(table, dict) else {} for table in tables]


def either(first: str, second: str) -> dict[str, Any]:
    """Return the JSON schema that requires exactly one of the two keys."""
    return {"oneOf": [{"required": [first]}, {"required": [second]}]}


def refuse(rule: str, hint: str = "") -> NoReturn:
    template = "{rule}. {hint}" if hint else "{rule}"
    raise PydanticCustomError("rule", template, {"rule": rule, "hint": hint})  # noqa: EM101 - a type, no message


def unfit(key: str, rule: str, value: str, hint: str = "", *, where: str = "specification") -> NoReturn:
    """Raise `SpecificationError` for a valid specification that cannot be used for the requested task."""
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


def _printable(value: str) -> str:
    if not value.isprintable() or not value.strip():
        refuse("must be text on one line, without control characters")
    return value


def checked(value: _Value, check: Callable[[_Value], object]) -> _Value:
    """Return the value; an `InvalidInputError` of `check` becomes a problem that pydantic collects."""
    try:
        check(value)
    except InvalidInputError as error:
        refuse(error.problem.rule, error.problem.hint)
    return value


Probability = Annotated[float, Field(gt=0, lt=1)]
"""Strictly between 0 and 1."""

Epsilon = Annotated[
    float,
    PlainValidator(_epsilon),
    PlainSerializer(lambda value: "inf" if value == math.inf else value),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 40}, {"const": "inf"}]}),
]
"""Local epsilon in nats; math.inf means no noise."""

Seed = Annotated[
    int | str,
    PlainValidator(_seed),
    WithJsonSchema({"anyOf": [{"const": "secure"}, {"type": "integer", "minimum": 0}]}),
]
"""Source of randomness: "secure", or a seed."""

Label = Annotated[
    str,
    BeforeValidator(lambda value: as_label(value) if isinstance(value, int) else value),
    AfterValidator(_printable),
    WithJsonSchema({"type": ["string", "integer", "boolean"]}),
]
"""The name of a category; integers and booleans are taken as text."""

Name = Annotated[str, AfterValidator(_printable)]
"""Text on one line."""

ConditionText = Annotated[str, AfterValidator(partial(checked, check=parse_condition))]
"""The condition for a record to belong to a category, such as "> 0" or ">= 18 and < 30"."""


Encoding: TypeAlias = Annotated[str, AfterValidator(partial(checked, check=check_encoding))]
Separator: TypeAlias = Annotated[str, AfterValidator(partial(checked, check=check_separator))]


class CsvKeys(Section):
    """Keys for the form of CSV files: encoding and separator."""

    encoding: Encoding | None = None
    """The encoding of CSV files, such as "windows-1252" or "latin-1"; utf-8 by default."""
    separator: Separator | None = None
    """Separator of the fields of CSV files; if left out, a comma, or a tab in .tsv files."""

    @property
    def form(self) -> CsvForm:
        return CsvForm(encoding=self.encoding or UTF8, separator=self.separator)
