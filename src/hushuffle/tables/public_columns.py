"""Load public data about the people of a private column: numbers, labels, attributes and edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import fail
from hushuffle.tables.categories import MISSING
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.reader import NUMBER, TEXT, Faults, Rule, TableReader, check_type
from hushuffle.tables.sources import Part, open_source

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MOST_LABELS: Final = 100


class Where(TypedDict, total=False):
    """`kept`, shape (records,), marks the records that are people, as `Column.kept`; None: all."""

    kept: Mask | None
    base_folder: Path | None
    form: CsvForm | None


def load_numbers(source: str, columns: Sequence[str], *, n: int, **where: Unpack[Where]) -> Floats:
    """Return public columns of numbers, shape (n, d), one row for each of the n people.

    `source` is as for `load_column`. A missing or non-finite number of a person is an error.

    >>> load_numbers("statsmodels:fair", ["age", "educ"], n=6366)[0].tolist()
    [32.0, 17.0]
    """
    table = _read(source, columns, NUMBER, n=n, **where)
    _refuse(source, columns, NUMBER, table, "are missing or no finite numbers", where.get("kept"))
    return np.column_stack([column.to_numpy() for column in table.iter_columns()])


def load_labels(source: str, column: str, *, n: int, **where: Unpack[Where]) -> npt.NDArray[np.str_]:
    """Return a public column as text, shape (n,), one entry for each person.

    >>> load_labels("statsmodels:fair", "children", n=6366)[:3].tolist()
    ['3', '3', '0']
    """
    return np.asarray(_texts(source, column, n=n, **where).to_list(), dtype=np.str_)


def load_texts(source: str, columns: Sequence[str], *, base_folder: Path | None = None) -> list[list[str]]:
    """Return all rows of public columns as text; a missing field is an error.

    >>> [column[:2] for column in load_texts("statsmodels:fair", ["children", "religious"])]
    [['3', '3'], ['3', '1']]
    """
    wanted = {f"{place}": (column, TEXT) for place, column in enumerate(columns)}
    table = TableReader(open_source(source, base_folder=base_folder or Path()), wanted).whole()
    _refuse(source, columns, TEXT, table, "are missing", None)
    return [table[name].to_list() for name in table.columns]


def load_codes(source: str, column: str, *, n: int, **where: Unpack[Where]) -> npt.NDArray[np.int64]:
    """Return a public column as codes, shape (n,): equal text has equal codes. It is fast for very many people.

    >>> load_codes("statsmodels:fair", "children", n=6366)[:3].tolist()
    [0, 0, 1]
    """
    texts = _texts(source, column, n=n, **where)
    return (texts.cast(pl.Categorical).to_physical().rank("dense").cast(pl.Int64) - 1).to_numpy()


def load_attributes(source: str, column: str, *, n: int, **where: Unpack[Where]) -> Floats:
    """Return an adversary's background knowledge, shape (n, d): numbers, or one column of 0 and 1 per label.

    More than 100 different labels are an error.

    >>> load_attributes("statsmodels:fair", "religious", n=6366).shape
    (6366, 1)
    """
    texts = load_labels(source, column, n=n, **where)
    numbers = _read(source, [column], NUMBER, n=n, **where).to_numpy()
    if np.isfinite(numbers).all():
        return numbers
    labels, codes = np.unique(texts, return_inverse=True)
    if labels.size > _MOST_LABELS:
        fail(f"{_quoted([column])} of {source}: more than {_MOST_LABELS} different labels. Give numbers, or fewer.")
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

    Edges of records outside `kept` are omitted. `names`, shape (records,), are distinct; None: records are numbered
    from 0.
    """
    records = n if kept is None else kept.size
    people = np.full(records, -1, dtype=np.int64)
    people[slice(None) if kept is None else kept] = np.arange(n)
    labels = np.arange(records).astype(np.str_) if names is None else names
    order = np.argsort(labels, kind="stable")
    ranked = labels[order]
    if bool(np.any(ranked[1:] == ranked[:-1])):
        fail(f"{source}: two records have the same name, so edges do not identify people.")
    edges = np.concatenate([_ends(part) for part in open_source(source, base_folder=base_folder or Path())])
    places = np.minimum(np.searchsorted(ranked, edges), records - 1)
    unknown = int(np.count_nonzero(ranked[places] != edges))
    if unknown:
        advice = "Records are counted from 0." if names is None else "Names are compared as text, exactly."
        fail(f"{source}: {unknown:,} ends of edges do not occur in the data. {advice}")
    pairs = people[order[places]]
    return pairs[(pairs >= 0).all(axis=1)]


def _ends(part: Part) -> npt.NDArray[np.str_]:
    """Return the first two columns of a file as text, shape (m, 2)."""
    schema = part.schema()
    if len(schema) < 2:
        fail(f"{part.name} must have two columns: the two people of each edge.")
    # The user did not request these names, and they may be a record: messages give the column's number.
    for number, dtype in zip((1, 2), schema.dtypes(), strict=False):
        check_type(part, f"column {number}", TEXT, dtype)
    table = part.collect(*(TEXT.read(name, schema[name]) for name in schema.names()[:2]))
    if any(column.null_count() for column in table.iter_columns()):
        fail(f"{part.name}: a person of an edge is missing.")
    return np.column_stack([np.asarray(column.to_list(), dtype=np.str_) for column in table.iter_columns()])


def _texts(source: str, column: str, *, n: int, **where: Unpack[Where]) -> pl.Series:
    table = _read(source, [column], TEXT, n=n, **where)
    _refuse(source, [column], TEXT, table, "are missing", where.get("kept"))
    return table.to_series()


def _read(source: str, columns: Sequence[str], rule: Rule, *, n: int, **where: Unpack[Where]) -> pl.DataFrame:
    wanted = {f"{place}": (column, rule) for place, column in enumerate(columns)}
    file = open_source(source, base_folder=where.get("base_folder") or Path(), form=where.get("form"))
    table, people = TableReader(file, wanted).whole(), where.get("kept")
    if table.height != (n if people is None else people.size):
        fail(f"{source} has changed while it was read: {table.height:,} records now.")
    return table if people is None else table.filter(pl.Series(people))


def _refuse(source: str, columns: Sequence[str], rule: Rule, table: pl.DataFrame, what: str, mask: Mask | None) -> None:
    """Raise an error with the number of people without a value, and their record numbers in the file."""
    wrong = np.logical_or.reduce([rule.marks(column) < 0 for column in table.iter_columns()])
    marks = np.zeros(wrong.size if mask is None else mask.size, dtype=np.int8)
    marks[slice(None) if mask is None else mask] = np.where(wrong, MISSING, 0)
    faults = Faults()
    faults.note(marks)
    where = f"{_quoted(columns)} of {source}"
    faults.refuse(MISSING, where, f": {{count}} of {wrong.size:,} records {what} ({{numbers}}).")


def _quoted(columns: Sequence[str]) -> str:
    return f"public column{'s' if len(columns) > 1 else ''} {', '.join(repr(column) for column in columns)}"
