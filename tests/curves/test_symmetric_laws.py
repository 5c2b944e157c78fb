"""k-ary randomized response: blanket above, neighbours below, enumeration between."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln

from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.local import local_divergence
from hushuffle.curves.laws.symmetric import Binary
from hushuffle.curves.laws.symmetric_pairs import AllAtFirst, AllAtThird, composition
from hushuffle.curves.laws.tilted_counts import Compositions, hockey_stick
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.numerics.binomial import FairTable, fair_signs
from oracles import dp_enumeration as oracle


def parameters(k: int, epsilon_0: float) -> tuple[float, float]:
    lie = 1 / (k + math.expm1(epsilon_0))
    truth = 1 - (k - 1) * lie
    return truth, (1 - truth) / (k - 1)


def random_cases(count: int, seed: int) -> list[tuple[int, int, float, float]]:
    rng = np.random.default_rng(seed)
    drawn = []
    for index in range(count):
        k = int(rng.integers(3, 6))
        n = int(rng.integers(1, 7 - (k > 4)))
        epsilon_0 = float(rng.uniform(0.2, 6))
        drawn.append((k, n, epsilon_0, 0.0 if index % 5 == 0 else float(rng.uniform(0, epsilon_0))))
    return drawn


def test_positive_part_by_the_definition() -> None:
    for signs in (0, 1, 2, 5, 9, 40):
        for threshold in (0.0, 0.3, 1.0, 2.5, 30.0):
            law = [(math.comb(signs, a) / 2**signs, 2 * a - signs) for a in range(signs + 1)]
            exact = sum(mass * max(0.0, 1.7 * r - threshold) for mass, r in law)
            head = np.array([1.7 * signs - threshold]), np.array([1.7 * signs + threshold])
            lower, upper = fair_signs(np.array([float(signs)]), 1.7, np.array([threshold]), head)
            assert lower[0] - 1e-15 <= exact <= upper[0] + 1e-15
            assert upper[0] - lower[0] <= 1e-11
            tables = [FairTable.of(np.array([float(signs)]), above=above) for above in (False, True)]
            low, high = (table.mean(np.array([1.7]), np.array([threshold / 1.7])) for table in tables if table)
            assert lower[0] - 1e-11 <= low <= exact + 1e-15
            assert exact - 1e-15 <= high <= upper[0] + 1e-11


def test_tabulated_tails_say_the_same_as_tails_one_by_one() -> None:
    rng = np.random.default_rng(5)
    signs = rng.integers(0, 5000, 300).astype(np.float64)
    weight = rng.random(300)
    for above in (False, True):
        table = FairTable.of(signs, above=above)
        assert table is not None
        for share in (0.0, 0.02, 0.2):
            threshold = share * signs
            assert not table.cancels(threshold)
            ends = fair_signs(signs, 1.0, threshold, (signs - threshold, signs))
            assert table.mean(weight, threshold) == pytest.approx(weight @ ends[above], rel=1e-9)
        assert table.cancels((1 - 1e-8) * signs)
    assert FairTable.of(np.array([1e9]), above=True) is None


@pytest.mark.parametrize(("k", "n", "dummies"), [(3, 1000, 0), (20, 100, 50), (5, 10**5, 3)])
def test_a_tabulated_blanket_is_the_blanket(k: int, n: int, dummies: int) -> None:
    truth, lie = parameters(k, 2.0)
    plain = BlanketBound.of(k=k, n=n, truth=truth, lie=lie, dummies=dummies)
    quick = plain.tabulated()
    assert quick.table is not None
    for epsilon in (0.0, 1e-3, 0.02, 0.3, 1.9):
        assert quick.upper(epsilon) == pytest.approx(plain.upper(epsilon), rel=1e-9, abs=1e-35)


@pytest.mark.parametrize(("k", "n", "epsilon_0", "epsilon"), random_cases(40, 1))
def test_small_cases_are_ordered_as_promised(k: int, n: int, epsilon_0: float, epsilon: float) -> None:
    truth, lie = parameters(k, epsilon_0)
    growth = math.exp(epsilon)
    third = float(oracle.delta_at((0, 0, n - 1) + (0,) * (k - 3), k, truth, growth))
    first = float(oracle.delta_at((n - 1,) + (0,) * (k - 1), k, truth, growth))
    worst = float(oracle.worst_delta(n, k, truth, growth))
    blanket = BlanketBound.of(k=k, n=n, truth=truth, lie=lie, dummies=0)
    assert AllAtThird.of(n=n, truth=truth, lie=lie).lower(epsilon) == pytest.approx(third, rel=1e-7, abs=1e-12)
    assert AllAtThird.of(n=n, truth=truth, lie=lie).lower(epsilon) <= third + 1e-14
    assert AllAtFirst.of(n=n, truth=truth, lie=lie).lower(epsilon) == pytest.approx(first, rel=1e-7, abs=1e-12)
    assert AllAtFirst.of(n=n, truth=truth, lie=lie).lower(epsilon) <= first + 1e-14
    assert blanket.upper(epsilon) >= worst - 1e-14


@pytest.mark.parametrize("dummies", [0, 1, 4])
def test_the_blanket_sum_is_the_blanket_bound(dummies: int) -> None:
    rng = np.random.default_rng(7)
    for _ in range(25):
        k, n, epsilon_0 = int(rng.integers(3, 8)), int(rng.integers(1, 30)), float(rng.uniform(0.2, 5))
        epsilon = float(rng.uniform(0, epsilon_0))
        truth, lie = parameters(k, epsilon_0)
        local = truth - math.exp(epsilon) * lie
        exact = min(oracle.blanket_delta(n, k, truth, math.exp(epsilon), dummies), local)
        ours = BlanketBound.of(k=k, n=n, truth=truth, lie=lie, dummies=dummies).upper(epsilon)
        assert exact * (1 - 1e-12) <= ours <= exact * (1 + 1e-8) + 1e-15


def test_dummies_without_noise_hide_too() -> None:
    for n, dummies in ((1, 3), (4, 6)):
        exact = float(oracle.worst_delta(n, 3, 1.0, 1.5, dummies))
        assert BlanketBound.of(k=3, n=n, truth=1.0, lie=0.0, dummies=dummies).upper(math.log(1.5)) >= exact - 1e-14


def all_at_third_directly(k: int, n: int, truth: float, lie: float, epsilon: float) -> float:
    """The divergence with all others at a third value, summed over (A, B, C, D) from multinomial probabilities."""
    growth, ratio, rest, total = math.exp(epsilon), truth / lie, (k - 3) * lie, 0.0
    for pair in range(min(n, int(2 * lie * n + 14 * math.sqrt(2 * lie * n) + 20)) + 1):
        a = np.arange(pair + 1)[:, None]
        c = np.arange(n - pair + 1)[None, :] if rest > 0 else np.array([[n - pair]])
        d = n - pair - c
        log = math.lgamma(n + 1) - gammaln(a + 1) - gammaln(pair - a + 1) - gammaln(c + 1) - gammaln(d + 1)
        log = log + pair * math.log(lie) + c * math.log(truth) + (d * math.log(rest) if rest > 0 else 0.0)
        gain = a * (ratio - growth) + (pair - a) * (1 - growth * ratio) + c / ratio * (1 - growth) + d * (1 - growth)
        total += float(np.sum(np.exp(log) * np.maximum(gain, 0.0))) / n
    return total


def medium_cases() -> list[tuple[int, int, float, float]]:
    rng = np.random.default_rng(11)
    return [
        (
            int(rng.integers(3, 30)),
            int(rng.integers(20, 301)),
            float(rng.uniform(0.5, 4)),
            float(rng.uniform(0.05, 0.5)),
        )
        for _ in range(50)
    ]


@pytest.mark.parametrize(("k", "n", "epsilon_0", "share"), medium_cases())
def test_medium_cases_lie_above_an_independent_sum(k: int, n: int, epsilon_0: float, share: float) -> None:
    truth, lie = parameters(k, epsilon_0)
    epsilon = share * epsilon_0
    total = all_at_third_directly(k, n, truth, lie, epsilon)
    lower = AllAtThird.of(n=n, truth=truth, lie=lie).lower(epsilon)
    upper = BlanketBound.of(k=k, n=n, truth=truth, lie=lie, dummies=0).upper(epsilon)
    assert lower <= total * (1 + 1e-9)
    assert lower >= total * (1 - 3e-3) - 1e-14
    assert upper >= total * (1 - 1e-9)


@pytest.mark.parametrize("n", [10**5, 10**7, 10**9])
def test_binning_at_large_n_keeps_the_order(n: int) -> None:
    truth, lie = parameters(5, 2.0)
    epsilon = 7 * truth / math.sqrt(lie * n)
    blanket = BlanketBound.of(k=5, n=n, truth=truth, lie=lie, dummies=0)
    upper, lower = blanket.upper(epsilon), AllAtThird.of(n=n, truth=truth, lie=lie).lower(epsilon)
    assert 0 < lower <= upper <= blanket.without_traces(upper).upper(epsilon) * (1 + 1e-12)
    assert blanket.without_traces(upper).upper(epsilon) <= upper * (1 + 1e-6)
    assert AllAtFirst.of(n=n, truth=truth, lie=lie).lower(epsilon) <= lower


def test_huge_epsilon_does_not_cancel() -> None:
    """Without noise, somebody is given away whenever no dummy has the other value: (4/5)^5, at every epsilon."""
    for epsilon in (5.0, 20.0, 50.0, 100.0, 300.0):
        upper = BlanketBound.of(k=5, n=100, truth=1.0, lie=0.0, dummies=5).upper(epsilon)
        assert 0.8**5 <= upper <= 0.8**5 * (1 + 1e-2)
    for epsilon in (10.0, 25.0):
        truth, lie = parameters(3, 30.0)
        exact = float(oracle.worst_delta(4, 3, truth, math.exp(epsilon), 2))
        assert BlanketBound.of(k=3, n=4, truth=truth, lie=lie, dummies=2).upper(epsilon) >= exact * (1 - 1e-9)


def test_two_values_inside_short_windows_say_no_more_than_they_may() -> None:
    law = RandomizedResponse(k=2, epsilon=2.0).law()
    (whole,) = composition(law, 60, 30, 8, -700.0)
    for log_tail in (4.0, 2.0, -2.0, -10.0):
        (short,) = composition(law, 60, 30, 8, log_tail)
        for epsilon in np.linspace(0, 1.9, 20):
            assert short.divergence(epsilon) <= whole.divergence(epsilon) * (1 + 1e-9)
            assert short.swapped().divergence(epsilon) <= whole.swapped().divergence(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("n", [400, 10_000])
def test_reports_that_are_nearly_always_true_have_a_figure(n: int) -> None:
    """All groups of blocks reach a delta of 1 then, so that no block is left that may exceed the first."""
    protocol = Protocol(randomizer=RandomizedResponse(k=2, epsilon=40.0), shuffler=UniformShuffle(), n=n)
    curve = privacy_curve(protocol)
    assert curve.upper(1.0) == curve.contenders(1.0).upper(1.0) == 1.0


@pytest.mark.parametrize("n", [40, 61, 200, 1_700])
def test_bounds_of_groups_leave_the_worst_composition(n: int) -> None:
    """All blocks are evaluated here; the curve excludes most of them, for several numbers of dummies at once."""
    response = RandomizedResponse(k=2, epsilon=1.5)
    law = response.law().symmetric
    assert law is not None
    curves = [Binary.of(law=law, local_epsilon=1.5, n=n, dummies=dummies) for dummies in (0, 3, 90)]
    for epsilon in (0.0, 0.05, 0.2, 0.6, 1.4):
        for curve, upper in zip(curves, Binary.uppers(curves, epsilon), strict=True):
            zeros = np.maximum(n - 1 - curve.starts - curve.doubt, 0.0)
            blocks = Compositions(ones=curve.starts, zeros=zeros, dummies=curve.dummies)
            every = hockey_stick(blocks, truth=float(law.truth), lie=float(law.lie), epsilon=epsilon)[1]
            assert upper == pytest.approx(min(float(every.max()), local_divergence(law, epsilon)), rel=1e-9)
            assert curve.contenders(epsilon).upper(epsilon) == pytest.approx(upper, rel=1e-9)
            assert curve.holds(epsilon, upper * (1 + 1e-9))
            assert not curve.holds(epsilon, upper * (1 - 1e-9)) or upper == 0
