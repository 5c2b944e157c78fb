from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.questions.bloom.transition import ones_matrix, transition_matrix
from oracles.bloom_reach import flip_law
from oracles.bloom_snr import by_hypergeometric, printed_ones


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(2, 5)])
def test_transitions_bit_by_bit(k: int, p: Fraction) -> None:
    expected = np.array([[float(each) for each in row] for row in flip_law(k, p)])
    assert transition_matrix(k, float(p)) == pytest.approx(expected, rel=1e-14)
    assert hs.BitFlipping(width=k, p=float(p)).channel().matrix == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_ones_to_ones_is_the_printed_sum_per_logo(k: int) -> None:
    p = Fraction(3, 20)
    matrix = ones_matrix(k, float(p))
    for y in range(k + 1):
        for z in range(k + 1):
            printed = printed_ones(k, p, y, z)
            assert printed == by_hypergeometric(k, p, y, z)
            assert matrix[y, z] == pytest.approx(float(printed / math.comb(k, y)), rel=1e-12)


def test_the_printed_number_of_pairs_of_logos_is_wrong() -> None:
    # (k-1)! pairs with y and z ones would be 2 for k = 3; there are C(3,1) C(3,1) = 9.
    pairs = sum(i.bit_count() == 1 and j.bit_count() == 1 for i in range(8) for j in range(8))
    assert pairs == 9 != math.factorial(2)


def test_the_printed_transition_from_no_ones_is_no_law() -> None:
    """p**j q**(k-j) for every logo j sums to 41/45 for k = 2, p = 0.1; with the number of its ones for j, to 1."""
    k, p = 2, Fraction(1, 10)
    q, exact = 1 - p, flip_law(k, p)[0]
    assert [p ** j.bit_count() * q ** (k - j.bit_count()) for j in range(1 << k)] == exact
    printed = [p**j * q ** (k - j) for j in range(1 << k)]
    assert sum(exact) == 1
    assert printed[2] == p**2 != p * q == exact[2]
    assert sum(printed) == Fraction(41, 45)


def test_wide_rows_sum_to_one() -> None:
    for p in (1e-6, 0.05, 0.499):
        assert transition_matrix(10, p).sum(axis=1) == pytest.approx(1.0, rel=1e-12)
        assert ones_matrix(10, p).sum(axis=1) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("k", "p"), [(0, 0.1), (11, 0.1), (2, 0.0), (2, 0.5), (2, 0.7)])
def test_bad_parameters(k: int, p: float) -> None:
    for function in (transition_matrix, ones_matrix):
        with pytest.raises(InvalidInputError, match="must be"):
            function(k, p)


def test_flips_too_rare_for_floats_are_refused() -> None:
    with pytest.raises(NumericalError, match="too small for a matrix"):
        ones_matrix(2, 1e-320)
    assert ones_matrix(2, 1e-280)[1, 2] == pytest.approx(1e-280)
