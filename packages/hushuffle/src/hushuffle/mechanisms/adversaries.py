"""Adversaries, which differ in what they know before the release.

Each adversary has a uniform prior for one target's value, sees the release and guesses once (the single-target Bayes
adversary of quantitative information flow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushuffle import _checks

if TYPE_CHECKING:
    from hushuffle.model import Histogram


@dataclass(frozen=True, kw_only=True)
class Uninformed:
    """An adversary that knows no value: a priori, all datasets are equally likely."""

    argument = "m"
    phrase = "An adversary who knows no answer"

    def knows(self, others: int) -> tuple[int, Histogram | None]:
        """Return how many of the `others` people the adversary knows, and the counts of their values if given."""
        return 0, None


@dataclass(frozen=True, kw_only=True)
class Strong(_checks.ByName):
    """An adversary that knows all values except the target's.

    `others` counts the n - 1 known values, shape (k,); None is the worst case over all such counts.
    """

    others: Histogram | None = None

    argument = "others"
    phrase = "An adversary who knows all other answers"

    def knows(self, others: int) -> tuple[int, Histogram | None]:
        """Return how many of the `others` people the adversary knows, and the counts of their values if given."""
        return others, self.others


@dataclass(frozen=True, kw_only=True)
class Informed(_checks.ByName):
    """An adversary that knows the values of m other people and has a uniform prior for all other values.

    `known` counts the m known values, shape (k,); None is the worst case. `Informed(m=n-1)` is `Strong()`.
    """

    m: int
    known: Histogram | None = None

    argument = "known"

    def __post_init__(self) -> None:
        _checks.integer("m", self.m, low=0)
        if self.known is not None and self.known.total != self.m:
            _checks.reject("known", f"a histogram that adds up to m = {self.m} people", self.known.total)

    @property
    def phrase(self) -> str:
        """A description of this adversary in plain words."""
        return f"An adversary who knows the answers of {self.m:,} others"

    def knows(self, others: int) -> tuple[int, Histogram | None]:
        """Return how many of the `others` people the adversary knows, and the counts of their values if given."""
        return _checks.integer("m", self.m, low=0, high=others), self.known


Guesser = Uninformed | Strong | Informed

__all__ = ["Guesser", "Informed", "Strong", "Uninformed"]
