"""One Spark session for all tests of a run, on this machine: two tasks at a time, four attempts for each."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ABSENT = [name for name in ("pyspark", "pyarrow", "pandas") if importlib.util.find_spec(name) is None]
_JAVA = shutil.which("java") is not None or "JAVA_HOME" in os.environ

NEEDS_SPARK = [
    pytest.mark.spark,
    pytest.mark.skipif(bool(_ABSENT), reason=f"not installed: {', '.join(_ABSENT)}"),
    pytest.mark.skipif(not _JAVA, reason="Java is not installed"),
    # pyspark has opinions on versions of pandas, which is not used here.
    pytest.mark.filterwarnings(r"ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@cache
def folder() -> Path:
    """Where Spark keeps its files (`local`) and tells what it does (`events`); removed when the tests end."""
    place = Path(tempfile.mkdtemp(prefix="hushuffle-spark-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "events").mkdir()
    return place


@cache
def session() -> SparkSession:
    """The session; as talkative as Spark can be, for the test that looks for secrets."""
    from hushuffle.collection.engines.spark_session import started  # noqa: PLC0415 - needs Spark

    place = folder()
    settings = {
        "spark.local.dir": str(place / "local"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (place / "events").as_uri(),
        "spark.sql.maxPlanStringLength": "100000000",
        "spark.sql.maxMetadataStringLength": "1000000",
    }
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    return until_the_end.enter_context(started("local[2,4]", settings=settings))
