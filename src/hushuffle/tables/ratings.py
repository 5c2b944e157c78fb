"""Rating histories as traces: MovieLens' published format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.model.traces import Traces
from hushuffle.tables import _public

_NAMES: Final = ("ratings.csv", "ratings.csv.gz", "ratings.parquet")


def load_ratings(source: str | Path, *, least: float = 0.0) -> Traces:
    r"""Return the ratings of a file as traces of movies: which ones a user rated, in order of time.

    The format is MovieLens' ratings.csv (also .csv.gz, .parquet): columns userId, movieId, rating, timestamp.
    Movies are coded in order of their ids, only those that occur; how well they were liked is not kept. Many
    ratings of one user have the same second: they keep the order of the rows, which in MovieLens is by movie.

    Args:
        source: the file, or a folder with ratings.csv, ratings.csv.gz or ratings.parquet.
        least: ratings below this many stars are left out (4 keeps what the users liked).

    Raises:
        DataError: not there, not such a file, a record that cannot be read (no value is shown), or nothing left.
        InvalidInputError: least is not finite and >= 0.

    Source: Harper, Konstan 2015 (data); Murakami, Takahashi 2021, section 5.1 (4 stars or more).

    >>> import tempfile
    >>> rows = "userId,movieId,rating,timestamp\n1,50,5.0,20\n1,3,4.5,10\n2,3,1.0,15\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "ratings.csv").write_text(rows)
    ...     histories = load_ratings(folder, least=4)
    >>> histories, [histories.labels[code] for code in histories.trace(0)]
    (Traces(k=2, n=1), ['3', '50'])
    """
    stars = _checks.non_negative("least", least)
    part = _public.table(_public.find(source, _NAMES))
    wanted = {column: pl.col(column).cast(pl.Int64, strict=False) for column in ("userId", "movieId", "timestamp")}
    wanted["rating"] = pl.col("rating").cast(pl.Float64, strict=False)
    frame = _public.whole(part, wanted, "a number").filter(pl.col("rating") >= stars)
    if not frame.height:
        fail(f"{part.name}: no rating has at least {stars:g} stars.")
    movies = frame["movieId"].unique().sort()
    codes = frame["movieId"].rank("dense").cast(pl.Int64) - 1
    return Traces.from_table(
        frame["userId"].to_numpy(),
        codes.to_numpy(),
        frame["timestamp"].to_numpy(),
        k=movies.len(),
        labels=tuple(movies.cast(pl.String).to_list()),
    )
