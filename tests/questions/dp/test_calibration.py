from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers.base import Shuffler
from hushuffle.questions.dp import calibration
from hushuffle.questions.dp.calibration import Calibration, ParameterName, calibrate, excess, with_local_epsilon
from plain_protocols import Opaque


def protocol(k: int, epsilon: float, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler or hs.UniformShuffle(), n=n
    )


def check(found: Calibration) -> None:
    """The value meets the target, by the very figures that everybody reads; the value beyond does not."""
    again = hs.dp.delta(found.protocol, epsilon=found.epsilon)
    assert again.upper <= found.delta * (1 + 1e-6)
    assert found.bound.upper <= found.epsilon
    assert hs.dp.epsilon(found.protocol, delta=found.delta).upper <= found.epsilon * (1 + 1e-6) + 1e-12
    if found.beyond_bound is not None:
        assert found.beyond_bound.upper >= found.epsilon * (1 - 1e-6)
        assert abs(found.beyond - found.value) <= max(1.1e-4 * found.value, 1 if found.parameter == "n" else 0)


@pytest.mark.parametrize(
    ("k", "n", "start", "target"),
    [
        (2, 1000, 1.0, 0.1),
        pytest.param(2, 10**9, 30.0, 1e-3, marks=pytest.mark.slow),
        pytest.param(3, 300, 0.2, 0.5, marks=pytest.mark.slow),
        (4, 10, 2.0, 1.0),
        (3, 100, math.inf, 0.7),
    ],
)
def test_largest_local_epsilon(k: int, n: int, start: float, target: float) -> None:
    found = calibrate(protocol(k, start, n), parameter="epsilon", epsilon=target, delta=1e-6)
    check(found)
    assert found.beyond > found.value >= target
    assert found.protocol.randomizer.local_epsilon == pytest.approx(found.value)


@pytest.mark.parametrize(
    ("k", "epsilon_0", "start", "target"),
    [
        (2, 2.0, 1000, 0.1),
        pytest.param(2, 2.0, 10**6, 0.1, marks=pytest.mark.slow),
        (3, 2.0, 7, 1.99),
        (3, 1.0, 1, 0.4),
    ],
)
def test_smallest_n(k: int, epsilon_0: float, start: int, target: float) -> None:
    found = calibrate(protocol(k, epsilon_0, start), parameter="n", epsilon=target, delta=1e-6)
    check(found)
    assert found.beyond < found.value == found.protocol.n
    assert str(found).startswith(f"n = {found.protocol.n:,}: epsilon ")


def test_the_start_does_not_matter() -> None:
    found = [calibrate(protocol(2, start, 500), parameter="epsilon", epsilon=0.2, delta=1e-5) for start in (0.1, 9.0)]
    assert found[0].value == pytest.approx(found[1].value, rel=3e-4)


def test_the_two_questions_are_each_others_inverse() -> None:
    people = calibrate(protocol(2, 1.5, 100), parameter="n", epsilon=0.2, delta=1e-6)
    noise = calibrate(people.protocol, parameter="epsilon", epsilon=0.2, delta=1e-6)
    assert noise.value == pytest.approx(1.5, rel=1e-3)


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_certified_ends_are_monotone_where_the_search_relies_on_it(k: int) -> None:
    """Up to the width of bins: 0.3 % in delta at worst here."""
    by_noise = [excess(protocol(k, value, 1000), 0.2, 1e-6) for value in np.geomspace(0.3, 8, 12)]
    by_people = [excess(protocol(k, 2.0, round(n)), 0.2, 1e-6) for n in np.geomspace(100, 3e4, 12)]
    assert all(after >= before - 3e-3 for before, after in itertools.pairwise(by_noise))
    assert all(after <= before + 3e-3 for before, after in itertools.pairwise(by_people))


def test_a_local_target_needs_no_crowd() -> None:
    found = calibrate(protocol(3, 2.0, 50), parameter="n", epsilon=2.5, delta=1e-6)
    assert (found.value, found.beyond, found.beyond_bound) == (1, 0, None)
    assert calibrate(protocol(3, 2.0, 2), parameter="n", epsilon=2.5, delta=1e-6).value == 1
    assert calibrate(protocol(3, 2.0, 1), parameter="n", epsilon=2.5, delta=1e-6).value == 1


def test_without_shuffler_the_target_is_local() -> None:
    found = calibrate(protocol(3, 2.0, 50, hs.NoShuffle()), parameter="epsilon", epsilon=1.0, delta=1e-9)
    assert found.value == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(InvalidInputError, match="some n up to 1,000,000,000"):
        calibrate(protocol(3, 2.0, 50, hs.NoShuffle()), parameter="n", epsilon=1.0, delta=1e-9)


def test_no_epsilon_at_all() -> None:
    found = calibrate(protocol(2, 1.0, 1000), parameter="epsilon", epsilon=0.0, delta=1e-3)
    check(found)
    assert 0 < found.value < 0.5


def test_the_largest_local_epsilon_that_is_tried() -> None:
    found = calibrate(protocol(2, 39.0, 3), parameter="epsilon", epsilon=40.0, delta=1e-6)
    assert (found.value, found.beyond, found.beyond_bound) == (40.0, math.inf, None)


def test_a_randomizer_without_epsilon() -> None:
    with pytest.raises(UnsupportedProtocolError, match="Opaque has no parameter `epsilon`"):
        with_local_epsilon(hs.Protocol(randomizer=Opaque(), shuffler=hs.UniformShuffle(), n=9), 1.0)


@pytest.mark.parametrize(
    ("parameter", "epsilon_0", "target", "level", "message"),
    [
        ("k", 1.0, 1.0, 1e-6, "`parameter` must be one of epsilon, n, dummies, messages, rounds, got parameter='k'"),
        ("n", 1.0, -1.0, 1e-6, "`epsilon` must be finite and >= 0"),
        ("n", 1.0, 50.0, 1e-6, "`epsilon` must be at most 40 as a target"),
        ("epsilon", 1.0, 1.0, 0.0, r"`delta` must be in \(0, 1\)"),
        ("n", math.inf, 1.0, 1e-6, "a target that some n meets.* Without noise, no number of people protects"),
        ("n", 1.0, 0.0, 1e-12, "some n up to 1,000,000,000 meets.*Use a smaller local epsilon"),
        ("epsilon", 1.0, 0.0, 1e-15, "a value that some local epsilon achieves.*allow a larger epsilon or delta"),
    ],
)
def test_what_cannot_be_met(
    parameter: ParameterName, epsilon_0: float, target: float, level: float, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        calibrate(protocol(2, epsilon_0, 3), parameter=parameter, epsilon=target, delta=level)


def test_the_fewest_dummies() -> None:
    base = hs.Protocol(randomizer=hs.RandomizedResponse(k=20, epsilon=3.0), shuffler=hs.UniformShuffle(), n=2000)
    found = hs.dp.calibrate(base, parameter="dummies", epsilon=0.2, delta=1e-5)
    assert found.bound.upper <= 0.2
    assert hs.dp.delta(found.protocol, epsilon=0.2).upper <= 1e-5
    assert found.beyond_bound is not None
    assert found.beyond_bound.upper > 0.2
    assert found.value - found.beyond <= max(1, 1e-3 * found.value)
    assert found.protocol.shuffler == hs.Scrambler(dummies=int(found.value))
    assert "dummies = " in str(found)
    enough = hs.dp.calibrate(base, parameter="dummies", epsilon=2.9, delta=1e-5)
    assert enough.value == 0
    assert enough.beyond_bound is None


def test_dummies_hide_what_is_not_noisy() -> None:
    bare = hs.Protocol(randomizer=hs.RandomizedResponse(k=10, epsilon=math.inf), shuffler=hs.Scrambler(dummies=5), n=50)
    found = hs.dp.calibrate(bare, parameter="dummies", epsilon=0.5, delta=1e-6)
    assert hs.dp.epsilon(found.protocol, delta=1e-6).upper <= 0.5 * (1 + 1e-6)


def test_dummies_need_a_shuffler() -> None:
    with pytest.raises(UnsupportedProtocolError, match="NoShuffle supports no dummies"):
        hs.dp.calibrate(
            hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=5),
            parameter="dummies",
            epsilon=0.5,
            delta=1e-6,
        )


@pytest.mark.parametrize(
    ("n", "target", "delta"),
    # The large one takes ten seconds, and goes the same way.
    [(100, 1.0, 1e-3), pytest.param(20_000, 0.3, 1e-6, marks=pytest.mark.slow)],
)
def test_the_most_rounds(n: int, target: float, delta: float) -> None:
    weekly = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=1.0), shuffler=hs.UniformShuffle(), n=n)
    found = hs.dp.calibrate(weekly, parameter="rounds", epsilon=target, delta=delta)
    assert found.beyond == found.value + 1
    assert found.value > 1
    assert hs.dp.compose([(weekly, int(found.value))], delta=delta).upper <= target * (1 + 1e-6)
    assert found.beyond_bound is not None
    assert found.beyond_bound.upper > target


@pytest.mark.parametrize(
    ("k", "epsilon_0", "n", "target"), [(2, 1.0, 50, 1.0), pytest.param(20, 1.0, 5000, 0.1, marks=pytest.mark.slow)]
)
def test_rounds_are_what_compose_says(k: int, epsilon_0: float, n: int, target: float) -> None:
    # Two computations differed by 0.2 % in the second case: 2,268 rounds at most 0.1000, or 0.1002.
    daily = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon_0), shuffler=hs.UniformShuffle(), n=n)
    found = hs.dp.calibrate(daily, parameter="rounds", epsilon=target, delta=0.1)
    there = hs.dp.compose([(daily, int(found.value))], delta=0.1)
    assert found.bound.upper == pytest.approx(there.upper, rel=1e-6)
    assert found.bound.lower == there.lower
    assert there.upper <= target * (1 + 1e-6)
    assert found.beyond_bound == hs.dp.compose([(daily, int(found.beyond))], delta=0.1)
    assert found.beyond_bound is not None
    assert found.beyond_bound.upper > target
    assert found.beyond <= found.value * (1 + 2e-4) + 1


def test_rounds_that_cannot_be() -> None:
    weekly = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=1.0), shuffler=hs.UniformShuffle(), n=200)
    with pytest.raises(InvalidInputError, match="A single round already exceeds"):
        hs.dp.calibrate(weekly, parameter="rounds", epsilon=0.01, delta=1e-6)


def test_rounds_that_nothing_limits() -> None:
    faint = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1e-10), shuffler=hs.NoShuffle(), n=1)
    with pytest.raises(InvalidInputError, match="no limit of rounds is needed"):
        hs.dp.calibrate(faint, parameter="rounds", epsilon=2.0, delta=1e-3)


@pytest.mark.parametrize("limit", [18, 24])
def test_rounds_end_where_compose_does_even_if_the_search_does_not(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "rounds_meet", lambda *_args, **_kwargs: lambda times: times <= limit)
    local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.2), shuffler=hs.NoShuffle(), n=1)
    found = hs.dp.calibrate(local, parameter="rounds", epsilon=1.0, delta=0.1)
    assert (found.value, found.beyond) == (21, 22)
    assert found.bound == hs.dp.compose([(local, 21)], delta=0.1)
    assert found.beyond_bound == hs.dp.compose([(local, 22)], delta=0.1)


@pytest.mark.parametrize(("parameter", "target"), [("epsilon", 0.5), ("n", 0.5), ("dummies", 0.1), ("rounds", 3.0)])
def test_the_search_tells_what_it_tries_and_how_far_it_is(parameter: ParameterName, target: float) -> None:
    told: list[tuple[str, float]] = []
    asked = protocol(2, 1.0, 300)
    found = calibrate(
        asked,
        parameter=parameter,
        epsilon=target,
        delta=1e-6,
        progress=lambda stage, share: told.append((stage, share)),
    )
    assert found == calibrate(asked, parameter=parameter, epsilon=target, delta=1e-6)
    shares = [share for _, share in told]
    assert shares == sorted(shares), "never backwards"
    assert shares[0] == 0
    assert told[-1] == ("done", 1.0)
    assert sum(stage.startswith(f"trying {parameter} = ") for stage, _ in told) > 3
    assert len(set(shares)) > 3


@pytest.mark.parametrize("shuffler", [hs.BlanketMessages(p=0.5), hs.FakesPerValue(p=1e-3)])
@pytest.mark.parametrize(("k", "n"), [(10, 2000), (1000, 10**5)])
def test_the_fewest_messages_are_found(shuffler: hs.BlanketMessages | hs.FakesPerValue, k: int, n: int) -> None:
    truth = hs.RandomizedResponse(k=k, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=shuffler, n=n)
    found = hs.dp.calibrate(survey, parameter="messages", epsilon=0.9, delta=1e-6)
    assert found.protocol.shuffler.own_messages == pytest.approx(found.value)
    assert hs.dp.epsilon(found.protocol, delta=1e-6).upper <= 0.9 * (1 + 1e-6)
    assert found.beyond < found.value < found.beyond * 1.0002
    assert found.beyond_bound is not None
    assert found.beyond_bound.upper > 0.9
    assert str(found).startswith("messages = ")


def test_messages_that_nobody_sends_are_not_looked_for() -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100)
    with pytest.raises(UnsupportedProtocolError, match="supports one message per person"):
        hs.dp.calibrate(survey, parameter="messages", epsilon=1.0, delta=1e-6)
    few = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=math.inf), shuffler=hs.FakesPerValue(p=0.5), n=10)
    with pytest.raises(InvalidInputError, match="a value that some number of messages achieves"):
        hs.dp.calibrate(few, parameter="messages", epsilon=0.01, delta=1e-9)


@pytest.mark.parametrize("shuffler", [hs.BlanketMessages(p=1.0), hs.BlanketMessages(p=0.25, trials=4)])
def test_where_reports_hide_enough_next_to_no_messages_are_needed(shuffler: hs.BlanketMessages) -> None:
    """The noise of the reports meets the target alone: there is no number of messages that misses it."""
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=4, epsilon=1.0), shuffler=shuffler, n=200)
    least = hs.dp.calibrate(survey, parameter="messages", epsilon=2.0, delta=1e-4)
    assert 0 < least.value < 1e-10
    assert (least.beyond, least.beyond_bound) == (0.0, None)
    assert least.bound.upper <= 1.0  # at most the local epsilon of a report


def test_more_fakes_of_each_value_than_hide_most_are_not_tried() -> None:
    """Privacy is best at p = 1/2, and the same at 1 - p: everybody knows that everything is there at p = 1."""
    truth = hs.RandomizedResponse(k=10, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.FakesPerValue(p=0.2), n=180)
    ends = [hs.dp.epsilon(replace(survey, shuffler=hs.FakesPerValue(p=p)), delta=1e-6) for p in (0.2, 0.4, 0.5, 0.6)]
    assert ends[0].lower > ends[1].upper > ends[1].lower > ends[2].upper
    assert ends[3].upper == pytest.approx(ends[1].upper, rel=1e-6)
    for start in (0.2, 0.9):
        there = replace(survey, shuffler=hs.FakesPerValue(p=start))
        found = hs.dp.calibrate(there, parameter="messages", epsilon=1.0, delta=1e-6)
        assert 2.9 < found.value < 3.1
        assert found.bound.upper <= 1.0
    with pytest.raises(InvalidInputError, match="a value that some number of messages achieves"):
        hs.dp.calibrate(survey, parameter="messages", epsilon=0.89, delta=1e-6)


def test_a_delta_finer_than_the_number_of_messages_is_drawn_is_refused() -> None:
    truth = hs.RandomizedResponse(k=10, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.5), n=10_000)
    assert hs.dp.epsilon(survey, delta=1e-17).upper == math.inf
    with pytest.raises(
        InvalidInputError, match=r"`delta` must be above 4.\d+e-17 with so many messages, got delta=1e-17."
    ):
        hs.dp.calibrate(survey, parameter="messages", epsilon=1.0, delta=1e-17)
    assert hs.dp.calibrate(survey, parameter="messages", epsilon=1.0, delta=1e-15).value < 0.2
    always = replace(survey, shuffler=hs.BlanketMessages(p=1.0))
    assert hs.dp.epsilon(always, delta=1e-17).upper < 1


def test_people_are_found_where_their_messages_hide_true_reports() -> None:
    truth = hs.RandomizedResponse(k=10, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.5), n=50)
    found = hs.dp.calibrate(survey, parameter="n", epsilon=1.0, delta=1e-6)
    people = int(found.value)
    ends = [hs.dp.epsilon(replace(survey, n=n), delta=1e-6).upper for n in (people, people - 1)]
    assert ends[0] <= 1.0 + 1e-6 < ends[1] + 1e-3


def test_dummies_of_the_shuffler_hide_as_much_in_any_crowd() -> None:
    truth = hs.RandomizedResponse(k=4, epsilon=math.inf)
    few = hs.Protocol(randomizer=truth, shuffler=hs.AugmentedShuffle.pure(epsilon=1.0), n=50)
    figures = [hs.dp.epsilon(replace(few, n=n), delta=1e-4) for n in (1, 50, 10**6)]
    assert figures[0].upper == figures[1].upper == figures[2].upper
    with pytest.raises(InvalidInputError, match="shuffler's dummies does not grow with n"):
        hs.dp.calibrate(few, parameter="n", epsilon=0.5, delta=1e-6)


def test_several_reports_of_a_person_among_dummies_of_each_value_are_refused() -> None:
    truth = hs.RandomizedResponse(k=4, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.AugmentedShuffle.pure(epsilon=1.0), n=50)
    with pytest.raises(UnsupportedProtocolError, match="no bound for several reports of one person"):
        hs.dp.epsilon(survey, delta=1e-4, reports_per_person=2)


def test_the_advantage_is_delta_at_epsilon_zero() -> None:
    survey = protocol(2, 1.0, 500)
    found = calibrate(survey, parameter="n", advantage=0.01)
    same = calibrate(survey, parameter="n", epsilon=0.0, delta=0.01)
    assert (found.value, found.beyond, found.target) == (same.value, same.beyond, "advantage")
    assert (found.epsilon, found.delta) == (0.0, 0.01)
    assert found.bound == hs.dp.profile(found.protocol).advantage
    assert found.beyond_bound is not None
    assert found.bound.upper <= 0.01 < found.beyond_bound.upper
    assert str(found).endswith("(certified bracket)")
    assert found.monotone


@pytest.mark.parametrize("parameter", ["n", "epsilon"])
def test_the_tests_of_membership_are_those_of_the_curve(parameter: ParameterName) -> None:
    found = calibrate(protocol(2, 1.0, 300), parameter=parameter, tpr_at_fpr=(0.03, 0.02))
    rate = hs.dp.profile(found.protocol).false_negatives(0.02)
    assert found.bound.upper == pytest.approx(1 - float(rate.lower))
    assert found.beyond_bound is not None
    assert found.bound.upper <= 0.03 < found.beyond_bound.upper
    assert (found.target, math.isnan(found.epsilon), math.isnan(found.delta)) == ("tpr_at_fpr", True, True)


def test_gaussian_differential_privacy_is_a_target() -> None:
    found = calibrate(protocol(2, 1.0, 300), parameter="n", gdp_mu=0.1)
    mu = hs.dp.profile(found.protocol).gdp(1e-9)
    assert (found.bound.lower, found.bound.upper) == (mu.lower, mu.upper)
    assert found.beyond_bound is not None
    assert found.bound.upper <= 0.1 < found.beyond_bound.upper
    assert found.value == found.beyond + 1


def test_rounds_for_the_advantage_are_those_of_the_composed_curve() -> None:
    survey = protocol(2, 1.0, 300)
    found = calibrate(survey, parameter="rounds", advantage=0.1)
    rounds = int(found.value)
    assert found.beyond == rounds + 1
    figures = [hs.dp.compose_delta([(survey, times)], epsilon=0.0).upper for times in (rounds, rounds + 1)]
    assert figures[0] <= 0.1 < figures[1]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({}, "`epsilon` must be given with delta, or omitted"),
        ({"epsilon": 1.0}, r"`delta` must be in \(0, 1\)"),
        ({"delta": 1e-6}, "`epsilon` must be finite"),
        ({"epsilon": 1.0, "delta": 1e-6, "gdp_mu": 1.0}, "Give one target"),
        ({"advantage": 0.1, "gdp_mu": 1.0}, "Give one target"),
        ({"advantage": 2.0}, r"`advantage` must be in \(0, 1\)"),
        ({"gdp_mu": 0.0}, "`gdp_mu` must be finite and > 0"),
        ({"tpr_at_fpr": 0.1}, "`tpr_at_fpr` must be a pair"),
        ({"tpr_at_fpr": (0.1, 0.2)}, "a true-positive rate above its false-positive rate"),
    ],
)
def test_targets_that_are_none_or_too_many(targets: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        calibrate(protocol(2, 1.0, 100), parameter="n", **targets)


def test_an_advantage_that_one_round_exceeds_names_the_target() -> None:
    with pytest.raises(
        InvalidInputError, match=r"`advantage` must be a target that one round meets.*a larger advantage"
    ):
        calibrate(protocol(2, 1.0, 100), parameter="rounds", advantage=1e-9)


def test_rounds_may_vary_for_a_target_that_is_not_a_pair_of_epsilon_and_delta() -> None:
    local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.1), shuffler=hs.NoShuffle(), n=1)
    found = hs.dp.calibrate(local, parameter="rounds", gdp_mu=0.3)
    assert (found.value, found.beyond) == (8, 9)
    assert found.bound is not None
    assert found.bound.upper <= 0.3
