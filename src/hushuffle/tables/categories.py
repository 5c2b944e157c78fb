"""From a column to codes: which category a record belongs to, as one expression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.tables.conditions import Condition, parse_condition
from hushuffle.tables.labels import as_label, missing_label

Categories = Mapping[str, str] | Sequence[str | int] | Literal["from-data"]
"""A table of conditions by category, a list of labels, or "from-data"."""

MISSING: Final = -1
UNSEEN: Final = -2
OVERLAP: Final = -3
"""Codes below 0 mark records that belong to no category, or to several."""


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
        """The categories; none where they have no names."""

    @property
    def size(self) -> int:
        """Number of categories."""
        return len(self.labels)

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


@dataclass(frozen=True, kw_only=True)
class ByNumber(Coding):
    """The column holds the codes themselves: integers 0..k-1."""

    k: int

    @property
    def labels(self) -> tuple[str, ...]:
        return ()

    @property
    def size(self) -> int:
        return self.k

    @property
    def numeric(self) -> bool:
        return True

    @property
    def advice(self) -> str:
        return f"Values must be integers from 0 to {self.k - 1:,}."

    def codes(self, reading: Reading) -> pl.Expr:
        inside = reading.numbers.is_between(0, self.k - 1) & (reading.numbers == reading.numbers.floor())
        code = pl.when(inside.fill_null(value=False)).then(reading.numbers).otherwise(UNSEEN)
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)


def coding(categories: Mapping[str, str] | Sequence[str | int]) -> Coding:
    """Return how `categories` code a column."""
    if not categories:
        _checks.reject("categories", "at least one category", "<none>")
    if isinstance(categories, Mapping):
        return ByCondition(conditions={name: parse_condition(text) for name, text in categories.items()})
    names = tuple(as_label(label) for label in categories)
    if len(set(names)) != len(names):
        _checks.reject("categories", "distinct", names)
    return ByLabel(names=names)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the values of a private column mean: their `coding`, and what becomes of missing ones.

    They become the category `instead`; if there is none they are left out (`drop`) or refused.
    """

    coding: Coding
    drop: bool = False
    instead: str | None = None

    @classmethod
    def of(cls, categories: Categories | int, missing: str) -> Self:
        """Return what categories known beforehand (k: the codes 0..k-1) and a rule for missing values say."""
        if isinstance(categories, str):
            hint = "What leaves must not depend on who is there: list the categories."
            _checks.reject("categories", "a table or a list", repr(categories), hint)
        if not isinstance(categories, int):
            return cls.with_coding(coding(categories), missing)
        if missing_label(missing, ()) is not None:
            _checks.reject("missing", '"refuse" or "drop" where categories have no names', repr(missing))
        return cls(
            coding=ByNumber(k=_checks.integer("categories", categories, low=2, high=2**31 - 1)), drop=missing == "drop"
        )

    @classmethod
    def with_coding(cls, rule: Coding, missing: str) -> Self:
        """Return what a coding by name and a rule for missing values say."""
        return cls(coding=rule, drop=missing == "drop", instead=missing_label(missing, rule.labels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories, that of missing values included; none where they have no names."""
        known = self.coding.labels
        return known if self.instead is None or self.instead in known else (*known, self.instead)

    @property
    def k(self) -> int:
        """Number of categories."""
        return self.coding.size if self.instead is None else len(self.labels)

    @property
    def refuses_missing(self) -> bool:
        """Whether no record may be missing."""
        return not self.drop and self.instead is None

    def settled(self, codes: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
        """Return codes 0..k-1 without marks, and which records are kept (None: all), where missing is the only mark."""
        if not codes.size or int(codes.min()) >= 0:
            return codes.astype(np.int64), None
        if self.instead is not None:
            values = codes.astype(np.int64)
            values[values == MISSING] = self.labels.index(self.instead)
            return values, None
        kept = codes != MISSING
        return codes[kept].astype(np.int64), kept
