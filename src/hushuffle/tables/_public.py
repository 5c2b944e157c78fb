"""What the loaders of public data sets share: find the file, read typed columns, say what is wrong without a value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from hushuffle._checks import fail
from hushuffle.tables.categories import MISSING
from hushuffle.tables.records import Faults, TableReader, given, nulls
from hushuffle.tables.sources import Part, open_source


def find(source: str | Path, names: tuple[str, ...]) -> Path:
    """Return the file `source`, or the first of `names` that the folder `source` holds.

    Raises:
        DataError: there is no such file.
    """
    path = Path(source).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        fail(f"{source} does not exist.")
    held = [path / name for name in names if (path / name).is_file()]
    if not held:
        fail(f"{source} holds none of the files {', '.join(names)}.")
    return held[0]


def table(path: Path) -> Part:
    """Return the CSV or Parquet file `path`, opened lazily."""
    return open_source(str(path), base_folder=Path())[0]


def integers(part: Part, *columns: str) -> pl.DataFrame:
    """Return `columns` as 64-bit integers; text that is no integer is refused by `whole`."""
    return whole(part, {column: pl.col(column).cast(pl.Int64, strict=False) for column in columns}, "an integer")


def whole(part: Part, wanted: Mapping[str, pl.Expr], what: str) -> pl.DataFrame:
    """Return the expressions `wanted`, each made of the column of its name, without nulls.

    Raises:
        DataError: the file cannot be read, lacks a column, has no records, or a field is not `what`.
    """
    frame = TableReader([part], {column: (column, given(expr)) for column, expr in wanted.items()}).whole()
    complete(frame, part.name, what)
    return frame


def complete(frame: pl.DataFrame, name: str, what: str) -> None:
    """Raise `DataError` if `frame`, read from the file `name`, has no records or a null."""
    if not frame.height:
        fail(f"{name}: no records.")
    sentence = (
        f"{{count}} of {{total}} records are missing or not {what} (the first is number {{first}}, counted from 1)."
    )
    for column in frame.iter_columns():
        faults = Faults()
        faults.note(nulls(column))
        faults.refuse(MISSING, f"{name}: column {column.name!r}: ", sentence, total=frame.height)
