from __future__ import annotations

import pytest

from hushuffle.errors import NumericalError
from hushuffle.laws.base import between


def test_ends_that_cross_are_an_error_not_an_exact_figure() -> None:
    with pytest.raises(NumericalError, match="ends cross"):
        between(0.5, 0.4, unit="nats")


def test_ends_that_meet() -> None:
    assert between(0.4 * (1 + 1e-9), 0.4, unit="nats").kind == "bracket"
    assert between(0.4, 0.4, unit="nats", exact=True).kind == "exact"
    assert between(0.0, 0.0, unit="nats").kind == "exact"
