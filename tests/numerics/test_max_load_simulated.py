from __future__ import annotations

import math

import numpy as np
import pytest

from hushuffle.numerics.max_load import expected_max_load


@pytest.mark.parametrize(("n", "k", "draws"), [(10**6, 10**3, 1000), (10**9, 10**3, 1000), (10**5, 10**5, 60)])
def test_agrees_with_simulation(n: int, k: int, draws: int) -> None:
    loads = np.random.default_rng(17).multinomial(n, np.full(k, 1 / k), size=draws).max(axis=1)
    z = (loads.mean() - expected_max_load(n, k)) / (loads.std(ddof=1) / math.sqrt(draws))
    # |z| > 5.5 has probability 4e-8 (Student's t with 59 degrees of freedom: 9e-7).
    assert abs(z) < 5.5
