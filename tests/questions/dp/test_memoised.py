from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.question import Between
from hushuffle.curves.rules.memoized import LINKED, WavesSummed
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.questions.dp.composition import wave_question
from oracles import person_enumeration
from oracles.memoised_enumeration import Rows, divergence, law

AS_IT_IS = [[1.0, 0.0], [0.0, 1.0]]


def binary(epsilon: float) -> list[list[float]]:
    truth = 1 / (1 + math.exp(-epsilon))
    return [[truth, 1 - truth], [1 - truth, truth]]


def survey(n: int, epsilon: float) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def worst(n: int, targets: Any, permanent: Rows, coin: Rows, times: int, growth: float) -> float:
    """Return the largest divergence over the values of the others, which stay, and the given pairs of histories."""
    largest = 0.0
    for others in itertools.combinations_with_replacement(range(2), n - 1):
        stay = [[value] * times for value in others]
        for first, second in targets:
            one, other = law([first, *stay], permanent, coin), law([second, *stay], permanent, coin)
            largest = max(largest, divergence(one, other, growth), divergence(other, one, growth))
    return largest


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("coin", [None, 0.4, 1.5])
@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_enumeration_of_two_waves_lies_between_the_ends(n: int, coin: float | None, delta: float) -> None:
    rows = AS_IT_IS if coin is None else binary(coin)
    given = None if coin is None else hs.RandomizedResponse(k=2, epsilon=coin)
    bound = hs.dp.waves(survey(n, 1.2), waves=2, delta=delta, instantaneous=given)
    pairs = [([0, 0], [1, 1])]
    assert worst(n, pairs, binary(1.2), rows, 2, math.exp(bound.upper)) <= delta * (1 + 1e-6)
    assert worst(n, pairs, binary(1.2), rows, 2, math.exp(bound.lower * 0.999)) >= delta * (1 - 1e-6)


def test_sums_over_all_waves_are_below_what_the_waves_reveal() -> None:
    """Over 500 random pairs of matrices; with two reports, the sums are often all that the waves reveal."""
    rng, shares = np.random.default_rng(5), []
    for _ in range(500):
        values, reports, n, times = (int(rng.integers(2, most)) for most in (4, 3 + int(rng.integers(2)), 4, 4))
        permanent, again = rng.random((values, reports)) + 0.02, rng.random((reports, reports)) + 0.02
        permanent, again = (part / part.sum(axis=1, keepdims=True) for part in (permanent, again))
        times = 2 if n == 3 and reports == 3 else times
        sums = WavesSummed(permanent=permanent, again=again, waves=times, n=n)
        growth = float(rng.uniform(1.0, 1.5))
        lower, witness = sums.lower(math.log(growth))
        other, (first, second) = len(witness.others) - 1, witness.target
        laws = [
            law([[x] * times, *[[other] * times] * (n - 1)], permanent.tolist(), again.tolist())
            for x in (first, second)
        ]
        truth = divergence(laws[0], laws[1], growth)
        assert lower <= truth * (1 + 1e-9) + 1e-12
        shares += [lower / truth] if lower > 0 else []
    assert np.median(shares) > 0.8


def test_linked_waves_are_above_what_the_waves_reveal() -> None:
    """Over 500 random pairs of matrices, all datasets; with one wave, nothing is lost."""
    rng, shares = np.random.default_rng(6), []
    for _ in range(500):
        n, times = (2, 3) if rng.integers(2) else (3, int(rng.integers(1, 3)))
        permanent, again = rng.random((2, 2)) + 0.02, rng.random((2, 2)) + 0.02
        rows = [(part / part.sum(axis=1, keepdims=True)).tolist() for part in (permanent, again)]
        devices = [hs.MatrixRandomizer(channel=hs.Channel(matrix=np.array(part))) for part in rows]
        protocol = hs.Protocol(randomizer=devices[0], shuffler=hs.UniformShuffle(), n=n)
        made = LINKED.reduce(wave_question(protocol, times, instantaneous=devices[1]))
        assert isinstance(made, Between)
        matrix = made.above.device.channel().matrix.tolist()
        growth = float(rng.uniform(1.0, 1.5))
        bound = float(person_enumeration.worst_delta(matrix, n, 1, growth))
        truth = worst(n, [([0] * times, [1] * times)], rows[0], rows[1], times, growth)
        assert truth <= bound * (1 + 1e-9) + 1e-12
        assert times > 1 or truth == pytest.approx(bound)
        shares += [truth / bound] if bound > 1e-3 else []
    assert np.median(shares) > 0.8


def test_sums_over_all_waves_narrow_the_bracket() -> None:
    inner = hs.RandomizedResponse(k=2, epsilon=1.0)
    for waves, width in ((1, 1.02), (10, 1.3), (30, 1.3)):
        found = hs.dp.waves(survey(1000, 2.0), waves=waves, delta=1e-6, instantaneous=inner)
        assert found.lower <= found.upper <= width * found.lower


@pytest.mark.parametrize("coin", [None, 0.4])
def test_enumeration_of_a_change_lies_below_the_upper_end(coin: float | None) -> None:
    rows = AS_IT_IS if coin is None else binary(coin)
    given = None if coin is None else hs.RandomizedResponse(k=2, epsilon=coin)
    pairs = [([0, 1], [1, 0])]
    for delta in (0.0, 1e-3, 0.05):
        bound = hs.dp.waves(survey(3, 1.2), waves=2, delta=delta, instantaneous=given, changes=1)
        assert worst(3, pairs, binary(1.2), rows, 2, math.exp(bound.upper)) <= delta + 1e-9
        if coin is None:
            assert worst(3, pairs, binary(1.2), rows, 2, math.exp(bound.lower * 0.999)) >= delta
            assert bound.lower > 0.94 * bound.upper
    # No crowd hides a change: nearly all of two local epsilons is attained, and far more than without one.
    still = hs.dp.waves(survey(3, 1.2), waves=2, delta=0.05)
    assert worst(3, pairs, binary(1.2), AS_IT_IS, 2, math.exp(still.upper)) > 0.05


@pytest.mark.parametrize("other", [[1, -1], [-1, 0], [0, 1]])
@pytest.mark.parametrize("delta", [0.01, 0.05])
def test_who_comes_goes_or_changes_hides_nobody(other: list[int], delta: float) -> None:
    """The crowd is of those who take part in all waves with the same value: two here, and not three."""
    bound, three = (hs.dp.waves(survey(n, 1.2), waves=2, delta=delta) for n in (2, 3))
    largest = 0.0
    for stays in range(2):
        one, two = (law([[x, x], [stays, stays], other], binary(1.2), AS_IT_IS) for x in range(2))
        for growth in (bound.upper, three.upper):
            shown = max(divergence(one, two, math.exp(growth)), divergence(two, one, math.exp(growth)))
            largest = max(largest, shown)
            assert growth != bound.upper or shown <= delta + 1e-9
    assert largest > delta


def test_when_a_value_changes_is_not_hidden() -> None:
    permanent = binary(0.2)
    first, second = law([[0, 0, 0], [0, 0, 0]], permanent, AS_IT_IS), law([[0, 1, 0], [0, 0, 0]], permanent, AS_IT_IS)
    assert divergence(second, first, math.exp(3 * 0.2)) > 0.2


def test_who_guesses_a_value_that_stays_guesses_no_better_from_three_waves_than_from_one() -> None:
    crowd, rows = survey(3, 1.2), binary(1.2)
    right: dict[Any, dict[int, float]] = {}
    for target, *others in itertools.product(range(2), repeat=3):
        for seen, mass in law([[value] * 3 for value in (target, *others)], rows, AS_IT_IS).items():
            before = right.setdefault(seen, {0: 0.0, 1: 0.0})
            before[target] += mass / 8
    guessed = sum(max(chances.values()) for chances in right.values())
    assert guessed == pytest.approx(hs.qif.vulnerability(crowd).upper, rel=1e-9)


def test_waves_without_a_change_say_what_one_says() -> None:
    once = hs.dp.epsilon(survey(1000, 2.0), delta=1e-6)
    assert hs.dp.waves(survey(1000, 2.0), waves=1, delta=1e-6, changes=5) == once
    assert hs.dp.waves(survey(1000, 2.0), waves=10**6, delta=1e-6) == once
    assert hs.dp.waves(survey(1000, 2.0), waves=10**6, delta=0) == hs.dp.epsilon(survey(1000, 2.0), delta=0)


def test_with_a_second_coin_the_smaller_of_both_bounds_counts_and_every_wave_adds_up_to_the_first() -> None:
    coin = hs.RandomizedResponse(k=2, epsilon=0.5)
    alone = survey(100, 0.5)
    few = hs.dp.waves(survey(100, 2.0), waves=2, delta=1e-6, instantaneous=coin, changes=1)
    assert few.upper == hs.dp.compose([(alone, 2)], delta=1e-6).upper
    many = hs.dp.waves(survey(100, 2.0), waves=100, delta=1e-6, instantaneous=coin)
    assert many.upper == hs.dp.epsilon(survey(100, 2.0), delta=1e-6).upper
    assert 4 * few.lower < many.lower < many.upper < 1.6 * many.lower
    one = np.array(binary(2.0)) @ np.array(binary(0.5))
    merged = hs.Protocol(
        randomizer=hs.MatrixRandomizer(channel=hs.Channel(matrix=one)), shuffler=hs.UniformShuffle(), n=100
    )
    once = hs.dp.waves(survey(100, 2.0), waves=1, delta=1e-6, instantaneous=coin)
    assert once.lower == pytest.approx(hs.dp.epsilon(merged, delta=1e-6).lower, rel=1e-6)
    assert once.lower < few.lower < few.upper


def test_changes_cost_the_local_epsilon_each() -> None:
    bound = hs.dp.waves(survey(1000, 2.0), waves=52, delta=1e-6, changes=2)
    assert bound.upper == pytest.approx(6.0)
    assert 3.999 < bound.lower < 4.0, "there are only two values, and no third report"
    four = hs.Protocol(randomizer=hs.RandomizedResponse(k=4, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    assert 5.999 < hs.dp.waves(four, waves=52, delta=1e-6, changes=2).lower < 6.0
    assert hs.dp.waves(four, waves=52, delta=0.5, changes=9).lower < 4.0


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_the_lower_end_of_two_changes_is_attained(delta: float) -> None:
    rows = response(3, 1.0)
    crowd = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=3)
    bound = hs.dp.waves(crowd, waves=3, delta=delta, changes=2)
    histories = ([0, 1, 2], [1, 2, 0])
    one, two = (law([own, [0, 0, 0], [2, 2, 2]], rows, np.eye(3).tolist(), by_value=True) for own in histories)
    assert divergence(one, two, math.exp(bound.lower * 0.999)) > delta
    assert divergence(one, two, math.exp(bound.upper)) <= delta + 1e-12


@pytest.mark.parametrize(
    "randomizer",
    [
        hs.UnaryEncoding(k=3, epsilon=2.0, encoding="optimized"),
        hs.LocalHashing(k=4, g=3, epsilon=1.0),
        hs.MatrixRandomizer([[0.75, 0.125, 0.125], [0.25, 0.5, 0.25], [0.125, 0.25, 0.625]]),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_the_lower_end_of_a_change_is_that_of_two_reports_that_differ(randomizer: Mechanism, delta: float) -> None:
    """Against all pairs of reports that differ, one by one: what the waves tell where all others stay."""
    rows = randomizer.channel().matrix
    crowd = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=50)
    bound = hs.dp.waves(crowd, waves=2, delta=delta, changes=1)

    def shown(growth: float) -> float:
        largest = 0.0
        for a, b in itertools.permutations(range(rows.shape[0]), 2):
            gain = np.outer(rows[a], rows[b]) - growth * np.outer(rows[b], rows[a])
            np.fill_diagonal(gain, 0.0)
            largest = max(largest, float(np.maximum(gain, 0).sum()))
        return largest

    assert shown(math.exp(bound.lower * 0.9999)) > delta
    assert bound.lower > hs.dp.epsilon(crowd, delta=delta).lower
    sums = hs.Protocol(randomizer=hs.UnaryEncoding(k=3, epsilon=2.0), shuffler=hs.SecureAggregation(), n=50)
    kept = hs.dp.waves(sums, waves=2, delta=delta, changes=1)
    assert kept.lower == hs.dp.epsilon(sums, delta=delta).lower


def test_without_noise_a_change_gives_everything_away() -> None:
    assert hs.dp.waves(survey(10, math.inf), waves=2, delta=1e-6, changes=1).lower == math.inf


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"protocol": 3}, "`protocol` must be a Protocol"),
        ({"waves": 0}, "`waves` must be an integer >= 1"),
        ({"delta": 1.0}, "`delta` must be in"),
        ({"changes": -1}, "`changes` must be an integer >= 0"),
        ({"instantaneous": 0.5}, "`instantaneous` must be a Mechanism"),
        ({"instantaneous": hs.RandomizedResponse(k=3, epsilon=1.0)}, "`instantaneous` must be for 2 permanent reports"),
    ],
)
def test_what_cannot_be_meant_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.dp.waves(**{"protocol": survey(10, 1.0), "waves": 3, "delta": 1e-6, **changed})


@pytest.mark.parametrize("shuffler", [hs.Scrambler(dummies=3), hs.SecureAggregation(coins=8)])
def test_noise_that_is_fresh_in_every_wave_is_refused(shuffler: Any) -> None:
    randomizer = hs.UnaryEncoding(k=2, epsilon=1.0, encoding="symmetric")
    with pytest.raises(UnsupportedProtocolError, match="without dummies, and servers without random bits"):
        hs.dp.waves(hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=10), waves=3, delta=1e-6)


def response(k: int, epsilon: float) -> list[list[float]]:
    lie = 1 / (k - 1 + math.exp(epsilon))
    return [[math.exp(epsilon) * lie if x == y else lie for y in range(k)] for x in range(k)]


def test_reports_kept_by_value_cost_a_local_epsilon_for_each_value_where_the_pattern_stays() -> None:
    """The value comes back, and its report with it: every pair of histories with one pattern, among three people."""
    rows, as_it_is = response(3, 0.8), np.eye(3).tolist()
    crowd = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=0.8), shuffler=hs.UniformShuffle(), n=3)
    bound = hs.dp.waves(crowd, waves=3, delta=0.0, changes=1)
    for first, second in itertools.permutations(itertools.permutations(range(3), 2), 2):
        one, other = (law([[a, b, a], [0, 0, 0], [1, 2, 2]], rows, as_it_is, by_value=True) for a, b in (first, second))
        assert divergence(one, other, math.exp(bound.upper)) <= 1e-12
    back, on = (law([[0, 1, last]], rows, as_it_is, by_value=True) for last in (0, 2))
    assert divergence(on, back, math.exp(3 * 0.8)) > 0.05, "who comes back, and who goes on, is not hidden"


@pytest.mark.parametrize(
    "randomizer",
    [
        hs.RandomizedResponse(k=4, epsilon=1.0),
        hs.UnaryEncoding(k=3, epsilon=2.0, encoding="optimized"),
        hs.SubsetSelection(k=4, w=2, epsilon=1.0),
        hs.MatrixRandomizer([[0.75, 0.25, 0], [0.25, 0.5, 0.25]]),
    ],
)
def test_how_often_a_change_shows_is_that_of_two_waves_that_differ(randomizer: Mechanism) -> None:
    rows = randomizer.channel().matrix.tolist()
    as_it_is, k = np.eye(len(rows[0])).tolist(), randomizer.inputs
    shown = []
    for before, after in itertools.permutations(range(k), 2):
        waves = law([[before, after], [0, 0]], rows, as_it_is)
        shown.append(sum(mass for (first, second), mass in waves.items() if first != second))
        still = law([[before, before], [0, 0]], rows, as_it_is)
        assert all(first == second for first, second in still)
    crowd = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=2)
    bound = hs.dp.change_shows(crowd)
    assert bound.kind == "exact"
    assert bound.upper == pytest.approx(max(shown), rel=1e-9)


def test_a_change_of_a_hashed_value_shows_at_least_as_often_as_its_bucket_changes() -> None:
    randomizer = hs.LocalHashing(k=5, g=3, epsilon=1.0)
    bound = hs.dp.change_shows(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=2))
    matrix = randomizer.channel().matrix
    alike = (matrix @ matrix.T)[~np.eye(5, dtype=bool)]
    assert (bound.kind, bound.upper) == ("bracket", 1.0)
    assert bound.lower <= 1 - alike.max() <= 1 - alike.min() <= bound.upper


def test_a_mechanism_without_matrix_has_no_figure_of_changes() -> None:
    bits = hs.BitFlipping(width=40, p=0.1)
    with pytest.raises(UnsupportedProtocolError, match="The matrix of reports with 40"):
        hs.dp.change_shows(hs.Protocol(randomizer=bits, shuffler=hs.UniformShuffle(), n=2))


def test_a_second_coin_on_bits_of_which_only_sums_leave_is_refused() -> None:
    """It is thrown on the whole report, whose waves tell more than the sum of the bits."""
    sums = hs.Protocol(randomizer=hs.UnaryEncoding(k=2, epsilon=1.0), shuffler=hs.SecureAggregation(), n=10)
    with pytest.raises(UnsupportedProtocolError, match="reveals more than sums"):
        hs.dp.waves(sums, waves=3, delta=1e-6, instantaneous=hs.RandomizedResponse(k=4, epsilon=1.0))
    one = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.SecureAggregation(), n=10)
    coin = hs.RandomizedResponse(k=2, epsilon=1.0)
    shuffled = hs.dp.waves(survey(10, 1.0), waves=3, delta=1e-6, instantaneous=coin)
    assert hs.dp.waves(one, waves=3, delta=1e-6, instantaneous=coin).upper == shuffled.upper


def test_probabilities_that_are_rounded_to_zero_give_no_lower_end() -> None:
    bits = hs.Protocol(randomizer=hs.BitFlipping(width=20, p=1e-19), shuffler=hs.UniformShuffle(), n=4)
    bound = hs.dp.waves(bits, waves=2, delta=0.5, changes=1)
    # All 20 bits of two reports flip with the chance 1e-760, some 17 of one with 1e-323: the float is 0.
    assert bound.lower < 0.9 * bound.upper == pytest.approx(0.9 * 40 * 19 * math.log(10), rel=1e-2)
    assert bound.lower > 500
