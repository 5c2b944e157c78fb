from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions import pie
from oracles.pie_information import best_success, mutual_information, randomized_response, through


def protocol(*, k: int, epsilon: float, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def test_one_report_is_the_exact_figure() -> None:
    survey = protocol(k=4, epsilon=1.0, n=9)
    alpha, error = pie.alpha(survey).upper, pie.bayes_error(survey).lower
    assert alpha <= pie.composed_alpha(survey, reports=1).upper == pytest.approx(alpha, rel=1e-15)
    assert error >= pie.composed_error(survey, reports=1).lower == pytest.approx(error, rel=1e-15)


@pytest.mark.parametrize(("n", "k", "t"), [(2, 2, 2), (3, 2, 2), (4, 2, 2), (2, 3, 2), (5, 2, 3)])
def test_error_is_below_every_assignment(n: int, k: int, t: int) -> None:
    survey = protocol(k=k, epsilon=1.0, n=n)
    law = hs.RandomizedResponse(k=k, epsilon=1.0).law()
    channel = [[law.truth if x == y else law.lie for y in range(k)] for x in range(k)]
    bound = pie.composed_error(survey, reports=t)
    least = 1 - best_success(channel, n, reports=t)
    assert Fraction(bound.lower) <= least
    assert (bound.kind, bound.unit, bound.upper) == ("lower", "probability", 1.0)
    if n == k**t:  # everyone can hold a tuple of their own: attained
        assert bound.lower == pytest.approx(float(least), rel=1e-15)


def test_alpha_is_above_random_laws_of_two_reports() -> None:
    rng = np.random.default_rng(8)
    n, k, epsilon = 4, 3, 1.0
    single = randomized_response(k, epsilon)
    double = np.kron(single, single).tolist()
    bound = pie.composed_alpha(protocol(k=k, epsilon=epsilon, n=n), reports=2)
    for _ in range(100):
        joint = rng.dirichlet(np.full(n * k * k, rng.choice([0.02, 0.3]))).reshape(n, k * k).tolist()
        assert mutual_information(through(joint, double)) <= bound.upper
    assert (bound.kind, bound.unit, bound.lower) == ("upper", "bits", 0.0)


def test_many_reports_say_everything_and_no_more() -> None:
    survey = protocol(k=3, epsilon=1.0, n=64)
    assert pie.composed_alpha(survey, reports=10**6).upper == pytest.approx(6.0, rel=1e-15)
    assert pie.composed_error(survey, reports=10**6).lower == 0.0


def test_monotone_in_the_reports() -> None:
    survey = protocol(k=3, epsilon=0.4, n=10**5)
    bounds = [
        (pie.composed_alpha(survey, reports=t).upper, -pie.composed_error(survey, reports=t).lower)
        for t in (1, 2, 5, 20)
    ]
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(bounds))


def test_one_person_and_no_noise() -> None:
    assert pie.composed_alpha(protocol(k=3, epsilon=1.0, n=1), reports=5).upper == 0.0
    assert pie.composed_alpha(protocol(k=4, epsilon=math.inf, n=1000), reports=2).upper == pytest.approx(4.0)


def test_bad_input() -> None:
    survey = protocol(k=2, epsilon=1.0, n=4)
    for question in (pie.composed_alpha, pie.composed_error):
        with pytest.raises(InvalidInputError, match=r"`reports` must be an integer >= 1, got reports=0"):
            question(survey, reports=0)
