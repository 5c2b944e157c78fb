"""Read a column as numbers, as (tidied) text, and as a mask of missing values."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from hushuffle.tables.labels import Tidying


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A column, read as numbers (null if the value is not a number), as text, and as a mask of missing values.

    Missing values are null (an empty CSV field, also when quoted), empty text, and NaN. The text NaN is missing only
    with `numeric`. With `dates`, numbers are days since 1970.
    """

    numbers: pl.Expr
    texts: pl.Expr
    missing: pl.Expr

    @classmethod
    def of(
        cls, column: str, dtype: pl.DataType, *, numeric: bool, tidying: Tidying | None = None, dates: bool = False
    ) -> Reading:
        raw = pl.col(column)
        if dtype.is_float():
            whole = raw.cast(pl.Int64, strict=False)
            # Tables often hold integers as floats: 3.0 is the label "3".
            texts = pl.when(whole == raw).then(whole.cast(pl.String)).otherwise(raw.cast(pl.String))
            return cls(numbers=raw, texts=texts, missing=raw.is_null() | raw.is_nan())
        if dtype.is_numeric() or dtype == pl.Boolean:
            return cls(numbers=raw.cast(pl.Float64), texts=raw.cast(pl.String), missing=raw.is_null())
        texts = raw.cast(pl.String)
        texts = texts if tidying is None else tidying.of(texts)
        if dates:
            return cls(numbers=days(texts), texts=texts, missing=texts.is_null() | (texts == ""))
        numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
        missing = texts.is_null() | (texts == "")
        if numeric:
            missing |= numbers.is_nan().fill_null(value=False)
        return cls(numbers=numbers, texts=texts, missing=missing)


def days(texts: pl.Expr) -> pl.Expr:
    """Return days since 1970 for dates as text (2024-05-31, a time of day may follow); null for other text."""
    parts = texts.str.strip_chars().str.extract_groups(r"^(\d{4}-\d{2}-\d{2})(?:[T ].*)?$")
    return parts.struct.field("1").str.to_date("%Y-%m-%d", strict=False).to_physical().cast(pl.Float64)
