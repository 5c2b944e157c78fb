"""Aggregate as nodes know it: records as bytes and what nodes tell, against plain Python."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.plans import GroupingQuery, GroupingSet
from hushuffle.randomness import reproducible
from hushuffle_network.queries import Aggregate

FUNCTIONS = ("count", "sum", "avg", "min", "max")
QUERY = GroupingQuery(
    grouping_sets=(GroupingSet(columns=("a", "b"), sizes=(3, 4)), GroupingSet(columns=("b",), sizes=(4,))),
    values=("x", "y"),
    functions=FUNCTIONS,  # type: ignore[arg-type]
    partitions=3,
)
TASK = Aggregate.of(QUERY)


def record(a: int, b: int, x: float, y: float) -> bytes:
    return struct.pack("<iidd", a, b, x, y)


def table(rows: list[tuple[int, int, float, float]]) -> dict[str, Any]:
    return TASK.table(np.array(rows, dtype=np.float64).reshape(-1, 4))


def merged(contents: list[bytes]) -> Any:
    """Return what a node has merged that got records in two batches."""
    half = len(contents) // 2
    found = TASK.merge(1, TASK.empty(1), contents[:half], [True] * half)
    return TASK.merge(1, found, contents[half:], [True] * (len(contents) - half))


ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 3),
        st.floats(-1e9, 1e9, allow_nan=False),
        st.floats(-1e9, 1e9, allow_nan=False),
    ),
    max_size=12,
)


@given(ROWS)
def test_records_are_their_numbers_one_after_the_other(rows: list[tuple[int, int, float, float]]) -> None:
    data = np.array(rows, dtype=np.float64).reshape(-1, 4)
    contents = TASK.pack(1, data)
    assert contents == [record(*row) for row in rows]
    assert TASK.size(1) == 24
    assert TASK.own(1, data, None).tolist() == [(4 * a + b) * 3 // 12 for a, b, _, _ in rows]
    for content, own in zip(contents, TASK.own(1, data, None).tolist(), strict=True):
        TASK.check(1, own, content)
        with pytest.raises(DataError):
            TASK.check(1, (own + 1) % 3, content)
    found = TASK.statistics(1, merged(contents))
    for group in range(12):
        mine = [row for row in rows if 4 * row[0] + row[1] == group]
        assert found.count[group] == len(mine)
        for name, place in (("x", 2), ("y", 3)):
            values = [row[place] for row in mine]
            assert found.sum[name][group] == pytest.approx(sum(values), abs=1e-3)
            assert found.min[name][group] == pytest.approx(min(values, default=math.nan), nan_ok=True)
            assert found.max[name][group] == pytest.approx(max(values, default=math.nan), nan_ok=True)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        record(0, 0, 1.0, 2.0)[:-1],
        record(0, 0, 1.0, 2.0) + b"\0",
        record(3, 0, 77.25, 2.0),
        record(-1, 0, 77.25, 2.0),
        record(0, 4, 77.25, 2.0),
        record(0, -1, 77.25, 2.0),
        record(0, 0, math.nan, 77.25),
        record(0, 0, 77.25, math.inf),
        record(0, 0, -math.inf, 77.25),
        record(2, 3, 77.25, 2.0),  # a group of another node
    ],
)
def test_what_is_no_record_of_this_node_is_refused_without_showing_it(content: bytes) -> None:
    with pytest.raises(DataError) as caught:
        TASK.check(1, 0, content)
    assert "77" not in str(caught.value)
    assert caught.value.__cause__ is None


@given(st.binary(min_size=24, max_size=24))
def test_random_records_are_checked(content: bytes) -> None:
    a, b, x, y = struct.unpack("<iidd", content)
    good = 0 <= a < 3 and 0 <= b < 4 and math.isfinite(x) and math.isfinite(y) and (4 * a + b) * 3 // 12 == 1
    try:
        TASK.check(1, 1, content)
    except DataError:
        assert not good
    else:
        assert good


def test_values_outside_their_ranges_are_refused_and_dummies_are_within() -> None:
    query = replace(QUERY, ranges=((5.0, 9.0), None))
    task = Aggregate.of(query)
    task.check(1, 0, task.sample(1, 0))
    for inside in (5.0, 9.0):
        task.check(1, 0, record(0, 0, inside, 1e300))
    for outside in (4.999, 9.001, 1e308, -1e308, math.nan):
        with pytest.raises(DataError) as caught:
            task.check(1, 0, record(0, 0, outside, 0.0))
        assert str(outside) not in str(caught.value)
    clipped = query.clipped(table([(0, 0, 1e308, 1e308), (1, 1, -3.0, -3.0)]))
    assert (clipped["x"].tolist(), clipped["y"].tolist()) == ([9.0, 5.0], [1e308, -3.0])


@pytest.mark.parametrize("ranges", [((0.0, 1.0),), ((1.0, 0.0), None), ((0.0, math.inf), None), ((0.0, 0.0), None)])
def test_ranges_that_are_none(ranges: Any) -> None:
    with pytest.raises(InvalidInputError, match="`ranges` must be"):
        replace(QUERY, ranges=ranges)


@pytest.mark.parametrize("node", [0, 1, 2])
@given(rows=ROWS)
def test_nodes_tell_their_own_groups_and_no_others(node: int, rows: list[tuple[int, int, float, float]]) -> None:
    found = merged(TASK.pack(1, np.array(rows, dtype=np.float64).reshape(-1, 4)))
    told = TASK.tell(1, node, found, reproducible(1))
    assert told.size <= TASK.width(1) == 4 * 7
    back = TASK.part(1, node, np.append(told, np.zeros(TASK.width(1) - told.size)))
    mine = np.arange(12) // 4 == node
    assert np.array_equal(back[:, mine], found[:, mine], equal_nan=True)
    assert (back[:3, ~mine] == 0).all()
    assert np.isnan(back[3:, ~mine]).all()


@given(ROWS)
def test_the_parts_of_all_nodes_are_the_whole(rows: list[tuple[int, int, float, float]]) -> None:
    found = merged(TASK.pack(1, np.array(rows, dtype=np.float64).reshape(-1, 4)))
    parts = [TASK.part(1, node, TASK.tell(1, node, found, reproducible(1))) for node in range(3)]
    assert np.array_equal(TASK.combine(1, parts), found, equal_nan=True)


def test_nodes_with_fewer_groups_have_room_for_as_many() -> None:
    # 7 groups on 3 nodes: 3, 2 and 2 of them.
    query = GroupingQuery(grouping_sets=(GroupingSet(columns=("a",), sizes=(7,)),), partitions=3)
    task = Aggregate.of(query)
    told = [task.tell(1, node, task.empty(1), reproducible(1)) for node in range(3)]
    assert ([one.size for one in told], task.width(1)) == ([3, 2, 2], 3)


@pytest.mark.parametrize("count", [-1.0, math.nan, math.inf])
def test_impossible_counts_are_refused(count: float) -> None:
    told = np.zeros(TASK.width(1))
    told[0] = count
    with pytest.raises(DataError, match="counts of impossible records"):
        TASK.part(1, 0, told)
