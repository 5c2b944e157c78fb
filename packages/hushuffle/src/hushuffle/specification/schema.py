"""The JSON schema of TOML files of deployments, for editors."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import textwrap
from functools import cache
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from hushuffle.specification._base import Section
from hushuffle.specification.mixed import MixedSpecification
from hushuffle.specification.population import CountedPopulation, DataPopulation
from hushuffle.specification.reading import SHARED
from hushuffle.specification.specification import Specification
from hushuffle.specification.sums import SumSpecification

Schema = dict[str, Any]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_DEPLOYMENT: Final = (
    "One deployment: who is asked, how their answers are protected, from whom, and what is wanted. With [[columns]]: "
    "several columns of the same people. With [[groups]]: groups of people with different randomizers. With [sum]: a "
    "sum by several messages."
)
_COLUMN: Final = "One deployment: who is asked, how their answers are protected, from whom, and what is wanted."
_COLUMNS: Final = "Several columns of the same people. Reference: docs/how-to/several-columns.md"
_GROUPS: Final = (
    "Groups of people with different randomizers. "
    "Reference: docs/reference/specification.md#groups-with-different-randomizers"
)
_SUM: Final = "A sum by several messages. Reference: docs/reference/specification.md#sums-by-several-messages"


class _Schema(GenerateJsonSchema):
    """JSON schema for TOML, which has no null: an optional key has the type of its value.

    The description of a key is the string below it in the source. The source is parsed only for the schema, because
    parsing takes as long as all other work on a specification.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result = super().model_schema(schema)
        for section in (base for base in schema["cls"].__mro__ if issubclass(base, Section)):
            for key, words in _described(section).items():
                if key in result["properties"]:
                    result["properties"][key].setdefault("description", words)
        return result

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return (
            self.generate_inner(schema["schema"])
            if schema.get("default", ...) is None
            else super().default_schema(schema)
        )


@cache
def _described(section: type) -> dict[str, str]:
    """Return the description below each key of a class; empty for a class without a source file."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    except OSError:
        return {}
    assert isinstance(tree, ast.ClassDef)
    return {
        ast.unparse(key.target): inspect.cleandoc(str(words.value.value))
        for key, words in itertools.pairwise(tree.body)
        if isinstance(key, ast.AnnAssign)
        if isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant)
    }


def json_schema() -> Schema:
    """Return the JSON schema of files of deployments: of one column, of several columns, of groups, and of sums.

    >>> schema = json_schema()
    >>> [key for key in schema["properties"] if key not in schema["$defs"]["Specification"]["properties"]]
    ['columns', 'group_column', 'groups', 'sum']
    """
    kinds = {
        "Specification": column_schema(),
        "Columns": columns_schema(),
        "MixedSpecification": groups_schema(),
        "SumSpecification": sum_schema(),
    }
    tables = {name: table for schema in kinds.values() for name, table in schema["$defs"].items()}
    properties: Schema = {}
    for name, schema in kinds.items():
        tables[name] = {key: value for key, value in schema.items() if key not in ("$schema", "$defs")}
        for key, value in schema["properties"].items():
            properties.setdefault(key, {"description": value["description"]})

    def of(name: str) -> Schema:
        return {"$ref": f"#/$defs/{name}"}

    other = {"if": {"required": ["columns"]}, "then": of("Columns"), "else": of("Specification")}
    other = {"if": {"required": ["groups"]}, "then": of("MixedSpecification"), "else": other}
    return {
        "$schema": _DIALECT,
        "title": "Deployment",
        "type": "object",
        "properties": properties,
        "if": {"required": ["sum"]},
        "then": of("SumSpecification"),
        "else": other,
        "$defs": dict(sorted(tables.items())),
        "description": _DEPLOYMENT,
    }


def schema_text() -> str:
    """Return the JSON schema as text, that of docs/specification.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def schema_of(model: type[Section], description: str) -> Schema:
    schema = model.model_json_schema(schema_generator=_Schema)
    return {"$schema": _DIALECT, **schema, "description": description}


def column_schema() -> Schema:
    """Return the JSON schema of files with one column."""
    return schema_of(Specification, _COLUMN)


def columns_schema() -> Schema:
    """Return the JSON schema of files with [[columns]]."""
    schema = schema_of(Specification, _COLUMNS)
    tables, alone = schema["$defs"], schema["properties"]
    populations = [tables[model.__name__]["properties"] for model in (DataPopulation, CountedPopulation)]
    keys = {key: value for properties in reversed(populations) for key, value in properties.items()}
    name = {"type": "string", "description": "The name of the column's folder and results (default: the column)."}
    tables["Column"] = {
        "type": "object",
        "additionalProperties": False,
        "description": "One of the columns: its answers, and their randomizer.",
        "properties": {
            "name": name,
            **{key: value for key, value in keys.items() if key not in (*SHARED, "reports_per_person")},
            "randomizer": alone["randomizer"],
        },
        "required": ["randomizer"],
    }
    tables["SharedPopulation"] = {
        "type": "object",
        "additionalProperties": False,
        "description": "The people who are asked, with one row each.",
        "properties": {key: keys[key] for key in SHARED},
        "oneOf": [{"required": ["data"]}, {"required": ["n"]}],
    }
    schema["properties"] = {
        **{key: alone[key] for key in ("title", "rounds", "shuffler", "targets", "statement")},
        "population": {"$ref": "#/$defs/SharedPopulation", "description": alone["population"]["description"]},
        "columns": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/Column"},
            "description": "Several columns of the same people, each with its answers and its randomizer.",
        },
    }
    schema["required"] = ["population", "columns", "shuffler", "targets"]
    return schema


def groups_schema() -> Schema:
    """Return the JSON schema of files with [[groups]]."""
    return schema_of(MixedSpecification, _GROUPS)


def sum_schema() -> Schema:
    """Return the JSON schema of files with [sum]."""
    schema = schema_of(SumSpecification, _SUM)
    given = {"kind": {"const": "number", "description": "Numbers: their bounds are public."}}
    schema["properties"]["population"] |= {
        "oneOf": [{"$ref": f"#/$defs/{one.__name__}"} for one in (DataPopulation, CountedPopulation)],
        "required": ["kind", "low", "high", "levels"],
        "properties": given,
    }
    return schema
