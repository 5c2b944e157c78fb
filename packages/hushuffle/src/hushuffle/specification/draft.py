"""A draft specification for columns of an inspected table; the owner of the data completes it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import polars as pl
import tomli_w

from hushuffle.specification.population import ASKED, NO_COLUMN
from hushuffle.tables.categories import days
from hushuffle.tables.inspection import Inspection, Profile, missing_marks, typing_errors
from hushuffle.tables.labels import Bins, Tidying
from hushuffle.tables.people import normal

_MOST: Final = 50
"""Largest number of labels that a draft lists."""

_FEW: Final = 20
"""Numbers with more distinct values than this are drafted as numbers, and dates as bins."""

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


def drafted(found: Inspection, *columns: Profile, data: str, person: str | None = None) -> str | None:
    """Return the text of a draft specification for columns; it is valid after the owner replaces every "?".

    The result is None if a column has too few records of each value, so that no value may be listed. `data` is the
    name of the table in the specification. `person` is the column that identifies people, or "none"; None asks for it.
    """
    least = _PEOPLE if found.records >= 100 * _PEOPLE else 1
    population: dict[str, Any] = {"data": data}
    if found.form is not None:
        form = {"encoding": found.form.encoding} if found.form.decoded else {}
        population |= form if found.form.separator is None else {**form, "separator": found.form.separator}
    parts = [(column, keys) for column in columns if (keys := _answers(column, least=least)) is not None]
    if len(parts) < len(columns):
        return None
    n = max(found.records, 2)
    targets: dict[str, Any] = {"delta": 10.0 ** -max(6, math.ceil(math.log10(n)) + 1)}
    rows = _person(found, columns, person)
    title = ", ".join(column.name for column in columns)
    document: dict[str, Any] = {"title": title if title.isprintable() else "Survey", "population": population}
    if len(columns) == 1:
        population |= parts[0][1]
        document["randomizer"] = _randomizer(population)
    if len(columns) > 1 or "kind" in population or _line(reports_per_person=ASKED) in rows:
        targets["epsilon"] = ASKED
    tail = {"shuffler": {"kind": "uniform"}, "targets": targets}
    tables = [tomli_w.dumps(document | tail)] if len(columns) == 1 else [tomli_w.dumps(document)]
    if len(columns) > 1:
        tables += [*_tables(parts), tomli_w.dumps(tail)]
    head = [*_INTRODUCTION, *(_words(*parts[0]) if len(columns) == 1 else ())]
    text = f"{_comments(head)}\n{chr(10).join(tables)}"
    for key, words in _OPEN.items():
        text = text.replace(f"\n{_line(**{key: ASKED})}\n", f"\n{_comments(words)}{_line(**{key: ASKED})}\n")
    text = text.replace(_TARGET, f"{_comments(_LIMIT)}{_TARGET}")
    return text.replace("[population]\n", f"[population]\n{rows}", 1)


_INTRODUCTION: Final = (
    "This is a draft by hushuffle inspect. Check every line before you collect data.",
    "`hushuffle calibrate` finds the epsilon that meets a target.",
)
_OPEN: Final = {
    "low": ("The smallest and the largest number that count. A number outside counts as the nearer bound.",),
    "levels": ("The number of equally spaced levels to which numbers are rounded, such as 11 (see hs.best_levels).",),
}
"""Keys of numbers that the owner must decide, with comments."""

_NUMBERS: Final = {"kind": "number", **dict.fromkeys(("low", "high", "levels"), ASKED)}
_TARGET: Final = f'epsilon = "{ASKED}"\n'
_LIMIT: Final = ("The largest central epsilon of all reports of one person together, such as 1.0.",)
_NAMED: Final = re.compile(r"\w[\w-]{0,99}")


def _comments(lines: Iterable[str]) -> str:
    return "".join(f"# {line}\n" for line in lines)


def _answers(column: Profile, *, least: int) -> dict[str, Any] | None:
    """Return the keys that describe the answers of a column; None if no value may be listed."""
    numbers = column.kind in ("numbers", "whole numbers") and column.distinct > _FEW
    if numbers and _in_numbers(column).height == column.counts.height:  # no counted value is another
        keys: dict[str, Any] | None = dict(_NUMBERS)
    else:
        keys = _categories(column, least=least)
    if keys is None:
        return None
    missing = "drop" if "kind" in keys else "no answer"
    return {"column": column.name, **keys, **({"missing": missing} if column.missing else {})}


def _randomizer(answers: Mapping[str, Any]) -> dict[str, Any]:
    k = len(answers.get("categories", answers.get("bins", ())))
    return {"kind": "randomized-response" if k <= 10 else "subset-selection", "epsilon": 2.0}


def _tables(parts: Sequence[tuple[Profile, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield a [[columns]] table for each column, each with its randomizer."""
    names: list[str] = []
    for place, (column, keys) in enumerate(parts, start=1):
        name = column.name if _NAMED.fullmatch(column.name) else re.sub(r"\W+", "-", column.name).strip("-")[:90]
        if not name or name.casefold() in names:
            name = f"{name}-{place}".lstrip("-")
        names.append(name.casefold())
        answers = {**({} if name == column.name else {"name": name}), **keys}
        randomizer = tomli_w.dumps({"randomizer": _randomizer(keys)}).replace("[", "[columns.", 1)
        yield f"{_comments(_words(column, keys))}[[columns]]\n{tomli_w.dumps(answers)}\n{randomizer}"


def _person(inspection: Inspection, chosen: Sequence[Profile], person: str | None) -> str:
    """Return lines that say or ask whose record a row is: only the owner can decide it."""
    if person is None:
        return _which(inspection, chosen)
    if person != NO_COLUMN:
        return _rows_of(inspection.column(person), several=len(chosen) > 1)
    names = {column.name for column in chosen}
    repeated = [column for column in repeated_ids(inspection) if column.name not in names]
    lines = [f"Each row counts as another person. Values of {_each(column)}." for column in repeated]
    return f"{_comments(lines)}{_line(person=NO_COLUMN)}\n"


def repeated_ids(inspection: Inspection) -> list[Profile]:
    """Return the columns with repeated values that probably are ids of people: by their names, or as texts.

    Numbers such as ages and amounts also repeat, so other numbers are not listed.
    """
    likely = [column for column in inspection.people_columns if column.names_people]
    return [column for column in likely if column.named_so or column.kind == "text"]


def _each(column: Profile) -> str:
    name = column.name if column.name.isprintable() else "a column"
    return f"{name} repeat: {repeats(column)} rows per value, {column.distinct:,} values"


def _rows_of(person: Profile, *, several: bool) -> str:
    """Return lines for a column that identifies people; reports_per_person is a question if their rows repeat."""
    most = most_rows(person)
    if several:
        return f"{_comments(['Every row has another id.'])}{_line(person=NO_COLUMN)}\n"
    if most == 1:
        return f"{_line(person=person.name)}\n"
    lines = [
        "The largest number of rows per person that are used; further rows are left out at random. This number is "
        "public: decide it without these data, such as from the plan of the survey.",
    ]
    if most is not None:
        lines.append(f"In this table a person has up to {most:,} rows. This is true data: delete this line afterwards.")
    return f"{_line(person=person.name)}\n{_comments(lines)}{_line(reports_per_person=ASKED)}\n"


def most_rows(person: Profile) -> int | None:
    """Return the largest number of rows of one person; None if there are too many people to count, or missing ids.

    Spellings that only differ in spaces, capital letters or the form of a number are one person.
    """
    if not person.exact or person.missing:
        return None
    ids = person.counts.select(normal(pl.col("value")), "count")
    return int(ids.group_by("value").agg(pl.col("count").sum())["count"].max() or 0)  # type: ignore[arg-type]


def _which(inspection: Inspection, chosen: Sequence[Profile]) -> str:
    """Return lines that ask whose record a row is, with the candidate columns."""
    several, names = len(chosen) > 1, {column.name for column in chosen}
    question = (
        f'Is every row a different person? Then write "{NO_COLUMN}" instead of "{ASKED}". If a person may have several '
        "rows, draft one column at a time, with --person."
        if several
        else f'Which column identifies the person of a row? Write its name instead of "{ASKED}", or "{NO_COLUMN}" if '
        "every row is a different person."
    )
    lines = [question]
    for column in inspection.people_columns:
        if column.name not in names and column.name.isprintable() and column.name not in (ASKED, NO_COLUMN):
            each = f"{repeats(column)} rows per value, {column.distinct:,} values"
            lines.append(f"Values of {_each(column)}." if several else f"{_line(person=column.name)}  # {each}")
    if len(lines) > 1 and not several:
        lines.append(f"With a column, also set the largest number of rows per person: {_line(reports_per_person=1)}.")
    return f"{_comments(lines)}{_line(person=ASKED)}\n"


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


def _words(column: Profile, keys: Mapping[str, Any]) -> list[str]:
    """Return comments on the answers of a column."""
    if "kind" in keys:
        lines = [
            "The bounds low and high are public. Decide them without these data, such as from the questionnaire: "
            "bounds taken from the data reveal the extreme answers.",
            "For shares of intervals, replace kind, low, high and levels by bins, such as [0, 10, 20, inf].",
        ]
        dropped = f"{column.missing:,} records have no number: they are left out, and their number is revealed."
        return [*lines, *([dropped] if column.missing else [])]
    what = "edges" if "bins" in keys else "labels"
    lines = [
        f"The {what} were taken from the data. Check them against the questionnaire: the presence of a category must "
        "not reveal that a record has it."
    ]
    if "otherwise" in keys:
        left = f": {column.present - _listed(column, keys):,} records" if column.exact else ""
        lines.append(f"Values that are not listed are in the category {keys['otherwise']!r}{left}.")
    return [*lines, *_doubts(column, keys.get("categories", ()))]


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


def _listed(column: Profile, population: Mapping[str, Any]) -> int:
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
