from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.model.number_grid import PARTS
from oracles.number_enumeration import rounding_law
from oracles.rr_statistics import chi_square_excess

KEY = bytes(range(32))


@pytest.mark.parametrize(("low", "high", "levels"), [(0, 1, 2), (-3, 5, 5), (18, 99, 4), (-1e-3, 7.5e9, 3)])
def test_rounding_follows_its_law(low: float, high: float, levels: int) -> None:
    grid, each = hs.NumberGrid(low=low, high=high, levels=levels), 20_000
    for share in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)):
        number = float(Fraction(low) + share * (Fraction(high) - Fraction(low)))
        codes = grid.encode(np.full(each, number), rng=hs.reproducible(1))
        law = rounding_law(Fraction(number), Fraction(low), Fraction(high), levels)
        expected = np.array([float(part) for part in law])
        expected[expected < 1e-4] = 0.0  # less than what positions in a step tell apart
        assert chi_square_excess(np.bincount(codes, minlength=levels), each * expected) < 0


def test_the_expected_level_is_the_number_to_half_a_position() -> None:
    grid = hs.NumberGrid(low=-2, high=3, levels=7)
    numbers = np.linspace(-2, 3, 1001)
    share = grid.positions(numbers) / PARTS
    assert np.abs(-2 + share * grid.step - numbers).max() <= grid.step / PARTS / 2 * (1 + 1e-9)


def test_numbers_outside_the_bounds_are_the_nearer_bound_and_are_told() -> None:
    grid = hs.NumberGrid(low=0, high=10, levels=3)
    numbers = [-1e308, -1e-9, 0.0, 10.0, 10.001, 1e308]
    assert grid.encode(numbers, rng=hs.reproducible(0)).tolist() == [0, 0, 0, 2, 2, 2]
    assert grid.outside(grid.positions(numbers)).tolist() == [True, True, False, False, True, True]


def test_a_keyed_record_repeats_its_rounding_in_any_batch() -> None:
    grid, records = hs.NumberGrid(low=0, high=1, levels=3), np.arange(200, dtype=np.uint64)
    numbers = np.linspace(0, 1, 200)
    whole = grid.encode(numbers, rng=hs.keyed(key=KEY, records=records))
    turned = np.argsort(-numbers)
    assert np.array_equal(grid.encode(numbers[turned], rng=hs.keyed(key=KEY, records=records[turned])), whole[turned])
    assert len(set(whole.tolist())) == 3


def test_the_coin_that_rounds_is_not_that_of_the_report() -> None:
    response = hs.RoundedResponse(levels=2, epsilon=1.0, low=0, high=1)
    rng = hs.keyed(key=KEY, records=np.arange(40_000))
    codes = response.encode(np.full(40_000, 0.5), rng=rng)
    reports = response.randomize(codes, rng=rng)
    law = np.outer([0.5, 0.5], [1, 1]) * response.channel().matrix
    assert chi_square_excess(np.bincount(2 * codes + reports, minlength=4), 40_000 * law.ravel()) < 0


def test_labels_are_short_where_they_can_be() -> None:
    assert hs.NumberGrid(low=0, high=1, levels=3).labels == ("0", "0.5", "1")
    close = hs.NumberGrid(low=1, high=1 + 3e-12, levels=4).labels
    assert len(set(close)) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": 1, "high": 1, "levels": 3}, r"`high` must be above low = 1, with a finite difference, got high=1"),
        ({"low": -1e308, "high": 1e308, "levels": 3}, "with a finite difference"),
        ({"low": math.nan, "high": 1, "levels": 3}, "`low` must be finite"),
        ({"low": 0, "high": math.inf, "levels": 3}, "`high` must be finite, got high=inf"),
        ({"low": 0, "high": "1", "levels": 3}, "`high` must be finite"),
        ({"low": 0, "high": 1, "levels": 1}, "`levels` must be an integer from 2 to 16384"),
        ({"low": 1, "high": 1 + 4e-16, "levels": 9}, "`levels` must be so small that floats"),
    ],
)
def test_what_is_no_grid_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.NumberGrid(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "numbers", [[[1.0]], ["a"], [[1.0], [1.0, 2.0]], [0.5, math.nan], [0.5, math.inf], [-math.inf], [10**400]]
)
def test_what_is_no_number_is_refused_and_not_shown(numbers: object) -> None:
    with pytest.raises(InvalidInputError, match="`numbers` must be") as caught:
        hs.NumberGrid(low=0, high=1, levels=2).encode(numbers, rng=hs.reproducible(0))  # type: ignore[arg-type]
    assert "0.5" not in str(caught.value)
