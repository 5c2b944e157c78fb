"""dp on randomizers that are not randomized response: a user's matrix, bit flips, local hashing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Shuffler


def collection(randomizer: Mechanism, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)


def matrix(rows: list[list[float]]) -> hs.MatrixRandomizer:
    return hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))


@pytest.mark.parametrize("n", [50, 2000, 10**6])
def test_randomized_response_as_a_matrix_is_randomized_response(n: int) -> None:
    own = hs.RandomizedResponse(k=4, epsilon=1.5)
    bound = hs.dp.epsilon(collection(matrix(own.channel().matrix.tolist()), n), delta=1e-6)
    reference = hs.dp.epsilon(collection(own, n), delta=1e-6)
    assert bound.upper >= reference.lower * (1 - 1e-6)
    assert bound.upper <= reference.upper * (1 + 5e-3)
    assert bound.lower <= reference.upper * (1 + 1e-6)


def test_bit_flipping_of_one_bit_is_binary_randomized_response() -> None:
    flips = collection(hs.BitFlipping(width=1, p=0.2), 1000)
    exact = hs.dp.epsilon(collection(hs.RandomizedResponse.from_truth_probability(k=2, p=0.8), 1000), delta=1e-6)
    bound = hs.dp.epsilon(flips, delta=1e-6)
    assert bound.lower <= exact.upper * (1 + 1e-6)
    assert bound.upper >= exact.lower


def test_local_hashing_hides_better_with_more_people() -> None:
    figures = [
        hs.dp.epsilon(collection(hs.LocalHashing(k=1000, g=4, epsilon=1.0), n), delta=1e-6) for n in (10**3, 10**5)
    ]
    assert figures[0].kind == "bracket"
    assert figures[1].upper < figures[0].lower


def test_the_local_model_of_any_randomizer() -> None:
    flips = collection(hs.BitFlipping(width=2, p=0.25), 10, hs.NoShuffle())
    assert hs.dp.epsilon(flips, delta=0.0).upper == pytest.approx(2 * math.log(3), rel=1e-9)
    bound = hs.dp.epsilon(flips, delta=0.1)
    assert bound.width <= 1e-6 * bound.upper
    assert hs.dp.delta(flips, epsilon=bound.upper).upper == pytest.approx(0.1, rel=1e-6)


def test_a_value_that_gives_itself_away_now_and_then() -> None:
    """With probability 1/1000 a report can only come from the value 0: below that delta nothing helps."""
    gives_away = matrix([[0.001, 0.5, 0.499], [0.0, 0.4, 0.6], [0.0, 0.6, 0.4]])
    assert hs.dp.epsilon(collection(gives_away, 1000), delta=1e-4).upper == math.inf
    enough = hs.dp.epsilon(collection(gives_away, 1000), delta=2e-3)
    assert 0 < enough.upper < 2
    assert hs.dp.local_epsilon(collection(gives_away, 10)).upper == math.inf


def test_a_collection_with_a_users_own_matrix_runs() -> None:
    own = matrix([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    values = np.repeat([0, 1], 5000)
    transcript = collection(own, 10_000).collect(values, rng=hs.reproducible(4))
    shares = np.bincount(transcript.reports, minlength=3) / 10_000
    # Standard errors below 0.005: six of them is a false alarm below 1e-8.
    assert np.abs(shares - [0.4, 0.4, 0.2]).max() < 0.03
