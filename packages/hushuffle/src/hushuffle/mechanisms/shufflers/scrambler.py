"""A scrambler: a uniform shuffle that adds dummies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
from hushuffle.mechanisms.shufflers.source import Source


@dataclass(frozen=True, kw_only=True, init=False)
class Scrambler(Shuffler):
    """A shuffler that adds `dummies` reports from the randomizer's privacy blanket, and releases all in a random order.

    Args:
        dummies: number of dummy reports, >= 0; or a `DummyLaw` from which each release draws the number.
        cap: None (no limit), or n, the number of people: no value (target) gets more than n messages, dummies included.
            Dummies are then drawn one by one, uniform over the targets below the cap; their number must be fixed.

    Source: docs/theory/traffic.md, Theorems 2 and 3; docs/theory/more-and-less.md, Theorem 8.

    >>> import hushuffle as hs
    >>> hs.Scrambler(dummies=50).dummies
    50
    >>> hs.Scrambler(dummies=hs.DummyLaw.binomial(trials=100, p=0.5)).with_dummies(48)
    Scrambler(dummies=48)
    """

    _dummies: int | DummyLaw
    cap: int | None = None
    table = SettingsTable(
        kind="scrambler",
        about="Adds dummy reports; then all reports leave in a uniformly random order.",
        settings={
            "dummies": Setting(
                type="dummies",
                about="Number of dummy reports, drawn from the randomizer's blanket: an integer, or a distribution.",
            )
        },
        messages=True,
    )

    def __init__(self, *, dummies: int | DummyLaw, cap: int | None = None) -> None:
        number = dummies
        if not isinstance(dummies, DummyLaw):
            hint = "For a random number, pass a DummyLaw, for example DummyLaw.binomial(trials=100, p=0.5)."
            number = _checks.integer("dummies", dummies, low=0, hint=hint)
        elif dummies.numbers.size == 1:
            number = int(dummies.numbers[0])
        elif cap is not None:
            _checks.reject("cap", "None if the number of dummies is random", cap)
        object.__setattr__(self, "_dummies", number)
        object.__setattr__(self, "cap", None if cap is None else _checks.integer("cap", cap, low=1))

    @property
    def dummies(self) -> int:
        if law := self.dummy_law:
            _checks.unsupported(
                f"This needs a fixed number of dummies, but it is drawn {law.words}. Fix it with "
                "protocol.with_dummies(...)."
            )
        return cast("int", self._dummies)

    @property
    def sources(self) -> tuple[Source, ...]:
        drawn = self._dummies
        return (Source(count=drawn),) if isinstance(drawn, DummyLaw) else Source.dummies(drawn)

    def with_dummies(self, dummies: int) -> Shuffler:
        law = self.dummy_law
        if law is None:
            return super().with_dummies(dummies)
        if dummies not in law:
            _checks.reject("dummies", f"a number that occurs in {law!r}", dummies)
        return Scrambler(dummies=int(dummies))

    @property
    def reveals(self) -> Reveals:
        return Reveals.MULTISET if self.cap is None else Reveals.CAPPED_MULTISET

    def check(self, *, n: int, values: int) -> None:
        """Raise an error if the cap is not n, or if there are more dummies than the cap allows."""
        if self.cap is None:
            return
        if self.cap != n:
            _checks.reject(
                "cap", f"None or the number of people, n = {n}", self.cap, "There is no bound for other caps."
            )
        if self.dummies > (values - 1) * n:
            rule = f"at most (T - 1) n = {(values - 1) * n} under a cap of n"
            _checks.reject("dummies", rule, self.dummies, "A larger number exceeds the cap.")

    def complete(self, reports: Integers, *, draw: Callable[[int], Integers]) -> Integers:
        """Return `reports` followed by the dummies; with a cap, each report must be a single number."""
        if self.cap is None:
            return super().complete(reports, draw=draw)
        if reports.ndim != 1:
            _checks.reject("cap", "None if a report is more than one number", self.cap)
        accepted, missing = reports, self.dummies
        while missing:
            # A dummy for a full target is redrawn, so accepted dummies are uniform over the targets below the cap.
            drawn = draw(missing)
            fresh = drawn[_arrivals(np.concatenate([accepted, drawn]))[accepted.size :] < self.cap]
            accepted, missing = np.concatenate([accepted, fresh]), missing - fresh.size
        return accepted

    def describe(self) -> str:
        limit = "" if self.cap is None else f" (at most {self.cap:,} messages for each target)"
        order = "releases all reports in a uniformly random order"
        if law := self.dummy_law:
            return f"a scrambler adds a number of dummies drawn {law.describe()}, and {order}"
        return f"a scrambler adds {self._dummies:,} dummies{limit} and {order}"

    def __repr__(self) -> str:
        return f"Scrambler(dummies={self._dummies}{'' if self.cap is None else f', cap={self.cap}'})"


def _arrivals(messages: Integers) -> Integers:
    """Return for each message the number of equal earlier messages, shape (n,).

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
