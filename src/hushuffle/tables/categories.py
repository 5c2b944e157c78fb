"""Read and code a column: Polars expressions map each record to its value and to its category."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.model import NumberGrid
from hushuffle.tables.conditions import Condition, parse_condition
from hushuffle.tables.labels import Bins, Tidying, as_label, missing_label


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


Categories = Mapping[str, str] | Sequence[str | int] | Bins | NumberGrid | Literal["from-data"]

MISSING: Final = -1
UNSEEN: Final = -2
OVERLAP: Final = -3
"""A negative code marks a record that matches no category, or several categories."""


@dataclass(frozen=True, kw_only=True)
class Coding(ABC):
    """A rule that maps each record to a code 0..k-1, or to a negative mark; text is compared after `tidying`."""

    tidying: Tidying = field(default_factory=Tidying)

    @property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The labels of the categories; empty if the categories have no names."""

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def numeric(self) -> bool:
        return False

    @property
    def dates(self) -> bool:
        return False

    @property
    def grid(self) -> NumberGrid | None:
        """The grid of numbers, if codes are positions on a grid (before rounding); None: codes are categories."""
        return None

    def reading(self, column: str, dtype: pl.DataType) -> Reading:
        return Reading.of(column, dtype, numeric=self.numeric, tidying=self.tidying, dates=self.dates)

    @property
    def unfit(self) -> str:
        return "match no category" if self.grid is None else "hold no finite number"

    @property
    @abstractmethod
    def advice(self) -> str:
        """Advice for records that match no category."""

    @abstractmethod
    def codes(self, reading: Reading) -> pl.Expr:
        """Return the code of every record, Int32: 0..k-1, MISSING, UNSEEN or OVERLAP."""

    def first_and_last(self, reading: Reading) -> tuple[pl.Expr, pl.Expr]:
        """The first and the last matching category differ if categories overlap."""
        code = self.codes(reading)
        return code.alias("first"), code.alias("last")


@dataclass(frozen=True, kw_only=True)
class ByCondition(Coding):
    """A coding with a condition for each category; with `dates`, numbers in conditions are days since 1970."""

    conditions: Mapping[str, Condition]
    dates: bool = False
    advice = "Add a category for them."

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.conditions)

    @property
    def numeric(self) -> bool:
        return any(condition.numeric for condition in self.conditions.values())

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
    """A coding in which each label is a category; tidied text must equal the tidied label."""

    names: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names

    @property
    def advice(self) -> str:
        if self.tidying == Tidying():
            return "Labels must match exactly as text: capital letters and spaces matter."
        return "Labels are compared as text."

    def codes(self, reading: Reading) -> pl.Expr:
        # A cast works chunk by chunk; replacing or joining would hold the whole column as text.
        code = (
            reading.texts.cast(pl.Enum(self.tidying.names(self.names)), strict=False)
            .to_physical()
            .cast(pl.Int32)
            .fill_null(UNSEEN)
        )
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)


@dataclass(frozen=True, kw_only=True)
class ByNumber(Coding):
    """A coding for columns that contain the codes: integers 0..k-1."""

    k: int
    labels = ()
    numeric = True

    @property
    def size(self) -> int:
        return self.k

    @property
    def advice(self) -> str:
        return f"Values must be integers from 0 to {self.k - 1:,}."

    def codes(self, reading: Reading) -> pl.Expr:
        inside = reading.numbers.is_between(0, self.k - 1) & (reading.numbers == reading.numbers.floor())
        code = pl.when(inside.fill_null(value=False)).then(reading.numbers).otherwise(UNSEEN)
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)


@dataclass(frozen=True, kw_only=True)
class OnGrid(Coding):
    """A coding for numbers: the codes are positions on a grid, before stochastic rounding to levels."""

    levels: NumberGrid
    numeric = True
    advice = "Values must be numbers with a decimal point and without a unit, such as 12.5."

    @property
    def labels(self) -> tuple[str, ...]:
        return self.levels.labels

    @property
    def grid(self) -> NumberGrid:
        return self.levels

    def codes(self, reading: Reading) -> pl.Expr:
        grid, number = self.levels, reading.numbers
        share = (number.clip(grid.low, grid.high) - grid.low) / (grid.high - grid.low)
        place = (share * grid.top).round(mode="half_to_even").cast(pl.Int32)
        place = (
            pl.when(number < grid.low).then(grid.top + 1).when(number > grid.high).then(grid.top + 2).otherwise(place)
        )
        code = pl.when(number.is_finite().fill_null(value=False)).then(place).otherwise(UNSEEN)
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)


@dataclass(frozen=True, kw_only=True)
class WithOther(Coding):
    """A coding that puts unmatched records of another coding into the category `other`, an existing or new one."""

    inner: Coding
    other: str

    @property
    def labels(self) -> tuple[str, ...]:
        labels = self.inner.labels
        return labels if self.other in labels else (*labels, self.other)

    @property
    def numeric(self) -> bool:
        return self.inner.numeric

    @property
    def dates(self) -> bool:
        return self.inner.dates

    @property
    def advice(self) -> str:
        return self.inner.advice

    def codes(self, reading: Reading) -> pl.Expr:
        code, other = self.inner.codes(reading), self.labels.index(self.other)
        return pl.when(code == UNSEEN).then(pl.lit(other, dtype=pl.Int32)).otherwise(code)

    def first_and_last(self, reading: Reading) -> tuple[pl.Expr, pl.Expr]:
        return self.inner.first_and_last(reading)


def coding(
    categories: Mapping[str, str] | Sequence[str | int] | Bins | NumberGrid,
    *,
    otherwise: str | None = None,
    tidying: Tidying | None = None,
) -> Coding:
    """Return the coding of a column by `categories`, with unmatched values in the category `otherwise`.

    >>> coding(Bins(edges=(0, 18, 65)), otherwise="other").labels
    ('0 to under 18', '18 to under 65', 'other')
    """
    tidy = tidying or Tidying()
    if isinstance(categories, NumberGrid):
        if otherwise is not None:
            _checks.reject("otherwise", "left out for numbers", repr(otherwise))
        return OnGrid(levels=categories, tidying=tidy)
    if not categories:
        _checks.reject("categories", "at least one category", "<none>")
    if isinstance(categories, Mapping | Bins):
        table = categories.conditions if isinstance(categories, Bins) else categories
        conditions = {name: parse_condition(text) for name, text in table.items()}
        if tidy.casefold or tidy.trim:
            conditions = {name: condition.changed(tidy.plain) for name, condition in conditions.items()}
        dates = isinstance(categories, Bins) and categories.dates
        inner: Coding = ByCondition(conditions=conditions, tidying=tidy, dates=dates)
    else:
        names = tuple(as_label(label) for label in categories)
        _refuse_alike(names, tidy)
        inner = ByLabel(names=names, tidying=tidy)
    if otherwise is None:
        return inner
    if not otherwise.strip():
        _checks.reject("otherwise", "the name of a category", repr(otherwise))
    return WithOther(inner=inner, other=otherwise, tidying=tidy)


def _refuse_alike(names: tuple[str, ...], tidying: Tidying) -> None:
    """Refuse names that are equal, or that are equal after tidying."""
    if len(set(names)) != len(names):
        _checks.reject("categories", "distinct", names)
    tidy = tidying.names(names)
    if len(set(tidy)) != len(names):
        first = next(name for place, name in enumerate(names) if tidy[place] in tidy[:place])
        hint = "With trim, surrounding spaces are ignored; with casefold, capital letters are ignored."
        _checks.reject("categories", "distinct", f"{first!r} twice", hint)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Missing values become the category `instead`; if it is None, they are omitted (`drop`) or refused.

    At most `quarantine` per cent of the records may be refused and set aside; None: a refused record is an error.
    """

    coding: Coding
    drop: bool = False
    instead: str | None = None
    quarantine: float | None = None

    @classmethod
    def of(
        cls, categories: Categories | int, missing: str, *, otherwise: str | None = None, tidying: Tidying | None = None
    ) -> Self:
        """`categories` k: the codes 0..k-1. `otherwise` and `tidying` are only for categories with names."""
        if isinstance(categories, str):
            hint = "Released categories must not depend on the data. List the categories."
            _checks.reject("categories", "a table or a list", repr(categories), hint)
        if not isinstance(categories, int):
            return cls.with_coding(coding(categories, otherwise=otherwise, tidying=tidying), missing)
        if missing_label(missing, ()) is not None:
            _checks.reject("missing", '"refuse" or "drop" if categories have no names', repr(missing))
        return cls(
            coding=ByNumber(k=_checks.integer("categories", categories, low=2, high=2**31 - 1)), drop=missing == "drop"
        )

    @classmethod
    def with_coding(cls, rule: Coding, missing: str) -> Self:
        if rule.grid is not None and missing not in ("refuse", "drop"):
            _checks.reject("missing", '"refuse" or "drop" for numbers', repr(missing))
        return cls(coding=rule, drop=missing == "drop", instead=missing_label(missing, rule.labels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories, with the category of missing values if any; empty if the categories have no names."""
        labels = self.coding.labels
        return labels if self.instead is None or self.instead in labels else (*labels, self.instead)

    @property
    def k(self) -> int:
        return self.coding.size if self.instead is None else len(self.labels)

    @property
    def missing_advice(self) -> str:
        return f'Set missing = "drop"{" or to a category" if self.labels and self.coding.grid is None else ""}.'

    @property
    def refuses_missing(self) -> bool:
        return not self.drop and self.instead is None

    def settled(self, codes: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None]:
        """Return codes 0..k-1 and a mask of records with a code (None: all); the only allowed mark is MISSING."""
        if not codes.size or int(codes.min()) >= 0:
            return codes.astype(np.int64), None
        if self.instead is not None:
            values = codes.astype(np.int64)
            values[values == MISSING] = self.labels.index(self.instead)
            return values, None
        settled = codes != MISSING
        return codes[settled].astype(np.int64), settled
