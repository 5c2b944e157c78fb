from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.questions import pie
from oracles.pie_information import best_success, capacity, mutual_information, randomized_response, sibson, through
from plain_protocols import Opaque


def protocol(*, k: int, epsilon: float, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def test_the_location_data_of_the_paper() -> None:
    places = protocol(k=10_500_393, epsilon=1.0, n=1_370_637)
    assert pie.alpha(places).upper == pytest.approx(1.37e-7, rel=5e-3)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 6.0])
@pytest.mark.parametrize(("n", "k"), [(2, 5), (3, 3), (9, 4)])
def test_alpha_is_the_capacity_of_the_rows_people_can_hold(n: int, k: int, epsilon: float) -> None:
    slow = capacity(randomized_response(k, epsilon)[: min(n, k)])
    bound = pie.alpha(protocol(k=k, epsilon=epsilon, n=n))
    assert bound.lower == bound.upper == pytest.approx(slow, abs=1e-9)
    assert (bound.kind, bound.unit) == ("exact", "bits")


def test_no_population_exceeds_alpha_and_the_uniform_one_attains_it() -> None:
    rng = np.random.default_rng(4)
    n, k, epsilon = 3, 5, 1.5
    channel = randomized_response(k, epsilon)
    alpha = pie.alpha(protocol(k=k, epsilon=epsilon, n=n)).upper
    for _ in range(300):
        joint = rng.dirichlet(np.full(n * k, rng.choice([0.02, 0.2, 1.0]))).reshape(n, k)
        assert mutual_information(through(joint.tolist(), channel)) <= alpha + 1e-12
    distinct = [[1 / n if x == u else 0.0 for x in range(k)] for u in range(n)]
    assert mutual_information(through(distinct, channel)) == pytest.approx(alpha, rel=1e-12)


@pytest.mark.parametrize("order", [1.0 + 1e-6, 1.5, 2.0, 40.0, math.inf])
@pytest.mark.parametrize("n", [1, 3, 6])
def test_no_population_exceeds_alpha_of_any_order(n: int, order: float) -> None:
    rng, k, epsilon = np.random.default_rng(5), 4, 1.5
    survey = protocol(k=k, epsilon=epsilon, n=n)
    channel, bound = randomized_response(k, epsilon), pie.alpha(survey, order=order)
    assert bound.kind == "exact"
    for _ in range(100):
        joint = rng.dirichlet(np.full(n * k, rng.choice([0.02, 0.2, 1.0]))).reshape(n, k)
        assert sibson(through(joint.tolist(), channel), order) <= bound.upper + 1e-8
        hashed = hs.LocalHashing(k=k, g=4, epsilon=epsilon)
        assert bound.upper <= pie.alpha(replace(survey, randomizer=hashed), order=order).upper
    j = min(n, k)
    distinct = [[1 / j if x == u else 0.0 for x in range(k)] for u in range(j)]
    assert sibson(through(distinct, channel), order) == pytest.approx(bound.upper, rel=1e-8, abs=1e-8)
    assert pie.alpha(survey).upper <= bound.upper <= pie.alpha(survey, order=math.inf).upper
    # A uniform sender is named no more often than the information of this order allows.
    named = 1 - pie.bayes_error(survey).upper
    assert named <= (2**bound.upper / n) ** (1 - 1 / order) + 1e-9


@pytest.mark.parametrize("order", [1.5, 3.0, math.inf])
def test_other_channels_have_a_bracket_of_every_order(order: float) -> None:
    randomizer = hs.SubsetSelection(k=5, w=2, epsilon=1.0)
    rows, n = randomizer.channel().matrix, 7
    bound = pie.alpha(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n), order=order)
    uniform = sibson((rows / len(rows)).tolist(), order)
    assert bound.kind == "bracket"
    assert bound.lower - 1e-12 <= uniform <= bound.upper + 1e-12


def test_an_order_is_at_least_one() -> None:
    for order in (0.5, math.nan):
        with pytest.raises(InvalidInputError, match="`order` must be at least 1"):
            pie.alpha(protocol(k=2, epsilon=1.0, n=2), order=order)


def test_no_noise() -> None:
    assert pie.alpha(protocol(k=4, epsilon=math.inf, n=100)).upper == 2.0
    assert pie.alpha(protocol(k=100, epsilon=math.inf, n=8)).upper == 3.0
    assert pie.bayes_error(protocol(k=100, epsilon=math.inf, n=8)).upper == 0.0


def test_five_income_classes_without_noise() -> None:
    incomes = protocol(k=5, epsilon=math.inf, n=10**8)
    assert pie.bayes_error(incomes).lower == 1 - 5e-8
    assert pie.fano_error(pie.alpha(incomes).upper, 10**8).lower == pytest.approx(0.875, abs=5e-4)  # printed 0.88


def test_one_person_is_known_beforehand() -> None:
    alone = protocol(k=3, epsilon=1.0, n=1)
    assert pie.alpha(alone).upper == 0.0
    assert pie.bayes_error(alone).upper == 0.0


@pytest.mark.parametrize(("n", "k"), [(2, 2), (2, 4), (3, 2), (4, 3), (3, 5)])
def test_bayes_error_is_the_least_over_every_assignment(n: int, k: int) -> None:
    survey = protocol(k=k, epsilon=1.25, n=n)
    law = hs.RandomizedResponse(k=k, epsilon=1.25).law()
    channel = [[law.truth if x == y else law.lie for y in range(k)] for x in range(k)]
    bound = pie.bayes_error(survey)
    assert bound.lower == bound.upper == float(1 - best_success(channel, n))
    assert (bound.kind, bound.unit) == ("exact", "probability")


def test_random_populations_are_never_easier() -> None:
    rng = np.random.default_rng(5)
    n, k, epsilon = 4, 3, 1.0
    channel = np.array(randomized_response(k, epsilon))
    least = pie.bayes_error(protocol(k=k, epsilon=epsilon, n=n)).lower
    for _ in range(200):
        rows = rng.dirichlet(np.full(k, 0.3), size=n)
        assert 1 - (rows @ channel).max(axis=0).sum() / n >= least - 1e-12


def test_figures_are_monotone() -> None:
    alphas = [pie.alpha(protocol(k=6, epsilon=epsilon, n=50)).upper for epsilon in (0.1, 0.5, 1, 3, 9, math.inf)]
    errors = [pie.bayes_error(protocol(k=6, epsilon=epsilon, n=50)).lower for epsilon in (0.1, 0.5, 1, 3, 9, math.inf)]
    assert alphas == sorted(alphas)
    assert errors == sorted(errors, reverse=True)
    people = [pie.alpha(protocol(k=6, epsilon=1.0, n=n)).upper for n in range(1, 9)]
    assert people == sorted(people)
    assert people[5] == people[7]  # only as many values matter as there are


def test_the_shuffler_does_not_matter() -> None:
    randomizer = hs.RandomizedResponse(k=3, epsilon=1.0)
    shuffled = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=5)
    local = hs.Protocol(randomizer=randomizer, shuffler=hs.NoShuffle(), n=5)
    assert pie.alpha(shuffled) == pie.alpha(local)
    assert pie.bayes_error(shuffled) == pie.bayes_error(local)


def test_error_is_the_nearest_float_of_a_rational() -> None:
    survey = protocol(k=3, epsilon=1.0, n=7)
    law = hs.RandomizedResponse(k=3, epsilon=1.0).law()
    assert pie.bayes_error(survey).lower == float(1 - 3 * law.truth * Fraction(1, 7))


def test_a_randomizer_without_a_law_is_refused() -> None:
    survey = hs.Protocol(randomizer=Opaque(), shuffler=hs.NoShuffle(), n=3)
    message = r"A matrix would have"
    for question in (pie.alpha, pie.bayes_error, pie.contraction):
        with pytest.raises(UnsupportedProtocolError, match=message):
            question(survey)
    with pytest.raises(UnsupportedProtocolError, match=r"Theorem 4\.2 needs randomized response, .*Opaque"):
        pie.rr_alpha(survey)
    with pytest.raises(UnsupportedProtocolError, match="needs a public hash, and Opaque has none"):
        pie.hashing_alpha(survey)
    with pytest.raises(UnsupportedProtocolError, match="no bound for several reports of Opaque"):
        pie.published_alpha(survey, reports=2)
    with pytest.raises(UnsupportedProtocolError, match="Opaque has no `epsilon`"):
        pie.calibrate(survey, bayes_error=0.5)
    assert pie.published_alpha(survey) == pie.ldp_alpha(survey)
    assert pie.ldp_alpha(survey).upper == pytest.approx(0.25 * math.log2(math.e))  # any local randomizer
