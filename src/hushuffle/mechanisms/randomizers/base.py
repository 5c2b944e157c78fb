"""What a randomizer can offer. An analysis asks for a capability, never for a class of randomizer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.model import Histogram

if TYPE_CHECKING:
    from hushuffle.model import Channel
    from hushuffle.randomness import Randomness


class Randomizer(ABC):
    """A local randomizer: a channel from one person's value (0..k-1) to one report."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Number of values a person may hold."""

    @property
    @abstractmethod
    def local_epsilon(self) -> float:
        """epsilon_0 in nats of the randomizer as implemented, rounded up; math.inf for no noise."""

    @abstractmethod
    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return one report for each value, shape (n,) or (n, ...), in the same order."""

    @abstractmethod
    def dummies(self, count: int, *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return `count` reports drawn from the blanket, independent of every person."""

    @abstractmethod
    def describe(self) -> str:
        """Return the mechanism in a few plain words."""

    def offers(self, capability: type) -> bool:
        """Return whether it has `capability`; a class may have one for some of its settings only."""
        return isinstance(self, capability)


class HasChannel(ABC):
    """Its law is a finite matrix."""

    @abstractmethod
    def channel(self) -> Channel:
        """Return Q(y|x) in floats, shape (inputs, outputs)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Blanket:
    """What every value's report has in common: weight gamma and law omega, shape (outputs,).

    Q(.|x) = gamma omega + (1 - gamma) (rest depending on x), gamma = sum_y min_x Q(y|x).
    """

    weight: float
    law: npt.NDArray[np.float64]


class HasBlanket(ABC):
    """Its privacy blanket is known."""

    @abstractmethod
    def blanket(self) -> Blanket:
        """Return the privacy blanket."""


@dataclass(frozen=True, kw_only=True)
class Symmetric:
    """k-ary randomized response: the true value with probability `truth`, each other one with `lie`.

    Exact rationals. With probability `theta` = truth - lie the truth is told on purpose, with
    `gamma` = k lie = 1 - theta a uniform value is drawn (which may be the truth by chance).
    """

    k: int
    truth: Fraction
    lie: Fraction

    def __post_init__(self) -> None:
        if self.truth + (self.k - 1) * self.lie != 1 or not 0 <= self.lie <= self.truth:
            _checks.reject("truth, lie", "truth >= lie >= 0, truth + (k-1) lie = 1", (self.truth, self.lie))

    @property
    def theta(self) -> Fraction:
        """Truth - lie."""
        return self.truth - self.lie

    @property
    def gamma(self) -> Fraction:
        """K * lie."""
        return self.k * self.lie


class HasSymmetricLaw(ABC):
    """Its channel treats all values alike: mu on the diagonal, nu everywhere else."""

    @abstractmethod
    def symmetric_law(self) -> Symmetric:
        """Return k, mu and nu as exact rationals."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueLaws:
    """The laws of one report under some values, by class of reports, and the pairs of values to compare.

    `rows[r, v]` is the probability that a report of value `labels[r]` falls in class v, shape (rows, classes);
    `blanket` is the blanket's law over the classes, `weight` its gamma: gamma blanket <= every row.
    `pairs` are pairs of rows. Inside a class the likelihood ratios between the two values of a pair and the
    blanket are constant, so nothing about a pair is lost by looking at classes only; the other rows
    are what the other people may report.
    """

    rows: npt.NDArray[np.float64]
    labels: tuple[int, ...]
    blanket: npt.NDArray[np.float64]
    weight: float
    pairs: tuple[tuple[int, int], ...]


class HasValueLaws(ABC):
    """All its pairs of values are known, up to renaming values and reports."""

    @abstractmethod
    def value_laws(self) -> tuple[ValueLaws, ...]:
        """Return laws among whose pairs every ordered pair of values occurs, up to renaming."""


@dataclass(frozen=True, kw_only=True)
class SupportProbabilities:
    """A report supports its own value with probability `true`, any other value with `false`,
    and a dummy supports any value with probability `dummy`."""

    true: float
    false: float
    dummy: float


class CountsReports(ABC):
    """Frequencies can be estimated from how many reports support each value."""

    @abstractmethod
    def counts(self, reports: npt.NDArray[np.int64]) -> Histogram:
        """Return how many reports support each value, shape (inputs,); counts of disjoint reports add up."""

    @abstractmethod
    def support_probabilities(self) -> SupportProbabilities:
        """Return the probabilities that link counts to frequencies."""


_BLOCK: Final = 1 << 16  # records per step: the working arrays stay in the processor's cache


def in_blocks(
    step: Callable[[npt.NDArray[np.int64], Randomness], npt.NDArray[np.int64]],
    values: npt.NDArray[np.int64],
    rng: Randomness,
) -> npt.NDArray[np.int64]:
    """Return one report for each value, `step` applied to blocks of them (to all at once under a keyed stream)."""
    if not rng.sequential:
        return step(values, rng)
    reports = np.empty_like(values)
    for start in range(0, values.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        reports[block] = step(values[block], rng)
    return reports


Capability = TypeVar("Capability")


def has(randomizer: Randomizer, capability: type[Capability]) -> TypeGuard[Capability]:
    """Return whether `randomizer` has `capability` as it is set up: `Randomizer.offers`, told to the type checker."""
    return randomizer.offers(capability)


def require(randomizer: Randomizer, capability: type[Capability], *, for_what: str) -> Capability:
    """Return `randomizer` as something that has `capability`.

    Raises:
        UnsupportedProtocolError: it does not have it.
    """
    if has(randomizer, capability):
        return randomizer
    message = f"{for_what} needs a randomizer with `{capability.__name__}`, which {type(randomizer).__name__} is not."
    raise UnsupportedProtocolError(message)
