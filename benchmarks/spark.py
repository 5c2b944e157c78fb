"""Collecting 10^6 and 10^7 rows with Spark on this machine, against the local engine: python benchmarks/spark.py.

Options: --rows 1e8, --folder DIR, --master "local[2]", --csv. Each run is a process of its own, started one after the
other, and measured from the moment when hushuffle is imported: by the clock and in processor seconds, over the process
and all it has started (Java, workers), looked at ten times a second. Memory is the largest sum over them; pages that
processes share count once (PSS, Linux). Spark's start is part of its time; the first million rows show it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

STEP = 10**6


def make(path: Path, rows: int) -> None:
    """Write a table of people: an id, a private column, a number and a word. As CSV it is a folder of files."""
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
        if path.suffix == ".csv":
            table.write_csv(parts / f"{start:012}.csv")
        else:
            table.write_parquet(parts / f"{start:012}.parquet")
    if path.suffix != ".csv":
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
    print("imported", flush=True)
    start = time.perf_counter()
    collect(
        specification,
        out=Path(target),
        sources=[source],
        column="a",
        master=master if what == "spark" else None,
    )
    print(json.dumps(time.perf_counter() - start))


def looked(process: int) -> tuple[float, dict[int, float]]:
    """Return the memory (GB) of a process and all it has started, and the processor seconds of each."""
    parents, seconds = dict[int, int](), dict[int, float]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(words[1])
        seconds[int(entry.name)] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
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
    return total / 2**20, {one: seconds[one] for one in family & seconds.keys()}


def measured(*arguments: str) -> tuple[float, float, float]:
    """Return seconds by the clock and of processors, and the most memory (GB), of this program run with `arguments`."""
    with subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "imported\n"
        most, used = 0.0, looked(child.pid)[1]
        before = sum(used.values())
        while child.poll() is None:
            gigabytes, seconds = looked(child.pid)
            most, used = max(most, gigabytes), used | seconds
            time.sleep(0.1)
        clock = json.loads(child.stdout.read().splitlines()[-1])
    return clock, sum(used.values()) - before, most


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--folder", default=None)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--csv", action="store_true")
    asked = parser.parse_args()
    print(f"{'rows':>13}  {'':<12}{'seconds':>9}{'ratio':>8}{'processor':>11}{'ratio':>8}{'GB':>9}")
    for rows in asked.rows:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            table = Path(folder) / f"people.{'csv' if asked.csv else 'parquet'}"
            make(table, int(rows))
            source = str(table.with_suffix("") / "*.csv") if asked.csv else str(table)
            unit = (0.0, 0.0)
            for what in ("local", "spark"):
                clock, used, most = measured(what, source, str(Path(folder) / what), asked.master)
                unit = unit if any(unit) else (clock, used)
                ratios = f"{clock:>9.1f}{clock / unit[0]:>8.2f}{used:>11.1f}{used / unit[1]:>8.2f}"
                print(f"{int(rows):>13,}  {what:<12}{ratios}{most:>9.2f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("local", "spark"):
        run(*sys.argv[1:])
    else:
        main()
