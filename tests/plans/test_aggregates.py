"""Grouping sets against plain loops."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.plans import GroupingQuery, GroupingSet, generate_table, group_statistics
from oracles.plan_queries import grouped

AGE, BMI = GroupingSet(columns=("age",), sizes=(4,)), GroupingSet(columns=("bmi", "age"), sizes=(3, 4))
QUERY = GroupingQuery(
    grouping_sets=(AGE, BMI), values=("x", "y"), functions=("count", "sum", "avg", "min", "max"), partitions=2
)


def table(seed: int, rows: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        "age": generator.integers(4, size=rows),
        "bmi": generator.integers(3, size=rows),
        "x": generator.normal(size=rows),
        "y": generator.integers(-5, 5, size=rows),
    }


@pytest.mark.parametrize(("seed", "rows"), [(1, 40), (2, 7), (3, 0), (4, 1)])
@pytest.mark.parametrize("position", [0, 1])
def test_statistics_are_those_of_plain_loops(seed: int, rows: int, position: int) -> None:
    data = table(seed, rows)
    used = np.random.default_rng(seed).random(rows) < 0.7
    for mask in (None, used):
        answers = group_statistics(QUERY, position, data, used=mask).results(QUERY)
        grouping = QUERY.grouping_sets[position]
        kept = [i for i in range(rows) if mask is None or mask[i]]
        codes = grouping.codes(data)
        for column in ("x", "y"):
            for group, expected in enumerate(grouped(codes.tolist(), data[column].tolist(), kept, grouping.groups)):
                assert answers["count"][group] == expected["count"]
                for function in ("sum", "avg", "min", "max"):
                    assert answers[f"{function}({column})"][group] == pytest.approx(expected[function], nan_ok=True)


def test_codes_and_nodes_go_through_all_combinations() -> None:
    pairs = list(product(range(3), range(4)))
    codes = BMI.codes({"bmi": [b for b, _ in pairs], "age": [a for _, a in pairs]})
    assert codes.tolist() == list(range(12))
    assert QUERY.nodes(1, codes).tolist() == [0] * 6 + [1] * 6
    assert (AGE.name, BMI.name) == ("age", "bmi, age")


def test_data_frames_are_tables_too() -> None:
    data = table(5, 30)
    frame: Any = pl.DataFrame(data)
    one, other = (group_statistics(QUERY, 1, source) for source in (data, frame))
    assert one.sum["x"].tolist() == other.sum["x"].tolist()


def test_scaling_leaves_averages() -> None:
    plain = group_statistics(QUERY, 0, table(1, 40))
    twice = plain.scaled(2.0)
    assert twice.count.tolist() == (2 * plain.count).tolist()
    assert twice.avg["x"] == pytest.approx(plain.avg["x"])
    assert twice.max["x"] is plain.max["x"]


def test_queries_answer_only_what_is_asked() -> None:
    query = GroupingQuery(grouping_sets=(AGE,), values=("x",), functions=("max",), partitions=1)
    assert list(group_statistics(query, 0, table(1, 9)).results(query)) == ["max(x)"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": ()}, "`columns` must be one or more different"),
        ({"columns": ("a", "a")}, "`columns` must be one or more different"),
        ({"sizes": (2, 3)}, "`sizes` must be one for each of 1"),
        ({"sizes": (0,)}, "`sizes` must be an integer >= 1"),
        ({"sizes": (10**8,)}, "`sizes` must be at most 10,000,000 groups"),
    ],
)
def test_grouping_sets_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"columns": ("a",), "sizes": (2,)}
    with pytest.raises(InvalidInputError, match=message):
        GroupingSet(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grouping_sets": ()}, "`grouping_sets` must be one or more different"),
        ({"grouping_sets": (AGE, AGE)}, "`grouping_sets` must be one or more different"),
        ({"functions": ()}, "`functions` must be among count, sum"),
        ({"functions": ("median",)}, "`functions` must be among count, sum"),
        ({"values": ("x", "x")}, "`values` must be different columns"),
        ({"values": ()}, "`values` must be set for sums"),
        ({"partitions": 5}, "`partitions` must be an integer from 1 to 4"),
    ],
)
def test_queries_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"grouping_sets": (AGE,), "values": ("x",), "functions": ("avg",), "partitions": 2}
    with pytest.raises(InvalidInputError, match=message):
        GroupingQuery(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"age": None}, "`table` must be with the column 'age'"),
        ({"age": [0, 1]}, "`age` must be of 3 rows like the others"),
        ({"age": [0, 1, 9]}, "`age` must be integers from 0 to 3"),
        ({"x": [1.0, 2.0]}, "`x` must be 3 numbers"),
        ({"x": ["1", "2", "3"]}, "`x` must be 3 numbers"),
        ({"x": [1.0, math.nan, math.inf]}, "`x` must be finite numbers, got x=<2 that are not>"),
    ],
)
def test_tables_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    data: dict[str, Any] = {"age": [0, 1, 2], "bmi": [0, 1, 2], "x": [1.0, 2.0, 3.0], "y": [1, 2, 3]}
    data = {name: value for name, value in (data | changes).items() if value is not None}
    with pytest.raises(InvalidInputError, match=message):
        group_statistics(QUERY, 1, data)


def test_masks_that_do_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="`used` must be of 4 rows"):
        group_statistics(QUERY, 0, table(1, 4), used=np.ones(3, dtype=np.bool_))


def test_made_up_tables_repeat_and_have_their_shape() -> None:
    # 50,000 rows in 4 intervals: each share has a standard error below 0.0023; 0.02 is nine of them (below 1e-17).
    uniform, skewed = (generate_table(QUERY, 50_000, distribution=kind, seed=3) for kind in ("uniform", "skewed"))
    assert np.bincount(uniform["age"]) / 50_000 == pytest.approx([0.25] * 4, abs=0.02)
    assert np.bincount(skewed["age"]) / 50_000 == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.02)
    again = generate_table(QUERY, 50_000, distribution="skewed", seed=3)
    assert all(np.array_equal(skewed[name], again[name]) for name in ("age", "bmi", "x", "y"))
    with pytest.raises(InvalidInputError, match="`distribution` must be uniform or skewed"):
        generate_table(QUERY, 1, distribution="odd", seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_statistics_of_two_parts_add_up_to_those_of_all_rows(position: int, share: float) -> None:
    data = table(5, 30)
    first = np.random.default_rng(6).random(30) < share
    one, other, both = (group_statistics(QUERY, position, data, used=mask) for mask in (first, ~first, None))
    for sum_ in (one.plus(other), other.plus(one)):
        assert sum_.name == both.name
        for name, values in both.results(QUERY).items():
            assert sum_.results(QUERY)[name] == pytest.approx(values, nan_ok=True)
