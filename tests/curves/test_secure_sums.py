"""Sums of one-hot vectors: enumerated, and against sums written anew."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

import hushuffle as hs
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws import noisy_column, secure_sums
from hushuffle.curves.laws.secure_sums import Column, SecureSums
from hushuffle.curves.pairs.dominating import TabulatedCurve
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation import heavy_hitters
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import LaplaceNoise
from hushuffle.model import Witness
from hushuffle.numerics.loss_sum import LossSum, best_tilt
from oracles import secure_sums as oracle
from oracles.dp_enumeration import compositions, hockey_stick

LEVELS = (0.0, 0.3, 1.0, 2.0)
CHANCES = ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 2), Fraction(1, 10)), (Fraction(9, 10), Fraction(1, 20)))


def encoding(k: int, epsilon: float, kind: str = "symmetric") -> hs.UnaryEncoding:
    return hs.UnaryEncoding(k=k, epsilon=epsilon, encoding=kind)  # type: ignore[arg-type]


def summed(randomizer: Mechanism, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=hs.SecureAggregation(), n=n)


def curve(k: int, n: int, kept: Fraction, raised: Fraction) -> SecureSums:
    law = replace(encoding(k, 1.0).law(), own=kept, raised=raised)
    pure = math.log(kept * (1 - raised) / raised / (1 - kept)) * (1 + 1e-15)
    return SecureSums.of(law, n=n, local_epsilon=pure)


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 3), (2, 4), (3, 2), (3, 3), (3, 4)])
@pytest.mark.parametrize(("kept", "raised"), CHANCES)
def test_every_vector_of_everybody_gives_the_same_figure(k: int, n: int, kept: Fraction, raised: Fraction) -> None:
    law = curve(k, n, kept, raised)
    for level in LEVELS:
        growth = Fraction(math.exp(level))
        if growth >= Fraction(law.law.own * (1 - raised), raised * (1 - kept)):
            continue
        worst = float(oracle.worst_delta(k, n, kept, raised, growth))
        found = law.delta(level)
        assert found.kind == "exact"
        assert found.upper == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(2, 2), (2, 4), (3, 3), (3, 4)])
@pytest.mark.parametrize(("kept", "raised"), CHANCES)
def test_dominating_pairs_of_columns_lie_above_every_dataset(
    monkeypatch: pytest.MonkeyPatch, k: int, n: int, kept: Fraction, raised: Fraction
) -> None:
    monkeypatch.setattr(secure_sums, "_EVERY", 0)
    law = curve(k, n, kept, raised)
    for level in LEVELS:
        worst = float(oracle.worst_delta(k, n, kept, raised, Fraction(math.exp(level))))
        found = law.delta(level)
        assert found.lower <= worst * (1 + 1e-9)
        assert worst <= found.upper * (1 + 1e-12)
        assert worst == pytest.approx(found.lower, rel=1e-9)  # all datasets of so few people are tried
    two_rounds = oracle.sums_law([n - 1] + [0] * (k - 1), kept, raised)
    reached = [oracle.added(two_rounds, oracle.vectors(k, value, kept, raised)) for value in (0, 1)]
    together = sum(
        max(0.0, float(reached[0][one] * reached[0][two]) - math.e * float(reached[1][one] * reached[1][two]))
        for one, two in itertools.product(reached[0], repeat=2)
    )
    assert together <= hs.dp.compose_delta([(law, 2)], epsilon=1.0).upper * (1 + 1e-12)


@pytest.mark.parametrize(("kept", "raised"), [*CHANCES, (Fraction(1, 2), Fraction(1, 1000))])
@pytest.mark.parametrize("n", [1, 2, 5, 90])
def test_a_column_is_largest_over_all_compositions(kept: Fraction, raised: Fraction, n: int) -> None:
    for truth, lie in ((kept, raised), (1 - raised, 1 - kept)):
        column = Column(truth=truth, lie=lie, n=n)
        for level in LEVELS:
            worst = 0.0
            for ones in range(n):
                others = np.convolve(
                    binom.pmf(np.arange(ones + 1), ones, float(truth)),
                    binom.pmf(np.arange(n - ones), n - 1 - ones, float(lie)),
                )
                laws = [np.convolve(others, [1 - chance, chance]) for chance in (float(truth), float(lie))]
                worst = max(worst, float(np.maximum(laws[0] - math.exp(level) * laws[1], 0.0).sum()))
            if level < column.pure:
                assert column.lower(level)[0] <= worst * (1 + 1e-9) + 1e-15
                assert worst <= column.upper(level) * (1 + 1e-9)
                assert column.upper(level) <= 1.2 * worst + 1e-12


def test_finer_blocks_may_only_lower_the_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    values = []
    for split in (2, 8, 32):
        monkeypatch.setattr(secure_sums, "_SPLIT", split)
        column = Column(truth=Fraction(3, 4), lie=Fraction(1, 4), n=20_000)
        values.append(column.upper(0.03))
    assert values[0] > values[1] > values[2] >= column.lower(0.03)[0]


DRAFT = ((5.0, 0.317, 0.2978, 0.2974), (6.5, 0.906, 0.7010, 0.7002), (7.0, 1.528, 0.9517, 0.9505))
"""Of the draft on differential privacy for private measurement: flips of 1/(e**e + 1), its central epsilon; ours."""


def exact_divergence(n: int, flip: float, held: tuple[int, int], level: float) -> float:
    """HS of the two columns' sums, term by term in one of them and by tails in the other: no code of the project."""

    def coins(people: int, chance: float) -> np.ndarray:
        law = binom.pmf(np.arange(people + 1), people, chance)
        there = np.flatnonzero(law > 1e-30)
        return np.asarray(law[there[0] : there[-1] + 1])

    def column(ones: int) -> np.ndarray:
        return np.convolve(coins(ones, 1 - flip), coins(n - 1 - ones, flip))

    total = 0.0
    old, new = column(held[0]), column(held[1])
    p_old, q_old = (np.convolve(old, [1 - chance, chance]) for chance in (1 - flip, flip))
    p_new, q_new = (np.convolve(new, [1 - chance, chance]) for chance in (flip, 1 - flip))
    order = np.argsort(-p_new / q_new)
    ratios = (p_new / q_new)[order]
    p_up, q_up = np.cumsum(p_new[order]), np.cumsum(q_new[order])
    for p, q in zip(p_old.tolist(), q_old.tolist(), strict=True):
        many = int(np.count_nonzero(ratios > math.exp(level) * q / p)) if p else 0
        if many:
            total += p * float(p_up[many - 1]) - math.exp(level) * q * float(q_up[many - 1])
    return total


@pytest.mark.parametrize(("flips", "printed", "composed", "exact"), DRAFT)
def test_the_drafts_table_is_far_above_and_exact_sums_lie_in_the_bracket(
    flips: float, printed: float, composed: float, exact: float
) -> None:
    n, delta, flip = 100_000, 1e-9, 1 / (math.exp(flips) + 1)
    survey = summed(encoding(8, 2 * flips), n)
    found = hs.dp.epsilon(survey, delta=delta)
    assert found.upper < printed
    assert composed - 4e-4 < found.upper <= composed
    assert found.lower == pytest.approx(exact, abs=1.5e-4)
    for held in ((0, 0), (n - 1, 0), (n // 2, 0), (n // 2, n // 2 - 1), (n // 3, n // 3)):
        assert exact_divergence(n, flip, held, found.upper) <= delta
    assert exact_divergence(n, flip, (n - 1, 0), found.lower) >= delta


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
def test_in_a_crowd_the_ends_meet_and_sums_say_less_than_the_shuffled_vectors(kind: str) -> None:
    before = math.inf
    for n in (30, 1_000, 100_000):
        survey = summed(encoding(10, 2.0, kind), n)
        found = hs.dp.epsilon(survey, delta=1e-6)
        assert found.lower >= 0.995 * found.upper
        assert found.upper < before
        before = found.lower
    shuffled = replace(survey, shuffler=hs.UniformShuffle())
    assert found.upper < 0.85 * hs.dp.epsilon(shuffled, delta=1e-6).lower


def test_two_values_with_unequal_chances_have_a_narrow_bracket() -> None:
    found = hs.dp.epsilon(summed(encoding(2, 4.0, "optimized"), 10_000), delta=1e-6)
    assert found.lower < found.upper < 1.005 * found.lower


def test_rounds_add_up_to_no_less_than_the_same_datasets_in_each() -> None:
    survey = summed(encoding(5, 2.0), 2_000)
    one, ten = hs.dp.epsilon(survey, delta=1e-6), hs.dp.compose([(survey, 10)], delta=1e-6)
    assert 2.5 * one.upper < ten.lower < ten.upper < 10 * one.upper
    assert ten.lower >= 0.99 * ten.upper
    assert hs.dp.compose([(survey, 3)], delta=0.0).upper == pytest.approx(6.0)
    assert hs.dp.profile(survey).delta(one.upper).upper <= 1.01e-6


@pytest.mark.parametrize(("k", "kind"), [(2, "symmetric"), (3, "optimized")])
def test_shorter_windows_may_only_lower_the_lower_end(k: int, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def lower(log_tail: float) -> list[float]:
        monkeypatch.setattr(secure_sums, "LOG_TAIL", log_tail)
        encoding = hs.UnaryEncoding(k=k, epsilon=1.0, encoding=kind)
        curve = SecureSums.of(encoding.law().one_hot, n=300, local_epsilon=1.0)
        return [curve.lower(epsilon)[0] for epsilon in np.linspace(0, 0.9, 19)]

    whole = lower(-700.0)
    for log_tail in (-2.0, -5.0, -10.0, -20.0, -95.0):
        assert all(short <= long * (1 + 1e-9) for short, long in zip(lower(log_tail), whole, strict=True))


@pytest.mark.slow
def test_figures_at_hardly_any_delta_do_not_cross() -> None:
    encoding = hs.UnaryEncoding(k=2, epsilon=0.63, encoding="symmetric")
    protocol = hs.Protocol(randomizer=encoding, shuffler=hs.SecureAggregation(), n=1000)
    deep = hs.dp.epsilon(protocol, delta=1e-36)
    assert 0 < deep.lower <= deep.upper < 0.63
    assert hs.dp.delta(protocol, epsilon=0.45).lower == 0.0


def test_without_noise_there_is_no_figure_but_infinity() -> None:
    for kind in ("symmetric", "optimized"):
        survey = summed(encoding(3, math.inf, kind), 1_000)
        assert hs.dp.epsilon(survey, delta=1e-6).upper == math.inf
        assert hs.dp.delta(survey, epsilon=3.0).lower >= 0.49
        assert hs.dp.compose([(survey, 2)], delta=1e-6).upper == math.inf
    assert privacy_curve(summed(encoding(3, math.inf, "optimized"), 10)).certain == 0.5


def test_bits_that_are_hardly_ever_the_other_one_hide_what_they_can() -> None:
    """An upper end stays one where 1 minus a chance has lost its digits."""
    survey = summed(encoding(3, 38.0, "optimized"), 50)
    found = hs.dp.epsilon(survey, delta=1e-6)
    assert found.lower <= found.upper <= 38.0
    assert found.upper > 20.0


@pytest.mark.parametrize(
    "randomizer",
    [hs.RandomizedResponse(k=4, epsilon=1.0), hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.7, 0.3], [0.2, 0.8]]))],
)
def test_sums_of_vectors_with_a_single_one_are_the_shuffle(randomizer: Mechanism) -> None:
    shuffled = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=500)
    assert hs.dp.epsilon(summed(randomizer, 500), delta=1e-6) == hs.dp.epsilon(shuffled, delta=1e-6)
    assert hs.qif.vulnerability(summed(randomizer, 500)) == hs.qif.vulnerability(shuffled)
    assert hs.pie.alpha(summed(randomizer, 500)) == hs.pie.alpha(shuffled)


@pytest.mark.parametrize(
    "randomizer",
    [hs.LocalHashing(k=9, g=4, epsilon=1.0), hs.SubsetSelection(k=9, w=3, epsilon=1.0), hs.BitFlipping(width=3, p=0.1)],
)
def test_what_is_no_vector_is_refused_at_once(randomizer: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match=f"`shuffler` must be one that supports {type(randomizer).__name__}"):
        summed(randomizer, 9)


def test_several_reports_of_one_person_lie_below_separate_batches() -> None:
    kept, raised, k, n = 0.75, 0.25, 2, 5
    survey = summed(encoding(k, 2 * math.log(3)), n)
    for level in (0.5, 1.5):
        worst = 0.0
        for others in compositions(n - 2, k):
            for old, new in itertools.product(itertools.product(range(k), repeat=2), repeat=2):
                laws = [oracle.sums_law(others, kept, raised)] * 2
                for place, values in enumerate((old, new)):
                    for value in values:
                        laws[place] = oracle.added(laws[place], oracle.vectors(k, value, kept, raised))
                worst = max(worst, float(hockey_stick(laws[0], laws[1], math.exp(level))))
        found = hs.dp.delta(survey, epsilon=level, reports_per_person=2)
        assert found.lower <= worst * (1 + 1e-9)
        assert worst <= found.upper * (1 + 1e-9)


def test_a_guesser_who_knows_all_others_is_right_no_more_often_than_the_bound() -> None:
    kept, raised, k, n = Fraction(3, 4), Fraction(1, 4), 3, 3
    survey = summed(encoding(k, 2 * math.log(3)), n)
    best = 0.0
    for others in compositions(n - 1, k):
        base = oracle.sums_law(others, kept, raised)
        laws = [oracle.added(base, oracle.vectors(k, value, kept, raised)) for value in range(k)]
        best = max(best, float(sum(max(law[sums] for law in laws) for sums in laws[0])) / k)
    found = hs.qif.vulnerability(survey, adversary=hs.Strong())
    assert found.kind == "upper"
    assert best <= found.upper
    assert hs.pie.alpha(survey).kind == "upper"
    assert hs.pie.bayes_error(survey).kind == "lower"


def test_sums_reveal_no_more_than_the_shuffle_to_a_guesser() -> None:
    survey = summed(encoding(8, 6.0), 100_000)
    found, behind = (hs.qif.vulnerability(one) for one in (survey, replace(survey, shuffler=hs.UniformShuffle())))
    assert 1 / 8 < found.upper <= behind.upper
    assert (found.kind, behind.kind) == ("upper", "bracket")


def test_without_noise_a_guess_may_always_be_right() -> None:
    for shuffler in (hs.SecureAggregation(), hs.UniformShuffle()):
        bare = hs.Protocol(randomizer=encoding(4, math.inf, "optimized"), shuffler=shuffler, n=20)
        assert 0.5 < hs.qif.vulnerability(bare, adversary=hs.Strong()).upper <= 1.0


def test_no_report_leaves() -> None:
    survey = summed(encoding(3, 2.0), 4)
    with pytest.raises(UnsupportedProtocolError, match=r"releases no reports. Use `protocol.sums\(values\)`"):
        survey.collect([0, 1, 2, 2])
    with pytest.raises(UnsupportedProtocolError, match="SecureAggregation supports no dummies"):
        hs.dp.calibrate(survey, parameter="dummies", epsilon=0.1, delta=1e-6)
    with pytest.raises(InvalidInputError, match="`values` must be n = 4 values"):
        survey.sums([0, 1])


def test_what_leaves_is_estimated_without_bias() -> None:
    survey = summed(encoding(4, 4.0, "optimized"), 20_000)
    values = np.repeat(np.arange(4), [10_000, 6_000, 4_000, 0])
    rng = hs.reproducible(5)
    found = hs.estimate(survey.sums(values, rng=rng), protocol=survey)
    z = (found.frequencies - [0.5, 0.3, 0.2, 0.0]) / found.standard_errors
    assert float(np.abs(z).max()) < 5


def test_a_pair_from_both_directions_dominates_what_it_was_tabulated_from() -> None:
    """One law in one direction, its mirror image in the other: composed with themselves they lie above the products."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
        witness = Witness(family="", others=(), target=(0, 1))
        step = 0.05
        there = DatasetPair(witness=witness, p=p, q=q)
        tables = []
        for pair in (there, there.swapped()):
            index = np.arange(0.0, 200.0, rng.integers(1, 4))
            tables.append(
                TabulatedCurve(step=step, index=index, deltas=np.array([pair.at_most(step * at) for at in index]))
            )
        parts = [(tables[0].pair(tables[1]), 1), (tables[1].pair(tables[0]), 1)]
        first, second = np.outer(p, q).ravel(), np.outer(q, p).ravel()
        for level in (0.0, 0.2, 1.0):
            truth = float(np.maximum(first - math.exp(level) * second, 0.0).sum())
            above = LossSum.of(parts, tilt=best_tilt(parts, epsilon=level)).upper(level)
            assert truth <= above * (1 + 1e-9) + 1e-15
            assert above <= truth + 0.02


@pytest.mark.parametrize(("k", "n", "coins"), [(2, 2, 3), (2, 3, 2), (3, 2, 2)])
@pytest.mark.parametrize(("kept", "raised"), [*CHANCES, (Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(0))])
@pytest.mark.parametrize("every", [0, 24])
def test_secret_coins_in_every_column_are_counted(
    monkeypatch: pytest.MonkeyPatch, k: int, n: int, coins: int, kept: Fraction, raised: Fraction, every: int
) -> None:
    monkeypatch.setattr(secure_sums, "_EVERY", every)
    coin = {bits: Fraction(1, 2**k) for bits in itertools.product((0, 1), repeat=k)}
    law = replace(encoding(k, 1.0).law(), own=kept, raised=raised)
    pure = math.log(kept * (1 - raised) / raised / (1 - kept)) * (1 + 1e-15) if raised else math.inf
    found = SecureSums.of(law, n=n, local_epsilon=pure, coins=coins)
    for level in (0.0, 0.7):
        worst = float(oracle.worst_delta(k, n, kept, raised, Fraction(math.exp(level)), [coin] * coins))
        bound = found.delta(level)
        assert bound.lower <= worst * (1 + 1e-9)
        assert worst <= bound.upper * (1 + 1e-12)
        assert bound.upper <= 1.35 * worst + 0.01
        assert not every or bound.upper == pytest.approx(worst, rel=1e-9)


def test_servers_coins_alone_hide_people_and_only_the_secret_ones_do() -> None:
    """No noise on the device: what n people say is hidden by the coins of honest servers, whatever n is."""
    bare = encoding(4, math.inf)
    figures = {}
    for honest in (0, 1, 2):
        shuffler = hs.SecureAggregation(coins=2_000, servers=2, honest=honest)
        survey = hs.Protocol(randomizer=bare, shuffler=shuffler, n=1_000)
        figures[honest] = hs.dp.epsilon(survey, delta=1e-6)
    assert figures[0].upper == math.inf
    assert figures[2].upper < 0.75 * figures[1].lower
    assert figures[1].lower >= 0.99 * figures[1].upper
    assert figures[0].kind == "exact"
    # Two binomial columns are nearly Gaussian: sensitivity sqrt(2), standard deviation sqrt(2000/4).
    shift, level = math.sqrt(2) / math.sqrt(500), figures[1].upper
    gaussian = norm.cdf(shift / 2 - level / shift) - math.exp(level) * norm.cdf(-shift / 2 - level / shift)
    assert gaussian == pytest.approx(1e-6, rel=0.1)
    noisy = hs.Protocol(randomizer=encoding(4, 3.0), shuffler=hs.SecureAggregation(coins=2_000), n=1_000)
    plain = summed(encoding(4, 3.0), 1_000)
    assert hs.dp.epsilon(noisy, delta=1e-6).upper < hs.dp.epsilon(plain, delta=1e-6).lower


def test_estimates_leave_the_coins_out_and_count_their_variance() -> None:
    shuffler = hs.SecureAggregation(coins=1_000, servers=3)
    survey = hs.Protocol(randomizer=encoding(5, 6.0), shuffler=shuffler, n=400)
    rng, values = hs.reproducible(8), [0] * 200 + [1] * 120 + [2] * 80
    runs = [hs.estimate(survey.sums(values, rng=rng), protocol=survey) for _ in range(600)]
    shares = np.array([run.frequencies for run in runs])
    truth = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    predicted = np.sqrt(runs[0].variance_intercept + runs[0].variance_slope * truth)
    z = (shares.mean(axis=0) - truth) / (predicted / math.sqrt(len(runs)))
    spread = shares.std(axis=0) / predicted
    assert float(np.abs(z).max()) < 5
    assert float(np.abs(spread - 1).max()) < 5 / math.sqrt(2 * len(runs))
    found = heavy_hitters(runs[0], protocol=survey)
    assert found.threshold > 2 * float(predicted[3])
    quiet = hs.Protocol(randomizer=encoding(5, 6.0), shuffler=hs.SecureAggregation(), n=400)
    assert runs[0].variance_intercept > 2 * hs.estimate(quiet.sums(values), protocol=quiet).variance_intercept


def test_coins_are_fair_and_repeat_under_a_key() -> None:
    none = np.zeros(3_000, dtype=np.int64)
    for coins, servers in ((64, 1), (50, 2), (1, 1)):
        shuffler = hs.SecureAggregation(coins=coins, servers=servers)
        heads = shuffler.noisy(none, rng=hs.reproducible(2))
        total = coins * servers
        assert 0 <= heads.min() <= heads.max() <= total
        assert abs(float(heads.mean()) - total / 2) < 5 * math.sqrt(total / 4 / none.size)
        assert abs(float(heads.var()) / (total / 4) - 1) < 0.2
        keyed = [shuffler.noisy(none, rng=hs.keyed(key=bytes(32), records=np.arange(none.size))) for _ in range(2)]
        assert np.array_equal(keyed[0], keyed[1])
    assert hs.SecureAggregation().noisy(none, rng=hs.secure()) is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coins": -1}, "`coins` must be"),
        ({"servers": 0}, "`servers` must be"),
        ({"servers": 2, "honest": 3}, "`honest` must be"),
    ],
)
def test_servers_and_their_coins_are_checked(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.SecureAggregation(**arguments)


def test_coins_with_other_reports_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="`coins` = 0 and `laplace` = 0 for RandomizedResponse"):
        hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.SecureAggregation(coins=5), n=10)
    assert "each with 5 fair random bits from each of 2 servers" in hs.SecureAggregation(coins=5).describe()


def laplace_vectors(k: int, ratio: Fraction, number: int, reach: int) -> tuple[dict[Any, Any], float]:
    """Noise of `number` servers in k sums, each server's at most `reach`, and the probability of all other noise."""
    each: Any = {(z,): (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-reach, reach + 1)}
    one: Any = {(0,): Fraction(1)}
    for _ in range(number):
        one = oracle.added(one, each)
    law = {tuple(z for (z,) in sums): math.prod(map(one.get, sums)) for sums in itertools.product(one, repeat=k)}
    return law, float(1 - sum(law.values()))


NOISE = ((2, 1, "3/4", 1, 20), (2, 3, "1/2", 1, 10), (2, 3, "1/4", 2, 5), (3, 2, "1/4", 1, 3), (2, 4, "1/8", 3, 3))
FLIPS = (*CHANCES[:2], (Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(0)))
PLACES = [(noise, flips) for noise in range(5) for flips in ((0, 2), (1, 3))[noise % 2]] + [(2, 1), (2, 3)]
"""Noise of servers with bits that are flipped, and with true or half-kept ones; one of the noises with all four."""


@pytest.mark.parametrize(("noises", "flips"), PLACES)
def test_noise_of_servers_and_of_devices_together(noises: int, flips: int) -> None:
    """Every vector of everybody and of the noise; what lies beyond `reach` is bounded on both sides."""
    (k, n, share, number, reach), (kept, raised) = NOISE[noises], FLIPS[flips]
    noise, beyond = laplace_vectors(k, Fraction(share), number, reach)
    law = replace(encoding(k, 1.0).law(), own=kept, raised=raised)
    alone = math.log(kept * (1 - raised) / raised / (1 - kept)) * (1 + 1e-15) if raised and kept < 1 else math.inf
    added = LaplaceNoise(ratio=float(Fraction(share)), number=number)
    curve = SecureSums.of(law, n=n, local_epsilon=alone, noise=added)
    assert curve.pure <= min(alone, -2 * math.log(Fraction(share))) * (1 + 1e-12)
    for level in (0.0, 0.2, 0.9 * curve.pure):
        worst = float(oracle.worst_delta(k, n, kept, raised, Fraction(math.exp(level)), [noise]))
        bound = curve.delta(level)
        assert bound.lower <= (worst + beyond) * (1 + 1e-9)
        assert worst - math.exp(level) * beyond <= bound.upper * (1 + 1e-9)
        assert bound.lower >= worst * (1 - 1e-6) - 2 * math.exp(level) * beyond  # all datasets of so few are tried
        assert bound.upper <= 1.1 * worst + beyond + 0.01
    just_below = Fraction(math.exp(0.995 * curve.pure))
    assert oracle.worst_delta(k, n, kept, raised, just_below, [noise]) > 0  # pure epsilon is attained, or its limit is


def test_a_column_with_noise_is_largest_over_all_compositions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against sums written anew, in blocks of one person and of several; cut crowds only raise the bound."""
    ratio, n = 0.8, 60
    noise = ratio ** np.abs(np.arange(-400, 401)) * (1 - ratio) / (1 + ratio)
    noise = np.convolve(noise, noise)
    bounds, two_servers = [], LaplaceNoise(ratio=ratio, number=2)
    for truth, lie in ((0.75, 0.25), (0.5, 0.1), (0.9, 0.5)):
        chances: Any = {"truth": Fraction(truth), "lie": Fraction(lie), "n": n}
        for level in (0.02, 0.08):
            worst = 0.0
            for ones in range(n):
                others = np.convolve(
                    binom.pmf(np.arange(ones + 1), ones, truth), binom.pmf(np.arange(n - ones), n - 1 - ones, lie)
                )
                p, q = (np.convolve(np.convolve(others, [1 - chance, chance]), noise) for chance in (truth, lie))
                worst = max(worst, float(np.maximum(p - math.exp(level) * q, 0.0).sum()))
            for blocks, crowd in ((800, 10**6), (8, 10**6), (800, 30)):
                monkeypatch.setattr(noisy_column, "_BLOCKS", (8, blocks))
                monkeypatch.setattr(noisy_column, "_CROWD", crowd)
                column = noisy_column.NoisyColumn(**chances, noise=two_servers, quiet=Column(**chances))
                bounds.append(column.upper(level) / worst)
    assert min(bounds) >= 1 - 1e-9
    assert max(bounds[::3]) <= 1 + 1e-5
    assert max(bounds[1::3]) < 1.2


@pytest.mark.parametrize(
    ("epsilon", "n", "scale"),
    [(4.0, 100, 5.0), (math.inf, 100, 5.0), (math.inf, 10_000, 20.0), (4.0, 2_000_000, 100.0)],
)
def test_the_joint_figure_is_below_both(epsilon: float, n: int, scale: float) -> None:
    noisy = hs.Protocol(randomizer=encoding(10, epsilon), shuffler=hs.SecureAggregation(laplace=scale), n=n)
    joint, alone = hs.dp.epsilon(noisy, delta=1e-6), hs.dp.epsilon(summed(encoding(10, epsilon), n), delta=1e-6)
    assert joint.upper <= min(alone.upper, 2 / scale) * (1 + 1e-4)
    assert joint.lower >= 0.85 * joint.upper
    none = hs.Protocol(randomizer=encoding(10, epsilon), shuffler=hs.SecureAggregation(laplace=scale, honest=0), n=n)
    assert hs.dp.epsilon(none, delta=1e-6).upper == alone.upper
    two = hs.Protocol(randomizer=encoding(10, epsilon), shuffler=hs.SecureAggregation(laplace=scale, honest=2), n=n)
    assert hs.dp.epsilon(two, delta=1e-6).upper <= joint.upper * (1 + 1e-4)
    assert hs.dp.epsilon(noisy, delta=0).kind == "exact"
    rounds = hs.dp.compose([(noisy, 3)], delta=1e-6)
    assert joint.lower < rounds.lower <= rounds.upper <= 3 * hs.dp.epsilon(noisy, delta=0).upper * (1 + 1e-9)


@pytest.mark.parametrize(("number", "reports"), [(1, 2), (2, 2), (1, 3)])
def test_several_reports_of_a_person_with_noise_of_servers(number: int, reports: int) -> None:
    noise, beyond = laplace_vectors(2, Fraction(1, 4), number, 6)
    for kept, raised in (CHANCES[0], (Fraction(1), Fraction(0))):
        growth = Fraction(math.exp(0.4))
        worst = float(oracle.worst_of_a_person(2, 4, reports, kept, raised, growth, [noise]))
        survey = hs.Protocol(
            randomizer=encoding(2, 2 * math.log(3) if raised else math.inf),
            shuffler=hs.SecureAggregation(laplace=1 / math.log(4), servers=number, honest=number),
            n=4,
        )
        bound = hs.dp.delta(survey, epsilon=0.4, reports_per_person=reports)
        assert bound.lower <= (worst + beyond) * (1 + 1e-9)
        assert worst - 2 * beyond <= bound.upper * (1 + 1e-9)
        pure = hs.dp.epsilon(survey, delta=0, reports_per_person=reports)
        assert pure.upper <= reports * hs.dp.epsilon(survey, delta=0).upper * (1 + 1e-9)


def test_drawn_noise_has_its_distribution_and_repeats_under_a_key() -> None:
    none = np.zeros(20_000, dtype=np.int64)
    shuffler = hs.SecureAggregation(laplace=3.0, servers=2)
    drawn = shuffler.noisy(none, rng=hs.reproducible(4))
    law = LaplaceNoise(ratio=math.exp(-1 / 3), number=2)
    assert abs(float(drawn.mean())) < 5 * math.sqrt(law.variance / none.size)
    assert float(drawn.var()) == pytest.approx(law.variance, rel=0.1)
    for least in (1, 4, 9, 20):
        assert np.count_nonzero(drawn >= least) / none.size == pytest.approx(law.chance(least), abs=0.01)
    keyed = [shuffler.noisy(none, rng=hs.keyed(key=bytes(32), records=np.arange(none.size))) for _ in range(2)]
    assert np.array_equal(keyed[0], keyed[1])
    with pytest.raises(InvalidInputError, match=r"`laplace` must be 0, or from 0\.1 to 10,000"):
        hs.SecureAggregation(laplace=0.01)
