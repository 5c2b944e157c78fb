"""Numbers: a square wave of 10^6 people from randomizing to quantiles, and errors by number of levels.

OPENBLAS_THREAD_TIMEOUT=4 python benchmarks/numeric.py [--people 1000000]

The variable is what the program sets: on a busy machine, threads that wait actively take ten times as long.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import hushuffle as hs


def square_wave(people: int) -> None:
    """Print how long each step takes, and what comes out."""
    for bins in (64, 256):
        wave, grid = hs.SquareWave(bins=bins, epsilon=1.0), hs.NumberGrid(low=0, high=1, levels=bins)
        survey = hs.Protocol(randomizer=wave, shuffler=hs.UniformShuffle(), n=people)
        numbers = np.random.default_rng(1).beta(2, 5, people)
        start = time.perf_counter()
        codes = grid.encode(numbers, rng=hs.secure())
        rounded = time.perf_counter()
        reports = survey.collect(codes)
        collected = time.perf_counter()
        found = hs.estimate_numbers(reports, protocol=survey, grid=grid)
        shares = found.shares
        estimated = time.perf_counter()
        ends = found.quantile_intervals([0.1, 0.5, 0.9])
        done = time.perf_counter()
        print(
            f"square wave, {bins} bins, {people:,} people: round {rounded - start:.2f} s, randomize and shuffle "
            f"{collected - rounded:.2f} s, mean and smoothed shares {estimated - collected:.2f} s, intervals of "
            f"quantiles {done - estimated:.2f} s, in all {done - start:.2f} s"
        )
        error = np.abs(np.cumsum(shares) - np.cumsum(np.bincount(codes, minlength=bins) / people)).mean()
        print(f"  mean {found.mean:.5f} (true {numbers.mean():.5f}, error told {found.standard_error:.5f})")
        print(
            f"  quantiles 10, 50, 90 %: {ends.round(3).tolist()}, true {np.quantile(numbers, [0.1, 0.5, 0.9]).round(3)}"
        )
        print(f"  smoothed shares: mean distance of the cumulative shares {error:.4f}")


def levels() -> None:
    """Print the errors of a mean by number of levels, at the same central guarantee."""
    for n, epsilon in ((1000, 1.0), (100_000, 0.5), (100_000, 0.1)):
        found = hs.best_levels(n=n, epsilon=epsilon, delta=1e-8)
        tried = ", ".join(f"{k}: {error:.2g}" for k, error in found.tried.items())
        rule = (n * epsilon**2) ** (1 / 3)
        print(f"n = {n:,}, central epsilon {epsilon}: {found.levels} levels, (n epsilon^2)^(1/3) = {rule:.1f}; {tried}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10**6)
    square_wave(parser.parse_args().people)
    levels()
