from __future__ import annotations

import math

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.estimation import predicted_standard_error
from hushuffle.questions import pie


def published_variance(g: int, theta: float, n: int, p: float) -> float:
    """Proposition 4.7, with e**epsilon - 1 = g theta/(1 - theta)."""
    growth = g * theta / (1 - theta)
    first = (g + growth) ** 2 / (n * growth**2 * (g - 1))
    return first + p * (g * g - 2 * g - growth) / (n * growth * (g - 1))


@pytest.mark.parametrize("theta", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("p", [0.0, 1e-3, 0.5])
def test_variance_is_that_of_the_paper_where_collisions_are_one_in_g(theta: float, p: float) -> None:
    sizes = [2, 4, 16, 256]
    found = pie.variance_by_buckets(theta, k=1000, n=500, buckets=sizes, frequency=p)
    assert found.tolist() == pytest.approx([published_variance(g, theta, 500, p) for g in sizes], rel=1e-9)


@pytest.mark.parametrize("p", [0.0, 1e-4, 0.3])
def test_more_buckets_help_at_a_fixed_theta(p: float) -> None:
    sizes = [2, 8, 64, 1000, 10**4, 10**6, 10**8, 2 * 10**9]
    found = pie.variance_by_buckets(0.5, k=10**5, n=1000, buckets=sizes, frequency=p)
    assert bool(np.all(np.diff(found) < 0))
    assert found[-1] == pytest.approx(p / 1000, abs=1e-11)  # p (1 - theta)/(n theta)
    best = pie.best_hashing_for_theta(0.5, k=10**5, n=1000, frequency=p, largest=10**6)
    assert best.g == 10**6
    assert float(best.law().bucket.theta) == pytest.approx(0.5, abs=1e-15)
    assert float(best.law().bucket.theta) <= 0.5


@pytest.mark.parametrize(("n", "k", "error"), [(1000, 5000, 0.9), (200, 50, 0.6), (10**6, 10**6, 0.99)])
@pytest.mark.parametrize("frequency", [0.0, 1e-3, 0.2])
def test_the_best_hashing_keeps_the_error_and_beats_its_neighbours(
    n: int, k: int, error: float, frequency: float
) -> None:
    best = pie.best_hashing_for_error(error, k=k, n=n, frequency=frequency)

    def survey(hashing: hs.LocalHashing) -> hs.Protocol:
        return hs.Protocol(randomizer=hashing, shuffler=hs.UniformShuffle(), n=n)

    assert pie.bayes_error(survey(best)).lower >= error - 1e-15
    least = float(predicted_standard_error(survey(best), frequency=frequency))
    for g in (2, 17, 256, 4096, 10**6, 10**9):
        other = hs.LocalHashing(k=k, g=g, epsilon=pie.epsilon_for_error(error, n=n, k=k, g=g))
        assert least <= float(predicted_standard_error(survey(other), frequency=frequency)) * (1 + 1e-9)


def test_the_noiseless_hash_of_the_paper_s_experiment() -> None:
    k, n = 10_500_393, 1_370_637
    best = pie.best_hashing_for_error(0.92, k=k, n=n, frequency=1e-3)
    assert (best.g, best.local_epsilon) == (109_650, math.inf)
    survey = hs.Protocol(randomizer=best, shuffler=hs.UniformShuffle(), n=n)
    assert pie.bayes_error(survey).lower >= 0.92
    assert float(predicted_standard_error(survey, frequency=1e-3)) == pytest.approx(2.565e-6, rel=1e-3)
    assert pie.best_hashing_for_error(0.92, k=k, n=n, frequency=0.0).g == 2 * 10**9
    more = hs.LocalHashing(k=k, g=10**8, epsilon=pie.epsilon_for_error(0.92, n=n, k=k, g=10**8))
    survey = hs.Protocol(randomizer=more, shuffler=hs.UniformShuffle(), n=n)
    assert float(predicted_standard_error(survey, frequency=1e-3)) == pytest.approx(9.16e-5, rel=1e-3)


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match="`largest` must be an integer from 2"):
        pie.best_hashing_for_theta(0.5, k=10, n=10, largest=1)
    with pytest.raises(InvalidInputError, match=r"`theta` must be in \(0, 1\]"):
        pie.variance_by_buckets(0.0, k=10, n=10, buckets=[4])
    with pytest.raises(InvalidInputError, match="`g` must be an integer from 2"):
        hs.LocalHashing.from_theta(k=10, g=1, theta=0.5)


def test_small_limits_and_no_noise() -> None:
    assert pie.best_hashing_for_theta(1.0, k=10, n=10, largest=2).epsilon == math.inf
    assert pie.best_hashing_for_error(0.5, k=10, n=100, frequency=0.0, largest=2).g == 2
