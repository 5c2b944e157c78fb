"""Counting reports of local hashing, beside two libraries: python benchmarks/local_hashing.py.

Our time for n = 10^6 people, k = 10^5 values, g = 4 buckets is a ratio to sorting 10^7 floats in the same run. The
others test every one of the n k pairs of report and value; they run on a size that they finish, and their time for the
large one is that times the ratio of pairs. They need xxhash < 4, and are passed over if they are not installed.
"""

from __future__ import annotations

import importlib
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hushuffle as hs

PEOPLE, VALUES = 10**6, 10**5
FEW_PEOPLE, FEW_VALUES, REPETITIONS = 3000, 1000, 5
BUCKETS, EPSILON = 4, math.log(3.0)  # for this epsilon the others choose 4 buckets, too

Floats = Any


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def population(n: int, k: int) -> Any:
    """Return n values of which the x-th is proportional to 1/x."""
    weights = 1 / np.arange(1, k + 1)
    return np.random.default_rng(1).choice(k, n, p=weights / weights.sum())


def ours(values: Any, k: int) -> tuple[float, Floats]:
    """Return the seconds that counting and estimating take, and the estimated frequencies."""
    protocol = hs.Protocol(
        randomizer=hs.LocalHashing(k=k, g=BUCKETS, epsilon=EPSILON), shuffler=hs.NoShuffle(), n=values.size
    )
    reports = protocol.collect(values, rng=hs.secure())
    seconds, found = timed(lambda: hs.estimate(reports, protocol=protocol))
    return seconds, found.frequencies


def pure_ldp(values: Any, k: int) -> tuple[float, Floats]:
    hashing = importlib.import_module("pure_ldp.frequency_oracles.local_hashing")

    def index(value: int) -> int:
        return value

    client = hashing.LHClient(EPSILON, k, g=BUCKETS, index_mapper=index)
    server = hashing.LHServer(EPSILON, k, g=BUCKETS, index_mapper=index)
    reports = [client.privatise(value) for value in values.tolist()]

    def count() -> Any:
        for report in reports:
            server.aggregate(report)
        return np.array([server.estimate(value, suppress_warnings=True) for value in range(k)]) / values.size

    return timed(count)


def multi_freq_ldpy(values: Any, k: int) -> tuple[float, Floats]:
    oracle = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.LH")
    reports = [oracle.LH_Client(value, k, EPSILON) for value in values.tolist()]
    return timed(lambda: oracle.LH_Aggregator_MI(reports, k, EPSILON))


def theory(shares: Floats, n: int) -> float:
    """Return the sum over values of the variance of an unbiased estimate, docs/theory/estimation.md, Theorem 2."""
    growth, g = math.exp(EPSILON), BUCKETS
    rare = (g + growth - 1) ** 2 / (n * (growth - 1) ** 2 * (g - 1))
    slope = (g * g - 2 * g - growth + 1) / (n * (growth - 1) * (g - 1))
    return float(np.sum(rare + slope * shares))


def compare(name: str, run: Callable[[Any, int], tuple[float, Floats]], unit: float) -> float | None:
    """Print what a library needs and gets wrong on the small size; return its seconds for each pair."""
    values = population(FEW_PEOPLE, FEW_VALUES)
    shares = np.bincount(values, minlength=FEW_VALUES) / FEW_PEOPLE
    try:
        run(values[:10], FEW_VALUES)  # compiles and warms up
        results = [run(values, FEW_VALUES) for _ in range(REPETITIONS)]
    except ImportError as error:
        print(f"{name:<18}not installed ({error.name}): passed over")
        return None
    seconds = statistics.median(seconds for seconds, _ in results)
    wrong = np.array([found - shares for _, found in results])
    loss = float(np.mean(np.sum(wrong**2, axis=1))) / theory(shares, FEW_PEOPLE)
    top = float(shares[0] + np.mean(wrong[:, 0]))
    scatter = math.sqrt(theory(shares[:1], FEW_PEOPLE) / REPETITIONS)
    print(
        f"{name:<18}{seconds:>9.4f}{seconds / unit:>9.4f}{loss:>14.3f}   {shares[0]:.4f}, {top:.4f} "
        f"({(top - shares[0]) / scatter:+.1f} standard errors)"
    )
    return seconds / (FEW_PEOPLE * FEW_VALUES)


def main() -> None:
    floats = np.random.default_rng(0).random(10**7)
    unit = statistics.median(timed(lambda: np.sort(floats))[0] for _ in range(3))
    print(f"sorting 10^7 floats: {unit:.3f} s (the unit of time)\n")
    values = population(PEOPLE, VALUES)
    seconds = statistics.median(ours(values, VALUES)[0] for _ in range(5))
    print(f"hushuffle, n = {PEOPLE:,}, k = {VALUES:,}, g = {BUCKETS}: {seconds:.3f} s, {seconds / unit:.2f} units\n")
    print(f"n = {FEW_PEOPLE:,}, k = {FEW_VALUES:,}, g = {BUCKETS}, {REPETITIONS} repetitions")
    print(f"{'':<18}{'seconds':>9}{'units':>9}{'error/theory':>14}   largest share: true, mean estimate")
    compare("hushuffle", ours, unit)
    for name, run in (("pure-ldp", pure_ldp), ("multi-freq-ldpy", multi_freq_ldpy)):
        pair = compare(name, run, unit)
        if pair is not None:
            hours = pair * PEOPLE * VALUES / 3600
            pairs = PEOPLE * VALUES // (FEW_PEOPLE * FEW_VALUES)
            print(
                f"{'':<18}extrapolated to n k = {PEOPLE * VALUES:.0e} ({pairs:,} times the pairs): {hours:,.1f} hours, "
                f"{hours * 3600 / seconds:,.0f} times ours"
            )


if __name__ == "__main__":
    main()
