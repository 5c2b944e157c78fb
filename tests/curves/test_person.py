from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.rules.batches import one_by_one
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import Shuffler
from oracles import dp_enumeration, person_enumeration, secure_sums

LEVELS = (0.0, 0.3, 1.0, 2.0)


def protocol(randomizer: object, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("k", "n", "reports", "dummies"),
    [(2, 2, 2, 0), (2, 5, 2, 0), (2, 6, 3, 0), (2, 4, 2, 2), (3, 3, 2, 0), (3, 4, 2, 0), (3, 3, 2, 1), (3, 4, 3, 0)],
)
def test_enumeration_of_all_reports_of_one_person_lies_inside(k: int, n: int, reports: int, dummies: int) -> None:
    for epsilon_0 in (0.5, 1.6):
        randomizer = hs.RandomizedResponse(k=k, epsilon=epsilon_0)
        truth = float(randomizer.law().channel().matrix[0, 0])
        rows = dp_enumeration.channel(k, truth)
        curve = privacy_curve(protocol(randomizer, n, hs.Scrambler(dummies=dummies)), reports)
        for level in LEVELS:
            worst = float(person_enumeration.worst_delta(rows, n, reports, math.exp(level), dummies))
            found = curve.delta(level)
            assert found.lower <= worst * (1 + 1e-9) + 1e-14
            assert worst <= found.upper * (1 + 1e-9) + 1e-14
            assert found.lower >= 0.7 * worst - 1e-3


def test_a_matrix_and_a_set_of_values_lie_inside_too() -> None:
    table = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]
    given = hs.MatrixRandomizer(channel=hs.Channel(matrix=np.array(table)))
    sets = hs.SubsetSelection(k=4, w=2, epsilon=1.0)
    for randomizer, rows in ((given, table), (sets, sets.law().channel().matrix.tolist())):
        curve = privacy_curve(protocol(randomizer, 4), 2)
        for level in LEVELS:
            worst = float(person_enumeration.worst_delta(rows, 4, 2, math.exp(level)))
            found = curve.delta(level)
            assert found.lower <= worst * (1 + 1e-9) + 1e-14
            assert worst <= found.upper * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("epsilon_0", [1.0, math.inf])
@pytest.mark.parametrize(
    ("k", "n", "reports", "coins"), [(2, 2, 2, 4), (2, 4, 2, 3), (2, 4, 3, 5), (2, 3, 2, 0), (3, 2, 2, 3)]
)
def test_servers_coins_are_divided_among_the_reports_of_a_person(
    k: int, n: int, reports: int, coins: int, epsilon_0: float
) -> None:
    encoding = hs.UnaryEncoding(k=k, epsilon=epsilon_0, encoding="symmetric")
    hot = encoding.law().one_hot
    assert hot is not None
    shuffler = hs.SecureAggregation(coins=coins, servers=2, honest=1)
    curve = privacy_curve(protocol(encoding, n, shuffler), reports)
    fair = {bits: Fraction(1, 2**k) for bits in itertools.product((0, 1), repeat=k)}
    for level in LEVELS:
        growth = Fraction(math.exp(level))
        worst = float(secure_sums.worst_of_a_person(k, n, reports, hot.own, hot.raised, growth, [fair] * coins))
        found = curve.delta(level)
        assert found.lower <= worst * (1 + 1e-9) + 1e-14
        assert worst <= found.upper * (1 + 1e-9) + 1e-14
        assert found.lower >= 0.9 * worst


def random_rows(values: int, outputs: int, rng: np.random.Generator) -> list[list[Fraction]]:
    parts = rng.integers(0, 9, (values, outputs)) + np.eye(values, outputs, dtype=np.int64)
    return [[Fraction(int(part), int(row.sum())) for part in row] for row in parts]


def test_replacing_one_report_after_the_other_bounds_all_of_them() -> None:
    """In rationals, over 210 random matrices; the bound is attained in some of them."""
    rng, tightest = np.random.default_rng(14), math.inf
    for _ in range(210):
        n, values, outputs = (int(rng.integers(2, most)) for most in (5, 4, 4))
        reports, growth = int(rng.integers(2, min(n, 3) + 1)), Fraction(int(rng.integers(4, 12)), 4)
        rows = random_rows(values, outputs, rng)
        truth = float(person_enumeration.worst_delta(rows, n, reports, growth**reports))
        single = float(person_enumeration.worst_delta(rows, n, 1, growth))
        bound = one_by_one(lambda _, single=single: single, reports * math.log(growth), reports)  # type: ignore[misc]
        assert truth <= bound * (1 + 1e-12)
        tightest = min(tightest, bound / truth) if truth > 1e-12 else tightest
    assert tightest < 1.01


def test_slices_and_group_privacy_narrow_the_bracket_of_several_reports() -> None:
    sets = hs.SubsetSelection(k=10, w=3, epsilon=2.0)
    for n, width in ((100, 1.17), (1000, 1.04)):
        found = hs.dp.epsilon(protocol(sets, n), delta=1e-6, reports_per_person=5)
        assert found.lower <= found.upper <= width * found.lower


def test_sums_of_several_vectors_of_a_person_have_ends_that_meet() -> None:
    encoding = hs.UnaryEncoding(k=3, epsilon=8.0, encoding="symmetric")
    shuffler = hs.SecureAggregation(coins=2_000, servers=1, honest=1)
    found = hs.dp.epsilon(protocol(encoding, 5_000, shuffler), delta=1e-6, reports_per_person=5)
    assert 0.99 * found.upper <= found.lower <= found.upper
    too_many = protocol(encoding, 5_000, shuffler), 2_001
    assert privacy_curve(*too_many).lower(0.1) == privacy_curve(too_many[0]).lower(0.1)


def test_coins_alone_hide_how_many_vectors_of_a_person_moved() -> None:
    """No noise on the device: in two columns the sums are the same coins, moved by four."""
    votes = hs.UnaryEncoding(k=2, epsilon=math.inf, encoding="symmetric")
    shuffler = hs.SecureAggregation(coins=200, servers=1, honest=1)
    found = hs.dp.delta(protocol(votes, 200, shuffler), epsilon=3.0, reports_per_person=4)
    heads = [Fraction(math.comb(200, x), 2**200) for x in range(201)]
    moved, stayed = np.array(heads[:-4], dtype=float), np.array(heads[4:], dtype=float)
    exact = np.maximum(np.outer(moved, stayed) - math.exp(3.0) * np.outer(stayed, moved), 0.0).sum()
    assert 0.99 * exact <= found.lower <= exact * (1 + 1e-9) <= found.upper <= 1.03 * exact


def test_a_known_number_of_blanket_messages_is_divided_too() -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=math.inf), 4, hs.BlanketMessages(p=0.5)).with_dummies(4)
    dummies = protocol(hs.RandomizedResponse(k=3, epsilon=math.inf), 4, hs.Scrambler(dummies=4))
    unit = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    for level in (1.0,):
        found, same = (privacy_curve(each, 2).delta(level) for each in (survey, dummies))
        # Everybody else is known and taken away: 2 reports at one value or at another, among 4 uniform messages.
        first, second = ([(2, 0, 0)], [(0, 2, 0)])
        for _ in range(4):
            first, second = ([(a + x, b + y, c + z) for a, b, c in law for x, y, z in unit] for law in (first, second))
        masses = Counter(first), Counter(second)
        worst = sum(max(masses[0][key] - math.exp(level) * masses[1][key], 0) for key in masses[0]) / 3**4
        assert found.lower <= worst * (1 + 1e-9) <= found.upper * (1 + 2e-9)
        assert found.upper == pytest.approx(same.upper)


def test_a_shuffler_that_does_not_say_how_its_dummies_are_divided_is_refused() -> None:
    augmented = hs.AugmentedShuffle(each=hs.DummyLaw.of({1: 0.5, 2: 0.5}))
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=math.inf), 9, augmented)
    with pytest.raises(UnsupportedProtocolError, match="There is no bound for several reports of one person"):
        privacy_curve(survey, 2)


def test_the_pure_guarantee_is_attained_by_equal_reports() -> None:
    """Rationals: the largest likelihood ratio of any outcome is that of one report to the power of m."""
    truth = Fraction(3, 4)
    rows = dp_enumeration.channel(2, truth)
    largest = max(
        mass / second[key] for first, second in person_enumeration.neighbours(rows, 4, 2) for key, mass in first.items()
    )
    assert largest == (truth / (1 - truth)) ** 2
    found = hs.dp.epsilon(protocol(hs.RandomizedResponse(k=2, epsilon=math.log(3)), 4), delta=0.0, reports_per_person=2)
    assert found.kind == "exact"
    assert found.upper == pytest.approx(2 * math.log(3), rel=1e-9)


def test_under_a_cap_the_pure_guarantee_of_several_reports_is_no_more_than_a_bracket() -> None:
    """Enumerated in rationals: the largest ratio is 28/3 where two reports without a cap have 16."""
    capped = protocol(hs.RandomizedResponse(k=2, epsilon=math.log(4)), 4, hs.Scrambler(dummies=1, cap=4))
    found = hs.dp.epsilon(capped, delta=0.0, reports_per_person=2)
    assert found.lower <= math.log(28 / 3) <= found.upper
    assert found.kind == "bracket"


def test_one_report_is_the_ordinary_figure() -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 500)
    assert hs.dp.epsilon(survey, delta=1e-6, reports_per_person=1) == hs.dp.epsilon(survey, delta=1e-6)
    assert hs.dp.delta(survey, epsilon=0.1, reports_per_person=1) == hs.dp.delta(survey, epsilon=0.1)
    assert hs.dp.local_epsilon(survey, reports_per_person=1) == hs.dp.local_epsilon(survey)


@pytest.mark.parametrize(
    ("randomizer", "n", "reports"),
    [
        (hs.RandomizedResponse(k=5, epsilon=2.0), 33_000, 5),
        (hs.RandomizedResponse(k=2, epsilon=1.0), 3_000, 3),
        (hs.LocalHashing(k=1000, g=8, epsilon=2.0), 44_809, 10),
        (hs.SubsetSelection(k=10, w=3, epsilon=1.5), 20_000, 4),
    ],
)
def test_in_a_crowd_the_ends_meet(randomizer: object, n: int, reports: int) -> None:
    found = hs.dp.epsilon(protocol(randomizer, n), delta=1e-6, reports_per_person=reports)
    assert found.lower >= 0.995 * found.upper
    assert "reports of the target alike" in str(found.witness)


def test_the_figure_of_one_report_times_their_number_is_no_bound() -> None:
    """What Remark 10 of the page on composition warns of."""
    survey = protocol(hs.RandomizedResponse(k=5, epsilon=2.0), 33_000)
    one, five = (hs.dp.epsilon(survey, delta=1e-6, reports_per_person=m) for m in (1, 5))
    assert 5 * one.upper < five.lower


def test_more_reports_of_a_person_cost_more_and_no_more_than_the_local_figure() -> None:
    survey = protocol(hs.RandomizedResponse(k=4, epsilon=1.0), 2_000)
    found = [hs.dp.epsilon(survey, delta=1e-6, reports_per_person=m) for m in (1, 2, 4, 8)]
    assert all(low.upper < high.lower for low, high in pairwise(found))
    assert found[-1].upper < hs.dp.local_epsilon(survey, reports_per_person=8).upper
    assert hs.dp.local_epsilon(survey, reports_per_person=8).upper == pytest.approx(8.0)


def test_nobody_has_more_reports_than_there_are() -> None:
    alone = protocol(hs.RandomizedResponse(k=2, epsilon=1.0), 3)
    assert hs.dp.epsilon(alone, delta=0.0, reports_per_person=9).upper == pytest.approx(3.0)
    assert hs.dp.local_epsilon(alone, reports_per_person=9).upper == pytest.approx(3.0)


@pytest.mark.parametrize(
    "shuffler",
    [
        hs.NoShuffle(),
        hs.MallowsShuffle(reference=list(range(300)), theta=0.1),
        hs.Scrambler(dummies=90, cap=300),
        hs.Scrambler(dummies=hs.DummyLaw.of({30: 0.5, 90: 0.5})),
    ],
)
def test_every_shuffler_has_two_ends(shuffler: Shuffler) -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 300, shuffler)
    plain = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 300)
    found = hs.dp.epsilon(survey, delta=1e-5, reports_per_person=3)
    assert privacy_curve(survey).epsilon(1e-5).lower <= found.lower <= found.upper <= 3.0 * (1 + 1e-9)
    if shuffler.reveals is plain.shuffler.reveals:  # dummies only help
        assert found.upper <= hs.dp.epsilon(plain, delta=1e-5, reports_per_person=3).upper
    one = hs.dp.epsilon(survey, delta=0.0).upper  # less than 1 under a cap
    assert hs.dp.epsilon(survey, delta=0.0, reports_per_person=3).upper == pytest.approx(3 * one)
    assert hs.dp.delta(survey, epsilon=4.0, reports_per_person=3).upper == 0


def test_a_person_far_above_what_one_report_can_say() -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 900)
    found = hs.dp.epsilon(survey, delta=1e-6, reports_per_person=60)
    assert 1.0 < found.lower < found.upper < 60.0
    assert hs.dp.delta(survey, epsilon=59.0, reports_per_person=60).lower == 0


def test_without_noise_nothing_is_promised() -> None:
    bare = protocol(hs.RandomizedResponse(k=3, epsilon=math.inf), 300)
    assert hs.dp.epsilon(bare, delta=1e-5, reports_per_person=3).lower == math.inf
    with_dummies = protocol(hs.RandomizedResponse(k=3, epsilon=math.inf), 300, hs.Scrambler(dummies=600))
    found = hs.dp.epsilon(with_dummies, delta=1e-3, reports_per_person=3)
    one = hs.dp.epsilon(with_dummies, delta=1e-3)
    assert one.lower <= found.upper


def test_wide_columns_keep_the_lower_end_of_one_report() -> None:
    wide = protocol(hs.BitFlipping(width=17, p=0.4), 50)
    assert privacy_curve(wide, 2).lower(3.0)[0] == privacy_curve(wide).lower(3.0)[0]


def test_rounds_of_several_reports_are_composed() -> None:
    trips = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 900)
    once = hs.dp.per_person(trips, reports=3)
    together = hs.dp.compose([(once, 4)], delta=1e-6)
    batches = hs.dp.compose([(protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 300), 12)], delta=1e-6)
    assert together.upper == pytest.approx(batches.upper, rel=1e-9)
    assert together.lower >= 0.99 * together.upper
    both = hs.dp.compose_delta([(once, 2), trips], epsilon=0.8)
    assert 0 < both.lower <= both.upper
    seen = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 900, hs.NoShuffle())
    local = hs.dp.compose([(hs.dp.per_person(seen, reports=3), 4)], delta=1e-6)
    assert str(local) == str(hs.dp.compose([(seen, 12)], delta=1e-6))
    curve = hs.dp.profile([once])
    assert curve.advantage.upper == hs.dp.delta(trips, epsilon=0.0, reports_per_person=3).upper


def test_a_person_has_at_least_one_report() -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 900)
    with pytest.raises(InvalidInputError, match="reports_per_person"):
        hs.dp.epsilon(survey, delta=1e-6, reports_per_person=0)
    with pytest.raises(InvalidInputError, match="reports_per_person"):
        hs.dp.delta(survey, epsilon=1.0, reports_per_person=0)
    with pytest.raises(InvalidInputError, match="reports_per_person"):
        hs.dp.local_epsilon(survey, reports_per_person=0)


@pytest.mark.parametrize("parameter", ["epsilon", "n", "dummies", "rounds"])
def test_calibration_meets_the_target_of_a_person_and_of_all_rounds(parameter: str) -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 1_500)
    rounds = 1 if parameter == "rounds" else 2
    found = hs.dp.calibrate(
        survey,
        parameter=parameter,  # type: ignore[arg-type]
        epsilon=0.8,
        delta=1e-6,
        reports_per_person=2,
        rounds=rounds,
    )
    times = int(found.value) if parameter == "rounds" else rounds
    again = hs.dp.compose([(hs.dp.per_person(found.protocol, reports=2), times)], delta=1e-6)
    assert again.upper <= 0.8 * (1 + 1e-5)
    assert found.beyond_bound is None or found.beyond_bound.upper > 0.8
    if parameter != "rounds":
        one = hs.dp.calibrate(survey, parameter=parameter, epsilon=0.8, delta=1e-6)  # type: ignore[arg-type]
        assert (found.value < one.value) is (parameter == "epsilon")


def test_rounds_are_not_both_given_and_solved_for() -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 900)
    with pytest.raises(InvalidInputError, match="rounds"):
        hs.dp.calibrate(survey, parameter="rounds", epsilon=0.8, delta=1e-6, rounds=2)


def test_deltas_that_floats_do_not_hold_are_refused_and_none_is_infinite() -> None:
    survey = protocol(hs.RandomizedResponse(k=3, epsilon=1.0), 900)
    with pytest.raises(NumericalError, match="delta = 0"):
        hs.dp.epsilon(survey, delta=1e-305, reports_per_person=2)
    assert privacy_curve(survey, 2).certain == 0
