"""Time and width of the Bloom filter figures, as ratios to sorting 10^7 floats in the same run.

    python benchmarks/bloom.py

Prints a table; nothing here is a test. Takes about a minute.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import hushuffle as hs
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.mechanisms.release import Release
from hushuffle.questions import bloom

DELTA = 1e-3
CASES = ((1, 10**5, 0.05), (2, 10**5, 0.145), (3, 10**4, 0.1), (6, 10**5, 0.145), (20, 10**4, 0.365))


def median_seconds(work: Callable[[], object], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def against_blanket(filters: int, bits: int, p: float, epsilon: float) -> float:
    protocol = hs.Protocol(randomizer=hs.BitFlipping(width=filters, p=p), shuffler=hs.UniformShuffle(), n=bits)
    return FiniteDivergence.of(Release.of(protocol)).blanket(epsilon) / DELTA


def main() -> None:
    floats = np.random.default_rng(0).random(10**7)
    unit = median_seconds(lambda: np.sort(floats))
    print(f"unit: sorting 10^7 floats, {unit:.2f} s; delta = {DELTA:g}")
    print(f"{'what':<52}{'seconds':>9}{'units':>8}  figure")
    for filters, bits, p in CASES:
        name = f"k = {filters}, m = {bits:,}, p = {p:g}"
        whole = bloom.epsilon(filters=filters, bits=bits, p=p, delta=DELTA)
        took = median_seconds(partial(bloom.epsilon, filters=filters, bits=bits, p=p, delta=DELTA))
        blanket = against_blanket(filters, bits, p, whole.upper)
        remark = f"{whole}, width {whole.width / whole.lower:.1%}, plain blanket {blanket:.2g} delta there"
        print(f"{f'epsilon, {name}':<52}{took:>9.3f}{took / unit:>8.2f}  {remark}")
        pair = bloom.published_pair_epsilon(filters=filters, bits=bits, p=p, delta=DELTA)
        took = median_seconds(partial(bloom.published_pair_epsilon, filters=filters, bits=bits, p=p, delta=DELTA))
        print(f"{f'published pair, {name}':<52}{took:>9.3f}{took / unit:>8.2f}  {pair}")
    took = median_seconds(lambda: bloom.filling_epsilon(bits=10**5, p=0.05, delta=DELTA, ones=25_000))
    print(f"{'one filling, m = 100,000, p = 0.05':<52}{took:>9.3f}{took / unit:>8.2f}")
    took = median_seconds(lambda: bloom.estimate_flip_prob(filters=6, bits=10**5, epsilon=1.0, delta=DELTA), 1)
    print(f"{'estimate_flip_prob, k = 6, m = 100,000':<52}{took:>9.3f}{took / unit:>8.2f}")
    took = median_seconds(
        lambda: bloom.evaluate_privacy_for_bloom_filter(filters=6, bits=10**5, p=0.145, delta=DELTA), 1
    )
    print(f"{'simulated pair, 100,000 draws, k = 6':<52}{took:>9.3f}{took / unit:>8.2f}")


if __name__ == "__main__":
    main()
