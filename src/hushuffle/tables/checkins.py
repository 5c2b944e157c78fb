"""Check-ins (user, venue, time) as traces: Foursquare's published formats, or a Parquet table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from hushuffle._checks import fail
from hushuffle.model.traces import Traces
from hushuffle.tables import _public

_NAMES: Final = ("checkins.parquet", "dataset_TSMC2014_NYC.txt")
_COLUMNS: Final = {
    4: ("user", "venue", "time", "offset"),
    8: ("user", "venue", "category_id", "category", "latitude", "longitude", "offset", "time"),
}
_CLOCK: Final = "%a %b %d %H:%M:%S %z %Y"  # Tue Apr 03 18:00:09 +0000 2012


def load_checkins(source: str | Path) -> Traces:
    r"""Return the check-ins of a file as traces of venues, in order of time.

    Formats: Parquet with the integer columns user, poi and minute; or text as Foursquare's data are published,
    tab-separated without a line of names: 8 columns (user, venue, category id, category, latitude, longitude,
    time zone offset, UTC time: "dataset_TSMC2014_NYC.txt") or 4 (user, venue, UTC time, time zone offset: the
    global data of 2015 and 2019). Venues are coded in order of their ids; rows that are there twice stay twice;
    events of one user at the same time keep the order of the rows.

    Args:
        source: the file, or a folder with checkins.parquet or dataset_TSMC2014_NYC.txt.

    Raises:
        DataError: not there, not such a file, or a record that cannot be read (no value is shown).

    Source: Yang, Zhang, Zheng, Yu 2015 (data).

    >>> import tempfile
    >>> rows = "1\tcafe\tTue Apr 03 18:00:09 +0000 2012\t-240\n1\tbar\tTue Apr 03 17:00:09 +0000 2012\t-240\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "checkins.txt")
    ...     written = path.write_text(rows)
    ...     walks = load_checkins(path)
    >>> [walks.labels[code] for code in walks.trace(0)]
    ['bar', 'cafe']
    """
    path = _public.find(source, _NAMES)
    if path.suffix == ".parquet":
        frame = _public.integers(_public.table(path), "user", "poi", "minute")
        frame = frame.rename({"poi": "venue", "minute": "time"})
    else:
        frame = _tabbed(path)
    venues = frame["venue"].unique().sort()
    codes = frame["venue"].rank("dense").cast(pl.Int64) - 1
    labels = tuple(venues.cast(pl.String).to_list())
    times = frame["time"].to_physical()
    return Traces.from_table(frame["user"].to_numpy(), codes.to_numpy(), times.to_numpy(), k=len(labels), labels=labels)


def _tabbed(path: Path) -> pl.DataFrame:
    """Return user, venue and time of a published text file; category names in it are not all UTF-8."""
    with path.open("rb") as stream:
        fields = stream.readline().count(b"\t") + 1
    if fields not in _COLUMNS:
        fail(f"{path}: line 1 has {fields} fields separated by tabs, not 4 or 8 as published check-ins have.")
    try:
        frame = pl.read_csv(
            path,
            separator="\t",
            has_header=False,
            quote_char=None,
            infer_schema=False,
            encoding="utf8-lossy",
            new_columns=list(_COLUMNS[fields]),
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        fail(f"{path} cannot be read: a line has more than {fields} fields separated by tabs.")
    frame = frame.select(
        pl.col("user").cast(pl.Int64, strict=False),
        pl.col("venue"),
        pl.col("time").str.to_datetime(_CLOCK, time_unit="ms", strict=False),
    )
    _public.complete(frame, str(path), "as published")
    return frame
