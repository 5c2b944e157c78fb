"""The Adult census extract: its published text files, or one Parquet table."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Final

import polars as pl

from hushuffle._checks import fail
from hushuffle.tables.published import complete, find, table, whole

_COLUMNS: Final = {
    "age": pl.Int64,
    "workclass": pl.String,
    "fnlwgt": pl.Int64,
    "education": pl.String,
    "education_num": pl.Int64,
    "marital_status": pl.String,
    "occupation": pl.String,
    "relationship": pl.String,
    "race": pl.String,
    "sex": pl.String,
    "capital_gain": pl.Int64,
    "capital_loss": pl.Int64,
    "hours_per_week": pl.Int64,
    "native_country": pl.String,
    "income": pl.String,
    "split": pl.String,
}
_PARTS: Final = (("train", "adult.data"), ("test", "adult.test"))


def load_census(folder: str | Path) -> pl.DataFrame:
    """Return the people of the Adult census extract, one row each, in the order of the files.

    Columns: age, workclass, fnlwgt, education, education_num, marital_status, occupation, relationship, race, sex,
    capital_gain, capital_loss, hours_per_week, native_country, income ("<=50K" or ">50K") and split ("train" or
    "test"); numbers are 64-bit integers, the rest text. "?" (not known) stays as it is; spaces around a field and
    the full stop behind the test set's incomes go.

    Args:
        folder: holds adult.parquet, or adult.data and adult.test (each also .gz).

    Raises:
        DataError: a file is missing or cannot be read; names file, record and column, never a value.

    Source: Kohavi, Becker 1996 (data).

    >>> import tempfile
    >>> row = "39, ?, 1, HS, 13, Single, Sales, Child, White, Male, 0, 0, 40, Peru, <=50K"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, end in (("adult.data", ""), ("adult.test", ".")):
    ...         written = Path(folder, name).write_text(row + end)
    ...     load_census(folder).select("age", "income", "split").rows()
    [(39, '<=50K', 'train'), (39, '<=50K', 'test')]
    """
    where = Path(folder).expanduser()
    if (where / "adult.parquet").is_file():
        wanted = {name: pl.col(name).cast(dtype, strict=False) for name, dtype in _COLUMNS.items()}
        return whole(table(where / "adult.parquet"), wanted, "as published")
    return pl.concat([_published(where, name, split) for split, name in _PARTS])


def _published(folder: Path, name: str, split: str) -> pl.DataFrame:
    """Return one published file: 15 fields separated by a comma and a space, perhaps a comment and blank lines."""
    path = find(folder, (name, f"{name}.gz")) if folder.is_dir() else find(folder / name, ())
    try:
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode("ascii")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        fail(f"{path} cannot be read: it may be cut off or damaged.")
    records = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field.strip() for field in line.split(",")]
        if fields == [""] or line.startswith("|"):
            continue
        if len(fields) != len(_COLUMNS) - 1:
            fail(f"{path}: line {number:,} has {len(fields)} fields, not {len(_COLUMNS) - 1}.")
        records.append([*fields[:-1], fields[-1].removesuffix("."), split])
    frame = pl.DataFrame(records, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    frame = frame.select(pl.col(column).cast(dtype, strict=False) for column, dtype in _COLUMNS.items())
    complete(frame, str(path), "an integer")
    return frame
