"""Docstrings for the site: a doctest becomes a block of code; Markdown would take it for quotations of quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^( *)>>> .*(?:\n(?!\s*$).*)*", flags=re.MULTILINE)


class DoctestBlocks(griffe.Extension):
    """What mkdocstrings calls for each object."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Put fences around the doctests of one object."""
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(_fenced, obj.docstring.value)


def _fenced(doctest: re.Match[str]) -> str:
    indent = doctest[1]
    return f"{indent}```pycon\n{doctest[0]}\n{indent}```"
