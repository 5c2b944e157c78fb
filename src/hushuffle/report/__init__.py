"""Renders an `Assessment`; computes no privacy figure.

`write` makes the three files of a report; `html`, `to_json` and `terminal` return the text of one of
them; `json_schema` describes `result.json`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushuffle.report.files import write as write
    from hushuffle.report.page import html as html
    from hushuffle.report.result import SCHEMA_VERSION as SCHEMA_VERSION
    from hushuffle.report.result import to_json as to_json
    from hushuffle.report.schema import json_schema as json_schema
    from hushuffle.report.summary import terminal as terminal

# Charts, templates and terminal tables cost half a second to import: each is loaded when used.
_WHERE = {
    "SCHEMA_VERSION": "hushuffle.report.result",
    "html": "hushuffle.report.page",
    "json_schema": "hushuffle.report.schema",
    "terminal": "hushuffle.report.summary",
    "to_json": "hushuffle.report.result",
    "write": "hushuffle.report.files",
}

__all__ = ["SCHEMA_VERSION", "html", "json_schema", "terminal", "to_json", "write"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        message = f"module 'hushuffle.report' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
