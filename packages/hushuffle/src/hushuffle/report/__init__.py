"""Renders a `Report`; computes no privacy figure.

`write` writes the files of a report. `html` and `to_json` return the text of the page and of the JSON document,
`terminal` a summary for a terminal. `json_schema` returns the JSON Schema of the documents. `write_explorer` writes the
page with sliders of an `Explorer`; `explorer_html` returns the text of that page.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushuffle.report.document import SCHEMA_VERSION as SCHEMA_VERSION
    from hushuffle.report.document import folder_of as folder_of
    from hushuffle.report.document import json_schema as json_schema
    from hushuffle.report.document import to_json as to_json
    from hushuffle.report.explorer import explorer_html as explorer_html
    from hushuffle.report.files import write as write
    from hushuffle.report.files import write_explorer as write_explorer
    from hushuffle.report.page import html as html
    from hushuffle.report.summary import terminal as terminal

# Charts, templates and terminal tables cost half a second to import: each is loaded when used.
_WHERE = {
    "SCHEMA_VERSION": "document",
    "explorer_html": "explorer",
    "folder_of": "document",
    "html": "page",
    "json_schema": "document",
    "terminal": "summary",
    "to_json": "document",
    "write": "files",
    "write_explorer": "files",
}

__all__ = [
    "SCHEMA_VERSION",
    "explorer_html",
    "folder_of",
    "html",
    "json_schema",
    "terminal",
    "to_json",
    "write",
    "write_explorer",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        message = f"module 'hushuffle.report' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"hushuffle.report.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
