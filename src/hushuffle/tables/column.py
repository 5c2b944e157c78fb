"""`load_column`: one private column becomes codes and labels, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.model import Domain, Population, Warned
from hushuffle.tables.categories import FROM_DATA, ByLabel, Categories, Coding, Reading, coding, missing_label
from hushuffle.tables.records import Records
from hushuffle.tables.sources import Part, open_source, type_name

_MOST_LABELS: Final = 100_000
_LABELS_FROM_DATA: Final = Warned(
    key="categories-from-data",
    sentence="The categories were taken from the data: that a category exists says that somebody is in it.",
    advice="List the categories beforehand, from the questionnaire rather than from the answers.",
)


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
    parts = open_source(source, base_folder=Path() if base_folder is None else base_folder)
    dtypes = _dtypes(parts, column)
    where = f"column {column!r} of {source}" + (f" ({len(parts)} files)" if len(parts) > 1 else "")
    from_data = isinstance(categories, str)
    if isinstance(categories, str):
        _refuse_from_data(categories, allowed=allow_categories_from_data)
        rule = _coding_from_data(parts, dtypes, column, where=where)
    else:
        rule = coding(categories)
    instead = missing_label(missing, rule.labels)
    labels = rule.labels if instead is None or instead in rule.labels else (*rule.labels, instead)
    domain = Domain(labels=labels)
    readings = tuple(Reading.of(column, dtype, numeric=rule.numeric) for dtype in dtypes)
    records = Records.read(parts, readings, rule, where=where)
    records.refuse_unclear(rule)
    if missing == "refuse":
        records.refuse_missing()
    values, dropped = records.joined(None if instead is None else labels.index(instead))
    if not values.size:
        _fail(f"{where}: no records" + (f" are left, all {dropped:,} are missing." if dropped else "."))
    values.flags.writeable = False
    warnings = (_LABELS_FROM_DATA,) if from_data else ()
    kept = records.present if dropped else None
    return Column(values=values, domain=domain, source=where, dropped=dropped, warnings=warnings, kept=kept)


def _refuse_from_data(word: str, *, allowed: bool) -> None:
    if word != FROM_DATA:
        _checks.reject("categories", f'a table, a list or "{FROM_DATA}"', repr(word))
    if not allowed:
        rule = "known beforehand, for labels taken from the data say who is in them"
        _checks.reject("categories", rule, repr(word), "To do it nevertheless: allow_categories_from_data = true.")


def _coding_from_data(parts: tuple[Part, ...], dtypes: list[pl.DataType], column: str, *, where: str) -> Coding:
    """Return the labels that occur: integers in order, then text in order."""
    seen: set[str] = set()
    for part, dtype in zip(parts, dtypes, strict=True):
        reading = Reading.of(column, dtype, numeric=False)
        seen.update(part.distinct(reading.texts.filter(~reading.missing)))
        if len(seen) > _MOST_LABELS:
            _fail(f"{where}: more than {_MOST_LABELS:,} different values. Give the categories as conditions.")
    if len(seen) < 2:
        _fail(f"{where}: fewer than two different values. List the categories.")
    if not all(label.isprintable() for label in seen):
        _fail(f"{where}: a value contains control characters. List the categories.")
    return ByLabel(names=tuple(sorted(seen, key=_in_order)))


def _in_order(label: str) -> tuple[float, str]:
    return (float(label) if label.removeprefix("-").isdecimal() else float("inf"), label)


def _dtypes(parts: tuple[Part, ...], column: str) -> list[pl.DataType]:
    """Return the type of the column in every part: text, numbers or booleans, the same in all."""
    dtypes = [part.dtype(column) for part in parts]
    first: tuple[str, str] | None = None
    for part, dtype in zip(parts, dtypes, strict=True):
        kind = _kind(dtype)
        if not kind:
            _fail(
                f"{part.name}: column {column!r} is of type {type_name(dtype)}. It must hold text, numbers or booleans."
            )
        if not part.typed or dtype == pl.Null:
            continue
        if first is not None and first[0] != kind:
            _fail(f"column {column!r} holds {first[0]} in {first[1]}, but {kind} in {part.name}.")
        first = first or (kind, part.name)
    return dtypes


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "numbers"
    if dtype == pl.Boolean:
        return "booleans"
    return "text" if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null) else ""


def _fail(message: str) -> NoReturn:
    raise DataError(message)
