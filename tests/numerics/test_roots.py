from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.numerics.roots import farthest, first_below, halved, last_above


def crossing(function: Callable[[float], float], level: float, *, high: float, guess: float) -> tuple[float, float]:
    """Both sides of a crossing; each must be a point at which the function was evaluated."""
    asked: set[float] = {0.0, high}

    def read(x: float) -> float:
        asked.add(x)
        return function(x)

    ends = last_above(read, level, high=high, guess=guess), first_below(read, level, high=high, guess=guess)
    assert set(ends) <= asked
    return ends


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


def test_both_sides_are_certified_among_rounding_errors() -> None:
    rng = np.random.default_rng(1)
    read: dict[float, float] = {}

    def noisy(x: float) -> float:
        """Falls with an error of a thousandth, which differs between evaluations of near points."""
        return read.setdefault(x, math.exp(-5 * x) * (1 + 1e-3 * rng.uniform(-1, 1)))

    for guess in (1e-6, 0.1, 0.29, 0.99):
        low, high = crossing(noisy, 0.25, high=1.0, guess=guess)
        assert read[low] > 0.25 >= read[high]
        assert abs(low - math.log(4) / 5) < 1e-3 > abs(high - math.log(4) / 5)


def test_a_tail_takes_few_evaluations() -> None:
    calls: list[float] = []

    def tail(x: float) -> float:
        calls.append(x)
        return 0.1 * math.exp(-3 * x * x - x)

    for guess, most in ((0.2, 9), (1.0, 7), (1.99, 5)):
        calls.clear()
        assert tail(last_above(tail, 1e-7, high=9.0, guess=guess)) > 1e-7
        assert len(calls) <= most


def test_a_good_guess_with_its_slope_takes_one_evaluation_or_two() -> None:
    for guess, most in ((1.0, 1), (1 + 1e-6, 2), (0.9, 4)):
        calls: list[float] = []

        def tail(x: float, calls: list[float] = calls) -> float:
            calls.append(x)
            return math.exp(-2 * x * x - x)

        slope = 5 / (2 * math.sqrt(3))  # of sqrt(2 x**2 + x) at 1
        end = last_above(tail, math.exp(-3), high=9.0, guess=guess * (1 - 4e-9), slope=slope)
        assert tail(end) > math.exp(-3)
        assert 1 - 3e-8 < end < 1
        assert len(calls) - 1 <= most


@pytest.mark.parametrize("last", [0, 1, 41, 998])
def test_whole_numbers_are_halved_from_either_side(last: int) -> None:
    assert farthest(lambda n: n <= last, good=0, bad=999) == last
    assert farthest(lambda n: n > last, good=999, bad=-1) == last + 1
    assert farthest(lambda _: True, good=last, bad=last + 1) == last


def test_halving_stays_where_the_condition_holds() -> None:
    below, above = (halved(lambda x: x <= 3.3, good=0.0, bad=8.0), halved(lambda x: x > 3.3, good=8.0, bad=0.0))
    assert 3.3 - 1e-10 < below <= 3.3 < above < 3.3 + 1e-10
