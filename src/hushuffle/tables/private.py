"""Private columns: as codes and numbers in memory, or as codes some records at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.model import Domain, Population, Warned
from hushuffle.tables.categories import (
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
from hushuffle.tables.labels import FROM_DATA
from hushuffle.tables.reader import ID, NUMBER, TEXT, Faults, Marks, TableReader, coded
from hushuffle.tables.sources import Part, open_all, open_source

BATCH: Final = 1 << 18
"""Records in a batch, at most."""

_MOST_LABELS: Final = 100_000
_LABELS_FROM_DATA: Final = Warned(
    key="categories-from-data",
    sentence="The categories were taken from the data: that a category exists says that somebody is in it.",
    advice="List the categories beforehand, from the questionnaire rather than from the answers.",
)
_MISSING_ADVICE: Final = 'Set missing = "drop" or to a category. Empty fields, blank lines and NaN count as missing.'
_OVERLAP_ADVICE: Final = "Make the conditions exclude each other."
_LABEL: Final = replace(TEXT, alike=True)
_NUMBER: Final = replace(
    NUMBER,
    takes=lambda dtype: dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null),
    must="It must hold numbers.",
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
    """Return `column` of `source` as codes. Memory: 12 bytes for each record, and the chunks being read.

    A source is "statsmodels:NAME", a file (.csv, .csv.gz, .parquet) or a glob of files; relative paths start at
    `base_folder`, or the current folder. CSV is UTF-8, with commas and one line of names. Categories are a table of
    conditions ({"none": "== 0", "some": "> 0"}), of which every record matches exactly one, a list of labels, compared
    as text, or "from-data", if that is allowed. Missing values are refused, dropped ("drop"), or become a category.

    Missing is: null (an empty field of a CSV file, also when quoted, and a blank line), empty text, and NaN
    (spelled out in a CSV file: where the categories are conditions on numbers).

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
    _refuse_answers(reader, "code", column, answers, where=where, total=codes.size)
    values, kept = answers.settled(codes)
    dropped = codes.size - values.size
    if not values.size:
        fail(f"{where}: no records" + (f" are left, all {dropped:,} are missing." if dropped else "."))
    values.flags.writeable = False
    return Column(values=values, domain=domain, source=where, dropped=dropped, warnings=warnings, kept=kept)


def _refuse_answers(
    reader: TableReader, name: str, column: str, answers: Answers, *, where: str, total: int | None
) -> None:
    """Refuse records without a category: how many of a `total`, where that is known, and which are the first."""
    faults = reader.faults[name]
    if total is None:
        faults.refuse(
            OVERLAP, where, ": records match several categories ({numbers}). Make the conditions exclude each other."
        )
    elif faults.counts[OVERLAP]:
        fail(f"{where}: {_overlap(reader.parts, column, answers.coding)} {_OVERLAP_ADVICE}")
    about = [(UNSEEN, "match no category", answers.coding.advice), (MISSING, "are missing", _MISSING_ADVICE)]
    many = ": records" if total is None else f": {{count}} of {total:,} records"
    for mark, what, advice in about[: 2 if answers.refuses_missing else 1]:
        sentence = f"{many} {what} ({{numbers}}). {advice}"
        faults.refuse(mark, where, sentence, name_file=total is not None and len(reader.parts) > 1)


def _overlap(parts: Sequence[Part], column: str, rule: Coding) -> str:
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
    for texts in TableReader(parts, {"text": (column, _LABEL)}).distinct():
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Records that are kept: `values`, codes 0..k-1, shape (n,), and the text of their `ids`, if asked for."""

    values: npt.NDArray[np.int64] = field(repr=False)
    ids: pl.Series | None = field(default=None, repr=False)
    dropped: int = 0


class ColumnBatches:
    """The records of `column` in files, folders, globs or bundled data sets, read part by part in bounded memory.

    `answers` says what its values mean; the text of the column `ids`, if there is one, is read beside it. Messages call
    a source as `called` says, for its name may be private; no message shows a value.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        column: str,
        answers: Answers,
        ids: str | None = None,
        base_folder: Path = Path(),
        called: Mapping[str, str] | None = None,
    ) -> None:
        self._column, self._answers, self._ids = column, answers, ids
        wanted = {"code": (column, coded(answers.coding))} | ({} if ids is None else {"id": (ids, ID)})
        self._reader = TableReader(tuple(open_all(sources, base_folder=base_folder, called=called or {})), wanted)

    def count(self) -> int:
        """Return about how many records there are, to tell how far the reading is."""
        return sum(part.count() for part in self._reader.parts)

    def __iter__(self) -> Iterator[Batch]:
        for block in self._reader.blocks(rows=BATCH):
            where = f"column {self._column!r} of {block.part.name}"
            _refuse_answers(self._reader, "code", self._column, self._answers, where=where, total=None)
            values, kept = self._answers.settled(block.frame["code"].to_numpy())
            ids = None
            if self._ids is not None:
                ids = block.frame["id"] if kept is None else block.frame["id"].filter(pl.Series(kept))
                if ids.null_count():
                    fail(f"{block.part.name}: column {self._ids!r} has records without an id. Every record needs one.")
            yield Batch(values=values, ids=ids, dropped=block.frame.height - values.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateTable:
    """Records of people: `groups`, codes of each categorical column, and `numbers` of each other one, shape (n,)."""

    groups: Mapping[str, npt.NDArray[np.int64]] = field(repr=False)
    numbers: Mapping[str, npt.NDArray[np.float64]] = field(repr=False)
    n: int
    source: str
    dropped: int = 0


def load_table(
    source: str,
    *,
    categories: Mapping[str, Categories],
    numbers: Sequence[str] = (),
    missing: Literal["refuse", "drop"] = "refuse",
    base_folder: Path | None = None,
) -> PrivateTable:
    """Return columns of `source` (as `load_column`): of groups, with their `categories`, and of finite `numbers`.

    "drop" leaves out every record in which one of the columns is missing.

    Raises:
        DataError: the data cannot be read or do not fit; the message shows no value.
        MissingDependencyError: statsmodels is not installed.

    >>> table = load_table("statsmodels:fair", categories={"religious": [1, 2, 3, 4]}, numbers=["educ"])
    >>> table.n, table.groups["religious"][:3].tolist(), table.numbers["educ"][:3].tolist()
    (6366, [2, 0, 0], [17.0, 14.0, 16.0])
    """
    answers = {name: Answers.of(groups, missing) for name, groups in categories.items()}
    wanted = {f"group {name}": (name, coded(meant.coding)) for name, meant in answers.items()}
    wanted |= {f"number {name}": (name, _NUMBER) for name in numbers}
    reader = TableReader(open_source(source, base_folder=base_folder or Path()), wanted)
    table = reader.whole()
    for name, meant in answers.items():
        where = f"column {name!r} of {source}"
        _refuse_answers(reader, f"group {name}", name, meant, where=where, total=table.height)
    marks = {name: rule.marks(table[name]) for name, (_, rule) in wanted.items()}
    for name in numbers:
        _refuse_numbers(f"column {name!r} of {source}", marks[f"number {name}"], missing=missing)
    whole = np.logical_and.reduce([found >= 0 for found in marks.values()])
    n = int(np.count_nonzero(whole))
    if not n:
        fail(f"{source}: no record has all of the columns {', '.join((*answers, *numbers))}.")
    kept = table if n == table.height else table.filter(pl.Series(whole))
    return PrivateTable(
        groups={name: kept[f"group {name}"].to_numpy().astype(np.int64) for name in answers},
        numbers={name: kept[f"number {name}"].to_numpy() for name in numbers},
        n=n,
        source=source,
        dropped=table.height - n,
    )


def _refuse_numbers(where: str, marks: Marks, *, missing: str) -> None:
    faults, these = Faults(), f": {{count}} of {marks.size:,} records ({{numbers}})"
    faults.note(marks)
    if missing == "refuse":
        faults.refuse(MISSING, where, f'{these} are missing. Set missing = "drop" to leave them out.')
    faults.refuse(UNSEEN, where, f"{these} hold no finite number.")
