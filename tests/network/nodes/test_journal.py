"""Counters, events and answers after health."""

from __future__ import annotations

import io
import json

import pytest

from hushuffle.network.nodes.connections import Control, Kind, Reason
from hushuffle.network.nodes.journal import Journal


def test_counters_events_and_health() -> None:
    out = io.StringIO()
    journal = Journal(node="scrambler-1", out=out, accepted=4, repeated=1, sent=7, dummies=2)
    journal.enter("releasing", step="ask")
    journal.reject(Reason.LATE, 3)
    journal.reject(Reason.SLOT)
    journal.facts["stragglers"] = 5
    journal.event("odd")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["node"], line["event"]) for line in lines] == [("scrambler-1", "releasing"), ("scrambler-1", "odd")]
    assert lines[0]["step"] == "ask"
    assert journal.counters() == {
        "state": "releasing",
        "accepted": 4,
        "repeated": 1,
        "sent": 7,
        "dummies": 2,
        "rejected": {"slot": 1, "late": 3},
        "stragglers": 5,
    }
    answer = journal.health()
    assert answer == Control(Kind.HEALTH, numbers=(3, 4, 4, 7, 1))
    assert Journal.read(answer) == {"state": "releasing", "accepted": 4, "rejected": 4, "sent": 7, "repeated": 1}
    assert Journal.read(Control(Kind.HEALTH, numbers=(99,)))["state"] == "unknown"


def test_unknown_states_and_no_place_to_write() -> None:
    journal = Journal(node="odd")
    journal.enter("somewhere")
    assert journal.health().numbers[0] == 0


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("I/O operation on closed file")])
def test_a_log_that_cannot_be_written_ends_no_node(error: Exception) -> None:
    class Full(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise error

    journal = Journal(node="compute-1", out=Full())
    journal.enter("done")
    assert journal.state == "done"
