from __future__ import annotations

import itertools
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.questions.bloom.transition import coefficients, largest, ratio_from_empty, ratios, skewed_counts
from oracles.bloom_snr import best_coefficients, ratio, ratio_of

SKEWS = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1]


def some_counts(k: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, size=1 << k) * (rng.random(1 << k) < 0.6)
    return [int(each) for each in counts + (np.arange(1 << k) == seed % (1 << k))]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_ratios_in_exact_rationals(k: int, seed: int) -> None:
    p = [Fraction(1, 20), Fraction(1, 4), Fraction(9, 20), Fraction(1, 1000)][seed]
    counts = some_counts(k, seed)
    table = ratios(counts, p=float(p))
    changes = [(j, i) for j in range(1 << k) for i in range(1 << k) if j != i]
    for before, after in changes if k < 3 else changes[seed::7]:
        exact = float(ratio([Fraction(each) for each in counts], p, before, after))
        assert table[before, after] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("p", [0.02, 0.3])
def test_no_input_and_no_change_has_a_larger_ratio_than_empty_filters(k: int, p: float) -> None:
    for seed in range(10):
        counts = some_counts(k, seed)
        assert largest(counts, p=p).ratio <= ratio_from_empty(k, bits=sum(counts), p=p) * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_coefficients_attain_the_ratio(k: int) -> None:
    p, counts = 0.1, some_counts(k, 5)
    table, last = ratios(counts, p=p), (1 << k) - 1
    for change in [(0, last), (last, 0), (last // 2, last)]:
        if change[0] != change[1]:
            best = coefficients(counts, p=p, change=change)
            assert abs(best.sum()) < 1e-12
            assert np.linalg.norm(best) == pytest.approx(1.0)
            assert ratio_of(counts, p, *change, best.tolist()) == pytest.approx(table[change], rel=1e-9)
            exact = best_coefficients([Fraction(each) for each in counts], Fraction(p), *change)
            centred = np.array([float(each) for each in exact])
            centred -= centred.mean()
            assert best == pytest.approx(centred / np.linalg.norm(centred), rel=1e-8, abs=1e-12)
            for nudge in np.random.default_rng(1).normal(size=(5, 1 << k)):
                assert ratio_of(counts, p, *change, (best + 0.1 * nudge).tolist()) <= table[change] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("k", "p"),
    [*itertools.product([1, 2, 4, 7], [0.001, 0.05, 0.3, 0.49]), pytest.param(10, 0.05, marks=pytest.mark.slow)],
)
def test_closed_form_for_empty_filters(k: int, p: float) -> None:
    counts = skewed_counts(k, bits=1000, skewness=1)
    assert counts[0] == 1000
    assert not counts[1:].any()
    assert ratios(counts, p=p)[0, -1] == pytest.approx(ratio_from_empty(k, bits=1000, p=p), rel=1e-9)
    ones = np.bitwise_count(np.arange(1 << k)).astype(float)
    printed = ((1 - p) / p) ** (2 * ones - k)
    printed -= printed.mean()
    found = coefficients(counts, p=p, change=(0, (1 << k) - 1))
    assert found == pytest.approx(printed / np.linalg.norm(printed), rel=1e-8, abs=1e-10)


def test_the_family_is_a_product_with_one_parameter() -> None:
    for s in SKEWS:
        counts, one = skewed_counts(3, bits=700, skewness=s), (1 - s) / (2 - s)
        each = np.array([1 - one, one])
        assert counts == pytest.approx(700 * np.kron(each, np.kron(each, each)), rel=1e-12)


@pytest.mark.parametrize(("k", "p"), [(2, 0.1), (3, 0.05), (4, 0.05), (4, 0.25)])
def test_observation_1_the_ratio_grows_with_the_skewness(k: int, p: float) -> None:
    peaks = [largest(skewed_counts(k, bits=1000, skewness=s), p=p).ratio for s in SKEWS]
    assert all(b > a for a, b in pairwise(peaks))
    assert peaks[-1] == pytest.approx(ratio_from_empty(k, bits=1000, p=p), rel=1e-9)


def test_observation_2_the_largest_change_is_not_always_from_none_to_all() -> None:
    found = {s: largest(skewed_counts(4, bits=1000, skewness=s), p=0.05).changes for s in SKEWS}
    assert found[1] == found[0.99] == ((0, 15),)
    # Uniform: by symmetry every change of all bits is as large as 0 -> 15.
    assert found[0] == tuple((j, 15 - j) for j in range(8))
    assert found[0.3] == ((1, 15), (2, 15), (4, 15), (8, 15))
    assert found[0.8] == ((7, 15), (11, 15), (13, 15), (14, 15))
    assert all((0, 15) not in found[s] for s in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95))
    # In the paper's setting of three filters with much noise it is.
    assert all((0, 7) in largest(skewed_counts(3, bits=1000, skewness=s), p=0.1).changes for s in SKEWS)


def test_observation_3_the_coefficients_stand_out_at_all_ones() -> None:
    best, rough = (coefficients(skewed_counts(4, bits=1000, skewness=1), p=p, change=(0, 15)) for p in (0.05, 0.3))
    assert best[15] > 0.96
    assert np.ptp(best[:15]) < 0.003  # (s, ..., s, -1) is close, with little noise
    assert np.ptp(rough[:15]) > 0.3 * np.ptp(rough) / 2  # and far from it with much


def test_ten_filters_in_the_time_of_a_few_sorts() -> None:
    numbers, counts = np.random.default_rng(0).random(3 * 10**6), skewed_counts(10, bits=10**5, skewness=0.5)
    start = time.process_time()
    np.sort(numbers)
    middle = time.process_time()
    table = ratios(counts, p=0.1)
    assert time.process_time() - middle < 100 * (middle - start)
    assert np.array_equal(table, table.T)
    assert not table.diagonal().any()


@pytest.mark.parametrize(
    "counts", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [0.0, 0.0], [1.0, -1.0], [1.0, np.inf], [1.0] * 2048]
)
def test_bad_counts(counts: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="`counts` must be"):
        ratios(counts, p=0.1)


def test_bad_parameters() -> None:
    with pytest.raises(InvalidInputError, match="two different bit patterns"):
        coefficients([1, 2], p=0.1, change=(1, 1))
    with pytest.raises(InvalidInputError, match="`change` must be"):
        coefficients([1, 2], p=0.1, change=(0, 2))
    with pytest.raises(InvalidInputError, match="`skewness` must be"):
        skewed_counts(2, bits=10, skewness=1.1)
    with pytest.raises(InvalidInputError, match="`p` must be < 1/2"):
        ratio_from_empty(2, bits=10, p=0.5)
