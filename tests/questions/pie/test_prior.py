from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.model.prior import Prior
from hushuffle.questions import pie
from oracles.pie_hashing import best_success_with_prior


def survey(k: int, n: int, epsilon: float = 1.0) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 3), (3, 2), (4, 3), (5, 3), (3, 5)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, math.inf])
def test_error_for_any_prior_is_the_least_over_every_assignment(n: int, k: int, epsilon: float) -> None:
    rng = np.random.default_rng(10 * n + k)
    law = hs.RandomizedResponse(k=k, epsilon=epsilon).law()
    channel = [[law.truth if x == y else law.lie for y in range(k)] for x in range(k)]
    for concentration in (0.2, 1.0, 30.0):
        drawn = [Fraction(float(p)) for p in rng.dirichlet(np.full(n, concentration))]
        prior = [p / sum(drawn) for p in drawn]
        bound = pie.bayes_error(survey(k, n, epsilon), prior=[float(p) for p in prior])
        assert bound.kind == "exact"
        assert bound.lower == pytest.approx(float(1 - best_success_with_prior(channel, prior)), abs=1e-14)


@pytest.mark.parametrize("largest", [0.2, 0.21, 0.25, 0.4, 0.5, 0.7, 1.0])
def test_the_worst_prior_below_a_largest_entry(largest: float) -> None:
    n, k = 5, 3
    rng = np.random.default_rng(int(100 * largest))
    worst = pie.bayes_error(survey(k, n), largest_prior=largest)
    assert worst.kind == "exact"
    for _ in range(200):
        prior = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0, 10.0])))
        if prior.max() <= largest:
            assert pie.bayes_error(survey(k, n), prior=prior).lower >= worst.lower - 1e-12
    people = min(math.floor(1 / largest + 1e-9), n)
    vertex = [largest] * people + [0.0] * (n - people)
    if people < n:
        vertex[people] = 1 - people * largest
    assert pie.bayes_error(survey(k, n), prior=vertex).lower == pytest.approx(worst.lower, abs=1e-12)


def test_uniform_is_what_one_over_n_says() -> None:
    protocol = survey(7, 49)
    exact = pie.bayes_error(protocol).lower
    assert pie.bayes_error(protocol, largest_prior=1 / 49).lower == pytest.approx(exact, abs=1e-15)
    assert pie.bayes_error(protocol, prior=np.full(49, 1 / 49)).lower == pytest.approx(exact, abs=1e-15)


def test_fano_is_weaker_for_every_prior() -> None:
    protocol = survey(4, 1000, 2.0)
    bits = pie.alpha(protocol).upper
    for largest in (0.001, 0.01, 0.3):
        fano = pie.fano_error(bits, 1000, largest_prior=largest).lower
        assert fano <= pie.bayes_error(protocol, largest_prior=largest).lower


def test_blocks() -> None:
    blocks = Prior.of(4, prior=[0.25, 0.5, 0.25, 0.0])
    assert blocks.blocks == ((Fraction(1, 2), 1), (Fraction(1, 4), 2), (Fraction(0), 1))
    assert blocks.likeliest(2) == (2, Fraction(3, 4))
    assert blocks.likeliest(9) == (3, Fraction(1))
    assert blocks.likeliest(3, above=Fraction(1, 4)) == (1, Fraction(1, 2))
    assert Prior.of(3, largest_prior=1 / 3).likeliest(3)[0] == 3
    assert Prior.of(10**12, largest_prior=1e-6).largest == Fraction(1e-6)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"prior": [0.5, 0.5], "largest_prior": 0.5}, "`largest_prior` must be left out where prior is given"),
        ({"prior": [0.5, 0.25, 0.25]}, r"`prior` must be of shape \(2,\), got prior=<shape \(3,\)>"),
        ({"prior": [0.5, 0.6]}, "`prior` must be probabilities that sum to 1, got prior=<a sum of 1.1>"),
        ({"prior": [-0.5, 1.5]}, "`prior` must be probabilities that sum to 1"),
        ({"prior": [math.nan, 1.0]}, "`prior` must be probabilities that sum to 1"),
        ({"largest_prior": 0.4}, "`largest_prior` must be at least 1/n = 0.5"),
        ({"largest_prior": 1.4}, r"`largest_prior` must be in \[0, 1\]"),
    ],
)
def test_bad_input(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        pie.bayes_error(survey(3, 2), **keywords)


def test_every_small_prior_on_a_grid() -> None:
    n, k = 3, 2
    law = hs.RandomizedResponse(k=k, epsilon=0.7).law()
    channel = [[law.truth if x == y else law.lie for y in range(k)] for x in range(k)]
    for weights in itertools.product(range(9), repeat=n):
        if sum(weights) == 8:
            prior = [Fraction(weight, 8) for weight in weights]
            bound = pie.bayes_error(survey(k, n, 0.7), prior=[float(p) for p in prior])
            assert bound.lower == pytest.approx(float(1 - best_success_with_prior(channel, prior)), abs=1e-15)
