"""What a shuffler is: a law over orderings of the messages, dummies included."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness


class Reveals(Enum):
    """What the released order says about who sent what."""

    SENDERS = "senders"
    """Position i is person i's report."""
    MULTISET = "multiset"
    """Nothing: only how often each report occurs."""
    NOISY_ORDER = "noisy order"
    """A random order that stays close to a public reference order."""


class Shuffler(ABC):
    """Takes the reports in the senders' order and releases them, with dummies, in another."""

    @property
    @abstractmethod
    def reveals(self) -> Reveals:
        """What the released order says."""

    @property
    def dummies(self) -> int:
        """Number of dummy reports it adds, drawn from the randomizer's blanket."""
        return 0

    @abstractmethod
    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return `messages`, the n reports followed by the dummies, in released order, same shape."""

    @abstractmethod
    def describe(self) -> str:
        """Return what it does in a few plain words."""
