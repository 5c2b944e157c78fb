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


@pytest.mark.parametrize(("n", "p"), [(3, 0.5), (40, 0.2), (2_000, 2 / 3), (30_000, 0.25), (10**6, 0.5)])
def test_a_run_of_probabilities_is_within_its_margin(n: int, p: float) -> None:
    low, high = binomial.window(n, p, binomial.LOG_TAIL)
    size = high - low + 3  # also beyond n
    run = binomial.runs(np.array([float(low)]), size, np.array([float(n)]), p)[0]
    allowed = binomial.margin(n) + 4 * size * binomial.EPS
    for place in {0, size // 3, size // 2, size - 4}:
        truth = binomial_mp.pmf(low + place, n, p)
        assert abs(float(mpmath.mpf(float(run[place])) / truth) - 1) <= allowed
    if high == n:
        assert run[n - low + 1 :].tolist() == [0.0] * (size - 1 - n + low)


@pytest.mark.parametrize("step", [1, 3, 50])
def test_masses_between_cuts_are_differences_of_tails_on_their_own_side(step: int) -> None:
    trials = np.array([[7.0], [200.0]])
    cuts = np.arange(-1.0, 200.0 + step, step)[None, :].repeat(2, axis=0)
    mass, tails = binomial.between(cuts, trials, 0.3)
    for n, row, tail in zip((7, 200), mass, tails, strict=True):
        table = [math.comb(n, i) * 0.3**i * 0.7 ** (n - i) for i in range(n + 1)]
        expected = [
            sum(table[max(a + 1, 0) : b + 1])
            for a, b in zip(cuts[0].astype(int), cuts[0].astype(int)[1:], strict=False)
        ]
        assert np.allclose(row, expected, rtol=1e-11, atol=1e-300)
        assert np.all(row <= tail)
        assert np.all(tail[cuts[0][1:] < n * 0.3] <= 1.0)
