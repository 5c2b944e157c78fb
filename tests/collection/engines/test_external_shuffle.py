from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import factorial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hushuffle.collection.engines.local import ExternalShuffle
from hushuffle.randomness import Randomness, reproducible
from oracles.bucket_shuffle import orders

DTYPE = np.dtype([("report", np.uint16)])


def shuffled(
    n: int,
    folder: Path,
    rng: Randomness,
    *,
    memory: int = 1 << 20,
    largest: int = 1 << 20,
    buckets: int = 256,
    step: int = 1000,
) -> list[int]:
    shuffle = ExternalShuffle(DTYPE, folder, rng=rng, memory=memory, largest=largest, buckets=buckets)
    reports = np.arange(n).astype(np.uint16).view(DTYPE)
    for start in range(0, n, step):
        shuffle.add(reports[start : start + step])
    assert shuffle.size == n
    return [int(one) for block in shuffle.blocks() for one in block["report"]]


@pytest.mark.parametrize(("n", "buckets"), [(1, 3), (2, 2), (3, 2), (3, 3), (4, 3), (5, 2)])
def test_every_order_is_equally_likely(n: int, buckets: int) -> None:
    law = orders(n, buckets)
    assert len(law) == factorial(n)
    assert set(law.values()) == {Fraction(1, factorial(n))}


@pytest.mark.parametrize("how", ["in memory", "spilled", "nested"])
def test_orders_drawn_are_uniform(how: str, tmp_path: Path) -> None:
    """A chi-square test of all 24 orders of four reports, seed fixed: false alarm 1e-6 for each of three."""
    trials = 2400 if how == "in memory" else 720
    rng, seen = reproducible(7), Counter[tuple[int, ...]]()
    memory = 1 << 20 if how == "in memory" else 1
    for _ in range(trials):
        largest = 2 if how == "nested" else 100
        seen[tuple(shuffled(4, tmp_path, rng, memory=memory, largest=largest, buckets=3, step=3))] += 1
    expected = trials / 24
    distance = sum((count - expected) ** 2 / expected for count in seen.values()) + (24 - len(seen)) * expected
    assert distance < stats.chi2.isf(1e-6, 23)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("memory", "largest"), [(1 << 20, 1 << 20), (500, 1 << 20), (500, 20), (1, 8)])
def test_nothing_is_lost(memory: int, largest: int, tmp_path: Path) -> None:
    found = shuffled(3000, tmp_path, reproducible(1), memory=memory, largest=largest, step=700, buckets=5)
    assert found != list(range(3000))
    assert sorted(found) == list(range(3000))
    assert list(tmp_path.iterdir()) == []


def test_what_is_on_the_disk(tmp_path: Path) -> None:
    shuffle = ExternalShuffle(DTYPE, tmp_path, rng=reproducible(2), memory=100)
    shuffle.add(np.zeros(40, dtype=DTYPE))
    assert list(tmp_path.iterdir()) == []  # 80 bytes fit
    shuffle.add(np.zeros(40, dtype=DTYPE))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 160


def test_nobody(tmp_path: Path) -> None:
    assert shuffled(0, tmp_path, reproducible(1)) == []
