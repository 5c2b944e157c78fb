"""The uniform shuffle, and the local model without a shuffle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.settings import Table
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class UniformShuffle(Shuffler):
    """Releases the reports in a uniformly random order, so that only the counts of reports carry information."""

    table = Table(kind="uniform", about="Reports leave in a uniformly random order.", settings={})

    @property
    def reveals(self) -> Reveals:
        return Reveals.MULTISET

    def describe(self) -> str:
        return "a shuffler releases the reports in a uniformly random order"


@dataclass(frozen=True, kw_only=True)
class NoShuffle(Shuffler):
    """Releases the reports in the senders' order, as in the local model."""

    table = Table(kind="none", about="Reports leave in the order of their senders.", settings={})

    @property
    def reveals(self) -> Reveals:
        return Reveals.SENDERS

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:  # noqa: ARG002
        return messages.copy()

    def describe(self) -> str:
        return "the reports stay linked to their senders (no shuffler)"
