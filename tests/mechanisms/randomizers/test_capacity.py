from __future__ import annotations

import decimal
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hushuffle import RandomizedResponse
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.numerics.capacity import capacity_ends
from hushuffle.numerics.exact import log2, to_decimal
from oracles.pie_information import capacity, randomized_response


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_shannon_capacity_agrees_with_blahut_arimoto(k: int, epsilon: float) -> None:
    law = RandomizedResponse(k=k, epsilon=epsilon).law()
    channel = randomized_response(k, epsilon)
    for rows in range(2, k + 1):
        start = [2 * (row + 1) / (rows * (rows + 1)) for row in range(rows)]  # away from the answer
        reached = capacity(channel[:rows], gap=5e-10, start=start)
        assert float(law.capacity(rows)[1]) == pytest.approx(reached, abs=1e-9)


def test_one_row_carries_nothing() -> None:
    law = RandomizedResponse(k=4, epsilon=1.0).law()
    assert law.capacity(1)[1] == 0
    assert law.gain(1) == 1


def test_no_noise_carries_the_logarithm_of_the_rows() -> None:
    law = RandomizedResponse(k=7, epsilon=math.inf).law()
    assert float(law.capacity(4)[1]) == 2.0
    assert law.gain(4) == 4


@pytest.mark.parametrize(("k", "rows", "epsilon"), [(2**40, 2**40, 1e-6), (2, 2, 1e-18), (10**7, 3, 0.5)])
def test_tiny_capacities_keep_their_digits(k: int, rows: int, epsilon: float) -> None:
    law = RandomizedResponse(k=k, epsilon=epsilon).law()
    with mpmath.workdps(200):
        truth = mpmath.mpf(law.truth.numerator) / law.truth.denominator
        lie = mpmath.mpf(law.lie.numerator) / law.lie.denominator
        mean = (truth + (rows - 1) * lie) / rows
        slow = truth * mpmath.log(truth / mean, 2) + (rows - 1) * lie * mpmath.log(lie / mean, 2)
        ours = mpmath.mpf(str(law.capacity(rows)[1]))
        assert abs(ours / slow - 1) < mpmath.mpf(10) ** -60


def test_capacity_grows_with_the_rows() -> None:
    law = RandomizedResponse(k=9, epsilon=0.7).law()
    shannon = [law.capacity(rows)[1] for rows in range(1, 10)]
    bayes = [law.gain(rows) for rows in range(1, 10)]
    assert shannon == sorted(shannon)
    assert bayes == sorted(bayes)


def test_the_callers_decimal_settings_change_nothing() -> None:
    law = Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4))
    plain = law.capacity(2)[1]
    with decimal.localcontext() as context:
        context.prec, context.rounding = 3, decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        assert law.capacity(2)[1] == plain
        assert log2(Fraction(8)) == 3


def test_fractions_become_wide_decimals() -> None:
    assert str(to_decimal(Fraction(1, 3))).count("3") == 120


def test_more_people_than_values_hold_all_of_them() -> None:
    law = RandomizedResponse(k=3, epsilon=1.0).law()
    assert (law.capacity(4), law.gain(4)) == (law.capacity(3), law.gain(3))
    with pytest.raises(InvalidInputError, match=r"`people` must be an integer >= 1"):
        law.capacity(0)


@pytest.mark.parametrize("seed", range(8))
def test_the_capacity_of_any_channel_lies_between_its_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(int(rng.integers(2, 6)), 0.5), size=int(rng.integers(2, 6)))
    slow = capacity(matrix.tolist(), gap=1e-11)
    lower, upper = capacity_ends(matrix)
    assert lower - 1e-11 <= slow <= upper
    assert upper - lower <= 1e-9
    early = capacity_ends(matrix, work=1)  # stopped after one step: wider, and still true
    assert early[0] <= slow <= early[1]
    assert early[1] - early[0] >= upper - lower


def test_the_ends_meet_the_symmetric_form() -> None:
    survey = RandomizedResponse(k=6, epsilon=1.3)
    lower, upper = capacity_ends(survey.channel().matrix)
    assert lower - 1e-13 <= float(survey.law().capacity(6)[1]) <= upper + 1e-13
