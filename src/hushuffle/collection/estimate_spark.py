"""Counting reports with Spark: every partition counts its own, what comes here are the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hushuffle.collection.engines.spark import count_reports
from hushuffle.collection.engines.spark_session import plainly, started
from hushuffle.collection.estimate_reports import Count
from hushuffle.errors import DataError

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import Mechanism
    from hushuffle.model import Histogram


@contextmanager
def counting_on(master: str) -> Iterator[Count]:
    """Give a way to count reports on a Spark cluster that reads the same files as this machine.

    Raises:
        MissingDependencyError: pyspark or Java is not there.
        DataError: the cluster cannot be reached.
    """
    with started(master) as session:

        def count(files: Sequence[Path], randomizer: Mechanism) -> tuple[int, Histogram]:
            absent = [file for file in files if not file.is_file()]
            if absent:
                message = f"{absent[0]} does not exist."
                raise DataError(message)
            strict = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
            with plainly():
                frame = session.read.options(**strict).parquet(*(f"file://{file.resolve()}" for file in files))
            return count_reports(frame, randomizer)

        yield count
