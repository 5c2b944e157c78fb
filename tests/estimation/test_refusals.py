from __future__ import annotations

import itertools
import math
from typing import Literal

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation import refused
from oracles.secure_sums import vectors


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
def test_every_vector_is_counted_whatever_the_value(kind: Literal["symmetric", "optimized"]) -> None:
    encoding = hs.UnaryEncoding(k=5, epsilon=1.5, encoding=kind)
    law = encoding.law()
    for value, most in itertools.product((0, 3), range(6)):
        bits = vectors(5, value, law.own, law.raised)
        truth = float(sum(mass for vector, mass in bits.items() if sum(vector) > most))
        assert refused(encoding, most_ones=most).upper == pytest.approx(truth, rel=1e-12)


def test_refusals_fall_with_the_limit_and_end_at_k() -> None:
    encoding = hs.UnaryEncoding(k=300, epsilon=4.0, encoding="symmetric")
    found = [refused(encoding, most_ones=most).upper for most in range(0, 301, 20)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.99
    assert found[-1] == 0.0
    assert refused(hs.UnaryEncoding(k=300, epsilon=math.inf, encoding="symmetric"), most_ones=1).upper == 0.0


def test_what_has_no_ones_is_refused() -> None:
    with pytest.raises(UnsupportedProtocolError, match="needs a one-hot encoding, not RandomizedResponse"):
        refused(hs.RandomizedResponse(k=3, epsilon=1.0), most_ones=1)
    with pytest.raises(InvalidInputError, match="`most_ones` must be"):
        refused(hs.UnaryEncoding(k=3, epsilon=1.0, encoding="symmetric"), most_ones=4)
