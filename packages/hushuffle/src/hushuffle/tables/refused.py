"""Records that do not fit: what is wrong with them, their line numbers, and the share that may be set aside."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import Flags
from hushuffle.errors import DataError
from hushuffle.model import Warned
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers, Coding, Marks, Rule
from hushuffle.tables.parquet import ROWS
from hushuffle.tables.reader import Faults, Part, TableReader

_REASONS: Final = {UNSEEN: "in no category", OVERLAP: "in several categories", MISSING: "missing"}
_NAMELESS: Final = {
    "id": ("no id", "have no id", "Every record needs one."),
    "person": ("no person", "name no person", "Every record needs a person."),
}


class RefusedLine(NamedTuple):
    """A refused record: its file, first line (record number, in files without lines), column, and the reason."""

    file: str
    line: int
    column: str
    reason: str


class RefusedRecords:
    """At most `percent` per cent of all records may be refused; only their numbers and the reasons are stored."""

    def __init__(self, column: str, answers: Answers, *, percent: float) -> None:
        self._column, self._answers, self._percent = column, answers, percent
        self._taken: list[tuple[Part, npt.NDArray[np.int64], str]] = []
        self.count = 0

    def take(self, marks: Marks, nameless: Mapping[str, Flags], *, part: Part, start: int) -> Flags:
        """Set aside unfit records of a part; return which they are. The first record has number `start`, from 0."""
        numbers = np.array([each.record - 1 - start for each in part.irregular], dtype=np.int64)
        irregular = np.zeros(marks.size, dtype=np.bool_)
        irregular[numbers[(numbers >= 0) & (numbers < marks.size)]] = True
        reasons = {"wrong number of fields": irregular}
        reasons |= {
            reason: marks == mark
            for mark, reason in _REASONS.items()
            if mark != MISSING or self._answers.refuses_missing
        }
        dropped = (marks == MISSING) & self._answers.drop
        reasons |= {_NAMELESS[name][0]: unnamed & ~dropped for name, unnamed in nameless.items()}
        taken = np.zeros(marks.size, dtype=np.bool_)
        for reason, which in reasons.items():  # the first reason of a record counts
            places = np.flatnonzero(which & ~taken)
            if places.size:
                self._taken.append((part, places + start + 1, reason))
                self.count += places.size
            taken |= which
        return taken

    def exceeds(self, total: int) -> bool:
        """Return whether more records are set aside than the allowed share of `total`."""
        return 100 * self.count > self._percent * total

    def problem(self, total: int) -> str:
        """Return a sentence that more records do not fit than are allowed."""
        limit = f'bad_rows = "quarantine" sets aside at most {self._percent:g} % of the records (bad_rows_at_most).'
        return f"{self.count:,} of {total:,} records do not fit ({share(self.count, total)}). {limit}"

    def lines(self) -> Iterator[RefusedLine]:
        """Yield the refused records; the files are read again to find the lines."""
        for part, records, reason in self._taken:
            numbers = part.lines(records.tolist()) or records.tolist()
            yield from (RefusedLine(part.name, number, self._column, reason) for number in numbers)

    def warning(self, total: int) -> Warned:
        reasons = Counter[str]()
        for _, records, reason in self._taken:
            reasons[reason] += records.size
        shown = ", ".join(f"{reason}: {count:,}" for reason, count in sorted(reasons.items()))
        return Warned(
            key="bad-rows",
            sentence=f"{self.count:,} of {total:,} records were set aside ({shown}).",
            advice="The estimates do not count them. `hushuffle collect` lists their lines in a private file.",
        )


def refused_text(lines: Iterable[RefusedLine]) -> str:
    r"""Return a CSV text of the places of refused records and the reasons, without any value.

    >>> refused_text([RefusedLine("a.csv", 902, "visits", "missing")])
    'file,line,column,reason\na.csv,902,visits,missing\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(RefusedLine._fields)
    writer.writerows(sorted(set(lines)))
    return text.getvalue()


class WrongRecords(DataError):  # noqa: N818 - what is the case
    """Raised if records of a file do not fit the specified categories or person column."""


def refuse_all(where: str, problems: Sequence[str]) -> None:
    """Raise one error with all problems, if there are any."""
    if problems:
        raise WrongRecords(all_problems(where, problems))


def all_problems(where: str, problems: Sequence[str]) -> str:
    return f"{where}: {problems[0]}" if len(problems) == 1 else "\n  ".join([f"{where}:", *problems])


def wrong_answers(
    reader: TableReader, name: str, column: str, answers: Answers, *, total: int, more: str = ""
) -> list[str]:
    """Return sentences on the problems of a column's records: how many of `total` records, and the first records."""
    faults, problems, coding = reader.faults[name], [], answers.coding
    if faults.counts[UNSEEN]:
        advice = f"{coding.advice}{more if answers.labels and not coding.finite else ''}"
        problems.append(_sentence(reader, faults, UNSEEN, coding.unfit, advice, total))
    if faults.counts[MISSING] and answers.refuses_missing:
        advice = f"{answers.missing_advice} Empty fields, blank lines and NaN count as missing."
        problems.append(_sentence(reader, faults, MISSING, "are missing", advice, total))
    if faults.counts[OVERLAP]:
        advice = f"{_overlap(reader.parts, column, coding)} Change the conditions so that at most one matches."
        problems.append(_sentence(reader, faults, OVERLAP, "match several categories", advice, total))
    return problems


def nameless_records(reader: TableReader, role: str, faults: Faults, column: str, *, total: int) -> list[str]:
    """Return a sentence on records without an id or a person (the `role` of the column), if there are any."""
    if not faults.counts[MISSING]:
        return []
    _, what, advice = _NAMELESS[role]
    return [_sentence(reader, faults, MISSING, f"{what} in column {column!r}", advice, total)]


def _sentence(reader: TableReader, faults: Faults, mark: int, what: str, advice: str, total: int) -> str:
    count = faults.counts[mark]
    place = faults.place(mark, name_file=len(reader.parts) > 1)
    return f"{count:,} of {total:,} records {what} ({share(count, total)}; {place}). {advice}"


def _overlap(parts: Sequence[Part], column: str, coding: Coding) -> str:
    """Return the names of two categories that share the most records; the parts are read again."""
    pairs = pl.DataFrame(schema={"first": pl.Int32, "last": pl.Int32, "len": pl.UInt32})

    def end(place: int) -> tuple[str, Rule]:
        return column, Rule(read=lambda name, dtype: coding.first_and_last(coding.reading(name, dtype))[place])

    for block in TableReader(parts, {"first": end(0), "last": end(1)}).blocks(rows=ROWS):
        counted = block.frame.filter(pl.col("first") != pl.col("last")).group_by("first", "last").len()
        pairs = pl.concat([pairs, counted.cast(pairs.schema)]).group_by("first", "last").agg(pl.col("len").sum())
    first, last, count = pairs.sort("len", "first", "last", descending=True).row(0)
    return f"{count:,} records match both {coding.labels[first]!r} and {coding.labels[last]!r}."


def share(count: int, total: int) -> str:
    """Return a share as text in percent.

    >>> share(1, 3), share(1, 2_000_000)
    ('33.3 %', 'under 0.01 %')
    """
    percent = 100 * count / max(total, 1)
    return f"{percent:.3g} %" if percent >= 0.01 else "under 0.01 %"
