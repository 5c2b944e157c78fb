"""The pooled bound: the inequality in rationals, above enumeration of every dataset, and narrow at size."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.curves.laws import mixed_sums as mixed
from hushuffle.curves.laws import pooled as pooled_laws
from hushuffle.curves.laws import slices
from hushuffle.curves.laws.kinds import Kinds, Others
from hushuffle.curves.laws.mixed_sums import MixedSums
from hushuffle.curves.laws.pooled import Pooled, Spots
from hushuffle.mechanisms.randomizers import MatrixRandomizer, Mechanism, ValueLaws
from oracles import finite_enumeration as oracle
from oracles.dp_enumeration import add_report, hockey_stick

Floats = npt.NDArray[np.float64]


def channel_of(rng: np.random.Generator, k: int, outputs: int) -> Floats:
    """A random channel; a third have reports that some values cannot give, a third symmetric ones."""
    matrix = rng.dirichlet(np.full(outputs, float(rng.choice([0.5, 1.0, 5.0]))), size=k)
    kind = rng.integers(3)
    if kind == 0:
        holes = rng.random(matrix.shape) < 0.2
        holes[:, 0] = False
        matrix = np.where(holes, 0.0, matrix)
    if kind == 1 and outputs >= k:
        matrix = np.full((k, outputs), 0.1) + np.eye(k, outputs)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def pooled(randomizer: Mechanism, n: int, dummies: int) -> Pooled:
    return Pooled.of(randomizer.law().pairs(), Others.alike(n - 1), dummies)


def every_place(law: Pooled) -> tuple[tuple[int, int], ...]:
    return tuple((i, j) for i, one in enumerate(law.laws) for j in range(len(one.pairs)))


def check_above_enumeration(seed: int) -> float:
    """Compare with every dataset, pair and direction; return by how much the bound is above, relatively."""
    rng = np.random.default_rng(seed)
    k, outputs, n = (int(rng.integers(low, high)) for low, high in ((2, 5), (2, 5), (2, 6)))
    randomizer = MatrixRandomizer(channel=hs.Channel(matrix=channel_of(rng, k, outputs)))
    rows: list[list[float]] = randomizer.channel().matrix.tolist()
    dummies, epsilon = int(rng.integers(0, 3)), float(rng.choice([0.0, 0.05, 0.3, 1.0]))
    if randomizer.law().blanket().weight == 0:
        return 0.0
    law = pooled(randomizer, n, dummies)
    true = oracle.worst_delta(rows, n, math.exp(epsilon), dummies)
    for level in (0.9, 0.3, 1e-4):
        upper = law.over_all(every_place(law), epsilon, level)
        assert true <= upper + 1e-13, (seed, level)
    return upper / max(true, 1e-300)


@pytest.mark.parametrize("seed", range(40))
def test_every_dataset_is_below(seed: int) -> None:
    check_above_enumeration(seed)


@pytest.mark.slow
def test_every_dataset_is_below_in_two_thousand_channels() -> None:
    for seed in range(100, 2100):
        check_above_enumeration(seed)


def test_the_pool_hides_what_it_says() -> None:
    """The inequality itself, in rationals: any pool, any dataset, dummies and people with other randomizers too."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        laws, outputs = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        weights = rng.integers(1, 9, size=(laws, outputs))
        rows = [[Fraction(int(each), int(row.sum())) for each in row] for row in weights]
        others = [int(law) for law in rng.integers(laws, size=int(rng.integers(1, 5 if outputs == 2 else 4)))]
        first, second = (int(law) for law in rng.permutation(laws)[:2])
        growth = Fraction(int(rng.integers(10, 30)), 10)
        taken = [min(column) * Fraction(int(rng.integers(1, 20)), 20) for column in zip(*rows, strict=True)]
        held = tuple(others.count(law) for law in range(laws))
        base = oracle.multisets(rows, held)
        true = hockey_stick(add_report(base, list(rows[first])), add_report(base, list(rows[second])), growth)
        assert true <= oracle.pool_bound(rows, others, (first, second), growth, taken)


def test_slices_hide_what_they_say() -> None:
    """The inequality itself, in rationals, for 500 channels, datasets, slices and portions.

    Some slices leave a report to the target.
    """
    rng = np.random.default_rng(6)
    for _ in range(500):
        laws, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        weights = rng.integers(1, 9, size=(laws, outputs))
        rows = [[Fraction(int(each), int(row.sum())) for each in row] for row in weights]
        others = [int(law) for law in rng.integers(laws, size=int(rng.integers(1, 5 if outputs == 2 else 4)))]
        first, second = (int(law) for law in rng.permutation(laws)[:2])
        growth = Fraction(int(rng.integers(10, 30)), 10)
        parts = rng.integers(0, 5, size=(int(rng.integers(1, 5)), outputs))
        whole = [int(part) for part in parts.sum(axis=0) + 1]
        least = [min(column) for column in zip(*rows, strict=True)]
        portions = [Fraction(int(rng.integers(1, 6)), int(rng.integers(1, 3))) for _ in others]
        rarest = max(portions)
        taken = [
            [y * Fraction(int(p), q) / rarest for y, p, q in zip(least, part, whole, strict=True)] for part in parts
        ]
        base = oracle.multisets(rows, tuple(others.count(law) for law in range(laws)))
        true = hockey_stick(add_report(base, list(rows[first])), add_report(base, list(rows[second])), growth)
        assert true <= oracle.slices_bound(rows, others, (first, second), growth, taken, portions)
        with pytest.raises(ValueError, match="more than a person has"):
            oracle.slices_bound(rows, others, (first, second), growth, [*taken, [*rows[others[0]][:1], *taken[0][1:]]])


@pytest.mark.parametrize("seed", range(20))
def test_slices_take_less_than_every_value_gives(seed: int) -> None:
    law, epsilon = screened_cases(seed)
    table = law.laws[0]
    common = table.weight * table.blanket
    masses = [share * pooled_laws.MOST * table.weight for share in (1e-3, 0.1, 0.5, 0.9, 1 - 1e-9)]
    if not table.weight:
        return
    twice = replace(table, rows=np.repeat(table.rows / 2, 2, axis=1), blanket=np.repeat(table.blanket / 2, 2))
    every = range(len(table.pairs))
    ((whole,), (halves,)) = (slices.filled(each, every, epsilon, masses) for each in (table, twice))
    for shares, doubled in zip(whole, halves, strict=True):
        for share, less, mass in zip(shares, [0 * common, *shares], masses, strict=False):
            assert bool((less <= share).all())
            assert bool((share <= 0.8 * common).all())
            assert bool((share <= table.rows).all())
            assert float(share.sum()) == pytest.approx(mass, rel=1e-12)
        # Reports that are alike for the target and in what all have in common lose the same share: for every value.
        for share, split in zip(shares, doubled, strict=True):
            assert split == pytest.approx(np.repeat(share / 2, 2), rel=1e-12, abs=1e-300)


def test_two_groups_of_terms_are_below_the_bound() -> None:
    """Hypergeometric sizes: E of the positive part over how many of six dummies are outside, by enumeration."""
    near, far = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    people = Kinds.of(near, far, np.stack([near, far]))
    dummies = Kinds.of(near, far, np.full((1, 3), 1 / 3))
    spots = Spots.of((8, 6), (0.2, 0.2), ends=(0.0,))
    (total,), epsilon = spots.totals.round().astype(int).tolist(), 0.2
    bound = MixedSums(groups=(people, dummies), epsilon=epsilon, counts=spots.counts, shares=spots.shares)
    upper = float(np.exp(bound.raised(np.full(1, -np.inf)))[0])
    given = 14 + 1 - total - 1  # others in the pool beside the replaced one
    ways = [math.comb(6, gone) * math.comb(8, given - gone) for gone in range(given + 1)]
    for kind in range(2):
        true = 0.0
        for gone, way in enumerate(ways):
            value: npt.NDArray[Any] = np.zeros(1)
            law: npt.NDArray[Any] = np.ones(1)
            for each in [people.part(kind)] * (total - 6 + gone) + [dummies] * (6 - gone):
                scores = each.scores(epsilon)
                value, place = np.unique(np.add.outer(value, scores.value).ravel().round(9), return_inverse=True)
                law = np.bincount(place.ravel(), weights=np.multiply.outer(law, scores.mass).ravel())
            true += way / math.comb(14, given) * float(law @ np.maximum(value, 0.0))
        assert true <= upper <= 1.2 * true or kind


def test_too_many_choices_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    laws = rng.dirichlet(np.full(4, 8.0), size=6)
    groups = (Kinds.of(laws[0], laws[1], laws[:3]), Kinds.of(laws[0], laws[1], laws[3:]))
    spots = Spots.of((60, 40), (0.1, 0.1))
    known = np.full(spots.weights.shape, -np.inf)
    each = MixedSums(groups=groups, epsilon=0.1, counts=spots.counts, shares=spots.shares).raised(known)
    monkeypatch.setattr("hushuffle.curves.laws.mixed_sums._CHOICES", 1)
    together = MixedSums(groups=groups, epsilon=0.1, counts=spots.counts, shares=spots.shares).raised(known)
    assert bool((together >= each - 1e-9).all())
    assert bool((together <= each + 0.7).all())


@pytest.mark.parametrize(("sizes", "weight"), [((99,), 0.1), ((60, 40), 0.05), ((3, 200), 0.3), ((7, 1, 2), 0.6)])
def test_spots_are_all_there_is(sizes: tuple[int, ...], weight: float) -> None:
    spots = Spots.of(sizes, (weight,) * len(sizes))
    total = sum(sizes)
    assert spots.empty + spots.beyond + float(spots.weights.sum()) == pytest.approx(1, abs=1e-8)
    assert spots.shares.sum(axis=1) == pytest.approx(np.ones(spots.weights.size))
    mean = np.einsum("bv,bvg->bg", spots.shares, spots.counts)
    assert mean == pytest.approx(np.outer(spots.totals, np.array(sizes) / total))
    # Whatever the pool takes, the sizes outside lie in the simplex.
    for counts, outside in zip(spots.counts, spots.totals.round(9).tolist(), strict=True):
        low = np.diag(counts[:, :]) if len(sizes) == 1 else counts.min(axis=0)
        assert bool((low <= np.maximum(np.array(sizes) - (total + 1 - outside - 1), 0)).all())


@pytest.mark.parametrize("dummies", [0, 40])
def test_finer_bins_of_the_pool_only_lower_the_upper_end(dummies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law = pooled(hs.SubsetSelection(k=6, w=2, epsilon=1.0), 300, dummies)
    ends = (-1.5, -0.5, 0.3, 1.0, 1.7, 2.5, 4.0, 7.0, 12.0)
    found = []
    for used in (ends, ends[1::2], ends[-1:]):
        monkeypatch.setattr("hushuffle.curves.laws.pooled._BINS", used)
        found.append([law.over_all(((0, 0),), e, 1e-4) for e in (0.1, 0.2)])
    for finer, coarser in pairwise(found):
        assert all(a <= b for a, b in zip(finer, coarser, strict=True))


def test_pairs_that_only_rename_are_compared_once() -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        k = int(rng.integers(2, 5))
        matrix = channel_of(rng, k, int(rng.integers(k, 6)))
        randomizer = MatrixRandomizer(channel=hs.Channel(matrix=matrix))
        (law,) = randomizer.law().pairs()
        if law.weight == 0:
            continue
        every = replace(law, pairs=tuple(permutations(range(k), 2)))
        few, all_pairs = (Pooled.of((one,), Others.alike(80), 3) for one in (law, every))
        assert len(law.pairs) <= len(every.pairs)
        for epsilon in (0.05, 0.4):
            assert few.over_all(every_place(few), epsilon, 1e-3) == pytest.approx(
                all_pairs.over_all(every_place(all_pairs), epsilon, 1e-3), rel=1e-3
            )


def test_closed_forms_say_what_their_matrix_says() -> None:
    for randomizer in (hs.SubsetSelection(k=6, w=2, epsilon=1.5), hs.SubsetSelection(k=5, w=3, epsilon=0.5)):
        short, full = (pooled(one, 500, 20) for one in (randomizer, MatrixRandomizer(channel=randomizer.channel())))
        for epsilon in (0.05, 0.3):
            assert short.over_all(every_place(short), epsilon, 1e-4) == pytest.approx(
                full.over_all(every_place(full), epsilon, 1e-4), rel=1e-6
            )


def test_randomized_response_by_its_pairs() -> None:
    """The kinds of the closed form, and all values of the matrix, give one bound, above the true one."""
    for k in (3, 5):
        response = hs.RandomizedResponse(k=k, epsilon=1.0)
        short = Pooled.of(response.law().pairs(), Others.alike(999), 0)
        full = pooled(MatrixRandomizer(channel=response.channel()), 1000, 0)
        own = hs.dp.delta(hs.Protocol(randomizer=response, shuffler=hs.UniformShuffle(), n=1000), epsilon=0.15)
        first, second = (law.over_all(every_place(law), 0.15, 1e-9) for law in (short, full))
        assert first == pytest.approx(second, rel=1e-6)
        assert own.lower <= first <= 1.1 * own.upper


def screened_cases(seed: int) -> tuple[Pooled, float]:
    """A pool of people of one or two randomizers, perhaps with dummies; near-ties and zeros occur."""
    rng = np.random.default_rng(seed)
    k, outputs = int(rng.integers(3, 7)), int(rng.integers(3, 7))
    matrix = channel_of(rng, k, outputs)
    if seed % 3 == 0:  # a ring, in every other case with one entry perturbed
        away = np.abs(np.arange(k)[:, None] - np.arange(k))
        matrix = np.exp2(-np.minimum(away, k - away))
        matrix[0, 1] *= 1 + 1e-7 * (seed % 2)
        matrix /= matrix.sum(axis=1, keepdims=True)
    people = int(rng.choice([60, 900, 10**5]))
    law = pooled(MatrixRandomizer(channel=hs.Channel(matrix=matrix)), people, int(rng.choice([0, 0, 5, 400])))
    if seed % 4 == 1:  # half of the people have other rows
        rows = 0.7 * matrix + 0.3 * matrix.mean(axis=0)
        table = replace(law.laws[0], rows=np.concatenate([matrix, rows]), groups=(slice(0, k), slice(k, 2 * k)))
        law = Pooled.of((table,), Others(groups=((people // 2, 0), (people // 2, 1))), law.dummies)
    return law, float(rng.choice([0.0, 0.01, 0.1, 0.6]))


CASES = [*range(30), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(30, 60))]


@pytest.mark.parametrize("seed", CASES)
def test_a_fast_bound_on_all_pairs_raises_no_figure(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law, epsilon = screened_cases(seed)
    if not law.usable():
        return
    fast = [law.over_all(every_place(law), epsilon, level) for level in (1e-2, 1e-6)]
    monkeypatch.setattr(Pooled, "_screened", lambda _, places, *__: np.full((len(places), 1), np.inf))
    every = [law.over_all(every_place(law), epsilon, level) for level in (1e-2, 1e-6)]
    # A pair whose fast bound is the smaller one is not refined.
    assert all(0.8 * slow <= value <= slow * (1 + 1e-12) + 1e-300 for value, slow in zip(fast, every, strict=True))


@pytest.mark.parametrize("seed", CASES)
def test_a_fast_bound_holds_for_each_pair_and_type(seed: int) -> None:
    """Its three parts, next to the distributions outside the pool; its sums, next to close bounds for each pair."""
    law, epsilon = screened_cases(seed)
    if not law.usable():
        return
    level, tilt = 1e-3, float(10.0 ** -(seed % 4))
    spots = law._spots(law.weight(level))
    bounds = law._screened(every_place(law), epsilon, level, tilt)
    table = law.laws[0]
    common = table.weight * table.blanket
    fewest = int(np.searchsorted(0.5 * np.cumsum(np.sort(common)), law.weight(level)))
    if fewest >= common.size:
        assert bool(np.isinf(bounds).all())
        return
    for place, bound in zip(every_place(law), bounds, strict=True):
        near, far = table.rows[list(table.pairs[place[1]])]
        away = pooled_laws._away(near, far, common)
        near_pool = (away <= np.partition(away, fewest)[fewest])[None]
        logs = []
        odds = pooled_laws.odds(law.portions, law.weight(level))
        for kinds, part, more in zip(law._kinds(place, level), law.portions, odds, strict=True):
            own = kinds.own.reshape(kinds.starts.size, -1)
            weight, gain = part * law.weight(level), more * (near - math.exp(epsilon) * far)[None]
            rows = own * (1 - weight) + part * pooled_laws._pool(table, *table.pairs[place[1]], law.weight(level))
            (log,), (spread,), (reach,) = pooled_laws._moments(tilt * gain, near_pool, weight, rows)
            logs.append(log)
            if not np.isfinite(log) or bool((own <= 0).any()):
                continue
            x = tilt * gain / own
            mass = own * np.exp(x)
            mean, square = ((mass * x**power).sum(axis=1) / mass.sum(axis=1) for power in (1, 2))
            assert log >= np.log(mass.sum(axis=1)).max() - 1e-13
            assert spread <= (square - mean**2).min() + 1e-13 * (1 + square.max())
            assert reach >= np.abs(x).max() * (1 - 1e-12)
        sums = MixedSums(groups=law._kinds(place, level), epsilon=epsilon, counts=spots.counts, shares=spots.shares)
        close = sums.raised(np.full(spots.weights.size, -np.inf))
        if tilt == sums.best:
            assert bool((bound >= close - 0.01).all())


def test_a_fast_bound_is_often_finite() -> None:
    laws = [law for law, _ in map(screened_cases, range(30)) if law.usable()]
    bounds = [law._screened(every_place(law), 0.1, 1e-3, 0.01) for law in laws]
    assert sum(bool(np.isfinite(each).all()) for each in bounds) >= 10


@pytest.mark.parametrize("seed", range(40))
def test_coarse_bounds_of_all_choices_are_above_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, cap = rng.integers(1, 4, size=2), float(rng.choice([0.4, math.inf]))
    rows = rng.dirichlet(np.full(3, float(rng.choice([0.5, 3.0]))), size=7) + 1e-3
    rows /= rows.sum(axis=1, keepdims=True)
    groups = tuple(Kinds.of(rows[0], rows[1], rows[2 + 2 * g : 4 + 3 * g]) for g in (0, 1))
    sums = MixedSums(groups=groups, epsilon=0.2, counts=counts[None, None].astype(float), shares=np.ones((1, 1)))
    tilt = float(rng.choice([0.1, 1.0, 4.0]))
    choices, values = mixed._ScoreTransforms(sums=sums, cap=cap, nodes=mixed.nodes_at(tilt, 0.0)).ordered()
    assert sorted(choices) == [(a, b) for a in range(2) for b in range(3)]
    coarse = math.exp(float(sums.coarse(tilt / sums._unit)[0, 0])) / sums._unit
    for choice, value in zip(choices, values, strict=True):
        law = {0.0: 1.0}
        for group, kind in enumerate(choice):
            scores = sums.of_kind(group, kind)
            for _ in range(int(counts[group])):
                grown: dict[float, float] = {}
                for total, chance in law.items():
                    for score, mass in zip(np.minimum(scores.value, cap).tolist(), scores.mass.tolist(), strict=True):
                        grown[total + score] = grown.get(total + score, 0.0) + chance * mass
                law = grown
        positive = sum(chance * max(total, 0.0) for total, chance in law.items())
        assert positive <= math.exp(float(value[0, 0])) * (1 + 1e-12)
        assert math.isfinite(cap) or positive <= coarse


def test_a_pool_without_room_hides_nothing() -> None:
    law = pooled(hs.SubsetSelection(k=6, w=2, epsilon=1.0), 1, 0)
    assert not law.usable()
    rare = ValueLaws(
        rows=np.array([[0.5, 0.5], [0.5, 0.5]]),
        labels=(0, 1),
        blanket=np.array([0.5, 0.5]),
        weight=1e-9,
        pairs=((0, 1),),
        complete=True,
    )
    assert not Pooled.of((rare,), Others.alike(10), 0).usable()
