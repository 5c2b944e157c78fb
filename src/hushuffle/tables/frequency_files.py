"""Estimated frequencies as a table on disk."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.files.causes import naming
from hushuffle.model import Estimate

KINDS: Final = (".csv", ".parquet", ".json")
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n']")
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def check_kind(path: Path) -> None:
    if path.suffix not in KINDS:
        _checks.reject("out", f"a file of these kinds: {', '.join(KINDS)}", path.name)


def frequency_table(
    estimate: Estimate,
    labels: Sequence[str],
    *,
    confidence: float,
    above: npt.NDArray[np.bool_],
    simplex: Estimate | None = None,
) -> pl.DataFrame:
    """Return a row for each of the k values, with the share of the people and their number, each with its interval.

    The columns are `value`, `frequency`, `standard_error`, `low`, `high`, `above_threshold`, `people`, `people_low` and
    `people_high`. `above`, shape (k,), marks the statistically significant values. `simplex` is the same estimate
    projected to the simplex; it adds `simplex_frequency` and `simplex_people`, which have no interval.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle, estimate
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=4)
    >>> result = estimate(np.array([0, 1, 1, 1]), protocol=survey)
    >>> frequency_table(result, ["no", "yes"], confidence=0.95, above=np.array([False, True])).select("value").rows()
    [('no',), ('yes',)]
    """
    table = pl.DataFrame(
        {
            "value": list(labels),
            "frequency": estimate.raw,
            "standard_error": estimate.standard_errors,
            **_ends(estimate.interval(confidence)),
            "above_threshold": above,
            "people": estimate.raw * estimate.n,
            **_ends(estimate.interval(confidence) * estimate.n, "people_"),
        }
    )
    if simplex is None:
        return table
    shares = simplex.frequencies
    return table.with_columns(simplex_frequency=pl.Series(shares), simplex_people=pl.Series(shares * simplex.n))


def chosen_rows(
    table: pl.DataFrame, values: npt.NDArray[np.int64], *, intervals: npt.NDArray[np.float64], people: int
) -> pl.DataFrame:
    """Return the rows of a `frequency_table` for `values`, in that order, with other `intervals`, shape (m, 2)."""
    ends = {**_ends(intervals), **_ends(intervals * people, "people_")}
    return table[values].with_columns(pl.Series(name, end, dtype=pl.Float64) for name, end in ends.items())


def _ends(intervals: npt.NDArray[np.float64], of: str = "") -> dict[str, npt.NDArray[np.float64]]:
    return {f"{of}{end}": np.ascontiguousarray(intervals[:, place]) for place, end in enumerate(("low", "high"))}


def frequency_text(table: pl.DataFrame, facts: dict[str, Any]) -> str:
    document = {"schema_version": 1, "content": "frequencies", **facts, "frequencies": table.to_dicts()}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save_frequencies(path: Path, table: pl.DataFrame, facts: dict[str, Any]) -> None:
    """Write a table as .csv (texts as by `in_cell`), .parquet or .json (with `facts`): the whole file or nothing."""
    check_kind(path)
    content = BytesIO()  # written by Polars into the file itself, a full disk would not be told from a mistake
    if path.suffix == ".csv":
        table.with_columns(pl.col(pl.String).map_elements(in_cell, return_dtype=pl.String)).write_csv(content)
    elif path.suffix == ".parquet":
        table.write_parquet(content)
    else:
        content.write(frequency_text(table, facts).encode())
    with _whole(path) as file:
        file.write(content.getbuffer())


def in_cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet reads as a formula: a possible formula gets an apostrophe in front.

    Numbers stay unchanged. A text that starts with an apostrophe gets another apostrophe, so that removing the first
    apostrophe of every cell restores the texts.

    >>> [in_cell(text) for text in ("=HYPERLINK(A1)", "-1.5", "-no", "'tis", "yes")]
    ["'=HYPERLINK(A1)", '-1.5', "'-no", "''tis", 'yes']
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def columns_text(tables: Mapping[str, pl.DataFrame], facts: Mapping[str, dict[str, Any]]) -> str:
    columns = {name: {**facts[name], "frequencies": table.to_dicts()} for name, table in tables.items()}
    document = {"schema_version": 1, "content": "frequencies of columns", "columns": columns}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save_columns(path: Path, tables: Mapping[str, pl.DataFrame], facts: Mapping[str, dict[str, Any]]) -> None:
    """Write the tables of several columns as .csv, .parquet (with a first field `column`) or .json (with `facts`)."""
    if path.suffix == ".json":
        save_text(path, columns_text(tables, facts))
        return
    named = [table.select(pl.lit(name).alias("column"), pl.all()) for name, table in tables.items()]
    save_frequencies(path, pl.concat(named), {})


def save_text(path: Path, text: str) -> None:
    """The file gets the whole text, or is unchanged."""
    with _whole(path) as file:
        file.write(text.encode())


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    with naming(path), ExitStack() as undo:
        undo.callback(new.unlink, missing_ok=True)
        with new.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
