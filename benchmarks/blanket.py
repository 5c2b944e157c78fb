"""The pooled bound and the privacy blanket: the tables of docs/theory/below-the-blanket.md and paper/pooled-bound.md.

    python benchmarks/blanket.py

The first enumerates every dataset of a small crowd. Takes about a minute.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np

import hushuffle as hs
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.release import Release
from hushuffle.numerics.roots import first_below

ROWS = np.array([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]])
CROWDS = ((60, 0.2), (60, 0.4), (80, 0.2), (80, 0.4))
LEVELS = (0.3, 0.1, 0.03, 0.01, 0.001)
"""Pools of several sizes; the smallest bound counts."""

PEOPLE, DELTA = 100_000, 1e-6


def shuffled(randomizer: Mechanism, n: int) -> FiniteDivergence:
    return FiniteDivergence.of(Release.of(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)))


def every_dataset(n: int, epsilon: float) -> float:
    """Return the largest divergence over all datasets and pairs: the law of two counts by its characteristic function.

    Exact up to rounding: the counts of n reports fit into a period of n + 1.
    """
    turn = np.exp(-2j * np.pi * np.arange(n + 1) / (n + 1))
    law = [row[0] * turn[:, None] + row[2] * turn[None, :] + row[1] for row in ROWS]
    powers = [np.stack([each**count for count in range(n)]) for each in law]
    worst = 0.0
    for first in range(n):
        for second in range(n - first):
            others = powers[0][first] * powers[1][second] * powers[2][n - 1 - first - second]
            for a, b in permutations(range(3), 2):
                gain = np.fft.ifft2(others * (law[a] - math.exp(epsilon) * law[b])).real
                worst = max(worst, float(np.maximum(gain, 0.0).sum()))
    return worst


def small_crowd(n: int, epsilon: float) -> tuple[float, float, float]:
    """Return delta over all datasets, the pooled bound, and the blanket's."""
    curve = shuffled(hs.MatrixRandomizer(channel=hs.Channel(matrix=ROWS)), n)
    pooled = min(curve.pool.over_all(curve.places, epsilon, level) for level in LEVELS)
    return every_dataset(n, epsilon), pooled, curve.blanket(epsilon)


def large_crowd(randomizer: Mechanism) -> tuple[float, float, float]:
    """Return the lower end of epsilon, the pooled upper end, and the blanket's."""
    curve = shuffled(randomizer, PEOPLE)
    figure = curve.epsilon(DELTA)
    return figure.lower, figure.upper, first_below(curve.blanket, DELTA, high=curve.pure, guess=figure.upper)


def mechanisms() -> Iterator[tuple[str, Mechanism]]:
    """Yield those of benchmarks/tight.py that are cheap here."""
    spec = importlib.util.spec_from_file_location("tight", Path(__file__).with_name("tight.py"))
    assert spec is not None
    assert spec.loader is not None
    tight = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tight)
    wanted = ("subset", "Hadamard", "truncated", "discretised Gaussian")
    for name, randomizer, n, dummies, _ in tight.cases():
        if n == PEOPLE and not dummies and name.startswith(wanted):
            yield name, randomizer


def main() -> None:
    for n, epsilon in CROWDS:
        exact, pooled, blanket = small_crowd(n, epsilon)
        print(f"| {n} | {epsilon} | {exact:.4g} | {pooled:.4g} | {blanket:.4g} |", flush=True)
    for name, randomizer in mechanisms():
        lower, upper, blanket = large_crowd(randomizer)
        print(f"| {name} | {lower:.5g} | {upper:.5g} | {blanket:.5g} | {blanket / lower - 1:.1%} |", flush=True)


if __name__ == "__main__":
    main()
