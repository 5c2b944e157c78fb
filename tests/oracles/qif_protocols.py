"""A symmetric randomizer with a small rational truth probability, and protocols around it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import HasSymmetricLaw, Randomizer, Symmetric
from hushuffle.mechanisms.shufflers import Reveals, Shuffler, UniformShuffle
from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class PlainResponse(Randomizer, HasSymmetricLaw):
    """Randomized response known by its law alone."""

    k: int
    truth: Fraction

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def local_epsilon(self) -> float:
        raise NotImplementedError

    def symmetric_law(self) -> Symmetric:
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
