"""The JSON Schema of `result.json`."""

from __future__ import annotations

from hushuffle.report.result import SCHEMA_VERSION
from hushuffle.report.schema_parts import (
    CONFIDENCE,
    COUNT,
    COUNTS,
    FLAG,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Schema,
    document,
    list_of,
    or_null,
    record,
    ref,
    said,
)


def json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of `result.json`.

    Within one schema version keys may be added, never renamed, removed or given another meaning.

    >>> json_schema()["properties"]["schema_version"]
    {'const': 1}
    """
    properties = {
        "schema_version": {"const": SCHEMA_VERSION},
        "title": TEXT,
        "deployment": said(TEXT, "One sentence: who is asked, what is randomized, what is shuffled."),
        "specification": said(TEXT, "The effective specification, TOML."),
        "population": ref("population"),
        "findings": list_of("finding"),
        "utility": or_null(_utility()),
        "warnings": list_of("warning"),
        "citations": list_of("citation"),
        "software": list_of("software"),
        "charts": list_of("chart"),
        "tables": said(list_of("table"), "What an estimate of frequencies does not hold, such as reach and overlaps."),
        "maps": said(
            list_of("map"), "Who holds what where: true and released values of every person. Empty unless asked for."
        ),
        "unanswered": said(
            list_of("unanswered"), "Findings, charts and tables that this mechanism has not, and why not."
        ),
    }
    definitions = {"population": _population(), "unanswered": record(question=TEXT, topic=TEXT, reason=TEXT)}
    return document("hushuffle assessment", properties, definitions)


def _population() -> Schema:
    return record(
        n={"type": "integer", "minimum": 1},
        labels=TEXTS,
        source=TEXT,
        counts=said(or_null(COUNTS), "True counts by value: not private."),
        label_of=said(TEXT, "What a label names: a value, a publisher."),
        dropped=COUNT,
    )


def _utility() -> Schema:
    interval = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
    return record(
        predicted=said(NUMBERS, "Predicted standard errors by value."),
        measured=said(or_null(NUMBERS), "Root mean square errors over the repetitions, by value."),
        z=said(or_null(NUMBERS), "Standard deviations from the predicted mean square error, by value."),
        repetitions=COUNT,
        target=or_null(NUMBER),
        met=said(or_null(FLAG), "Whether every predicted standard error is within the target."),
        confidence=CONFIDENCE,
        estimate=or_null(
            record(
                n=COUNT,
                frequencies=NUMBERS,
                raw=NUMBERS,
                standard_errors=NUMBERS,
                intervals={"type": "array", "items": interval},
                postprocessing=TEXTS,
            )
        ),
    )
