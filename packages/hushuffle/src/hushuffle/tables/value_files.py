"""Files with a row for each value: labels, probabilities of reports (a matrix), and estimated frequencies.

Messages contain no label and no number of a file, since the file may contain answers by mistake.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.files.causes import cause, failing, naming, refused
from hushuffle.files.private_files import write_whole
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX
from hushuffle.model import Estimate
from hushuffle.tables.categories import Rule
from hushuffle.tables.csv_form import KINDS
from hushuffle.tables.parquet import read_parquet
from hushuffle.tables.reader import TableReader, open_source

_KINDS: Final = (".csv", ".parquet", ".json")
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n']")
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def check_kind(path: Path) -> None:
    if path.suffix not in _KINDS:
        _checks.reject("out", f"a file of these kinds: {', '.join(_KINDS)}", path.name)


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


def tables_text(tables: Mapping[str, pl.DataFrame], facts: Mapping[str, dict[str, Any]]) -> str:
    """Return the tables of columns by name as JSON, with `facts`; the name of a single column is ""."""
    columns = {name: {**facts[name], "frequencies": table.to_dicts()} for name, table in tables.items()}
    document = {"content": "frequencies of columns", "columns": columns}
    if "" in columns:
        document = {"content": "frequencies", **columns[""]}
    return json.dumps({"schema_version": 1, **document}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def save_tables(path: Path, tables: Mapping[str, pl.DataFrame], facts: Mapping[str, dict[str, Any]]) -> None:
    """Write the tables as .csv (texts as by `in_cell`), .parquet or .json (with `facts`): the whole file or nothing.

    A table of several columns has a first field `column`.
    """
    check_kind(path)
    content = BytesIO()  # written by Polars into the file itself, a full disk would not be told from a mistake
    parts = [table.select(pl.lit(name).alias("column"), pl.all()) if name else table for name, table in tables.items()]
    if path.suffix == ".csv":
        escaped = pl.col(pl.String).map_elements(in_cell, return_dtype=pl.String)
        pl.concat(parts).with_columns(escaped).write_csv(content)
    elif path.suffix == ".parquet":
        pl.concat(parts).write_parquet(content)
    else:
        content.write(tables_text(tables, facts).encode())
    with naming(path):
        write_whole(path, content.getvalue(), durable=True)


def in_cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet reads as a formula: a possible formula gets an apostrophe in front.

    Numbers stay unchanged. A text that starts with an apostrophe gets another apostrophe, so that removing the first
    apostrophe of every cell restores the texts.

    >>> [in_cell(text) for text in ("=HYPERLINK(A1)", "-1.5", "-no", "'tis", "yes")]
    ["'=HYPERLINK(A1)", '-1.5', "'-no", "''tis", 'yes']
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def save_text(path: Path, text: str) -> None:
    """The file gets the whole text, or is unchanged."""
    with naming(path):
        write_whole(path, text.encode(), durable=True)


_MOST_LABELS: Final = 10**7


def load_labels_file(name: str, *, base_folder: Path) -> tuple[str, ...]:
    r"""Return the labels in a file: the first column of a CSV file with a line of names, or the lines of another file.

    Files must be UTF-8. Spaces around a line of text are removed; blank lines are ignored. Messages contain no label,
    since the file may contain answers by mistake.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "towns.txt").write_text("Bern\nChur\n")
    ...     load_labels_file("towns.txt", base_folder=Path(folder))
    ('Bern', 'Chur')
    """
    if name.endswith((*KINDS, ".parquet")):
        (part,) = open_source(name, base_folder=base_folder)
        rule = Rule(read=lambda column, _: pl.col(column).cast(pl.String))
        texts = TableReader([part], {"label": (1, rule)}).whole()["label"]
        if missing := texts.is_null().arg_true().to_list():
            fail(f"{name}: its first column, the labels, is empty in record {missing[0] + 1:,}.")
        labels: list[str] = texts.to_list()
        lines, unit = list(range(1, texts.len() + 1)), "record"
    else:
        (labels, lines), unit = _of_text(name, base_folder / Path(name).expanduser()), "line"
    if not labels:
        fail(f"{name} holds no labels.")
    if len(labels) > _MOST_LABELS:
        fail(f"{name} holds {len(labels):,} labels, but at most {_MOST_LABELS:,} are allowed.")
    seen: dict[str, int] = {}
    for label, place in zip(labels, lines, strict=True):
        if not label.isprintable() or not label.strip():
            fail(f"{name}, {unit} {place:,}: the label must be text on one line, without control characters.")
        if label in seen:
            fail(f"{name}, {unit} {place:,}: it is the same label as in {unit} {seen[label]:,}. Remove one of them.")
        seen[label] = place
    return tuple(labels)


def _of_text(name: str, path: Path) -> tuple[list[str], list[int]]:
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except FileNotFoundError:
        fail(f"{name} does not exist. Relative paths start at the folder of the specification.")
    except OSError as error:
        fail(f"{name} cannot be read: {cause(error)}.")
    except UnicodeDecodeError:
        fail(f"{name} is not UTF-8 text.")
    places = [place for place, line in enumerate(lines, start=1) if line.strip()]
    return [lines[place - 1].strip() for place in places], places


_LARGEST_FILE: Final = 1 << 26
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
        if path.stat().st_size > _LARGEST_FILE:
            fail(f"{name} is too large for a matrix: at most {_LARGEST_FILE:,} bytes are allowed.")
        rows = read(path, name)
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
    return rows


def _matrix_of_csv(path: Path, name: str) -> list[list[float]]:
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


def _matrix_of_parquet(path: Path, name: str) -> list[list[float]]:
    table = pl.concat(read_parquet(pl.scan_parquet(path.absolute(), glob=False), path, name=name))
    if not all(dtype.is_numeric() for dtype in table.dtypes) or any(table.null_count().row(0)):
        fail(f"{name} must have columns of numbers only, none missing.")
    return [[float(entry) for entry in row] for row in table.rows()]


def _matrix_of_numpy(path: Path, name: str) -> list[list[float]]:
    with refused(Path(name), f"{name} is not a NumPy file of numbers, or is damaged."):
        array = np.load(path, allow_pickle=False, mmap_mode="r")  # so that a header that claims too much is noticed
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
        fail(f"{name} must hold one array of numbers with two dimensions.")
    rows: list[list[float]] = array.astype(np.float64).tolist()
    return rows


_READERS: Final[Mapping[str, Callable[[Path, str], list[list[float]]]]] = {
    ".csv": _matrix_of_csv,
    ".parquet": _matrix_of_parquet,
    ".npy": _matrix_of_numpy,
}
