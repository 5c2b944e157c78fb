"""Load private columns as codes, whole or in batches of records, and tables of several private columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import Flags, fail
from hushuffle.model import Domain, Population, Warned
from hushuffle.randomness import Randomness, secure
from hushuffle.tables.categories import (
    ID,
    MISSING,
    NUMBER,
    UNSEEN,
    Answers,
    ByLabel,
    Categories,
    Coding,
    coded,
    coding,
    labelled,
)
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.labels import FROM_DATA, Tidying
from hushuffle.tables.people import FewOfEach
from hushuffle.tables.reader import Faults, Part, TableReader, open_all, open_source
from hushuffle.tables.refused import RefusedRecords, all_problems, nameless_records, refuse_all, share, wrong_answers

BATCH: Final = 1 << 18
"""Approximate number of records of a batch."""

_MOST_LABELS: Final = 100_000
_LABELS_FROM_DATA: Final = Warned(
    key="categories-from-data",
    sentence="The categories were taken from the data: each category reveals that a record has it.",
    advice="List the categories of the questionnaire before the collection.",
)
_UNSEEN_ADVICE: Final = (
    ' The keys trim and casefold ignore spaces and case; otherwise = "other" adds a category for all others.'
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A private column: `values`, integers 0..k-1, shape (n,), read-only; label `domain.labels[i]` has code i.

    `kept`, shape (records,), marks all records except the `dropped` ones (missing values); None: all. `people` and
    `beyond` (records over the limit per person) are present if a column identifies people.
    """

    values: npt.NDArray[np.int64] = field(repr=False)
    domain: Domain
    source: str
    dropped: int = 0
    warnings: tuple[Warned, ...] = ()
    kept: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    people: int | None = None
    beyond: int = 0

    @property
    def n(self) -> int:
        return self.values.size

    def population(self) -> Population:
        counts = np.bincount(self.values, minlength=self.domain.k)
        return Population(
            n=self.n,
            labels=self.domain.labels,
            source=self.source,
            counts=tuple(int(count) for count in counts),
            dropped=self.dropped,
            people=self.people,
            beyond=self.beyond,
        )


def load_column(
    source: str,
    *,
    column: str,
    categories: Categories,
    missing: str = "refuse",
    otherwise: str | None = None,
    tidying: Tidying | None = None,
    form: CsvForm | None = None,
    base_folder: Path | None = None,
    allow_categories_from_data: bool = False,
    person: str | None = None,
    reports_per_person: int = 1,
    rng: Randomness | None = None,
    quarantine: float | None = None,
) -> Column:
    """Return `column` of `source` as codes. Memory: 12 bytes for each record, and a block of records.

    A source is "statsmodels:NAME", a file (.csv, .tsv, either with .gz, .parquet) or a glob of files. CSV has one line
    of names; without a `form` it is UTF-8, with commas, or with tabs in .tsv files. Categories are a table of
    conditions ({"none": "== 0", "some": "> 0"}), of which every record matches exactly one, a list of labels, compared
    as text, `Bins` of numbers or dates, or "from-data", if that is allowed. Missing values are refused, dropped
    ("drop"), or become a category. Other values without a category go into the category `otherwise`, if it is given.

    Missing values are null (an empty field of a CSV file, also when quoted, and a blank line), empty text, and NaN. The
    text NaN in a CSV file is missing only if the categories are conditions on numbers.

    If the column `person` identifies people, at most `reports_per_person` non-missing records of each person are used,
    chosen by `rng` (`secure()` by default). Records that do not fit are set aside if they are at most `quarantine` per
    cent of all; None: they are an error.

    >>> fair = load_column("statsmodels:fair", column="affairs", categories={"none": "== 0", "some": "> 0"})
    >>> fair.n, fair.population().counts
    (6366, (4313, 2053))
    """
    parts = open_source(source, base_folder=base_folder or Path(), form=form)
    where = f"column {column!r} of {source}" + (f" ({len(parts)} files)" if len(parts) > 1 else "")
    warnings: tuple[Warned, ...] = ()
    if isinstance(categories, str):
        _refuse_from_data(categories, allowed=allow_categories_from_data)
        if otherwise is not None:
            _checks.reject("otherwise", f'left out where categories = "{FROM_DATA}"', repr(otherwise))
        rule, warnings = _coding_from_data(parts, column, tidying or Tidying(), where=where), (_LABELS_FROM_DATA,)
    else:
        rule = coding(categories, otherwise=otherwise, tidying=tidying)
    answers = replace(Answers.with_coding(rule, missing), quarantine=quarantine)
    domain = Domain(labels=answers.labels)
    records = _Rows(parts, column=column, answers=answers, person=person)
    batches = list(records.batches(where=where))
    total, refused = records.total, records.refused
    values = np.concatenate([batch.values for batch in batches])
    mask = None if values.size == total else np.concatenate([batch.marked for batch in batches])
    dropped = sum(batch.dropped for batch in batches)
    if refused is not None and refused.count:
        warnings += (refused.warning(total),)
    coins = secure() if rng is None else rng
    if rule.grid is not None and values.size:
        clipped = int(np.count_nonzero(rule.grid.outside(values)))
        warnings += (_clipped(clipped, values.size),) if clipped else ()
        values = rule.grid.rounded(values, rng=coins)
    if not values.size:
        fail(f"{where}: no records" + (f" are left, all {dropped:,} are missing." if dropped else "."))
    people, beyond = None, 0
    if person is not None:
        keep = FewOfEach(reports_per_person)
        persons = pl.concat(batch.persons for batch in batches if batch.persons is not None)
        keep.add(persons, coins.words(values.size), values, np.arange(values.size))
        keep.refuse_spellings(person)
        people, beyond, chosen = keep.people, keep.left_out, np.sort(keep.records)
        places = np.arange(total) if mask is None else np.flatnonzero(mask)
        values, mask = values[chosen], np.isin(np.arange(total), places[chosen])
    values.flags.writeable = False
    return Column(
        values=values,
        domain=domain,
        source=where,
        dropped=dropped,
        warnings=warnings,
        kept=mask,
        people=people,
        beyond=beyond,
    )


def _clipped(count: int, total: int) -> Warned:
    return Warned(
        key="numbers-outside",
        sentence=f"{share(count, total)} of the numbers are outside the bounds and replaced by the nearer bound.",
        advice="The mean is computed from replaced numbers. Wider bounds reduce this bias and increase the noise.",
    )


def _refuse_from_data(word: str, *, allowed: bool) -> None:
    if word != FROM_DATA:
        _checks.reject("categories", f'a table, a list or "{FROM_DATA}"', repr(word))
    if not allowed:
        rule = "chosen before the collection, since labels from the data reveal that records have them"
        _checks.reject("categories", rule, repr(word), "To do it nevertheless: allow_categories_from_data = true.")


def _coding_from_data(parts: tuple[Part, ...], column: str, tidying: Tidying, *, where: str) -> Coding:
    """Return a coding by the labels that occur: integers in order, then text in order."""
    seen: set[str] = set()
    for texts in TableReader(parts, {"text": (column, labelled(tidying))}).distinct():
        seen.update(texts)
        if len(seen) > _MOST_LABELS:
            fail(f"{where}: more than {_MOST_LABELS:,} different values. Define the categories by conditions.")
    if len(seen) < 2:
        fail(f"{where}: fewer than two different values. List the categories.")
    if not all(label.isprintable() for label in seen):
        fail(f"{where}: a value contains control characters. List the categories.")
    numbers = {label: float(label) if label.removeprefix("-").isdecimal() else float("inf") for label in seen}
    return ByLabel(names=tuple(sorted(seen, key=lambda label: (numbers[label], label))), tidying=tidying)


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """A batch of records: `values`, codes 0..k-1, shape (n,), and the text of `ids` and `persons`, if requested.

    `mask` marks the records with a value among all records of the batch (None: all of them).
    """

    values: npt.NDArray[np.int64] = field(repr=False)
    mask: Flags | None = field(default=None, repr=False)
    ids: pl.Series | None = field(default=None, repr=False)
    persons: pl.Series | None = field(default=None, repr=False)
    dropped: int = 0
    refused: int = 0

    @property
    def marked(self) -> Flags:
        return np.ones(self.values.size, dtype=np.bool_) if self.mask is None else self.mask


class _Rows:
    """The records of a column: those with a value, those that are dropped, and those that do not fit."""

    def __init__(
        self, parts: Sequence[Part], *, column: str, answers: Answers, ids: str | None = None, person: str | None = None
    ) -> None:
        self._column, self._answers, self.total = column, answers, 0
        self._named = {role: name for role, name in (("id", ids), ("person", person)) if name is not None}
        self.refused: RefusedRecords | None = None
        if answers.quarantine is not None:
            parts = tuple(part.tolerant() for part in parts)
            self.refused = RefusedRecords(column, answers, percent=answers.quarantine)
        named = {role: (name, ID) for role, name in self._named.items()}
        self._reader = TableReader(parts, {"code": (column, coded(answers.coding)), **named})

    def batches(self, *, rows: int | None = None, where: str | None = None) -> Iterator[Batch]:
        """Yield batches of about `rows` records (None: one for each part); at the end, refuse records that do not fit.

        With `where`, the words for all files in messages, records without a person are numbered over all files.
        """
        answers, wrong, self.total = self._answers, False, 0
        nameless = {role: Faults() for role in self._named}
        for block in self._reader.blocks(rows=rows):
            marks = block.frame["code"].to_numpy()
            least = int(marks.min(initial=0))
            wrong = wrong or least < (0 if answers.refuses_missing else MISSING)
            mask = marks != MISSING if answers.drop and least < 0 else None
            without = {role: block.frame[role].is_null().to_numpy() for role in nameless}
            for role, faults in nameless.items():
                unnamed = without[role] if mask is None else without[role] & mask
                part, start = (block.part, block.start) if where is None else (None, self.total)
                faults.note(np.where(unnamed, MISSING, 0), part=part, start=start)
                wrong = wrong or bool(unnamed.any())
            self.total += marks.size
            if wrong and self.refused is None:
                continue
            refused = 0
            if self.refused is not None:
                unfit = self.refused.take(marks, without, part=block.part, start=block.start)
                mask, refused = ~unfit if mask is None else mask & ~unfit, int(np.count_nonzero(unfit))
            values = answers.values(marks if mask is None else marks[mask])
            texts = {role: block.frame[role] for role in nameless}
            if mask is not None:
                texts = {role: text.filter(pl.Series(mask)) for role, text in texts.items()}
            yield Batch(
                values=values,
                mask=mask,
                ids=texts.get("id"),
                persons=texts.get("person"),
                dropped=marks.size - values.size - refused,
                refused=refused,
            )
        if wrong if self.refused is None else self.refused.exceeds(self.total):
            self._refuse(where, nameless)

    def _refuse(self, where: str | None, nameless: Mapping[str, Faults]) -> None:
        reader, total = self._reader, self.total
        of = reader.parts[0].name if len(reader.parts) == 1 else f"{len(reader.parts):,} files"
        problems = wrong_answers(reader, "code", self._column, self._answers, total=total, more=_UNSEEN_ADVICE)
        for role, faults in nameless.items():
            problems += nameless_records(reader, role, faults, self._named[role], total=total)
        if self.refused is not None:
            problems.append(self.refused.problem(total))
        refuse_all(where or f"column {self._column!r} of {of}", problems)


class ColumnBatches(_Rows):
    """The records of `column` in files, folders, globs or bundled data sets, read part by part in bounded memory.

    After the first record that does not fit, no more records are yielded; at the end of all files, `WrongRecords` is
    raised with their number. With `answers.quarantine`, a limited number of them is set aside (`refused`) instead.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        column: str,
        answers: Answers,
        ids: str | None = None,
        person: str | None = None,
        form: CsvForm | None = None,
        base_folder: Path = Path(),
        called: Mapping[str, str] | None = None,
    ) -> None:
        parts = tuple(open_all(sources, base_folder=base_folder, called=called or {}, form=form))
        super().__init__(parts, column=column, answers=answers, ids=ids, person=person)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches(rows=BATCH)

    def count(self) -> int:
        """Return the approximate number of records, for progress messages."""
        return sum(part.count() for part in self._reader.parts)

    def check(self) -> None:
        for _ in self:
            pass


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateTable:
    """Records of people: `groups` contains codes of categorical columns, and `numbers` other columns, shape (n,)."""

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
    form: CsvForm | None = None,
) -> PrivateTable:
    """Return the columns of `source` that are keys of `categories`, as codes, and the columns `numbers`, as floats.

    `source`, `base_folder` and `form` (of CSV files) are as in `load_column`. `missing="drop"` omits every record in
    which a column is missing.

    >>> table = load_table("statsmodels:fair", categories={"religious": [1, 2, 3, 4]}, numbers=["educ"])
    >>> table.n, table.groups["religious"][:3].tolist(), table.numbers["educ"][:3].tolist()
    (6366, [2, 0, 0], [17.0, 14.0, 16.0])
    """
    answers = {name: Answers.of(groups, missing) for name, groups in categories.items()}
    rule = replace(
        NUMBER,
        takes=lambda dtype: dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null),
        must="It must hold numbers.",
    )
    wanted = {f"group {name}": (name, coded(meant.coding)) for name, meant in answers.items()}
    wanted |= {f"number {name}": (name, rule) for name in numbers}
    reader = TableReader(open_source(source, base_folder=base_folder or Path(), form=form), wanted)
    table = reader.whole()
    messages = []
    for name, meant in answers.items():
        if problems := wrong_answers(reader, f"group {name}", name, meant, total=table.height):
            messages.append(all_problems(f"column {name!r} of {source}", problems))
    if messages:
        fail("\n".join(messages))
    marks = {name: wanted[name][1].marks(table[name]) for name in wanted}
    for name in numbers:
        faults, where = Faults(), f"column {name!r} of {source}"
        faults.note(marks[f"number {name}"])
        these = f": {{count}} of {table.height:,} records ({{numbers}})"
        if missing == "refuse":
            faults.refuse(MISSING, where, f'{these} are missing. Set missing = "drop" to exclude them.')
        faults.refuse(UNSEEN, where, f"{these} hold no finite number.")
    whole = np.logical_and.reduce([each >= 0 for each in marks.values()])
    complete = table if whole.all() else table.filter(pl.Series(whole))
    if not complete.height:
        fail(f"{source}: no record has all of the columns {', '.join((*answers, *numbers))}.")
    return PrivateTable(
        groups={name: complete[f"group {name}"].to_numpy().astype(np.int64) for name in answers},
        numbers={name: complete[f"number {name}"].to_numpy() for name in numbers},
        n=complete.height,
        source=source,
        dropped=table.height - complete.height,
    )
