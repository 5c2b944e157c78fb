"""Public columns beside the private one: places, labels and edges, for the same people in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle.errors import DataError
from hushuffle.tables.categories import Reading
from hushuffle.tables.sources import Part, open_source, type_name

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MOST_LABELS: Final = 100
_SHOWN: Final = 5


def load_numbers(
    source: str, columns: Sequence[str], *, n: int, kept: Mask | None = None, base_folder: Path | None = None
) -> Floats:
    """Return public columns of numbers, shape (n, d), one row for each person.

    Args:
        source: as `load_column`.
        columns: their names.
        n: number of people: of the records that are kept.
        kept: which records are people, shape (records,), as `Column.kept`; None: all.
        base_folder: where relative paths start; None for the current folder.

    Raises:
        DataError: the data cannot be read, lack a column, or an entry of a person is missing or no finite number.
        MissingDependencyError: statsmodels is not installed.

    >>> load_numbers("statsmodels:fair", ["age", "educ"], n=6366)[0].tolist()
    [32.0, 17.0]
    """
    where = f"{_quoted(columns)} of {source}"
    found = _read(source, columns, kept=kept, n=n, base_folder=base_folder, numeric=True)
    numbers = np.column_stack([found[f"number {place}"].to_numpy() for place in range(len(columns))])
    wrong = ~np.isfinite(numbers).all(axis=1)
    if wrong.any():
        _refuse(where, wrong, "are missing or no finite numbers", kept)
    return np.asarray(numbers, dtype=np.float64)


def load_labels(
    source: str, column: str, *, n: int, kept: Mask | None = None, base_folder: Path | None = None
) -> npt.NDArray[np.str_]:
    """Return a public column as text, shape (n,), one entry for each person.

    Args and errors: as `load_numbers`, but that entries need not be numbers.

    >>> load_labels("statsmodels:fair", "children", n=6366)[:3].tolist()
    ['3', '3', '0']
    """
    found = _read(source, [column], kept=kept, n=n, base_folder=base_folder, numeric=False)
    missing = found["missing 0"].to_numpy()
    if missing.any():
        _refuse(f"{_quoted([column])} of {source}", missing, "are missing", kept)
    return np.asarray(found["text 0"].to_list(), dtype=np.str_)


def load_codes(
    source: str, column: str, *, n: int, kept: Mask | None = None, base_folder: Path | None = None
) -> npt.NDArray[np.int64]:
    """Return a public column as numbers, shape (n,): the same number for the same text; for very many people.

    Args and errors: as `load_labels`.

    >>> load_codes("statsmodels:fair", "children", n=6366)[:3].tolist()
    [0, 0, 1]
    """
    found = _read(source, [column], kept=kept, n=n, base_folder=base_folder, numeric=False)
    missing = found["missing 0"].to_numpy()
    if missing.any():
        _refuse(f"{_quoted([column])} of {source}", missing, "are missing", kept)
    numbered = found.select(pl.first().cast(pl.Categorical).to_physical().rank("dense").cast(pl.Int64) - 1)
    return numbered.to_series().to_numpy()


def load_attributes(
    source: str, column: str, *, n: int, kept: Mask | None = None, base_folder: Path | None = None
) -> Floats:
    """Return what somebody knows about everybody, shape (n, d): numbers, or one column of 0 and 1 for each label.

    Args and errors: as `load_labels`; more than 100 different labels are refused.

    >>> load_attributes("statsmodels:fair", "religious", n=6366).shape
    (6366, 1)
    """
    texts = load_labels(source, column, n=n, kept=kept, base_folder=base_folder)
    found = _read(source, [column], kept=kept, n=n, base_folder=base_folder, numeric=True)
    numbers = found["number 0"].to_numpy().astype(np.float64)
    if np.isfinite(numbers).all():
        return numbers[:, np.newaxis]
    labels, codes = np.unique(texts, return_inverse=True)
    if labels.size > _MOST_LABELS:
        _fail(f"{_quoted([column])} of {source}: more than {_MOST_LABELS} different labels. Give numbers, or fewer.")
    return np.eye(labels.size)[codes]


def load_edges(
    source: str,
    *,
    n: int,
    names: npt.NDArray[np.str_] | None = None,
    kept: Mask | None = None,
    base_folder: Path | None = None,
) -> npt.NDArray[np.int64]:
    """Return the edges of a public graph, shape (m, 2), people 0..n-1: the first two columns of a file.

    Edges of records that are not kept are left out.

    Args:
        source: a CSV or Parquet file, or a glob.
        n: number of people: of the records that are kept.
        names: how the file names the records, shape (records,), distinct; None: by number, from 0.
        kept: which records are people, shape (records,), as `Column.kept`; None: all.
        base_folder: where relative paths start; None for the current folder.

    Raises:
        DataError: the file cannot be read, has no two columns, or names somebody who is no record; or names twice.
    """
    records = n if kept is None else kept.size
    people = np.full(records, -1, dtype=np.int64)
    people[slice(None) if kept is None else kept] = np.arange(n)
    known = np.arange(records).astype(np.str_) if names is None else names
    order = np.argsort(known, kind="stable")
    ranked = known[order]
    if bool(np.any(ranked[1:] == ranked[:-1])):
        _fail(f"{source}: two records have the same name, so that edges do not say whom they join.")
    ends = [_ends(part) for part in open_source(source, base_folder=base_folder or Path())]
    edges = np.concatenate(ends)
    places = np.minimum(np.searchsorted(ranked, edges), records - 1)
    unknown = int(np.count_nonzero(ranked[places] != edges))
    if unknown:
        advice = "Records are counted from 0." if names is None else "Names are compared as text, exactly."
        _fail(f"{source}: {unknown:,} ends of edges are no records of the data. {advice}")
    found = people[order[places]]
    return found[(found >= 0).all(axis=1)]


def _ends(part: Part) -> npt.NDArray[np.str_]:
    """Return the first two columns of a file as text, shape (m, 2)."""
    schema = part.schema()
    if len(schema) < 2:
        _fail(f"{part.name} must have two columns: who knows whom.")
    # Nobody has asked for their names, and without a line of names they are a record: messages call them by number.
    readings = [
        Reading.of(name, _readable(dtype, part, f"column {number}"), numeric=False)
        for number, (name, dtype) in zip((1, 2), schema.items(), strict=False)
    ]
    table = part.collect(*(reading.texts.alias(f"{place}") for place, reading in enumerate(readings)))
    if any(table[name].is_null().any() for name in table.columns):
        _fail(f"{part.name}: an end of an edge is missing.")
    return np.column_stack([np.asarray(table[name].to_list(), dtype=np.str_) for name in table.columns])


def _read(
    source: str, columns: Sequence[str], *, kept: Mask | None, n: int, base_folder: Path | None, numeric: bool
) -> pl.DataFrame:
    """Return number, text and whether it is missing of each column by place, of the people."""
    parts = open_source(source, base_folder=base_folder or Path())
    tables = []
    for part in parts:
        wanted = []
        for place, column in enumerate(columns):
            reading = Reading.of(column, _dtype(part, column), numeric=numeric)
            wanted += [reading.numbers.cast(pl.Float64).alias(f"number {place}")] if numeric else []
            wanted += [] if numeric else [reading.texts.alias(f"text {place}")]
            wanted.append(reading.missing.alias(f"missing {place}"))
        tables.append(part.collect(*wanted))
    table = pl.concat(tables)
    if table.height != (n if kept is None else kept.size):
        _fail(f"{source} has changed while it was read: {table.height:,} records now.")
    return table if kept is None else table.filter(pl.Series(kept))


def _dtype(part: Part, column: str) -> pl.DataType:
    return _readable(part.dtype(column), part, f"column {column!r}")


def _readable(dtype: pl.DataType, part: Part, called: str) -> pl.DataType:
    if not dtype.is_numeric() and dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null):
        _fail(f"{part.name}: {called} is of type {type_name(dtype)}. It must hold text, numbers or booleans.")
    return dtype


def _refuse(where: str, wrong: Mask, what: str, kept: Mask | None) -> NoReturn:
    """Say how many entries are wrong and which records they belong to, counted in the file."""
    numbers = np.arange(wrong.size) if kept is None else np.flatnonzero(kept)
    rows = numbers[wrong][:_SHOWN] + 1
    count = int(np.count_nonzero(wrong))
    shown = ", ".join(f"{row:,}" for row in rows) + (", ..." if count > rows.size else "")
    _fail(f"{where}: {count:,} of {wrong.size:,} records {what} (numbers {shown}, counted from 1).")


def _quoted(columns: Sequence[str]) -> str:
    return f"public column{'s' if len(columns) > 1 else ''} {', '.join(repr(column) for column in columns)}"


def _fail(message: str) -> NoReturn:
    raise DataError(message)
