"""Datasets of any finite randomizer against enumeration: never above the truth, and close to it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

import hushuffle as hs
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.pairs import exact_loss
from hushuffle.curves.pairs.exact_loss import exact_pairs
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Witness
from oracles import dp_composition, dp_enumeration, finite_enumeration

SOMEBODY = Witness(family="test", others=(1,), target=(0, 1))
MATRIX = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]))
FINITE = (
    MATRIX,
    hs.BitFlipping(width=2, p=0.3),
    hs.LocalHashing(k=3, g=2, epsilon=1.0),
    hs.LocalHashing(k=3, g=3, epsilon=1.0, family="affine"),
    hs.TargetSampling(targets=4, sigma=0.3, flood=1),
    hs.RandomizedResponse(k=3, epsilon=1.2),
)


def surely(pair: DatasetPair, growth: float) -> float:
    """Return what a pair certifies in one round."""
    gain = np.maximum(pair.p - pair.p_error, 0.0) - growth * (pair.q + pair.q_error)
    return float(np.maximum(gain, 0.0).sum()) * math.exp(-pair.common) - 2 * math.expm1(pair.doubt)


def rows_of(randomizer: Mechanism) -> list[list[Fraction]]:
    matrix = randomizer.channel().matrix
    return [[Fraction(float(entry)) for entry in row] for row in matrix]


def dummy_law(randomizer: Mechanism, rows: list[list[Fraction]]) -> list[Fraction]:
    """Return the law of a dummy: a fresh hash with a uniform bucket, or what all values have in common."""
    if isinstance(randomizer, hs.LocalHashing):
        return [Fraction(1, len(rows[0]))] * len(rows[0])
    return [Fraction(mass) for mass in finite_enumeration.blanket_of(rows)[1]]


@pytest.mark.parametrize("dummies", [0, 1])
@pytest.mark.parametrize("randomizer", FINITE, ids=lambda randomizer: randomizer.describe()[:60])
def test_pairs_understate_the_datasets_they_name(randomizer: Mechanism, dummies: int) -> None:
    rows, n = rows_of(randomizer), 3
    curve = privacy_curve(hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=dummies), n=n))
    pairs = curve.datasets(log_tail=-60.0)
    assert pairs
    for pair in (*pairs, *(pair.swapped() for pair in pairs)):
        held = [*pair.witness.others, *[0] * len(rows)][: len(rows)]
        base = finite_enumeration.multisets([*rows, dummy_law(randomizer, rows)], (*held, dummies))
        first, second = (dp_enumeration.add_report(base, list(rows[value])) for value in pair.witness.target)
        for growth in (1.0, 1.1, 1.5, 2.5):
            exact = max(
                float(dp_enumeration.hockey_stick(one, two, Fraction(growth)))
                for one, two in permutations((first, second))
            )
            assert surely(pair, growth) <= exact * (1 + 1e-12) + 1e-15
            assert max(surely(pair, growth), surely(pair.swapped(), growth)) >= 0.999 * exact


@pytest.mark.parametrize(
    ("randomizer", "n", "times"),
    [(FINITE[0], 2, 3), (FINITE[0], 3, 2), *((randomizer, 2, 2) for randomizer in FINITE[1:])],
    ids=lambda value: value.describe()[:60] if isinstance(value, Mechanism) else str(value),
)
def test_rounds_of_any_finite_randomizer_hold_every_choice_of_datasets(
    randomizer: Mechanism, n: int, times: int
) -> None:
    rows = [[float(entry) for entry in row] for row in rows_of(randomizer)]
    pairs = dp_composition.finite_pairs(rows, n)
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=n)
    for level in (0.0, 0.4 * times):
        same = max(float(dp_composition.hockey_stick([pair] * times, math.exp(level))) for pair in pairs)
        bound = hs.dp.compose_delta([(protocol, times)], epsilon=level)
        assert bound.lower <= same * (1 + 1e-12) + 1e-15
        assert same <= bound.upper * (1 + 1e-12) + 1e-15
        # The dataset that is worst for these rounds need not be one of those tried.
        assert bound.lower >= 0.75 * same - 1e-6


@pytest.mark.parametrize("randomizer", FINITE[:5], ids=lambda randomizer: randomizer.describe()[:60])
def test_lower_ends_grow_with_the_rounds(randomizer: Mechanism) -> None:
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=2000)
    one, four, many = (hs.dp.compose([(protocol, times)], delta=1e-6) for times in (1, 4, 16))
    assert four.lower >= 1.8 * one.lower
    assert many.lower >= 1.8 * four.lower
    assert many.witness is not None
    assert many.witness.family.startswith("16 rounds with all others at")


laws = st.lists(st.floats(0.02, 1.0), min_size=4, max_size=4).map(lambda parts: np.array(parts) / sum(parts))


@settings(max_examples=40)
@given(first=laws, second=laws, third=laws, n=st.integers(1, 30), dummies=st.integers(0, 3), own=st.booleans())
def test_sums_of_scores_are_below_all_counts_and_near(
    first: np.ndarray, second: np.ndarray, third: np.ndarray, n: int, dummies: int, own: bool
) -> None:
    groups = ((n, first if own else third), (0 if own else dummies, third))
    (counted,) = exact_pairs(SOMEBODY, (first, second), groups, log_tail=-60.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_loss, "_FEW", -1)
        summed = exact_pairs(SOMEBODY, (first, second), groups, log_tail=-60.0)
    for growth in (1.0, 1.1, 2.0):
        truth = float(np.maximum(counted.p - growth * counted.q, 0.0).sum())
        for pair in summed:
            assert pair.p.sum() == pytest.approx(1.0, abs=1e-9)
            assert surely(pair, growth) <= truth * (1 + 1e-9) + 1e-14
            if own:  # then the sum says everything, but for the rounding of the scores
                assert surely(pair, growth) >= truth * (1 - 1e-3) - 1e-6


@pytest.mark.parametrize("tail", [-30.0, -150.0])
def test_errors_hold_and_are_small_deep_in_the_tails(tail: float) -> None:
    """Binary reports: the sum is a binomial count, known to forty digits."""
    mpmath = pytest.importorskip("mpmath")
    truth, n = 0.75, 1000
    near, far = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    (pair,) = exact_pairs(SOMEBODY, (near, far), [(n - 1, near)], log_tail=tail)
    with mpmath.workdps(40):
        masses = [
            mpmath.binomial(n, x) * mpmath.mpf(truth) ** (n - x) * mpmath.mpf(1 - truth) ** x for x in range(n + 1)
        ]
        exact = {round(float(mass), 320): mass for mass in masses}
        known = sorted((float(mass) for mass in exact.values() if mass > math.exp(tail)), reverse=True)
    kept = np.sort(pair.p[pair.p > math.exp(tail) * 2])[::-1]
    reference = np.array([mass for mass in known if mass > math.exp(tail) * 2])
    assert kept.size >= 0.98 * reference.size
    order = np.argsort(-pair.p)[: kept.size]
    # The truth lies within the errors given, up to the factor that p and q have in common.
    slack = np.asarray(pair.p_error)[order] + pair.common * pair.p[order]
    assert np.all(np.abs(pair.p[order] - reference[: kept.size]) <= slack + 1e-15 * reference[: kept.size])
    assert float((np.asarray(pair.p_error)[order] / pair.p[order]).max()) < 1e-6


def test_nodes_left_out_are_negligible(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    for count in (50, 3000, 40_000):
        target, own, other = rng.dirichlet(np.ones(5), 2), *rng.dirichlet(np.ones(5), 2)
        pairs: list[DatasetPair] = []
        for small in (80.0, math.inf):
            monkeypatch.setattr(exact_loss, "_SMALL", small)
            pairs += exact_pairs(SOMEBODY, (target[0], target[1]), [(count, own), (9, other)], log_tail=-40.0)
        least, whole = pairs
        assert np.array_equal(least.p, whole.p)
        assert np.allclose(least.p_error, whole.p_error, rtol=1e-6, atol=1e-34)


def test_too_long_a_sum_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_loss, "_LONGEST", 64)
    law = np.array([0.5, 0.3, 0.2])
    assert exact_pairs(SOMEBODY, (law, law[::-1]), [(10**6, law)], log_tail=-40.0) == ()


def test_a_report_that_nobody_else_gives_is_seen() -> None:
    first, second, other = np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6, 0.0])
    (pair,) = exact_pairs(SOMEBODY, (first, second), [(600, other)], log_tail=-40.0)
    seen = pair.swapped()
    assert surely(seen, 1.0) == pytest.approx(0.5, abs=0.01)


def ones_among(chance: float, bits: int) -> list[float]:
    return [math.comb(bits, ones) * chance**ones * (1 - chance) ** (bits - ones) for ones in range(bits + 1)]


_T = math.e / (math.e + 3)
_L = (1 - _T) / 3
_HASHING = hs.LocalHashing(k=50, g=4, epsilon=1.0, family="affine")
_APART = 1 - float(_HASHING.collision)


@pytest.mark.parametrize(
    ("randomizer", "near", "far"),
    [
        # A report supports the first value only, the second only, both, or neither.
        (
            _HASHING,
            [_APART * _T, _APART * _L, (1 - _APART) * _T, 1 - _APART * _L - _T],
            [_APART * _L, _APART * _T, (1 - _APART) * _T, 1 - _APART * _L - _T],
        ),
        # All bits of the two values differ: how many are set says everything.
        (hs.BitFlipping(width=3, p=0.1), ones_among(0.1, 3), ones_among(0.9, 3)),
        pytest.param(hs.BitFlipping(width=4, p=0.3), ones_among(0.3, 4), ones_among(0.7, 4), marks=pytest.mark.slow),
        (MATRIX, [0.1, 0.7, 0.2], [0.5, 0.2, 0.3]),
    ],
    ids=["hashing", "three bits", "four bits", "matrix"],
)
def test_three_rounds_agree_with_another_accountant(randomizer: Mechanism, near: list[float], far: list[float]) -> None:
    """Thirty people, all others at the target's value, composed by dp_accounting from listed counts."""
    people, chances = 30, (near, far)
    counts = [np.array(each) for each in dp_enumeration.compositions(people, len(near))]
    masses: list[dict[int, float]] = [{}, {}]
    for place, count in enumerate(counts):
        ways = math.factorial(people) / math.prod(math.factorial(int(number)) for number in count)
        base = ways * math.prod(mass**number for mass, number in zip(near, count, strict=True))
        for law, held in zip(chances, masses, strict=True):
            # The likelihood ratio against "the target at the others' value" is the mean over all reports.
            ratio = sum(number * law[y] / near[y] for y, number in enumerate(count)) / people
            held[place] = math.log(base * ratio)
    accountant = privacy_loss_distribution.from_two_probability_mass_functions(
        *masses, value_discretization_interval=1e-4, symmetric=False
    )
    backwards = privacy_loss_distribution.from_two_probability_mass_functions(
        *masses[::-1], value_discretization_interval=1e-4, symmetric=False
    )
    theirs = max(each.self_compose(3).get_epsilon_for_delta(1e-5) for each in (accountant, backwards))
    ours = hs.dp.compose([(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=people), 3)], delta=1e-5)
    assert theirs <= ours.lower * 1.006
    assert randomizer is _HASHING or ours.lower <= theirs  # there, all others at a third value are worse


def test_masses_that_no_tilt_knows_are_left_out() -> None:
    scrambled = hs.Protocol(
        randomizer=hs.TargetSampling(targets=20, sigma=0.9, convention="uniform"),
        shuffler=hs.Scrambler(dummies=50),
        n=300,
    )
    for log_tail in (-18.0, -25.0, -40.0):
        for pair in privacy_curve(scrambled).datasets(log_tail=log_tail):
            assert pair.p.max() <= 1 >= pair.q.max()
            assert pair.p.sum() == pytest.approx(1, abs=1e-6)
    several = hs.dp.compose([scrambled] * 2, delta=1e-4)
    assert 0.12 < several.lower <= several.upper < 0.1262


def test_reports_that_nothing_hides_compose_whatever_their_number() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.full(100, 5.0), size=2)
    protocol = hs.Protocol(
        randomizer=hs.MatrixRandomizer(channel=hs.Channel(matrix=matrix)), shuffler=hs.NoShuffle(), n=10
    )
    bound = hs.dp.compose([(protocol, 6)], delta=1e-4)
    assert bound.lower >= 0.97 * bound.upper


def test_tables_too_far_apart_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out only lowers the lower end."""
    rounds = [(hs.Protocol(randomizer=hs.BitFlipping(width=2, p=0.2), shuffler=hs.UniformShuffle(), n=2000), 2)]
    whole = hs.dp.compose(rounds, delta=1e-4)
    monkeypatch.setattr(exact_loss, "_WIDEST", 1 << 10)
    less = hs.dp.compose(rounds, delta=1e-4)
    assert 0 < less.lower <= whole.lower * (1 + 1e-9)
    assert less.upper == whole.upper
