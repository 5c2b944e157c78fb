"""The words for categories and missing values; no file of them is read here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from hushuffle import _checks

FROM_DATA: Final = "from-data"
_WORDS: Final = ("refuse", "drop")


def as_label(value: str | int) -> str:
    """Return a label as text: true and false for booleans, digits for integers.

    >>> [as_label(value) for value in ("yes", 3, True)]
    ['yes', '3', 'true']
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def missing_label(missing: str, labels: Sequence[str]) -> str | None:
    """Return the category that missing values become, or None for "refuse" and "drop".

    It may be one of `labels`; otherwise it is a further category, after them.

    >>> missing_label("no answer", ["no", "yes"])
    'no answer'
    """
    if missing in _WORDS:
        return None
    if missing not in labels:
        near = difflib.get_close_matches(missing.strip().lower(), _WORDS, n=1)
        if near or not missing.strip():
            hint = f"Did you mean {near[0]!r}?" if near else ""
            _checks.reject("missing", '"refuse", "drop" or the name of a category', repr(missing), hint)
    return missing
