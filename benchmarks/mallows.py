"""Mallows permutations against sorting 10^7 floats, and against prefsampling at n = 10^4 where it is installed.

    python benchmarks/mallows.py

The unit depends on the processor: NumPy sorts 10^7 floats in 0.6 s on AMD's Zen 4, where its AVX-512 sort is slow, and
in 0.1 s there without it: NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL" (names of NumPy 2.4). Compare ratios only
between runs with the same sort.

Prefsampling draws a vote by repeated insertion, O(n^2): pip install prefsampling, in an environment of its own.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from hushuffle import secure
from hushuffle.mechanisms.shufflers import _decoding, _mallows_laws, sample_mallows

SIZE = 10**7
PEER_SIZE = 10**4


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[runs // 2]


def main() -> None:
    rng, floats = secure(), np.random.default_rng(0).random(SIZE)
    unit = seconds(lambda: np.sort(floats))
    rows = [
        ("sort 10^7 floats (the unit)", unit),
        ("argsort 10^7 floats", seconds(lambda: np.argsort(floats), 1)),
        ("uniform permutation of 10^7", seconds(lambda: rng.permutation(SIZE), 1)),
        ("Hamming-Mallows, 10^7", seconds(lambda: sample_mallows(SIZE, theta=15.0, distance="hamming", rng=rng), 1)),
    ]
    compiled = _decoding.accelerator()
    if compiled is not None:
        _decoding.by_walking(np.zeros(9, dtype=np.int64), walk=compiled)
    for theta in (1e-8, 1e-5, 1e-3, 0.1):
        limits = _mallows_laws.digit_limits(theta, (SIZE - 1).bit_length())
        start = time.perf_counter()
        code = _mallows_laws.inversion_counts(SIZE, limits, rng)[0]
        drawing = time.perf_counter() - start
        rows.append(
            (f"Kendall-Mallows, theta = {theta:g}: NumPy", drawing + seconds(partial(_decoding.by_merging, code), 1))
        )
        if compiled is not None:
            walking = seconds(partial(_decoding.by_walking, code, walk=compiled), 1)
            rows.append((f"Kendall-Mallows, theta = {theta:g}: Numba", drawing + walking))
    print(f"{'what':<44}{'seconds':>9}{'units':>8}")
    for what, took in rows:
        print(f"{what:<44}{took:>9.3f}{took / unit:>8.2f}")
    peer()


def peer() -> None:
    if importlib.util.find_spec("prefsampling") is None:
        print("prefsampling is not installed: nothing to compare with")
        return
    from prefsampling.ordinal import mallows  # noqa: PLC0415 - a peer, not a dependency

    for theta in (1e-3, 0.1):
        theirs = seconds(partial(mallows, 1, PEER_SIZE, phi=math.exp(-theta), seed=1), 1)
        ours = seconds(partial(sample_mallows, PEER_SIZE, theta=theta), 9)
        ratio = theirs / ours
        print(f"one of 10^4, theta = {theta:g}: {ours:.4f} s, prefsampling {theirs:.2f} s, ratio {ratio:.0f}")


if __name__ == "__main__":
    main()
