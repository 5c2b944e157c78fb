from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.estimation import heavy_hitters, keep_significant
from hushuffle.estimation.readout import significant_count
from hushuffle.mechanisms.randomizers import Support


def survey(randomizer: hs.RandomizedResponse | hs.LocalHashing, n: int, dummies: int = 0) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=dummies), n=n)


def slow_tail(count: int, n: int, p: Fraction, dummies: int, q: Fraction) -> Fraction:
    """P(Bin(n, p) + Bin(dummies, q) >= count), every pair of outcomes."""
    return sum(
        (
            math.comb(n, a) * p**a * (1 - p) ** (n - a) * math.comb(dummies, b) * q**b * (1 - q) ** (dummies - b)
            for a in range(n + 1)
            for b in range(dummies + 1)
            if a + b >= count
        ),
        Fraction(0),
    )


def supporting(*, true: float, false: float, dummy: float) -> Support:
    return Support(true=true, false=false, dummy=dummy, inside=true, outside=false, told=true - false)


@pytest.mark.parametrize(("n", "dummies"), [(12, 0), (9, 6), (1, 3), (20, 11)])
@pytest.mark.parametrize("chance", [0.3, 1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("p", [Fraction(1, 64), Fraction(1, 3)])
def test_significant_count_by_enumeration(n: int, dummies: int, chance: float, p: Fraction) -> None:
    q = Fraction(1, 4)
    law = supporting(true=0.9, false=float(p), dummy=float(q))
    found = significant_count(law, n=n, dummies=dummies, chance=chance)
    assert slow_tail(found, n, p, dummies, q) <= Fraction(chance)
    assert slow_tail(found - 1, n, p, dummies, q) > Fraction(chance) * (1 - Fraction(1, 10**9))


def test_nothing_false_without_noise() -> None:
    assert significant_count(supporting(true=1.0, false=0.0, dummy=0.5), n=100, dummies=0, chance=1e-9) == 1


@pytest.mark.parametrize(
    ("protocol", "level"),
    [
        (survey(hs.LocalHashing(k=64, g=4, epsilon=1.0), 300), 0.2),
        (survey(hs.LocalHashing(k=200, g=11, epsilon=2.0), 200), 0.3),
        (survey(hs.RandomizedResponse(k=4000, epsilon=4.0), 500), 0.2),
        (survey(hs.RandomizedResponse(k=300, epsilon=2.0), 100, dummies=400), 0.3),
    ],
    ids=str,
)
def test_family_wise_error_by_simulation(protocol: hs.Protocol, level: float) -> None:
    """Everybody holds value 0: any other value listed is a false one."""
    runs, rng, wrong = 600, hs.reproducible(3), 0
    held = np.zeros(protocol.n, dtype=np.int64)
    for _ in range(runs):
        found = heavy_hitters(
            hs.estimate(protocol.collect(held, rng=rng), protocol=protocol), protocol=protocol, level=level
        )
        wrong += bool(np.any(found.values != 0))
    assert wrong <= stats.binom(runs, level).isf(1e-7)  # false alarm at most 1e-7


def test_a_normal_threshold_lets_noise_pass_where_few_false_reports_are_expected() -> None:
    protocol = survey(hs.RandomizedResponse(k=100_000, epsilon=9.0), 2000)
    held = np.zeros(protocol.n, dtype=np.int64)
    estimate = hs.estimate(protocol.collect(held, rng=hs.reproducible(1)), protocol=protocol)
    assert int(np.count_nonzero(keep_significant(estimate).frequencies)) > 1
    assert heavy_hitters(estimate, protocol=protocol).values.tolist() == [0]


def test_order_top_intervals_and_threshold() -> None:
    protocol = survey(hs.LocalHashing(k=1000, g=21, epsilon=3.0), 20_000)
    values = np.repeat([5, 900, 77], [9000, 3000, 8000])
    estimate = hs.estimate(protocol.collect(values, rng=hs.reproducible(4)), protocol=protocol)
    found = heavy_hitters(estimate, protocol=protocol)
    assert found.values.tolist() == [5, 77, 900]
    assert found.frequencies.tolist() == estimate.raw[[5, 77, 900]].tolist()
    assert bool(np.all(np.diff(found.frequencies) < 0))
    truth = np.array([0.45, 0.4, 0.15])
    assert bool(
        np.all((found.intervals[:, 0] <= truth) & (truth <= found.intervals[:, 1]))
    )  # 5 % by design, seed fixed
    assert found.intervals.tolist() == estimate.interval(1 - 0.05 / 1000)[[5, 77, 900]].tolist()
    assert 0 < found.threshold < 0.15
    assert heavy_hitters(estimate, protocol=protocol, top=2).values.tolist() == [5, 77]
    assert "3 values above" in repr(found)
    assert len(found) == 3


def test_the_threshold_itself_counts() -> None:
    protocol = survey(hs.RandomizedResponse(k=50, epsilon=2.0), 400)
    law = hs.RandomizedResponse(k=50, epsilon=2.0).law().support
    least = significant_count(law, n=400, dummies=0, chance=0.05 / 50)
    counts = np.full(50, 0)
    counts[:3] = (least - 1, least, least + 1)
    found = heavy_hitters(hs.estimate(hs.Histogram(counts=counts), protocol=protocol), protocol=protocol)
    assert found.values.tolist() == [2, 1]


def test_nobody_is_found_in_pure_noise() -> None:
    protocol = survey(hs.LocalHashing(k=5000, g=2, epsilon=0.1), 100)
    estimate = hs.estimate(protocol.collect(np.arange(100), rng=hs.reproducible(2)), protocol=protocol)
    assert len(heavy_hitters(estimate, protocol=protocol)) == 0


def test_bad_input() -> None:
    protocol = survey(hs.RandomizedResponse(k=5, epsilon=2.0), 40)
    estimate = hs.estimate(protocol.collect(np.zeros(40, dtype=int), rng=hs.reproducible(2)), protocol=protocol)
    with pytest.raises(InvalidInputError, match=r"`level` must be in \(0, 1\)"):
        heavy_hitters(estimate, protocol=protocol, level=1.0)
    with pytest.raises(InvalidInputError, match="`top` must be an integer >= 1"):
        heavy_hitters(estimate, protocol=protocol, top=0)
    other = survey(hs.RandomizedResponse(k=5, epsilon=2.0), 41)
    with pytest.raises(InvalidInputError, match=r"`estimate` must be of 5 values of 41 people, got .*40 people"):
        heavy_hitters(estimate, protocol=other)
