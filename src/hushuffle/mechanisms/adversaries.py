"""Who looks at the release: what they know beforehand.

All of them want one target's value, hold it uniform over the k values, see the release, and
guess once (the single-target Bayes adversary of quantitative information flow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushuffle import _checks

if TYPE_CHECKING:
    from hushuffle.model import Histogram


@dataclass(frozen=True, kw_only=True)
class Uninformed:
    """Knows nobody's value: all datasets are equally likely."""

    argument = "m"
    phrase = "Somebody who knows nobody's answer"

    def knows(self, others: int) -> tuple[int, Histogram | None]:
        """Return how many of so many others are known, and their values if they are given."""
        del others
        return 0, None


@dataclass(frozen=True, kw_only=True)
class Strong(_checks.ByName):
    """Knows the value of everybody but the target.

    `others` counts the n - 1 known values, shape (k,); None is the worst case over all of them.
    """

    others: Histogram | None = None

    argument = "others"
    phrase = "Somebody who knows everyone else's answer"

    def knows(self, others: int) -> tuple[int, Histogram | None]:
        """Return how many of so many others are known, and their values if they are given."""
        return others, self.others


@dataclass(frozen=True, kw_only=True)
class Informed(_checks.ByName):
    """Knows m of the others and holds the rest uniform.

    `known` counts the m known values, shape (k,); None is the worst case. `Informed(m=n-1)` is `Strong()`.
    """

    m: int
    known: Histogram | None = None

    argument = "known"

    def __post_init__(self) -> None:
        _checks.integer("m", self.m, low=0)
        if self.known is not None and self.known.total != self.m:
            _checks.reject("known", f"a histogram of m = {self.m} people", self.known.total)

    @property
    def phrase(self) -> str:
        """Who this is, in plain words."""
        return f"Somebody who knows the answers of {self.m:,} others"

    def knows(self, others: int) -> tuple[int, Histogram | None]:
        """Return how many of so many others are known, and their values if they are given."""
        return _checks.integer("m", self.m, low=0, high=others), self.known


Guesser = Uninformed | Strong | Informed

__all__ = ["Guesser", "Informed", "Strong", "Uninformed"]
