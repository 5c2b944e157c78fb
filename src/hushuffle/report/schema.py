"""The JSON Schema of `result.json`."""

from __future__ import annotations

from typing import Any

from hushuffle.model.bound import KINDS
from hushuffle.report.result import SCHEMA_VERSION

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_COUNTS = {"type": "array", "items": _COUNT}
_NUMBER = {"$ref": "#/$defs/number"}
_NUMBERS = {"type": "array", "items": _NUMBER}
_CONFIDENCE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `result.json`.

    Within one schema version keys may be added, never renamed, removed or given another meaning.

    >>> json_schema()["properties"]["schema_version"]
    {'const': 1}
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hushuffle assessment",
        **_record(
            schema_version={"const": SCHEMA_VERSION},
            title=_TEXT,
            deployment=_said("One sentence: who is asked, what is randomized, what is shuffled."),
            specification=_said("The effective specification, TOML."),
            population=_ref("population"),
            findings=_list("finding"),
            utility=_or_null(_ref("utility")),
            warnings={"type": "array", "items": _record(key=_TEXT, sentence=_TEXT, advice=_TEXT)},
            citations=_list("citation"),
            software={"type": "array", "items": _record(name=_TEXT, version=_TEXT)},
            charts=_list("chart"),
        ),
        "$defs": _definitions(),
    }


def _definitions() -> dict[str, Any]:
    return {
        "number": {"anyOf": [{"type": "number"}, {"enum": ["infinity", "-infinity"]}]},
        "citation": _record(key=_TEXT, text=_TEXT, where=_TEXT),
        "population": _record(
            n={"type": "integer", "minimum": 1},
            labels={"type": "array", "items": _TEXT},
            source=_TEXT,
            counts=_or_null(_COUNTS) | {"description": "True counts by value: not private."},
            dropped=_COUNT,
        ),
        "finding": _record(question=_TEXT, adversary=_TEXT, sentence=_TEXT, proof=_TEXT, bound=_ref("bound")),
        "bound": _record(
            lower=_NUMBER,
            upper=_NUMBER,
            kind={"enum": list(KINDS)},
            unit=_TEXT,
            confidence=_or_null(_CONFIDENCE),
            witness=_or_null(_ref("witness")),
            sources=_list("citation"),
        )
        | {"description": "The truth lies in [lower, upper] (for an estimate: with probability `confidence`)."},
        "witness": _record(
            family=_TEXT, others=_COUNTS, target={"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}
        ),
        "utility": _utility(),
        "chart": _record(
            key=_TEXT,
            title=_TEXT,
            caption=_TEXT,
            x_label=_TEXT,
            y_label=_TEXT,
            x_log=_FLAG,
            y_log=_FLAG,
            here=_or_null(_NUMBER),
            series={"type": "array", "items": _record(label=_TEXT, x=_NUMBERS, lower=_NUMBERS, upper=_NUMBERS)},
        ),
    }


def _utility() -> dict[str, Any]:
    interval = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
    return _record(
        predicted=_NUMBERS | {"description": "Predicted standard errors by value."},
        measured=_or_null(_NUMBERS) | {"description": "Root mean square errors over the repetitions, by value."},
        z=_or_null(_NUMBERS) | {"description": "Standard deviations from the predicted mean square error, by value."},
        repetitions=_COUNT,
        target=_or_null(_NUMBER),
        met=_or_null(_FLAG) | {"description": "Whether every predicted standard error is within the target."},
        confidence=_CONFIDENCE,
        estimate=_or_null(
            _record(
                n=_COUNT,
                frequencies=_NUMBERS,
                raw=_NUMBERS,
                standard_errors=_NUMBERS,
                intervals={"type": "array", "items": interval},
                postprocessing={"type": "array", "items": _TEXT},
            )
        ),
    )


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _ref(name)}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _said(description: str) -> dict[str, Any]:
    return {**_TEXT, "description": description}
