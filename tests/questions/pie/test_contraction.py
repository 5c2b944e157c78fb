from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions import pie
from oracles.pie_information import mutual_information, randomized_response, through


def protocol(*, k: int, epsilon: float, n: int = 10) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_no_joint_law_keeps_more(k: int, epsilon: float) -> None:
    rng = np.random.default_rng(k)
    channel = randomized_response(k, epsilon)
    survey = protocol(k=k, epsilon=epsilon)
    for people in (2, 5):
        for _ in range(60):
            joint = rng.dirichlet(np.full(people * k, rng.choice([0.1, 1.0, 5.0]))).reshape(people, k).tolist()
            kept = mutual_information(through(joint, channel))
            bound = pie.contracted_alpha(survey, mutual_information(joint))
            assert kept <= bound.upper + 1e-12
            assert (bound.kind, bound.unit, bound.lower) == ("upper", "bits", 0.0)


def test_the_constant_is_approached_on_two_values() -> None:
    # U hardly matters: two people whose values differ very little, on two values, evenly.
    k, epsilon, tilt = 5, 1.5, 1e-3
    joint = [[0.25 + s * tilt, 0.25 - s * tilt, 0.0, 0.0, 0.0] for s in (1, -1)]
    kept = mutual_information(through(joint, randomized_response(k, epsilon)))
    eta = pie.contraction(protocol(k=k, epsilon=epsilon))
    assert kept / mutual_information(joint) == pytest.approx(eta.upper, rel=1e-5)
    assert eta.kind == "exact"


def test_closed_forms_agree() -> None:
    for k, epsilon in itertools.product((2, 7, 1000), (0.01, 1.0, 8.0)):
        theta = float(hs.RandomizedResponse(k=k, epsilon=epsilon).law().theta)
        eta = pie.contraction(protocol(k=k, epsilon=epsilon)).upper
        assert eta == pytest.approx(theta * math.tanh(epsilon / 2), rel=1e-12)
    assert pie.contraction(protocol(k=3, epsilon=math.inf)).upper == 1.0


def test_two_correlated_values_each_say_nothing_but_leak_together() -> None:
    channel = randomized_response(2, 2.0)
    both = [[0.0] * 4, [0.0] * 4]  # X_1 a fair coin, X_2 = X_1 xor U
    for person, first in itertools.product((0, 1), (0, 1)):
        both[person][2 * first + (first ^ person)] = 0.25
    for place in (0, 1):
        alone = [[sum(row[c] for c in range(4) if (c >> place) & 1 == v) for v in (0, 1)] for row in both]
        assert mutual_information(alone) == pytest.approx(0.0, abs=1e-15)
    pairs = [[channel[x >> 1][y >> 1] * channel[x & 1][y & 1] for y in range(4)] for x in range(4)]
    leaked = mutual_information(through(both, pairs))
    survey = protocol(k=2, epsilon=2.0, n=2)
    assert leaked == pytest.approx(0.259, abs=5e-4)
    assert 2 * pie.contracted_alpha(survey, 0.0).upper == 0.0  # what adding up single reports would say
    assert leaked <= pie.contracted_alpha(survey, mutual_information(both), reports=2).upper < 1
    assert leaked <= pie.composed_alpha(survey, reports=2).upper


@pytest.mark.parametrize("t", [2, 3])
def test_several_reports_keep_no_more_than_the_composed_constant(t: int) -> None:
    rng = np.random.default_rng(t)
    channel = np.array(randomized_response(2, 1.0))
    several = channel
    for _ in range(t - 1):
        several = np.kron(several, channel)
    survey = protocol(k=2, epsilon=1.0)
    for _ in range(40):
        joint = rng.dirichlet(np.full(3 * 2**t, rng.choice([0.1, 1.0]))).reshape(3, 2**t).tolist()
        kept = mutual_information(through(joint, several.tolist()))
        assert kept <= pie.contracted_alpha(survey, mutual_information(joint), reports=t).upper + 1e-12


def test_bad_input() -> None:
    survey = protocol(k=2, epsilon=1.0)
    with pytest.raises(InvalidInputError, match=r"`mutual_information` must be finite and >= 0"):
        pie.contracted_alpha(survey, math.inf)
    with pytest.raises(InvalidInputError, match=r"`reports` must be an integer >= 1, got reports=0"):
        pie.contracted_alpha(survey, 1.0, reports=0)
