"""The first page of an assessment as Markdown (`dpia.md`)."""

from __future__ import annotations

import re
from typing import Any

from hushuffle.model import Report
from hushuffle.report.formatting import plain
from hushuffle.report.page import environment


def dpia(report: Report) -> str:
    """Return the Markdown text of `dpia.md`, for a data protection impact assessment; "" without a first page."""
    if report.statement is None:
        return ""
    return environment().overlay(autoescape=False, finalize=_safe).get_template("dpia.md").render(report=report)


def _safe(value: Any) -> Any:
    r"""Return a text on one line, escaped so that Markdown renders it unchanged; marked text stays as it is.

    >>> _safe("a|b <b>*x*")
    'a\\|b \\<b\\>\\*x\\*'
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", plain(value))
