"""Hashed values among blanket messages: enumeration of everybody's hashes and buckets lies inside the bracket."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws.blanket_messages import TrueAmongHashes, TrueAmongUniform
from hushuffle.curves.search import privacy_curve
from oracles import several_messages as oracle

GROWTHS = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(3), Fraction(12))


def buckets(k: int, g: int, family: Literal["auto", "binary", "affine"]) -> hs.LocalHashing:
    return hs.LocalHashing(k=k, g=g, epsilon=math.inf, family=family)


def worst(mechanism: hs.LocalHashing, n: int, growth: Fraction, *, p: Fraction, trials: int, dummies: int = 0) -> float:
    """Return the largest divergence over all datasets, every message of everybody enumerated."""
    family, k = mechanism.hashes, mechanism.k
    hashes = [tuple(family.buckets(np.tile(np.array(h), (k, 1)), np.arange(k)).tolist()) for h in family.every()]
    cells = len(hashes) * mechanism.g
    nothing = {(0,) * cells: Fraction(1)}
    one = oracle.hashed(None, hashes, mechanism.g)
    coin = {(0,) * cells: 1 - p, **{key: p * mass for key, mass in one.items()}}
    own = [oracle.hashed(value, hashes, mechanism.g) for value in range(k)]
    besides = oracle.together([*[coin] * (n * trials), *[one] * dummies, nothing], cells)
    found = []
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        rest = oracle.together([besides, *(own[value] for value in others)], cells)
        first, second = (oracle.together([rest, own[value]], cells) for value in (0, 1))
        found += [oracle.hockey_stick(first, second, growth), oracle.hockey_stick(second, first, growth)]
    return float(max(found))


@pytest.mark.parametrize(
    ("k", "g", "family", "n", "trials"),
    [(2, 2, "binary", 1, 2), (2, 2, "binary", 3, 1), (3, 2, "affine", 2, 1), (4, 2, "binary", 2, 1),
     (3, 4, "affine", 1, 2), (3, 4, "binary", 1, 2)],
)  # fmt: skip
def test_every_outcome_of_hashed_values_among_blanket_messages(
    k: int, g: int, family: Literal["binary", "affine"], n: int, trials: int
) -> None:
    mechanism = buckets(k, g, family)
    survey = hs.Protocol(randomizer=mechanism, shuffler=hs.BlanketMessages(p=0.5, trials=trials), n=n)
    assert isinstance(privacy_curve(survey), TrueAmongHashes)
    for growth in GROWTHS:
        figure = hs.dp.delta(survey, epsilon=math.log(growth))
        exact = worst(mechanism, n, growth, p=Fraction(1, 2), trials=trials)
        assert figure.lower * (1 - 1e-9) <= exact <= figure.upper * (1 + 1e-9)


@pytest.mark.parametrize(("n", "dummies"), [(1, 3), (2, 2)])
def test_every_outcome_of_hashed_values_among_dummies_of_the_shuffler(n: int, dummies: int) -> None:
    mechanism = buckets(3, 2, "affine")
    survey = hs.Protocol(randomizer=mechanism, shuffler=hs.Scrambler(dummies=dummies), n=n)
    for growth in GROWTHS:
        figure = hs.dp.delta(survey, epsilon=math.log(growth))
        exact = worst(mechanism, n, growth, p=Fraction(0), trials=0, dummies=dummies)
        assert figure.lower * (1 - 1e-9) <= exact <= figure.upper * (1 + 1e-9)
        if n == 1:  # nobody else's hashes hide anything: the upper end is the figure
            assert figure.upper == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_a_million_people_and_a_million_values_get_a_tight_figure(delta: float) -> None:
    survey = hs.Protocol(randomizer=buckets(10**6, 20_000, "auto"), shuffler=hs.BlanketMessages(p=0.9), n=10**6)
    figure = hs.dp.epsilon(survey, delta=delta)
    assert figure.upper < figure.lower * (1 + 2e-4)


def test_buckets_hide_as_values_do() -> None:
    """What k is does not matter, and where no two values share a bucket the figure is that of values."""
    among = hs.BlanketMessages(p=0.5)
    few = hs.Protocol(randomizer=buckets(10**4, 1000, "affine"), shuffler=among, n=10**5)
    many = hs.Protocol(randomizer=buckets(10**6, 1000, "affine"), shuffler=among, n=10**5)
    values = hs.Protocol(randomizer=hs.RandomizedResponse(k=1000, epsilon=math.inf), shuffler=among, n=10**5)
    figures = [hs.dp.epsilon(survey, delta=1e-6) for survey in (few, many, values)]
    assert figures[0].upper == pytest.approx(figures[1].upper, rel=1e-4)
    assert figures[0].upper == pytest.approx(figures[2].upper, rel=2e-3)
    apart = privacy_curve(hs.Protocol(randomizer=buckets(5, 7, "affine"), shuffler=among, n=100))
    same = TrueAmongUniform.of(k=7, n=100, trials=100, p=0.5)
    for epsilon in (0.0, 0.5, 2.0):
        assert apart.upper(epsilon) == pytest.approx(same.upper(epsilon), rel=1e-9)
        assert apart.lower(epsilon)[0] == pytest.approx(same.lower(epsilon)[0], rel=1e-9)


def test_many_messages_for_both_values_are_not_told_apart() -> None:
    told = TrueAmongHashes.of(buckets=4, collision=Fraction(1, 4), n=9, trials=200, p=0.5)
    crowd = TrueAmongHashes.of(buckets=4, collision=Fraction(1, 4), n=9, trials=20_000, p=0.5)
    assert told.both.max() > 5
    assert crowd.both.max() == 0
    for epsilon in (0.01, 0.05, 0.2):
        lower, upper = crowd.lower(epsilon)[0], crowd.upper(epsilon)
        assert 0 < lower < upper < told.upper(epsilon)
    assert TrueAmongHashes.of(buckets=4, collision=Fraction(1, 4), n=9, trials=0, p=0.5).upper(1.0) == pytest.approx(
        0.75
    )


def test_no_messages_show_two_values_apart() -> None:
    for shuffler in (hs.UniformShuffle(), hs.BlanketMessages(p=0.0)):
        survey = hs.Protocol(randomizer=buckets(9, 4, "binary"), shuffler=shuffler, n=50)
        assert hs.dp.epsilon(survey, delta=0.7).lower == math.inf
        assert hs.dp.epsilon(survey, delta=0.0).lower == math.inf
        assert hs.dp.delta(survey, epsilon=1.0).upper == pytest.approx(0.75)


def test_the_explicit_pair_comes_near_the_curve() -> None:
    curve = TrueAmongHashes.of(buckets=50, collision=Fraction(1, 50), n=400, trials=2000, p=0.5)
    (pair,) = curve.datasets(log_tail=-60.0)
    for epsilon in (0.0, 0.3, 0.8):
        assert curve.lower(epsilon)[0] * 0.97 < pair.divergence(epsilon) <= curve.upper(epsilon)
    assert curve.lower_at(pair.witness, 0.3) == curve.lower(0.3)[0] == curve.lower_at(curve.lower(1.0)[1], 0.3)
    assert curve.lower_at(pair.swapped().witness, 0.3) == 0.0


def test_rounds_compose_to_a_bracket() -> None:
    survey = hs.Protocol(randomizer=buckets(10**4, 200, "affine"), shuffler=hs.BlanketMessages(p=1.0), n=10_000)
    figure = hs.dp.compose([(survey, 5)], delta=1e-6)
    assert 0 < figure.lower <= figure.upper < figure.lower * 1.03
    assert hs.dp.epsilon(survey, delta=1e-6, reports_per_person=2).upper < math.inf


def test_a_drawn_number_of_dummies_of_the_shuffler() -> None:
    law = hs.DummyLaw.binomial(trials=5000, p=0.5)
    drawn = hs.Protocol(randomizer=buckets(1000, 50, "affine"), shuffler=hs.Scrambler(dummies=law), n=5000)
    people = hs.Protocol(randomizer=buckets(1000, 50, "affine"), shuffler=hs.BlanketMessages(p=0.5), n=5000)
    figures = [hs.dp.epsilon(survey, delta=1e-6) for survey in (drawn, people)]
    assert figures[0].lower <= figures[1].upper
    assert figures[1].lower <= figures[0].upper < figures[0].lower * 1.02


def test_messages_are_calibrated() -> None:
    survey = hs.Protocol(randomizer=buckets(10**6, 20_000, "affine"), shuffler=hs.BlanketMessages(p=1.0), n=10**6)
    found = hs.dp.calibrate(survey, parameter="messages", epsilon=1.0, delta=1e-6)
    assert 0.85 < found.value < 0.86
    assert found.bound.upper <= 1.0
    assert found.beyond_bound is not None
    assert found.beyond_bound.upper > 1.0
