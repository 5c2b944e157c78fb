"""Load private columns as codes, either whole or in batches of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import DataError
from hushuffle.model import Domain, NumberGrid, Population, Warned
from hushuffle.randomness import Randomness, secure
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers, ByLabel, Categories, Coding, coding
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.labels import FROM_DATA, Tidying
from hushuffle.tables.people import FewOfEach
from hushuffle.tables.reader import ID, Faults, Rule, TableReader, coded, labelled
from hushuffle.tables.refused import Refused
from hushuffle.tables.sources import Part, open_all, open_source

BATCH: Final = 1 << 18

_MOST_LABELS: Final = 100_000
_LABELS_FROM_DATA: Final = Warned(
    key="categories-from-data",
    sentence="The categories were taken from the data: each category reveals that a record has it.",
    advice="List the categories of the questionnaire before the collection.",
)
_MISSING: Final = "Empty fields, blank lines and NaN count as missing."
_UNSEEN_ADVICE: Final = ' See the keys trim and casefold; otherwise = "other" makes a category of the rest.'
_NAMELESS: Final = {
    "id": ("have no id", "Every record needs one."),
    "person": ("name no person", "Every record needs a person."),
}


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
    parts = parts if quarantine is None else tuple(part.tolerant() for part in parts)
    reader = TableReader(parts, {"code": (column, coded(rule))} | _whose(person))
    refused, fit, table = _read(reader, column, answers, person)
    codes = table["code"].to_numpy()
    if refused is None or refused.exceeds(codes.size):
        wrong = wrong_answers(reader, "code", column, answers, total=codes.size, more=_UNSEEN_ADVICE)
        refuse_all(where, [*wrong, *_nobodys(reader, answers, table, person), *_too_many(refused, codes.size)])
    elif refused.count:
        warnings += (refused.warning(codes.size),)
    values, mask = answers.settled(codes[fit])
    dropped = int(np.count_nonzero(fit)) - values.size
    if not fit.all():
        chosen = np.flatnonzero(fit) if mask is None else np.flatnonzero(fit)[mask]
        mask = np.isin(np.arange(codes.size), chosen)
    coins = secure() if rng is None else rng
    if rule.grid is not None and values.size:
        clipped = int(np.count_nonzero(rule.grid.outside(values)))
        warnings += (_clipped(clipped, values.size),) if clipped else ()
        values = rule.grid.rounded(values, rng=coins)
    if not values.size:
        fail(f"{where}: no records" + (f" are left, all {dropped:,} are missing." if dropped else "."))
    people, beyond = None, 0
    if person is not None:
        persons = table["person"] if mask is None else table["person"].filter(pl.Series(mask))
        keep = FewOfEach(reports_per_person)
        keep.add(persons, coins.words(values.size), values, np.arange(values.size))
        keep.refuse_spellings(person)
        people, beyond, chosen = keep.people, keep.left_out, np.sort(keep.records)
        values = values[chosen]
        places = np.arange(codes.size) if mask is None else np.flatnonzero(mask)
        mask = np.isin(np.arange(codes.size), places[chosen])
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


def _nobodys(reader: TableReader, answers: Answers, table: pl.DataFrame, person: str | None) -> list[str]:
    if person is None:
        return []
    unnamed = table["person"].is_null().to_numpy()
    if answers.drop:
        unnamed &= table["code"].to_numpy() != MISSING
    faults = Faults()
    faults.note(np.where(unnamed, MISSING, 0))
    if not faults.counts[MISSING]:
        return []
    what, advice = _NAMELESS["person"]
    return [_sentence(reader, faults, MISSING, f"{what} in column {person!r}", advice, table.height)]


def _whose(person: str | None) -> dict[str, tuple[str, Rule]]:
    return {} if person is None else {"person": (person, ID)}


def _read(
    reader: TableReader, column: str, answers: Answers, person: str | None
) -> tuple[Refused | None, npt.NDArray[np.bool_], pl.DataFrame]:
    if answers.quarantine is None:
        table = reader.whole()
        return None, np.ones(table.height, dtype=np.bool_), table
    refused, frames, fit = Refused(column, answers, percent=answers.quarantine), [], []
    for block in reader.blocks():
        unnamed = {} if person is None else {"person": block.frame["person"].is_null().to_numpy()}
        marks = block.frame["code"].to_numpy()
        fit.append(~refused.take(marks, unnamed, part=block.part, start=block.start))
        frames.append(block.frame)
    return refused, np.concatenate(fit), pl.concat(frames)


def _too_many(refused: Refused | None, total: int) -> list[str]:
    if refused is None:
        return []
    return [f"{refused.count:,} of {total:,} records do not fit ({share(refused.count, total)}). {refused.limit}"]


class WrongRecords(DataError):  # noqa: N818 - what is the case
    """Raised if records of a file do not fit the specified categories or person column."""


def refuse_all(where: str, problems: Sequence[str]) -> None:
    if not problems:
        return
    message = f"{where}: {problems[0]}" if len(problems) == 1 else "\n  ".join([f"{where}:", *problems])
    raise WrongRecords(message)


def wrong_answers(
    reader: TableReader, name: str, column: str, answers: Answers, *, total: int, more: str = ""
) -> list[str]:
    """Return sentences on the problems of a column's records: how many of `total` records, and the first records."""
    faults, problems = reader.faults[name], []
    if faults.counts[UNSEEN]:
        named = answers.labels and answers.coding.grid is None
        advice = f"{answers.coding.advice}{more if named else ''}"
        problems.append(_sentence(reader, faults, UNSEEN, answers.coding.unfit, advice, total))
    if faults.counts[MISSING] and answers.refuses_missing:
        advice = f"{answers.missing_advice} {_MISSING}"
        problems.append(_sentence(reader, faults, MISSING, "are missing", advice, total))
    if faults.counts[OVERLAP]:
        most = _overlap(reader.parts, column, answers.coding)
        advice = f"{most} Change the conditions so that at most one matches."
        problems.append(_sentence(reader, faults, OVERLAP, "match several categories", advice, total))
    return problems


def _sentence(reader: TableReader, faults: Faults, mark: int, what: str, advice: str, total: int) -> str:
    count = faults.counts[mark]
    place = faults.place(mark, name_file=len(reader.parts) > 1)
    return f"{count:,} of {total:,} records {what} ({share(count, total)}; {place}). {advice}"


def share(count: int, total: int) -> str:
    """Return a share as text in percent.

    >>> share(1, 3), share(1, 2_000_000)
    ('33.3 %', 'under 0.01 %')
    """
    percent = 100 * count / max(total, 1)
    return f"{percent:.3g} %" if percent >= 0.01 else "under 0.01 %"


def _overlap(parts: Sequence[Part], column: str, rule: Coding) -> str:
    """Return the names of two categories that share the most records; the parts are read again."""
    pairs = pl.DataFrame(schema={"first": pl.Int32, "last": pl.Int32, "len": pl.UInt32})
    for part in parts:
        wanted = rule.first_and_last(rule.reading(column, part.dtypes(column)[0]))
        for frame in part.batches(*wanted, rows=BATCH):
            counted = frame.filter(pl.col("first") != pl.col("last")).group_by("first", "last").len()
            pairs = pl.concat([pairs, counted.cast(pairs.schema)]).group_by("first", "last").agg(pl.col("len").sum())
    first, last, count = pairs.sort("len", "first", "last", descending=True).row(0)
    return f"{count:,} records match both {rule.labels[first]!r} and {rule.labels[last]!r}."


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
    """A batch of records: `values`, codes 0..k-1, shape (n,), and the text of `ids` and `persons`, if requested."""

    values: npt.NDArray[np.int64] = field(repr=False)
    ids: pl.Series | None = field(default=None, repr=False)
    persons: pl.Series | None = field(default=None, repr=False)
    dropped: int = 0
    refused: int = 0


class ColumnBatches:
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
        self._column, self._answers, self._named = column, answers, {"id": ids, "person": person}
        wanted = {"code": (column, coded(answers.coding))} | ({} if ids is None else {"id": (ids, ID)}) | _whose(person)
        parts = tuple(open_all(sources, base_folder=base_folder, called=called or {}, form=form))
        self.refused: Refused | None = None
        if answers.quarantine is not None:
            parts = tuple(part.tolerant() for part in parts)
            self.refused = Refused(column, answers, percent=answers.quarantine)
        self._reader = TableReader(parts, wanted)

    @property
    def grid(self) -> NumberGrid | None:
        """The grid of numbers on which values are positions; None: values are codes of categories."""
        return self._answers.coding.grid

    def count(self) -> int:
        """Return the approximate number of records, for progress messages."""
        return sum(part.count() for part in self._reader.parts)

    def check(self) -> None:
        for _ in self:
            pass

    def __iter__(self) -> Iterator[Batch]:
        reader, total, wrong = self._reader, 0, False
        nameless = {name: Faults() for name, column in self._named.items() if column is not None}
        for block in reader.blocks(rows=BATCH):
            total += block.frame.height
            marks = block.frame["code"].to_numpy()
            wrong = wrong or bool(np.any(marks < (MISSING if not self._answers.refuses_missing else 0)))
            mask = None if not self._answers.drop else marks != MISSING
            without = {name: block.frame[name].is_null().to_numpy() for name in nameless}
            for name, faults in nameless.items():
                unnamed = without[name] & (True if mask is None else mask)
                faults.note(np.where(unnamed, MISSING, 0), part=block.part, start=block.start)
                wrong = wrong or bool(unnamed.any())
            if wrong and self.refused is None:
                continue
            fit = np.ones(marks.size, dtype=np.bool_)
            if self.refused is not None:
                fit = ~self.refused.take(marks, without, part=block.part, start=block.start)
            values, mask = self._answers.settled(marks[fit])
            texts = {name: block.frame[name].filter(pl.Series(fit)) for name in nameless}
            if mask is not None:
                texts = {name: text.filter(pl.Series(mask)) for name, text in texts.items()}
            refused = int(np.count_nonzero(~fit))
            dropped = block.frame.height - values.size - refused
            persons = texts.get("person")
            yield Batch(values=values, ids=texts.get("id"), persons=persons, dropped=dropped, refused=refused)
        if wrong if self.refused is None else self.refused.exceeds(total):
            self._refuse(nameless, total)

    def _refuse(self, nameless: Mapping[str, Faults], total: int) -> None:
        parts = self._reader.parts
        of = parts[0].name if len(parts) == 1 else f"{len(parts):,} files"
        where, problems = f"column {self._column!r} of {of}", []
        for name, faults in nameless.items():
            if faults.counts[MISSING]:
                what, advice = _NAMELESS[name]
                fault = f"{what} in column {self._named[name]!r}"
                problems.append(_sentence(self._reader, faults, MISSING, fault, advice, total))
        wrong = wrong_answers(self._reader, "code", self._column, self._answers, total=total, more=_UNSEEN_ADVICE)
        refuse_all(where, [*wrong, *problems, *_too_many(self.refused, total)])
