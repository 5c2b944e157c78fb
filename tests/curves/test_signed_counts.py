from __future__ import annotations

import math

import numpy as np
import pytest

from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.tilted_counts import SignedCounts
from oracles import dp_enumeration as oracle


def test_lies_below_the_exact_divergence_at_its_dataset() -> None:
    rng, shares = np.random.default_rng(5), []
    for _ in range(50):
        k, n, dummies = int(rng.integers(3, 6)), int(rng.integers(1, 5)), int(rng.integers(0, 4))
        epsilon_0 = float(rng.uniform(0.2, 4))
        lie = 1 / (k + math.expm1(epsilon_0))
        epsilon, truth = float(rng.uniform(0, epsilon_0 * 0.9)), 1 - (k - 1) * lie
        exact = float(oracle.delta_at((0, 0, n - 1) + (0,) * (k - 3), k, truth, math.exp(epsilon), dummies))
        lower = SignedCounts(k=k, n=n, truth=truth, lie=lie, dummies=dummies).lower(epsilon)
        assert lower <= exact + 1e-13
        shares.append(lower / max(exact, 1e-12))
    assert np.median(shares) > 0.95


@pytest.mark.parametrize(
    ("k", "n", "dummies"), [(3, 1000, 1000), (5, 1000, 1000), (20, 10**6, 500), (5, 10**9, 10**6), (4, 50, 10**5)]
)
def test_is_close_to_the_blanket_at_size(k: int, n: int, dummies: int) -> None:
    lie = 1 / (k + math.expm1(2.0))
    truth = 1 - (k - 1) * lie
    epsilon = 9 * (truth - lie) / math.sqrt(2 * lie * n + 2 * dummies / k)
    upper = BlanketBound.of(k=k, n=n, truth=truth, lie=lie, dummies=dummies).upper(epsilon)
    lower = SignedCounts(k=k, n=n, truth=truth, lie=lie, dummies=dummies).lower(epsilon)
    assert 0.85 * upper < lower <= upper
