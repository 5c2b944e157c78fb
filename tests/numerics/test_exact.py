from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hushuffle.numerics.exact import down, up


@given(st.fractions())
def test_rounded_outward_by_at_most_two_floats(value: Fraction) -> None:
    low, high = down(value), up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


def test_decimals_are_rounded_outward() -> None:
    tenth = Decimal("0.1")
    assert Decimal(down(tenth)) <= tenth <= Decimal(up(tenth))
    assert up(Decimal(0)) == down(Decimal(0)) == 0.0
