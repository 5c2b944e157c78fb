"""Blanket messages and fake reports: enumeration of everybody's messages lies inside the bracket."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws.blanket_messages import TrueAmongUniform
from hushuffle.curves.laws.value_dummies import TrueAmongEach, ValueCounts, divergence_between
from hushuffle.errors import UnsupportedProtocolError
from oracles import several_messages as oracle

GROWTHS = (Fraction(1), Fraction(3, 2), Fraction(3), Fraction(12))


def truth(k: int) -> hs.RandomizedResponse:
    return hs.RandomizedResponse(k=k, epsilon=math.inf)


def inside(figure: hs.Bound, exact: Fraction) -> bool:
    """An exact figure may be off by rounding."""
    return figure.lower * (1 - 1e-9) <= float(exact) <= figure.upper * (1 + 1e-9)


@pytest.mark.parametrize(("n", "k", "p", "trials"), [(1, 2, 0.5, 1), (2, 2, 0.25, 2), (3, 3, 0.5, 1), (2, 4, 1.0, 1)])
def test_every_outcome_of_blanket_messages(n: int, k: int, p: float, trials: int) -> None:
    extra = oracle.uniform_messages(k, Fraction(p), trials)
    survey = hs.Protocol(randomizer=truth(k), shuffler=hs.BlanketMessages(p=p, trials=trials), n=n)
    for growth in GROWTHS:
        least, most = oracle.worst(n, k, growth, messages=lambda value: oracle.person(value, k, extra=extra))
        assert least == most  # what others hold changes nothing
        figure = hs.dp.delta(survey, epsilon=math.log(growth))
        assert inside(figure, most)
        assert figure.upper - figure.lower < 1e-12


@pytest.mark.parametrize(("n", "k", "p"), [(1, 2, 0.5), (2, 2, 0.25), (2, 3, 0.5), (3, 2, 0.125), (2, 2, 1.0)])
def test_every_outcome_of_fakes_per_value(n: int, k: int, p: float) -> None:
    extra = oracle.fakes(k, Fraction(p))
    survey = hs.Protocol(randomizer=truth(k), shuffler=hs.FakesPerValue(p=p), n=n)
    for growth in GROWTHS:
        least, most = oracle.worst(n, k, growth, messages=lambda value: oracle.person(value, k, extra=extra))
        assert least == most
        figure = hs.dp.delta(survey, epsilon=math.log(growth))
        assert inside(figure, most)
        assert figure.upper - figure.lower < 1e-12


def test_blanket_messages_beside_a_noisy_report() -> None:
    k, n, p = 3, 3, Fraction(1, 2)
    extra = oracle.uniform_messages(k, p, 1)
    noisy = hs.RandomizedResponse(k=k, epsilon=2.0)
    theta = noisy.law().symmetric.theta
    survey = hs.Protocol(randomizer=noisy, shuffler=hs.BlanketMessages(p=float(p)), n=n)
    for growth in GROWTHS[:3]:
        _, most = oracle.worst(n, k, growth, messages=lambda value: oracle.person(value, k, extra=extra, theta=theta))
        assert inside(hs.dp.delta(survey, epsilon=math.log(growth)), most)


@pytest.mark.parametrize(("n", "k", "p"), [(1, 2, Fraction(1, 4)), (3, 2, Fraction(1, 8)), (2, 3, Fraction(1, 3))])
def test_fakes_hide_as_much_with_p_as_with_the_rest(n: int, k: int, p: Fraction) -> None:
    few, many = oracle.fakes(k, p), oracle.fakes(k, 1 - p)
    for growth in GROWTHS:
        found = oracle.worst(n, k, growth, messages=lambda value: oracle.person(value, k, extra=few))
        assert found == oracle.worst(n, k, growth, messages=lambda value: oracle.person(value, k, extra=many))


@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000])
def test_more_fakes_hide_more_up_to_one_half(n: int) -> None:
    """Tested here, and proved where epsilon is 0: the calibration rests on it."""
    curves = [TrueAmongEach.of(ValueCounts.binomial(n, p), k=4, n=n) for p in np.linspace(0.02, 0.5, 25).tolist()]
    for epsilon in (0.0, 0.05, 0.3, 1.0, 3.0):
        found = [curve.upper(epsilon) for curve in curves]
        assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(found))


def test_at_epsilon_zero_fakes_are_a_walk_that_comes_back() -> None:
    n, p = 6, 0.3
    step = np.array([p * (1 - p), 1 - 2 * p * (1 - p), p * (1 - p)])
    law, back = np.ones(1), []
    for _ in range(n + 1):
        back.append(float(law[law.size // 2]))
        law = np.convolve(law, step)
    assert TrueAmongEach.of(ValueCounts.binomial(n, p), k=3, n=n).upper(0.0) == pytest.approx(float(np.mean(back)))


@pytest.mark.parametrize("shuffler", [hs.BlanketMessages(p=0.5, honest=0.5), hs.FakesPerValue(p=0.5, honest=0.5)])
def test_colluders_know_their_own_messages(shuffler: hs.BlanketMessages) -> None:
    """Of three people one is honest: all that others send is known, and what is left is a crowd of one."""
    k = 3
    extra = (
        oracle.uniform_messages(k, Fraction(1, 2), 1)
        if hasattr(shuffler, "trials")
        else oracle.fakes(k, Fraction(1, 2))
    )
    survey = hs.Protocol(randomizer=truth(k), shuffler=shuffler, n=3)
    for growth in GROWTHS:
        _, most = oracle.worst(1, k, growth, messages=lambda value: oracle.person(value, k, extra=extra))
        assert inside(hs.dp.delta(survey, epsilon=math.log(growth)), most)


@pytest.mark.parametrize("shuffler", [hs.BlanketMessages(p=0.04), hs.FakesPerValue(p=4e-5)])
@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_a_million_people_get_a_tight_figure(shuffler: hs.BlanketMessages, delta: float) -> None:
    survey = hs.Protocol(randomizer=truth(1000), shuffler=shuffler, n=10**6)
    figure = hs.dp.epsilon(survey, delta=delta)
    assert figure.upper < figure.lower * (1 + 3e-5)


def test_a_share_of_honest_people_counts_as_that_many_people() -> None:
    half = hs.Protocol(randomizer=truth(9), shuffler=hs.BlanketMessages(p=0.3, honest=0.5), n=2000)
    alone = hs.Protocol(randomizer=truth(9), shuffler=hs.BlanketMessages(p=0.3), n=1000)
    assert hs.dp.epsilon(half, delta=1e-6) == hs.dp.epsilon(alone, delta=1e-6)


def test_rows_of_many_numbers_bracket_those_of_each() -> None:
    fine = TrueAmongUniform.of(k=2, n=10**6, trials=4 * 10**6, p=0.5)
    assert not fine.exact
    law = ValueCounts.binomial(10**6, 0.5)
    assert fine.lower(0.001)[0] < fine.upper(0.001) < fine.lower(0.001)[0] * 1.001
    assert law.own.size == law.without.size


def test_no_messages_hide_nothing() -> None:
    for shuffler in (hs.BlanketMessages(p=0.0), hs.FakesPerValue(p=0.0)):
        survey = hs.Protocol(randomizer=truth(3), shuffler=shuffler, n=50)
        assert hs.dp.epsilon(survey, delta=0.5).lower == math.inf
        assert hs.dp.delta(survey, epsilon=3.0).upper == 1.0
    assert hs.dp.epsilon(survey, delta=0.0).lower == math.inf


@pytest.mark.parametrize(
    "curve",
    [TrueAmongUniform.of(k=5, n=400, trials=400, p=0.5), TrueAmongEach.of(ValueCounts.binomial(400, 0.1), k=5, n=400)],
)
def test_explicit_pairs_come_near_the_curve(curve: TrueAmongUniform) -> None:
    (pair,) = curve.datasets(log_tail=-60.0)
    for epsilon in (0.0, 0.3, 0.8):
        assert curve.upper(epsilon) * 0.97 < pair.divergence(epsilon) <= curve.upper(epsilon)
    assert curve.lower_at(pair.witness, 0.3) == curve.lower(0.3)[0]


def test_rounds_compose_to_a_bracket() -> None:
    survey = hs.Protocol(randomizer=truth(10), shuffler=hs.BlanketMessages(p=0.2), n=10_000)
    figure = hs.dp.compose([(survey, 5)], delta=1e-6)
    assert 0 < figure.lower <= figure.upper < figure.lower * 1.02
    assert hs.dp.epsilon(survey, delta=1e-6, reports_per_person=2).upper < math.inf


def test_laws_with_holes_are_summed_as_they_are() -> None:
    law = hs.DummyLaw.of({0: 0.25, 3: 0.5, 4: 0.25})
    counts = ValueCounts.of(law)
    mass = dict(zip(law.numbers.tolist(), law.probabilities.tolist(), strict=True))
    for growth in (1.0, 1.5, 4.0):
        pairs = [(x, y) for x in range(7) for y in range(7)]
        exact = sum(
            max(mass.get(x - 1, 0) * mass.get(y, 0) - growth * mass.get(x, 0) * mass.get(y - 1, 0), 0) for x, y in pairs
        )
        low, high = divergence_between(counts, counts, math.log(growth))
        assert low <= exact + 1e-15
        assert exact <= high + 1e-15
        assert np.isclose(low, high, atol=1e-13)


@pytest.mark.parametrize("kept", [1.0, 0.75])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (3, 2), (2, 3), (3, 3)])
def test_every_outcome_of_an_augmented_shuffle(n: int, k: int, kept: float) -> None:
    law = {0: Fraction(1, 4), 1: Fraction(1, 2), 3: Fraction(1, 4)}
    each = [{tuple(d * u for u in oracle.unit(y, k)): p for d, p in law.items()} for y in range(k)]
    besides = oracle.together(each, k)
    nothing = {(0,) * k: Fraction(1)}
    shuffler = hs.AugmentedShuffle(each=hs.DummyLaw.of({d: float(p) for d, p in law.items()}), kept=kept)
    survey = hs.Protocol(randomizer=truth(k), shuffler=shuffler, n=n)
    for growth in GROWTHS:
        _, most = oracle.worst(
            n,
            k,
            growth,
            messages=lambda value: oracle.person(value, k, extra=nothing, kept=Fraction(kept)),
            besides=besides,
        )
        figure = hs.dp.delta(survey, epsilon=math.log(growth))
        assert inside(figure, most)
        if k > 2 or kept == 1 or n == 1:
            assert figure.upper - figure.lower < 1e-12


def test_a_number_of_dummies_that_is_told_takes_the_guarantee_away() -> None:
    """One person and two values; the release is the counts, with the number of dummies besides or without it."""
    law, kept = {**{d: Fraction(2, 3 ** (d + 1)) for d in range(9)}, 9: Fraction(1, 3**9)}, Fraction(1, 2)
    releases: dict[bool, list[oracle.Law]] = {False: [], True: []}
    for value, told in itertools.product(range(2), (False, True)):
        found: oracle.Law = {}
        for (x, p), (y, q), report in itertools.product(law.items(), law.items(), (False, True)):
            counts = (x + (report and value == 0), y + (report and value == 1))
            key = (*counts, x + y) if told else counts
            found[key] = found.get(key, Fraction(0)) + p * q * (kept if report else 1 - kept)
        releases[told].append(found)
    growth = Fraction(1000)
    seen, unseen = (oracle.hockey_stick(releases[told][0], releases[told][1], growth) for told in (True, False))
    assert seen >= kept * law[0]
    assert unseen < Fraction(1, 1000)  # from the end of the table alone


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_geometric_dummies_give_a_guarantee_without_delta(epsilon: float) -> None:
    shuffler = hs.AugmentedShuffle.pure(epsilon=epsilon)
    survey = hs.Protocol(randomizer=truth(4), shuffler=shuffler, n=1000)
    pure = hs.dp.epsilon(survey, delta=0.0)
    assert pure.kind == "exact"
    assert epsilon * (1 - 1e-9) < pure.upper <= epsilon
    # The largest ratio over pairs of counts, the law summed term by term.
    assert isinstance(shuffler.each, hs.GeometricDummies)
    kept, ratio = shuffler.kept, shuffler.each.ratio
    mass = [(1 - ratio) * ratio**x for x in range(40)]
    own = [kept * (mass[x - 1] if x else 0) + (1 - kept) * mass[x] for x in range(40)]
    ratios = [own[x] / mass[x] for x in range(40)]
    assert math.log(max(ratios) / min(ratios)) == pytest.approx(pure.upper, rel=1e-9)
    assert hs.dp.delta(survey, epsilon=epsilon * 0.9).lower > 0
    assert hs.dp.epsilon(survey, delta=1e-3).upper < epsilon


def test_nothing_is_left_at_the_guarantee_without_delta() -> None:
    counts = ValueCounts.of(hs.GeometricDummies(ratio=0.25), kept=0.5)
    curve = TrueAmongEach.of(counts, k=3, n=10, kept=0.5, ratio=0.25)
    assert curve.pure == pytest.approx(math.log(5))
    assert curve.upper(curve.pure) == 0.0
    assert curve.upper(curve.pure - 1e-3) > 0


def test_one_dataset_is_as_good_as_another_among_true_reports() -> None:
    survey = hs.Protocol(randomizer=truth(3), shuffler=hs.BlanketMessages(p=0.5, honest=0.5), n=200)
    one = hs.dp.instance(survey, histogram=hs.Histogram(counts=[100, 60, 40]), delta=1e-3)
    every = hs.dp.epsilon(survey, delta=1e-3)
    assert (one.lower, one.upper) == (every.lower, every.upper)


@pytest.mark.parametrize("p", [pytest.param(0.5, marks=pytest.mark.slow), 1.0])
def test_figures_count_on_honest_people_only(p: float) -> None:
    """Whatever is asked of noisy reports beside messages of a share of the people is asked of that share alone."""
    noisy = hs.RandomizedResponse(k=4, epsilon=2.0)
    half = hs.Protocol(randomizer=noisy, shuffler=hs.BlanketMessages(p=p, honest=0.5), n=200)
    alone = hs.Protocol(randomizer=noisy, shuffler=hs.BlanketMessages(p=p), n=100)
    asked: list[Callable[[Any], hs.Bound]] = [
        lambda one: hs.dp.epsilon(one, delta=1e-4),
        lambda one: hs.dp.epsilon(one, delta=1e-4, reports_per_person=2),
        lambda one: hs.dp.compose([(one, 2)], delta=1e-4),
        hs.qif.vulnerability,
        lambda one: hs.qif.quick_vulnerability(one, adversary=hs.Strong()),
        lambda one: hs.qif.iid_vulnerability(one, frequencies=[0.25] * 4),
    ]
    if p == 1:
        asked.append(lambda one: hs.dp.published.hoeffding_epsilon(one, delta=1e-4))
        asked.append(lambda one: hs.dp.approximate(replace(one, n=200 * one.n), delta=1e-4))
    for ask in asked:
        assert (ask(half).lower, ask(half).upper) == (ask(alone).lower, ask(alone).upper)
    claims = [hs.dp.certificate(one, delta=1e-4) for one in (half, alone)]
    assert claims[0].epsilon == claims[1].epsilon
    assert claims[0].steps[1:] == claims[1].steps
    with pytest.raises(UnsupportedProtocolError):
        hs.dp.instance(half, histogram=hs.Histogram(counts=[50] * 4), delta=1e-3)


GROUPS = [(20, hs.RandomizedResponse(k=3, epsilon=1.0)), (20, hs.RandomizedResponse(k=3, epsilon=2.0))]


def of_groups(shuffler: Any) -> hs.MixedProtocol:
    return hs.MixedProtocol(groups=GROUPS, shuffler=shuffler)


def test_groups_with_different_noise_hide_among_messages_of_all_people() -> None:
    """Certain messages are a fixed number of dummies."""
    fixed = hs.dp.epsilon(of_groups(hs.Scrambler(dummies=40)), delta=1e-3)
    assert hs.dp.epsilon(of_groups(hs.BlanketMessages(p=1.0)), delta=1e-3) == fixed
    with pytest.raises(UnsupportedProtocolError, match="without people who collude"):
        hs.dp.epsilon(of_groups(hs.BlanketMessages(p=0.5, honest=0.9)), delta=1e-3)


@pytest.mark.slow
def test_a_random_number_of_messages_hides_groups_nearly_as_much_as_its_mean() -> None:
    fixed = hs.dp.epsilon(of_groups(hs.Scrambler(dummies=40)), delta=1e-3)
    # fixed.lower < uncertain epsilon < 1.1 fixed.upper, which two deltas show without a search for epsilon.
    uncertain = of_groups(hs.BlanketMessages(p=0.5, trials=2))
    assert hs.dp.delta(uncertain, epsilon=fixed.lower).upper > 1e-3
    assert hs.dp.delta(uncertain, epsilon=1.1 * fixed.upper).upper <= 1e-3


def test_a_number_that_is_drawn_at_once_misses_the_coins_by_no_more_than_the_slack() -> None:
    law, p = hs.DummyLaw.binomial(trials=12, p=0.3), Fraction(0.3)
    drawn = dict(zip(law.numbers.tolist(), law.parts, strict=True))
    coins = {d: math.comb(12, d) * p**d * (1 - p) ** (12 - d) for d in range(13)}
    off = sum(abs(Fraction(drawn.get(d, 0), 2**64) - coins[d]) for d in coins)
    assert off <= Fraction(law.numbers.size + 2, 2**64)
    with_slack = TrueAmongUniform.of(k=3, n=12, trials=12, p=0.3, numbers=law.numbers.size)
    assert with_slack.slack == (law.numbers.size + 2) * 2.0**-64
    assert with_slack.upper(5.0) >= TrueAmongUniform.of(k=3, n=12, trials=12, p=0.3).upper(5.0)


@pytest.mark.parametrize("k", [2, 5])
def test_somebody_who_sees_one_persons_messages_apart_learns_nearly_all(k: int) -> None:
    alone = hs.Protocol(randomizer=truth(k), shuffler=hs.BlanketMessages(p=0.5, trials=4), n=1)
    together = sum(math.comb(4, s) * (1 / k) ** s * (1 - 1 / k) ** (4 - s) * 2.0**-s for s in range(5))
    for epsilon in (1.0, 5.0, 50.0):
        assert hs.dp.delta(alone, epsilon=epsilon).upper >= together * (1 - 1e-9)
