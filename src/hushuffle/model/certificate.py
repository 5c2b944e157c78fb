"""`Certificate`: what somebody else needs in order to check a bracket of epsilon without this library."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Final, Literal

CERTIFICATE_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A claim about one release, whole: the smallest epsilon (nats) at `delta` lies between the two of `epsilon`.

    The relation is: replace one person's value, n fixed. `release`: the reports of n people and `dummies`, in uniformly
    random order; or every report with its sender. `values` people choose from; each reports its own with probability
    `truth`, a fraction, and each other one with the same (a dummy is any of them alike), or `rows` holds the
    probabilities of reports, a row for each value, and `dummy` those of a dummy. The lower end is attained at `others`,
    the others' number by value, and `target`: the target's two values. No data are in it: the datasets are worst cases.
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
        """Return the certificate as `hushuffle verify` reads it: an object; infinity is the text "infinity"."""
        ends = [end if math.isfinite(end) else "infinity" for end in self.epsilon]
        return json.dumps({**asdict(self), "epsilon": ends})
