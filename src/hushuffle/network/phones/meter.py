"""A service's metrics and log: counters for a scraper, one line of JSON for each event, and no data about persons."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from typing import Any, Final, TextIO

METRICS: Final = {
    "hushuffle_requests_total": "Requests that were answered, by outcome.",
    "hushuffle_messages_total": "Messages that arrived for the first time and were stored.",
    "hushuffle_repeated_total": "Messages and batches that arrived again and changed nothing.",
    "hushuffle_unreached_total": "Attempts to reach another service that failed, by cause.",
    "hushuffle_refused_total": "Messages, batches, tokens and requests that were refused, by reason.",
    "hushuffle_batches_total": "Batches, by outcome: released, given_up, received, sent.",
    "hushuffle_dummies_total": "Dummies that this scrambler has generated.",
    "hushuffle_tokens_total": "Tokens and tickets that this issuer has signed.",
    "hushuffle_tasks": "Tasks that this service takes part in.",
}
"""Every name in /metrics. Counts that would distinguish dummies from messages (tokens at a target) are left out."""
LABELS: Final = {
    "hushuffle_requests_total": "outcome",
    "hushuffle_refused_total": "reason",
    "hushuffle_unreached_total": "cause",
    "hushuffle_batches_total": "what",
}
"""The label of each counter that has one."""


class Meter:
    """Counters and events of one service.

    >>> meter = Meter("relay", service="relay-1")
    >>> meter.count("requests", "taken")
    >>> [line for line in meter.text().splitlines() if line.startswith("hushuffle_requests")]
    ['hushuffle_requests_total{outcome="taken"} 1']
    """

    def __init__(self, role: str, *, service: str, out: TextIO | None = None) -> None:
        self._role, self._service, self._out = role, service, out
        self._counts: Counter[tuple[str, str]] = Counter()
        self.tasks = 0

    def count(self, what: str, label: str = "", number: int = 1) -> None:
        """Increase a counter; `what` is the middle of its name in `METRICS`."""
        name = f"hushuffle_{what}_total"
        assert name in METRICS
        assert bool(label) == (name in LABELS)
        self._counts[name, label] += number

    def of(self, what: str, label: str = "") -> int:
        return self._counts[f"hushuffle_{what}_total", label]

    def event(self, what: str, **facts: Any) -> None:
        if self._out is None:
            return
        line = {"time": round(time.time(), 3), "service": self._service, "role": self._role, "event": what, **facts}
        with suppress(OSError, ValueError):  # a full disk or a closed pipe must not end a service
            self._out.write(json.dumps(line) + "\n")
            self._out.flush()

    def text(self) -> str:
        """Return all counters in the text format of Prometheus, version 0.0.4."""
        lines = []
        for name, about in METRICS.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"]
            if name == "hushuffle_tasks":
                lines.append(f"{name} {self.tasks}")
            elif name not in LABELS:
                lines.append(f"{name} {self._counts[name, '']}")
            lines += [
                f'{name}{{{LABELS[name]}="{label}"}} {count}'
                for (counter, label), count in sorted(self._counts.items())
                if counter == name and label
            ]
        return "\n".join(lines) + "\n"
