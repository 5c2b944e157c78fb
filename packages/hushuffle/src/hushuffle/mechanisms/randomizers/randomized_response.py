"""k-ary randomized response: report the true value, or with some probability a uniformly random one; on numbers too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.errors import Problem
from hushuffle.mechanisms.randomizers.base import Mechanism, in_blocks, truth_threshold
from hushuffle.mechanisms.randomizers.report_law import Symmetric
from hushuffle.mechanisms.settings import SILENT, Setting, SettingsTable
from hushuffle.model import Histogram, NumberGrid
from hushuffle.model.citation import BLANKET, KAIROUZ, WARNER
from hushuffle.model.report_layout import ReportLayout
from hushuffle.randomness import SCALE, Randomness, epsilon_of_threshold


class TrueOrUniform(Mechanism):
    """Reports the true value if a Bernoulli trial with `threshold` succeeds, else a uniform draw from all values."""

    threshold: int

    @property
    def local_epsilon(self) -> float:
        return epsilon_of_threshold(self.inputs, self.threshold)

    def law(self) -> Symmetric:
        lie = Fraction(SCALE - self.threshold, SCALE * self.inputs)
        return Symmetric(k=self.inputs, truth=1 - (self.inputs - 1) * lie, lie=lie)

    @property
    def layout(self) -> ReportLayout:
        return ReportLayout(names=("report",), limits=(self.inputs,))

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        truth = _checks.codes("values", values, k=self.inputs)
        if self.threshold == SCALE:
            return truth.copy()
        return in_blocks(self._step, truth, rng)

    def _step(self, truth: Integers, rng: Randomness) -> Integers:
        honest = rng.coins(self.threshold, truth.size)
        return np.where(honest, truth, rng.integers(self.inputs, truth.size))

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        return rng.integers(self.inputs, _checks.integer("count", count, low=0))

    def counts(self, reports: Integers) -> Histogram:
        return Histogram(counts=np.bincount(_checks.codes("reports", reports, k=self.inputs), minlength=self.inputs))

    def supports(self, reports: Integers, values: Integers) -> Flags:
        same: Flags = values[:, None] == reports
        return same

    def supported(self, reports: Integers) -> Integers:
        return np.ones(reports.size, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(TrueOrUniform):
    """Report the true value with probability theta, else a uniform draw from the k values.

    theta = (e**epsilon - 1)/(k + e**epsilon - 1) is rounded down to a multiple of 2**-64, so the implemented
    mechanism is at least as private as `epsilon` demands; `local_epsilon` is its exact local epsilon.
    The true value is reported with probability mu = theta + (1 - theta)/k, each other value with
    nu = (1 - theta)/k. With `epsilon=math.inf` the true value is always reported, without noise.

    Args:
        k: number of values, >= 2.
        epsilon: local epsilon in nats, > 0, `math.inf` allowed.

    Raises:
        InvalidInputError: an argument is out of range, or `epsilon` is so small that theta < 2**-64.

    Source: Warner 1965 (k = 2), Kairouz, Bonawitz, Ramage 2016.

    >>> import hushuffle as hs
    >>> survey = hs.RandomizedResponse(k=5, epsilon=2.0)
    >>> round(float(survey.law().truth), 6), survey.local_epsilon
    (0.648786, 2.0)
    """

    k: int
    epsilon: float
    threshold: int = field(init=False, repr=False, compare=False)
    sources = (WARNER, KAIROUZ)
    table = SettingsTable(
        kind="randomized-response",
        about="k-ary randomized response, for few categories: the true one with some probability, or a random one.",
        settings={
            "epsilon": Setting(
                type="epsilon",
                about=('Local privacy loss in nats; "inf": no noise. Give this key or `truth_probability`.'),
                optional=True,
            ),
            "truth_probability": Setting(
                type="number",
                about="Probability of reporting the true category, above 1/k. Give this key or `epsilon`.",
                limits={"gt": 0, "le": 1},
                optional=True,
            ),
        },
        either=("epsilon", "truth_probability"),
    )

    def __post_init__(self) -> None:
        k = _checks.integer("k", self.k, low=2, high=2**40)
        hint = "math.inf means no noise."
        epsilon = _checks.positive("epsilon", self.epsilon, allow_infinite=True, hint=hint)
        threshold = truth_threshold(k, epsilon, f" at k={k}")
        _checks.set_fields(self, k=k, epsilon=epsilon, threshold=threshold)

    @classmethod
    def from_truth_probability(cls, k: int, p: float) -> Self:
        """Return the randomizer that reports the true value with probability p, 1/k < p <= 1.

        >>> import hushuffle as hs
        >>> round(hs.RandomizedResponse.from_truth_probability(k=2, p=0.8).epsilon, 6)
        1.386294
        """
        size = _checks.integer("k", k, low=2, high=2**40)
        truth = _checks.probability("p", p)
        if truth == 1:
            return cls(k=size, epsilon=math.inf)
        if not truth * size > 1:
            _checks.reject("p", f"> 1/k = {1 / size:.6g}", truth, "At p = 1/k, reports are independent of values.")
        with localcontext(Context(prec=40)):
            exact = Decimal(truth)
            return cls(k=size, epsilon=float((exact * (size - 1) / (1 - exact)).ln()))

    @classmethod
    def from_settings(cls, k: int, settings: Mapping[str, Any]) -> RandomizedResponse:
        if "truth_probability" in settings:
            return cls.from_truth_probability(k=k, p=settings["truth_probability"])
        return cls(k=k, epsilon=settings["epsilon"])

    @classmethod
    def problems(cls, raw: Mapping[str, Any], k: int | None) -> Iterator[Problem]:
        for problem in super().problems(raw, k):
            if problem.key == "randomizer" and "truth_probability" in raw and "epsilon" not in raw:
                rule, value = f"must be more than 1/k = {1 / (k or 1):.4g}", f"{raw['truth_probability']}"
                yield Problem(key="randomizer.truth_probability", rule=rule, value=value, hint=SILENT)
            elif problem.key == "randomizer.epsilon":
                yield Problem(key=problem.key, rule=f"must be larger for k = {k:,}", value=problem.value, hint=SILENT)
            else:
                yield problem

    def describe(self) -> str:
        law = self.law()
        if law.lie == 0:
            return f"every person reports one of {self.k:,} values truthfully (no noise)"
        return (
            f"every person reports one of {self.k:,} values, the true one with probability {float(law.truth):.4g} "
            f"(randomized response, local epsilon {self.local_epsilon:.4g})"
        )


@dataclass(frozen=True, kw_only=True)
class RoundedResponse(TrueOrUniform):
    """Stochastic rounding of a number between public bounds to a few levels, then randomized response on the levels.

    `encode` rounds numbers to codes 0..levels-1, which `randomize` takes. Guarantees are those of randomized response
    with k = levels. They hold also for a number between two levels: its report distribution is a mixture of theirs.

    Args:
        levels: number of equally spaced levels, 2 to 16,384.
        epsilon: local epsilon in nats, > 0, `math.inf` allowed.
        low: the smallest number; public.
        high: the largest number; public.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: Balle, Bell, Gascon, Nissim 2019, section 3; docs/theory/numbers.md, Theorem 1 and Theorem 2.

    >>> import hushuffle as hs
    >>> ages = hs.RoundedResponse(levels=12, epsilon=3.0, low=0, high=110)
    >>> codes = ages.encode([17.5, 80, 42], rng=hs.reproducible(1))
    >>> codes.tolist(), ages.randomize(codes, rng=hs.reproducible(2)).tolist()
    ([2, 8, 4], [2, 8, 4])
    """

    levels: int
    epsilon: float
    low: float
    high: float
    threshold: int = field(init=False, repr=False, compare=False)
    sources = (BLANKET.at("section 3"), WARNER, KAIROUZ)
    sized = "levels"
    besides_epsilon = "number of levels"

    def __post_init__(self) -> None:
        grid, response = self.grid, self.response
        _checks.set_fields(self, levels=grid.levels, low=grid.low, high=grid.high)
        _checks.set_fields(self, epsilon=response.epsilon, threshold=response.threshold)

    @property
    def grid(self) -> NumberGrid:
        """The grid of levels to which numbers are rounded."""
        return NumberGrid(low=self.low, high=self.high, levels=self.levels)

    @property
    def response(self) -> RandomizedResponse:
        """The randomized response that is applied to a level."""
        return RandomizedResponse(k=self.levels, epsilon=self.epsilon)

    def encode(self, numbers: npt.ArrayLike, *, rng: Randomness) -> Integers:
        """Return the codes of numbers, shape (n,), after stochastic rounding; see `NumberGrid.encode`."""
        return self.grid.encode(numbers, rng=rng)

    def describe(self) -> str:
        return (
            f"every person rounds a number from {self.low:g} to {self.high:g} stochastically to one of {self.levels:,} "
            f"levels; {self.response.describe()}"
        )
