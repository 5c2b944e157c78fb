from __future__ import annotations

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError


def test_the_best_levels_have_the_least_error_at_the_guarantee_asked_for() -> None:
    """Against all numbers of levels nearby, each calibrated by itself."""
    found = hs.best_levels(n=100, epsilon=1.0, delta=1e-3, low=0, high=10)
    assert found.levels in found.tried
    assert found.error == min(found.tried.values())
    assert hs.dp.epsilon(found.protocol, delta=1e-3).upper <= 1.0
    assert hs.mean_error(found.protocol, grid=hs.NumberGrid(low=0, high=10, levels=found.levels)) == found.error
    for levels in (found.levels + 1,):
        response = hs.RoundedResponse(levels=levels, epsilon=1.0, low=0, high=10)
        start = hs.Protocol(randomizer=response, shuffler=hs.UniformShuffle(), n=100)
        other = hs.dp.calibrate(start, parameter="epsilon", epsilon=1.0, delta=1e-3).protocol
        assert hs.mean_error(other, grid=response.grid) >= found.error


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="`n` must be an integer >= 2"):
        hs.best_levels(n=1, epsilon=1.0, delta=1e-3)
    with pytest.raises(InvalidInputError, match="`high` must be above low"):
        hs.best_levels(n=100, epsilon=1.0, delta=1e-3, low=1, high=1)
