from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import NumericalError
from hushuffle.numerics.roots import crossing


@given(log_level=st.floats(-60, -0.01), guess=st.floats(1e-9, 50), scale=st.floats(1e-6, 10))
def test_both_sides_are_certified(log_level: float, guess: float, scale: float) -> None:
    def falling(x: float) -> float:
        return max(0.0, math.exp(-x / scale) - 1e-30)

    level = math.exp(log_level)
    low, high = crossing(falling, level, high=100 * scale, guess=guess)
    assert falling(low) > level >= falling(high)
    assert high - low <= 1e-7 * high
    assert low <= -scale * log_level * (1 + 1e-9)


def test_a_crossing_next_to_zero_is_found() -> None:
    low, high = crossing(lambda x: 1.0 if x <= 1e-17 else 0.1, 0.5, high=1.0, guess=0.5)
    assert 0 <= low <= 1e-17 <= high <= 1e-15


def test_a_crossing_hidden_by_rounding_is_refused() -> None:
    calls: list[float] = []

    def noisy(x: float) -> float:
        """Falls at 0.3 while the crossing is searched for, and is below the level everywhere afterwards."""
        calls.append(x)
        return 1.0 if x < 0.3 and len(calls) < 12 else 0.1

    with pytest.raises(NumericalError, match="larger delta"):
        crossing(noisy, 0.5, high=1.0, guess=0.29)
