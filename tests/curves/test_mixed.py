"""People with different randomizers: brackets around enumeration, and what may not change a figure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.rules.groups import MemberCurve
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism
from oracles import mixed_enumeration as oracle

Floats = npt.NDArray[np.float64]
UNIFORM = hs.UniformShuffle()


def matrix(rows: Any) -> hs.MatrixRandomizer:
    return hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))


def answers(epsilon: float, k: int = 5) -> hs.RandomizedResponse:
    return hs.RandomizedResponse(k=k, epsilon=epsilon)


def mixed(*groups: tuple[int, Mechanism], shuffler: Any = UNIFORM) -> hs.MixedProtocol:
    return hs.MixedProtocol(groups=groups, shuffler=shuffler)


def random_channel(rng: np.random.Generator, k: int, outputs: int) -> Floats:
    """A random channel; some have reports that some values cannot give."""
    rows = rng.dirichlet(np.full(outputs, float(rng.choice([0.5, 1.0, 5.0]))), size=k)
    if rng.random() < 0.3:
        holes = rng.random(rows.shape) < 0.2
        holes[:, 0] = False
        rows = np.where(holes, 0.0, rows)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def random_randomizers(rng: np.random.Generator, groups: int) -> list[Mechanism]:
    """Randomizers with the same reports: of one kind with different noise, or any matrices beside one another."""
    kind, k = rng.choice(["answers", "sets", "bits", "hashes", "matrices", "both"]), int(rng.integers(2, 4))
    epsilons = [float(rng.choice([0.3, 1.0, 3.0, math.inf])) for _ in range(groups)]
    if kind == "answers":
        return [answers(epsilon, k) for epsilon in epsilons]
    if kind == "sets":
        return [hs.SubsetSelection(k=3, w=2, epsilon=epsilon) for epsilon in epsilons]
    if kind == "bits":
        return [hs.BitFlipping(width=2, p=0.4 / (1 + min(epsilon, 9.0))) for epsilon in epsilons]
    if kind == "hashes":
        return [hs.LocalHashing(k=3, g=2, epsilon=epsilon) for epsilon in epsilons]
    outputs = k if kind == "both" else int(rng.integers(2, 4))
    found: list[Mechanism] = [
        matrix(random_channel(rng, k if kind == "both" else int(rng.integers(2, 4)), outputs)) for _ in epsilons
    ]
    return [*found[1:], answers(epsilons[0], k)] if kind == "both" else found


def check_around_enumeration(seed: int) -> int:
    """Compare both ends, and every pool, with every dataset, pair and direction; return how many were compared."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(0, 4)) for _ in range(int(rng.integers(2, 4)))]
    if not 0 < sum(sizes) <= 5:
        return 0
    randomizers = random_randomizers(rng, len(sizes))
    dummies = int(rng.choice([0, 0, 1, 2]))
    shuffler = hs.Scrambler(dummies=dummies) if dummies else UNIFORM
    crowd = mixed(*zip(sizes, randomizers, strict=True), shuffler=shuffler)
    growths = [0.0, 0.05, 0.3, 1.0, 2.5]
    groups = [(size, each.channel().matrix.tolist()) for size, each in zip(sizes, randomizers, strict=True)]
    compared, worst = 0, dict.fromkeys(growths, 0.0)
    for group, size in enumerate(sizes):
        if not size:
            continue
        member = crowd.member(group)
        try:
            curve = privacy_curve(member)
        except UnsupportedProtocolError:
            assert dummies, seed
            return 0
        law = randomizers[group].channel().matrix.shape[1] * [0.0]
        if dummies:
            law = blanket_law(randomizers[group])
        for epsilon in growths:
            true = oracle.worst_delta(groups, group, math.exp(epsilon), [law] * dummies)
            worst[epsilon] = max(worst[epsilon], true)
            bound = hs.dp.delta(member, epsilon=epsilon)
            assert bound.lower <= true * (1 + 1e-9) + 1e-13, (seed, group, epsilon, true, bound)
            assert true <= bound.upper * (1 + 1e-9) + 1e-13, (seed, group, epsilon, true, bound)
            for hiding in curve.crowds if isinstance(curve, MemberCurve) else ():
                assert true <= hiding.upper(epsilon) + 1e-13, (seed, group, epsilon)
                assert true <= pooled(hiding, epsilon) + 1e-13, (seed, group, epsilon)
                compared += 2
            compared += 2
        small = hs.dp.epsilon(member, delta=1e-3)
        if math.isfinite(small.upper):
            assert oracle.worst_delta(groups, group, math.exp(small.upper), [law] * dummies) <= 1e-3 + 1e-12
        assert curve.certain <= oracle.worst_delta(groups, group, 1e9, [law] * dummies) + 1e-7
    for epsilon, true in worst.items():
        bound = hs.dp.delta(crowd, epsilon=epsilon)
        assert bound.lower <= true * (1 + 1e-9) + 1e-13
        assert true <= bound.upper * (1 + 1e-9) + 1e-13
    return compared


def blanket_law(randomizer: Mechanism) -> list[float]:
    law = randomizer.law().blanket().law
    return [float(mass) for mass in law]


def pooled(curve: Any, epsilon: float) -> float:
    """The smallest pooled bound for pools of several sizes; 1 where there is no pool."""
    if not isinstance(curve, FiniteDivergence) or not curve.pool.others or not all(law.complete for law in curve.laws):
        return 1.0
    return min(curve.pool.over_all(curve.places, epsilon, level) for level in (0.9, 0.3, 1e-4))


QUICK = (0, 1, 2, 8, 10, 20, 22, 23, 25, 27)
LONG = (6, 11, 21, 24, 26)  # more than two seconds each; 14 and 19 take longer; others have too many people or none


@pytest.mark.parametrize("seed", [*QUICK, *(pytest.param(seed, marks=pytest.mark.slow) for seed in LONG)])
def test_both_ends_lie_around_every_dataset(seed: int) -> None:
    check_around_enumeration(seed)


@pytest.mark.parametrize("seed", [0, 1, 10, 22, 23])
def test_both_ends_lie_around_every_dataset_with_the_portions_of_large_crowds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushuffle.curves.laws.pooled._ENOUGH", 0.0)
    check_around_enumeration(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 700, 20))
def test_both_ends_lie_around_every_dataset_in_hundreds_of_crowds(start: int) -> None:
    compared = [check_around_enumeration(seed) for seed in range(start, start + 20)]
    assert sum(count > 0 for count in compared) >= 3


@pytest.mark.parametrize("n", [40, 400])
def test_a_group_with_nobody_changes_nothing(n: int) -> None:
    plain = mixed((n, answers(1.0)), (n // 4, answers(3.0)))
    more = mixed((n, answers(1.0)), (0, answers(0.5)), (n // 4, answers(3.0)))
    assert hs.dp.epsilon(more, delta=1e-5) == hs.dp.epsilon(plain, delta=1e-5)
    assert hs.dp.delta(more.member(2), epsilon=0.1) == hs.dp.delta(plain.member(1), epsilon=0.1)
    alone = hs.Protocol(randomizer=answers(1.0), shuffler=UNIFORM, n=n)
    assert hs.dp.epsilon(mixed((n, answers(1.0)), (0, answers(9.0))), delta=1e-5) == hs.dp.epsilon(alone, delta=1e-5)


def test_groups_of_the_same_randomizer_are_one_group() -> None:
    alone = hs.Protocol(randomizer=answers(1.0), shuffler=UNIFORM, n=1000)
    assert hs.dp.epsilon(mixed((300, answers(1.0)), (700, answers(1.0))), delta=1e-5) == hs.dp.epsilon(
        alone, delta=1e-5
    )


@pytest.mark.parametrize("n", [60, 1000])
def test_two_groups_of_the_same_matrix_are_about_what_one_group_is(n: int) -> None:
    """The two matrices are not seen to be the same one, so the groups' sizes outside the pool are told."""
    rows = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5]]
    alone = hs.dp.epsilon(hs.Protocol(randomizer=matrix(rows), shuffler=UNIFORM, n=n), delta=1e-5)
    both = hs.dp.epsilon(mixed((n // 3, matrix(rows)), (n - n // 3, matrix(rows))), delta=1e-5)
    assert both.upper >= alone.lower
    assert both.lower <= alone.upper
    assert both.upper <= 1.02 * alone.upper
    assert both.lower >= 0.99 * alone.lower


def test_who_has_less_noise_is_less_protected_and_spoils_little_for_the_others() -> None:
    crowd = mixed((9000, answers(1.0)), (1000, answers(4.0)))
    cautious, open_ = (hs.dp.epsilon(crowd.member(group), delta=1e-6) for group in (0, 1))
    assert cautious.upper < open_.lower
    assert hs.dp.epsilon(crowd, delta=1e-6) == open_
    assert open_.width < 0.01 * open_.lower
    assert cautious.width < 0.01 * cautious.lower
    fewer = hs.dp.epsilon(hs.Protocol(randomizer=answers(1.0), shuffler=UNIFORM, n=9000), delta=1e-6)
    assert cautious.upper < fewer.lower  # the thousand help to hide them


def test_who_has_no_noise_at_all_hides_among_the_others() -> None:
    crowd = mixed((9999, answers(1.0)), (1, answers(math.inf)))
    figure = hs.dp.epsilon(crowd.member(1), delta=1e-6)
    assert 0 < figure.lower <= figure.upper < 1
    assert figure.width < 0.01 * figure.lower
    assert hs.dp.epsilon(crowd.member(1), delta=0.0).upper == math.inf
    assert hs.dp.local_epsilon(crowd).upper == math.inf
    assert hs.dp.local_epsilon(crowd.member(0)).upper == pytest.approx(1.0)
    assert hs.dp.compose([(crowd.member(1), 3)], delta=1e-6).upper < 3 * figure.upper
    # Two of them: one can know the other's value, but it is enough that thousands do hide it.
    assert hs.dp.epsilon(mixed((9998, answers(1.0)), (2, answers(math.inf))), delta=1e-6).upper < 1


def test_finer_bins_of_the_pool_only_lower_the_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for bins in ((12.0,), (0.0, 12.0), (-2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 7.0, 12.0)):
        monkeypatch.setattr("hushuffle.curves.laws.pooled._BINS", bins)
        curve = privacy_curve(mixed((600, answers(1.0)), (300, answers(3.0))).member(0))
        assert isinstance(curve, MemberCurve)
        (hiding,) = (each for each in curve.crowds if isinstance(each, FiniteDivergence))
        ends.append(hiding.pool.over_all(hiding.places, 0.1, 1e-6))
    assert ends == sorted(ends, reverse=True)


def test_dummies_of_one_law_help_and_of_two_are_refused() -> None:
    groups = (300, answers(1.0)), (100, answers(4.0))
    few = hs.dp.epsilon(mixed(*groups), delta=1e-6)
    many = hs.dp.epsilon(mixed(*groups, shuffler=hs.Scrambler(dummies=2000)), delta=1e-6)
    assert many.upper < few.lower
    assert hs.dp.epsilon(
        mixed((1, answers(1.0)), (1, answers(math.inf)), shuffler=hs.Scrambler(dummies=999)), delta=0.01
    )
    two_laws = mixed((3, answers(1.0, 2)), (3, matrix([[0.9, 0.1], [0.5, 0.5]])), shuffler=hs.Scrambler(dummies=5))
    with pytest.raises(UnsupportedProtocolError, match="Dummies need one distribution"):
        hs.dp.epsilon(two_laws, delta=1e-6)


def test_other_shufflers_are_understood_or_refused() -> None:
    groups = (30, answers(1.0)), (10, answers(4.0))
    seen = mixed(*groups, shuffler=hs.NoShuffle())
    assert hs.dp.epsilon(seen, delta=0.0).upper == pytest.approx(4.0)
    assert hs.dp.epsilon(seen.member(0), delta=0.0).upper == pytest.approx(1.0)
    noisy = mixed(*groups, shuffler=hs.MallowsShuffle(reference=list(range(40)), theta=0.1))
    assert hs.dp.epsilon(noisy.member(0), delta=1e-4).upper == hs.dp.epsilon(seen.member(0), delta=1e-4).upper
    assert hs.dp.epsilon(noisy, delta=1e-4).lower == hs.dp.epsilon(mixed(*groups), delta=1e-4).lower
    for shuffler in (hs.BlanketMessages(p=0.1, honest=0.9), hs.Scrambler(dummies=4, cap=40)):
        with pytest.raises(UnsupportedProtocolError, match="without a cap and without people who collude"):
            hs.dp.epsilon(mixed(*groups, shuffler=shuffler), delta=1e-6)


def test_a_random_number_of_dummies_is_averaged_over() -> None:
    """The bracket lies between those of the fewest and of the most dummies, and holds the mean of delta."""
    groups = (60, answers(1.0)), (20, answers(4.0))
    few, many = (mixed(*groups, shuffler=hs.Scrambler(dummies=number)) for number in (10, 30))
    drawn = mixed(*groups, shuffler=hs.Scrambler(dummies=hs.DummyLaw.of({10: 0.25, 30: 0.75})))
    bounds = [hs.dp.delta(each, epsilon=0.5) for each in (few, many)]
    mean = hs.dp.delta(drawn, epsilon=0.5)
    assert mean.upper == pytest.approx(0.25 * bounds[0].upper + 0.75 * bounds[1].upper, rel=1e-9)
    assert bounds[1].lower < mean.lower <= mean.upper < bounds[0].upper


def test_messages_of_people_protect_about_as_much_as_as_many_dummies() -> None:
    """Lower bounds of epsilon differ by 10 % at most, which two deltas show without a search for epsilon."""
    groups = (75, answers(1.0)), (25, answers(4.0))
    own = mixed(*groups, shuffler=hs.BlanketMessages(p=0.08))
    alike = hs.dp.epsilon(mixed(*groups, shuffler=hs.Scrambler(dummies=8)), delta=1e-6).lower
    assert hs.dp.delta(own, epsilon=0.9 * alike).lower > 1e-6 > hs.dp.delta(own, epsilon=1.1 * alike).lower


def test_all_figures_of_a_protocol_are_there() -> None:
    crowd = mixed((400, answers(1.0, 3)), (100, answers(2.0, 3)))
    one = hs.dp.epsilon(crowd, delta=1e-5)
    assert hs.dp.compose([crowd], delta=1e-5) == one
    assert hs.dp.parallel([crowd, crowd.member(0)], delta=1e-5) == one
    assert hs.dp.compose([(crowd, 2)], delta=0.0).upper == pytest.approx(4.0)
    assert hs.dp.profile(crowd, points=3).delta(one.lower).upper >= 1e-5


@pytest.mark.slow
def test_rounds_of_people_with_different_randomizers_add_up() -> None:
    crowd = mixed((400, answers(1.0, 3)), (100, answers(2.0, 3)))
    one, twice = hs.dp.epsilon(crowd, delta=1e-5), hs.dp.compose([(crowd, 2)], delta=1e-5)
    assert one.lower < twice.lower <= twice.upper < 2 * one.upper
    assert hs.dp.compose_delta([(crowd, 2)], epsilon=twice.upper).lower <= 1e-5


def test_more_people_than_are_tested_are_refused() -> None:
    with pytest.raises(NumericalError, match="certified for at most"):
        hs.dp.epsilon(mixed((10**9, answers(1.0)), (2 * 10**9, answers(2.0))), delta=1e-6)


def test_matrices_beside_many_values_are_refused_before_they_are_written_down() -> None:
    bits = hs.BitFlipping(width=10, p=0.2)
    with pytest.raises(UnsupportedProtocolError, match="needs a matrix of 1,048,576 probabilities"):
        hs.dp.epsilon(mixed((10, bits), (10, answers(1.0, 1 << 10))), delta=1e-6)
    many = mixed((1000, answers(1.0, 10**9)), (1000, answers(2.0, 10**9)))
    assert hs.dp.epsilon(many.member(0), delta=1e-6).upper <= 1.0


def test_what_needs_one_randomizer_says_so() -> None:
    crowd = mixed((3, answers(1.0)), (2, answers(2.0)))
    for ask in (hs.qif.vulnerability, hs.pie.alpha, hs.dp.information):
        with pytest.raises(InvalidInputError, match="must be a Protocol, got protocol=<MixedProtocol>"):
            ask(crowd)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedProtocolError, match="one randomizer"):
        hs.dp.approximate([crowd], delta=1e-6)
    with pytest.raises(UnsupportedProtocolError, match="one report of each person"):
        hs.dp.epsilon(crowd, delta=1e-6, reports_per_person=2)
    with pytest.raises(UnsupportedProtocolError, match="people with different randomizers"):
        _ = crowd.randomizer
    assert hs.dp.local_epsilon(crowd.member(0), reports_per_person=2).upper == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (5, "<int>"),
        ("abc", "<str>"),
        ([], "<0 groups>"),
        ([(5, "coins")], "<group 0: tuple>"),
        ([5], "<group 0: int>"),
        ([(-1, answers(1.0))], r"groups\[0\]\[0\]"),
        ([(0, answers(1.0))], "<no person>"),
        ([(5, answers(1.0)), (5, answers(1.0, 4))], "<group 1: RandomizedResponse with 4 reports>"),
        ([(5, answers(1.0)), (5, hs.UnaryEncoding(k=300, epsilon=1.0))], "UnaryEncoding with 5 columns of reports>"),
        ([(5, answers(1.0))] * 17, "<17 groups>"),
    ],
)
def test_groups_that_are_none_are_refused(groups: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        hs.MixedProtocol(groups=groups, shuffler=UNIFORM)


def test_what_else_is_wrong_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="`shuffler` must be a Shuffler"):
        hs.MixedProtocol(groups=[(5, answers(1.0))], shuffler="none")  # type: ignore[arg-type]
    crowd = mixed((5, answers(1.0)), (0, answers(2.0)))
    with pytest.raises(InvalidInputError, match="`group` must be a group with people"):
        crowd.member(1)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        crowd.member(2)
    assert crowd.describe().startswith("5 people: every person reports one of 5 values")


@pytest.mark.parametrize(
    ("crowd", "most"),
    [
        (
            mixed((500, hs.SubsetSelection(k=8, w=2, epsilon=1.0)), (500, hs.SubsetSelection(k=8, w=2, epsilon=3.0))),
            1.02,
        ),
        (mixed((500, hs.UnaryEncoding(k=8, epsilon=1.0)), (500, hs.UnaryEncoding(k=8, epsilon=3.0))), 1.06),
        (mixed((1000, hs.SubsetSelection(k=10, w=3, epsilon=2.0)), shuffler=hs.Scrambler(dummies=500)), 1.06),
        (mixed((100, hs.SubsetSelection(k=10, w=3, epsilon=2.0)), shuffler=hs.Scrambler(dummies=50)), 1.06),
    ],
)
def test_reports_with_more_noise_hide_more(crowd: hs.MixedProtocol, most: float) -> None:
    for group in range(len(crowd.parts)):
        figure = hs.dp.epsilon(crowd.member(group), delta=1e-6)
        assert figure.lower < figure.upper < most * figure.lower
