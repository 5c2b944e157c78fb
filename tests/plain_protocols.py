"""Mechanisms that are known by their law alone, or not at all, and protocols around them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism, ReportLaw, Symmetric
from hushuffle.mechanisms.shufflers import Reveals, Shuffler, UniformShuffle
from hushuffle.model import Channel
from hushuffle.model.report_layout import ReportLayout
from hushuffle.randomness import Randomness


class Opaque(Mechanism):
    """A mechanism of 4 values whose reports are too many to be listed, and support none."""

    @property
    def inputs(self) -> int:
        return 4

    @property
    def local_epsilon(self) -> float:
        return 0.5

    @property
    def layout(self) -> ReportLayout:
        return ReportLayout(names=("report",), limits=(2**60,))

    def law(self) -> ReportLaw:
        return TooLarge()

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def dummies(self, count: int, *, rng: Randomness) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def describe(self) -> str:
        return "opaque"


class TooLarge(ReportLaw):
    """A law without closed form and without matrix."""

    @property
    def values(self) -> int:
        return 4

    def channel(self) -> Channel:
        message = "A matrix would have 2**62 entries."
        raise UnsupportedProtocolError(message)


@dataclass(frozen=True, kw_only=True)
class PlainResponse(Mechanism):
    """Randomized response known by its law alone."""

    k: int
    truth: Fraction

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def local_epsilon(self) -> float:
        raise NotImplementedError

    @property
    def layout(self) -> ReportLayout:
        raise NotImplementedError

    def law(self) -> Symmetric:
        return Symmetric(k=self.k, truth=self.truth, lie=(1 - self.truth) / (self.k - 1))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def dummies(self, count: int, *, rng: Randomness) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def describe(self) -> str:
        return "plain response"


@dataclass(frozen=True, kw_only=True)
class OtherShuffle(Shuffler):
    """A shuffler that reveals what it is told to, with dummies."""

    revealed: Reveals = Reveals.MULTISET
    added: int = 0

    @property
    def reveals(self) -> Reveals:
        return self.revealed

    @property
    def dummies(self) -> int:
        return self.added

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def describe(self) -> str:
        return "another shuffle"


def protocol(n: int, k: int, truth: Fraction, shuffler: Shuffler | None = None) -> Protocol:
    """Return n people with `PlainResponse`, uniformly shuffled unless told otherwise."""
    shuffle = UniformShuffle() if shuffler is None else shuffler
    return Protocol(randomizer=PlainResponse(k=k, truth=truth), shuffler=shuffle, n=n)
