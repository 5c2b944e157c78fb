"""A random number of dummies: every figure against enumeration, and what its ends have to keep."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws import blanket_bound, symmetric_dummies
from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.symmetric_dummies import HeldAlike
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.numerics.binomial import LOG_TAIL
from oracles import dummy_mixture

ROUNDING = 1e-9


def numbers_of(law: hs.DummyLaw) -> dict[int, Fraction]:
    """The implemented law, in rationals."""
    return {d: Fraction(part, 2**64) for d, part in zip(law.numbers.tolist(), law.parts, strict=True)}


def rows_of(randomizer: Mechanism) -> list[list[Fraction]]:
    return [[Fraction(mass) for mass in row] for row in randomizer.channel().matrix.tolist()]


def small_law(rng: np.random.Generator) -> hs.DummyLaw:
    kind = rng.integers(4)
    if kind == 0:
        return hs.DummyLaw.binomial(trials=int(rng.integers(1, 4)), p=float(rng.uniform(0.1, 0.9)))
    if kind == 1:
        return hs.DummyLaw.discrete_laplace(center=1, scale=float(rng.uniform(0.3, 3)))
    numbers = rng.choice(5, size=2 + kind - 2, replace=False)
    shares = rng.dirichlet(np.ones(numbers.size))
    return hs.DummyLaw.of(dict(zip(numbers.tolist(), (shares / shares.sum()).tolist(), strict=True)))


def small_randomizer(rng: np.random.Generator) -> Mechanism:
    k, epsilon = int(rng.integers(2, 4)), float(rng.uniform(0.2, 3))
    match int(rng.integers(3)):
        case 0:
            return hs.RandomizedResponse(k=k, epsilon=epsilon)
        case 1:
            return hs.SubsetSelection(k=3, w=2, epsilon=epsilon)
        case _:
            matrix = rng.dirichlet(np.ones(3), size=k) * 0.9 + 0.1 / 3
            return hs.MatrixRandomizer(channel=hs.Channel(matrix=matrix / matrix.sum(axis=1, keepdims=True)))


@pytest.mark.parametrize("cases", [12, pytest.param(250, marks=pytest.mark.slow)])
def test_ends_hold_the_enumerated_divergence(cases: int) -> None:
    rng, tight = np.random.default_rng(cases), 0
    for _ in range(cases):
        law, randomizer, n = small_law(rng), small_randomizer(rng), int(rng.integers(1, 4))
        protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=law), n=n)
        epsilon = float(rng.uniform(0, 1) * randomizer.local_epsilon)
        true = float(dummy_mixture.worst_delta(rows_of(randomizer), n, Fraction(math.exp(epsilon)), numbers_of(law)))
        found = hs.dp.delta(protocol, epsilon=epsilon)
        assert found.lower <= true * (1 + ROUNDING) + 1e-13
        assert found.upper >= true * (1 - ROUNDING) - 1e-13
        tight += found.upper <= true * (1 + 1e-6) + 1e-12
    assert tight > cases / 6  # two values, and whoever is alone


def test_two_values_are_exact() -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        law, n, local = small_law(rng), int(rng.integers(1, 5)), float(rng.uniform(0.2, 3))
        randomizer = hs.RandomizedResponse(k=2, epsilon=local)
        protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=law), n=n)
        epsilon = float(rng.uniform(0, 1) * local)
        true = float(dummy_mixture.worst_delta(rows_of(randomizer), n, Fraction(math.exp(epsilon)), numbers_of(law)))
        found = hs.dp.delta(protocol, epsilon=epsilon)
        assert found.upper >= true * (1 - ROUNDING)
        assert found.lower <= true * (1 + ROUNDING)
        # Equal where one composition is worst for all numbers of dummies: in most cases.
        assert true * 0.8 - 1e-12 <= found.lower
        assert found.upper <= true * 1.25 + 1e-12
        back = hs.dp.epsilon(protocol, delta=true) if 0 < true < 1 else None
        assert back is None or back.lower <= epsilon * (1 + 1e-6) + 1e-9
        assert back is None or back.upper >= epsilon * (1 - 1e-6) - 1e-9


def test_two_rounds_hold_the_enumerated_divergence() -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        law, n = hs.DummyLaw.of({0: float(share := rng.uniform(0.2, 0.8)), 2: 1 - float(share)}), 2
        randomizer = hs.RandomizedResponse(k=2, epsilon=float(rng.uniform(0.3, 2)))
        protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=law), n=n)
        epsilon = float(rng.uniform(0, 1.2) * randomizer.local_epsilon)
        true = float(dummy_mixture.twice(rows_of(randomizer), n, Fraction(math.exp(epsilon)), numbers_of(law)))
        found = hs.dp.compose_delta([(protocol, 2)], epsilon=epsilon)
        assert found.lower <= true * (1 + ROUNDING) + 1e-13
        assert found.upper >= true * (1 - ROUNDING) - 1e-13
        assert found.lower >= 0.2 * true - 1e-12


def test_one_dataset_holds_the_enumerated_divergence() -> None:
    rng = np.random.default_rng(4)
    for k in (2, 3, 3, 2):
        law, randomizer = small_law(rng), hs.RandomizedResponse(k=k, epsilon=float(rng.uniform(0.5, 2)))
        people = tuple(rng.multinomial(3, np.ones(k) / k).tolist())
        protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=law), n=3)
        found = hs.dp.instance(protocol, histogram=hs.Histogram(counts=people), delta=0.05)
        deltas = [
            float(
                dummy_mixture.instance_delta(rows_of(randomizer), people, Fraction(math.exp(epsilon)), numbers_of(law))
            )
            for epsilon in (found.lower, found.upper)
        ]
        assert deltas[0] >= 0.05 * (1 - 1e-6) or found.lower == 0
        assert deltas[1] <= 0.05 * (1 + 1e-6)


def survey(randomizer: Mechanism, dummies: hs.DummyLaw | int, n: int = 500) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=dummies), n=n)


LARGE = [
    hs.DummyLaw.binomial(trials=300, p=0.5),
    hs.DummyLaw.discrete_laplace(center=60, scale=10.0),
    hs.DummyLaw.of({30: 0.25, 200: 0.75}),
]


@pytest.mark.parametrize("law", [*(pytest.param(law, marks=pytest.mark.slow) for law in LARGE[:2]), LARGE[2]], ids=repr)
def test_figures_lie_between_those_of_the_fewest_and_the_most(law: hs.DummyLaw) -> None:
    for randomizer in (hs.RandomizedResponse(k=2, epsilon=2.0), hs.RandomizedResponse(k=9, epsilon=3.0)):
        drawn = hs.dp.epsilon(survey(randomizer, law), delta=1e-6)
        fewest, middle, most = (
            hs.dp.epsilon(survey(randomizer, int(number)), delta=1e-6)
            for number in (law.numbers[0], law.middle, law.numbers[-1])
        )
        assert most.lower <= drawn.upper
        assert drawn.lower <= fewest.upper
        assert drawn.upper / drawn.lower < 1.02 * max(end.upper / end.lower for end in (fewest, middle))
        # The ends cross the level that was asked for.
        delta = hs.dp.delta(survey(randomizer, law), epsilon=drawn.upper)
        assert delta.lower <= 1e-6


def test_with_few_numbers_the_mean_is_that_of_the_figures() -> None:
    randomizer, law = hs.RandomizedResponse(k=5, epsilon=2.0), LARGE[2]
    found = hs.dp.delta(survey(randomizer, law), epsilon=0.1)
    parts = [hs.dp.delta(survey(randomizer, number), epsilon=0.1) for number in (30, 200)]
    assert found.upper == pytest.approx(0.25 * parts[0].upper + 0.75 * parts[1].upper, rel=1e-6)
    assert found.lower == pytest.approx(0.25 * parts[0].lower + 0.75 * parts[1].lower, rel=1e-6)


def test_looking_at_more_numbers_only_narrows() -> None:
    protocol = survey(hs.SubsetSelection(k=4, w=2, epsilon=2.0), LARGE[1])
    curve = privacy_curve(protocol)
    assert isinstance(curve, type(privacy_curve(protocol)))
    shares = (1.0, 0.3, 0.1, 0.05)
    ends = [curve.some_upper(0.1, share) for share in shares]  # type: ignore[attr-defined]
    assert [end for end, _ in ends] == sorted((end for end, _ in ends), reverse=True)
    assert [len(numbers) for _, numbers in ends] == sorted(len(numbers) for _, numbers in ends)


@pytest.mark.parametrize(("n", "trials", "p"), [(20, 400, 0.5), (1000, 400, 0.1)])
def test_quick_figures_hold_where_few_dummies_have_another_curve_than_many(n: int, trials: int, p: float) -> None:
    shuffler = hs.Scrambler(dummies=hs.DummyLaw.binomial(trials=trials, p=p))
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=shuffler, n=n)
    quick, exact = hs.dp.epsilon(protocol, delta=1e-3, tolerance=0.03), hs.dp.epsilon(protocol, delta=1e-3)
    assert quick.lower <= exact.upper <= quick.upper * 1.001
    assert exact.lower * 0.97 <= quick.lower <= quick.upper <= exact.upper * 1.03


@pytest.mark.parametrize("law", LARGE)
def test_delta_between_a_few_numbers_is_interpolated(law: hs.DummyLaw) -> None:
    curve = privacy_curve(survey(hs.RandomizedResponse(k=2, epsilon=1.0), law, n=300))
    profile, place = curve.profile(0.2), law.middle  # type: ignore[attr-defined]
    assert list(profile) == law.numbers.tolist()
    assert [*profile.values()] == sorted(profile.values(), reverse=True)
    alone = survey(hs.RandomizedResponse(k=2, epsilon=1.0), place, n=300)
    assert profile[place] == pytest.approx(hs.dp.delta(alone, epsilon=0.2).upper, rel=0.02)
    assert curve.likely(0.2) == pytest.approx(curve.delta(0.2).upper, rel=0.2)


def test_pure_guarantee_is_that_of_the_fewest() -> None:
    protocol = survey(hs.RandomizedResponse(k=4, epsilon=2.0), LARGE[0])
    assert hs.dp.epsilon(protocol, delta=0.0) == hs.dp.epsilon(survey(protocol.randomizer, 0), delta=0.0)


def test_without_noise_no_dummies_at_all_give_everything_away() -> None:
    law = hs.DummyLaw.of({0: 0.125, 500: 0.875})
    protocol = survey(hs.RandomizedResponse(k=3, epsilon=math.inf), law, n=50)
    assert hs.dp.epsilon(protocol, delta=1e-3).lower == math.inf
    assert hs.dp.delta(protocol, epsilon=1.0).lower == pytest.approx(0.125, rel=1e-9)
    assert hs.dp.delta(protocol, epsilon=1.0).upper < 0.13
    assert hs.dp.epsilon(protocol, delta=0.2).upper < 2


def test_several_rounds_keep_both_ends() -> None:
    law = hs.DummyLaw.binomial(trials=14, p=0.5)
    protocol = survey(hs.RandomizedResponse(k=2, epsilon=1.0), law, n=40)
    alone, both = (hs.dp.compose([(protocol, times)], delta=1e-6) for times in (1, 4))
    assert both.lower > 1.5 * alone.lower
    assert both.upper < 4 * alone.upper
    assert both.upper / both.lower < 1.1


def test_every_law_of_a_report_is_answered() -> None:
    law = hs.DummyLaw.of({0: 0.5, 20: 0.5})
    for randomizer in (
        hs.BitFlipping(width=1, p=0.3),
        hs.BitFlipping(width=2, p=0.3),
        hs.LocalHashing(k=5, g=3, epsilon=1.0),
        hs.SubsetSelection(k=4, w=2, epsilon=1.0),
    ):
        found, *ends = (hs.dp.delta(survey(randomizer, dummies, n=60), epsilon=0.2) for dummies in (law, 0, 20))
        assert found.lower > 0
        assert found.lower <= sum(end.upper for end in ends) / 2
        assert found.upper <= sum(end.upper for end in ends) / 2 * (1 + 1e-9)


def test_target_n_is_found() -> None:
    protocol = survey(hs.RandomizedResponse(k=2, epsilon=1.0), LARGE[2], n=1_000)
    found = hs.dp.calibrate(protocol, parameter="n", epsilon=0.1, delta=1e-6)
    assert found.bound.upper <= 0.1
    fixed = hs.dp.calibrate(protocol, parameter="dummies", epsilon=0.1, delta=1e-6)
    assert fixed.protocol.shuffler.dummy_law is None


def test_published_bounds_say_that_they_need_a_number() -> None:
    protocol = survey(hs.RandomizedResponse(k=2, epsilon=1.0), LARGE[2])
    with pytest.raises(UnsupportedProtocolError, match=r"protocol\.with_dummies"):
        hs.dp.published.hoeffding_delta(protocol, epsilon=0.1)


def test_one_table_for_all_numbers_of_dummies_is_as_good_as_a_table_for_each() -> None:
    rng = np.random.default_rng(6)
    for n in (1, 2, 3, 40, 400):
        law, local = hs.DummyLaw.binomial(trials=max(3, n // 2), p=float(rng.uniform(0.3, 0.9))), rng.uniform(0.3, 3)
        randomizer, most = hs.RandomizedResponse(k=3, epsilon=float(local)), int(law.numbers[-1])
        report = randomizer.law().symmetric
        assert report is not None
        theta, lie, epsilon = float(report.theta), float(report.lie), float(local / 2 / math.sqrt(n))
        upper = BlanketBound.random(k=3, n=n, theta=theta, lie=lie, dummies=law, log_tail=LOG_TAIL).upper(epsilon)
        alike = HeldAlike.of(report, n=n, dummies=most, counted=law)
        assert alike is not None
        lower = alike.lower_third(epsilon)
        if n <= 3:
            true = float(
                dummy_mixture.worst_delta(rows_of(randomizer), n, Fraction(math.exp(epsilon)), numbers_of(law))
            )
            assert lower * (1 - ROUNDING) <= true <= upper * (1 + ROUNDING)
        uppers, lowers = [], []
        for number in law.numbers.tolist():
            truth = float(report.truth)
            uppers.append(BlanketBound.of(k=3, n=n, truth=truth, lie=lie, dummies=number).upper(epsilon))
            each = HeldAlike.of(report, n=n, dummies=max(number, 1))
            assert each is not None
            lowers.append(each.lower_third(epsilon))
        assert upper == pytest.approx(law.probabilities @ uppers, rel=1e-3)
        if n > 3:
            assert lower <= law.probabilities @ lowers * (1 + 1e-3)
            assert lower == pytest.approx(law.probabilities @ lowers, rel=0.02)


def test_numbers_of_dummies_that_share_a_row_only_widen_the_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    law, n, epsilon = hs.DummyLaw.binomial(trials=300, p=0.5), 400, 0.02
    report = hs.RandomizedResponse(k=3, epsilon=1.0).law().symmetric
    assert report is not None
    truth, theta, lie, most = float(report.truth), float(report.theta), float(report.lie), int(law.numbers[-1])
    mean = sum(
        chance * BlanketBound.of(k=3, n=1, truth=truth, lie=lie, dummies=number).upper(epsilon)
        for number, chance in zip(law.numbers.tolist(), law.probabilities.tolist(), strict=True)
    )
    fine = HeldAlike.of(report, n=n, dummies=most, counted=law)
    monkeypatch.setattr(blanket_bound, "_STEP", 0.1)
    monkeypatch.setattr(symmetric_dummies, "_ROW", 6.0)
    upper = BlanketBound.random(k=3, n=1, theta=theta, lie=lie, dummies=law, log_tail=LOG_TAIL).upper(epsilon)
    coarse = HeldAlike.of(report, n=n, dummies=most, counted=law)
    assert fine is not None
    assert coarse is not None
    assert mean * (1 + 1e-3) < upper < 1.3 * mean
    assert coarse.lower_third(epsilon) < fine.lower_third(epsilon) * (1 - 1e-3)
