"""What the loaders of public data sets share: find the file, read typed columns, say what is wrong without a value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import polars as pl

from hushuffle.errors import DataError
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
    for column in wanted:
        part.dtype(column)
    frame = part.collect(*(expression.alias(column) for column, expression in wanted.items()))
    complete(frame, part.name, what)
    return frame


def complete(frame: pl.DataFrame, name: str, what: str) -> None:
    """Raise `DataError` if `frame`, read from the file `name`, has no records or a null."""
    if not frame.height:
        fail(f"{name}: no records.")
    for column in frame.columns:
        missing = frame[column].is_null()
        if missing.any():
            first = missing.arg_true()[0] + 1
            fail(
                f"{name}: column {column!r}: {missing.sum():,} of {frame.height:,} records are missing or not {what} "
                f"(the first is number {first:,}, counted from 1)."
            )


def fail(message: str) -> NoReturn:
    """Raise `DataError`; what another reader said may quote the data, so it is not chained."""
    raise DataError(message) from None
