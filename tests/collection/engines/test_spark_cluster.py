"""A cluster of a master and two workers on this machine, each with an executor of its own: processes as they are."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.collection.collect import collect
from hushuffle.collection.request import Keys
from hushuffle.specification import parse
from spark_session import NEEDS_SPARK

pytestmark = [*NEEDS_SPARK, pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")]

SPECIFICATION = """
population = { n = 1, categories = ["a", "b", "c"] }
randomizer = { kind = "randomized-response", epsilon = 2.0 }
shuffler = { kind = "scrambler", dummies = 50 }
targets = { delta = 1e-6 }
"""
COLUMNS = """
population = { data = "*.csv" }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
[[columns]]
column = "answer"
categories = ["a", "b", "c"]
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[columns]]
column = "colour"
categories = ["a", "b", "c"]
randomizer = { kind = "subset-selection", epsilon = 1.0, w = 2 }
"""
INTERRUPTED = """
import sys, time
from pathlib import Path
from hushuffle.collection.collect import collect
from hushuffle.collection.engines import spark
from hushuffle.collection.request import Keys
from hushuffle.specification import parse

spark._BUCKET = 2_000  # many buckets: most are still to be fetched

def wait(what, share):
    if what == "randomizing" and share > 0.1:
        Path("reading").touch()
        while not Path("killed").exists():
            time.sleep(0.02)

collect(
    parse(Path("survey.toml").read_text()), out=Path("out"), sources=["*.parquet"], column="answer",
    keys=Keys(file=Path("my.key"), ids="id", new=True), master=sys.argv[1], progress=wait,
)
"""


def until(there: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def family(process: int) -> list[int]:
    """Return a process and all that it has started."""
    children = [
        int(child) for path in Path(f"/proc/{process}/task").glob("*/children") for child in path.read_text().split()
    ]
    return [process, *(one for child in children for one in family(child))]


@dataclass(frozen=True)
class Cluster:
    """The address of a master, what programs need to talk to it, its workers, and where Spark notes what it does."""

    master: str
    environment: dict[str, str]
    workers: list[subprocess.Popen[bytes]]
    events: Path

    def start(self, folder: Path, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, *command], cwd=folder, env=self.environment)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    place = tmp_path_factory.mktemp("cluster")
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    program = str(Path(found.origin).parent / "bin" / "spark-class")
    source = str(Path(str(importlib.util.find_spec("hushuffle").origin)).parents[1])  # type: ignore[union-attr]
    (place / "events").mkdir()
    conf = {
        "spark.eventLog.dir": (place / "events").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.executor.memory": "700m",
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
    }
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(place),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": " ".join([*(f"--conf {key}={value}" for key, value in conf.items()), "pyspark-shell"]),
        "PYTHONPATH": source,
        "HUSHUFFLE_STATE": str(place / "state"),
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    log = place / "log"

    def started(*words: str) -> subprocess.Popen[bytes]:
        words = (f"org.apache.spark.deploy.{words[0]}", "--host", "127.0.0.1", "--webui-port", "0", *words[1:])
        with log.open("ab") as output:
            return subprocess.Popen([program, *words], env=environment, stdout=output, stderr=output)

    with ExitStack() as stack:

        def owned(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
            stack.callback(ended, process)
            return process

        owned(started("master.Master", "--port", str(port)))
        until(lambda: "Starting Spark master" in log.read_text(errors="replace"))
        options = ("--cores", "1", "--memory", "800m", "--work-dir", str(place / "work"), master)
        workers = [owned(started("worker.Worker", *options)) for _ in range(2)]
        until(lambda: log.read_text(errors="replace").count("Successfully registered with master") == 2)
        yield Cluster(master, environment, workers, place / "events")


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process and all it has started, at once."""
    if process.poll() is None:
        for one in family(process.pid):
            os.kill(one, signal.SIGKILL)
    process.wait()


def stages(events: Path) -> set[tuple[int, int]]:
    """Return which stages, and which attempts of them, wrote rows for others, in the collection that began last."""
    logs = [path for path in events.rglob("*") if path.name.startswith("events_")]
    newest = max(logs, key=lambda path: path.stat().st_mtime)
    noted = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    return {
        (event["Stage ID"], event["Stage Attempt ID"])
        for event in noted
        if event["Event"] == "SparkListenerTaskEnd" and event["Task Type"] == "ShuffleMapTask"
    }


def people(folder: Path, files: int = 6, rows: int = 500) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    letters = np.array(["a", "b", "c"])
    answers = {name: letters[rng.integers(0, 3, files * rows)] for name in ("answer", "colour")}
    table = pl.DataFrame({"id": np.arange(files * rows), **answers})
    for part, frame in enumerate(table.iter_slices(rows)):
        frame.write_parquet(folder / f"{part}.parquet")
        frame.write_csv(folder / f"{part}.csv")
    return table


def reports(folder: Path) -> list[tuple[int, ...]]:
    return sorted(pl.read_parquet(folder / "reports.parquet").rows())


def test_several_columns_of_csv_files(cluster: Cluster, tmp_path: Path) -> None:
    """By the program, with a key; the local engine repeats the same reports, and the ledger knows them."""
    people(tmp_path)
    (tmp_path / "survey.toml").write_text(COLUMNS, encoding="utf-8")
    key = ["--key-file", "my.key", "--id", "id"]
    words = ["-m", "hushuffle", "collect", "survey.toml", *key]
    spark = ["--new-key", "--engine", "spark", "--master", cluster.master, "--out", "spark"]
    assert cluster.start(tmp_path, *words, *spark).wait() == 0
    assert cluster.start(tmp_path, *words, "--out", "local").wait() == 0
    for column in ("answer", "colour"):
        assert len(reports(tmp_path / "spark" / column)) == 3000
        assert reports(tmp_path / "spark" / column) == reports(tmp_path / "local" / column)


def test_a_worker_that_is_killed(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker dies with its executor when some buckets are here: the rest is made anew, and fits."""
    people(tmp_path)
    (tmp_path / "survey.toml").write_text(SPECIFICATION, encoding="utf-8")
    driver = cluster.start(tmp_path, "-c", INTERRUPTED, cluster.master)
    try:
        until(lambda: (tmp_path / "reading").exists() or driver.poll() is not None)
        victim = cluster.workers[0]
        assert len(family(victim.pid)) > 1  # its executor
        ended(victim)
        (tmp_path / "killed").touch()
        assert driver.wait(timeout=300) == 0
    finally:
        ended(driver)
    monkeypatch.setenv("HUSHUFFLE_STATE", cluster.environment["HUSHUFFLE_STATE"])
    local = collect(
        parse(SPECIFICATION),
        out=tmp_path / "local",
        sources=[str(tmp_path / "*.parquet")],
        column="answer",
        keys=Keys(file=tmp_path / "my.key", ids="id"),
    )
    assert local.repeated
    assert len(stages(cluster.events)) > 2  # to count the rows, to randomize them, and again what the worker held
    assert reports(tmp_path / "out") == reports(tmp_path / "local")
