"""The traces that an attack is tried on: published check-ins or ratings, or any table of users and items."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.model.traces import Traces
from hushuffle.tables.categories import MISSING
from hushuffle.tables.checkins import load_checkins
from hushuffle.tables.ratings import load_ratings
from hushuffle.tables.records import ANYTHING, Rule, TableReader
from hushuffle.tables.sources import open_source

Kind = Literal["table", "checkins", "ratings"]


def load_traces(
    source: str | Path,
    *,
    kind: Kind = "table",
    user: str = "user",
    item: str = "item",
    time: str | None = None,
    stars: float = 4.0,
) -> Traces:
    r"""Return the events of every user of `source`, in order of time.

    "checkins" and "ratings" are read by `load_checkins` and `load_ratings` (ratings of at least `stars`). A "table"
    is a CSV or Parquet file with a column of users, one of items, and one of times, numbers or text that sorts as
    time does (ISO 8601); without a column of times the order of the rows counts. Users and items may be anything.

    Raises:
        DataError: the file cannot be read as asked, or a field is missing; the message shows no value.
        InvalidInputError: there is no such kind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "visits.csv").write_text("user,item,day\nann,bar,2\nbob,inn,1\nann,inn,1\n")
    ...     walks = load_traces(Path(folder, "visits.csv"), time="day")
    >>> walks, [walks.labels[code] for code in walks.trace(0)]
    (Traces(k=2, n=2), ['inn', 'bar'])
    """
    if kind not in get_args(Kind):
        _checks.reject("kind", ", ".join(get_args(Kind)), kind)
    if kind == "checkins":
        return load_checkins(source)
    if kind == "ratings":
        return load_ratings(source, least=stars)
    wanted = {"user": (user, ANYTHING), "item": (item, ANYTHING)} | ({} if time is None else {"time": (time, ANYTHING)})
    frame = _complete(TableReader(open_source(str(source), base_folder=Path()), wanted), wanted)
    if not frame.height:
        fail(f"{source}: no records.")
    labels = tuple(frame["item"].unique().sort().to_list())
    users, items = _ranked(frame["user"]), _ranked(frame["item"])
    when = np.arange(frame.height) if time is None else _in_order(frame["time"])
    return Traces.from_table(users, items, when, k=len(labels), labels=labels)


def _in_order(times: pl.Series) -> npt.NDArray[np.int64]:
    """Return the places of `times`: as numbers if all of them are, else as text."""
    for dtype in (pl.Int64, pl.Float64):
        numbers = times.cast(dtype, strict=False)
        if not numbers.null_count():
            return _ranked(numbers)
    return _ranked(times)


def _ranked(column: pl.Series) -> npt.NDArray[np.int64]:
    return column.rank("dense").cast(pl.Int64).to_numpy() - 1


def _complete(reader: TableReader, wanted: Mapping[str, tuple[str, Rule]]) -> pl.DataFrame:
    """Return all records, of which none lacks a value."""
    blocks = []
    for block in reader.blocks():
        for name, (column, _) in wanted.items():
            where = f"{block.part.name}: column {column!r}: "
            reader.faults[name].refuse(
                MISSING, where, "{count} of {total} records are missing.", total=block.frame.height
            )
        blocks.append(block.frame)
    return pl.concat(blocks)
