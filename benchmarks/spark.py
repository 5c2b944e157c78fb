"""Collecting 10^6 and 10^7 rows with Spark on this machine, against the local engine: python benchmarks/spark.py.

Options: --rows 1e8, --folder DIR, --master "local[2]". Each run is a process of its own, started one after the other.
Memory is the largest sum over the process and all it has started (Java, workers), looked at ten times a second;
pages that processes share count once (PSS, Linux). Spark's start is part of its time; the first million rows show it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

STEP = 10**6


def make(path: Path, rows: int) -> None:
    """Write a table of people: an id, a private column, a number and a word."""
    parts = path.with_suffix("")
    parts.mkdir()
    for start in range(0, rows, STEP):
        rng, n = np.random.default_rng(start), min(STEP, rows - start)
        table = pl.DataFrame(
            {
                "id": np.arange(start, start + n),
                "a": rng.integers(0, 100, n).astype(np.int32),
                "weight": rng.random(n),
                "town": np.array(["north", "south", "east", "west"])[rng.integers(0, 4, n)],
            }
        )
        table.write_parquet(parts / f"{start:012}.parquet")
    pl.scan_parquet(parts).sink_parquet(path)


def run(what: str, source: str, target: str, master: str) -> None:
    """Collect, in this process; print how long it took."""
    from hushuffle.collection.collect import collect  # noqa: PLC0415
    from hushuffle.specification import parse  # noqa: PLC0415 - not in the process that looks on

    specification = parse("""
        population = { n = 1, k = 100 }
        randomizer = { kind = "randomized-response", epsilon = 4.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-10 }
    """)
    start = time.perf_counter()
    collect(
        specification,
        out=Path(target),
        sources=[source],
        column="a",
        master=master if what == "spark" else None,
    )
    print(json.dumps(time.perf_counter() - start))


def memory(process: int) -> float:
    """Return the memory (GB) of a process and all it has started, and they."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family, size = {process}, 0
    while size < len(family):
        size = len(family)
        family |= {child for child, parent in parents.items() if parent in family}
    total = 0
    for one in family:
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 2**20


def measured(*arguments: str) -> tuple[float, float]:
    """Return seconds and the most memory (GB) of this program run with `arguments`."""
    with subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True) as child:
        most = 0.0
        while child.poll() is None:
            most = max(most, memory(child.pid))
            time.sleep(0.1)
        assert child.stdout is not None
        seconds = json.loads(child.stdout.read().splitlines()[-1])
    return seconds, most


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--folder", default=None)
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    print(f"{'rows':>13}  {'':<12}{'seconds':>9}{'ratio':>8}{'GB':>9}")
    for rows in asked.rows:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            source = Path(folder) / "people.parquet"
            make(source, int(rows))
            unit = 0.0
            for what in ("local", "spark"):
                seconds, most = measured(what, str(source), str(Path(folder) / what), asked.master)
                unit = unit or seconds
                print(f"{int(rows):>13,}  {what:<12}{seconds:>9.1f}{seconds / unit:>8.2f}{most:>9.2f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("local", "spark"):
        run(*sys.argv[1:])
    else:
        main()
