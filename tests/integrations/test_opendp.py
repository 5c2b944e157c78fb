"""A shuffled release inside OpenDP: its measurement has our figure, and is chained and composed there."""

from __future__ import annotations

import pytest

import hushuffle as hs
from hushuffle.integrations.opendp import as_measurement

odp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
SURVEY = hs.Protocol(randomizer=hs.RandomizedResponse(k=10, epsilon=2.0), shuffler=hs.UniformShuffle(), n=10_000)


def test_a_measurement_releases_shares_at_our_epsilon() -> None:
    odp.enable_features("contrib", "honest-but-curious")
    measurement = as_measurement(SURVEY, delta=1e-6)
    assert measurement.map(1) == (hs.dp.epsilon(SURVEY, delta=1e-6).upper, 1e-6)
    assert measurement.map(1)[0] == pytest.approx(0.0798043, rel=1e-6)
    assert measurement.map(0) == (0.0, 0.0)
    with pytest.raises(Exception, match="one person"):
        measurement.map(2)
    shares = measurement([0] * 7000 + [1] * 3000)
    assert shares[:2] == pytest.approx([0.7, 0.3], abs=0.05)
    with pytest.raises(Exception, match="10000"):
        measurement([0] * 7000)


def test_composed_there_two_waves_cost_the_sum() -> None:
    odp.enable_features("contrib", "honest-but-curious")
    measurement = as_measurement(SURVEY, delta=1e-6)
    composed = odp.c.make_composition([measurement, measurement])
    epsilon, delta = composed.map(1)
    assert (epsilon, delta) == pytest.approx((2 * measurement.map(1)[0], 2e-6))
    assert hs.dp.compose([(SURVEY, 2)], delta=2e-6).upper < 0.75 * epsilon
