"""Docstrings for the site: what stands in them as plain text reads as plain text.

A doctest becomes a block of code (Markdown would take it for quotations of quotations), the stars, underscores and
brackets of formulas stay (`e**epsilon` would lose its stars), and a cited statement is a link to its proof.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^( *)>>> .*(?:\n(?!\s*$).*)*", flags=re.MULTILINE)
_CODE = re.compile(r"(^ *```.*?^ *```|``.+?``|`[^`]+`)", flags=re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"[*<\[]|(?<!\w)_|\\")
_PAGE = re.compile(r"docs/([\w-]+/[\w-]+\.md)(?:,\s+(Theorem|Lemma|Corollary|Remark) (\d+))?")


class PlainDocstrings(griffe.Extension):
    """What mkdocstrings calls for each object."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Make the docstring of one object read as written."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Return a docstring as Markdown that is displayed as the docstring reads."""
    parts = _CODE.split(_DOCTEST.sub(_fenced, docstring))
    parts[::2] = [_PAGE.sub(_linked, _MARKUP.sub(r"\\\g<0>", part)) for part in parts[::2]]
    return "".join(parts)


def _fenced(doctest: re.Match[str]) -> str:
    indent = doctest[1]
    return f"{indent}```pycon\n{doctest[0]}\n{indent}```"


def _linked(cited: re.Match[str]) -> str:
    page, kind, number = cited.groups()
    statement = f"#{kind.lower()}-{number}" if kind else ""
    return f"[{cited[0]}](../{page}{statement})"
