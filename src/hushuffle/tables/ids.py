"""Normal forms of ids: `7`, `0007`, `+7`, `7.0` and ` 7` have the same normal form, and so have `U17` and `u17`."""

from __future__ import annotations

from typing import Final

import polars as pl

_UNSEEN: Final = r"\p{Cf}"
"""Invisible characters, such as direction marks and joiners."""

_NUMBER: Final = r"^\+?(-?)0*([0-9]+)(?:\.0*)?$"
"""A pattern for whole numbers with or without a plus sign, leading zeros and `.0`."""


def normal(ids: pl.Expr) -> pl.Expr:
    """Return ids (text) in a normal form, which is the same for all spellings of an id.

    Compatibility characters such as full-width digits become plain characters (NFKC). Invisible characters, spaces
    around the id, capital letters, a plus sign, leading zeros and `.0` of a whole number make no difference.

    >>> spellings = pl.Series(["7", " 0007", "+7", "7.0", "\uff17", "U17 ", "u17", "7.5"])
    >>> pl.select(normal(pl.lit(spellings))).to_series().to_list()
    ['7', '7', '7', '7', '7', 'u17', 'u17', '7.5']
    """
    plain = ids.str.normalize("NFKC").str.replace_all(_UNSEEN, "").str.strip_chars().str.to_lowercase()
    return plain.str.replace(_NUMBER, "${1}${2}")


_NORMAL: Final = r"^(?:0|[1-9][0-9]*|[a-z0-9_@.-]*[a-z_@][a-z0-9_@.-]*)$"
"""A pattern that matches only ids in normal form."""


def normal_ids(ids: pl.Series) -> pl.Series:
    """Return ids (text) in their normal form."""
    if ids.str.contains(_NORMAL).all(ignore_nulls=False):
        return ids
    return pl.select(normal(pl.lit(ids))).to_series().alias(ids.name)
