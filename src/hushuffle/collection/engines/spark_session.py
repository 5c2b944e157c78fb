"""Spark itself: whether it is there, a session of it, and its failures in plain words."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from hushuffle.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEEDED: Final = ("pyspark", "pyarrow", "pandas")
_EXTRA: Final = 'pip install "hushuffle[spark]"'
_MEMORY: Final = "Give it more: spark.driver.memory on one machine, spark.executor.memory on a cluster."
_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.adaptive.enabled": "false",  # there is nothing to adapt
    "spark.ui.showConsoleProgress": "false",
}
_HERE: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    # Java compiles what it runs once, lightly: compiling it better costs more here than it gains.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def started(master: str, *, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Give a session on the cluster `master` (local[2]: on this machine), stopped in the end; or the one there is.

    `settings` are Spark's own; they come before those that hushuffle makes.
    """
    check_installed()
    from pyspark.errors import PySparkException  # noqa: PLC0415 - heavy
    from pyspark.sql import SparkSession  # noqa: PLC0415

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    here = master.startswith("local")
    builder = SparkSession.builder.master(master).appName("hushuffle")
    for key, value in {**_SETTINGS, **(_HERE if here else {}), **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        with without_advice(), _this_python() if here else nullcontext():
            session = builder.getOrCreate()
    except PySparkException as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            message = "Spark cannot be started: it needs Java 17 or later, and JAVA_HOME where java is not found."
            raise MissingDependencyError(message) from None
        raise failure(error) from None
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def check_installed() -> None:
    """Refuse to go on without what the extra `spark` installs."""
    absent = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        message = f"The Spark engine needs {', '.join(absent)}. Install it with: {_EXTRA}"
        raise MissingDependencyError(message)


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what Spark raises into a `DataError` in plain words; Spark's own go into its log."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - heavy

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise failure(error) from None


def failure(error: Exception) -> DataError:
    """Return what to say of an error of Spark: nothing that may quote a value, but for what hushuffle said itself."""
    text = str(error)
    said = [line.partition("DataError: ")[2] for line in text.splitlines() if "hushuffle.errors.DataError: " in line]
    if said:
        return DataError(f"Spark stopped: {said[0]}")
    if "No module named 'hushuffle'" in text:
        return DataError(f"Spark's workers lack hushuffle. On every one of them, and in the same Python: {_EXTRA}")
    if "OutOfMemoryError" in text or type(error).__name__ == "Py4JNetworkError":
        return DataError(f"Spark's Java has ended, or has no memory left. {_MEMORY}")
    name = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return DataError(f"Spark failed ({name}). Its log says more.")


@contextmanager
def _this_python() -> Iterator[None]:
    """Let workers on this machine be what this process is, if nobody has said otherwise."""
    if "PYSPARK_PYTHON" in os.environ:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]


@contextmanager
def without_advice() -> Iterator[None]:
    """Leave out what pyspark says about versions of pandas: nothing here uses it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield
