"""Labels of categories and of missing values; this module reads no files."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hushuffle import _checks

if TYPE_CHECKING:
    import polars as pl

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

    The result may be one of `labels`; otherwise it is a new category after them.

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


@dataclass(frozen=True, kw_only=True)
class Tidying:
    """Text normalization before comparison: remove surrounding spaces (`trim`), ignore capital letters (`casefold`)."""

    trim: bool = False
    casefold: bool = False

    def of(self, texts: pl.Expr) -> pl.Expr:
        texts = texts.str.strip_chars() if self.trim else texts
        return texts.str.to_lowercase() if self.casefold else texts

    def plain(self, text: str) -> str:
        """Return one tidy text.

        >>> Tidying(trim=True, casefold=True).plain(" Bern ")
        'bern'
        """
        import polars as pl  # noqa: PLC0415 - only when needed

        return str(pl.select(self.of(pl.lit(text))).item())

    def names(self, names: Sequence[str]) -> tuple[str, ...]:
        if self == Tidying():
            return tuple(names)
        import polars as pl  # noqa: PLC0415 - only when needed

        table = pl.DataFrame({"name": list(names)}, schema={"name": pl.String})
        return tuple(table.select(self.of(pl.col("name"))).to_series())
