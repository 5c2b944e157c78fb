"""Renders an `Assessment` or a `Study`; computes no privacy figure.

`write` makes the three files of a report; `html`, `to_json` and `terminal` return the text of one of
them; `json_schema` describes `result.json`. `write_study`, `study_html`, `study_json`, `study_terminal` and
`study_json_schema` do the same for a study.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushuffle.report.files import write as write
    from hushuffle.report.files import write_study as write_study
    from hushuffle.report.page import html as html
    from hushuffle.report.result import SCHEMA_VERSION as SCHEMA_VERSION
    from hushuffle.report.result import to_json as to_json
    from hushuffle.report.schema import json_schema as json_schema
    from hushuffle.report.study_document import STUDY_SCHEMA_VERSION as STUDY_SCHEMA_VERSION
    from hushuffle.report.study_document import study_json as study_json
    from hushuffle.report.study_page import study_html as study_html
    from hushuffle.report.study_schema import study_json_schema as study_json_schema
    from hushuffle.report.study_summary import study_terminal as study_terminal
    from hushuffle.report.summary import terminal as terminal

# Charts, templates and terminal tables cost half a second to import: each is loaded when used.
_WHERE = {
    "SCHEMA_VERSION": "hushuffle.report.result",
    "STUDY_SCHEMA_VERSION": "hushuffle.report.study_document",
    "html": "hushuffle.report.page",
    "json_schema": "hushuffle.report.schema",
    "study_html": "hushuffle.report.study_page",
    "study_json": "hushuffle.report.study_document",
    "study_json_schema": "hushuffle.report.study_schema",
    "study_terminal": "hushuffle.report.study_summary",
    "terminal": "hushuffle.report.summary",
    "to_json": "hushuffle.report.result",
    "write": "hushuffle.report.files",
    "write_study": "hushuffle.report.files",
}

__all__ = [
    "SCHEMA_VERSION",
    "STUDY_SCHEMA_VERSION",
    "html",
    "json_schema",
    "study_html",
    "study_json",
    "study_json_schema",
    "study_terminal",
    "terminal",
    "to_json",
    "write",
    "write_study",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        message = f"module 'hushuffle.report' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
