"""`load_table`: several private columns of the same records, as groups and as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle.errors import DataError
from hushuffle.tables.categories import Categories, Reading
from hushuffle.tables.column import load_column
from hushuffle.tables.sources import open_source, type_name

_SHOWN: Final = 5


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
    """Return columns of `source`, one record for each person.

    Args:
        source: as `load_column`.
        categories: of each column of groups.
        numbers: names of columns of finite numbers.
        missing: "drop" leaves out every record in which one of the columns is missing.
        base_folder: where relative paths start; None for the current folder.

    Raises:
        DataError: the data cannot be read or do not fit; the message shows no value.
        MissingDependencyError: statsmodels is not installed.

    >>> table = load_table("statsmodels:fair", categories={"religious": [1, 2, 3, 4]}, numbers=["educ"])
    >>> table.n, table.groups["religious"][:3].tolist(), table.numbers["educ"][:3].tolist()
    (6366, [2, 0, 0], [17.0, 14.0, 16.0])
    """
    found: dict[str, npt.NDArray[np.int64]] = {}
    masks: list[npt.NDArray[np.bool_]] = []
    for name, groups in categories.items():
        column = load_column(source, column=name, categories=groups, missing=missing, base_folder=base_folder)
        kept = np.ones(column.n, dtype=np.bool_) if column.kept is None else column.kept
        codes = np.full(kept.size, -1, dtype=np.int64)
        codes[kept] = column.values
        found[name] = codes
        masks.append(kept)
    measured: dict[str, npt.NDArray[np.float64]] = {}
    for name in numbers:
        measured[name], absent = _numbers(source, name, missing=missing, base_folder=base_folder)
        masks.append(~absent)
    if len({mask.size for mask in masks}) > 1:
        _fail(f"{source} has changed while it was read.")
    whole = np.logical_and.reduce(masks)
    n = int(np.count_nonzero(whole))
    if not n:
        _fail(f"{source}: no record has all of the columns {', '.join((*found, *measured))}.")
    return PrivateTable(
        groups={name: codes[whole] for name, codes in found.items()},
        numbers={name: values[whole] for name, values in measured.items()},
        n=n,
        source=source,
        dropped=whole.size - n,
    )


def _numbers(
    source: str, column: str, *, missing: str, base_folder: Path | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return a column of numbers, and where it is missing."""
    tables = []
    for part in open_source(source, base_folder=base_folder or Path()):
        dtype = part.dtype(column)
        if not dtype.is_numeric() and dtype not in (pl.String, pl.Boolean, pl.Null):
            _fail(f"{part.name}: column {column!r} is of type {type_name(dtype)}. It must hold numbers.")
        reading = Reading.of(column, dtype, numeric=True)
        tables.append(part.collect(reading.numbers.cast(pl.Float64).alias("number"), reading.missing.alias("missing")))
    table = pl.concat(tables)
    absent = table["missing"].to_numpy().astype(np.bool_)
    values = table["number"].fill_null(np.nan).to_numpy().astype(np.float64)
    where = f"column {column!r} of {source}"
    if missing == "refuse" and absent.any():
        _refuse(where, absent, 'are missing. Set missing = "drop" to leave them out')
    wrong = ~np.isfinite(values) & ~absent
    if wrong.any():
        _refuse(where, wrong, "hold no finite number")
    return values, absent


def _refuse(where: str, wrong: npt.NDArray[np.bool_], what: str) -> NoReturn:
    """Say how many records are wrong, and which."""
    rows, count = np.flatnonzero(wrong)[:_SHOWN] + 1, int(np.count_nonzero(wrong))
    shown = ", ".join(f"{row:,}" for row in rows) + (", ..." if count > rows.size else "")
    _fail(f"{where}: {count:,} of {wrong.size:,} records (numbers {shown}, counted from 1) {what}.")


def _fail(message: str) -> NoReturn:
    raise DataError(message)
