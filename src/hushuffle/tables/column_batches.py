"""One private column as codes, some records at a time: for tables that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import fail
from hushuffle.tables.categories import MISSING, OVERLAP, UNSEEN, Answers
from hushuffle.tables.column import MISSING_ADVICE
from hushuffle.tables.records import ID, TableReader, coded
from hushuffle.tables.sources import Part, open_folder, open_source

BATCH: Final = 1 << 18
"""Records in a batch, at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Records that are kept: `values`, codes 0..k-1, shape (n,), and the text of their `ids`, if asked for."""

    values: npt.NDArray[np.int64] = field(repr=False)
    ids: pl.Series | None = field(default=None, repr=False)
    dropped: int = 0


class ColumnBatches:
    """The records of `column` in `sources`, read part by part in bounded memory.

    Args:
        sources: files (.csv, .csv.gz, .parquet), folders of such files, globs, "statsmodels:NAME".
        column: the private column.
        answers: what its values mean.
        ids: a column whose text is read beside it, or None.
        base_folder: where relative paths start; None for the current folder.
        called: what messages call a source instead of its name, which may be private.

    Raises:
        DataError: the data cannot be read or do not fit; the message shows no value.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        column: str,
        answers: Answers,
        ids: str | None = None,
        base_folder: Path | None = None,
        called: Mapping[str, str] | None = None,
    ) -> None:
        self._column, self._answers, self._ids = column, answers, ids
        wanted = {"code": (column, coded(answers.coding))} | ({} if ids is None else {"id": (ids, ID)})
        self._reader = TableReader(tuple(_opened(sources, base_folder or Path(), called or {})), wanted)

    def count(self) -> int:
        """Return about how many records there are, to tell how far the reading is."""
        return sum(part.count() for part in self._reader.parts)

    def __iter__(self) -> Iterator[Batch]:
        for block in self._reader.blocks(rows=BATCH):
            self._refuse(block.part.name)
            values, kept = self._answers.settled(block.frame["code"].to_numpy())
            ids = None
            if self._ids is not None:
                ids = block.frame["id"] if kept is None else block.frame["id"].filter(pl.Series(kept))
                if ids.null_count():
                    fail(f"{block.part.name}: column {self._ids!r} has records without an id. Every record needs one.")
            yield Batch(values=values, ids=ids, dropped=block.frame.height - values.size)

    def _refuse(self, name: str) -> None:
        about = {
            OVERLAP: ("match several categories", "Make the conditions exclude each other."),
            UNSEEN: ("match no category", self._answers.coding.advice),
        }
        if self._answers.refuses_missing:
            about[MISSING] = ("are missing", MISSING_ADVICE)
        for mark, (what, advice) in about.items():
            where = f"column {self._column!r} of {name}: records {what} "
            self._reader.faults["code"].refuse(mark, where, f"({{numbers}}). {advice}")


def files_of(sources: Sequence[str], *, base_folder: Path | None = None) -> dict[Path, str]:
    """Return the files that `sources` (as `ColumnBatches`) name, each once, with what messages call them.

    Raises:
        DataError: there is none, one is there twice, or a source is no file.
    """
    parts = tuple(_opened(sources, Path() if base_folder is None else base_folder, {}))
    if any(part.path is None for part in parts):
        fail("Batches are made of files that arrive: a bundled data set is none.")
    return {part.path.resolve(): part.name for part in parts if part.path is not None}


def _opened(sources: Sequence[str], base_folder: Path, called: Mapping[str, str]) -> Iterator[Part]:
    """Yield the parts of all sources, each file once."""
    seen: set[Path] = set()
    for source in sources:
        for opened in _of_source(source, base_folder):
            part = replace(opened, name=called.get(source, opened.name))
            if part.path is not None and (place := part.path.resolve()) in seen:
                fail(f"{part.name} is there twice: its people would report twice.")
            elif part.path is not None:
                seen.add(place)
            yield part


def _of_source(source: str, base_folder: Path) -> Iterator[Part]:
    if (base_folder / Path(source).expanduser()).is_dir():
        yield from open_folder(source, base_folder=base_folder)
    else:
        yield from open_source(source, base_folder=base_folder)
