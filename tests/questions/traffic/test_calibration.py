"""The cheapest configuration against trying everything."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.plans import sources_needed
from hushuffle.questions import traffic
from hushuffle.questions.traffic.calibration import _Task, cheapest


def every_price(targets: int, wanted: int, epsilon: float, delta: float, batch: int, convention: Any) -> dict[int, int]:
    """Return the fewest messages with scramblers for every number of sources, dummies tried one by one."""
    found, uniform = {}, convention == "uniform"
    for sources in range(wanted, wanted * targets):
        share = 1 - wanted / sources
        sigma = share * targets / (targets - 1) if uniform else share
        scramblers = -(-sources // batch)
        for d in range(60):
            figure = traffic.scrambler_epsilon(
                targets, sources // scramblers, sigma, d, delta=delta, convention=convention
            )
            if figure.upper <= epsilon:
                found[sources] = 2 * sources + scramblers * d
                break
    return found


@pytest.mark.parametrize(
    ("batch", "epsilon", "convention"),
    [(3, 2.0, "uniform"), pytest.param(4, 1.2, "uniform", marks=pytest.mark.slow), (6, 1.2, "exclusive")],
)
def test_nothing_is_cheaper_by_two_percent(batch: int, epsilon: float, convention: Any) -> None:
    targets, wanted, delta = 6, 6, 0.05
    prices = every_price(targets, wanted, epsilon, delta, batch, convention)
    for most in (wanted, wanted + 2, None):
        found = cheapest(
            targets=targets,
            contributions=wanted,
            epsilon=epsilon,
            delta=delta,
            channels_at_most=batch + targets,
            sources_at_most=most,
            convention=convention,
        )
        rivals = [price for sources, price in prices.items() if most is None or sources <= most]
        assert found.costs.messages <= min(rivals) / 0.98
        assert found.epsilon.upper <= epsilon
        assert found.costs.busiest <= batch + targets
        assert found.cluster.sources <= (math.inf if most is None else most)
        assert sources_needed(wanted, found.sampling) <= found.cluster.sources
        if found.batch is not None:
            assert found.costs.messages >= min(rivals)


def test_it_is_deterministic_and_its_figure_is_the_cluster_s() -> None:
    limits = {"targets": 20, "contributions": 100, "epsilon": 0.8, "delta": 1e-3, "channels_at_most": 70}
    found = cheapest(**limits, sources_at_most=120)  # type: ignore[arg-type]
    assert found == cheapest(**limits, sources_at_most=120)  # type: ignore[arg-type]
    assert found.dummies is not None
    assert found.cluster.min_batch is not None
    again = traffic.scrambler_epsilon(20, found.cluster.min_batch, found.sigma, found.dummies, delta=1e-3)
    assert again == found.epsilon
    assert "scramblers of up to 50 sources" in str(found)
    fewer = traffic.scrambler_epsilon(20, found.cluster.min_batch, found.sigma, found.dummies - 1, delta=1e-3)
    assert fewer.upper > 0.8 * (1 - 1e-5)


def test_looser_targets_and_limits_never_cost_more_than_the_tolerance() -> None:
    size: dict[str, Any] = {"targets": 10, "contributions": 60, "delta": 1e-2}
    prices = [cheapest(**size, epsilon=epsilon, sources_at_most=80).costs.messages for epsilon in (0.5, 0.8, 1.2, 2.0)]
    assert all(later <= earlier / 0.98 for earlier, later in pairwise(prices))
    batches = [
        cheapest(**size, epsilon=0.8, channels_at_most=10 + n, sources_at_most=80).costs.messages for n in (5, 20, 60)
    ]
    assert all(later <= earlier / 0.98 for earlier, later in pairwise(batches))


@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_pure_figure_needs_no_scramblers(epsilon: float, convention: Any) -> None:
    found = cheapest(targets=8, contributions=100, epsilon=epsilon, delta=0.0, convention=convention)
    assert found.batch is None
    assert found.dummies is None
    flood = found.sampling.flood
    assert found.epsilon.upper == traffic.sampling_epsilon(8, found.sigma, flood, convention=convention).upper
    assert epsilon * (1 - 1e-5) <= found.epsilon.upper <= epsilon
    others = []
    for further in range(7):
        sigma = next(
            s / 1000
            for s in range(1, 1000)
            if traffic.sampling_epsilon(8, s / 1000, further, convention=convention).upper <= epsilon
        )
        sampling = TargetSampling(targets=8, sigma=sigma, flood=further, convention=convention)
        others.append(sources_needed(100, sampling) * (further + 1))
    assert found.costs.messages <= min([*others, 800])


def test_a_broadcast_is_the_last_resort() -> None:
    found = cheapest(targets=8, contributions=100, epsilon=1e-3, delta=0.0, sources_at_most=100)
    assert (found.sampling.flood, found.costs.messages, found.epsilon.upper) == (7, 800, 0.0)
    assert "no scramblers, 7 further messages each: 800 messages, at most 8 channels" in str(found)


def test_a_limit_on_messages_is_decided_exactly() -> None:
    size: dict[str, Any] = {"targets": 10, "contributions": 60, "epsilon": 0.8, "delta": 1e-2, "sources_at_most": 70}
    free = cheapest(**size)
    assert cheapest(**size, messages_at_most=free.costs.messages) == free
    with pytest.raises(InvalidInputError) as caught:
        cheapest(**size, messages_at_most=math.floor(free.costs.messages * 0.97))
    text = str(caught.value)
    assert "epsilon=0.8" in text
    assert f"Without messages_at_most = {math.floor(free.costs.messages * 0.97)}: the cheapest is {free}." in text
    assert "Without sources_at_most = 70: the cheapest is" in text


def test_out_of_reach_and_what_would_help() -> None:
    with pytest.raises(
        InvalidInputError, match=r"Without channels_at_most = 15: the cheapest is 5\d sources, .*1 scram"
    ):
        cheapest(targets=20, contributions=50, epsilon=0.8, delta=1e-2, channels_at_most=15, sources_at_most=55)
    with pytest.raises(InvalidInputError, match=r"Without messages_at_most = 60: nothing meets the others either."):
        cheapest(
            targets=20, contributions=50, epsilon=0.8, delta=0, channels_at_most=15, sources_at_most=55,
            messages_at_most=60,
        )  # fmt: skip


@pytest.mark.parametrize(("delta", "flood"), [(0.01, 0), (0.05, 3), (0.5, 6)])
def test_delta_helps_sampling_alone(delta: float, flood: int) -> None:
    """The least sampling is what the certified figure of so much flooding asks for."""
    task = _Task(
        targets=8, wanted=100, epsilon=0.7, delta=delta, messages=math.inf, channels=8, sources=math.inf,
        convention="exclusive",
    )  # fmt: skip
    cluster = list(task._without_scramblers())[flood]
    assert cluster.sampling is not None
    found = hs.dp.epsilon(cluster.protocol, delta=delta)
    assert found.upper <= 0.7
    assert delta == 0.5 or found.upper >= 0.7 * (1 - 1e-4)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"targets": 1}, "targets"),
        ({"contributions": 0}, "contributions"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"sources_at_most": 9}, "sources_at_most"),
        ({"channels_at_most": 0}, "channels_at_most"),
        ({"messages_at_most": 0}, "messages_at_most"),
        ({"convention": "other"}, "convention"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], word: str) -> None:
    good: dict[str, Any] = {"targets": 5, "contributions": 10, "epsilon": 1.0, "delta": 1e-3}
    with pytest.raises(InvalidInputError, match=word):
        cheapest(**{**good, **change})
