"""Collections of tables in memory: Arrow in, Arrow out, for Polars, pandas, DuckDB and all that speak Arrow.

Importing this module adds `frame.shuffle.collect(...)` to the frames of Polars. It is no expression of Polars, which
may be evaluated in parts, twice, or beside other columns. An expression can neither count the people, nor check that
ids differ, nor remove the order of the rows, which reveals the senders.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from hushuffle import _checks
from hushuffle.collection.collect import run
from hushuffle.collection.request import REPORTS, Keys, Request
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.specification import Collection
from hushuffle.specification.mixed import load_deployment
from hushuffle.specification.reading import Columns


def collect_table(
    table: Any,
    specification: Path,
    *,
    out: Path,
    column: str | None = None,
    keys: Keys | None = None,
    min_batch: int = 1,
    budget: Path | None = None,
) -> pl.DataFrame:
    """Randomize and shuffle one column of a table, as `hushuffle collect` does, and return the reports.

    The reports are also in the folder `out`, with the manifest that `hushuffle estimate` reads. They are in random
    order, without columns of the table. During the call, a private temporary file beside `out` has column and ids.

    Args:
        table: an object with the Arrow interface `__arrow_c_stream__`: a frame of Polars, pandas (2.2 or later) or
            pyarrow, a relation of DuckDB. A row is the record of one person.
        specification: the TOML file of a survey of one column; its own data are not read.
        out: a new folder.
        column: the private column; by default that of the specification.
        keys: a key and the column of ids, for repeatable randomness; fresh randomness by default.
        min_batch: the minimum number of people.
        budget: a file with the total epsilon and delta that all collections of the same people may spend.

    Returns:
        The reports as a frame of Polars, which has the Arrow interface, too.

    Raises:
        InvalidInputError: `table` has no Arrow interface, or an argument is out of range.
        UnsupportedProtocolError: the specification has several columns, or releases sums instead of reports.
        DataError: a record is unusable, or there are too few people.

    >>> import hushuffle.integrations.frames, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "survey.toml").write_text('''
    ... population = { n = 3, categories = ["no", "yes"] }
    ... randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ... shuffler = { kind = "uniform" }
    ... targets = { delta = 1e-3 }
    ... ''')
    >>> votes = pl.DataFrame({"name": ["a", "b", "c"], "vote": ["no", "yes", "no"]})
    >>> votes.shuffle.collect(folder / "survey.toml", out=folder / "wave", column="vote").shape
    (3, 1)
    """
    collection = load_deployment(specification)
    if not isinstance(collection, Collection) or isinstance(collection, Columns):
        _checks.unsupported("A table is collected for one column: use a specification without [[columns]] and [sum].")
    if collection.whole.shuffler.reveals is Reveals.SUMS:
        _checks.unsupported("Secure aggregation releases sums and no reports: use `hushuffle collect`.")
    if not hasattr(table, "__arrow_c_stream__"):
        hint = "Pass a frame of Polars, pandas or pyarrow, or a relation of DuckDB."
        _checks.reject("table", "an object with the Arrow interface", f"<{type(table).__name__}>", hint)
    answered = collection.whole.population.answered(column, given=True)
    wanted = [answered.column, answered.person, None if keys is None else keys.ids]
    frame = pl.DataFrame(table)
    frame = frame.select([name for name in dict.fromkeys(wanted) if name in frame.columns])
    with TemporaryDirectory(prefix=".", dir=out.absolute().parent) as private:
        file = Path(private) / "table.parquet"
        frame.write_parquet(file)
        request = Request(
            sources=(str(file),),
            called={str(file): "the table"},
            column=column,
            keys=keys,
            min_batch=min_batch,
            base_folder=specification.parent,
            budget=budget,
        )
        run(collection, out=out, request=request)
    return pl.read_parquet(out / REPORTS)


@pl.api.register_dataframe_namespace("shuffle")
class ShuffleNamespace:
    """`frame.shuffle`: the collection of a frame of Polars."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def collect(self, specification: Path, *, out: Path, **options: Any) -> pl.DataFrame:
        """Return the shuffled reports of one column: `collect_table` with the same arguments."""
        return collect_table(self._frame, specification, out=out, **options)
