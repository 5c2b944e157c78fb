from __future__ import annotations

import math

import pytest

from hushuffle.curves.base import bracket
from hushuffle.errors import NumericalError


def test_ends_that_cross_are_an_error_not_an_exact_figure() -> None:
    with pytest.raises(NumericalError, match=r"lower bound .* exceeds the upper bound"):
        bracket(0.5, 0.4, unit="nats")


def test_ends_that_meet() -> None:
    assert bracket(0.4 * (1 + 1e-9), 0.4, unit="nats").kind == "bracket"
    assert bracket(0.4, 0.4, unit="nats", exact=True).kind == "exact"
    assert bracket(0.0, 0.0, unit="nats").kind == "exact"


def test_an_end_that_is_no_number_is_an_error() -> None:
    for lower, upper in ((math.nan, 1.0), (0.5, math.nan)):
        with pytest.raises(NumericalError, match=r"lower bound .* exceeds the upper bound"):
            bracket(lower, upper, unit="nats")


def test_exact_only_where_the_ends_agree() -> None:
    assert bracket(0.4 * (1 - 1e-12), 0.4, unit="nats", exact=True).kind == "exact"
    assert bracket(0.4 * (1 - 1e-6), 0.4, unit="nats", exact=True).kind == "bracket"
    assert bracket(math.inf, math.inf, unit="nats", exact=True).kind == "exact"


def test_a_figure_with_nothing_below_is_an_upper_bound() -> None:
    assert bracket(0.0, 0.4, unit="nats").kind == bracket(0.0, 0.4, unit="nats", exact=True).kind == "upper"
    assert bracket(1e-300, 0.4, unit="nats").kind == "bracket"
