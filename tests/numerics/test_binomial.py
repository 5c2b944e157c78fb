from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.numerics import binomial
from oracles import binomial_mp


def cases() -> list[tuple[int, float, int]]:
    """Random (n, p, x above the mean), n to 3e8, up to 14 deviations out."""
    rng = np.random.default_rng(20261120)
    found: list[tuple[int, float, int]] = []
    while len(found) < 45:
        n = int(10 ** rng.uniform(0.5, 8.5))
        p = float(rng.choice([0.5, rng.uniform(0.001, 0.999), 10 ** rng.uniform(-6, -1)]))
        x = math.ceil(n * p + rng.uniform(0.5, 14) * math.sqrt(n * p * (1 - p)) + 1)
        if x <= n:
            found.append((n, p, x))
    return found


@pytest.mark.parametrize(
    ("n", "p", "x"),
    [pytest.param(*case, marks=[pytest.mark.slow] if place % 2 else []) for place, case in enumerate(cases())],
)
def test_pmf_and_tail_are_within_the_stated_margin(n: int, p: float, x: int) -> None:
    other = 1 - p
    for ours, truth in (
        (binomial.pmf(x, n, p), binomial_mp.pmf(x, n, p)),
        (binomial.upper_tail(x, n, p), binomial_mp.upper_tail(x, n, p)),
        (binomial.lower_tail(n - x, n, other), binomial_mp.upper_tail(x, n, 1 - mpmath.mpf(other))),
    ):
        assert abs(float(mpmath.mpf(float(ours)) / truth) - 1) <= binomial.margin(n)


@pytest.mark.parametrize("n", [1, 2, 3, 15, 31, 32, 33, 60])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_small_tables_by_the_definition(n: int, p: float) -> None:
    x = np.arange(-1, n + 2)
    table: list[float] = [math.comb(n, int(i)) * p**i * (1 - p) ** (n - i) if 0 <= i <= n else 0.0 for i in x]
    assert np.allclose(binomial.pmf(x, n, p), table, rtol=1e-12, atol=0)
    assert np.allclose(binomial.upper_tail(x, n, p), np.cumsum(table[::-1])[::-1], rtol=1e-12, atol=1e-300)
    assert np.allclose(binomial.lower_tail(x, n, p), np.cumsum(table), rtol=1e-12, atol=1e-300)
    expected = [sum(max(0, int(level) - i) * table[i + 1] for i in range(n + 1)) for level in x]
    value, error = binomial.shortfall(x, n, p)
    assert np.all(np.abs(value - expected) <= error + 1e-15)
    assert np.all(error <= 1e-11 * np.maximum(np.abs(x), 1))


@given(n=st.integers(1, 10**9), p=st.floats(0.0, 1.0), log_tail=st.floats(-100, -1))
def test_window_leaves_no_more_outside_than_asked(n: int, p: float, log_tail: float) -> None:
    low, high = binomial.window(n, p, log_tail)
    assert 0 <= low <= high <= n
    outside = float(binomial.lower_tail(low - 1, n, p)), float(binomial.upper_tail(high + 1, n, p))
    assert max(outside) <= math.exp(log_tail) * (1 + 1e-6)


@pytest.mark.parametrize("groups", [((30, 0.25), (20, 0.75)), ((30, 0.25), (20, 0.75), (16, 0.5)), ((40, 0.5),)])
def test_a_sum_inside_windows_lacks_no_more_than_said(groups: tuple[tuple[int, float], ...]) -> None:
    whole = np.ones(1)
    for trials, chance in groups:
        whole = np.convolve(whole, binomial.pmf(np.arange(trials + 1.0), trials, chance))
    for log_tail in (-0.5, -2.0, -8.0, -100.0):
        law, missing = binomial.window_sum(groups, log_tail)
        first = sum(binomial.window(*group, log_tail)[0] for group in groups)
        lacks = whole.copy()
        lacks[first : first + law.size] -= law
        assert np.abs(lacks[first : first + law.size]).max() <= missing + 1e-15
    assert missing == 0.0
