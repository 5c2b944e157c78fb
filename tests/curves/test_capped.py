from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws.local import Local
from hushuffle.curves.laws.symmetric import Binary, Kary
from hushuffle.curves.rules.cap import Capped
from hushuffle.mechanisms.randomizers import Symmetric
from oracles.traffic_enumeration import largest_divergence, largest_ratio

F = Fraction
SMALL = [
    (t, n, d, sigma, convention)
    for t, n, d, sigma, convention in product(
        (2, 3, 4), (1, 2, 3, 4), (0, 1, 2, 3), (F(1, 10), F(3, 10), F(1, 2)), ("uniform", "exclusive")
    )
    if d < n and not (t == 4 and n == 4)
]


def symmetric(targets: int, sigma: Fraction, convention: str) -> Symmetric:
    lie = sigma / (targets if convention == "uniform" else targets - 1)
    return Symmetric(k=targets, truth=1 - (targets - 1) * lie, lie=lie)


def capped(law: Symmetric, n: int, dummies: int) -> Capped:
    local = math.inf if law.lie == 0 else math.log(law.truth / law.lie)
    if law.lie == 0 and dummies == 0:
        return Capped(law=law, local_epsilon=local, n=n, dummies=0, uncapped=Local(law=law, local_epsilon=local, n=n))
    kind = Binary.of if law.k == 2 else Kary
    return Capped(
        law=law,
        local_epsilon=local,
        n=n,
        dummies=dummies,
        uncapped=kind(law=law, local_epsilon=local, n=n, dummies=dummies),
    )


def test_pure_guarantee_is_the_largest_ratio_of_any_output_under_any_input() -> None:
    for targets, n, d, sigma, convention in SMALL:
        true = math.log(largest_ratio(targets, n, sigma, d, n, convention))
        found = capped(symmetric(targets, sigma, convention), n, d).pure
        assert true <= found * (1 + 1e-15) + 1e-15, (targets, n, d, sigma, convention)
        assert found == pytest.approx(true, rel=2e-11, abs=2e-14)
    assert len(SMALL) >= 40


def test_the_printed_theorem_understates_epsilon() -> None:
    # T = 3, n = 5, d = 3, sigma = 1/2: printed 0.4016; the theorem's convention first, the algorithm's second.
    for convention, true in (("exclusive", 0.5510), ("uniform", 1.2332)):
        assert math.log(largest_ratio(3, 5, F(1, 2), 3, 5, convention)) == pytest.approx(true, abs=5e-5)
        assert capped(symmetric(3, F(1, 2), convention), 5, 3).pure == pytest.approx(true, abs=5e-5)


@pytest.mark.parametrize(("targets", "n", "d"), [(3, 3, 3), (3, 3, 4), (3, 2, 3), (4, 2, 4), (2, 2, 2)])
def test_more_dummies_than_sources_have_an_upper_bound(targets: int, n: int, d: int) -> None:
    for sigma, convention in product((F(1, 10), F(3, 10), F(1, 2)), ("uniform", "exclusive")):
        law = capped(symmetric(targets, sigma, convention), n, d)
        figure = law.pure_bound()
        assert figure.kind == ("exact" if d == (targets - 1) * n else "upper")  # exact, and 0, where all are full
        assert math.log(largest_ratio(targets, n, sigma, d, n, convention)) <= figure.upper


def test_divergence_lies_between_its_ends() -> None:
    for targets, n, d, sigma, convention in SMALL[::5]:
        law = capped(symmetric(targets, sigma, convention), n, d)
        assert law.upper(0.1) <= law.uncapped.upper(0.1)
        for growth in (F(1), F(3, 2)):
            true = float(largest_divergence(targets, n, sigma, d, n, convention, growth))
            epsilon = math.log(growth)
            assert law.lower(epsilon)[0] <= true * (1 + 1e-9)
            assert true <= law.upper(epsilon) * (1 + 1e-9) + 1e-15


def test_where_the_cap_never_binds_the_ends_are_those_without_it() -> None:
    law = capped(symmetric(20, F(1, 5), "uniform"), 2000, 50)
    assert law.upper(0.4) == pytest.approx(law.uncapped.upper(0.4), rel=1e-9)
    assert law.lower(0.4)[0] == pytest.approx(law.uncapped.lower(0.4)[0], rel=1e-9)
    assert law.near(1e-6).upper(0.4) == pytest.approx(law.upper(0.4), rel=1e-3)


def test_beyond_the_pure_guarantee_nothing_is_left() -> None:
    law = capped(symmetric(3, F(1, 2), "uniform"), 5, 3)
    assert law.upper(law.pure) == 0
    assert law.lower(law.pure)[0] == 0
    assert 0 < law.guess() < law.pure


def test_no_sampling_has_no_pure_guarantee() -> None:
    law = capped(symmetric(3, F(0), "uniform"), 5, 3)
    assert law.pure == math.inf
    assert law.upper(1.0) <= 1.0


def test_a_cap_hides_more_also_where_dummies_are_many() -> None:
    # A cap is a post-processing of the counts without one, whatever d.
    for targets, n, d in ((3, 2, 3), (3, 3, 4), (2, 3, 3)):
        for growth in (F(1), F(3, 2)):
            with_cap = largest_divergence(targets, n, F(3, 10), d, n, "uniform", growth)
            assert with_cap <= largest_divergence(targets, n, F(3, 10), d, None, "uniform", growth)
            law = capped(symmetric(targets, F(3, 10), "uniform"), n, d)
            assert law.lower(math.log(growth))[0] <= float(with_cap) <= law.upper(math.log(growth)) * (1 + 1e-12)


def test_pure_guarantee_falls_with_every_dummy() -> None:
    figures = [capped(symmetric(10, F(1, 5), "uniform"), 50, d).pure for d in (0, 1, 5, 20, 49, 80)]
    assert figures == sorted(figures, reverse=True)
    assert figures[0] == pytest.approx(math.log(1 + 10 * 4), rel=1e-9)


def test_datasets_understate_what_the_cap_leaves() -> None:
    for targets, n, d, sigma, convention in SMALL[::7]:
        law = capped(symmetric(targets, sigma, convention), n, d)
        for pair in law.datasets(log_tail=-60.0):
            for growth in (F(1), F(3, 2)):
                true = float(largest_divergence(targets, n, sigma, d, n, convention, growth))
                gain = np.maximum(pair.p - pair.p_error, 0.0) - float(growth) * (pair.q + pair.q_error)
                assert float(np.maximum(gain, 0.0).sum()) <= true * (1 + 1e-9)


def test_where_the_cap_never_binds_rounds_add_up() -> None:
    once, often = (
        hs.traffic.scrambler_epsilon(targets=4, sources=300, sigma=0.5, dummies=20, cap=cap, delta=1e-6)
        for cap in (None, 300)
    )
    survey = hs.Protocol(
        randomizer=hs.TargetSampling(targets=4, sigma=0.5), shuffler=hs.Scrambler(dummies=20, cap=300), n=300
    )
    four = hs.dp.compose([(survey, 4)], delta=1e-6)
    assert often.lower == pytest.approx(once.lower, rel=1e-6)
    assert four.lower >= 1.8 * often.lower
