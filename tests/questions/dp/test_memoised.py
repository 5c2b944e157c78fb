from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from oracles.memoised_enumeration import Rows, divergence, law

AS_IT_IS = [[1.0, 0.0], [0.0, 1.0]]


def binary(epsilon: float) -> list[list[float]]:
    truth = 1 / (1 + math.exp(-epsilon))
    return [[truth, 1 - truth], [1 - truth, truth]]


def survey(n: int, epsilon: float) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def worst(n: int, targets: Any, permanent: Rows, coin: Rows, times: int, growth: float) -> float:
    """Return the largest divergence over the values of the others, which stay, and the given pairs of histories."""
    largest = 0.0
    for others in itertools.combinations_with_replacement(range(2), n - 1):
        stay = [[value] * times for value in others]
        for first, second in targets:
            one, other = law([first, *stay], permanent, coin), law([second, *stay], permanent, coin)
            largest = max(largest, divergence(one, other, growth), divergence(other, one, growth))
    return largest


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("coin", [None, 0.4, 1.5])
@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_enumeration_of_two_waves_lies_between_the_ends(n: int, coin: float | None, delta: float) -> None:
    rows = AS_IT_IS if coin is None else binary(coin)
    given = None if coin is None else hs.RandomizedResponse(k=2, epsilon=coin)
    bound = hs.dp.waves(survey(n, 1.2), waves=2, delta=delta, instantaneous=given)
    pairs = [([0, 0], [1, 1])]
    assert worst(n, pairs, binary(1.2), rows, 2, math.exp(bound.upper)) <= delta * (1 + 1e-6)
    assert worst(n, pairs, binary(1.2), rows, 2, math.exp(bound.lower * 0.999)) >= delta * (1 - 1e-6)


@pytest.mark.parametrize("coin", [None, 0.4])
def test_enumeration_of_a_change_lies_below_the_upper_end(coin: float | None) -> None:
    rows = AS_IT_IS if coin is None else binary(coin)
    given = None if coin is None else hs.RandomizedResponse(k=2, epsilon=coin)
    pairs = [([0, 1], [1, 0])]
    for delta in (0.0, 1e-3, 0.05):
        bound = hs.dp.waves(survey(3, 1.2), waves=2, delta=delta, instantaneous=given, changes=1)
        assert worst(3, pairs, binary(1.2), rows, 2, math.exp(bound.upper)) <= delta + 1e-9
    # No crowd hides a change: nearly all of two local epsilons is attained, and far more than without one.
    still = hs.dp.waves(survey(3, 1.2), waves=2, delta=0.05)
    assert worst(3, pairs, binary(1.2), AS_IT_IS, 2, math.exp(still.upper)) > 0.05


def test_when_a_value_changes_is_not_hidden() -> None:
    permanent = binary(0.2)
    first, second = law([[0, 0, 0], [0, 0, 0]], permanent, AS_IT_IS), law([[0, 1, 0], [0, 0, 0]], permanent, AS_IT_IS)
    assert divergence(second, first, math.exp(3 * 0.2)) > 0.2


def test_waves_without_a_change_say_what_one_says() -> None:
    once = hs.dp.epsilon(survey(1000, 2.0), delta=1e-6)
    assert hs.dp.waves(survey(1000, 2.0), waves=1, delta=1e-6, changes=5) == once
    assert hs.dp.waves(survey(1000, 2.0), waves=10**6, delta=1e-6) == once
    assert hs.dp.waves(survey(1000, 2.0), waves=10**6, delta=0) == hs.dp.epsilon(survey(1000, 2.0), delta=0)


def test_with_a_second_coin_the_smaller_of_both_bounds_counts_and_every_wave_adds_up_to_the_first() -> None:
    coin = hs.RandomizedResponse(k=2, epsilon=0.5)
    alone = survey(100, 0.5)
    few = hs.dp.waves(survey(100, 2.0), waves=2, delta=1e-6, instantaneous=coin, changes=1)
    assert few.upper == hs.dp.compose([(alone, 2)], delta=1e-6).upper
    many = hs.dp.waves(survey(100, 2.0), waves=100, delta=1e-6, instantaneous=coin)
    assert many.upper == hs.dp.epsilon(survey(100, 2.0), delta=1e-6).upper
    assert few.lower == many.lower < few.upper
    one = np.array(binary(2.0)) @ np.array(binary(0.5))
    merged = hs.Protocol(
        randomizer=hs.MatrixRandomizer(channel=hs.Channel(matrix=one)), shuffler=hs.UniformShuffle(), n=100
    )
    assert few.lower == pytest.approx(hs.dp.epsilon(merged, delta=1e-6).lower, rel=1e-6)


def test_changes_cost_the_local_epsilon_each() -> None:
    bound = hs.dp.waves(survey(1000, 2.0), waves=52, delta=1e-6, changes=2)
    assert bound.upper == pytest.approx(6.0)
    assert bound.lower == hs.dp.epsilon(survey(1000, 2.0), delta=1e-6).lower


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"protocol": 3}, "`protocol` must be a Protocol"),
        ({"waves": 0}, "`waves` must be an integer >= 1"),
        ({"delta": 1.0}, "`delta` must be in"),
        ({"changes": -1}, "`changes` must be an integer >= 0"),
        ({"instantaneous": 0.5}, "`instantaneous` must be a Mechanism"),
        ({"instantaneous": hs.RandomizedResponse(k=3, epsilon=1.0)}, "`instantaneous` must be for 2 permanent reports"),
    ],
)
def test_what_cannot_be_meant_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.dp.waves(**{"protocol": survey(10, 1.0), "waves": 3, "delta": 1e-6, **changed})


def test_dummies_are_refused() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.Scrambler(dummies=3), n=10)
    with pytest.raises(UnsupportedProtocolError, match="without dummies"):
        hs.dp.waves(protocol, waves=3, delta=1e-6)
