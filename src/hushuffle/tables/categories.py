"""From a column to codes: which category a record belongs to, as one expression."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from hushuffle import _checks
from hushuffle.tables.conditions import Condition, parse_condition

FROM_DATA: Final = "from-data"
Categories = Mapping[str, str] | Sequence[str | int] | Literal["from-data"]
"""A table of conditions by category, a list of labels, or "from-data"."""

MISSING: Final = -1
UNSEEN: Final = -2
OVERLAP: Final = -3
"""Codes below 0 mark records that belong to no category, or to several."""

_WORDS: Final = ("refuse", "drop")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One column, read as numbers (null where it is none), as text, and where it is missing.

    Missing is: null (an empty CSV field, also when quoted), empty text, and NaN; text that spells NaN is
    missing where `numeric` says that numbers are asked for.
    """

    numbers: pl.Expr
    texts: pl.Expr
    missing: pl.Expr

    @classmethod
    def of(cls, column: str, dtype: pl.DataType, *, numeric: bool) -> Reading:
        """Return the readings of a column of text, numbers or booleans."""
        raw = pl.col(column)
        if dtype.is_float():
            whole = raw.cast(pl.Int64, strict=False)
            # Tables often hold integers as floats: 3.0 is the label "3".
            texts = pl.when(whole == raw).then(whole.cast(pl.String)).otherwise(raw.cast(pl.String))
            return cls(numbers=raw, texts=texts, missing=raw.is_null() | raw.is_nan())
        if dtype.is_numeric() or dtype == pl.Boolean:
            return cls(numbers=raw.cast(pl.Float64), texts=raw.cast(pl.String), missing=raw.is_null())
        texts = raw.cast(pl.String)
        numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
        missing = texts.is_null() | (texts == "")
        if numeric:
            missing |= numbers.is_nan().fill_null(value=False)
        return cls(numbers=numbers, texts=texts, missing=missing)


class Coding(ABC):
    """Gives every record its code: 0..k-1, or a mark below 0."""

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The k categories."""

    @property
    def numeric(self) -> bool:
        """Whether the column is compared with numbers."""
        return False

    @property
    @abstractmethod
    def advice(self) -> str:
        """What to do about a record that matches no category."""

    @abstractmethod
    def codes(self, reading: Reading) -> pl.Expr:
        """Return the code of every record, Int32: 0..k-1, MISSING, UNSEEN or OVERLAP."""

    def first_and_last(self, reading: Reading) -> tuple[pl.Expr, pl.Expr]:
        """Return the first and the last category that a record matches: two where they overlap."""
        code = self.codes(reading)
        return code.alias("first"), code.alias("last")


@dataclass(frozen=True, kw_only=True)
class ByCondition(Coding):
    """One condition for each category."""

    conditions: Mapping[str, Condition]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.conditions)

    @property
    def numeric(self) -> bool:
        return any(condition.numeric for condition in self.conditions.values())

    @property
    def advice(self) -> str:
        return "Add a category for them."

    def codes(self, reading: Reading) -> pl.Expr:
        matched = self._matched(reading)
        count = pl.sum_horizontal(one.cast(pl.Int32) for one in matched)
        first = pl.sum_horizontal(one.cast(pl.Int32) * code for code, one in enumerate(matched))
        code = pl.when(count == 1).then(first).when(count == 0).then(UNSEEN).otherwise(OVERLAP)
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)

    def first_and_last(self, reading: Reading) -> tuple[pl.Expr, pl.Expr]:
        positions = [pl.when(one).then(code) for code, one in enumerate(self._matched(reading))]
        return (
            pl.when(~reading.missing).then(pl.min_horizontal(positions)).alias("first"),
            pl.when(~reading.missing).then(pl.max_horizontal(positions)).alias("last"),
        )

    def _matched(self, reading: Reading) -> list[pl.Expr]:
        return [one.matches(numbers=reading.numbers, texts=reading.texts) for one in self.conditions.values()]


@dataclass(frozen=True, kw_only=True)
class ByLabel(Coding):
    """Each label is a category; the column is compared with it as text, exactly."""

    names: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names

    @property
    def advice(self) -> str:
        return "Labels are compared as text, exactly: capital letters and spaces matter."

    def codes(self, reading: Reading) -> pl.Expr:
        # A cast works chunk by chunk; replacing or joining would hold the whole column as text.
        code = reading.texts.cast(pl.Enum(self.names), strict=False).to_physical().cast(pl.Int32).fill_null(UNSEEN)
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)


def coding(categories: Mapping[str, str] | Sequence[str | int]) -> Coding:
    """Return how `categories` code a column.

    Raises:
        InvalidInputError: no category, a category twice, or a condition that is not understood.
    """
    if not categories:
        _checks.reject("categories", "at least one category", "<none>")
    if isinstance(categories, Mapping):
        return ByCondition(conditions={name: parse_condition(text) for name, text in categories.items()})
    names = tuple(as_label(label) for label in categories)
    if len(set(names)) != len(names):
        _checks.reject("categories", "distinct", names)
    return ByLabel(names=names)


def as_label(value: str | int) -> str:
    """Return a label as text: true and false for booleans, digits for integers.

    >>> [as_label(value) for value in ("yes", 3, True)]
    ['yes', '3', 'true']
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def missing_label(missing: str, labels: Sequence[str]) -> str | None:
    """Return the category that missing values become, or None for "refuse" and "drop".

    It may be one of `labels`; otherwise it is a further category, after them.

    Raises:
        InvalidInputError: no category, and almost "refuse" or "drop".

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
