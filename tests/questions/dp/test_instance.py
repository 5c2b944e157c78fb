from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.signal import convolve2d

import hushuffle as hs
from hushuffle.curves.laws.known_dataset import FAMILY, BinaryDataset, KaryDataset, changes
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import Reveals, UniformShuffle
from hushuffle.mechanisms.shufflers.base import Shuffler
from hushuffle.numerics import binomial
from hushuffle.numerics.pair_counts import PairGroup, PairLaw
from hushuffle.questions.dp.central import UNIT, instance
from hushuffle.questions.dp.central import epsilon as worst_case
from oracles import dp_enumeration, dp_known_dataset


@dataclass(frozen=True, kw_only=True)
class Shuffled(UniformShuffle):
    """A uniform shuffle that says what it is told to say."""

    reveals_: Reveals = Reveals.MULTISET
    dummies_: int = 0

    @property
    def reveals(self) -> Reveals:  # type: ignore[override]
        return self.reveals_

    @property
    def dummies(self) -> int:
        return self.dummies_


def protocol(k: int, epsilon: float, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler or hs.UniformShuffle(), n=n
    )


def law(k: int, epsilon: float) -> Any:
    return hs.RandomizedResponse(k=k, epsilon=epsilon).law()


@pytest.mark.parametrize("dummies", [0, 2])
@pytest.mark.parametrize(
    "people",
    [
        (1, 0),
        (2, 1),
        (4, 3),
        (1, 0, 0),
        (2, 2, 1),
        (5, 0, 1),
        (1, 0, 0, 0),
        (2, 1, 0, 2),
        (1, 1, 1, 1),
        (2, 0, 0, 3, 1),
    ],
)
def test_enumeration_lies_inside(people: tuple[int, ...], dummies: int) -> None:
    k = len(people)
    for epsilon_0 in (0.4, 1.5, 4.0):
        symmetric = law(k, epsilon_0)
        dataset: BinaryDataset | KaryDataset = (
            BinaryDataset.of(people, symmetric, dummies, local_epsilon=9.0)
            if k == 2
            else KaryDataset.of(people, symmetric, dummies, level=1e-3, local_epsilon=9.0)
        )
        for share in (0.0, 0.3, 0.8):
            growth = math.exp(share * epsilon_0)
            exact = dp_known_dataset.instance_delta(people, float(symmetric.truth), growth, dummies)
            low, high, witness = dataset.ends(share * epsilon_0)
            assert low - 1e-12 <= exact <= high + 1e-12
            assert high - low <= (1e-9 if k <= 3 else 1.0)
            assert sum(witness.others) == sum(people) - 1
            assert witness.family == FAMILY


def split(people: int, first: float, second: float) -> Any:
    """Masses of (A, B) for so many people, by binomial terms: positive numbers only, so accurate in relative terms."""
    a, b = np.arange(people + 1.0)[:, None], np.arange(people + 1.0)[None, :]
    return binomial.pmf(a, people, first) * binomial.pmf(b, people - a, second / (1 - first))


def test_the_transform_agrees_with_direct_sums() -> None:
    truth, lie = 0.7, 0.15
    groups = [PairGroup(people=90, first=truth, second=lie), PairGroup(people=60, first=lie, second=lie)]
    law_of_pair = PairLaw.of(groups, truth=truth, lie=lie, level=1e-6)
    others = np.pad(convolve2d(split(90, truth, lie), split(60, lie, lie)), ((0, 1), (0, 1)))
    first = truth * np.roll(others, 1, 0) + lie * np.roll(others, 1, 1) + lie * others
    second = lie * np.roll(others, 1, 0) + truth * np.roll(others, 1, 1) + lie * others
    for epsilon in (0.0, 0.3, 0.8, 1.2):
        growth = math.exp(epsilon)
        exact = max(np.maximum(first - growth * second, 0).sum(), np.maximum(second - growth * first, 0).sum())
        low, high = law_of_pair.hockey_stick(epsilon)
        assert low <= exact * (1 + 1e-13)
        assert high >= exact * (1 - 1e-13)
        assert high - low < 1e-11


def test_the_lower_end_is_attained_at_the_witness() -> None:
    people, symmetric = (3, 1, 0, 2), law(4, 2.0)
    low, _, witness = KaryDataset.of(people, symmetric, 0, level=1e-3, local_epsilon=9.0).ends(0.5)
    rows = dp_enumeration.channel(4, float(symmetric.truth))
    base = dp_enumeration.counts_law(witness.others, rows)
    one, other = (dp_enumeration.add_report(base, rows[value]) for value in witness.target)
    growth = math.exp(0.5)
    attained = max(dp_enumeration.hockey_stick(one, other, growth), dp_enumeration.hockey_stick(other, one, growth))
    assert low <= float(attained) + 1e-12


@pytest.mark.parametrize(
    ("people", "expected"),
    [
        ((4, 3), {((3, 3), 0, 1), ((4, 2), 1, 0)}),
        ((0, 9), {((0, 8), 1, 0)}),
        ((5, 1, 0, 7), {((5, 0, 0, 7), 1, 2)}),
        ((5, 1, 2, 7), {((5, 0, 2, 7), 1, 2), ((5, 1, 1, 7), 2, 1)}),
    ],
)
def test_changes_that_can_be_worst(people: tuple[int, ...], expected: set[tuple[tuple[int, ...], int, int]]) -> None:
    assert {(change.others, change.before, change.after) for change in changes(people)} == expected


@pytest.mark.parametrize("people", [(6, 5, 4, 3), (0, 7, 6, 2), (3, 3, 3, 3, 3)])
def test_no_other_change_is_worse(people: tuple[int, ...]) -> None:
    """The upper end holds for every pair of values: compared with the lower ends of all of them."""
    symmetric, k = law(len(people), 2.5), len(people)
    for epsilon in (0.2, 1.0):
        high = KaryDataset.of(people, symmetric, 0, level=1e-4, local_epsilon=9.0).ends(epsilon)[1]
        for before in (value for value in range(k) if people[value]):
            for after in (value for value in range(k) if value != before):
                # Merge all other values into one: a dataset of three values' counts, up to the noise there.
                rest = sum(people) - people[before] - people[after]
                others = (people[before] - 1, people[after], rest)
                lie, truth = float(symmetric.lie), float(symmetric.truth)
                merged = [[truth, lie, 1 - truth - lie], [lie, truth, 1 - truth - lie], [lie, lie, 1 - 2 * lie]]
                base = dp_enumeration.counts_law(others, merged)  # type: ignore[arg-type]
                one, other = (dp_enumeration.add_report(base, merged[value]) for value in (0, 1))  # type: ignore[arg-type]
                assert float(dp_enumeration.hockey_stick(one, other, math.exp(epsilon))) <= high + 1e-12


@pytest.mark.parametrize(
    ("k", "counts", "low", "high"),
    [
        (3, (334, 333, 333), 0.885, 0.895),  # 0.89 for uniform data
        (3, (1, 0, 999), 1.79, 1.80),  # 1.80 in the worst case
        (10, (100,) * 10, 0.885, 0.91),
        (2, (500, 500), 0.7, 1.2),
    ],
)
def test_checkpoints(k: int, counts: Sequence[int], low: float, high: float) -> None:
    survey = protocol(k, 4.0, 1000)
    bound = instance(survey, histogram=hs.Histogram(counts=counts), delta=1e-6)
    assert low <= bound.lower <= bound.upper <= high
    assert bound.kind == "bracket"
    assert bound.width <= 0.02 * bound.upper
    assert bound.upper <= worst_case(survey, delta=1e-6).upper * (1 + 1e-6)


def test_it_says_that_it_is_no_guarantee() -> None:
    bound = instance(protocol(3, 1.0, 30), histogram=hs.Histogram(counts=[10, 10, 10]), delta=1e-3)
    assert bound.unit == UNIT
    assert "this dataset only" in str(bound)
    assert bound.witness is not None
    assert "no guarantee" in str(bound.witness)
    with pytest.raises(InvalidInputError, match="in nats"):
        hs.Guarantee(epsilon=bound, delta=1e-3)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_generous_delta_needs_no_epsilon(k: int) -> None:
    counts = [100] * k
    bound = instance(protocol(k, 0.2, 100 * k), histogram=hs.Histogram(counts=counts), delta=0.3)
    assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_without_shuffler_all_datasets_are_alike() -> None:
    survey = protocol(3, 2.0, 10, hs.NoShuffle())
    for level in (0.9, 0.1, 1e-6):
        bound = instance(survey, histogram=hs.Histogram(counts=[0, 9, 1]), delta=level)
        worst = worst_case(survey, delta=level)
        assert bound.kind == "exact"
        assert bound.upper == pytest.approx(worst.upper, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("shuffler", [hs.NoShuffle(), hs.UniformShuffle()])
def test_without_noise_counts_give_values_away(shuffler: Shuffler) -> None:
    survey = protocol(3, math.inf, 10, shuffler)
    assert instance(survey, histogram=hs.Histogram(counts=[5, 4, 1]), delta=1e-6).upper == math.inf


def test_dummies_help() -> None:
    counts = hs.Histogram(counts=[10, 10, 10, 10])
    few, many = (
        instance(protocol(4, 2.0, 40, Shuffled(dummies_=dummies)), histogram=counts, delta=1e-4) for dummies in (0, 200)
    )
    assert many.upper < few.lower


@pytest.mark.parametrize(
    ("survey", "counts", "level", "error", "message"),
    [
        (protocol(3, 1.0, 10), [5, 5], 1e-6, InvalidInputError, "counts of k = 3 values"),
        (protocol(3, 1.0, 10), [5, 5, 1], 1e-6, InvalidInputError, "counts of all n = 10 people"),
        (protocol(3, 1.0, 10), [5, 5, 0], 0.0, InvalidInputError, r"`delta` must be in \(0, 1\)"),
        (protocol(3, 1.0, 10**7), [5, 5, 10**7 - 10], 1e-6, NumericalError, "more than 2,097,152"),
        (protocol(3, 1.0, 3000), [1000] * 3, 1e-14, NumericalError, "(Use|Ask for) a larger delta"),
        (
            protocol(3, 1.0, 10, Shuffled(reveals_=Reveals.NOISY_ORDER)),
            [5, 5, 0],
            1e-6,
            UnsupportedProtocolError,
            "one dataset",
        ),
        (protocol(3, math.inf, 10, Shuffled(dummies_=3)), [5, 5, 0], 1e-6, UnsupportedProtocolError, "this randomizer"),
    ],
)
def test_what_cannot_be_answered(
    survey: hs.Protocol, counts: list[int], level: float, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        instance(survey, histogram=hs.Histogram(counts=counts), delta=level)
