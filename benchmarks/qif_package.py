"""The uninformed guesser by matrices, with the qif package, and by the closed form: python benchmarks/qif_package.py.

k = 2, no noise: the reduced shuffle is a channel from 2**n datasets to n + 1 histograms.
"""

from __future__ import annotations

import math
import time

import numpy as np
from qif import measure

import hushuffle as hs


def by_matrix(n: int) -> float:
    size = 2**n
    datasets = np.arange(size)
    ones = np.bitwise_count(datasets)
    channel = np.zeros((size, n + 1))
    channel[datasets, ones] = 1
    target = datasets >> (n - 1)
    gain = np.vstack([target == 0, target == 1]).astype(np.float64)
    return float(measure.g_vuln.posterior(gain, np.full(size, 1 / size), channel))


def by_closed_form(n: int) -> float:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=math.inf), shuffler=hs.UniformShuffle(), n=n)
    return hs.qif.vulnerability(survey).upper


def main() -> None:
    by_closed_form(2)
    print(f"{'n':>3}{'by matrix':>22}{'seconds':>10}{'closed form':>22}{'seconds':>10}{'ratio':>10}")
    for n in (8, 12, 16, 20):
        start = time.perf_counter()
        matrix = by_matrix(n)
        middle = time.perf_counter()
        closed = by_closed_form(n)
        end = time.perf_counter()
        ratio = (middle - start) / (end - middle)
        print(f"{n:>3}{matrix:>22.16f}{middle - start:>10.4f}{closed:>22.16f}{end - middle:>10.6f}{ratio:>10.0f}")


if __name__ == "__main__":
    main()
