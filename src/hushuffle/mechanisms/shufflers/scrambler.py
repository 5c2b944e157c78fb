"""A scrambler: a uniform shuffle that adds dummies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True, init=False)
class Scrambler(Shuffler):
    """Adds `dummies` reports drawn from the randomizer's blanket, then releases all in a uniformly random order.

    Args:
        dummies: number of dummy reports, >= 0.
        cap: the most messages that one target may get, dummies included: the number of people n, or None.
            Each dummy is then uniform over the targets below the cap, one after the other.

    Source: docs/theory/traffic.md, Theorems 2 and 3.

    >>> Scrambler(dummies=50).dummies
    50
    """

    _dummies: int
    cap: int | None = None

    def __init__(self, *, dummies: int, cap: int | None = None) -> None:
        object.__setattr__(self, "_dummies", _checks.integer("dummies", dummies, low=0))
        object.__setattr__(self, "cap", None if cap is None else _checks.integer("cap", cap, low=1))

    @property
    def dummies(self) -> int:
        return self._dummies

    @property
    def reveals(self) -> Reveals:
        return Reveals.MULTISET if self.cap is None else Reveals.CAPPED_MULTISET

    def check(self, *, n: int, values: int) -> None:
        """Refuse a cap other than n, and more dummies than there is room for under it."""
        if self.cap is None:
            return
        if self.cap != n:
            _checks.reject("cap", f"None or the number of people, n = {n}", self.cap, "Other caps have no figure.")
        if self.dummies > (values - 1) * n:
            rule = f"at most (T - 1) n = {(values - 1) * n} under a cap of n"
            _checks.reject("dummies", rule, self.dummies, "More do not fit.")

    def complete(
        self, reports: npt.NDArray[np.int64], *, draw: Callable[[int], npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        """Return `reports`, with a cap each one number, followed by the dummies."""
        if self.cap is None:
            return super().complete(reports, draw=draw)
        if reports.ndim != 1:
            _checks.reject("cap", "None where a report is more than one number", self.cap)
        accepted, missing = reports, self.dummies
        while missing:
            # A dummy for a full target is drawn again: what is left is uniform over the targets below the cap.
            drawn = draw(missing)
            fresh = drawn[_arrivals(np.concatenate([accepted, drawn]))[accepted.size :] < self.cap]
            accepted, missing = np.concatenate([accepted, fresh]), missing - fresh.size
        return accepted

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        return messages[rng.permutation(messages.shape[0])]

    def describe(self) -> str:
        limit = "" if self.cap is None else f" (at most {self.cap:,} messages for each target)"
        return f"a scrambler adds {self.dummies:,} dummies{limit} and releases all reports in a uniformly random order"

    def __repr__(self) -> str:
        return f"Scrambler(dummies={self.dummies}{'' if self.cap is None else f', cap={self.cap}'})"


def _arrivals(messages: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each message how many earlier ones are equal to it, shape (n,).

    >>> _arrivals(np.array([3, 1, 3, 3])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(messages, kind="stable")
    ranked = messages[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    sizes = np.diff(np.concatenate([starts, [messages.size]]))
    arrivals = np.empty_like(messages)
    arrivals[order] = np.arange(messages.size) - np.repeat(starts, sizes)
    return arrivals
