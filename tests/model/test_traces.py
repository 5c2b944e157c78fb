from __future__ import annotations

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model.traces import Traces


def random_lists(rng: np.random.Generator, *, n: int, k: int) -> list[list[int]]:
    return [rng.integers(0, k, int(rng.integers(0, 6))).tolist() for _ in range(n)]


def lists(traces: Traces) -> list[list[int]]:
    return [traces.trace(i).tolist() for i in range(traces.n)]


def test_splits_and_selections_are_those_of_lists() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        sequences = random_lists(rng, n=int(rng.integers(1, 9)), k=4)
        traces = Traces.of(sequences, k=4)
        assert lists(traces) == sequences
        assert traces.lengths.tolist() == [len(events) for events in sequences]
        assert lists(traces.first(2)) == [events[:2] for events in sequences]
        counts = [int(rng.integers(0, len(events) + 1)) for events in sequences]
        training, rest = traces.split(counts)
        assert lists(training) == [events[:m] for events, m in zip(sequences, counts, strict=True)]
        assert lists(rest) == [events[m:] for events, m in zip(sequences, counts, strict=True)]
        chosen = rng.permutation(traces.n)[: int(rng.integers(1, traces.n + 1))]
        assert lists(traces.select(chosen)) == [sequences[i] for i in chosen]
        assert traces.select(chosen).users.tolist() == chosen.tolist()


def test_one_count_for_all_and_a_mask() -> None:
    traces = Traces(
        events=np.array([0, 1, 1, 0, 1]),
        offsets=np.array([0, 1, 3, 5]),
        k=2,
        users=np.array([9, 7, 8]),
        labels=("a", "b"),
    )
    long = traces.select(traces.lengths >= 2)
    assert (long.n, long.k, long.labels, long.users.tolist()) == (2, 2, ("a", "b"), [7, 8])
    training, rest = long.split(1)
    assert (lists(training), lists(rest)) == ([[1], [0]], [[1], [1]])
    assert training.users.tolist() == [7, 8]


def test_a_table_is_ordered_in_time() -> None:
    """Against Python's stable sort."""
    rng = np.random.default_rng(2)
    users, events, times = rng.integers(5, 9, 60), rng.integers(0, 6, 60), rng.integers(0, 20, 60)
    traces = Traces.from_table(users, events, times, k=6)
    rows = sorted(zip(users.tolist(), times.tolist(), events.tolist(), strict=True), key=lambda row: row[:2])
    assert traces.users.tolist() == sorted({row[0] for row in rows})
    assert lists(traces) == [[row[2] for row in rows if row[0] == user] for user in traces.users]


def test_arrays_are_read_only_and_not_shown() -> None:
    events = np.array([0, 1, 2])
    traces = Traces(events=events, offsets=np.array([0, 3]), k=3)
    for array in (traces.events, traces.offsets, traces.users, traces.trace(0)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    events[0] = 2  # the caller's array stays the caller's to change
    assert repr(traces) == "Traces(k=3, n=1)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 2}, "`events` must be integers from 0 to 1, got events=<1 of 3 values outside>"),
        ({"k": 0}, "`k`"),
        ({"offsets": [0, 2]}, "`offsets` must be ascending from 0 to the number of events"),
        ({"offsets": [1, 3]}, "`offsets`"),
        ({"offsets": [0]}, "`offsets`"),
        ({"offsets": [0, 4, 3]}, "`offsets`"),
        ({"offsets": [0.0, 3.0]}, "`offsets` must be a one-dimensional array of integers, got offsets=<float64"),
        ({"offsets": [[0, 3]]}, "`offsets` must be a one-dimensional array of integers"),
        ({"users": [1, 2]}, "`users` must be 2|`users` must be 1 distinct integers"),
        ({"offsets": [0, 1, 3], "users": [4, 4]}, "`users` must be 2 distinct integers"),
        ({"labels": ("a",)}, "`labels` must be 3 labels"),
    ],
)
def test_what_is_not_traces(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"events": [0, 1, 2], "offsets": [0, 3], "k": 3}
    with pytest.raises(InvalidInputError, match=message):
        Traces(**(arguments | change))  # type: ignore[arg-type]


def test_bad_questions() -> None:
    traces = Traces.of([[0], [1, 0]], k=2)
    for counts in (2, -1, [1], [1, 3], 0.5):
        with pytest.raises(InvalidInputError, match="`counts` must be"):
            traces.split(counts)
    with pytest.raises(InvalidInputError, match="`i`"):
        traces.trace(2)
    with pytest.raises(InvalidInputError, match="`m`"):
        traces.first(-1)
    with pytest.raises(InvalidInputError, match="`users` must be at least one"):
        traces.select([False, False])
    with pytest.raises(InvalidInputError, match="`users` must be integers from 0 to 1"):
        traces.select([2])
    with pytest.raises(InvalidInputError, match="`users`"):
        traces.select([0, 0])
    with pytest.raises(InvalidInputError, match="`users, events, times` must be of one length"):
        Traces.from_table([1], [0, 1], [1, 2], k=2)
    with pytest.raises(InvalidInputError, match="`offsets`"):
        Traces.of([], k=2)
