"""Records that are set aside because they do not fit: their line numbers, the reasons, and the allowed share."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushuffle.model import Warned
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers
from hushuffle.tables.sources import Part

_IRREGULAR: Final = "wrong number of fields"
_REASONS: Final = {UNSEEN: "in no category", OVERLAP: "in several categories", MISSING: "missing"}
_NAMELESS: Final = {"id": "no id", "person": "no person"}
_HEADINGS: Final = ("file", "line", "column", "reason")


class RefusedLine(NamedTuple):
    """A refused record: its file, first line (record number, in files without lines), column, and the reason."""

    file: str
    line: int
    column: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Taken:
    part: Part
    records: npt.NDArray[np.int64]
    reason: str


class Refused:
    """At most `percent` per cent of all records may be refused; only their numbers and the reasons are stored."""

    def __init__(self, column: str, answers: Answers, *, percent: float) -> None:
        self._column, self._answers, self._percent = column, answers, percent
        self._taken: list[_Taken] = []
        self.count = 0

    def take(
        self, marks: npt.NDArray[np.integer], nameless: Mapping[str, npt.NDArray[np.bool_]], *, part: Part, start: int
    ) -> npt.NDArray[np.bool_]:
        """Set aside unfit records of a part; return which they are. The first record has number `start`, from 0."""
        reasons = np.zeros(marks.size, dtype=np.int8)
        texts = [""]

        def because(which: npt.NDArray[np.bool_], reason: str) -> None:
            texts.append(reason)
            reasons[which & (reasons == 0)] = len(texts) - 1

        numbers = np.array([each.record - 1 - start for each in part.irregular], dtype=np.int64)
        irregular = np.zeros(marks.size, dtype=np.bool_)
        irregular[numbers[(numbers >= 0) & (numbers < marks.size)]] = True
        because(irregular, _IRREGULAR)
        for mark, reason in _REASONS.items():
            if mark != MISSING or self._answers.refuses_missing:
                because(marks == mark, reason)
        dropped = (marks == MISSING) & self._answers.drop
        for name, unnamed in nameless.items():
            because(unnamed & ~dropped, _NAMELESS[name])
        for number, reason in enumerate(texts[1:], start=1):
            places = np.flatnonzero(reasons == number)
            if places.size:
                self._taken.append(_Taken(part=part, records=places + start + 1, reason=reason))
                self.count += places.size
        return reasons > 0

    def exceeds(self, total: int) -> bool:
        """Return whether more records are set aside than the allowed share of `total`."""
        return 100 * self.count > self._percent * total

    @property
    def limit(self) -> str:
        return f'bad_rows = "quarantine" sets aside at most {self._percent:g} % of the records (bad_rows_at_most).'

    def lines(self) -> Iterator[RefusedLine]:
        """Yield the refused records; the files are read again to find the lines."""
        for taken in self._taken:
            records = taken.records.tolist()
            numbers = taken.part.lines(records) or records
            yield from (RefusedLine(taken.part.name, number, self._column, taken.reason) for number in numbers)

    def warning(self, total: int) -> Warned:
        reasons: dict[str, int] = {}
        for taken in self._taken:
            reasons[taken.reason] = reasons.get(taken.reason, 0) + taken.records.size
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
    writer.writerow(_HEADINGS)
    writer.writerows(sorted(set(lines)))
    return text.getvalue()
