"""The mode of sums of coins against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hushuffle.numerics import binomial
from hushuffle.questions.qif import many as mode
from hushuffle.questions.qif.many import largest_probability


def exact_mode(counts: list[int], chances: list[Fraction]) -> Fraction:
    """Add one coin at a time, in whole numbers over a common denominator."""
    scale = 1
    law = [1]
    for count, p in zip(counts, chances, strict=True):
        for _ in range(count):
            yes, no = p.numerator, p.denominator - p.numerator
            law = [no * a + yes * b for a, b in zip([*law, 0], [0, *law], strict=True)]
            scale *= p.denominator
    return Fraction(max(law), scale)


@pytest.mark.parametrize("chances", [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1), Fraction(1, 9)]])
@pytest.mark.parametrize("counts", [[0, 0], [1, 0], [0, 1], [2, 1], [7, 12], [40, 3], [0, 150], [500, 501]])
def test_equals_exact_rationals(counts: list[int], chances: list[Fraction]) -> None:
    value = float(largest_probability([counts], chances)[0])
    truth = exact_mode(counts, chances)
    assert abs(Fraction(value) / truth - 1) < 1e-13


def test_rows_are_independent_and_may_be_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [[a, b, 3] for a in range(12) for b in range(12)]
    chances = [Fraction(9, 10), Fraction(1, 10), Fraction(1, 2)]
    together = largest_probability(table, chances)
    alone = [float(largest_probability([row], chances)[0]) for row in table]
    assert together == pytest.approx(np.array(alone), rel=1e-13)
    monkeypatch.setattr(mode, "_ROWS", 7)
    assert largest_probability(table, chances) == pytest.approx(together, rel=1e-13)


@pytest.mark.parametrize("n", [10**4, 10**6, 10**9])
@pytest.mark.parametrize("p", [0.5, 0.3, 1e-3, 0.999, 1 - 1e-6])
def test_one_binomial_at_any_size(n: int, p: float) -> None:
    centre = np.floor((n + 1) * p) + np.arange(-2, 3)
    truth = float(binomial.pmf(centre, n, p).max())
    tolerance = max(1e-12, binomial.margin(n))  # of the pmf compared with
    assert float(largest_probability([[n]], [Fraction(p)])[0]) == pytest.approx(truth, rel=tolerance)
