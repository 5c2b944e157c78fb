"""A node's log: counters by reason, and one line of JSON per event, without private data."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from hushuffle.network.nodes.frames import Control, Kind, Reason

_STATES: Final = ("starting", "sending", "gathering", "releasing", "computing", "gave up", "failed", "done")


@dataclass(kw_only=True)
class Journal:
    """Counters and events of one node.

    `accepted`: messages that arrived for the first time. `repeated`: messages that had arrived before. `sent`:
    forwarded messages, of which `dummies` were the node's own. `rejected`: refused frames, connections or batches, by
    reason.

    >>> journal = Journal(node="compute-1")
    >>> journal.reject(Reason.DUPLICATE)
    >>> journal.counters()["rejected"]
    {'duplicate': 1}
    """

    node: str
    out: TextIO | None = None
    state: str = "starting"
    accepted: int = 0
    repeated: int = 0
    sent: int = 0
    dummies: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)
    facts: dict[str, int] = field(default_factory=dict)

    def reject(self, reason: Reason, count: int = 1) -> None:
        self.rejected[reason] += count

    def refuse(self, step: int, reason: Reason) -> Control:
        self.reject(reason)
        return Control(Kind.REFUSED, step, reason)

    @contextmanager
    def resuming(self) -> Iterator[None]:
        """Count messages that were stored before a restart only as "resumed", since they were counted before."""
        before, rejected = (self.accepted, self.repeated), self.rejected.copy()
        try:
            yield
        finally:
            resumed = self.accepted - before[0]
            (self.accepted, self.repeated), self.rejected = before, rejected
            if resumed:
                self.facts["resumed"] = self.facts.get("resumed", 0) + resumed
                self.event("resumed", messages=resumed)

    def enter(self, state: str, **facts: Any) -> None:
        self.state = state
        self.event(state, **facts)

    def event(self, what: str, **facts: Any) -> None:
        """Write an event to the log, as one line of JSON."""
        if self.out is not None:
            line = {"time": round(time.time(), 3), "node": self.node, "event": what, **facts}
            with suppress(OSError, ValueError):  # a full disk or a closed pipe must not end a node
                self.out.write(json.dumps(line) + "\n")
                self.out.flush()

    def health(self) -> Control:
        state = _STATES.index(self.state) if self.state in _STATES else 0
        numbers = (state, self.accepted, self.rejected.total(), self.sent, self.repeated)
        return Control(Kind.HEALTH, numbers=numbers)

    @staticmethod
    def read(answer: Control) -> dict[str, Any]:
        state, accepted, rejected, sent, repeated = (*answer.numbers, 0, 0, 0, 0, 0)[:5]
        name = _STATES[state] if state < len(_STATES) else "unknown"
        return {"state": name, "accepted": accepted, "rejected": rejected, "sent": sent, "repeated": repeated}

    def counters(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "accepted": self.accepted,
            "repeated": self.repeated,
            "sent": self.sent,
            "dummies": self.dummies,
            "rejected": {reason.words: count for reason, count in sorted(self.rejected.items())},
            **self.facts,
        }
