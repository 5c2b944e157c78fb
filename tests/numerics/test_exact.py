from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.numerics.exact import down, exponential, sum_upwards, times_upwards, turn_parts, up


@given(st.fractions())
def test_rounded_outward_by_at_most_two_floats(value: Fraction) -> None:
    low, high = down(value), up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


def test_decimals_are_rounded_outward() -> None:
    tenth = Decimal("0.1")
    assert Decimal(down(tenth)) <= tenth <= Decimal(up(tenth))
    assert up(Decimal(0)) == down(Decimal(0)) == 0.0


@given(st.lists(st.floats(min_value=0, max_value=1e9), max_size=5), st.integers(min_value=1, max_value=1000))
def test_sums_and_multiples_are_the_nearest_floats_that_are_not_below(parts: list[float], times: int) -> None:
    whole = [(sum_upwards(parts), sum(map(Fraction, parts), Fraction(0)))]
    for above, exact in whole + [(times_upwards(part, times), times * Fraction(part)) for part in parts]:
        assert Fraction(above) >= exact
        assert above == 0 or Fraction(math.nextafter(above, 0)) < exact


@given(st.floats(min_value=-1e9, max_value=1e9), st.floats(min_value=-20, max_value=20))
def test_turns_are_accurate_at_any_angle(angle: float, real: float) -> None:
    eps = float(np.finfo(np.float64).eps)
    away, sine = (part.item() for part in turn_parts(np.array([angle])))
    value = exponential(np.array([real]), np.array([angle]))[0]
    with mpmath.workprec(200):
        exact = 2 * mpmath.sin(mpmath.mpf(angle) / 2) ** 2, mpmath.sin(mpmath.mpf(angle))
        for part, wanted in zip((away, sine), exact, strict=True):
            assert abs(part - wanted) <= 4 * eps * abs(wanted) + 1e-300
        assert abs(mpmath.mpc(value) - mpmath.exp(mpmath.mpc(real, angle))) <= 8 * eps * math.exp(real)
