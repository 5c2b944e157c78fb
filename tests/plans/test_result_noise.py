"""Noise on the results of grouping sets: its law, how much a person can change, and what is released."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.plans import GroupingQuery, GroupingSet, ResultNoise, aggregate, group_statistics
from hushuffle.plans.result_noise import discrete_laplace, share_of_set
from hushuffle.randomness import reproducible

UNIT = 2**62
AGE = GroupingSet(columns=("age",), sizes=(3,))
QUERY = GroupingQuery(
    grouping_sets=(AGE,), values=("x", "y"), functions=("count", "sum", "avg"), partitions=3,
    ranges=((-7.0, 3.0), (0.0, 0.3)),
)  # fmt: skip
ROWS = st.lists(st.tuples(st.integers(0, 2), st.floats(-9, 9), st.floats(-1, 1)), min_size=1, max_size=6)


@pytest.mark.parametrize("rate", [0.1, 0.7, 3.0])
def test_noise_has_the_law_that_is_promised(rate: float) -> None:
    drawn, draws = Counter(discrete_laplace(int(rate * UNIT), 60_000, rng=reproducible(3))), 60_000
    fall = math.exp(-rate)
    for value in range(-8, 9):
        chance = (1 - fall) / (1 + fall) * fall ** abs(value)
        assert abs(drawn[value] - draws * chance) <= 5 * math.sqrt(draws * chance * (1 - chance)) + 3
    spread = math.sqrt(sum(count * value**2 for value, count in drawn.items()) / draws)
    noise = ResultNoise(query=replace(QUERY, functions=("count",)), epsilon=2 * rate)
    assert noise.deviations["count"] == pytest.approx(spread, rel=0.05)
    assert list(noise.deviations) == ["count"]


def test_no_noise_at_an_enormous_epsilon_and_none_that_cannot_be_drawn() -> None:
    assert set(discrete_laplace(2000 * UNIT, 50, rng=reproducible(1))) == {0}
    assert ResultNoise(query=QUERY, epsilon=40_000.0).deviations["count"] < 1e-300
    with pytest.raises(InvalidInputError, match="large enough that its noise"):
        ResultNoise(query=QUERY, epsilon=1e-300)


def numbers(noise: ResultNoise, rows: list[tuple[int, float, float]], used: list[bool]) -> list[list[float]]:
    columns = {name: np.array(values) for name, values in zip(("age", "x", "y"), zip(*rows, strict=True), strict=True)}
    found = group_statistics(QUERY, 0, noise.rounded(columns), used=np.array(used))
    rows_released: list[list[float]] = found.numbers[:3].tolist()
    return rows_released


@given(ROWS, st.tuples(st.integers(0, 2), st.floats(-9, 9), st.floats(-1, 1)), st.floats(0.01, 8), st.data())
def test_one_replaced_record_costs_epsilon_at_most_in_exact_arithmetic(
    rows: list[tuple[int, float, float]], other: tuple[int, float, float], epsilon: float, data: st.DataObject
) -> None:
    """The log of the largest ratio of two laws of the noise is the sum of rate times distance, whatever arrives."""
    noise = ResultNoise(query=QUERY, epsilon=epsilon)
    used = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    arrives = data.draw(st.booleans())
    before, after = numbers(noise, rows, used), numbers(noise, [other, *rows[1:]], [arrives, *used[1:]])
    cost = Fraction(0)
    for (step, rate), old, new in zip(noise._steps, before, after, strict=True):
        for a, b in zip(old, new, strict=True):
            moved = abs(Fraction(a) - Fraction(b)) / Fraction(step)
            assert moved.denominator == 1
            cost += moved * Fraction(rate, UNIT)
    assert cost <= Fraction(epsilon)


def test_the_worst_record_costs_nearly_all_of_epsilon() -> None:
    noise = ResultNoise(query=QUERY, epsilon=1.0)
    before, after = numbers(noise, [(0, -7.0, 0.3)], [True]), numbers(noise, [(1, -7.0, 0.3)], [True])
    cost = sum(
        rate / UNIT * abs(a - b) / step
        for (step, rate), old, new in zip(noise._steps, before, after, strict=True)
        for a, b in zip(old, new, strict=True)
    )
    assert cost == pytest.approx(1.0, abs=1e-9)


def test_nothing_is_released_without_noise_but_whole_steps() -> None:
    noise = ResultNoise(query=QUERY, epsilon=0.5)
    columns = {"age": np.array([0, 0, 2]), "x": np.array([1.23456, -9.0, 2.0]), "y": np.array([0.1, 0.2, 5.0])}
    found = group_statistics(QUERY, 0, noise.rounded(columns))
    released = noise.release(found.numbers)
    assert np.isnan(released[3:]).all()  # the least and greatest
    for row, (step, _) in enumerate(noise._steps):
        assert (released[row] / step == np.rint(released[row] / step)).all()
    assert (released[:3] != noise.release(found.numbers)[:3]).any()
    only_counts = ResultNoise(query=replace(QUERY, functions=("count",)), epsilon=0.5)
    assert np.isnan(only_counts.release(found.numbers)[1:]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"functions": ("min",)}, "functions.*count, sum or avg"),
        ({"ranges": ()}, "ranges.*set for x"),
        ({"ranges": ((0.0, 1.0), None)}, "ranges.*set for y"),
        ({"ranges": ((0.0, 1.0), (0.0, 1e200))}, "ranges.*1e-100 to 1e"),
    ],
)
def test_what_noise_of_a_fixed_size_cannot_hide_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ResultNoise(query=replace(QUERY, **change), epsilon=1.0)  # type: ignore[arg-type]


def test_the_shares_of_all_sets_add_up_to_no_more_than_epsilon() -> None:
    sets = tuple(GroupingSet(columns=(name,), sizes=(2,)) for name in "abcdefg")
    for count in range(1, 8):
        query = GroupingQuery(grouping_sets=sets[:count], partitions=2)
        for epsilon in (0.1, 1.0, 1 / 3):
            assert count * Fraction(share_of_set(query, epsilon, everybody=True)) <= Fraction(epsilon)
            assert share_of_set(query, epsilon, everybody=False) == epsilon


def test_a_plan_with_noise_in_which_no_message_carries_data_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"sigma.*some messages carry data"):
        aggregate(QUERY, people=10, epsilon=1.0, sigma=1.0)
    with pytest.raises(InvalidInputError, match="people"):
        aggregate(QUERY, people=2**34, epsilon=1.0, sigma=0.5)
