from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

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


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 4.0])
@pytest.mark.parametrize("randomizer", [hs.RandomizedResponse, hs.LocalHashing])
def test_error_is_below_random_populations_with_any_prior(epsilon: float, randomizer: Any) -> None:
    """The values of two reports are drawn for each of 40 people; orders and Fano's bound count, not only the gain."""
    rng, n, k = np.random.default_rng(9), 40, 7
    single = np.array(randomized_response(k, epsilon))
    double = np.kron(single, single)
    keywords = {"g": k} if randomizer is hs.LocalHashing else {}
    survey = hs.Protocol(randomizer=randomizer(k=k, epsilon=epsilon, **keywords), shuffler=hs.UniformShuffle(), n=n)
    for concentration in (0.1, 1.0, 100.0):
        prior = rng.dirichlet(np.full(n, concentration))
        tuples = rng.permutation(k * k)[:n]
        success = float((prior[:, None] * double[tuples]).max(axis=0).sum())
        bound = pie.composed_error(survey, reports=2, largest_prior=max(float(prior.max()), 1 / n))
        assert bound.lower <= 1 - success + 1e-9


def test_more_reports_are_bounded_by_information_of_a_finite_order() -> None:
    survey = protocol(k=10**6, epsilon=8.0, n=10**5)
    gain = pie.alpha(survey, order=math.inf).upper
    assert 5 * gain > math.log2(10**5)  # the gain alone bounds nothing
    slow = [1 - 2 ** ((1 - 1 / a) * (5 * pie.alpha(survey, order=a).upper - math.log2(10**5))) for a in (1.5, 2, 3, 5)]
    fano = pie.fano_error(5 * pie.alpha(survey).upper, 10**5).lower
    assert pie.composed_error(survey, reports=5).lower == pytest.approx(max([*slow, fano]), rel=1e-9)
    assert max(slow) > fano > 0.9


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
