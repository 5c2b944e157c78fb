"""Normal forms of ids: equal for `7`, `0007`, `+7`, `7.0` and ` 7`, or for `U17` and `u17`."""

from __future__ import annotations

from typing import Final

import polars as pl

_UNSEEN: Final = r"\p{Cf}"
"""Characters that show nothing, such as a mark of direction or a joiner."""

_NUMBER: Final = r"^\+?(-?)0*([0-9]+)(?:\.0*)?$"
"""A plain whole number, however it is written."""


def normal(ids: pl.Expr) -> pl.Expr:
    """Return ids (text) in a normal form, which is the same for all spellings of an id.

    Compatibility characters such as full-width digits become plain ones (NFKC); invisible characters, blanks around
    the id and capital letters make no difference; nor do a plus sign, leading zeros and `.0` of a whole number.

    >>> spellings = pl.Series(["7", " 0007", "+7", "7.0", "\uff17", "U17 ", "u17", "7.5"])
    >>> pl.select(normal(pl.lit(spellings))).to_series().to_list()
    ['7', '7', '7', '7', '7', 'u17', 'u17', '7.5']
    """
    plain = ids.str.normalize("NFKC").str.replace_all(_UNSEEN, "").str.strip_chars().str.to_lowercase()
    return plain.str.replace(_NUMBER, "${1}${2}")


_NORMAL: Final = r"^(?:0|[1-9][0-9]*|[a-z0-9_@.-]*[a-z_@][a-z0-9_@.-]*)$"
"""Ids that are seen at once to be in their normal form."""


def normal_ids(ids: pl.Series) -> pl.Series:
    """Return ids (text) in their normal form."""
    if ids.str.contains(_NORMAL).all(ignore_nulls=False):
        return ids
    return pl.select(normal(pl.lit(ids))).to_series().alias(ids.name)
