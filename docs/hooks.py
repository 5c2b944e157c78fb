"""What mkdocs does beside its settings: names of the library as users write them, formulas without a script."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

import hushuffle

_NAME = re.compile(
    rf'(<h\d id="hushuffle\.(?:{"|".join(hushuffle.__all__)})\b[^>]*>\s*<code[^>]*><span class="n">)hushuffle(?=<)'
)
_AS_IT_IS = re.compile(r"(^```.*?^```|^    [^\n]*|`[^`]+`|\]\([^)]*\)|<[^>\n]+>)", flags=re.DOTALL | re.MULTILINE)
_LETTERS = r"[^\W_]+"
_LOWERED = re.compile(rf"(?<=[^\s*])_(?:\{{([^{{}}]*)\}}|(\([^()\s]*\)|{_LETTERS}))")
_RAISED = re.compile(rf"(?<=[^\s*])\^(?:\{{([^{{}}]*)\}}|(\([^()\s]*\)|\|[^|\s]*\||[-\u2212]?{_LETTERS}(?:\.\d+)?))")


def on_config(config: Any) -> None:
    """Let a block of `math` (LaTeX, as code hosts show it too) become MathML, which browsers display by themselves."""
    fence = {"name": "math", "class": "math", "format": formula}
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]


def formula(source: str, *_: Any, **__: Any) -> str:
    """Return one displayed formula; a long one scrolls by itself on a narrow screen."""
    return f'<div class="math">{convert(source, display="block")}</div>'


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lower and raise the indices and powers of formulas within a line: `Q_x`, `e^{−θd}`."""
    if page.file.src_uri.startswith("reference/") and not page.file.src_uri.endswith("glossary.md"):
        return markdown  # tables of names and numbers
    parts = _AS_IT_IS.split(markdown)
    parts[::2] = map(indices, parts[::2])
    return "".join(parts)


def indices(text: str) -> str:
    """Return text with indices and powers as HTML: innermost first."""
    for _ in range(2):
        text = _LOWERED.sub(lambda found: f"<sub>{found[1] or found[2]}</sub>", text)
    return _RAISED.sub(lambda found: f"<sup>{found[1] or found[2]}</sup>", text)


def on_page_content(html: str, **_: Any) -> str:
    """Write `hs.dp.epsilon` over its description, not `hushuffle.dp.epsilon`; anchors keep the whole name."""
    return _NAME.sub(r"\1hs", html)
