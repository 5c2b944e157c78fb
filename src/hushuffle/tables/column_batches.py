"""One private column as codes, some records at a time: for tables that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.model import Domain
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Categories, Coding, Reading, coding, missing_label
from hushuffle.tables.column import _dtypes
from hushuffle.tables.sources import Part, open_folder, open_source, type_name

BATCH: Final = 1 << 18
"""Records in a batch, at most."""

_SHOWN: Final = 5
_WRONG: Final = {
    MISSING: (
        "are missing",
        'Set missing = "drop" or to a category. Empty fields, blank lines and NaN count as missing.',
    ),
    OVERLAP: ("match several categories", "Make the conditions exclude each other."),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Records that are kept: `values`, codes 0..k-1, shape (n,), and the text of their `ids`, if asked for."""

    values: npt.NDArray[np.int64] = field(repr=False)
    ids: pl.Series | None = field(default=None, repr=False)
    dropped: int = 0


@dataclass(frozen=True, kw_only=True)
class ByNumber(Coding):
    """The column holds the codes themselves: integers 0..k-1."""

    k: int

    @property
    def labels(self) -> tuple[str, ...]:
        return Domain.of_size(self.k).labels

    @property
    def numeric(self) -> bool:
        return True

    @property
    def advice(self) -> str:
        return f"Values must be integers from 0 to {self.k - 1:,}."

    def codes(self, reading: Reading) -> pl.Expr:
        inside = reading.numbers.is_between(0, self.k - 1) & (reading.numbers == reading.numbers.floor())
        code = pl.when(inside.fill_null(value=False)).then(reading.numbers).otherwise(UNSEEN)
        return pl.when(reading.missing).then(MISSING).otherwise(code).cast(pl.Int32)


class ColumnBatches:
    """The records of `column` in `sources`, read part by part in bounded memory.

    Args:
        sources: files (.csv, .csv.gz, .parquet), folders of such files, globs, "statsmodels:NAME".
        column: the private column.
        categories: a table of conditions, a list of labels (see `load_column`), or k: the column holds 0..k-1.
        missing: "refuse", "drop", or the category that missing values become.
        ids: a column whose text is read beside it, or None.
        base_folder: where relative paths start; None for the current folder.
        called: what messages call a source instead of its name, which may be private.

    Raises:
        DataError: the data cannot be read or do not fit; the message shows no value.
        InvalidInputError: categories or missing are not understood.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        column: str,
        categories: Categories | int,
        missing: str = "refuse",
        ids: str | None = None,
        base_folder: Path | None = None,
        called: Mapping[str, str] | None = None,
    ) -> None:
        self._rule = _coding(categories)
        instead = missing_label(missing, () if isinstance(categories, int) else self._rule.labels)
        if isinstance(categories, int) and instead is not None:
            _checks.reject("missing", '"refuse" or "drop" where categories have no names', repr(missing))
        self._drop, self._instead = missing == "drop", instead
        self.column, self._ids = column, ids
        self._parts = tuple(_opened(sources, Path() if base_folder is None else base_folder, called or {}))
        dtypes = _dtypes(self._parts, column)
        self._readings = [Reading.of(column, dtype, numeric=self._rule.numeric) for dtype in dtypes]
        if ids is not None:
            for part in self._parts:
                _check_ids(part, ids)

    @property
    def labels(self) -> tuple[str, ...]:
        """The k categories, that of missing values included; none where the column holds codes."""
        known = () if isinstance(self._rule, ByNumber) else self._rule.labels
        return known if self._instead is None or self._instead in known else (*known, self._instead)

    @property
    def k(self) -> int:
        """Number of categories."""
        return self._rule.k if isinstance(self._rule, ByNumber) else len(self.labels)

    def count(self) -> int:
        """Return about how many records there are, to tell how far the reading is."""
        return sum(part.count() for part in self._parts)

    def __iter__(self) -> Iterator[Batch]:
        code = None if self._instead is None else self.labels.index(self._instead)
        for part, reading in zip(self._parts, self._readings, strict=True):
            start = 0
            for frame in self._frames(part, reading):
                yield self._batch(frame, part, start, code)
                start += frame.height

    def _frames(self, part: Part, reading: Reading) -> Iterator[pl.DataFrame]:
        wanted = [self._rule.codes(reading).alias("code")]
        if self._ids is not None:
            wanted.append(pl.col(self._ids).cast(pl.String).alias("id"))
        return part.batches(*wanted, rows=BATCH)

    def _batch(self, frame: pl.DataFrame, part: Part, start: int, instead: int | None) -> Batch:
        codes = frame["code"].to_numpy()
        lowest = int(codes.min(initial=0))
        kept = None
        if lowest < 0:
            for mark in (OVERLAP, UNSEEN):
                self._refuse(codes == mark, mark, part, start)
            missing = codes == MISSING
            if instead is not None:
                codes = np.where(missing, np.int32(instead), codes)
            elif self._drop:
                kept = ~missing
            else:
                self._refuse(missing, MISSING, part, start)
        ids = None
        if self._ids is not None:
            ids = frame["id"] if kept is None else frame["id"].filter(pl.Series(kept))
            if bool((ids.is_null() | (ids == "")).any()):
                _fail(f"{part.name}: column {self._ids!r} has records without an id. Every record needs one.")
        values = (codes if kept is None else codes[kept]).astype(np.int64)
        return Batch(values=values, ids=ids, dropped=frame.height - values.size)

    def _refuse(self, wrong: npt.NDArray[np.bool_], mark: int, part: Part, start: int) -> None:
        rows = np.flatnonzero(wrong)
        if not rows.size:
            return
        what, advice = _WRONG.get(mark, ("match no category", self._rule.advice))
        shown = ", ".join(f"{start + row + 1:,}" for row in rows[:_SHOWN].tolist())
        more = ", ..." if rows.size > _SHOWN else ""
        _fail(
            f"column {self.column!r} of {part.name}: records {what} (numbers {shown}{more}, counted from 1). {advice}"
        )


def _coding(categories: Categories | int) -> Coding:
    if isinstance(categories, int):
        return ByNumber(k=_checks.integer("categories", categories, low=2, high=2**31 - 1))
    if isinstance(categories, str):
        hint = "What leaves must not depend on who is there: list the categories."
        _checks.reject("categories", "a table or a list", repr(categories), hint)
    return coding(categories)


def files_of(sources: Sequence[str], *, base_folder: Path | None = None) -> dict[Path, str]:
    """Return the files that `sources` (as `ColumnBatches`) name, each once, with what messages call them.

    Raises:
        DataError: there is none, one is there twice, or a source is no file.
    """
    parts = tuple(_opened(sources, Path() if base_folder is None else base_folder, {}))
    if any(part.path is None for part in parts):
        _fail("Batches are made of files that arrive: a bundled data set is none.")
    return {part.path.resolve(): part.name for part in parts if part.path is not None}


def _opened(sources: Sequence[str], base_folder: Path, called: Mapping[str, str]) -> Iterator[Part]:
    """Yield the parts of all sources, each file once."""
    seen: set[Path] = set()
    for source in sources:
        for opened in _of_source(source, base_folder):
            part = replace(opened, name=called.get(source, opened.name))
            if part.path is not None and (place := part.path.resolve()) in seen:
                _fail(f"{part.name} is there twice: its people would report twice.")
            elif part.path is not None:
                seen.add(place)
            yield part


def _of_source(source: str, base_folder: Path) -> Iterator[Part]:
    if (base_folder / Path(source).expanduser()).is_dir():
        yield from open_folder(source, base_folder=base_folder)
    else:
        yield from open_source(source, base_folder=base_folder)


def _check_ids(part: Part, ids: str) -> None:
    dtype = part.dtype(ids)
    if not (dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)):
        _fail(f"{part.name}: column {ids!r} is of type {type_name(dtype)}. Ids must be text or integers.")


def _fail(message: str) -> NoReturn:
    raise DataError(message)
