"""Measure speed as ratios in one run: against sorting 10^7 floats, and against importing NumPy.

    python benchmarks/run.py

Prints a table; nothing here is a test.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hushuffle as hs

ROOT = Path(__file__).resolve().parents[1]
SIZE = 10**7


def median_seconds(work: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def process(*words: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True)


def survey(k: int, epsilon: float, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def main() -> None:
    floats, rng = np.random.default_rng(1).random(SIZE), hs.secure()
    unit = median_seconds(lambda: np.sort(floats))
    rows: list[tuple[str, float, str]] = [("sort 10^7 floats (the unit)", unit, "")]

    for k in (2, 5, 100):
        values, randomizer = rng.integers(k, SIZE), hs.RandomizedResponse(k=k, epsilon=2.0)
        rows.append(
            (f"randomize 10^7 values, k = {k}", median_seconds(partial(randomizer.randomize, values, rng=rng)), "")
        )
    rows.append(("permute 10^7", median_seconds(lambda: rng.permutation(SIZE), 3), ""))

    for k, n in ((2, 6366), (2, 10**5), (2, 10**9), (5, 33_000), (5, 10**5), (100, 10**5), (5, 10**9)):
        protocol = survey(k, 2.0, n)
        bound = hs.dp.epsilon(protocol, delta=1e-6)
        seconds = median_seconds(partial(hs.dp.epsilon, protocol, delta=1e-6), 3)
        rows.append((f"dp.epsilon, k = {k}, n = {n:,}", seconds, f"relative width {bound.width / bound.upper:.0e}"))
    seconds = median_seconds(lambda: hs.qif.max_load(10**6, 10**3), 3)
    rows.append(("qif.max_load(10^6, 10^3)", seconds, ""))

    rows.append(("python -c 'import numpy'", median_seconds(process("-c", "import numpy")), ""))
    rows.append(("python -c 'import hushuffle'", median_seconds(process("-c", "import hushuffle")), ""))
    for example in ("affairs", "party", "no-data"):
        with TemporaryDirectory() as folder:
            words = ("-m", "hushuffle", "assess", str(ROOT / "examples" / f"{example}.toml"), "--out", folder)
            rows.append((f"hushuffle assess examples/{example}.toml", median_seconds(process(*words), 3), ""))

    print(f"{'what':<42}{'seconds':>9}{'units':>8}  remark")
    for what, seconds, remark in rows:
        print(f"{what:<42}{seconds:>9.3f}{seconds / unit:>8.2f}  {remark}")


if __name__ == "__main__":
    main()
