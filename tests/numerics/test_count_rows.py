"""Rows of a count: masses rounded up lie above the truth, rounded down below it, row by row."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from hushuffle.numerics.binomial import CountRows
from oracles import binomial_mp as oracle


@pytest.mark.parametrize(
    ("n", "chance", "step"), [(1200, 0.3, 1), (1200, 0.3, 7), (30_000, 0.02, 1), (30_000, 0.4, 40)]
)
def test_rounded_masses_enclose_the_truth(n: int, chance: float, step: int) -> None:
    rows = CountRows.of(n, chance, step=step)
    assert np.all(rows.last - rows.first <= step - 1)
    above = []
    for place in range(0, rows.first.size, max(1, rows.first.size // 80)):
        counts = range(int(rows.first[place]), int(rows.last[place]) + 1)
        with mpmath.workdps(40):
            exact = mpmath.fsum(oracle.pmf(x, n, chance) for x in counts)
        assert mpmath.mpf(float(rows.at_least[place])) <= exact <= mpmath.mpf(float(rows.at_most[place]))
        above.append(exact > mpmath.mpf(float(rows.mass[place])))
    # Floats miss the truth on both sides: masses as they come are no upper ends.
    assert any(above)
    assert not all(above)


def test_rows_cover_all_but_the_tails() -> None:
    rows = CountRows.of(10**6, 0.25)
    assert float(rows.at_most.sum()) >= 1
    assert np.all(rows.first[1:] == rows.last[:-1] + 1)
