"""Check that Spark is installed, start a session, and report Spark's failures in plain words."""

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
_MEMORY: Final = "Raise spark.driver.memory on one machine, or spark.executor.memory on a cluster."
_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),  # below, Spark measures the batch at every row
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.adaptive.enabled": "false",  # there is nothing to adapt
    "spark.ui.showConsoleProgress": "false",
}
_HERE: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    # Java's second compiler costs more time here than it saves, so only the first one is used.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def started(master: str, *, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Yield a new session, and stop it at the end; an existing session is reused and not stopped."""
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
            message = "Spark cannot be started: it needs Java 17 or later. Set JAVA_HOME if java is not on the PATH."
            raise MissingDependencyError(message) from None
        raise failure(error) from None
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def check_installed() -> None:
    absent = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        message = f"The Spark engine needs {', '.join(absent)}. Install it with: {_EXTRA}"
        raise MissingDependencyError(message)


@contextmanager
def plainly() -> Iterator[None]:
    """Convert Spark's errors into a `DataError` in plain words; the original text remains in Spark's log."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - heavy

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise failure(error) from None


def failure(error: Exception) -> DataError:
    """Return the `DataError` for an error of Spark; its message never contains private values."""
    text = str(error)
    messages = [
        line.partition("DataError: ")[2] for line in text.splitlines() if "hushuffle.errors.DataError: " in line
    ]
    if messages:
        return DataError(f"Spark stopped: {messages[0]}")
    if "No module named 'hushuffle'" in text:
        return DataError(f"Spark's workers lack hushuffle. Run on every worker, with the same Python: {_EXTRA}")
    if "OutOfMemoryError" in text or type(error).__name__ == "Py4JNetworkError":
        return DataError(f"Spark's Java process has ended, or is out of memory. {_MEMORY}")
    name = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return DataError(f"Spark failed ({name}). Read Spark's log for the cause.")


@contextmanager
def _this_python() -> Iterator[None]:
    """Give workers on this machine the Python and environment of this process, unless they are set already."""
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
    """Suppress pyspark's warning about versions of pandas: this engine does not use pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield
