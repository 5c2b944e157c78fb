"""The JSON Schema of `study.json`."""

from __future__ import annotations

from hushuffle.report.schema_parts import FLAG, NUMBERS, TEXT, TEXTS, Schema, document, list_of, record, said
from hushuffle.report.study_document import STUDY_SCHEMA_VERSION


def study_json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of `study.json`.

    Within one schema version keys may be added, never renamed, removed or given another meaning.

    >>> study_json_schema()["properties"]["schema_version"]
    {'const': 1}
    """
    properties = {
        "schema_version": {"const": STUDY_SCHEMA_VERSION},
        "key": said(TEXT, "A stable name, such as jurado2023/figure-2."),
        "title": TEXT,
        "question": TEXT,
        "answers": said(TEXTS, "Plain sentences, the first one the most important."),
        "settings": said({"type": "array", "items": record(name=TEXT, value=TEXT)}, "Everything that was chosen."),
        "findings": list_of("finding"),
        "tables": list_of("table"),
        "charts": list_of("chart"),
        "maps": list_of("map"),
        "heat_maps": list_of("heat_map"),
        "diagrams": list_of("diagram"),
        "warnings": list_of("warning"),
        "citations": list_of("citation"),
        "software": list_of("software"),
    }
    return document("hushuffle study", properties, _definitions())


def _definitions() -> dict[str, Schema]:
    named = {"key": TEXT, "title": TEXT, "caption": TEXT}
    axes = {"x_label": TEXT, "y_label": TEXT}
    return {
        "diagram": record(**named, svg=said(TEXT, "An SVG document."), text=said(TEXT, "The same in words.")),
        "heat_map": record(
            **named,
            **axes,
            x=TEXTS,
            y=TEXTS,
            values=said({"type": "array", "items": NUMBERS}, "values[row][column], rows named by y."),
            log=FLAG,
        ),
    }
