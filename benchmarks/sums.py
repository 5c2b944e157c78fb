"""Private sums by shares: what they cost, how long they take, and their error beside that of one trusted party.

python benchmarks/sums.py [--people 1000000] [--runs 5]
"""

from __future__ import annotations

import argparse
import math
import resource
import time

import numpy as np

import hushuffle as hs

DELTA = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    costs()
    one_sum(asked.people, asked.runs)


def costs() -> None:
    print(f"messages of each person, bits of all of them; delta = {DELTA:g}, 1,001 levels")
    print(f"{'people':>14} " + " ".join(f"epsilon = {epsilon:<8g}" for epsilon in (0.1, 1.0, 4.0)))
    for people in (100, 1_000, 10_000, 100_000, 1_000_000, 100_000_000):
        cells = []
        for epsilon in (0.1, 1.0, 4.0):
            protocol = hs.SplitAndMix(low=0, high=1, levels=1001, n=people, epsilon=epsilon, delta=DELTA)
            cells.append(f"{protocol.messages:>3}, {protocol.bits_per_person:>4} bits ")
        print(f"{people:>14,} " + "   ".join(cells))


def one_sum(people: int, runs: int) -> None:
    levels = max(2, math.ceil(2.5 * math.sqrt(people)) + 1)
    numbers = np.random.default_rng(1).beta(2, 5, size=people)
    start = time.perf_counter()
    protocol = hs.SplitAndMix(low=0, high=1, levels=levels, n=people, epsilon=1.0, delta=DELTA)
    made = time.perf_counter() - start
    errors, collecting, estimating = [], [], []
    for _ in range(runs):
        start = time.perf_counter()
        messages = protocol.collect(numbers)
        middle = time.perf_counter()
        found = hs.estimate_sum(messages, protocol=protocol)
        collecting.append(middle - start)
        estimating.append(time.perf_counter() - middle)
        errors.append(float(found.total[0] - numbers.sum()))
    print(protocol.describe())
    central = math.sqrt(2 * math.exp(-1.0 / (levels - 1))) / (-math.expm1(-1.0 / (levels - 1))) / (levels - 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"epsilon {hs.dp.epsilon(protocol, delta=DELTA)} at delta = {DELTA:g}")
    print(f"described in {made:.2f} s; collected in {min(collecting):.2f} s, estimated in {min(estimating):.3f} s")
    print(f"largest memory {peak:,.0f} MB; {protocol.bits_per_person / 8:g} bytes of each person")
    error = protocol.standard_error()
    print(f"standard error {error:.4g}, {error / central:.3f} times that of one trusted party ({central:.4g})")
    print(f"root of the mean square error of {runs} runs {math.sqrt(np.mean(np.square(errors))):.4g}")


if __name__ == "__main__":
    main()
