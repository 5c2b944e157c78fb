"""What is inside messages, against plain Python."""

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
from hushuffle.network.nodes.records import Part, PartCodec, RecordCodec
from hushuffle.plans import GroupingQuery, GroupingSet, GroupStatistics, group_statistics

FUNCTIONS = ("count", "sum", "avg", "min", "max")
QUERY = GroupingQuery(
    grouping_sets=(GroupingSet(columns=("a", "b"), sizes=(3, 4)), GroupingSet(columns=("b",), sizes=(4,))),
    values=("x", "y"),
    functions=FUNCTIONS,  # type: ignore[arg-type]
    partitions=3,
)
CODEC = RecordCodec(query=QUERY, position=0)


def record(a: int, b: int, x: float, y: float) -> bytes:
    return struct.pack("<iidd", a, b, x, y)


def table(rows: list[tuple[int, int, float, float]]) -> dict[str, Any]:
    numbers = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    kinds = (np.int64, np.int64, np.float64, np.float64)
    return {name: np.array(own, dtype=kind) for name, own, kind in zip("abxy", numbers, kinds, strict=True)}


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
    data = table(rows)
    contents = CODEC.pack(data)
    assert contents == [record(*row) for row in rows]
    assert CODEC.size == 24
    assert CODEC.own(data).tolist() == [(4 * a + b) * 3 // 12 for a, b, _, _ in rows]
    for content, own in zip(contents, CODEC.own(data).tolist(), strict=True):
        CODEC.check(content, node=own)
        with pytest.raises(DataError):
            CODEC.check(content, node=(own + 1) % 3)
    found = CODEC.statistics(contents)
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
        CODEC.check(content, node=0)
    assert "77" not in str(caught.value)
    assert caught.value.__cause__ is None


@given(st.binary(min_size=24, max_size=24))
def test_random_records_are_checked(content: bytes) -> None:
    a, b, x, y = struct.unpack("<iidd", content)
    good = 0 <= a < 3 and 0 <= b < 4 and math.isfinite(x) and math.isfinite(y) and (4 * a + b) * 3 // 12 == 1
    try:
        CODEC.check(content, node=1)
    except DataError:
        assert not good
    else:
        assert good


def test_values_outside_their_ranges_are_refused_and_dummies_are_within() -> None:
    query = replace(QUERY, ranges=((5.0, 9.0), None))
    codec = RecordCodec(query=query, position=0)
    codec.check(codec.sample(node=0), node=0)
    for inside in (5.0, 9.0):
        codec.check(record(0, 0, inside, 1e300), node=0)
    for outside in (4.999, 9.001, 1e308, -1e308, math.nan):
        with pytest.raises(DataError) as caught:
            codec.check(record(0, 0, outside, 0.0), node=0)
        assert str(outside) not in str(caught.value)
    clipped = query.clipped(table([(0, 0, 1e308, 1e308), (1, 1, -3.0, -3.0)]))
    assert (clipped["x"].tolist(), clipped["y"].tolist()) == ([9.0, 5.0], [1e308, -3.0])


@pytest.mark.parametrize("ranges", [((0.0, 1.0),), ((1.0, 0.0), None), ((0.0, math.inf), None), ((0.0, 0.0), None)])
def test_ranges_that_are_none(ranges: Any) -> None:
    with pytest.raises(InvalidInputError, match="`ranges` must be"):
        replace(QUERY, ranges=ranges)


def test_tables_without_a_column_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="with the column 'b'"):
        CODEC.own({"a": np.array([1])})


# ---- parts


COUNTS = ((7, 9), (0, 0))


def part(rows: list[tuple[int, int, float, float]], query: GroupingQuery = QUERY) -> Part:
    return Part(statistics=group_statistics(query, 0, table(rows)), counts=COUNTS)


def same(one: GroupStatistics, other: GroupStatistics) -> bool:
    pairs = [(one.count, other.count)]
    for mine, theirs in ((one.sum, other.sum), (one.min, other.min), (one.max, other.max)):
        pairs += [(mine[name], theirs[name]) for name in ("x", "y")]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("node", [0, 1, 2])
@pytest.mark.parametrize("room", [30, 190, 4000])
@given(rows=ROWS)
def test_parts_come_back_in_as_many_messages_whatever_they_hold(
    node: int, room: int, rows: list[tuple[int, int, float, float]]
) -> None:
    codec = PartCodec(query=QUERY, position=0, head=32, room=room)
    own = [row for row in rows if (4 * row[0] + row[1]) * 3 // 12 == node]
    contents = codec.pack(part(own), node=node)
    assert len(contents) == codec.messages == math.ceil((32 + 8 * 4 * 7) / room)
    assert [len(one) for one in contents] == [len(one) for one in codec.pack(part([]), node=node)]
    assert max(map(len, contents)) <= room
    back = codec.unpack(contents, node=node)
    assert back.counts == COUNTS
    assert same(back.statistics, part(own).statistics)


def test_nodes_with_fewer_groups_send_as_much() -> None:
    # 7 groups on 3 nodes: 3, 2 and 2 of them.
    query = GroupingQuery(grouping_sets=(GroupingSet(columns=("a",), sizes=(7,)),), partitions=3)
    codec = PartCodec(query=query, position=0, head=32, room=40)
    empty = Part(statistics=group_statistics(query, 0, {"a": np.zeros(0, dtype=int)}), counts=COUNTS)
    assert {tuple(map(len, codec.pack(empty, node=node))) for node in range(3)} == {(40, 16)}
    assert codec.unpack(codec.pack(empty, node=2), node=2).statistics.count.tolist() == [0.0] * 7


def test_groups_of_other_nodes_are_never_told() -> None:
    codec = PartCodec(query=QUERY, position=0, head=32, room=190)
    everything = part([(a, b, 1.5, 2.5) for a in range(3) for b in range(4)])
    back = codec.unpack(codec.pack(everything, node=1), node=1)
    assert back.statistics.count.tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 4


@pytest.mark.parametrize("wrong", [[], [b"x"], [bytes(190)], [bytes(190), bytes(190)], [bytes(190), bytes(67)]])
def test_what_is_no_part_is_refused(wrong: list[bytes]) -> None:
    with pytest.raises(DataError, match="not the part of the result that it should be"):
        PartCodec(query=QUERY, position=0, head=32, room=190).unpack(wrong, node=0)


@pytest.mark.parametrize("count", [-1.0, math.nan, math.inf])
def test_impossible_counts_are_refused(count: float) -> None:
    codec = PartCodec(query=QUERY, position=0, head=32, room=4000)
    (content,) = codec.pack(part([]), node=0)
    changed = content[:32] + struct.pack("<d", count) + content[40:]
    with pytest.raises(DataError, match="counts records that cannot be"):
        codec.unpack([changed], node=0)
