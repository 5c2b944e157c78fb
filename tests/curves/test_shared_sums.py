"""The curve of sums by shares: its ends against the noisy sum written anew, rounds, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws.shared_sums import SharedSums
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError


def made(**changed: float) -> hs.SplitAndMix:
    return hs.SplitAndMix(**({"low": 0, "high": 7, "n": 300, "epsilon": 1.5, "delta": 1e-7} | changed))  # type: ignore[arg-type]


def noisy_sum(protocol: hs.SplitAndMix, epsilon: float) -> float:
    """HS of discrete Laplace noise moved by `top`, summed place by place."""
    places = np.arange(-4000, 4000)
    ratio = protocol.noise.chance
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(places)
    moved = (1 - ratio) / (1 + ratio) * ratio ** np.abs(places - protocol.top)
    return float(np.maximum(moved - math.exp(epsilon) * law, 0).sum())


@pytest.mark.parametrize("top", [1, 2, 7])
@pytest.mark.parametrize("level", [0.3, 1.5, 6.0])
def test_both_ends_are_the_noisy_sum_and_little_more(top: int, level: float) -> None:
    protocol = made(high=top, epsilon=level)
    for epsilon in np.linspace(0, 0.999 * level, 9):
        exact, found = noisy_sum(protocol, epsilon), hs.dp.delta(protocol, epsilon=epsilon)
        assert found.lower <= exact * (1 + 1e-9) <= found.upper * (1 + 2e-9)
        assert found.upper <= exact + 2.1 * protocol.failure
        assert found.lower >= exact * (1 - 1e-9) - 2**-39 * (1 + math.exp(level))
    at = hs.dp.delta(protocol, epsilon=level)
    assert (at.kind, at.upper) == ("upper", protocol.failure)
    assert protocol.failure <= 1e-7


def test_epsilon_is_the_one_asked_for_and_none_below_what_the_messages_say() -> None:
    protocol = made()
    asked = hs.dp.epsilon(protocol, delta=1e-7)
    assert 1.49999 < asked.lower <= asked.upper <= 1.5
    wide = hs.dp.epsilon(protocol, delta=0.1)
    assert noisy_sum(protocol, wide.lower) >= 0.1 * (1 - 1e-5)
    assert noisy_sum(protocol, wide.upper) <= 0.1
    assert wide.width < 1e-4
    assert hs.dp.epsilon(protocol, delta=0.9).upper == 0
    for delta in (0.0, protocol.failure / 2):
        none = hs.dp.epsilon(protocol, delta=delta)
        assert (none.kind, none.upper) == ("lower", math.inf)
        assert 1.49999 < none.lower <= 1.5
    assert hs.dp.local_epsilon(protocol).lower == math.inf


def test_several_coordinates_share_epsilon() -> None:
    protocol = made(coordinates=4)
    assert protocol.distance == 28
    found = hs.dp.epsilon(protocol, delta=1e-6)
    assert 1.49 < found.lower < found.upper <= 1.5
    law = SharedSums(protocol=protocol)
    low, high = law.lower(0.5), law.upper(0.5)
    # The event that no noise is negative: its chance in both datasets.
    ratio = protocol.noise.chance
    chance = (1 / (1 + ratio)) ** 4
    assert chance * (1 - math.exp(0.5) * ratio**28) * (1 - 1e-6) <= low[0]
    assert high <= (math.exp(1.5) - math.exp(0.5)) / (1 + math.exp(1.5)) + 1e-6
    assert hs.dp.epsilon(protocol, delta=0.9).lower == 0


@pytest.mark.parametrize(("coordinates", "reach"), [(2, 260), (3, 60)])
@pytest.mark.parametrize("top", [1, 3])
def test_noisy_sums_of_several_coordinates_are_enumerated(coordinates: int, reach: int, top: int) -> None:
    level = 0.9 if coordinates == 2 else 4.5
    protocol = made(coordinates=coordinates, high=top, epsilon=level)
    ratio, places = protocol.noise.chance, np.arange(-reach, reach)
    law, moved = np.ones(()), np.ones(())
    for _ in range(coordinates):
        one = (1 - ratio) / (1 + ratio) * ratio ** np.abs(places)
        other = (1 - ratio) / (1 + ratio) * ratio ** np.abs(places - top)
        law, moved = np.multiply.outer(law, one), np.multiply.outer(moved, other)
    assert law.sum() > 1 - 1e-9
    curve = SharedSums(protocol=protocol)
    for epsilon in np.linspace(0, 0.97 * level, 7):
        exact = float(np.maximum(moved - math.exp(epsilon) * law, 0).sum())
        assert curve.lower(epsilon)[0] <= exact + 1e-9 <= curve.upper(epsilon) + 1e-8
        assert curve.upper(epsilon) <= exact * 1.02 + 2.1 * protocol.failure
        assert curve.lower(epsilon)[0] >= exact * 0.97 - 1e-9


@pytest.mark.parametrize("l1", [2, 3, 4])
def test_under_a_cap_both_ends_hold_for_the_worst_of_all_pairs(l1: int) -> None:
    protocol = hs.SplitAndMix(low=0, high=3, n=300, epsilon=1.0, delta=1e-7, coordinates=2, l1=l1)
    ratio, places = protocol.noise.chance, np.arange(-150, 150)

    def law(codes: tuple[int, int]) -> np.ndarray:
        return np.multiply.outer(*((1 - ratio) / (1 + ratio) * ratio ** np.abs(places - code) for code in codes))

    allowed = [(a, b) for a in range(4) for b in range(4) if a + b <= l1]
    laws, curve = [law(codes) for codes in allowed], SharedSums(protocol=protocol)
    for epsilon in (0.0, 0.3, 0.8):
        worst = max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p in laws for q in laws)
        assert curve.lower(epsilon)[0] <= worst + 1e-9 <= curve.upper(epsilon) + 2e-9
    found = hs.dp.epsilon(protocol, delta=1e-7)
    assert found.upper <= 1.0
    assert found.lower > 0.99
    assert hs.dp.compose([(protocol, 3)], delta=3e-7).upper <= 3.001


def test_many_coordinates_and_rounds_leave_less_than_the_noise_of_each_says() -> None:
    protocol = made(coordinates=200, epsilon=1.0, delta=1e-9, high=9, n=2_000)
    found = hs.dp.epsilon(protocol, delta=1e-9)
    assert found.upper < 0.45
    assert found.lower > 0.3
    rounds = hs.dp.compose([(protocol, 6)], delta=6e-9)
    assert rounds.lower > 0.85 * rounds.upper
    assert rounds.upper < 1.2
    # The loss of a coordinate has mean and variance of its noise moved by `top`: the normal limit is near.
    places = np.arange(-3000, 3000)
    ratio = protocol.noise.chance
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(places)
    loss = (np.abs(places + 9) - np.abs(places)) * -math.log(ratio)
    mean = 200 * float(law @ loss)
    assert mean < found.lower < mean + 7 * math.sqrt(200 * float(law @ loss**2))


def test_rounds_add_up() -> None:
    protocol = made(epsilon=0.1)
    rounds = hs.dp.compose([(protocol, 50)], delta=1e-4)
    assert 2.40 < rounds.lower <= rounds.upper < 2.44
    assert rounds.upper <= rounds.lower * 1.02
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=300)
    assert hs.dp.compose([protocol, survey], delta=1e-5).upper > hs.dp.epsilon(survey, delta=1e-5).upper
    assert hs.dp.compose([(made(coordinates=2, epsilon=0.1), 3)], delta=1e-4).upper <= 0.3 * (1 + 1e-3)
    assert hs.dp.compose([(protocol, 2)], delta=0).upper == math.inf
    assert hs.dp.compose_delta([(protocol, 2)], epsilon=0.2).upper <= 2.1 * protocol.failure


def test_several_numbers_of_a_person_in_one_sum_are_refused() -> None:
    with pytest.raises(UnsupportedProtocolError, match="use `coordinates`"):
        hs.dp.epsilon(made(), delta=1e-6, reports_per_person=2)
    assert hs.dp.epsilon(made(), delta=1e-6, reports_per_person=1).upper <= 1.5
    with pytest.raises(InvalidInputError, match="must be a Protocol"):
        hs.dp.calibrate(made(), parameter="n", epsilon=1.0, delta=1e-6)  # type: ignore[arg-type]


def test_the_datasets_of_the_lower_end_are_the_noisy_sums() -> None:
    (pair,) = SharedSums(protocol=made(high=1000)).datasets(log_tail=-60.0)
    assert pair.p.sum() == pytest.approx(1)
    assert pair.q.sum() == pytest.approx(1)
    protocol = made(high=1000)
    exact = SharedSums(protocol=protocol).lower(0.7)[0]
    assert exact * 0.99 < pair.divergence(0.7) <= exact * (1 + 1e-9)
    (pair,) = SharedSums(protocol=made(coordinates=3, high=1000)).datasets(log_tail=-60.0)
    assert pair.p.sum() == pytest.approx(1)
    assert pair.q.sum() == pytest.approx(1)
    assert pair.p.size == 3 * 128 + 1  # the cells of one are 0 to 128
