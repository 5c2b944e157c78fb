"""Pieces of JSON Schema that `result.json` and `study.json` share."""

from __future__ import annotations

from typing import Any, Final

from hushuffle.model.bound import KINDS

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
FLAG: Final[Schema] = {"type": "boolean"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
COUNTS: Final[Schema] = {"type": "array", "items": COUNT}
NUMBER: Final[Schema] = {"$ref": "#/$defs/number"}
NUMBERS: Final[Schema] = {"type": "array", "items": NUMBER}
CONFIDENCE: Final[Schema] = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


def document(title: str, properties: dict[str, Schema], definitions: dict[str, Schema]) -> Schema:
    """Return the schema (draft 2020-12) of a document with these properties, all of them required."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **record(**properties),
        "$defs": shared() | definitions,
    }


def shared() -> dict[str, Schema]:
    """Return the definitions of what both documents hold."""
    rows = {"type": "array", "items": {"type": "array", "items": ref("cell")}}
    panel = record(label=TEXT, x=NUMBERS, y=NUMBERS, values=said(COUNTS, "Codes into the labels of the map."))
    return {
        "number": {"anyOf": [{"type": "number"}, {"enum": ["infinity", "-infinity"]}]},
        "citation": record(key=TEXT, text=TEXT, where=TEXT),
        "warning": record(key=TEXT, sentence=TEXT, advice=TEXT),
        "software": record(name=TEXT, version=TEXT),
        "finding": record(question=TEXT, adversary=TEXT, sentence=TEXT, proof=TEXT, bound=ref("bound")),
        "bound": record(
            lower=NUMBER,
            upper=NUMBER,
            kind={"enum": list(KINDS)},
            unit=TEXT,
            confidence=or_null(CONFIDENCE),
            witness=or_null(ref("witness")),
            sources=list_of("citation"),
        )
        | {"description": "The truth lies in [lower, upper] (for an estimate: with probability `confidence`)."},
        "witness": record(
            family=TEXT, others=COUNTS, target={"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2}
        ),
        "chart": record(
            key=TEXT,
            title=TEXT,
            caption=TEXT,
            x_label=TEXT,
            y_label=TEXT,
            x_log=FLAG,
            y_log=FLAG,
            here=or_null(NUMBER),
            series={"type": "array", "items": record(label=TEXT, x=NUMBERS, lower=NUMBERS, upper=NUMBERS)},
        ),
        "cell": said({"anyOf": [TEXT, NUMBER, ref("bound")]}, "Text, a number, or a figure with its kind."),
        "table": record(key=TEXT, title=TEXT, caption=TEXT, columns=TEXTS, rows=rows),
        "map": record(
            key=TEXT,
            title=TEXT,
            caption=TEXT,
            x_label=TEXT,
            y_label=TEXT,
            labels=TEXTS,
            panels={"type": "array", "items": panel},
        ),
    }


def record(**properties: Schema) -> Schema:
    """Return an object that has all of `properties`."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def ref(name: str) -> Schema:
    """Return a reference to the definition `name`."""
    return {"$ref": f"#/$defs/{name}"}


def list_of(name: str) -> Schema:
    """Return an array of what the definition `name` describes."""
    return {"type": "array", "items": ref(name)}


def or_null(schema: Schema) -> Schema:
    """Return `schema`, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def said(schema: Schema, description: str) -> Schema:
    """Return `schema` with a description."""
    return {**schema, "description": description}
