"""The base class of shufflers that draw an independent number of dummies for each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import Problem
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

MOST = 1 << 31
"""Largest average number of dummies in a release."""


@dataclass(frozen=True, kw_only=True)
class PerValue(Shuffler):
    """A shuffler that adds dummies to the reports; it draws their number independently for each of the k values.

    `people` and `values` are the numbers n and k of the protocol. `counts`: the drawn numbers of dummies, shape (k,).
    """

    people: int | None = field(default=None, init=False, repr=False)
    values: int | None = field(default=None, init=False, repr=False)
    counts: npt.NDArray[np.int64] | None = field(default=None, init=False, repr=False, compare=False)

    def problems(self, *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
        del n, k
        if not truthful and self.table is not None:
            hint = 'With noise, use kind = "blanket-messages".'
            rule = 'needs true reports: [randomizer] kind = "randomized-response", epsilon = "inf"'
            yield Problem(key="shuffler.kind", rule=rule, value=f'"{self.table.kind}"', hint=hint)

    @property
    def reveals(self) -> Reveals:
        return Reveals.MULTISET

    def fitted(self, *, n: int, values: int) -> Shuffler:
        self.check(n=n, values=values)
        shuffler = self._with(people=n, values=values)
        if shuffler.expected_dummies > MOST:
            _checks.reject("p", f"at most {MOST:,} dummies on average", f"<{shuffler.expected_dummies:,.0f}>")
        return shuffler

    @property
    def dummies(self) -> int:
        if self.counts is None:
            _checks.unsupported(
                "This calculation needs uniformly random dummies, but this shuffler draws a separate number of dummies "
                "for each value."
            )
        return int(self.counts.sum())

    @property
    def expected_dummies(self) -> float:
        return self.known(self.values) * self.sources[0].law.mean

    def drawn(self, rng: Randomness) -> Shuffler:
        return self._with(counts=self.sources[0].law.draws(self.known(self.values), rng))

    @property
    def placed(self) -> npt.NDArray[np.int64] | None:
        return None if self.counts is None else np.repeat(np.arange(self.counts.size), self.counts)

    def complete(
        self, reports: npt.NDArray[np.int64], *, draw: Callable[[int], npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        del draw
        placed = self.placed
        assert placed is not None, "dummies are drawn before"
        return np.concatenate([reports, placed])

    def known(self, number: int | None) -> int:
        """Return `number`, n or k of the protocol; refuse a shuffler without a protocol."""
        if number is None:
            _checks.unsupported(
                "The number of dummies depends on n and k. Use the `shuffler` of a `Protocol`, which knows both."
            )
        return number
