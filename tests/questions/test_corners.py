"""Corners that an independent check found: tiny noise, rounds that reveal nothing, tiny delta, huge epsilon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle import plans
from hushuffle.errors import InvalidInputError, NumericalError


def protocol(randomizer: Any, n: int = 3, shuffler: Any = None) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)


@pytest.mark.parametrize(
    ("targets", "n", "sigma", "dummies", "true"),
    [(2, 8, 1e-9, 1, 21.282881624), (2, 8, 1e-12, 1, 28.190637), (2, 2, 1e-16, 1, 36.841185)],
)
def test_two_targets_and_hardly_any_sampling(targets: int, n: int, sigma: float, dummies: int, true: float) -> None:
    # Enumerated in rationals from the implemented thresholds, at a precision of the digits shown.
    found = hs.traffic.scrambler_epsilon(targets=targets, sources=n, sigma=sigma, dummies=dummies, cap=n)
    assert found.upper == pytest.approx(true, rel=3e-8)


def test_full_targets_say_nothing() -> None:
    for delta in (0.0, 1e-3):
        found = hs.traffic.scrambler_epsilon(targets=3, sources=2, sigma=0.2, dummies=4, cap=2, delta=delta)
        assert (found.kind, found.upper) == ("exact", 0.0)


def test_rounds_that_reveal_nothing_cost_nothing() -> None:
    broadcast = protocol(hs.TargetSampling(targets=2, sigma=0.3, flood=1), 2, hs.NoShuffle())
    survey = protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 50)
    assert hs.dp.compose([(broadcast, 2)], delta=1e-6).upper == 0
    assert hs.dp.compose_delta([(broadcast, 2)], epsilon=0.1).upper == 0
    alone = hs.dp.compose([(survey, 2)], delta=1e-4)
    assert hs.dp.compose([(survey, 2), broadcast], delta=1e-4).upper == pytest.approx(alone.upper, rel=1e-9)


def test_rates_that_no_float_tells_apart() -> None:
    almost = protocol(hs.TargetSampling(targets=5, sigma=0.8, convention="exclusive"), 1)
    assert hs.dp.epsilon(almost, delta=1e-9).upper == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("delta", [1e-320, 5e-324])
def test_a_delta_below_what_floats_hold_is_refused(delta: float) -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 9)
    with pytest.raises(NumericalError, match="1e-300"):
        hs.dp.epsilon(survey, delta=delta)
    with pytest.raises(NumericalError, match="1e-300"):
        hs.dp.compose([(survey, 2)], delta=delta)


def test_epsilon_beyond_every_odds() -> None:
    for randomizer in (hs.LocalHashing(k=3, g=2, epsilon=1.0), hs.RandomizedResponse(k=4, epsilon=40.0)):
        assert hs.dp.delta(protocol(randomizer), epsilon=710.0).upper == 0
    dummy = protocol(hs.RandomizedResponse(k=3, epsilon=math.inf), 3, hs.Scrambler(dummies=1))
    found = hs.dp.delta(dummy, epsilon=709.0)
    assert (found.kind, found.lower) == ("upper", 0.0)
    assert found.upper >= hs.dp.delta(dummy, epsilon=400.0).lower


def test_flips_that_floats_hardly_hold() -> None:
    for p in (1e-9, 1e-17):
        found = hs.bloom.epsilon(filters=2, bits=6, p=p, delta=0.01)
        pure = hs.BitFlipping(width=2, p=p).local_epsilon
        assert pure - math.log(6) - 0.1 <= found.upper <= pure * (1 + 1e-9)
    with pytest.raises(NumericalError, match="too small"):
        hs.bloom.published_pair_epsilon(filters=2, bits=6, p=1e-9, delta=0.01)


def test_equal_rows_carry_nothing() -> None:
    row = [0.34049333718537805, 0.03494120659300984, 0.08625461100997506, 0.4484196709083854, 0.08989117430325168]
    equal = protocol(hs.MatrixRandomizer(channel=hs.Channel(matrix=[row, row, row])), 1)
    assert 0 <= hs.pie.contraction(equal).upper < 1e-15


def test_many_reports_identify_for_certain() -> None:
    many = protocol(hs.RandomizedResponse(k=10**7, epsilon=20.0), 10**7)
    assert hs.pie.composed_error(many, reports=10**6).lower == 0


def test_flooding_is_a_finite_channel() -> None:
    flooded = protocol(hs.TargetSampling(targets=4, sigma=0.3, flood=1), 5)
    assert 0 < hs.pie.alpha(flooded).upper < math.log2(4)


@pytest.mark.parametrize("prior", ["a", [[1.0], [0.5, 0.5]], [1e308] * 4, [math.nan] * 4])
def test_a_prior_that_is_none_is_refused(prior: Any) -> None:
    with pytest.raises(InvalidInputError, match="`prior`"):
        hs.pie.bayes_error(protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 4), prior=prior)


def test_wrong_kinds_of_arguments_are_named() -> None:
    not_rounds: Any = 3
    with pytest.raises(InvalidInputError, match="`rounds`"):
        hs.dp.compose(not_rounds, delta=0.1)
    with pytest.raises(InvalidInputError, match="`k`"):
        hs.pie.best_hashing_for_error(0.5, k=None, n=10, frequency=0.1)  # type: ignore[arg-type]
    with pytest.raises(NumericalError, match="hardly depend"):
        hs.pie.variance_by_buckets(1e-17, k=10, n=10, buckets=np.array([4]))


@pytest.mark.parametrize("scale", [0.7, 0.5, 0.3])
def test_released_centroids_with_hardly_any_noise(scale: float) -> None:
    # The releases alone cost an epsilon above rho = 2 (radius/scale)**2: a lattice must not take them for no noise.
    noise = plans.CentroidNoise(kind="gaussian", radius=2.0, scale=scale)
    plan = plans.k_means(
        people=12, centroids=3, iterations=2, variant="private-centroids", sigma=0.2, flood=1, noise=noise
    )
    found = hs.traffic.plan_guarantee(plan, delta=1e-6).epsilon
    assert found.lower < 2 < 2 * (2 / scale) ** 2 < found.upper
