"""Read a matrix of probabilities from a file: CSV without header, Parquet, or NumPy.

Messages contain no number of the matrix, since the file may contain answers by mistake.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hushuffle._checks import fail
from hushuffle.files.causes import failing, refused
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX
from hushuffle.tables.parquet import read_parquet

_LARGEST: Final = 1 << 26
"""Largest size of a matrix file, in bytes."""

_TOLERANCE: Final = 1e-12
_SINGLE: Final = 1e-6


def load_matrix(name: str, *, base_folder: Path = Path()) -> list[list[float]]:
    """Return the rows of the matrix in the file `name`, relative to `base_folder`; each row sums to 1."""
    path = base_folder / name
    read = _READERS.get(path.suffix.lower())
    if read is None:
        fail(f"{name} must end in {', '.join(_READERS)}: other formats are not supported.")
    with failing(f"{name} cannot be read"):
        if path.exists() and not path.is_file():
            fail(f"{name} is not a regular file.")
        if path.stat().st_size > _LARGEST:
            fail(f"{name} is too large for a matrix: at most {_LARGEST:,} bytes are allowed.")
        rows = read(path, name)
    _check(name, rows)
    return rows


def _check(name: str, rows: list[list[float]]) -> None:
    if len(rows) < 2:
        fail(f"{name} must have a row for each of two or more values, and has {len(rows)}.")
    if len(rows) * len(rows[0]) > LARGEST_MATRIX:
        fail(f"{name} must have at most {LARGEST_MATRIX:,} numbers, and has {len(rows)} rows of {len(rows[0]):,}.")
    for number, row in enumerate(rows, start=1):
        if not all(0 <= entry <= 1 for entry in row):
            fail(f"{name}, row {number}: a number is not a probability from 0 to 1.")
        if abs(sum(row) - 1) > _TOLERANCE * len(row):
            off = abs(sum(row) - 1) < _SINGLE * len(row)
            hint = " Save it in double precision (float64)." if off else " Rows are values, columns are reports."
            fail(f"{name}, row {number}: the probabilities do not sum to 1.{hint}")


def _csv(path: Path, name: str) -> list[list[float]]:
    rows: list[list[float]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for line in (reader := csv.reader(lines)):
                if line:
                    rows.append([_number(cell, name, reader.line_num) for cell in line])
                if rows and len(rows[-1]) != len(rows[0]):
                    first, here = len(rows[0]), len(rows[-1])
                    fail(f"{name}, line {reader.line_num}: {here} numbers, but {first} in the first line.")
    except UnicodeDecodeError:
        fail(f"{name} is not text. Give a CSV file of numbers.")
    except csv.Error as error:
        fail(f"{name} is not a CSV file of numbers ({error}).")
    return rows


def _number(cell: str, name: str, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        fail(f"{name}, line {line}: write numbers, separated by commas, without a header.")


def _parquet(path: Path, name: str) -> list[list[float]]:
    table = pl.concat(read_parquet(pl.scan_parquet(path.absolute(), glob=False), path, name=name))
    if not all(dtype.is_numeric() for dtype in table.dtypes) or any(table.null_count().row(0)):
        fail(f"{name} must have columns of numbers only, none missing.")
    return [[float(entry) for entry in row] for row in table.rows()]


def _numpy(path: Path, name: str) -> list[list[float]]:
    with refused(Path(name), f"{name} is not a NumPy file of numbers, or is damaged."):
        array = np.load(path, allow_pickle=False, mmap_mode="r")  # so that a header that claims too much is noticed
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
        fail(f"{name} must hold one array of numbers with two dimensions.")
    rows: list[list[float]] = array.astype(np.float64).tolist()
    return rows


_READERS: Final[Mapping[str, Callable[[Path, str], list[list[float]]]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".npy": _numpy,
}
