"""The JSON Schema of `study.json`."""

from __future__ import annotations

from hushuffle.report.schema_parts import (
    COUNTS,
    FLAG,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Schema,
    document,
    list_of,
    record,
    ref,
    said,
)
from hushuffle.report.study_document import STUDY_SCHEMA_VERSION


def study_json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of `study.json`.

    Within one schema version keys may be added, never renamed, removed or given another meaning.

    >>> study_json_schema()["properties"]["schema_version"]
    {'const': 1}
    """
    properties = {
        "schema_version": {"const": STUDY_SCHEMA_VERSION},
        "key": said(TEXT, "A stable name, such as 000/figure-2."),
        "title": TEXT,
        "question": TEXT,
        "answers": said(TEXTS, "Plain sentences, the first one the most important."),
        "settings": said({"type": "array", "items": record(name=TEXT, value=TEXT)}, "Everything that was chosen."),
        "findings": list_of("finding"),
        "tables": list_of("table"),
        "charts": list_of("chart"),
        "maps": list_of("map"),
        "heat_maps": list_of("heat_map"),
        "warnings": list_of("warning"),
        "citations": list_of("citation"),
        "software": list_of("software"),
    }
    return document("hushuffle study", properties, _definitions())


def _definitions() -> dict[str, Schema]:
    named = {"key": TEXT, "title": TEXT, "caption": TEXT}
    axes = {"x_label": TEXT, "y_label": TEXT}
    panel = record(label=TEXT, x=NUMBERS, y=NUMBERS, values=said(COUNTS, "Codes into the labels of the map."))
    rows = {"type": "array", "items": {"type": "array", "items": ref("cell")}}
    return {
        "cell": said({"anyOf": [TEXT, NUMBER, ref("bound")]}, "Text, a number, or a figure with its kind."),
        "table": record(**named, columns=TEXTS, rows=rows),
        "map": record(**named, **axes, labels=TEXTS, panels={"type": "array", "items": panel}),
        "heat_map": record(
            **named,
            **axes,
            x=TEXTS,
            y=TEXTS,
            values=said({"type": "array", "items": NUMBERS}, "values[row][column], rows named by y."),
            log=FLAG,
        ),
    }
