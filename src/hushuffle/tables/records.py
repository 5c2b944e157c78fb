"""The records of one column, coded part by part, and what can be wrong with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle.errors import DataError
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Coding, Reading
from hushuffle.tables.sources import Part

_SHOWN: Final = 5
_MISSING_ADVICE: Final = 'Set missing = "drop" or to a category. Empty fields, blank lines and NaN count as missing.'


@dataclass(frozen=True, kw_only=True)
class Records:
    """`codes[i]` are the codes of `parts[i]`, Int32: categories, or marks below 0; `where` is for messages."""

    where: str
    parts: tuple[Part, ...]
    readings: tuple[Reading, ...]
    codes: tuple[npt.NDArray[np.int32], ...]

    @classmethod
    def read(cls, parts: tuple[Part, ...], readings: tuple[Reading, ...], rule: Coding, *, where: str) -> Self:
        """Return the records of all parts, coded by `rule`; four bytes for each record.

        Raises:
            DataError: a part cannot be read.
        """
        codes = tuple(
            part.collect(rule.codes(reading).alias("code"))["code"].to_numpy()
            for part, reading in zip(parts, readings, strict=True)
        )
        return cls(where=where, parts=parts, readings=readings, codes=codes)

    def refuse_unclear(self, rule: Coding) -> None:
        """Raise `DataError` if a record matches no category, or several."""
        pairs: Counter[tuple[int, int]] = Counter()
        for part, reading, codes in zip(self.parts, self.readings, self.codes, strict=True):
            if bool(np.any(codes == OVERLAP)):
                table = part.collect(*rule.first_and_last(reading)).filter(pl.col("first") != pl.col("last"))
                for first, last, count in table.group_by("first", "last").len().iter_rows():
                    pairs[first, last] += count
        if pairs:
            (first, last), count = max(pairs.items(), key=lambda item: (item[1], item[0]))
            names = f"{rule.labels[first]!r} and {rule.labels[last]!r}"
            message = f"{self.where}: {count:,} records match both {names}. Make the conditions exclude each other."
            raise DataError(message)
        self._refuse(UNSEEN, "match no category", rule.advice)

    def refuse_missing(self) -> None:
        """Raise `DataError` if a record is missing."""
        self._refuse(MISSING, "are missing", _MISSING_ADVICE)

    def joined(self, instead: int | None) -> tuple[npt.NDArray[np.int64], int]:
        """Return all codes, shape (n,), and how many records were dropped.

        Missing records become the code `instead`, or are dropped if that is None.
        """
        missing = sum(int(np.count_nonzero(codes == MISSING)) for codes in self.codes)
        dropped = missing if instead is None else 0
        values = np.empty(self._total - dropped, dtype=np.int64)
        start = 0
        for codes in self.codes:
            kept = codes if instead is None else np.where(codes == MISSING, np.int32(instead), codes)
            if dropped:
                kept = codes[codes != MISSING]
            values[start : start + kept.size] = kept
            start += kept.size
        return values, dropped

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which records are not missing, shape (records,)."""
        return np.concatenate([codes != MISSING for codes in self.codes])

    @property
    def _total(self) -> int:
        return sum(codes.size for codes in self.codes)

    def _refuse(self, mark: int, what: str, advice: str) -> None:
        """Raise `DataError` if codes are `mark`: how many, and where the first ones are."""
        counts = [int(np.count_nonzero(codes == mark)) for codes in self.codes]
        if not any(counts):
            return
        first = next(position for position, count in enumerate(counts) if count)
        rows = np.flatnonzero(self.codes[first] == mark)[:_SHOWN] + 1
        numbers = ", ".join(f"{row:,}" for row in rows) + (", ..." if sum(counts) > rows.size else "")
        place = f" of {self.parts[first].name}" if len(self.parts) > 1 else ""
        message = (
            f"{self.where}: {sum(counts):,} of {self._total:,} records {what} "
            f"(numbers {numbers}{place}, counted from 1). {advice}"
        )
        raise DataError(message)
