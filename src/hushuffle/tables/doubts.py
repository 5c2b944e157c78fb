"""Suspicious values in a column: marks of missing answers, typing errors, and a value in place of the column's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from hushuffle.tables.inspection import Profile

_MARKS: Final = frozenset(
    (
        *("", "-", "--", "---", "\u2013", "\u2014", ".", "?", "na", "n/a", "#n/a", "n.a.", "nan", "null", "nil"),
        *(
            "k.a.",
            "k. a.",
            "keine angabe",
            "s/d",
            "s.d.",
            "n.s.p.",
            "nsp",
            "missing",
            "empty",
            "no data",
            "not available",
        ),
    )
)
_CODES: Final = re.compile(r"-?9{1,4}|-1|0")
"""Numbers that mean a missing answer in a column of words."""

_SHORTEST: Final = 4
_TIMES: Final = 10
"""A value counts as a typing error if the intended value is at least this many times as frequent."""

_LOOKED: Final = 2000
_MEANT: Final = 50


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A suspicious value with its number of records; `meant` is the intended value, None: a missing answer."""

    value: str
    records: int
    meant: str | None = None


def marks_missing(value: str) -> bool:
    """Return whether a value is a common mark of a missing answer.

    >>> marks_missing("N/A"), marks_missing("none")
    (True, False)
    """
    return value.strip().casefold() in _MARKS


def missing_marks(column: Profile) -> tuple[Doubt, ...]:
    if column.kind == "dates" or not column.exact:
        return ()
    rows = column.counts.head(_LOOKED).iter_rows()
    return tuple(
        Doubt(value=value, records=count)
        for value, count in rows
        if marks_missing(value) or (column.kind == "text" and _CODES.fullmatch(value.strip()))
    )


def typing_errors(column: Profile) -> tuple[Doubt, ...]:
    """Return the text values that differ by one letter from a far more frequent value.

    >>> counts = pl.DataFrame({"value": ["weekly", "never", "weekly.", "nevr"], "count": [400, 300, 35, 30]})
    >>> column = Profile(name="x", kind="text", type="text", missing=0, distinct=4, exact=True, present=765,
    ...                  counts=counts)
    >>> [(doubt.value, doubt.meant) for doubt in typing_errors(column)]
    [('weekly.', 'weekly'), ('nevr', 'never')]
    """
    if column.kind != "text" or not column.exact:
        return ()
    return tuple(_errors(list(column.counts.head(_LOOKED).iter_rows())))


def _errors(rows: list[tuple[str, int]]) -> Iterator[Doubt]:
    meant = [(value, value.strip().casefold(), count) for value, count in rows[:_MEANT]]
    for value, count in rows:
        plain = value.strip().casefold()
        if len(plain) < _SHORTEST or any(letter.isdigit() for letter in plain):
            continue
        for other, likely, times in meant:
            if times >= _TIMES * count and _one_apart(plain, likely):
                yield Doubt(value=value, records=count, meant=other)
                break


def _one_apart(first: str, other: str) -> bool:
    """Return whether two texts differ by one letter (missing, added or changed) or by two exchanged letters."""
    short, long = sorted((first, other), key=len)
    if len(long) - len(short) > 1 or len(short) < _SHORTEST or first == other:
        return False
    place = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[place:] == long[place + 1 :]
    swapped = short[:place] + short[place : place + 2][::-1] + short[place + 2 :]
    return short[place + 1 :] == long[place + 1 :] or swapped == long


def names_a_value(column: Profile) -> bool:
    """Return whether a column's name is a number or one of its values, so that the line of names may be missing."""
    number = pl.Series([column.name.strip()]).cast(pl.Float64, strict=False).is_not_null().item()
    return bool(number) or column.name in column.counts["value"].head(_LOOKED).to_list()
