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
    """Refuse a file whose kind is not known."""
    if path.suffix not in KINDS:
        _checks.reject("out", f"a file of these kinds: {', '.join(KINDS)}", path.name)


def frequency_table(
    estimate: Estimate,
    labels: Sequence[str],
    *,
    confidence: float,
    above: npt.NDArray[np.bool_],
) -> pl.DataFrame:
    """Return `value`, `frequency`, `standard_error`, `low`, `high`, `above_threshold`: a row for each of the k values.

    `above` says which values are told from noise, shape (k,).

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle, estimate
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=4)
    >>> made = estimate(np.array([0, 1, 1, 1]), protocol=survey)
    >>> frequency_table(made, ["no", "yes"], confidence=0.95, above=np.array([False, True])).select("value").rows()
    [('no',), ('yes',)]
    """
    low, high = estimate.interval(confidence).T
    return pl.DataFrame(
        {
            "value": list(labels),
            "frequency": estimate.frequencies,
            "standard_error": estimate.standard_errors,
            "low": np.ascontiguousarray(low),
            "high": np.ascontiguousarray(high),
            "above_threshold": above,
        }
    )


def frequency_text(table: pl.DataFrame, facts: dict[str, Any]) -> str:
    """Return the table as JSON, with `facts` about it."""
    document = {"schema_version": 1, "content": "frequencies", **facts, "frequencies": table.to_dicts()}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save_frequencies(path: Path, table: pl.DataFrame, facts: dict[str, Any]) -> None:
    """Write the table as .csv, .parquet or .json (with `facts`); the file is whole or not there.

    In a .csv file texts are `in_cells`.
    """
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
    """Return a text as a cell that no spreadsheet takes for a formula: where it might, with an apostrophe in front.

    Numbers stay as they are. A text that starts with an apostrophe gets another one, so that what was there comes back
    if one is taken away from every cell that starts with one.

    >>> [in_cell(text) for text in ("=HYPERLINK(A1)", "-1.5", "-no", "'tis", "yes")]
    ["'=HYPERLINK(A1)", '-1.5', "'-no", "''tis", 'yes']
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def columns_text(tables: Mapping[str, pl.DataFrame], facts: Mapping[str, dict[str, Any]]) -> str:
    """Return the tables of several columns as JSON, by name, each with its facts."""
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
    """Write a text; the file is whole or not there."""
    with _whole(path) as file:
        file.write(text.encode())


@contextmanager
def _whole(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write, which comes to its place when it is whole."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    with naming(path), ExitStack() as undo:
        undo.callback(new.unlink, missing_ok=True)
        with new.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
