"""Randomized response with dummies: neighbouring datasets with all others at one value, against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws import symmetric_dummies
from hushuffle.curves.laws.symmetric import Kary
from hushuffle.curves.laws.symmetric_dummies import HeldAlike
from hushuffle.mechanisms.randomizers import Symmetric
from oracles import dp_enumeration as oracle

Case = tuple[Symmetric, int, int, float, float]


def law_of(k: int, epsilon_0: float) -> Symmetric:
    lie = Fraction(1 / (k + math.expm1(epsilon_0)))
    return Symmetric(k=k, truth=1 - (k - 1) * lie, lie=lie)


def cases(count: int, seed: int) -> list[Case]:
    """Draw (law, n, dummies, epsilon, epsilon_0) of enumerable size."""
    rng = np.random.default_rng(seed)
    drawn = []
    for index in range(count):
        k, n, dummies = int(rng.integers(3, 6)), int(rng.integers(1, 5)), int(rng.integers(0, 4))
        epsilon_0 = float(rng.uniform(0.2, 5))
        drawn.append((law_of(k, epsilon_0), n, dummies, float(rng.uniform(0, epsilon_0)) * (index % 5 > 0), epsilon_0))
    return drawn


def exact_ends(case: Case) -> tuple[float, float]:
    """The divergences with all others at a third value, and at the target's first one."""
    law, n, dummies, epsilon, _ = case
    truth, growth = float(law.truth), math.exp(epsilon)
    held = (0, 0, n - 1) + (0,) * (law.k - 3), (n - 1,) + (0,) * (law.k - 1)
    third, first = (float(oracle.delta_at(others, law.k, truth, growth, dummies)) for others in held)
    return third, first


def table(law: Symmetric, n: int, dummies: int) -> HeldAlike:
    found = HeldAlike.of(law, n=n, dummies=dummies)
    assert found is not None
    return found


def tell_apart(pair: DatasetPair, epsilon: float) -> float:
    """The larger hockey-stick divergence of a pair of laws."""
    growth = math.exp(epsilon)
    there, back = np.maximum(pair.p - growth * pair.q, 0), np.maximum(pair.q - growth * pair.p, 0)
    return max(float(there.sum()), float(back.sum()))


def test_both_datasets_are_what_enumeration_gives() -> None:
    for case in cases(60, 1):
        law, n, dummies, epsilon, _ = case
        third, first = exact_ends(case)
        alike = table(law, n, dummies)
        for lower, exact in ((alike.lower_third(epsilon), third), (alike.lower_first(epsilon), first)):
            assert exact * (1 - 1e-8) - 1e-12 <= lower <= exact + 1e-14, case


def test_the_pairs_of_laws_are_those_of_the_datasets() -> None:
    for case in cases(40, 2):
        law, n, dummies, epsilon, _ = case
        alike = table(law, n, dummies)
        third = alike.pair_third(-60.0)
        assert third is not None
        for pair, exact in zip((third, alike.pair_first(-60.0)), exact_ends(case), strict=True):
            assert tell_apart(pair, epsilon) == pytest.approx(exact, rel=1e-8, abs=1e-12), case


def test_no_lower_end_exceeds_the_worst_dataset() -> None:
    for law, n, dummies, epsilon, epsilon_0 in cases(25, 3):
        if law.k > 4 or n + dummies > 6:
            continue
        worst = float(oracle.worst_delta(n, law.k, float(law.truth), math.exp(epsilon), dummies))
        curve = Kary(law=law, local_epsilon=epsilon_0, n=n, dummies=dummies)
        assert curve.lower(epsilon)[0] <= worst + 1e-13
        assert curve.upper(epsilon) >= worst - 1e-13


@pytest.mark.parametrize(("k", "n", "dummies", "epsilon"), [(20, 3000, 800, 0.2), (3, 4000, 50, 0.2), (6, 900, 0, 0.3)])
def test_finer_bins_and_rows_only_raise_a_lower_end(
    k: int, n: int, dummies: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, found = law_of(k, 2.0), []
    for part in (2.0, 1.0, 0.5, 0.01):
        monkeypatch.setattr(symmetric_dummies, "_BIN", part / 4)
        monkeypatch.setattr(symmetric_dummies, "_ROW", part / 8)
        alike = table(law, n, dummies)
        found.append((alike.lower_third(epsilon), alike.lower_first(epsilon)))
    for ends in zip(*found, strict=True):
        assert ends[-1] > 0
        assert all(end <= ends[-1] * (1 + 1e-9) for end in ends)
        assert ends[-2] > 0.9 * ends[-1]


def test_rows_left_out_for_speed_cost_a_millionth_of_delta() -> None:
    alike = table(law_of(20, 2.5), 2000, 500)
    full, epsilon = alike.lower_third(0.5), 0.5
    assert full * (1 - 1e-15) - 1e-6 * 1e-4 <= replace(alike, negligible=1e-10).lower_third(epsilon) <= full


def test_dummies_leave_a_bracket_of_half_a_per_cent() -> None:
    """A scrambler of 100 or 1,000 sources and 20 or 100 targets, dummies from one to four a source."""
    widths = {}
    for targets, people, dummies in ((20, 100, 1), (20, 100, 50), (20, 100, 400), (100, 100, 50), (20, 1000, 500)):
        sampling = hs.TargetSampling(targets=targets, sigma=0.2)
        protocol = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=dummies), n=people)
        figure = hs.dp.epsilon(protocol, delta=1e-4)
        widths[targets, people, dummies] = figure.upper / figure.lower - 1
    assert max(widths.values()) < 0.006


def test_two_rounds_with_dummies_leave_a_bracket_of_a_tenth_of_a_per_cent() -> None:
    sampling = hs.TargetSampling(targets=20, sigma=0.2)
    for dummies, wide in ((50, 1e-3), (0, 6e-3)):
        protocol = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=dummies), n=100)
        figure = hs.dp.compose([(protocol, 2)], delta=1e-4)
        assert figure.upper / figure.lower - 1 < wide


def test_where_counts_are_too_many_a_difference_of_counts_is_tested() -> None:
    law = law_of(5, 2.0)
    assert HeldAlike.of(law, n=10**9, dummies=10**9) is None
    curve = Kary(law=law, local_epsilon=2.0, n=10**9, dummies=10**9)
    assert curve.alike is None
    figure = curve.epsilon(1e-6)
    assert figure.upper / figure.lower - 1 < 0.01
    many = table(law, 20_000, 10_000)
    assert many.pair_third(-30.0) is None  # too many events
    assert Kary(law=law, local_epsilon=2.0, n=20_000, dummies=10_000).datasets(log_tail=-30.0)


def test_rounds_without_noise_behind_dummies_have_both_ends() -> None:
    """Where nobody reports the others' value, the target cannot hold it: such an event only adds to one side."""
    truthful = hs.RandomizedResponse(k=5, epsilon=math.inf)
    few, many = (
        hs.dp.compose([(hs.Protocol(randomizer=truthful, shuffler=hs.Scrambler(dummies=dummies), n=2), 2)], delta=delta)
        for dummies, delta in ((5, 1e-9), (500, 1e-3))
    )
    assert few.upper == math.inf
    assert 0 < many.lower <= many.upper < 2
