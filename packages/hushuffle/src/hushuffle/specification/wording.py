"""Pydantic's errors as problems in the terms of the file: key, rule, value, hint."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from typing import Any, Final, get_args

from hushuffle.errors import Problem
from hushuffle.specification._base import Section
from hushuffle.specification.kinds import DUMMY_LAWS, PLANNED, AnyAdversary, AnyRandomizer, AnyShuffler, EndlessDummies
from hushuffle.specification.order import Groups, OrderAttack
from hushuffle.specification.population import CountedPopulation, DataPopulation
from hushuffle.specification.reach import AudiencePopulation, PublisherPopulation
from hushuffle.specification.specification import Run, Specification, StatementSection, Targets, Vouched


def _members(kinds: Any) -> tuple[type[Section], ...]:
    union = get_args(kinds)
    return get_args(union[0]) if union else (kinds,)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The tables that a file of one type may have.

    `sections` maps the name of a table ("": top level) to its classes. `goes_with` maps a class without `kind` to a
    text that says where its keys belong. `planned` contains values of `kind` that are reserved but not implemented.
    `elsewhere` says of keys at the top of other types of files why they are not keys here.
    """

    sections: Mapping[str, tuple[type[Section], ...]]
    goes_with: Mapping[type[Section], str] = field(default_factory=dict)
    planned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)


_SHOWN: Final = 60
_SECTIONS: Final[dict[str, tuple[type[Section], ...]]] = {
    "": (Specification,),
    "population": (DataPopulation, CountedPopulation, PublisherPopulation, AudiencePopulation),
    "randomizer": _members(AnyRandomizer),
    "shuffler": _members(AnyShuffler),
    "shuffler.groups": (Groups,),
    "shuffler.dummies": DUMMY_LAWS,
    "shuffler.each": (*DUMMY_LAWS, EndlessDummies),
    "adversaries": _members(AnyAdversary),
    "adversaries.attack": (OrderAttack,),
    "targets": (Targets,),
    "run": (Run,),
    "statement": (StatementSection,),
    "statement.vouched": (Vouched,),
}
_GOES_WITH: Final[dict[type[Section], str]] = {
    DataPopulation: "It belongs to a population with data: give either data or n.",
    CountedPopulation: "It belongs to a population without data: give either n or data.",
    PublisherPopulation: "This key needs publishers.",
    AudiencePopulation: "This key needs audiences.",
}
COLLECTION: Final = Vocabulary(sections=_SECTIONS, goes_with=_GOES_WITH, planned=PLANNED)
"""The tables of a collection's specification."""
_RULES: Final = {
    "missing": "must be given",
    "extra_forbidden": "is not a key here",
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "float_type": "must be a number",
    "int_type": "must be an integer",
    "model_attributes_type": "must be a table",
    "model_type": "must be a table",
    "string_too_short": "must not be empty",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}
_KINDS: Final = ("literal_error", "union_tag_invalid", "union_tag_not_found")


def problem(error: Mapping[str, Any], raw: Mapping[str, Any], words: Vocabulary = COLLECTION) -> Problem:
    path, section = _path(error, raw), str(next(iter(error["loc"]), ""))
    if error["type"] == "literal_error":
        if path[-1] != "kind" or path[0] == "population":
            return _word_problem(error, path)
        section = _section_of(path, words)
    elif error["type"] in _KINDS:
        section = _section_of([*path, "kind"], words)
    if error["type"] in _KINDS:
        return _kind_problem(error, path, section, words)
    (rule, value), hint = _broken(error), ""
    match error["type"]:
        case "rule":
            hint = error.get("ctx", {}).get("hint", "")
        case "missing":
            value = "nothing"
        case "too_short":
            least, value = error["ctx"]["min_length"], f"{error['ctx']['actual_length']}"
            rule = f"must have {least} or more valid entries"
        case "extra_forbidden":
            hint = _home_of(str(path[-1]), _section_of(path, words), words)
    return Problem(key=_key(path), rule=rule, value=value, hint=hint)


def _broken(error: Mapping[str, Any]) -> tuple[str, str]:
    """Return the rule that the input breaks, and the input as text."""
    rule, given = _RULES.get(error["type"]) or error.get("ctx", {}).get("rule") or error["msg"], error["input"]
    if error["type"] == "float_type" and type(given) is int:
        rule = "must be a number of fewer digits"
    none = isinstance(given, dict) and rule.startswith("must be a table")
    value = "a table with none of these keys" if none else shown(given)
    return rule.replace("Input should be", "must be"), value


def shown(value: Any) -> str:
    """Return a (public) value of the specification as text, as in the file, shortened if it is long."""
    if value is None or isinstance(value, dict):
        return "nothing" if value is None else "a table"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, date | time):
        return f"{value} without quotes"
    text = json.dumps(value, default=str, ensure_ascii=False)
    text = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}... ({len(text):,} characters)"


def _word_problem(error: Mapping[str, Any], path: Sequence[str | int]) -> Problem:
    near = difflib.get_close_matches(str(error["input"]), str(error["ctx"]["expected"]).split("'")[1::2], n=1)
    hint = f'Did you mean "{near[0]}"?' if near else ""
    rule = f"must be {error['ctx']['expected']}".replace("'", '"').replace("True", "true")
    return Problem(key=_key(path), rule=rule, value=shown(error["input"]), hint=hint)


def _kind_problem(error: Mapping[str, Any], path: Sequence[str | int], section: str, words: Vocabulary) -> Problem:
    """Return the problem of a `kind` that does not exist or is missing."""
    table = isinstance(error["input"], dict)
    kind = error["input"].get("kind") if table else error["input"]
    key = f"{_key(path)}.kind" if table else _key(path)
    kinds = [name for model in words.sections[section] for name in _kinds(model)]
    rule = f"must be {_listed([shown(name) for name in kinds])}"
    if kind is None:
        return Problem(key=key, rule=rule, value="nothing")
    near = difflib.get_close_matches(str(kind), kinds, n=1)
    hint = f'Did you mean "{near[0]}"?' if near else ""
    if kind in words.planned.get(section, ()):
        hint = f"{shown(kind)} is planned, but not implemented yet."
    return Problem(key=key, rule=rule, value=shown(kind), hint=hint)


def _listed(names: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _section_of(path: Sequence[str | int], words: Vocabulary) -> str:
    """Return the innermost section that a path leads through, "" at the top."""
    names = [step for step in path[:-1] if isinstance(step, str)]
    inner = "shuffler.each" if names[-1:] == ["each"] else ".".join(names[:2])
    return inner if inner in words.sections else "".join(names[:1])


def _home_of(key: str, section: str, words: Vocabulary) -> str:
    """Say where an unknown `key` of `section` ("" is the top) could belong."""
    homes = [model for model in words.sections.get(section, ()) if key in model.model_fields]
    if homes and homes[0] in words.goes_with:
        return words.goes_with[homes[0]]
    if homes:
        return f"This key needs kind = {_listed([shown(kind) for model in homes for kind in _kinds(model)])}."
    if not section and key in words.elsewhere:
        return words.elsewhere[key]
    allowed = sorted({name for model in words.sections.get(section, ()) for name in model.model_fields})
    near = difflib.get_close_matches(key, allowed, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    for name, models in words.sections.items():
        if key == "kind" and name == "population":
            continue  # nearly always that of another table
        if any(key in model.model_fields for model in models):
            return f"It belongs to [{name}]." if name else "Move it to the top of the file, above all tables."
    return f"Allowed keys: {', '.join(allowed)}."


def _kinds(model: type[Section]) -> tuple[str, ...]:
    parts = get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()
    return tuple(name for part in parts for name in ([part] if isinstance(part, str) else get_args(part)))


def _path(error: Mapping[str, Any], raw: Any) -> list[str | int]:
    """Return the place of an error in the file: its location without pydantic's own marks."""
    path: list[str | int] = []
    here = raw
    last = len(error["loc"]) - 1
    for position, step in enumerate(error["loc"]):
        inside = step in here if isinstance(here, dict) else isinstance(here, list) and step in range(len(here))
        if inside:
            here = here[step]
        elif position != last or error["type"] != "missing":
            continue  # the name of a variant, or "[key]"
        path.append(step)
    return path


def _key(path: Sequence[str | int]) -> str:
    key = ""
    for step in path:
        if isinstance(step, int):
            key += f"[{step}]"
        else:
            plain = step.replace("-", "").replace("_", "").isalnum()
            name = step if plain and len(step) <= _SHOWN else shown(step)
            key += f".{name}" if key else name
    return key
