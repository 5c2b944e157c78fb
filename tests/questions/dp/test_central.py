from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism, symmetric_law
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.mechanisms.shufflers.base import Shuffler
from oracles import dp_enumeration as oracle


def survey(k: int, epsilon: float, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler or hs.UniformShuffle(), n=n
    )


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_enumeration_of_every_dataset_lies_inside(n: int, k: int) -> None:
    for epsilon_0 in (0.3, 1.0, 3.0):
        protocol = survey(k, epsilon_0, n)
        truth = protocol.randomizer.law().truth  # type: ignore[attr-defined]
        for share in (0.0, 0.2, 0.6, 0.95):
            epsilon = share * epsilon_0
            exact = float(oracle.worst_delta(n, k, float(truth), math.exp(epsilon)))
            bound = hs.dp.delta(protocol, epsilon=epsilon)
            assert bound.lower - 1e-14 <= exact <= bound.upper + 1e-14
            if k == 2:
                assert bound.width <= 1e-9


@pytest.mark.parametrize(("k", "epsilon_0", "n", "others"), [(2, 1.5, 40, None), (3, 2.0, 5, None), (4, 0.7, 6, None)])
def test_the_witness_attains_the_lower_end(k: int, epsilon_0: float, n: int, others: None) -> None:
    del others
    protocol = survey(k, epsilon_0, n)
    bound = hs.dp.delta(protocol, epsilon=epsilon_0 / 3)
    assert bound.witness is not None
    assert sum(bound.witness.others) == n - 1
    truth = float(protocol.randomizer.law().truth)  # type: ignore[attr-defined]
    attained = float(oracle.delta_at(bound.witness.others, k, truth, math.exp(epsilon_0 / 3)))
    assert attained == pytest.approx(bound.lower, rel=1e-6)


@settings(max_examples=20)
@given(k=st.integers(2, 12), epsilon_0=st.floats(0.1, 6), n=st.integers(2, 5000), log_delta=st.floats(-60, -0.5))
def test_epsilon_and_delta_are_each_others_inverse(k: int, epsilon_0: float, n: int, log_delta: float) -> None:
    protocol, level = survey(k, epsilon_0, n), math.exp(log_delta)
    bound = hs.dp.epsilon(protocol, delta=level)
    assert 0 <= bound.lower <= bound.upper <= protocol.randomizer.local_epsilon
    assert hs.dp.delta(protocol, epsilon=bound.upper).upper <= level * (1 + 1e-6)
    assert bound.lower == 0 or hs.dp.delta(protocol, epsilon=bound.lower).lower >= level * (1 - 1e-4)


@settings(max_examples=8)
@given(
    k=st.sampled_from([2, 3, 7]),
    epsilon_0=st.floats(0.2, 4),
    n=st.integers(2, 3000),
    level=st.sampled_from([1e-2, 1e-6, 1e-12]),
)
def test_more_people_more_delta_less_noise(k: int, epsilon_0: float, n: int, level: float) -> None:
    base = hs.dp.epsilon(survey(k, epsilon_0, n), delta=level)
    slack = 1e-6
    assert hs.dp.epsilon(survey(k, epsilon_0, 2 * n), delta=level).lower <= base.upper * (1 + slack)
    assert hs.dp.epsilon(survey(k, epsilon_0, n), delta=level / 10).upper >= base.lower * (1 - slack)
    assert hs.dp.epsilon(survey(k, 1.3 * epsilon_0, n), delta=level).upper >= base.lower * (1 - slack)


@pytest.mark.parametrize(
    ("k", "n", "epsilon_0", "width"),
    [
        (2, 1000, 2.0, 5e-3),
        (2, 10**4, 5.0, 5e-3),
        (2, 10**9, 2.0, 5e-3),
        (3, 1000, 2.0, 1e-3),
        (5, 33_000, 2.0, 1e-3),
        (100, 10**5, 3.0, 1e-3),
        (3, 10**9, 2.0, 1e-3),
    ],
)
def test_brackets_are_narrow(k: int, n: int, epsilon_0: float, width: float) -> None:
    bound = hs.dp.epsilon(survey(k, epsilon_0, n), delta=1e-6)
    assert bound.kind == "bracket"
    assert bound.width <= width * bound.upper


@pytest.mark.parametrize("level", [1e-12, 1e-30])
def test_tiny_delta(level: float) -> None:
    for k in (2, 4):
        bound = hs.dp.epsilon(survey(k, 1.0, 10**6), delta=level)
        assert 0 < bound.lower <= bound.upper < 1
        assert bound.width <= 2e-3 * bound.upper


def test_checkpoints_of_the_theory() -> None:
    """A saturated case where all-at-a can win; the ends differ by some per cent at most."""
    bound = hs.dp.epsilon(survey(3, 5.0, 1000), delta=1e-6)
    assert bound.width <= 0.05 * bound.upper
    assert bound.witness is not None
    assert bound.witness.family == "all others at the target's value"


def test_without_shuffler_the_local_figure_is_the_central_one() -> None:
    protocol = survey(5, 2.0, 100, hs.NoShuffle())
    assert hs.dp.epsilon(protocol, delta=0.0).upper == 2.0
    law = symmetric_law(protocol.randomizer, for_what="a test")
    delta = hs.dp.delta(protocol, epsilon=1.0)
    assert delta.kind == "exact"
    assert delta.upper == pytest.approx(float(law.truth) - math.e * float(law.lie), rel=1e-12)
    epsilon = hs.dp.epsilon(protocol, delta=delta.upper)
    assert epsilon.kind == "exact"
    assert epsilon.upper == pytest.approx(1.0, rel=1e-8)
    assert hs.dp.delta(protocol, epsilon=2.5).upper == 0.0


def test_no_noise_gives_no_differential_privacy() -> None:
    protocol = survey(3, math.inf, 1000)
    assert hs.dp.epsilon(protocol, delta=1e-6).upper == math.inf
    assert hs.dp.epsilon(protocol, delta=1e-6).kind == "exact"
    assert hs.dp.delta(protocol, epsilon=30.0).upper == 1.0
    assert hs.dp.local_epsilon(protocol).upper == math.inf


@pytest.mark.parametrize("k", [2, 3])
def test_pure_epsilon_is_the_local_one(k: int) -> None:
    bound = hs.dp.epsilon(survey(k, 1.5, 50), delta=0.0)
    assert bound.kind == "exact"
    assert bound.upper == 1.5


@pytest.mark.parametrize("k", [2, 3])
def test_a_generous_delta_needs_no_epsilon(k: int) -> None:
    assert hs.dp.epsilon(survey(k, 0.5, 1000), delta=0.5).upper == 0.0


def test_delta_between_the_ends_at_zero_gives_a_lower_end_of_zero() -> None:
    protocol = survey(5, 2.0, 40)
    at_zero = hs.dp.delta(protocol, epsilon=0.0)
    assert at_zero.lower < at_zero.upper
    bound = hs.dp.epsilon(protocol, delta=(at_zero.lower + at_zero.upper) / 2)
    assert bound.lower == 0.0 < bound.upper


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_bad_epsilon_is_refused(value: float) -> None:
    with pytest.raises(InvalidInputError, match="`epsilon` must be finite and >= 0"):
        hs.dp.delta(survey(2, 1.0, 10), epsilon=value)


@pytest.mark.parametrize("value", [-1e-9, 1.0, math.nan])
def test_bad_delta_is_refused(value: float) -> None:
    with pytest.raises(InvalidInputError, match="`delta` must be in"):
        hs.dp.epsilon(survey(2, 1.0, 10), delta=value)


@dataclass(frozen=True, kw_only=True)
class Foggy(Shuffler):
    """A shuffler of which the accountant knows only that its order says something."""

    @property
    def reveals(self) -> Reveals:
        return Reveals.NOISY_ORDER

    def release(self, messages: npt.NDArray[np.int64], *, rng: object) -> npt.NDArray[np.int64]:
        del rng
        return messages

    def describe(self) -> str:
        return "fog"


def test_a_noisy_order_lies_between_the_uniform_shuffle_and_none() -> None:
    for k in (2, 5):
        bound, uniform = (hs.dp.epsilon(survey(k, 1.0, 100, shuffler), delta=1e-4) for shuffler in (Foggy(), None))
        assert (bound.lower, bound.witness) == (uniform.lower, uniform.witness)
        assert bound.upper == hs.dp.epsilon(survey(k, 1.0, 100, hs.NoShuffle()), delta=1e-4).upper
        assert hs.dp.epsilon(survey(k, 1.0, 100, Foggy()), delta=0.0).kind == "exact"


@pytest.mark.parametrize("k", [2, 3, 4])
def test_dummies_enumeration_lies_inside(k: int) -> None:
    for n, dummies, epsilon_0 in ((1, 2, 1.0), (3, 1, 2.0), (4, 3, 0.5), (3, 4, math.inf)):
        protocol = survey(k, epsilon_0, n, hs.Scrambler(dummies=dummies))
        truth = float(protocol.randomizer.law().truth)  # type: ignore[attr-defined]
        for epsilon in (0.0, 0.2, 0.8):
            exact = float(oracle.worst_delta(n, k, truth, math.exp(epsilon), dummies))
            bound = hs.dp.delta(protocol, epsilon=epsilon)
            assert bound.lower - 1e-14 <= exact <= bound.upper + 1e-14


def test_more_dummies_hide_better_even_without_noise() -> None:
    bounds = [
        hs.dp.epsilon(survey(5, math.inf, 100, hs.Scrambler(dummies=dummies)), delta=1e-6)
        for dummies in (5, 200, 2000, 20_000)
    ]
    assert bounds[0].upper == math.inf
    assert bounds[0].lower == 300.0
    finite = [bound.upper for bound in bounds[1:]]
    assert finite == sorted(finite, reverse=True)
    assert all(bound.width <= 0.02 * bound.upper for bound in bounds[2:])


def test_no_dummies_is_the_uniform_shuffle() -> None:
    for k in (2, 4):
        plain = hs.dp.epsilon(survey(k, 1.0, 500), delta=1e-6)
        assert hs.dp.epsilon(survey(k, 1.0, 500, hs.Scrambler(dummies=0)), delta=1e-6) == plain


def test_a_capped_scrambler_hides_no_less_than_one_without_a_cap() -> None:
    plain = hs.Protocol(randomizer=hs.TargetSampling(targets=5, sigma=0.4), shuffler=hs.Scrambler(dummies=9), n=12)
    capped = replace(plain, shuffler=hs.Scrambler(dummies=9, cap=12))
    assert hs.dp.epsilon(capped, delta=1e-3).upper <= hs.dp.epsilon(plain, delta=1e-3).upper * (1 + 1e-8)
    assert hs.dp.epsilon(capped, delta=0.0).upper < hs.dp.epsilon(plain, delta=0.0).upper
    flooded = replace(capped, randomizer=hs.TargetSampling(targets=5, sigma=0.4, flood=1))
    with pytest.raises(UnsupportedProtocolError, match="cap"):
        hs.dp.epsilon(flooded, delta=1e-3)


def test_sizes_beyond_the_tested_accuracy_are_refused() -> None:
    with pytest.raises(NumericalError, match="Use a smaller n"):
        hs.dp.epsilon(survey(2, 1.0, 10**12), delta=1e-6)


def random_small_cases(
    count: int, seed: int, *, largest_k: int, largest_n: int
) -> list[tuple[int, int, int, float, float]]:
    rng, cases = np.random.default_rng(seed), []
    for _ in range(count):
        k, n = int(rng.integers(2, largest_k + 1)), int(rng.integers(1, largest_n + 1))
        epsilon_0 = float(rng.uniform(0.1, 6))
        cases.append((k, n, int(rng.integers(0, 4)), epsilon_0, float(rng.uniform(0, epsilon_0))))
    return cases


def check_against_enumeration(k: int, n: int, dummies: int, epsilon_0: float, epsilon: float) -> None:
    protocol = survey(k, epsilon_0, n, hs.Scrambler(dummies=dummies))
    truth = float(protocol.randomizer.law().truth)  # type: ignore[attr-defined]
    exact = float(oracle.worst_delta(n, k, truth, math.exp(epsilon), dummies))
    bound = hs.dp.delta(protocol, epsilon=epsilon)
    assert bound.lower - 1e-13 <= exact <= bound.upper + 1e-13


@pytest.mark.parametrize("case", random_small_cases(60, 300, largest_k=4, largest_n=5), ids=str)
def test_random_small_cases_lie_inside(case: tuple[int, int, int, float, float]) -> None:
    check_against_enumeration(*case)


@pytest.mark.slow
@pytest.mark.parametrize("case", random_small_cases(300, 301, largest_k=6, largest_n=7), ids=str)
def test_three_hundred_small_cases_lie_inside(case: tuple[int, int, int, float, float]) -> None:
    check_against_enumeration(*case)


@settings(max_examples=12)
@given(k=st.sampled_from([2, 3, 8]), epsilon_0=st.floats(0.2, 5), n=st.integers(2, 2000), dummies=st.integers(0, 300))
def test_more_dummies_hide_better(k: int, epsilon_0: float, n: int, dummies: int) -> None:
    few = hs.dp.epsilon(survey(k, epsilon_0, n, hs.Scrambler(dummies=dummies)), delta=1e-6)
    many = hs.dp.epsilon(survey(k, epsilon_0, n, hs.Scrambler(dummies=2 * dummies + 1)), delta=1e-6)
    assert many.lower <= few.upper * (1 + 1e-6)
    assert many.upper <= few.upper * (1 + 1e-3)


def test_a_round_of_several_reports_or_of_another_accountant_is_asked_like_a_protocol() -> None:
    trips = hs.dp.per_person(survey(3, 1.0, 300), reports=3)
    assert hs.dp.epsilon(trips, delta=1e-6) == hs.dp.epsilon(survey(3, 1.0, 300), delta=1e-6, reports_per_person=3)
    assert hs.dp.delta(trips, epsilon=0.3) == hs.dp.delta(survey(3, 1.0, 300), epsilon=0.3, reports_per_person=3)
    with pytest.raises(InvalidInputError, match="reports_per_person"):
        hs.dp.epsilon(trips, delta=1e-6, reports_per_person=2)
    pytest.importorskip("dp_accounting")
    given = hs.dp.from_pld(hs.dp.to_pld(survey(3, 1.0, 300), delta=1e-6))
    assert hs.dp.epsilon(given, delta=1e-6).upper >= hs.dp.epsilon(survey(3, 1.0, 300), delta=1e-6).lower


@pytest.mark.parametrize(
    ("randomizer", "shuffler"),
    [
        (hs.RandomizedResponse(k=2, epsilon=1.5), hs.UniformShuffle()),
        (hs.RandomizedResponse(k=7, epsilon=2.0), hs.UniformShuffle()),
        (hs.UnaryEncoding(k=9, epsilon=2.0), hs.UniformShuffle()),
        (hs.SquareWave(bins=5, epsilon=1.0), hs.Scrambler(dummies=30)),
        (hs.BitFlipping(width=3, p=0.2), hs.UniformShuffle()),
        (hs.RandomizedResponse(k=3, epsilon=2.0), hs.Scrambler(dummies=hs.DummyLaw.binomial(trials=40, p=0.5))),
    ],
)
def test_a_tolerance_widens_a_certified_bracket_by_no_more(randomizer: Mechanism, shuffler: Shuffler) -> None:
    for n, delta, *tolerances in ((3, 1e-3, 0.01), (60, 1e-6, 0.001, 0.1), (2000, 1e-9, 0.1), (10**6, 1e-6, 0.01)):
        protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
        best = hs.dp.epsilon(protocol, delta=delta)
        for tolerance in tolerances:
            wide = hs.dp.epsilon(protocol, delta=delta, tolerance=tolerance)
            assert wide.lower <= best.upper * (1 + 1e-9)
            assert wide.upper >= best.lower * (1 - 1e-9)
            assert wide.upper <= max(wide.lower * (1 + tolerance), best.upper * (1 + 1e-9))


@pytest.mark.parametrize(
    "randomizer",
    [
        hs.RandomizedResponse(k=2, epsilon=1.5),
        hs.RandomizedResponse(k=7, epsilon=2.0),
        hs.UnaryEncoding(k=9, epsilon=2.0),
        hs.SquareWave(bins=5, epsilon=1.0),
    ],
)
def test_several_figures_are_those_of_single_calls(randomizer: Mechanism) -> None:
    deltas, people = np.array([0.0, 0.3, 1e-3, 1e-9]), np.array([[1], [300], [20_000], [10**8]])
    for shuffler in (hs.UniformShuffle(), hs.NoShuffle()):
        protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=300)
        figures = hs.dp.epsilons(protocol, delta=deltas, people=people)
        loose = hs.dp.epsilons(protocol, delta=deltas, people=people, tolerance=0.01)
        assert figures.lower.shape == loose.upper.shape == (4, 4)
        for place in np.ndindex(4, 4):
            alone = hs.dp.epsilon(replace(protocol, n=int(people[place[0], 0])), delta=float(deltas[place[1]]))
            assert figures.lower[place] == pytest.approx(alone.lower, rel=1e-7)
            assert figures.upper[place] == pytest.approx(alone.upper, rel=1e-7)
            low, high = float(loose.lower[place]), float(loose.upper[place])
            assert low <= alone.upper * (1 + 1e-9)
            assert high >= alone.lower * (1 - 1e-9)
            assert high <= max(low * 1.01, alone.upper * (1 + 1e-7))
        single = hs.dp.epsilons(protocol, delta=1e-3)
        assert single.lower.shape == ()
        assert single[()].upper == pytest.approx(figures.upper[1, 2], rel=1e-7)
        assert len(hs.dp.epsilons(protocol, delta=[])) == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": [1e-6, 1.0]}, "delta"),
        ({"delta": "small"}, "delta"),
        ({"delta": 1e-6, "people": [10, 0]}, "people.*integers >= 1"),
        ({"delta": 1e-6, "people": [10.5, 20]}, "people.*integers >= 1"),
        ({"delta": [1e-6, 1e-7], "people": [1, 2, 3]}, r"broadcast.*\(2,\) and \(3,\)"),
        ({"delta": 1e-6, "tolerance": 0.3}, "tolerance"),
    ],
)
def test_several_figures_name_a_wrong_argument(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.dp.epsilons(survey(3, 1.0, 10), **wrong)
    with pytest.raises(InvalidInputError, match="protocol"):
        hs.dp.epsilons(hs.dp.per_person(survey(3, 1.0, 10), reports=2), delta=1e-6, people=[10])


def test_a_small_crowd_after_a_large_one_has_its_own_bound() -> None:
    """Pools in sequence are of use in the small crowds alone."""
    hidden = hs.Scrambler(dummies=7)
    few = hs.Protocol(randomizer=hs.HadamardResponse(k=5, epsilon=3.7), shuffler=hidden, n=415)
    _, figure = hs.dp.epsilons(few, delta=2e-5, people=[20_000, 415]).upper
    assert figure == pytest.approx(hs.dp.epsilon(few, delta=2e-5).upper, rel=2e-8)


@pytest.mark.parametrize("tolerance", [-0.1, 0.21, math.nan])
def test_a_tolerance_outside_its_limits_is_refused(tolerance: float) -> None:
    with pytest.raises(InvalidInputError, match="tolerance"):
        hs.dp.epsilon(survey(3, 1.0, 10), delta=1e-6, tolerance=tolerance)
