from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from oracles.traffic_enumeration import flooded, largest_divergence, largest_ratio

F = Fraction


def test_sampling_and_flooding_against_enumeration() -> None:
    for targets, sigma, flood in product((2, 3, 5), (F(1, 8), F(1, 2), F(1)), (0, 1, 2)):
        if flood >= targets:
            continue
        laws = [flooded(x, targets, sigma, flood, "uniform") for x in (0, 1)]
        true = math.log(max(share / laws[1][y] for y, share in laws[0].items()))
        found = hs.traffic.sampling_epsilon(targets=targets, sigma=float(sigma), flood=flood)
        assert found.kind == "exact"
        assert found.upper == pytest.approx(true, rel=1e-14, abs=1e-15)


def test_no_sampling_has_no_guarantee() -> None:
    assert hs.traffic.sampling_epsilon(targets=5, sigma=0.0).upper == math.inf


def test_scramblers_with_a_cap_against_enumeration() -> None:
    for targets, n, d, convention in product((3, 4), (2, 3), (1, 2), ("uniform", "exclusive")):
        found = hs.traffic.scrambler_epsilon(
            targets=targets, sources=n, sigma=0.25, dummies=d, cap=n,
            convention="uniform" if convention == "uniform" else "exclusive",
        )  # fmt: skip
        true = math.log(largest_ratio(targets, n, F(1, 4), d, n, convention))
        assert found.kind == ("exact" if d < n else "upper")
        assert true <= found.upper * (1 + 1e-15)
        if d < n:
            assert found.upper == pytest.approx(true, rel=2e-11)


@pytest.mark.parametrize("cap", [None, 3])
def test_epsilon_at_a_delta_is_between_its_ends(cap: int | None) -> None:
    for d in (0, 1, 2):
        found = hs.traffic.scrambler_epsilon(targets=3, sources=3, sigma=0.5, dummies=d, cap=cap, delta=0.05)
        above = F(math.exp(found.upper) * (1 + 1e-9)).limit_denominator(10**12)
        assert largest_divergence(3, 3, F(1, 2), d, cap, "uniform", above) <= F(5, 100) + F(1, 10**9)
        if found.lower > 0:
            below = F(math.exp(found.lower) * (1 - 1e-9)).limit_denominator(10**12)
            assert largest_divergence(3, 3, F(1, 2), d, cap, "uniform", below) >= F(5, 100) - F(1, 10**9)


def test_one_question_one_answer() -> None:
    for cap, delta, sigma in product((None, 40), (0.0, 1e-4), (0.2, 1.0)):
        protocol = hs.Protocol(
            randomizer=hs.TargetSampling(targets=8, sigma=sigma), shuffler=hs.Scrambler(dummies=10, cap=cap), n=40
        )
        found = hs.traffic.scrambler_epsilon(targets=8, sources=40, sigma=sigma, dummies=10, cap=cap, delta=delta)
        assert found == hs.dp.epsilon(protocol, delta=delta)


def test_dummies_alone() -> None:
    found = hs.traffic.scrambler_epsilon(targets=20, sources=100, sigma=0.0, dummies=500, delta=1e-6)
    assert 0 < found.lower < found.upper < 2


def test_wrong_delta() -> None:
    with pytest.raises(InvalidInputError, match="`delta`"):
        hs.traffic.scrambler_epsilon(targets=3, sources=5, sigma=0.1, dummies=1, delta=1.0)
