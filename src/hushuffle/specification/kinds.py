"""[randomizer], [shuffler] and [[adversaries]]: one class for each kind, each builds what it describes."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hushuffle.mechanisms import adversaries, randomizers, shufflers
from hushuffle.specification._base import Epsilon, Section, either
from hushuffle.specification.order import MallowsShuffle, Order

PLANNED = {
    "randomizer": ("target-sampling",),
    "adversaries": ("traffic",),
}
"""Kinds that have a name but no code yet."""


class RandomizedResponse(Section):
    """k-ary randomized response: the truth with some probability, else any category."""

    model_config = ConfigDict(json_schema_extra=either("epsilon", "truth_probability"))

    kind: Literal["randomized-response"]
    epsilon: Epsilon | None = None
    """Local privacy loss in nats: a number up to 40, or "inf" for no noise. This or truth_probability."""
    truth_probability: Annotated[float, Field(gt=0, le=1)] | None = None
    """Probability that the true category is reported, more than 1/k. This or epsilon."""

    def build(self, k: int) -> randomizers.Mechanism:
        """Return the randomizer for k categories."""
        if self.epsilon is not None:
            return randomizers.RandomizedResponse(k=k, epsilon=self.epsilon)
        assert self.truth_probability is not None
        return randomizers.RandomizedResponse.from_truth_probability(k=k, p=self.truth_probability)


class LocalHashing(Section):
    """Local hashing, for many categories: a fresh public hash to g buckets, randomized response on the bucket."""

    kind: Literal["local-hashing"]
    epsilon: Epsilon
    """Local privacy loss in nats: a number up to 40, or "inf" to report the bucket as it is (then give g)."""
    g: Annotated[int, Field(ge=2, le=2 * 10**9)] | None = None
    """Number of buckets; left out, about the best for rare categories at this epsilon that is fast to count."""

    def build(self, k: int) -> randomizers.Mechanism:
        """Return the randomizer for k categories."""
        assert self.g is not None or math.isfinite(self.epsilon)
        buckets = self.g or randomizers.LocalHashing.best_fast_g(self.epsilon)
        return randomizers.LocalHashing(k=k, g=buckets, epsilon=self.epsilon)


class BitFlipping(Section):
    """Every bit of the publishers' Bloom filters is flipped with probability p: for a reach study."""

    kind: Literal["bit-flipping"]
    p: Annotated[float, Field(gt=0, lt=0.5)] | None = None
    """Probability of a flip; left out, about the least that meets targets.epsilon."""

    def build(self, k: int) -> randomizers.Mechanism:
        """Return the randomizer for columns of k bits."""
        assert self.p is not None
        return randomizers.BitFlipping(width=k, p=self.p)


class UniformShuffle(Section):
    """Reports leave in a uniformly random order."""

    kind: Literal["uniform"]

    def build(self) -> shufflers.Shuffler:
        """Return the shuffler."""
        return shufflers.UniformShuffle()


class Scrambler(Section):
    """Adds dummy reports, then all leave in a uniformly random order."""

    kind: Literal["scrambler"]
    dummies: Annotated[int, Field(ge=0, le=10**9)]
    """How many dummy reports are added, drawn from the randomizer's blanket."""

    def build(self) -> shufflers.Shuffler:
        """Return the shuffler."""
        return shufflers.Scrambler(dummies=self.dummies)


class NoShuffle(Section):
    """Reports leave in the order of their senders."""

    kind: Literal["none"]

    def build(self) -> shufflers.Shuffler:
        """Return the shuffler."""
        return shufflers.NoShuffle()


class Uninformed(Section):
    """Knows nobody's answer; wants one person's."""

    kind: Literal["uninformed"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return who guesses one person's answer."""
        return adversaries.Uninformed()


class Strong(Section):
    """Knows everybody's answer but one; wants that one."""

    kind: Literal["strong"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return who guesses one person's answer."""
        return adversaries.Strong()


class Informed(Section):
    """Knows the answers of m others; wants one person's."""

    kind: Literal["informed"]
    m: Annotated[int, Field(ge=0)]
    """How many others' answers are known, at most n - 1."""

    def guesser(self) -> adversaries.Guesser | None:
        """Return who guesses one person's answer."""
        return adversaries.Informed(m=self.m)


class Linker(Section):
    """Wants to know which person sent a report: re-identification."""

    kind: Literal["linker"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return nobody: a linker asks who, not what."""
        return None


AnyRandomizer = Annotated[RandomizedResponse | LocalHashing | BitFlipping, Field(discriminator="kind")]
AnyShuffler = Annotated[UniformShuffle | Scrambler | MallowsShuffle | NoShuffle, Field(discriminator="kind")]
AnyAdversary = Annotated[Uninformed | Strong | Informed | Linker | Order, Field(discriminator="kind")]
