"""Any finite randomizer: enumeration of all datasets lies between the ends; special cases agree."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws import plain_blanket
from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.local import FiniteLocal
from hushuffle.curves.laws.symmetric import Binary, Kary
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import BitFlipping, LocalHashing, MatrixRandomizer, Mechanism
from hushuffle.mechanisms.release import Release
from hushuffle.mechanisms.shufflers import NoShuffle, UniformShuffle
from hushuffle.numerics.score_sums import ReportScores, positive_part
from oracles import finite_enumeration as oracle
from plain_protocols import Opaque


def shuffled(randomizer: Mechanism, n: int, dummies: int = 0) -> FiniteDivergence:
    return FiniteDivergence.of(
        Release.of(hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=dummies), n=n))
    )


def rows_of(randomizer: Mechanism) -> list[list[float]]:
    rows: list[list[float]] = randomizer.channel().matrix.tolist()
    return rows


def random_case(seed: int) -> tuple[MatrixRandomizer, int, int, float]:
    rng = np.random.default_rng(seed)
    k, outputs, n = (int(rng.integers(low, high)) for low, high in ((2, 4), (2, 5), (1, 5)))
    matrix = rng.dirichlet(np.full(outputs, 0.8), size=k)
    if seed % 3 == 0:  # reports that some values cannot give
        holes = rng.random(matrix.shape) < 0.25
        holes[:, 0] = False
        matrix = np.where(holes, 0.0, matrix)
    if seed % 10 == 9:  # nothing in common
        matrix = np.eye(max(k, outputs))[:k, :outputs] if k <= outputs else np.eye(k)
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=matrix / matrix.sum(axis=1, keepdims=True)))
    dummies = int(rng.integers(0, 3)) if randomizer.law().blanket().weight > 0 else 0
    return randomizer, n, dummies, float(rng.choice([0.0, 0.1, 0.5, 1.0]))


@pytest.mark.parametrize("seed", range(40))
def test_enumeration_lies_between_the_ends(seed: int) -> None:
    randomizer, n, dummies, epsilon = random_case(seed)
    rows, law = rows_of(randomizer), shuffled(randomizer, n, dummies)
    worst = oracle.worst_delta(rows, n, math.exp(epsilon), dummies)
    blanket = oracle.blanket_delta(rows, n, math.exp(epsilon), dummies)
    upper, (lower, witness) = law.upper(epsilon), law.lower(epsilon)
    assert lower <= worst + 1e-13
    assert worst <= upper + 1e-13
    assert blanket * (1 - 1e-12) - 1e-14 <= upper <= blanket * 1.02 + 1e-12
    assert blanket <= float(law.plain._at_once(law.places, epsilon).max()) * (1 + 1e-12) + 1e-14
    counts = witness.others + (0,) * (len(rows) - len(witness.others))
    there = [
        d
        for d, others, pair in oracle.every_delta(rows, n, math.exp(epsilon), dummies)
        if (others, pair) == (counts, witness.target)
    ]
    assert lower <= float(there[0]) + 1e-13
    assert sum(counts) == n - 1


@pytest.mark.parametrize(("n", "dummies"), [(1, 0), (300, 0), (40, 7)])
def test_bounds_of_all_pairs_at_once_are_above_the_bounds_of_each(n: int, dummies: int) -> None:
    matrix = np.random.default_rng(3).dirichlet(np.full(6, 2.0), size=9)
    law = shuffled(MatrixRandomizer(channel=hs.Channel(matrix=matrix)), n, dummies)
    for epsilon in (0.0, 0.2, 1.0):
        each = np.array([law.plain.at(place, epsilon, law.smoothing) for place in law.places])
        assert (each <= law.plain._at_once(law.places, epsilon) * (1 + 1e-4)).all()
        assert law.blanket(epsilon) == pytest.approx(each.max(), rel=1e-9)


@pytest.mark.parametrize(
    ("k", "epsilon_0", "n"), [(3, 1.0, 1000), (5, 2.0, 10_000), (10, 3.0, 100_000), (4, 4.0, 1000)]
)
def test_randomized_response_as_a_matrix_agrees_with_its_own_law(k: int, epsilon_0: float, n: int) -> None:
    response = hs.RandomizedResponse(k=k, epsilon=epsilon_0)
    symmetric = response.law()
    truth, lie = float(symmetric.truth), float(symmetric.lie)
    own = privacy_curve(hs.Protocol(randomizer=response, shuffler=UniformShuffle(), n=n))
    finite = shuffled(MatrixRandomizer(channel=response.channel()), n)
    assert finite.places == ((0, 0),)
    blanket = BlanketBound.of(k=k, n=n, truth=truth, lie=lie, dummies=0)
    epsilon = 5 * (truth - lie) / math.sqrt(2 * lie * n)
    # One part in a thousand of epsilon moves delta by much more than the two sums differ.
    assert blanket.upper(epsilon * 1.0005) <= finite.upper(epsilon) <= blanket.upper(epsilon * 0.9995)
    assert own.lower(epsilon * 1.001)[0] <= finite.lower(epsilon)[0] <= own.upper(epsilon)
    few = finite.contenders(epsilon)
    assert few.lower(epsilon)[0] == pytest.approx(finite.lower(epsilon)[0], rel=1e-9)
    assert few.upper(epsilon) == finite.upper(epsilon)


@pytest.mark.parametrize(
    ("n", "dummies", "noise"), [(6, 0, 0.5), (6, 20, 5.0), (60, 0, 2.0), (60, 20, 0.5), (600, 0, 5.0), (600, 20, 2.0)]
)
def test_a_bound_holds_if_it_is_at_most_delta(n: int, dummies: int, noise: float) -> None:
    for randomizer in (hs.SquareWave(bins=4, epsilon=noise), hs.LocalHashing(k=9, g=3, epsilon=noise)):
        for delta in (1e-2, 1e-6):
            law = shuffled(randomizer, n, dummies).near(delta)
            for part in (0.02, 0.1, 0.3, 0.8):
                law.pool.ahead.clear()
                assert law.holds(part * noise, delta) == (law.upper(part * noise) <= delta)


def test_dummies_agree_with_the_blanket_of_randomized_response() -> None:
    response, n, dummies = hs.RandomizedResponse(k=3, epsilon=2.0), 400, 60
    symmetric = response.law()
    exact = BlanketBound.of(k=3, n=n, truth=float(symmetric.truth), lie=float(symmetric.lie), dummies=dummies)
    finite = shuffled(MatrixRandomizer(channel=response.channel()), n, dummies)
    for epsilon in (0.1, 0.4):
        assert exact.upper(epsilon) * (1 - 1e-9) <= finite.upper(epsilon) <= exact.upper(epsilon * 0.9995)
        assert 0.5 * exact.upper(epsilon) < finite.lower(epsilon)[0] <= exact.upper(epsilon)


def test_bit_flipping_worst_pairs_by_enumeration() -> None:
    """The published pair 00 -> 11 gives 0.137; the worst one 0.157."""
    randomizer = BitFlipping(width=2, p=0.25)
    rows = rows_of(randomizer)
    worst = oracle.worst_delta(rows, 3, math.e)
    assert round(worst, 3) == 0.157
    seed_pair = [
        d
        for d, others, pair in oracle.every_delta(rows, 3, math.e)
        if others == (2, 0, 0, 0) and pair in ((0, 3), (3, 0))
    ]
    assert round(float(max(seed_pair)), 3) == 0.137
    law = shuffled(randomizer, 3)
    assert law.lower(1.0)[0] <= worst <= law.upper(1.0)
    assert law.upper(1.0) == pytest.approx(oracle.blanket_delta(rows, 3, math.e), rel=0.02)


@pytest.mark.parametrize(("width", "p"), [(1, 0.2), (2, 0.4), (3, 0.1)])
@pytest.mark.parametrize("epsilon", [0.05, 0.6])
def test_bit_flipping_by_distance_is_bit_flipping_by_matrix(width: int, p: float, epsilon: float) -> None:
    randomizer = BitFlipping(width=width, p=p)
    short, full = shuffled(randomizer, 300), shuffled(MatrixRandomizer(channel=randomizer.channel()), 300)
    assert short.blanket(epsilon) == pytest.approx(full.blanket(epsilon), rel=1e-6)
    assert short.lower(epsilon)[0] <= full.upper(epsilon)
    assert short.lower(epsilon)[0] == pytest.approx(full.lower(epsilon)[0], rel=0.05)


@pytest.mark.parametrize(
    "randomizer",
    [
        LocalHashing(k=2, g=2, epsilon=1.0, family="affine"),
        LocalHashing(k=2, g=2, epsilon=1.0),
        LocalHashing(k=3, g=2, epsilon=1.0),
        LocalHashing(k=3, g=4, epsilon=1.0),
        LocalHashing(k=5, g=2, epsilon=2.0),
    ],
)
@pytest.mark.parametrize("n", [1, 2])
def test_local_hashing_by_enumeration(randomizer: LocalHashing, n: int) -> None:
    for epsilon in (0.0, 0.5):
        worst = oracle.worst_delta(rows_of(randomizer), n, math.exp(epsilon))
        law = shuffled(randomizer, n)
        assert law.lower(epsilon)[0] <= worst + 1e-13
        assert worst <= law.upper(epsilon) + 1e-13
        if n > 1 and law.laws[0].complete:
            for level in (0.9, 0.1, 1e-4):
                assert worst <= law.pool.over_all(law.places, epsilon, level) + 1e-13


def test_the_collision_probability_of_the_family_matters() -> None:
    """k = g = 2, hashes {01, 10}: values never collide; pretending that they do with probability 1/2 is no bound."""
    apart, pretended = LocalHashing(k=2, g=2, epsilon=1.0, family="affine"), LocalHashing(k=2, g=2, epsilon=1.0)
    assert apart.collision == 0
    assert 2 * pretended.collision == 1
    worst = oracle.worst_delta(rows_of(apart), 3, 1.0)
    assert shuffled(pretended, 3).upper(0.0) < worst <= shuffled(apart, 3).upper(0.0)


@pytest.mark.parametrize("n", [600, 20_000, 10**7])
@pytest.mark.parametrize("randomizer", [hs.HadamardResponse(k=16, epsilon=1.0), hs.SquareWave(bins=6, epsilon=2.0)])
def test_the_first_approximation_is_near_the_lower_bound(randomizer: Mechanism, n: int) -> None:
    for dummies in (0, 500):
        curve = shuffled(randomizer, n, dummies).near(1e-7)
        place, slope = curve.place(1e-7, curve.guess())
        best = curve.searched(1e-7).lower
        assert place == pytest.approx(best, rel=1e-5)
        ends = [math.sqrt(-math.log(curve.lower(best * part)[0])) for part in (0.99, 1.01)]
        assert slope == pytest.approx((ends[1] - ends[0]) / (0.02 * best), rel=0.01)


@pytest.mark.parametrize(("k", "epsilon", "n"), [(3, 1.0, 3000), (10, 3.0, 40_000), (60, 2.0, 10**6)])
def test_large_crowds_are_as_tight_as_the_law_of_k_ary_response(k: int, epsilon: float, n: int) -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=UniformShuffle(), n=n)
    own = privacy_curve(protocol)
    assert isinstance(own, Kary)
    assert own.general is not None
    assert own.general.tight
    for delta in (1e-3, 1e-6, 1e-12):
        general, tables = own.epsilon(delta), replace(own, general=None).epsilon(delta)
        assert general.upper <= tables.upper * (1 + 1e-6)
        assert general.lower >= tables.lower * (1 - 2e-6)


def test_pairs_that_only_rename_reports_have_one_blanket_bound() -> None:
    curve = shuffled(hs.SquareWave(bins=8, epsilon=2.0), 5000)
    (law,) = curve.laws
    assert len(set(law.renamed)) < len(law.pairs)
    each = [curve.plain.at(place, 0.1, curve.smoothing) for place in curve.places]
    for place, first in enumerate(law.renamed):
        assert each[place] == pytest.approx(each[first], rel=1e-12)
    assert curve.blanket(0.1) == pytest.approx(max(each), rel=1e-12)


def test_the_upper_end_falls_with_epsilon_and_n() -> None:
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.3, 0.4, 0.3]]))
    grid = [0.02 * step for step in range(12)]
    by_n = [[shuffled(randomizer, n).upper(epsilon) for epsilon in grid] for n in (100, 1000, 10_000)]
    for values in by_n:
        assert all(after < before for before, after in pairwise(values))
    for few, many in pairwise(by_n):
        assert all(after <= before for before, after in zip(few, many, strict=True))


def test_very_small_divergences_are_still_bounds() -> None:
    law = shuffled(LocalHashing(k=1000, g=4, epsilon=1.0), 10**6)
    for epsilon in (0.02, 0.1, 0.9):
        assert 0 <= law.lower(epsilon)[0] <= law.upper(epsilon)
    assert 0 < law.upper(0.02) < 1e-90
    assert law.upper(0.9) <= 1e-280
    assert law.upper(law.pure) == 0.0


def test_very_rare_reports_do_not_overflow() -> None:
    tiny = 2.0**-60
    channel = hs.Channel(matrix=[[0.5 - tiny, 0.5, tiny], [0.5, 0.5 - 2**-40, 2**-40], [0.5, 0.5 - tiny, tiny]])
    law = shuffled(MatrixRandomizer(channel=channel), 10**9)
    for epsilon in (0.0, 1e-9, 1e-3, 5.0):
        assert 0 <= law.lower(epsilon)[0] <= law.upper(epsilon) <= 2**-39


def test_what_is_certain_to_be_seen() -> None:
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=[[0.75, 0.25, 0.0], [0.25, 0.5, 0.25]]))
    law = shuffled(randomizer, 1000)
    assert law.pure == math.inf
    assert law.certain == pytest.approx(0.25)
    assert law.largest_finite == pytest.approx(math.log(3))
    assert law.upper(law.largest_finite) == pytest.approx(0.25)
    assert law.lower(10.0)[0] == pytest.approx(0.25, rel=1e-9)
    apart = shuffled(MatrixRandomizer(channel=hs.Channel(matrix=[[1, 0], [0, 1]])), 10)
    assert apart.certain == pytest.approx(1.0)
    assert apart.largest_finite == 0.0
    assert apart.upper(3.0) == pytest.approx(1.0)
    assert apart.guess() >= 0


def test_a_randomizer_that_says_nothing() -> None:
    law = shuffled(MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.5], [0.5, 0.5]])), 10)
    assert law.pure == 0.0
    assert (law.upper(0.0), law.lower(0.0)[0]) == (0.0, 0.0)


def test_senders_revealed() -> None:
    randomizer = BitFlipping(width=2, p=0.25)
    law = FiniteLocal.of(Release.of(hs.Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=3)))
    matrix = randomizer.channel().matrix
    for epsilon in (0.0, 1.0, 2.0):
        exact = max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a in matrix for b in matrix)
        assert law.upper(epsilon) == pytest.approx(exact, rel=1e-12)
        assert law.lower(epsilon)[0] == pytest.approx(law.upper(epsilon), rel=1e-12)
    assert law.upper(law.pure) == law.lower(law.pure)[0] == 0.0
    assert law.lower(0.0)[1].others[0] == 2


def test_unknown_laws_are_refused() -> None:
    survey = hs.Protocol(randomizer=Opaque(), shuffler=UniformShuffle(), n=3)
    for kind in (FiniteDivergence, FiniteLocal):
        with pytest.raises(UnsupportedProtocolError, match="matrix would have"):
            kind.of(Release.of(survey))


def test_what_is_counted_in_full_only_raises_the_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    # The blanket gives the rarest report with a chance of 1e-12; taken for one it never gives, it hides less.
    protocol = hs.Protocol(randomizer=BitFlipping(width=4, p=1e-3), shuffler=UniformShuffle(), n=1000)
    law = FiniteDivergence.of(Release.of(protocol))
    ends = []
    for faint in (1e-270, 1e-10, 1.0):
        monkeypatch.setattr(plain_blanket, "FAINT", faint)
        ends.append([law.upper(epsilon) for epsilon in (0.0, 1.0, 20.0)])
    for finer, coarser in pairwise(ends):
        assert all(a <= b * (1 + 1e-12) for a, b in zip(finer, coarser, strict=True))


@pytest.mark.parametrize("seed", range(16))
def test_the_smaller_of_two_bounds_is_evaluated_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, epsilon_0, n = int(rng.integers(3, 9)), float(rng.uniform(0.3, 3.0)), int(10 ** rng.uniform(2.8, 4.5))
    kinds = (
        hs.SubsetSelection,
        hs.HadamardResponse,
        hs.UnaryEncoding,
        lambda k, epsilon: hs.SquareWave(bins=k, epsilon=epsilon),
    )
    law = replace(shuffled(kinds[seed % 4](k=k, epsilon=epsilon_0), n), sliced=False).near(10 ** -rng.uniform(2, 10))
    for share in (0.0, 0.5, 1.0, 1.5):
        epsilon = share * law.guess()
        slow = min(law.pool.upper(law.places, epsilon, law.level), law.blanket(epsilon))
        assert law.upper(epsilon) == pytest.approx(slow, rel=1e-9)


def test_finer_blocks_only_lower_the_upper_end() -> None:
    law = privacy_curve(
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=500)
    )
    assert isinstance(law, Binary)
    ends = []
    for block in (1, 5, 25):
        coarse = replace(law, starts=np.arange(0, 500, block, dtype=np.float64), doubt=block - 1)
        ends.append([coarse.upper(epsilon) for epsilon in (0.0, 0.05, 0.2)])
    for finer, coarser in pairwise(ends):
        assert all(a <= b * (1 + 1e-12) for a, b in zip(finer, coarser, strict=True))


def test_scores_of_all_sizes_need_no_unit() -> None:
    # The same scores in units that floats can hardly hold.
    value, mass = np.array([3.0, -1.0]), np.array([0.2, 0.5])
    plain = positive_part(
        ReportScores(value=value, size=np.abs(value), mass=mass), np.ones(1) * 4, np.ones(1), smoothing=0.01
    )
    for unit in (2.0**-600, 2.0**600):
        scores = ReportScores(value=value * unit, size=np.abs(value) * unit, mass=mass)
        found = positive_part(scores, np.ones(1) * 4, np.ones(1), smoothing=0.01)
        assert found / unit == pytest.approx(plain, rel=1e-12)


def test_equal_scores_are_merged_at_the_largest_of_them() -> None:
    near = 1 - 2.0**-44
    scores = ReportScores(
        value=np.array([1.0, -2.0, near, 3.0]), size=np.array([1.0, 2.0, 1.0, 3.0]), mass=np.array([0.1, 0.2, 0.3, 0.4])
    )
    merged = scores.merged()
    assert merged.value.tolist() == [-2.0, 1.0, 3.0]
    assert merged.mass.tolist() == pytest.approx([0.2, 0.4, 0.4])
    assert float(scores.mass @ scores.value) <= float(merged.mass @ merged.value)


def test_a_report_that_a_dummy_may_give_is_not_certain_to_be_the_targets() -> None:
    """Sets of two of three values, the own one always in it: uniform dummies give any set."""
    response = hs.SubsetSelection(k=3, w=2, epsilon=math.inf)
    hidden, seen = shuffled(response, 3, dummies=1), shuffled(response, 3)
    assert seen.certain == pytest.approx(0.5)
    assert hidden.certain == 0
    rows = response.channel().matrix.tolist()
    assert seen.certain <= oracle.worst_delta(rows, 3, 1e9)
    protocol = hs.Protocol(randomizer=response, shuffler=hs.Scrambler(dummies=400), n=3)
    assert hs.dp.compose([(protocol, 2)], delta=0.2).upper < math.inf
