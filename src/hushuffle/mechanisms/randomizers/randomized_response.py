"""k-ary randomized response."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.randomizers.base import (
    Blanket,
    CountsReports,
    HasBlanket,
    HasChannel,
    HasSymmetricLaw,
    Randomizer,
    SupportProbabilities,
    Symmetric,
    in_blocks,
)
from hushuffle.model import Channel, Histogram
from hushuffle.randomness import SCALE, Randomness, epsilon_of_threshold, threshold_for_truth


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Randomizer, HasChannel, HasBlanket, HasSymmetricLaw, CountsReports):
    """Tell the truth with probability theta, else draw uniformly from the k values.

    theta = (e**epsilon - 1)/(k + e**epsilon - 1), rounded down to a multiple of 2**-64, so the
    implemented mechanism is never less private than asked for; `local_epsilon` is the implemented one.
    The true value is reported with probability mu = theta + (1 - theta)/k, each other one with
    nu = (1 - theta)/k. `epsilon=math.inf` reports the truth always: no noise.

    Args:
        k: number of values, >= 2.
        epsilon: epsilon_0 in nats, > 0, `math.inf` allowed.

    Raises:
        InvalidInputError: an argument out of range, or an epsilon so small that theta < 2**-64.

    Source: Warner 1965 (k = 2), Kairouz, Bonawitz, Ramage 2016.

    >>> survey = RandomizedResponse(k=5, epsilon=2.0)
    >>> round(float(survey.symmetric_law().truth), 6), survey.local_epsilon
    (0.648786, 2.0)
    """

    k: int
    epsilon: float
    threshold: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=2, high=2**40)
        hint = "math.inf means no noise."
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint=hint)
        threshold = SCALE if math.isinf(epsilon) else threshold_for_truth(k, epsilon)
        if threshold == 0:
            hint = "Reports would not depend on the values at all."
            _checks.reject("epsilon", f"large enough for theta >= 2**-64 at k={k}", epsilon, hint)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "threshold", threshold)

    @classmethod
    def from_truth_probability(cls, k: int, p: float) -> Self:
        """Return the randomizer that reports the true value with probability p, 1/k < p <= 1.

        >>> round(RandomizedResponse.from_truth_probability(k=2, p=0.8).epsilon, 6)
        1.386294
        """
        size = _checks.integer("k", k, low=2, high=2**40)
        truth = _checks.probability("p", p)
        if truth == 1:
            return cls(k=size, epsilon=math.inf)
        if not truth * size > 1:
            _checks.reject("p", f"> 1/k = {1 / size:.6g}", truth, "At p = 1/k reports are independent of values.")
        with localcontext(Context(prec=40)):
            exact = Decimal(truth)
            return cls(k=size, epsilon=float((exact * (size - 1) / (1 - exact)).ln()))

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def local_epsilon(self) -> float:
        return epsilon_of_threshold(self.k, self.threshold)

    def symmetric_law(self) -> Symmetric:
        lie = Fraction(SCALE - self.threshold, SCALE * self.k)
        return Symmetric(k=self.k, truth=1 - (self.k - 1) * lie, lie=lie)

    def channel(self) -> Channel:
        law = self.symmetric_law()
        matrix = np.full((self.k, self.k), float(law.lie))
        np.fill_diagonal(matrix, float(law.truth))
        return Channel(matrix=matrix)

    def blanket(self) -> Blanket:
        return Blanket(weight=float(self.symmetric_law().gamma), law=np.full(self.k, 1.0 / self.k))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> npt.NDArray[np.int64]:
        truth = _checks.codes("values", values, k=self.k)
        if self.threshold == SCALE:
            return truth.copy()
        return in_blocks(self._step, truth, rng)

    def _step(self, truth: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
        honest = rng.coins(self.threshold, truth.size)
        return np.where(honest, truth, rng.integers(self.k, truth.size))

    def dummies(self, count: int, *, rng: Randomness) -> npt.NDArray[np.int64]:
        return rng.integers(self.k, _checks.integer("count", count, low=0))

    def counts(self, reports: npt.NDArray[np.int64]) -> Histogram:
        return Histogram(counts=np.bincount(_checks.codes("reports", reports, k=self.k), minlength=self.k))

    def support_probabilities(self) -> SupportProbabilities:
        law = self.symmetric_law()
        return SupportProbabilities(true=float(law.truth), false=float(law.lie), dummy=1.0 / self.k)

    def describe(self) -> str:
        law = self.symmetric_law()
        if law.lie == 0:
            return f"every person reports one of {self.k:,} values truthfully (no noise)"
        return (
            f"every person reports one of {self.k:,} values, the true one with probability {float(law.truth):.4g} "
            f"(randomized response, local epsilon {self.local_epsilon:.4g})"
        )
