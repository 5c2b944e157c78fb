from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.numerics.normal_pair import level_between
from oracles import column_views as oracle

COIN = {0: Fraction(1, 2), 1: Fraction(1, 2)}
SKEWED = {0: Fraction(1, 8), 1: Fraction(1, 2), 2: Fraction(3, 8)}
PEAK = {0: Fraction(1, 8), 1: Fraction(1, 4), 2: Fraction(1, 4), 3: Fraction(1, 4), 4: Fraction(1, 8)}
TWO, EVERY = ("pairs", (0, 1), 0), ("pairs", (0, 1, 2), 0)
UNION, PAIR, PATTERNS = ("union", (0, 1), 0), ("union", (1,), 0), ("patterns", (0, 1), 0)
TWICE, WIDE, THREE = ("contacts", (0, 1), 2), ("patterns", (0, 1, 2), 0), ("union", (0, 1, 2), 0)
Views = list[tuple[oracle.Shown, oracle.Law]]


def design(views: Views, *, publishers: int, columns: int, hashes: int = 1) -> hs.ColumnViews:
    made = []
    for (what, who, most), law in views:
        first, other = law if isinstance(law, tuple) else (None, law)
        own = {} if first is None else {"single" if what == "pairs" else "empty": hs.DummyLaw.of(first)}
        each = hs.DummyLaw.of(other)
        made.append(hs.ColumnView(publishers=who, shows=what, most=most or None, each=each, **own))  # type: ignore[arg-type]
    return hs.ColumnViews(publishers=publishers, columns=columns, views=tuple(made), hashes=hashes)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    ("views", "publishers", "largest", "columns"),
    [
        ([(UNION, COIN)], 2, 1, 2),
        ([(UNION, SKEWED)], 2, 1, 2),
        ([(PAIR, PEAK)], 2, 1, 1),
        ([(PATTERNS, SKEWED)], 2, 1, 2),
        ([(TWICE, PEAK)], 2, 2, 2),
        ([(WIDE, COIN)], 3, 1, 1),
        ([(THREE, PEAK)], 3, 1, 2),
        ([(PATTERNS, (COIN, PEAK))], 2, 1, 2),
        ([(PATTERNS, (SKEWED, COIN))], 2, 1, 1),
        ([(PATTERNS, (PEAK, COIN))], 2, 1, 1),
    ],
)
def test_one_view_is_exact(views: Views, publishers: int, largest: int, columns: int, epsilon: float) -> None:
    growth = Fraction(math.exp(epsilon))
    truth = oracle.worst(views, publishers=publishers, largest=largest, columns=columns, growth=growth)
    bound = hs.bloom.views_delta(design(views, publishers=publishers, columns=columns), epsilon=epsilon)
    assert bound.lower * (1 - 1e-12) <= truth <= bound.upper * (1 + 1e-12)
    assert bound.kind == "exact"


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    ("views", "publishers", "largest", "columns"),
    [
        ([(UNION, PEAK), (PAIR, PEAK)], 2, 1, 1),
        ([(UNION, SKEWED), (PATTERNS, COIN)], 2, 1, 1),
        ([(PATTERNS, SKEWED), (TWICE, COIN), (UNION, PEAK)], 2, 2, 1),
        ([(THREE, PEAK), (("union", (0,), 0), PEAK), (("union", (1,), 0), PEAK), (("union", (2,), 0), PEAK)], 3, 1, 1),
        ([(WIDE, COIN), (THREE, SKEWED)], 3, 1, 1),
        ([(UNION, PEAK), (UNION, PEAK)], 2, 1, 2),
        ([(PATTERNS, (COIN, SKEWED)), (UNION, PEAK)], 2, 1, 1),
        ([(PATTERNS, (PEAK, COIN)), (PAIR, PEAK)], 2, 1, 1),
        ([(TWO, PEAK)], 2, 1, 2),
        ([(EVERY, COIN)], 3, 1, 1),
        ([(EVERY, (PEAK, COIN))], 3, 1, 1),
        ([(EVERY, COIN), (THREE, PEAK)], 3, 1, 1),
        ([(TWO, PEAK), (TWICE, COIN), (PAIR, COIN)], 2, 2, 1),
    ],
)
def test_several_views_together_by_enumeration(
    views: Views, publishers: int, largest: int, columns: int, epsilon: float
) -> None:
    growth = Fraction(math.exp(epsilon))
    truth = oracle.worst(views, publishers=publishers, largest=largest, columns=columns, growth=growth)
    bound = hs.bloom.views_delta(design(views, publishers=publishers, columns=columns), epsilon=epsilon)
    assert bound.lower <= truth <= bound.upper
    assert bound.upper <= 1.3 * float(truth) + 1e-12


def drawn_law(rng: np.random.Generator) -> dict[int, Fraction]:
    weights = [int(each) for each in rng.integers(1, 5, size=rng.integers(2, 4))]
    return {number: Fraction(weight, sum(weights)) for number, weight in enumerate(weights)}


def drawn_views(rng: np.random.Generator, publishers: int) -> Views:
    """Return one or two views of any publishers, some with less or more noise for empty columns."""
    views: Views = []
    third = rng.choice(["contacts", "pairs"])
    for _ in range(rng.integers(1, 3)):
        who = tuple(rng.permutation(publishers)[: rng.integers(1, publishers + 1)].tolist())
        what = str(rng.choice(["union", "patterns", third]))
        law = drawn_law(rng)
        own = what in ("patterns", "pairs") and rng.random() < 0.6
        views.append(((what, who, 2 if what == "contacts" else 0), (drawn_law(rng), law) if own else law))
    return views


@pytest.mark.parametrize("seed", range(20))
def test_drawn_views_by_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    views, columns = drawn_views(rng, 2), int(rng.integers(1, 3))
    made = design(views, publishers=2, columns=columns)
    for epsilon in (0.0, 0.3, 1.5):
        growth = Fraction(math.exp(epsilon))
        truth = oracle.worst(views, publishers=2, largest=2, columns=columns, growth=growth)
        bound = hs.bloom.views_delta(made, epsilon=epsilon)
        assert bound.lower * (1 - 1e-12) <= truth <= bound.upper * (1 + 1e-12), views


def test_a_study_for_each_of_two_groups_costs_as_much_as_one() -> None:
    """Columns of two groups are counted apart; a person changes a column of one group."""
    views: Views = [(UNION, PEAK), (PAIR, COIN)]
    values, growth = list(oracle.every_column(2, 1)), Fraction(math.exp(0.4))
    laws = {value: oracle.release(views, [value]) for value in values}

    def both(first: oracle.Column, second: oracle.Column) -> dict[tuple[int, ...], Fraction]:
        pairs = product(laws[first].items(), laws[second].items())
        return {(*one, *other): chance * share for (one, chance), (other, share) in pairs}

    changes = [(old, new) for old in values for new in values]
    apart = max(oracle.divergence(both(old, same), both(new, same), growth) for old, new in changes for same in values)
    assert apart == oracle.worst(views, publishers=2, largest=1, columns=1, growth=growth)


def test_epsilon_against_enumeration() -> None:
    views: Views = [(UNION, PEAK), (PAIR, PEAK)]
    bound = hs.bloom.views_epsilon(design(views, publishers=2, columns=1), delta=0.3)
    ends = [
        oracle.worst(views, publishers=2, largest=1, columns=1, growth=Fraction(math.exp(epsilon)))
        for epsilon in (bound.lower, bound.upper)
    ]
    assert ends[1] <= Fraction(0.3) <= ends[0] * Fraction(1.0001)


@pytest.mark.parametrize("touched", [2, 3])
def test_several_changed_columns_by_enumeration(touched: int) -> None:
    views: Views = [(UNION, PEAK)]
    made = design(views, publishers=2, columns=3, hashes=touched)
    bound = hs.bloom.views_epsilon(made, delta=0.7)
    less, more = (oracle.release(views, [(1, 1)] * ones + [(0, 0)] * (3 - ones)) for ones in (0, touched))
    growth = Fraction(math.exp(min(bound.upper, 10)))
    assert max(oracle.divergence(less, more, growth), oracle.divergence(more, less, growth)) <= Fraction(0.7)
    assert bound == hs.bloom.views_epsilon(design(views, publishers=2, columns=3), delta=0.7, touched=touched)


def test_a_membership_game_reaches_the_bound() -> None:
    """The best test of one column, from no publisher to all, is right as often as delta at epsilon = 0 allows."""
    views: Views = [(UNION, PEAK), (PATTERNS, PEAK)]
    made, rng, runs, right = design(views, publishers=2, columns=4), hs.reproducible(5), 4000, 0
    others = [0, 1, 3]
    datasets = [[0, *others], [3, *others]]
    laws = [oracle.release(views, [(each & 1, each >> 1) for each in dataset]) for dataset in datasets]
    for run in range(runs):
        seen = made.release(np.array(datasets[run % 2]), rng=rng)
        key = tuple(int(count) for part in seen.counts for count in part)
        right += (laws[1].get(key, Fraction(0)) > laws[0].get(key, Fraction(0))) == run % 2
    delta = hs.bloom.views_delta(made, epsilon=0.0)
    deviation = 4 * math.sqrt(0.25 / runs)
    assert 0.5 + delta.lower / 2 - deviation <= right / runs <= 0.5 + delta.upper / 2 + deviation


def test_one_count_costs_half_of_two() -> None:
    law = hs.DummyLaw.discrete_laplace(center=2400, scale=60.0)
    union = hs.ColumnView(publishers=(0, 1), each=law)
    pattern = hs.ColumnView(publishers=(0, 1), shows="patterns", each=law)
    one, two = (
        hs.bloom.views_epsilon(hs.ColumnViews(publishers=2, columns=10**6, views=(view,)), delta=1e-12)
        for view in (union, pattern)
    )
    assert one.upper == pytest.approx(1 / 60, rel=1e-4)
    assert two.upper == pytest.approx(2 / 60, rel=1e-4)


def test_less_noise_for_empty_columns_costs_less_than_a_further_view() -> None:
    """Two counts change: that of empty columns and another, or two others."""
    other, first = (hs.DummyLaw.discrete_laplace(center=round(40 * scale), scale=scale) for scale in (60.0, 30.0))
    patterns = hs.ColumnView(publishers=(0, 1), shows="patterns", each=other, empty=first)
    bound = hs.bloom.views_epsilon(hs.ColumnViews(publishers=2, columns=10**6, views=(patterns,)), delta=1e-12)
    assert bound.upper == pytest.approx(1 / 60 + 1 / 30, rel=1e-4)
    assert bound.lower == pytest.approx(bound.upper, rel=1e-3)
    apart = (hs.ColumnView(publishers=(0, 1), each=first), dataclasses.replace(patterns, empty=None))
    more = hs.bloom.views_epsilon(hs.ColumnViews(publishers=2, columns=10**6, views=apart), delta=1e-12)
    assert more.upper == pytest.approx(1 / 30 + 2 / 60, rel=1e-2)


def test_hundreds_of_wide_views_have_a_narrow_bracket() -> None:
    """Far in the tails, probabilities in units of 2**-64 have large losses, which once made the lattice too long."""
    law = hs.DummyLaw.discrete_gaussian(center=256_920, sigma=30_000.0)
    views = (hs.ColumnView(publishers=(0,), each=law),) * 211
    bound = hs.bloom.views_epsilon(hs.ColumnViews(publishers=1, columns=10**7, views=views), delta=1e-12)
    assert bound.upper < 1.02 * bound.lower
    assert bound.lower == pytest.approx(float(level_between(math.sqrt(211) / 30_000, 1e-12)), rel=0.01)


def test_many_equal_views_of_gaussian_dummies() -> None:
    """Near the curve of one Gaussian: 16 views of standard deviation 4 s count as one of standard deviation s."""
    law, wide = (hs.DummyLaw.discrete_gaussian(center=round(10 * sd), sigma=sd) for sd in (100.0, 400.0))
    one = hs.ColumnViews(publishers=4, columns=1000, views=(hs.ColumnView(publishers=(0,), each=law),))
    many = hs.ColumnViews(publishers=4, columns=1000, views=(hs.ColumnView(publishers=(0,), each=wide),) * 16)
    alone, together = (hs.bloom.views_epsilon(made, delta=1e-9) for made in (one, many))
    assert together.lower <= alone.upper * 1.001
    assert together.upper == pytest.approx(alone.upper, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"delta": 0.0}, "`delta`"), ({"delta": 1e-9, "touched": 9}, "`touched`")],
)
def test_refusals(arguments: dict[str, Any], words: str) -> None:
    made = design([(UNION, PEAK)], publishers=2, columns=3)
    with pytest.raises(InvalidInputError, match=words):
        hs.bloom.views_epsilon(made, **arguments)
