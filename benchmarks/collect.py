"""Collecting from a Parquet file of 10^6 and 10^7 rows: python benchmarks/collect.py [--rows 1e8] [--folder DIR].

Each run is a process of its own, which says how long it took and how much memory it held at most. The unit is a plain
copy of the same file by Polars (`scan_parquet(...).sink_parquet(...)`), with columns that a table of people has.
The figures of the guarantee are part of the time, and of no account beyond 10^6 rows. What limits the local engine is
the random order: of 2.4 processor seconds for 2 * 10^7 rows, 0.9 permute the buckets (0.8 of them NumPy's sort), 0.4
put reports into buckets and 0.3 randomize. On AMD's Zen 4, NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL" (names of
NumPy 2.4) switches a slow sort off: 1.8 s.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

SPECIFICATIONS = {
    "randomized response, k = 100": ("a", 100, 'kind = "randomized-response", epsilon = 4.0'),
    "local hashing, g = 4, k = 10^5": ("b", 10**5, 'kind = "local-hashing", epsilon = 2.0, g = 4'),
}
STEP = 10**6


def make(path: Path, rows: int) -> None:
    """Write a table of people: an id, two private columns, a number and a word."""
    parts = path.with_suffix("")
    parts.mkdir()
    for start in range(0, rows, STEP):
        rng, n = np.random.default_rng(start), min(STEP, rows - start)
        table = pl.DataFrame(
            {
                "id": np.arange(start, start + n),
                "a": rng.integers(0, 100, n).astype(np.int32),
                "b": rng.integers(0, 10**5, n).astype(np.int32),
                "weight": rng.random(n),
                "town": np.array(["north", "south", "east", "west"])[rng.integers(0, 4, n)],
            }
        )
        table.write_parquet(parts / f"{start:012}.parquet")
    pl.scan_parquet(parts).sink_parquet(path)


def measured(what: str, *arguments: str) -> tuple[float, float]:
    """Return seconds and the most memory (GB) of this program run with `arguments`."""
    run = subprocess.run([sys.executable, __file__, what, *arguments], check=True, capture_output=True, text=True)
    seconds, memory = json.loads(run.stdout.splitlines()[-1])
    return seconds, memory


def copy(source: str, target: str) -> None:
    pl.scan_parquet(source).sink_parquet(target)


def collect(source: str, target: str, name: str, key: str | None = None) -> None:
    from hushuffle.collection.collect import collect as run  # noqa: PLC0415
    from hushuffle.collection.request import Keys  # noqa: PLC0415
    from hushuffle.specification import parse  # noqa: PLC0415 - not in the copying process

    column, k, randomizer = SPECIFICATIONS[name]
    specification = parse(f"""
        population = {{ n = 1, k = {k} }}
        randomizer = {{ {randomizer} }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-10 }}
    """)
    keys = None if key is None else Keys(file=Path(key), ids="id", new=True)
    run(specification, out=Path(target), sources=[source], column=column, keys=keys)


def estimate(source: str) -> None:
    from hushuffle.collection.estimate import tally_reports  # noqa: PLC0415 - not in the copying process

    tally_reports([Path(source)]).estimate()


def compare(rows: int, folder: Path) -> None:
    source = folder / f"{rows}.parquet"
    make(source, rows)
    unit, memory = measured("copy", str(source), str(folder / "copy.parquet"))
    print(f"{rows:>13,}  {'copy by Polars':<32}{unit:>9.1f}{1.0:>8.2f}{memory:>9.2f}")
    for number, name in enumerate(SPECIFICATIONS):
        out = str(folder / f"{rows}-{number}")
        key = str(folder / f"{rows}-{number}.key")
        for label, found in (
            (name, measured("collect", str(source), out, name)),
            ("  estimate", measured("estimate", out)),
            ("  with a key and its ledger", measured("collect", str(source), f"{out}-keyed", name, key)),
        ):
            print(f"{rows:>13,}  {label:<32}{found[0]:>9.1f}{found[0] / unit:>8.2f}{found[1]:>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--folder", default=None)
    asked = parser.parse_args()
    print(f"{'rows':>13}  {'':<32}{'seconds':>9}{'units':>8}{'GB':>9}")
    for rows in asked.rows:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            os.environ["HUSHUFFLE_STATE"] = f"{folder}/state"
            compare(int(rows), Path(folder))


if __name__ == "__main__":
    works: dict[str, Callable[..., None]] = {"copy": copy, "collect": collect, "estimate": estimate}
    work = works.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if work is None:
        main()
    else:
        start = time.perf_counter()
        work(*sys.argv[2:])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux
        print(json.dumps([time.perf_counter() - start, peak]))
