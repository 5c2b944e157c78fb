from __future__ import annotations

import math

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.estimation import predicted_standard_error
from hushuffle.questions import pie

PLACES, PEOPLE = 10_500_393, 1_370_637


def survey(randomizer: hs.RandomizedResponse | hs.LocalHashing, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)


def test_the_experiment_of_the_paper() -> None:
    """The Bayes error above 0.92 of the paper's location data, by each proof."""
    rr = pie.calibrate(survey(hs.RandomizedResponse(k=PLACES, epsilon=1.0), PEOPLE), bayes_error=0.92)
    assert [route.epsilon for route in rr] == pytest.approx([13.7246, 12.9116, 12.7229, 0.6613], abs=1e-4)
    assert [route.theta for route in rr] == pytest.approx([0.0799993, 0.0371344, 0.0309477, 8.926e-8], rel=1e-4)
    errors = [route.standard_error() for route in rr]
    assert errors == pytest.approx([3.161e-6, 6.966e-6, 8.385e-6, 2.953], rel=1e-3)
    hashed = pie.calibrate(survey(hs.LocalHashing(k=PLACES, g=10**8, epsilon=1.0), PEOPLE), bayes_error=0.92)
    assert [route.epsilon for route in hashed] == pytest.approx([15.9783, 15.0401, 14.9767, 0.6613], abs=1e-4)
    assert [route.standard_error(1e-3) for route in hashed[:3]] == pytest.approx(
        [9.160e-5, 1.4645e-4, 1.5117e-4], rel=1e-3
    )
    assert [route.name for route in hashed][2] == "Theorem 4.4 and Fano"


@pytest.mark.parametrize("n", [50, 10**4, 10**6])
@pytest.mark.parametrize(("k", "g"), [(7, None), (10**5, None), (1000, 4), (10**5, 3000), (1000, 10**6)])
@pytest.mark.parametrize("error", [0.3, 0.7, 0.9])
def test_every_route_keeps_its_promise_by_its_own_proof(n: int, k: int, g: int | None, error: float) -> None:
    plain: hs.RandomizedResponse | hs.LocalHashing = hs.RandomizedResponse(k=k, epsilon=1.0)
    routes = pie.calibrate(survey(hs.LocalHashing(k=k, g=g, epsilon=1.0) if g else plain, n), bayes_error=error)
    allowed = [route.epsilon or 0.0 for route in routes]
    assert allowed[0] >= allowed[1] >= max(allowed[2:])  # Theorem 4.4 can be weaker than Proposition 4.1
    theorem = pie.rr_alpha if g is None else pie.hashing_alpha
    for route, alpha in zip(routes, (None, pie.alpha, theorem, pie.ldp_alpha), strict=True):
        if route.protocol is None:
            assert (route.epsilon, route.theta, route.standard_error()) == (None, None, math.inf)
            assert "out of reach" in str(route)
            continue
        assert route.epsilon is not None
        assert route.protocol.randomizer.local_epsilon <= route.epsilon * (1 + 1e-15)
        shown = pie.bayes_error(route.protocol) if alpha is None else pie.fano_error(alpha(route.protocol).upper, n)
        assert shown.lower >= error * (1 - 1e-12)
        assert pie.bayes_error(route.protocol).lower >= error * (1 - 1e-12)
        predicted = predicted_standard_error(route.protocol, frequency=[0.0, 0.25])
        assert [route.standard_error(), route.standard_error(0.25)] == pytest.approx(predicted.tolist())
        assert route.theta is not None


def test_few_values_need_no_noise() -> None:
    routes = pie.calibrate(survey(hs.RandomizedResponse(k=5, epsilon=1.0), 10**8), bayes_error=0.8)
    assert [route.epsilon for route in routes] == [math.inf] * 4
    assert "no noise needed" in str(routes[0])
    assert routes[0].theta == 1.0
    # Fano's inequality alone cannot promise so much.
    sure = pie.calibrate(survey(hs.RandomizedResponse(k=5, epsilon=1.0), 10**8), bayes_error=0.999)
    assert [route.epsilon for route in sure] == [math.inf, None, None, None]


def test_targets_that_nothing_meets() -> None:
    with pytest.raises(InvalidInputError, match="`bayes_error` must be below 1 - 1/n"):
        pie.calibrate(survey(hs.RandomizedResponse(k=50, epsilon=1.0), 10), bayes_error=0.95)
    with pytest.raises(InvalidInputError, match=r"`frequency` must be in \[0, 1\]"):
        pie.calibrate(survey(hs.RandomizedResponse(k=50, epsilon=1.0), 10), bayes_error=0.5)[0].standard_error(2.0)
