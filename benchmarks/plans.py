"""Time to simulate plans: python benchmarks/plans.py [folder of MNIST].

Times are ratios to sorting 10^7 floats in the same run. With a folder, also k-means on the 60,000 training images and
the Rand index on the 10,000 test images, with and without sampling. Takes about two minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hushuffle import reproducible
from hushuffle.plans import CentroidNoise, GroupingQuery, GroupingSet, aggregate, generate_table, k_means
from hushuffle.plans.centroids import nearest
from hushuffle.tables.published import load_digits
from hushuffle_network.queries import plain_k_means, rand_index, run_aggregate, run_k_means

SETS = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in "abcd")
QUERY = GroupingQuery(grouping_sets=SETS, values=("x",), functions=("count", "avg", "min", "max"), partitions=20)
SCRAMBLED: dict[str, Any] = {"dummies": 50, "batch": 100}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def grouping(unit: float) -> None:
    for people in (10_000, 100_000):
        for distribution in ("uniform", "skewed"):
            table = generate_table(QUERY, people, distribution=distribution, seed=1)
            for capped in (False, True):
                plan = aggregate(QUERY, people=people, sigma=0.2, capped=capped, **SCRAMBLED)
                work = partial(run_aggregate, plan, QUERY, table, rng=reproducible(1))
                took, run = timed(lambda work=work: [work() for _ in range(10)][-1])
                pairs = zip(run.true, run.estimated, strict=True)
                error = max(float(np.abs(guess.count / true.count - 1).max()) for true, guess in pairs)
                name = f"{people:,} people, 4 sets, 10 runs, {distribution}{', capped' if capped else ''}"
                print(f"{name}: {took:.2f} s, {took / unit:.1f} units")
                print(f"    {min(run.used):,} or more tuples used, counts off by {error:.1%} or less")


def digits(folder: Path, unit: float) -> None:
    train, test = load_digits(folder), load_digits(folder, part="t10k")
    images, known = (part.images.astype(np.float32) / 255 for part in (train, test))
    for seed in range(3):
        initial = known[np.random.default_rng(seed).choice(len(known), 10, replace=False)]
        took, plain = timed(partial(plain_k_means, images, initial, iterations=10))
        print(f"first centroids {seed}, no sampling: {index(test, known, plain)}; {took / unit:.1f} units")
        size: dict[str, Any] = {"people": len(images), "centroids": 10, "iterations": 10, **SCRAMBLED}
        for sigma in (0.2, 0.5, 0.9):
            plan = k_means(variant="public-centroids", sigma=sigma, **size)
            took, run = timed(partial(run_k_means, plan, images, initial, rng=reproducible(seed)))
            print(f"    sigma {sigma}: {index(test, known, run.centroids)}; {took / unit:.1f} units")
        for scale in (50.0, 100.0, 200.0):
            noise = CentroidNoise(kind="gaussian", radius=10.0, scale=scale)
            plan = k_means(variant="private-centroids", sigma=0.2, noise=noise, **size)
            took, run = timed(partial(run_k_means, plan, images, initial, noise=noise, rng=reproducible(seed)))
            rho = sum(release.rho or 0.0 for release in plan.releases)
            print(f"    sigma 0.2, private centroids, rho {rho:.3g} in all: {index(test, known, run.centroids)}")


def index(test: Any, known: Any, centroids: Any) -> str:
    return f"Rand index {rand_index(test.labels, nearest(known, centroids[-1])):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    folder = parser.parse_args().folder
    floats = np.random.default_rng(0).random(10**7)
    unit = timed(lambda: np.sort(floats))[0]
    print(f"unit: sorting 10^7 floats, {unit:.2f} s")
    grouping(unit)
    if folder is not None:
        digits(folder, unit)


if __name__ == "__main__":
    main()
