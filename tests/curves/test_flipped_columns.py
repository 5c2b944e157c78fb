"""Several filters: enumeration lies between the ends, by the pool's argument term by term, and at size."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.flipped_columns import FlippedColumns
from hushuffle.curves.laws.flipped_pairs import AllAlike, CommonPool, OneLogo, PairFamily
from hushuffle.curves.laws.mixed_sums import MixedSums
from hushuffle.curves.laws.symmetric import Binary
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.release import Release
from oracles import bloom_enumeration as oracle
from oracles import finite_enumeration


def columns(filters: int, bits: int, p: float, shuffler: hs.UniformShuffle | hs.Scrambler | None = None) -> hs.Protocol:
    flipping = hs.BitFlipping(width=filters, p=p)
    return hs.Protocol(randomizer=flipping, shuffler=shuffler or hs.UniformShuffle(), n=bits)


def law_of(filters: int, bits: int, p: float) -> FlippedColumns:
    return FlippedColumns.of(Release.of(columns(filters, bits, p)))


@pytest.mark.parametrize(("filters", "bits"), [(2, 1), (2, 2), (2, 4), (3, 2)])
@pytest.mark.parametrize("p", [0.05, 0.25, 0.45])
def test_every_dataset_lies_between_the_ends(filters: int, bits: int, p: float) -> None:
    law = law_of(filters, bits, p)
    for epsilon in (0.0, 0.3, 1.5):
        true = float(oracle.worst(filters, bits, Fraction(p), Fraction(math.exp(epsilon)))[0])
        low, high = law.contenders(epsilon).lower(epsilon)[0], law.upper(epsilon)
        assert low <= true * (1 + 1e-12)
        assert true <= high * (1 + 1e-12)


def test_the_lower_end_is_the_pair_it_names() -> None:
    p, bits, epsilon = 0.25, 5, 0.5
    low, witness = law_of(2, bits, p).contenders(epsilon).lower(epsilon)
    others = [logo for logo, number in enumerate(witness.others) for _ in range(number)]
    exact = oracle.pair_delta(oracle.channel(2, Fraction(p)), others, witness.target, Fraction(math.exp(epsilon)))
    assert low == pytest.approx(float(exact), rel=0.02)
    assert low <= exact


@pytest.mark.parametrize("others", [0b00, 0b01, 0b11])
@pytest.mark.parametrize("target", [(0b00, 0b11), (0b00, 0b01), (0b10, 0b01)])
def test_all_others_alike_is_exact(others: int, target: tuple[int, int]) -> None:
    p, bits = Fraction(1, 5), 6
    law = AllAlike.of(width=2, flip=p, n=bits, others=others, target=target)
    for epsilon in (0.0, 0.4, 1.0):
        exact = float(
            oracle.pair_delta(oracle.channel(2, p), [others] * (bits - 1), target, Fraction(math.exp(epsilon)))
        )
        low, witness = law.lower(epsilon)
        assert low <= exact <= law.upper(epsilon)
        assert law.upper(epsilon) - low <= 0.01 * exact
        # The witness has its logos renamed, so that the others hold 0.
        assert {witness.target[0] ^ others, witness.target[1] ^ others} == set(target)
    assert law.upper(law.pure) == 0.0
    assert 0 < law.guess() <= law.pure / 2


def test_one_person_alone() -> None:
    law = OneLogo.of(width=3, flip=Fraction(1, 4), n=1, distance=2, ones=0, apart=1)
    exact = 9 / 16 - math.exp(0.5) / 16  # only the report a + b is likelier under a by more than e**0.5
    assert law.lower(0.5)[0] == pytest.approx(exact, rel=1e-12)
    assert law.upper(0.5) == pytest.approx(exact, rel=1e-12)
    assert law.witness.family == "all others at a third bit pattern"


def test_mixed_datasets_are_covered() -> None:
    """E[sum]_+ over two kinds of columns, half each, by enumeration of the counts: below the bound for all kinds."""
    p, half, epsilon = Fraction(1, 4), 12, 0.3
    family = PairFamily.tabulated(width=2, flip=p, distance=2, pool=CommonPool.none(width=2, distance=2))
    sums = MixedSums.alike(family, epsilon, np.array([2.0 * half]))
    bound = float(np.exp(sums.raised(np.array([-np.inf])))[0])
    for first in range(3):
        for second in range(3):
            total = np.array([0.0])
            law = np.array([1.0])
            for kind in [first] * half + [second] * half:
                scores = family.part(kind).scores(epsilon)
                total = np.add.outer(total, scores.value).ravel()
                law = np.multiply.outer(law, scores.mass).ravel()
                total, place = np.unique(total.round(9), return_inverse=True)
                law = np.bincount(place.ravel(), weights=law)
            assert float(law @ np.maximum(total, 0.0)) <= bound


def test_capped_scores_only_raise_the_bound() -> None:
    family = PairFamily.tabulated(
        width=20, flip=Fraction(0.365), distance=20, pool=CommonPool.none(width=20, distance=20)
    )
    sums = MixedSums.alike(family, 0.6, np.array([10_000.0]))
    caps = sums._caps()
    assert len(caps) == 3
    values = [float(sums._excess(cap).max()) for cap in caps]
    assert values[0] >= values[1] >= values[2] == 0.0


def test_known_values_are_kept() -> None:
    family = PairFamily.tabulated(width=2, flip=Fraction(1, 4), distance=1, pool=CommonPool.none(width=2, distance=1))
    sums = MixedSums.alike(family, 0.3, np.array([100.0]))
    assert sums.raised(np.array([50.0])).tolist() == [50.0]


@pytest.mark.parametrize(
    ("filters", "bits", "p", "delta", "width"),
    [
        (2, 10**5, 0.145, 1e-3, 0.006),
        (2, 1000, 0.45, 1e-3, 0.01),
        (3, 10**4, 0.1, 1e-3, 0.015),
        (4, 10**6, 0.49, 1e-9, 0.002),
        (4, 1000, 0.4, 1e-6, 0.005),
        (6, 10**5, 0.145, 1e-3, 0.11),
        (20, 10**4, 0.365, 1e-3, 0.07),
    ],
)
def test_the_bracket_is_narrow(filters: int, bits: int, p: float, delta: float, width: float) -> None:
    bound = hs.dp.epsilon(columns(filters, bits, p), delta=delta)
    assert bound.width <= width * bound.lower


def test_narrower_than_the_plain_blanket() -> None:
    for filters, bits, p, epsilon in ((2, 10**4, 0.2, 0.05), (6, 10**5, 0.145, 0.95)):
        plain, law = FiniteDivergence.of(Release.of(columns(filters, bits, p))), law_of(filters, bits, p)
        assert law.upper(epsilon) < 0.5 * plain.blanket(epsilon)
        assert law.upper(epsilon) >= plain.lower(epsilon)[0]


def test_small_filters_are_never_worse_than_the_blanket() -> None:
    plain, law = FiniteDivergence.of(Release.of(columns(2, 20, 0.4))), law_of(2, 20, 0.4)
    assert law.upper(0.1) <= plain.blanket(0.1)


def test_hardly_any_flips_hide_nothing() -> None:
    law, seen = (
        law_of(3, 50, 0.01),
        hs.Protocol(randomizer=hs.BitFlipping(width=3, p=0.01), shuffler=hs.NoShuffle(), n=50),
    )
    assert law.upper(1.0) == pytest.approx(privacy_curve(seen).upper(1.0), rel=1e-12)
    assert law.upper(1.0) >= law.lower(1.0)[0]
    assert law.upper(law.pure) == 0.0


def test_many_filters_use_the_plain_blanket() -> None:
    protocol = columns(25, 10**4, 0.45)
    assert FlippedColumns.of(Release.of(protocol)).upper(0.1) == FiniteDivergence.of(Release.of(protocol)).upper(0.1)


def test_epsilon_falls_with_noise_and_size() -> None:
    figures = [
        hs.dp.epsilon(columns(3, bits, p), delta=1e-4).upper for bits, p in ((1000, 0.3), (1000, 0.35), (4000, 0.35))
    ]
    assert figures[0] > figures[1] > figures[2]


def test_pools_stay_inside_what_every_column_has() -> None:
    for width, p, distance, wanted in ((2, 0.25, 2, 0.01), (5, 0.3, 3, 0.5), (5, 0.3, 5, 1e-3), (4, 0.1, 1, 1e-6)):
        flip = Fraction(p)
        pool = CommonPool.of(width=width, flip=flip, distance=distance, wanted=wanted, enough=wanted)
        assert pool.share.max() <= 0.8 * float(flip**width) * (1 + 1e-15)
        assert pool.weight == pytest.approx(min(wanted, 0.8 * (2 * p) ** width), rel=1e-12)
        family = PairFamily.tabulated(width=width, flip=flip, distance=distance, pool=pool)
        assert family.sums(family.own) == pytest.approx(np.ones(family.starts.size), rel=1e-12)
        assert family.own.min() > 0


def test_who_serves_what() -> None:
    assert isinstance(privacy_curve(columns(1, 10, 0.2)), Binary)
    assert isinstance(privacy_curve(columns(2, 10, 0.2)), FlippedColumns)
    assert isinstance(privacy_curve(columns(2, 10, 1e-8)), FiniteDivergence)


@pytest.mark.parametrize(("filters", "bits", "dummies"), [(2, 1, 2), (2, 2, 1), (2, 3, 2), (3, 2, 1)])
@pytest.mark.parametrize("p", [0.1, 0.4])
def test_dummies_hide_as_enumeration_says(filters: int, bits: int, dummies: int, p: float) -> None:
    law = FlippedColumns.of(Release.of(columns(filters, bits, p, hs.Scrambler(dummies=dummies))))
    rows = [[float(each) for each in row] for row in oracle.channel(filters, Fraction(p))]
    for epsilon in (0.0, 0.3, 1.5):
        true = finite_enumeration.worst_delta(rows, bits, math.exp(epsilon), dummies)
        assert law.contenders(epsilon).lower(epsilon)[0] <= true * (1 + 1e-12)
        assert true <= law.upper(epsilon) * (1 + 1e-12)
        for level in (0.5, 1e-3):
            assert true <= law.near(level).pooled(epsilon, enough=1.0) * (1 + 1e-12)


def test_dummies_make_figures_smaller_and_are_no_refuge_for_the_blanket() -> None:
    ends = [
        hs.dp.epsilon(columns(4, 10**4, 0.3, hs.Scrambler(dummies=dummies)), delta=1e-6)
        for dummies in (0, 1, 2000, 20_000)
    ]
    assert ends[1].upper == pytest.approx(ends[0].upper, rel=2e-3)
    assert all(more.upper < less.upper for less, more in pairwise(ends[1:]))
    assert [round(bound.width / bound.lower, 2) for bound in ends] == [0, 0, 0.14, 0.11]


def test_one_filter_is_binary_randomized_response() -> None:
    flips = columns(1, 1000, 0.2)
    response = hs.Protocol(
        randomizer=hs.RandomizedResponse.from_truth_probability(k=2, p=0.8), shuffler=hs.UniformShuffle(), n=1000
    )
    for delta in (1e-3, 1e-9):
        ours, theirs = hs.dp.epsilon(flips, delta=delta), hs.dp.epsilon(response, delta=delta)
        assert ours.upper == pytest.approx(theirs.upper, rel=1e-6)
        assert ours.lower == pytest.approx(theirs.lower, rel=1e-6)
