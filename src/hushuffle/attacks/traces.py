"""The traces that an attack is tried on: published check-ins or ratings, or any table of users and items."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.model.traces import Traces
from hushuffle.tables.checkins import load_checkins
from hushuffle.tables.ratings import load_ratings
from hushuffle.tables.sources import Part, open_source

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
    parts = open_source(str(source), base_folder=Path())
    frame = pl.concat([_events(part, user=user, item=item, time=time) for part in parts])
    if not frame.height:
        message = f"{source}: no records."
        raise DataError(message)
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


def _events(part: Part, *, user: str, item: str, time: str | None) -> pl.DataFrame:
    """Return users, items and times as text."""
    wanted = {"user": user, "item": item} | ({} if time is None else {"time": time})
    for column in wanted.values():
        part.dtype(column)
    frame = part.collect(*(pl.col(column).cast(pl.String).alias(name) for name, column in wanted.items()))
    for name, column in wanted.items():
        missing = int((frame[name].is_null() | (frame[name] == "")).sum())
        if missing:
            message = f"{part.name}: column {column!r}: {missing:,} of {frame.height:,} records are missing."
            raise DataError(message)
    return frame
