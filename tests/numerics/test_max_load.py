"""The expected maximum load against exact rationals, closed forms and itself."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.numerics import max_load
from hushuffle.numerics.exact import complex_log1p
from hushuffle.numerics.max_load import Cells, expected_max_load, expected_max_ratio
from oracles.qif_max_load import by_counting, by_enumeration, by_partitions, max_ratio


def relative_error(value: float, truth: Fraction) -> float:
    return float(abs(Fraction(value) / truth - 1))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", range(1, 13))
def test_equals_exact_rationals(n: int, k: int) -> None:
    truth = by_counting(n, k)
    assert truth == by_partitions(n, k)
    if k**n <= 4096:
        assert truth == by_enumeration(n, k)
    assert relative_error(expected_max_load(n, k), truth) < 1e-14


@pytest.mark.parametrize(
    ("n", "k"), [(20, 7), (30, 20), (40, 4), (40, 16), (40, 18), (40, 3), (25, 300), (7, 1000), (3, 2000)]
)
def test_equals_exact_rationals_at_other_shapes(n: int, k: int) -> None:
    truth = by_partitions(n, k) if n <= 7 else by_counting(n, k)
    assert relative_error(expected_max_load(n, k), truth) < 1e-14


@pytest.mark.parametrize("n", [1, 2, 3, 999, 1000, 1001, 1002, 54_321, 999_999, 1_000_000])
def test_two_cells_equal_the_closed_form(n: int) -> None:
    """n/2 + n C(n-1, floor((n-1)/2)) / 2**n in rationals, 50 digits beyond n = 10**5."""
    if n <= 10**5:
        truth = Fraction(n, 2) + Fraction(n * math.comb(n - 1, (n - 1) // 2), 2**n)
    else:
        with localcontext() as context:
            context.prec = 50
            m, log_central = n // 2, Decimal(0)
            y = 1 / Decimal(m)
            pi = Decimal("3.14159265358979323846264338327950288419716939937510582")
            for power, coefficient in (
                (1, (-1, 8)),
                (3, (1, 192)),
                (5, (-1, 640)),
                (7, (17, 14336)),
                (9, (-31, 18432)),
            ):
                log_central += Decimal(coefficient[0]) / Decimal(coefficient[1]) * y**power
            central = log_central.exp() / (pi * m).sqrt()
            truth = Fraction(Decimal(n) / 2 + Decimal(n) / 2 * central)
    assert relative_error(expected_max_load(n, 2), truth) < 1e-14


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 101, 1_000, 100_000])
def test_the_general_method_agrees_with_the_special_ones(n: int, k: int) -> None:
    general = n / k * expected_max_ratio(n, (Cells(number=k, probability=Fraction(1, k)),))
    assert general == pytest.approx(expected_max_load(n, k), rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize(
    ("k", "truth"), [(2, Fraction(3, 4)), (3, Fraction(2, 3)), (4, Fraction(7, 10)), (5, Fraction(9, 40))]
)
def test_uneven_cells_equal_exact_rationals(n: int, k: int, truth: Fraction) -> None:
    lie = (1 - truth) / (k - 1)
    classes = (Cells(number=1, probability=truth), Cells(number=k - 1, probability=lie))
    expected = max_ratio(n, [truth, *[lie] * (k - 1)])
    assert relative_error(expected_max_ratio(n, classes), expected) < 2e-14


def test_uneven_cells_with_many_of_a_kind() -> None:
    """20 cells take the logarithmic way; with equal probabilities classes may be merged."""
    merged = expected_max_ratio(50, (Cells(number=40, probability=Fraction(1, 40)),))
    parts = tuple(Cells(number=20, probability=Fraction(1, 40)) for _ in range(2))
    assert expected_max_ratio(50, parts) == pytest.approx(merged, rel=1e-14)


@pytest.mark.parametrize(("balls", "cells", "block", "rows"), [(10_000, 3, "_SUM_BLOCK", 50), (1_000, 4, "_BLOCK", 1)])
def test_blocks(balls: int, cells: int, block: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = expected_max_load(balls, cells)
    monkeypatch.setattr(max_load, block, rows)
    assert expected_max_load(balls, cells) == pytest.approx(whole, rel=1e-15)


@given(n=st.integers(1, 3000), k=st.integers(2, 200))
def test_load_grows_and_its_share_falls_with_people(n: int, k: int) -> None:
    here, further = expected_max_load(n, k), expected_max_load(n + 1, k)
    assert here <= further * (1 + 1e-13)
    assert further / (n + 1) <= here / n * (1 + 1e-13)


@given(n=st.integers(1, 3000), k=st.integers(1, 200))
def test_load_falls_with_cells(n: int, k: int) -> None:
    assert expected_max_load(n, k + 1) <= expected_max_load(n, k) * (1 + 1e-13)


@given(n=st.integers(1, 10**7), k=st.integers(100, 10**9))
def test_load_lies_between_one_and_everybody(n: int, k: int) -> None:
    load = expected_max_load(n, k)
    assert max(1.0, n / k) * (1 - 1e-13) <= load <= n * (1 + 1e-13)


def test_million_people_thousand_values_take_milliseconds() -> None:
    """E[max] near the extreme-value scale, and far below a second (1 to 2 ms measured)."""
    start = process_time()
    load = expected_max_load(10**6, 10**3)
    assert process_time() - start < 1
    assert load == pytest.approx(1000 + math.sqrt(2 * 1000 * math.log(1000)), rel=0.02)


@pytest.mark.parametrize("tolerance", [1e-8, 1e-5, 1e-3, 0.02])
@pytest.mark.parametrize(("n", "k"), [(10**6, 4), (10**7, 5), (10**5, 12)])
def test_tolerance_is_kept(n: int, k: int, tolerance: float) -> None:
    assert expected_max_load(n, k, tolerance=tolerance) == pytest.approx(expected_max_load(n, k), rel=tolerance)
    uneven = (Cells(number=1, probability=Fraction(1, 3)), Cells(number=k - 1, probability=Fraction(2, 3 * (k - 1))))
    exact = expected_max_ratio(n, uneven)
    assert expected_max_ratio(n, uneven, tolerance=tolerance) == pytest.approx(exact, rel=tolerance)


def test_sampled_loads_agree() -> None:
    """20,000 draws: the mean within 6 standard errors (false alarm about 2e-9)."""
    draws = np.random.default_rng(7).multinomial(500, np.full(12, 1 / 12), size=20_000).max(axis=1)
    error = draws.std() / math.sqrt(draws.size)
    assert abs(draws.mean() - expected_max_load(500, 12)) < 6 * error


@pytest.mark.parametrize(("n", "k"), [(10**12, 4), (10**4, 4), (2**50, 3)])
def test_refuses_what_would_take_too_long(n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many counts at once, too many nodes times counts, too many terms for three cells."""
    if n == 10**4:
        monkeypatch.setattr(max_load, "WORK_LIMIT", 1_000)
    with pytest.raises(NumericalError, match="Ask for a smaller n"):
        expected_max_load(n, k)


def test_refuses_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match="`n` must be"):
        expected_max_load(0, 2)
    with pytest.raises(InvalidInputError, match="`k` must be"):
        expected_max_load(1, 0)


def test_complex_logarithm_near_its_hard_places() -> None:
    points = np.array([1e-20 + 1e-20j, -1.0 + 0j, -1 + 1e-9j, 0.5 + 2j, -0.99 - 0.01j])
    values = complex_log1p(points)
    assert values[0] == points[0]
    assert values[1].real < -600
    assert values[2].real == pytest.approx(math.log(1e-9), rel=1e-12)
    assert np.exp(values[3:]) == pytest.approx(1 + points[3:], rel=1e-15)
