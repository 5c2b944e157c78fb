"""A draft specification for a column of an inspected table; the owner of the data completes it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import polars as pl
import tomli_w

from hushuffle.specification.population import ASKED, NO_COLUMN
from hushuffle.tables.categories import days
from hushuffle.tables.doubts import missing_marks, typing_errors
from hushuffle.tables.inspection import Inspection, Profile
from hushuffle.tables.labels import Bins, Tidying

_MOST: Final = 50
"""Largest number of labels that a draft lists."""

_FEW: Final = 20
"""Numbers and dates with more distinct values than this are put into bins."""

_PEOPLE: Final = 20
"""In tables of 2,000 records or more, the draft omits labels with fewer records than this."""

_SAME: Final = 0.98
"""Columns in which at least this share of records has the same value come last in the list."""

_LIKED: Final = ("text", "booleans", "whole numbers", "dates", "numbers")


def candidates(found: Inspection) -> tuple[Profile, ...]:
    """Return the columns that are suitable for a survey, the most suitable first: few values that many people share."""
    able = [
        column
        for column in found.columns
        if column.kind in _LIKED
        and column.distinct > 1
        and not (column.unique and column.kind != "numbers")
        and not column.names_people
        and (column.exact or column.kind in ("numbers", "whole numbers"))
        and column.name.strip()
    ]
    return tuple(sorted(able, key=_likelihood))


def _likelihood(column: Profile) -> tuple[bool, int, bool, bool, int]:
    share = column.counts["count"][0] / column.present if column.exact else 0.0
    return (
        column.distinct > _MOST,
        ("text", "whole numbers", "booleans", "numbers", "dates").index(column.kind),
        share > _SAME,
        column.distinct == 2,
        column.distinct,
    )


def drafted(found: Inspection, column: Profile, *, data: str) -> str | None:
    """Return the text of a draft specification for a column; it is valid after the owner sets `person`.

    The result is None if too few records have each value of the column, so that no value may be listed. `data` is the
    name of the table in the specification.
    """
    population: dict[str, Any] = {"data": data}
    if found.form is not None:
        form = {"encoding": found.form.encoding} if found.form.decoded else {}
        population |= form if found.form.separator is None else {**form, "separator": found.form.separator}
    population["column"] = column.name
    categories = _categories(column, least=_PEOPLE if found.records >= 100 * _PEOPLE else 1)
    if categories is None:
        return None
    population |= categories
    if column.missing:
        population["missing"] = "no answer"
    k = len(population.get("categories", population.get("bins", ())))
    n = max(found.records, 2)
    document = {
        "title": column.name if column.name.isprintable() else "Survey",
        "population": population,
        "randomizer": {"kind": "randomized-response" if k <= 10 else "subset-selection", "epsilon": 2.0},
        "shuffler": {"kind": "uniform"},
        "targets": {"delta": 10.0 ** -max(6, math.ceil(math.log10(n)) + 1)},
    }
    text = f"{_words(column, population)}\n{tomli_w.dumps(document)}"
    return text.replace("[population]\n", f"[population]\n{_person(found, column)}", 1)


def _person(inspection: Inspection, chosen: Profile) -> str:
    """Return lines that ask whose record a row is, with the candidate columns: only the owner can answer."""
    lines = [
        f'Which column identifies the person of a row? Write its name instead of "{ASKED}", or "{NO_COLUMN}" if every '
        "row is a different person."
    ]
    for column in inspection.people_columns:
        if column.name != chosen.name and column.name.isprintable() and column.name not in (ASKED, NO_COLUMN):
            each = f"{repeats(column)} rows per value, {column.distinct:,} values"
            lines.append(f"{_line(person=column.name)}  # {each}")
    if len(lines) > 1:
        lines.append(f"With a column, also set the largest number of rows per person: {_line(reports_per_person=1)}.")
    return "".join(f"# {line}\n" for line in lines) + f"{_line(person=ASKED)}\n"


def _line(**keys: Any) -> str:
    return tomli_w.dumps(keys).rstrip("\n")


def repeats(column: Profile) -> str:
    """Return the mean number of records per value, as text; it is "1" only if no value occurs twice.

    >>> repeats(Profile(name="id", kind="text", type="text", missing=0, distinct=12_001, exact=True, present=12_361,
    ...                 counts=pl.DataFrame()))
    '1.03'
    """
    mean, places = column.repeats, 1 if column.repeats >= 10 else 2
    shown = f"{mean:,.{places}f}"
    if mean == 1:
        return "1"
    return shown if shown != "1.00" else "a little over 1"


def _words(column: Profile, population: dict[str, Any]) -> str:
    lines = [
        "This is a draft by hushuffle inspect. Check every line before you collect data.",
        "`hushuffle calibrate` finds the epsilon that meets a target.",
    ]
    what = "edges" if "bins" in population else "labels"
    lines.append(
        f"The {what} were taken from the data. Check them against the questionnaire: the presence of a category must "
        "not reveal that a record has it."
    )
    if "otherwise" in population:
        left = f": {column.present - _listed(column, population):,} records" if column.exact else ""
        lines.append(f"Values that are not listed are in the category {population['otherwise']!r}{left}.")
    lines += _doubts(column, population.get("categories", ()))
    return "".join(f"# {line}\n" for line in lines)


def _doubts(column: Profile, listed: Sequence[str]) -> list[str]:
    """Return comments on suspicious labels in the draft; labels of few records are not in the draft."""
    lines = []
    marks = [doubt for doubt in missing_marks(column) if doubt.value.strip() in listed]
    if marks:
        named = ", ".join(f"{doubt.value.strip()!r} ({doubt.records:,})" for doubt in marks)
        lines.append(f"These look like missing answers: {named}. If they are, make them empty fields in the table, and")
        lines.append("remove them from the list.")
    errors = [doubt for doubt in typing_errors(column) if doubt.value.strip() in listed]
    return [
        *lines,
        *(
            f"{doubt.value.strip()!r} ({doubt.records:,}) looks like a typing error of {doubt.meant!r}."
            for doubt in errors
        ),
    ]


def _listed(column: Profile, population: dict[str, Any]) -> int:
    tidying = Tidying(trim=population.get("trim", False), casefold=population.get("casefold", False))
    if "bins" in population:
        return int(_in_numbers(column)["count"].sum())
    names = tidying.names(population["categories"])
    tidy = column.counts.with_columns(tidying.of(pl.col("value")))
    return int(tidy.filter(pl.col("value").is_in(names))["count"].sum())


def _categories(column: Profile, *, least: int) -> dict[str, Any] | None:
    """Return the keys that define the categories; labels of fewer than `least` records are not listed."""
    if column.kind in ("numbers", "whole numbers", "dates") and column.distinct > _FEW:
        edges = _date_edges(column) if column.kind == "dates" else _number_edges(column)
        if edges:
            bins: dict[str, Any] = {"bins": [-math.inf, *edges, math.inf]}
            Bins(edges=tuple(bins["bins"]))
            rest = column.exact and int(_in_numbers(column)["count"].sum()) < column.present
            return bins | ({"otherwise": "other"} if rest or not column.exact else {})
    return _labels(column, least)


def _labels(column: Profile, least: int) -> dict[str, Any] | None:
    tidying = column.tidying
    groups = (
        column.counts.with_columns(tidy=tidying.of(pl.col("value")))
        .group_by("tidy", maintain_order=True)
        .agg(pl.col("value").first(), pl.col("count").sum())
        .sort(["count", "tidy"], descending=[True, False])
    )
    common = groups.filter(pl.col("count") >= least).head(_MOST)["value"].to_list()
    names = [Tidying(trim=tidying.trim).plain(name) for name in common if name.isprintable() and name.strip()]
    if not names:
        return None
    keys: dict[str, Any] = {"categories": sorted(names, key=_in_order)}
    keys |= {key: True for key in ("trim", "casefold") if getattr(tidying, key)}
    if not column.exact or len(names) < groups.height or len(names) < 2:
        others = ("other", "none of these", "any other value", "a value that is not listed")
        keys["otherwise"] = next(word for word in others if word not in names)
    return keys


def _in_order(label: str) -> tuple[float, str]:
    return (float(label) if label.removeprefix("-").isdecimal() else math.inf, label)


def _in_numbers(column: Profile) -> pl.DataFrame:
    """Return the values of a column as numbers, dates as days, with their counts."""
    text = pl.col("value")
    number = days(text) if column.kind == "dates" else text.str.strip_chars().cast(pl.Float64, strict=False)
    return column.counts.select(number.alias("number"), "count").drop_nulls().filter(pl.col("number").is_finite())


def _number_edges(column: Profile) -> list[float | int]:
    """Return numbers of two significant digits that divide the values into about five parts."""
    table = _in_numbers(column).sort("number")
    if not table.height:
        return []
    below = table["count"].cum_sum() / table["count"].sum()
    cuts = [float(table["number"][int(below.search_sorted(share))]) for share in (0.2, 0.4, 0.6, 0.8)]
    rounded = sorted({float(f"{cut:.1e}") for cut in cuts})
    low, high = float(table["number"][0]), float(table["number"][-1])
    return [int(edge) if edge.is_integer() else edge for edge in rounded if low < edge <= high]


def _date_edges(column: Profile) -> list[date]:
    """Return first days of years, or first days of months if all dates are in one year."""
    numbers = _in_numbers(column)["number"]
    first, last = (date.fromordinal(date(1970, 1, 1).toordinal() + int(day)) for day in (numbers.min(), numbers.max()))  # type: ignore[arg-type]
    if first.year < last.year:
        step = -(-(last.year - first.year) // 10)
        return [date(year, 1, 1) for year in range(first.year + 1, last.year + 1, step)]
    return [date(first.year, month, 1) for month in range(first.month + 1, last.month + 1)]


def data_name(source: str, out: Path | None) -> str:
    """Return the path of a table for a specification in the file `out`; a relative path starts at its folder."""
    if out is None or ":" in source or Path(source).expanduser().is_absolute():
        return source
    return os.path.relpath(source, out.parent)
