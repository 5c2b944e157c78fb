"""What compute nodes tell the result: in as many messages whatever it is, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.intake import Told, ToldCodec
from k_means_cases import clusters, plan_text
from runtime_cases import aggregate_of, case, holders, step

COUNTS = ((7, 9), (0, 0))


@contextmanager
def groups(count: int) -> Iterator[RunDocument]:
    with case(step(1, [holders(3), holders(3, start=3)]), groups=count) as one:
        yield one.document


@pytest.mark.parametrize(("count", "room"), [(6, 190), (7, 30), (7, 40), (9, 4000)])
def test_parts_come_back_in_as_many_messages_whatever_they_hold(count: int, room: int) -> None:
    with groups(count) as document:
        codec, task = ToldCodec(document), aggregate_of(document)
        codec.room = room
        size, lengths = 32 + 8 * -(-count // 3) * 4, set()
        assert codec.messages(1) == -(-size // room)
        for node in range(3):
            for value in (0.0, 1.0, 2.0**60):
                mine = np.count_nonzero(task.query.nodes(0, np.arange(count)) == node)
                told = Told(step=1, counts=COUNTS, numbers=np.full(4 * mine, value))
                contents = codec.pack(told)
                lengths.add(tuple(map(len, contents)))
                assert max(map(len, contents)) <= room
                back = codec.unpack((1, node), contents)
                assert (back.step, back.counts) == (1, COUNTS)
                assert np.array_equal(back.numbers, task.part(1, node, told.numbers), equal_nan=True)
        assert len(lengths) == 1
        assert sum(next(iter(lengths))) == codec.size(1) == size


@pytest.mark.parametrize("wrong", [[], [b"x"], [bytes(32)], [bytes(95)], [bytes(90), bytes(7)]])
def test_what_is_no_part_is_refused(wrong: list[bytes]) -> None:
    with groups(6) as document, pytest.raises(DataError, match="bytes, but its part of the result must have"):
        ToldCodec(document).unpack((1, 0), wrong)


@pytest.mark.parametrize("room", [7, 40, 56, 1000])
def test_in_rounds_the_step_comes_first(room: int) -> None:
    with clusters(plan_text(iterations=2)) as one:
        codec = ToldCodec(one.document)
        codec.room = room
        for number, place in ((1, 0.0), (2, -1e99), (2**40, 3.0)):
            contents = codec.pack(Told(step=number, counts=COUNTS, numbers=np.array([place, 1.0])))
            assert len(contents) == codec.messages(1) == -(-56 // room)
            assert b"".join(contents)[:8] == number.to_bytes(8, "little")
            back = codec.unpack((1, 2), contents)
            assert (back.step, back.counts, back.numbers.tolist()) == (number, COUNTS, [place, 1.0])
        with pytest.raises(DataError, match="a centroid that is not finite"):
            codec.unpack((1, 0), codec.pack(Told(step=1, counts=COUNTS, numbers=np.array([np.nan, 0.0]))))
