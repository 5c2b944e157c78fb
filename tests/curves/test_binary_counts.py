from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hushuffle.curves.laws.tilted_counts import Compositions, hockey_stick
from hushuffle.numerics import binomial
from oracles import dp_enumeration as oracle


@pytest.mark.parametrize("dummies", [0, 1, 3])
@pytest.mark.parametrize("truth", [Fraction(11, 20), Fraction(3, 4), Fraction(999, 1000), Fraction(1)])
def test_every_composition_matches_enumeration(truth: Fraction, dummies: int) -> None:
    widest = 0.0
    for n in (1, 2, 3, 5, 8):
        for growth in (1.0, 1.1, 1.5, 2.5):
            rows: list[list[oracle.Number]] = [[truth, 1 - truth], [1 - truth, truth]]
            exact_truth = Fraction(float(truth))
            rows = [[exact_truth, 1 - exact_truth], [1 - exact_truth, exact_truth]]
            ones = np.arange(n, dtype=np.float64)
            if truth == 1 and dummies == 0:
                continue  # no randomness at all: not this law's business
            low, high = hockey_stick(
                Compositions(ones=ones, zeros=n - 1 - ones, dummies=dummies),
                truth=float(truth),
                lie=float(1 - exact_truth),
                epsilon=math.log(growth),
            )
            for y in range(n):
                base = oracle.counts_law((n - 1 - y, y), rows, dummies)
                one, zero = oracle.add_report(base, rows[1]), oracle.add_report(base, rows[0])
                exact = float(oracle.hockey_stick(one, zero, Fraction(math.exp(math.log(growth)))))
                assert low[y] <= exact * (1 + 1e-14)
                assert high[y] >= exact * (1 - 1e-14)
                widest = max(widest, (high[y] - low[y]) / max(exact, 1e-9))
    assert widest < 1e-9


@pytest.mark.parametrize("n", [50, 1000, 30_000])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_medium_sizes_match_a_direct_convolution(n: int, share: float) -> None:
    truth, lie = 0.8, 0.2
    ones = round(share * (n - 1))
    for deviations in (0.5, 3, 6, 11):
        epsilon = deviations * 0.6 / math.sqrt(n * truth * lie)
        a, b = truth - math.exp(epsilon) * lie, math.expm1(epsilon)
        if a <= 0:
            continue
        law = np.convolve(
            binomial.pmf(np.arange(ones + 1), ones, truth), binomial.pmf(np.arange(n - ones), n - 1 - ones, lie)
        )
        tails = np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)
        direct = float(np.max(a * law - b * tails))
        low, high = hockey_stick(
            Compositions(ones=np.array([float(ones)]), zeros=np.array([float(n - 1 - ones)]), dummies=0),
            truth=truth,
            lie=lie,
            epsilon=epsilon,
        )
        assert low[0] <= direct * (1 + 1e-9)
        assert high[0] >= direct * (1 - 1e-9)
        assert high[0] - low[0] <= 1e-6 * direct


def test_beyond_the_local_epsilon_nothing_is_left() -> None:
    one = Compositions(ones=np.array([3.0]), zeros=np.array([4.0]), dummies=0)
    low, high = hockey_stick(one, truth=0.75, lie=0.25, epsilon=math.log(3.0) + 1e-9)
    assert low.tolist() == high.tolist() == [0.0]
