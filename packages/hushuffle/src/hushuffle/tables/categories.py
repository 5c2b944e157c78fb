"""What a value of a column means: rules, as Polars expressions, that map each record to a value, a code or a mark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.model import NumberGrid
from hushuffle.tables.labels import Bins, Condition, NumberConditions, Tidying, as_label, missing_label, parse_condition

MISSING: Final = -1
UNSEEN: Final = -2
OVERLAP: Final = -3
"""A negative code marks a record that matches no category, or several categories."""

Marks = npt.NDArray[np.integer]
"""For each record, a code >= 0, or the reason why it has no value: MISSING, UNSEEN, OVERLAP."""

Categories = Mapping[str, str] | Sequence[str | int] | Bins | NumberConditions | NumberGrid | Literal["from-data"]


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


def nulls(values: pl.Series) -> Marks:
    return np.where(values.is_null().to_numpy(), MISSING, 0)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a column is read: `read` computes its values, `takes` tests its type, and `must` describes allowed types.

    `marks` returns a negative mark (the reason) for records without a value. `alike`: all files need the same type.
    """

    read: Callable[[str, pl.DataType], pl.Expr]
    marks: Callable[[pl.Series], Marks] = nulls
    takes: Callable[[pl.DataType], bool | str] = lambda _: True
    must: str = "It must hold text, numbers or booleans."
    alike: bool = False


def kind_of(dtype: pl.DataType) -> str:
    """Return the kind of a type: numbers, booleans or text; empty for other types."""
    if dtype.is_numeric():
        return "numbers"
    if dtype == pl.Boolean:
        return "booleans"
    return "text" if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null) else ""


def _number(column: str, dtype: pl.DataType) -> pl.Expr:
    reading = Reading.of(column, dtype, numeric=True)
    return pl.when(~reading.missing).then(reading.numbers.cast(pl.Float64).fill_null(np.nan))


def _no_numbers(values: pl.Series) -> Marks:
    marks = nulls(values)
    marks[~np.isfinite(values.fill_null(0.0).to_numpy())] = UNSEEN
    return marks


def _as_text(column: str, _: pl.DataType) -> pl.Expr:
    text = pl.col(column).cast(pl.String)
    return pl.when(text != "").then(text)


def labelled(tidying: Tidying | None = None, *, alike: bool = True) -> Rule:
    """Return the rule that reads labels as text, also from numbers; missing values are null."""

    def read(column: str, dtype: pl.DataType) -> pl.Expr:
        reading = Reading.of(column, dtype, numeric=False, tidying=tidying)
        return pl.when(~reading.missing).then(reading.texts)

    return Rule(read=read, takes=kind_of, alike=alike)


def given(expression: pl.Expr) -> Rule:
    return Rule(read=lambda _column, _dtype: expression)


NUMBER: Final = Rule(read=_number, marks=_no_numbers, takes=kind_of)
"""Finite numbers: a missing value is null; text that is no number is NaN. NaN and infinity are marked as unseen."""

TEXT: Final = labelled(alike=False)
"""Reads text and numbers, as text; a missing value becomes null."""

ANYTHING: Final = Rule(read=_as_text)
"""Reads every type that has a text form, also dates, as text; a missing value becomes null."""

ID: Final = Rule(
    read=_as_text,
    takes=lambda dtype: dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum),
    must="Ids must be text or integers.",
)


@dataclass(frozen=True, kw_only=True)
class Coding(ABC):
    """What a value means: a rule that maps each record to a code 0..k-1, or to a negative mark.

    `names` are the categories, if they have names. Text is compared after `tidying`. With `numeric`, the text NaN is
    missing; with `dates`, numbers are days since 1970. Unmatched records go into the category `other`, if it is given.
    """

    names: tuple[str, ...] = ()
    tidying: Tidying = field(default_factory=Tidying)
    numeric: bool = False
    dates: bool = False
    other: str | None = None
    grid: NumberGrid | None = None
    """The grid of numbers, if codes are positions on a grid (before rounding); None: codes are categories."""
    finite: bool = False
    """Whether all finite numbers, and nothing else, have a code: then no further category is possible."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the categories; empty if the categories have no names."""
        return self.names if self.other is None or self.other in self.names else (*self.names, self.other)

    @property
    def size(self) -> int:
        return len(self.labels)

    @property
    def unfit(self) -> str:
        return "hold no finite number" if self.finite else "match no category"

    @property
    def advice(self) -> str:
        """Advice for records that match no category."""
        if self.finite:
            return "Values must be numbers with a decimal point and without a unit, such as 12.5."
        return "Add a category for them."

    @abstractmethod
    def code(self, reading: Reading) -> pl.Expr:
        """Return the code of every record that is not missing: 0..k-1, UNSEEN or OVERLAP."""

    def reading(self, column: str, dtype: pl.DataType) -> Reading:
        return Reading.of(column, dtype, numeric=self.numeric, tidying=self.tidying, dates=self.dates)

    def codes(self, reading: Reading) -> pl.Expr:
        """Return the code of every record, Int32: 0..k-1, MISSING, UNSEEN or OVERLAP."""
        code = self.code(reading)
        if self.finite:
            code = pl.when(reading.numbers.is_finite().fill_null(value=False)).then(code).otherwise(UNSEEN)
        code = pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)
        if self.other is None:
            return code
        return pl.when(code == UNSEEN).then(pl.lit(self.labels.index(self.other), dtype=pl.Int32)).otherwise(code)

    def first_and_last(self, reading: Reading) -> tuple[pl.Expr, pl.Expr]:
        """The first and the last matching category differ if categories overlap."""
        return self.codes(reading), self.codes(reading)


@dataclass(frozen=True, kw_only=True)
class ByCondition(Coding):
    """A coding with a condition for each category; with `dates`, numbers in conditions are days since 1970."""

    conditions: tuple[Condition, ...]

    def code(self, reading: Reading) -> pl.Expr:
        matched = self._matched(reading)
        count = pl.sum_horizontal(each.cast(pl.Int32) for each in matched)
        first = pl.sum_horizontal(each.cast(pl.Int32) * code for code, each in enumerate(matched))
        return pl.when(count == 1).then(first).when(count == 0).then(UNSEEN).otherwise(OVERLAP)

    def first_and_last(self, reading: Reading) -> tuple[pl.Expr, pl.Expr]:
        places = [pl.when(each).then(code) for code, each in enumerate(self._matched(reading))]
        present = pl.when(~reading.missing)
        return present.then(pl.min_horizontal(places)), present.then(pl.max_horizontal(places))

    def _matched(self, reading: Reading) -> list[pl.Expr]:
        return [each.matches(numbers=reading.numbers, texts=reading.texts) for each in self.conditions]


@dataclass(frozen=True, kw_only=True)
class ByLabel(Coding):
    """A coding in which each label is a category; tidied text must equal the tidied label."""

    @property
    def advice(self) -> str:
        if self.tidying == Tidying():
            return "Labels must match exactly as text: capital letters and spaces matter."
        return "Labels are compared as text."

    def code(self, reading: Reading) -> pl.Expr:
        # A cast works chunk by chunk; replacing or joining would hold the whole column as text.
        labels = pl.Enum(self.tidying.names(self.names))
        return reading.texts.cast(labels, strict=False).to_physical().cast(pl.Int32).fill_null(UNSEEN)


@dataclass(frozen=True, kw_only=True)
class ByNumber(Coding):
    """A coding for columns that contain the codes: integers 0..k-1."""

    k: int
    numeric: bool = True

    @property
    def size(self) -> int:
        return self.k

    @property
    def advice(self) -> str:
        return f"Values must be integers from 0 to {self.k - 1:,}."

    def code(self, reading: Reading) -> pl.Expr:
        inside = reading.numbers.is_between(0, self.k - 1) & (reading.numbers == reading.numbers.floor())
        return pl.when(inside.fill_null(value=False)).then(reading.numbers).otherwise(UNSEEN)


@dataclass(frozen=True, kw_only=True)
class OnGrid(Coding):
    """A coding for numbers: the codes are positions on a grid, before stochastic rounding to levels."""

    grid: NumberGrid
    numeric: bool = True
    finite: bool = True

    def code(self, reading: Reading) -> pl.Expr:
        grid, number = self.grid, reading.numbers
        share = (number.clip(grid.low, grid.high) - grid.low) / (grid.high - grid.low)
        place = (share * grid.top).round(mode="half_to_even").cast(pl.Int32)
        below, above = number < grid.low, number > grid.high
        return pl.when(below).then(grid.top + 1).when(above).then(grid.top + 2).otherwise(place)


def coding(
    categories: Mapping[str, str] | Sequence[str | int] | Bins | NumberConditions | NumberGrid,
    *,
    otherwise: str | None = None,
    tidying: Tidying | None = None,
) -> Coding:
    """Return the coding of a column by `categories`, with unmatched values in the category `otherwise`.

    >>> coding(Bins(edges=(0, 18, 65)), otherwise="other").labels
    ('0 to under 18', '18 to under 65', 'other')
    """
    tidy = tidying or Tidying()
    match categories:
        case NumberGrid():
            if otherwise is not None:
                _checks.reject("otherwise", "left out for numbers", repr(otherwise))
            return OnGrid(grid=categories, names=categories.labels, tidying=tidy)
        case NumberConditions(conditions):
            met = tuple(parse_condition(text) for text in conditions.values())
            return ByCondition(names=tuple(conditions), conditions=met, tidying=tidy, numeric=True, finite=True)
        case Bins():
            inner = _by_condition(categories.conditions, otherwise, tidy, dates=categories.dates)
        case _ if not categories:
            _checks.reject("categories", "at least one category", "<none>")
        case Mapping():
            inner = _by_condition(categories, otherwise, tidy, dates=False)
        case _:
            names = tuple(as_label(label) for label in categories)
            _refuse_alike(names, tidy)
            inner = ByLabel(names=names, other=otherwise, tidying=tidy)
    if otherwise is not None and not otherwise.strip():
        _checks.reject("otherwise", "the name of a category", repr(otherwise))
    return inner


def _by_condition(table: Mapping[str, str], other: str | None, tidying: Tidying, *, dates: bool) -> Coding:
    conditions = tuple(parse_condition(text) for text in table.values())
    if tidying != Tidying():
        conditions = tuple(condition.changed(tidying.plain) for condition in conditions)
    numeric = any(condition.numeric for condition in conditions)
    return ByCondition(
        names=tuple(table), conditions=conditions, numeric=numeric, dates=dates, other=other, tidying=tidying
    )


def _refuse_alike(names: tuple[str, ...], tidying: Tidying) -> None:
    """Refuse names that are equal, or that are equal after tidying."""
    if len(set(names)) != len(names):
        _checks.reject("categories", "distinct", names)
    tidy = tidying.names(names)
    if len(set(tidy)) != len(names):
        first = next(name for place, name in enumerate(names) if tidy[place] in tidy[:place])
        hint = "With trim, surrounding spaces are ignored; with casefold, capital letters are ignored."
        _checks.reject("categories", "distinct", f"{first!r} twice", hint)


def coded(coding: Coding) -> Rule:
    """Return the rule that reads a column of categories as codes, Int32, with negative marks for other records."""
    return Rule(
        read=lambda column, dtype: coding.codes(coding.reading(column, dtype)),
        marks=lambda codes: codes.to_numpy(),
        takes=(lambda dtype: kind_of(dtype) == "text" or dtype.is_temporal()) if coding.dates else kind_of,
        must="It must hold dates, or dates as text." if coding.dates else Rule.must,
        alike=not coding.dates,
    )


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
        return f'Set missing = "drop"{" or to a category" if self.labels and not self.coding.finite else ""}.'

    @property
    def refuses_missing(self) -> bool:
        return not self.drop and self.instead is None

    def values(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return codes 0..k-1; the only allowed mark is MISSING, which becomes the category `instead`."""
        values = codes.astype(np.int64)
        if self.instead is not None:
            values[values == MISSING] = self.labels.index(self.instead)
        return values
