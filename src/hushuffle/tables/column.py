"""`load_column`: one private column becomes codes and labels, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.model import Domain, Population, Warned
from hushuffle.tables.categories import (
    FROM_DATA,
    MISSING,
    OVERLAP,
    UNSEEN,
    Answers,
    ByLabel,
    Categories,
    Coding,
    Reading,
    coding,
)
from hushuffle.tables.records import TEXT, TableReader, coded
from hushuffle.tables.sources import Part, open_source

_MOST_LABELS: Final = 100_000
_LABELS_FROM_DATA: Final = Warned(
    key="categories-from-data",
    sentence="The categories were taken from the data: that a category exists says that somebody is in it.",
    advice="List the categories beforehand, from the questionnaire rather than from the answers.",
)
MISSING_ADVICE: Final = 'Set missing = "drop" or to a category. Empty fields, blank lines and NaN count as missing.'


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A private column: `values`, integers 0..k-1, shape (n,), read-only; label `domain.labels[i]` has code i.

    `source` says where it came from; `dropped` records were left out because they were missing. `kept`, shape
    (records,), says which were not; None: none was left out.
    """

    values: npt.NDArray[np.int64] = field(repr=False)
    domain: Domain
    source: str
    dropped: int = 0
    warnings: tuple[Warned, ...] = ()
    kept: npt.NDArray[np.bool_] | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of people."""
        return self.values.size

    def population(self) -> Population:
        """Return who was asked, with the true counts by category."""
        counts = np.bincount(self.values, minlength=self.domain.k)
        return Population(
            n=self.n,
            labels=self.domain.labels,
            source=self.source,
            counts=tuple(int(count) for count in counts),
            dropped=self.dropped,
        )


def load_column(
    source: str,
    *,
    column: str,
    categories: Categories,
    missing: str = "refuse",
    base_folder: Path | None = None,
    allow_categories_from_data: bool = False,
) -> Column:
    """Return `column` of `source` as codes.

    Memory: 12 bytes for each record, and the chunks being read.

    Missing is: null (an empty field of a CSV file, also when quoted, and a blank line), empty text, and NaN
    (spelled out in a CSV file: where the categories are conditions on numbers).

    Args:
        source: "statsmodels:NAME", a file (.csv, .csv.gz, .parquet) or a glob of files. CSV is UTF-8, with
            commas and one line of names.
        column: its name.
        categories: a table of conditions by category ({"none": "== 0", "some": "> 0"}), of which every record
            matches exactly one; or a list of labels, compared as text; or "from-data".
        missing: "refuse", "drop", or the category that missing values become.
        base_folder: where relative paths start; None for the current folder.
        allow_categories_from_data: whether "from-data" is allowed.

    Raises:
        DataError: the data cannot be read or do not fit; the message shows no value of the column.
        InvalidInputError: categories or missing are not understood.
        MissingDependencyError: statsmodels is not installed.

    >>> fair = load_column("statsmodels:fair", column="affairs", categories={"none": "== 0", "some": "> 0"})
    >>> fair.n, fair.population().counts
    (6366, (4313, 2053))
    """
    parts = open_source(source, base_folder=base_folder or Path())
    where = f"column {column!r} of {source}" + (f" ({len(parts)} files)" if len(parts) > 1 else "")
    warnings: tuple[Warned, ...] = ()
    if isinstance(categories, str):
        _refuse_from_data(categories, allowed=allow_categories_from_data)
        rule, warnings = _coding_from_data(parts, column, where=where), (_LABELS_FROM_DATA,)
    else:
        rule = coding(categories)
    answers = Answers.with_coding(rule, missing)
    domain = Domain(labels=answers.labels)
    reader = TableReader(parts, {"code": (column, coded(rule))})
    codes = reader.whole()["code"].to_numpy()
    refuse_faults(reader, "code", column, answers, where=where, total=codes.size)
    values, kept = answers.settled(codes)
    dropped = codes.size - values.size
    if not values.size:
        fail(f"{where}: no records" + (f" are left, all {dropped:,} are missing." if dropped else "."))
    values.flags.writeable = False
    return Column(values=values, domain=domain, source=where, dropped=dropped, warnings=warnings, kept=kept)


def refuse_faults(reader: TableReader, name: str, column: str, answers: Answers, *, where: str, total: int) -> None:
    """Raise `DataError` if a record of a column that was read has no category: how many, and which are the first."""
    faults = reader.faults[name]
    if faults.counts[OVERLAP]:
        fail(f"{where}: {_overlap(reader.parts, column, answers.coding)} Make the conditions exclude each other.")
    sentence, many = ": {count} of {total} records ", len(reader.parts) > 1
    about = {UNSEEN: ("match no category", answers.coding.advice)}
    if answers.refuses_missing:
        about[MISSING] = ("are missing", MISSING_ADVICE)
    for mark, (what, advice) in about.items():
        faults.refuse(mark, where, f"{sentence}{what} ({{numbers}}). {advice}", total=total, name_file=many)


def _overlap(parts: tuple[Part, ...], column: str, rule: Coding) -> str:
    """Return which two categories have the most records in common; the parts are read once more."""
    tables = []
    for part in parts:
        reading = Reading.of(column, part.dtypes(column)[0], numeric=rule.numeric)
        tables.append(part.collect(*rule.first_and_last(reading)).filter(pl.col("first") != pl.col("last")))
    pairs = pl.concat(tables).group_by("first", "last").len().sort("len", "first", "last", descending=True)
    first, last, count = pairs.row(0)
    return f"{count:,} records match both {rule.labels[first]!r} and {rule.labels[last]!r}."


def _refuse_from_data(word: str, *, allowed: bool) -> None:
    if word != FROM_DATA:
        _checks.reject("categories", f'a table, a list or "{FROM_DATA}"', repr(word))
    if not allowed:
        rule = "known beforehand, for labels taken from the data say who is in them"
        _checks.reject("categories", rule, repr(word), "To do it nevertheless: allow_categories_from_data = true.")


def _coding_from_data(parts: tuple[Part, ...], column: str, *, where: str) -> Coding:
    """Return the labels that occur: integers in order, then text in order."""
    seen: set[str] = set()
    for texts in TableReader(parts, {"text": (column, replace(TEXT, alike=True))}).distinct():
        seen.update(texts)
        if len(seen) > _MOST_LABELS:
            fail(f"{where}: more than {_MOST_LABELS:,} different values. Give the categories as conditions.")
    if len(seen) < 2:
        fail(f"{where}: fewer than two different values. List the categories.")
    if not all(label.isprintable() for label in seen):
        fail(f"{where}: a value contains control characters. List the categories.")
    return ByLabel(names=tuple(sorted(seen, key=_in_order)))


def _in_order(label: str) -> tuple[float, str]:
    return (float(label) if label.removeprefix("-").isdecimal() else float("inf"), label)
