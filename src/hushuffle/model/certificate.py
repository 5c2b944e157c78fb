"""`Certificate`: the data with which a third party checks lower and upper bounds on epsilon without this library."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Final, Literal

CERTIFICATE_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A self-contained claim about one release: the smallest epsilon (nats) at `delta` is within the bounds `epsilon`.

    Neighbouring datasets differ in one person's value. `release` is the reports of n people and `dummies` in
    uniformly random order, or every report with its sender. `values` is the number of values. Randomized response
    reports the true value with probability `truth`, a fraction, and every other value with equal probability; a dummy
    is uniform. For other randomizers `rows` holds the probabilities of the reports, a row for each value, and `dummy`
    the probabilities of a dummy. The lower bound is attained at `others`, the number of other people by value, and
    `target`, the target's two values. A certificate contains worst cases and no collected data.
    """

    version: Literal[1] = CERTIFICATE_VERSION
    release: Literal["shuffled", "senders"]
    n: int
    dummies: int
    delta: float
    kind: str
    epsilon: tuple[float, float]
    values: int
    truth: str | None
    rows: tuple[tuple[float, ...], ...] | None
    dummy: tuple[float, ...] | None
    others: tuple[int, ...]
    target: tuple[int, int]

    def to_json(self) -> str:
        """Return the certificate as a JSON object for `hushuffle verify`; infinity is the text "infinity"."""
        ends = [end if math.isfinite(end) else "infinity" for end in self.epsilon]
        return json.dumps({**asdict(self), "epsilon": ends})
