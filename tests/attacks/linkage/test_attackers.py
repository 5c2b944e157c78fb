from __future__ import annotations

from typing import Any

import pytest

from hushuffle.attacks.linkage import scene
from hushuffle.errors import InvalidInputError
from hushuffle.model.traces import Traces

WALKS = Traces.of([[0, 1, 2, 3, 4], [5, 6, 7, 8]], k=9)


@pytest.mark.parametrize(
    ("asked", "training", "reported"),
    [
        ({}, [[0, 1], [5, 6]], [[2], [7]]),
        ({"events": None}, [[0, 1], [5, 6]], [[2, 3], [7, 8]]),
        ({"training": 1, "events": 9}, [[0], [5]], [[2, 3], [7, 8]]),
        ({"knowledge": "maximum"}, [[2, 3], [7, 8]], [[2], [7]]),
        ({"knowledge": "maximum", "training": 1, "events": None}, [[2], [7]], [[2, 3], [7, 8]]),
        ({"split": "none", "training": 3}, [[0, 1, 2], [5, 6, 7]], [[0], [5]]),
        ({"split": "none", "knowledge": "maximum", "events": 2}, [[0, 1, 2, 3, 4], [5, 6, 7, 8]], [[0, 1], [5, 6]]),
    ],
)
def test_what_is_known_and_what_is_reported(
    asked: dict[str, Any], training: list[list[int]], reported: list[list[int]]
) -> None:
    found = scene(WALKS, **asked)
    assert [found.training.trace(i).tolist() for i in range(2)] == training
    assert [found.reported.trace(i).tolist() for i in range(2)] == reported


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"knowledge": "some"}, "`knowledge` must be partial or maximum"),
        ({"split": "third"}, "`split` must be half or none"),
        ({"split": "none"}, "number of events that the attacker knows"),
        ({"training": 0}, "`training` must be an integer >= 1"),
        ({"events": 0}, "`events` must be an integer >= 1"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        scene(WALKS, **asked)


def test_traces_that_are_too_short() -> None:
    with pytest.raises(InvalidInputError, match="of at least 2 events each, got traces=<1 of 2 shorter>"):
        scene(Traces.of([[0], [1, 1]], k=2))
    with pytest.raises(InvalidInputError, match="of at least 1 events each"):
        scene(Traces.of([[], [1, 1]], k=2), split="none", training=1)
