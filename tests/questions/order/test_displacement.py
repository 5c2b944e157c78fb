"""How far records move, against enumeration and closed forms."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions.order.displacement import displacement, mean_inversions
from oracles import mallows_enumeration as oracle


@pytest.mark.parametrize("theta", [0.0, 1e-300, 0.2, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_law_is_that_of_enumeration(n: int, theta: float) -> None:
    for distance in ("kendall", "hamming"):
        found = displacement(n=n, theta=theta, distance=distance)
        wanted = oracle.mean_displacement(n, theta, distance)
        assert found.law == pytest.approx(wanted, abs=1e-13)
        assert found.mean.kind == "exact"
        assert found.mean.upper == pytest.approx(sum(d * p for d, p in enumerate(wanted)), abs=1e-12)


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_nobody_moves_at_infinity(distance: Any) -> None:
    for theta in (math.inf, 1e300):
        found = displacement(n=20, theta=theta, distance=distance)
        assert (found.mean.upper, found.quantile(1.0)) == (0.0, 0)


@pytest.mark.parametrize("theta", [0.0, 1e-12, 1e-4, 0.01, 0.9, 50.0, 2000.0])
@pytest.mark.parametrize("n", [1, 2, 40, 700])
def test_mean_inversions_are_the_sum_over_insertions(n: int, theta: float) -> None:
    wanted = oracle.kendall_moments(n, theta)[0]
    assert mean_inversions(n, theta) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("theta", [0.0, 0.004, 0.05, 2.0])
def test_the_mean_lies_between_one_and_two_inversions_per_record(theta: float) -> None:
    n = 400
    mean, least = displacement(n=n, theta=theta).mean.upper, mean_inversions(n, theta) / n
    assert least * (1 - 1e-9) <= mean <= 2 * least * (1 + 1e-9)
    assert displacement(n=n, theta=theta).law.sum() == pytest.approx(1.0, abs=1e-10)


def test_between_the_ends_the_law_is_nearly_logistic() -> None:
    theta = 0.1
    found = displacement(n=500, theta=theta)
    assert found.mean.upper == pytest.approx(2 * math.log(2) / theta, rel=0.06)  # the ends of the order lack room
    assert found.quantile(0.5) == pytest.approx(math.log(3) / theta, abs=1)


def test_simulation_agrees_with_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval at confidence 1 - 1e-7 misses the exact mean with probability about 1e-7 (Student's law)."""
    exact = displacement(n=300, theta=0.05)
    monkeypatch.setattr(importlib.import_module("hushuffle.questions.order.displacement"), "_EXACT", 10)
    found = displacement(n=300, theta=0.05, samples=200, confidence=1 - 1e-7, rng=hs.reproducible(1))
    assert exact.mean.upper in found.mean
    assert found.mean.width < 0.1 * exact.mean.upper
    assert found.mean.kind == "estimate"
    assert np.abs(np.cumsum(found.law) - np.cumsum(exact.law)).max() < 0.01  # n * samples = 60,000 records
    secure = displacement(n=300, theta=0.05, samples=2)
    assert secure.law.sum() == pytest.approx(1.0)
    assert repr(found).startswith("Displacement(mean=")


def test_hamming_for_a_million_people() -> None:
    n = 10**6
    uniform = displacement(n=n, theta=0.0, distance="hamming")
    assert uniform.mean.upper == pytest.approx((n * n - 1) / (3 * n), rel=1e-9)
    half = displacement(n=n, theta=math.log(n / 2), distance="hamming")
    assert half.mean.upper == pytest.approx(uniform.mean.upper / 2, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "`n` must be"),
        ({"theta": -1.0}, "`theta` must be"),
        ({"distance": "cayley"}, "`distance` must be"),
        ({"samples": 1}, "`samples` must be an integer >= 2"),
        ({"confidence": 1.0}, "`confidence` must be in"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        displacement(**{"n": 5, "theta": 1.0, **arguments})
    with pytest.raises(InvalidInputError, match="`share` must be"):
        displacement(n=5, theta=1.0).quantile(1.5)
