"""What mkdocs does beside its settings: names of the library as users write them."""

from __future__ import annotations

import re
from typing import Any

import hushuffle

_NAME = re.compile(
    rf'(<h\d id="hushuffle\.(?:{"|".join(hushuffle.__all__)})\b[^>]*>\s*<code[^>]*><span class="n">)hushuffle(?=<)'
)


def on_page_content(html: str, **_: Any) -> str:
    """Write `hs.dp.epsilon` over its description, not `hushuffle.dp.epsilon`; anchors keep the whole name."""
    return _NAME.sub(r"\1hs", html)
