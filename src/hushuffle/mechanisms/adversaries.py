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


@dataclass(frozen=True, kw_only=True)
class Strong:
    """Knows the value of everybody but the target.

    `others` counts the n - 1 known values, shape (k,); None is the worst case over all of them.
    """

    others: Histogram | None = None


@dataclass(frozen=True, kw_only=True)
class Informed:
    """Knows m of the others and holds the rest uniform.

    `known` counts the m known values, shape (k,); None is the worst case. `Informed(m=n-1)` is `Strong()`.
    """

    m: int
    known: Histogram | None = None

    def __post_init__(self) -> None:
        _checks.integer("m", self.m, low=0)
        if self.known is not None and self.known.total != self.m:
            _checks.reject("known", f"a histogram of m = {self.m} people", self.known.total)


Guesser = Uninformed | Strong | Informed

__all__ = ["Guesser", "Informed", "Strong", "Uninformed"]
