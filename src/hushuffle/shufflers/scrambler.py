"""A scrambler: a uniform shuffle that adds dummies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.randomness import Randomness
from hushuffle.shufflers.base import Reveals, Shuffler


@dataclass(frozen=True, kw_only=True, init=False)
class Scrambler(Shuffler):
    """Adds `dummies` reports drawn from the randomizer's blanket, then releases all in a uniformly random order.

    Args:
        dummies: number of dummy reports, >= 0.
        cap: most messages that one target may get; only None (no cap) is available.

    Source: theory.md sections 1.2 and 6.

    >>> Scrambler(dummies=50).dummies
    50
    """

    _dummies: int
    cap: None = None

    def __init__(self, *, dummies: int, cap: int | None = None) -> None:
        object.__setattr__(self, "_dummies", _checks.integer("dummies", dummies, low=0))
        if cap is not None:
            message = f"A scrambler with a cap is not available, got cap={cap}. Leave it out: cap=None."
            raise UnsupportedProtocolError(message)

    @property
    def dummies(self) -> int:
        return self._dummies

    @property
    def reveals(self) -> Reveals:
        return Reveals.MULTISET

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        return messages[rng.permutation(messages.shape[0])]

    def describe(self) -> str:
        return f"a scrambler adds {self.dummies:,} dummies and releases all reports in a uniformly random order"

    def __repr__(self) -> str:
        return f"Scrambler(dummies={self.dummies})"
