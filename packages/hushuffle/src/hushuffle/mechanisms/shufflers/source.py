"""`Source`: messages that depend on no person's value, as every analysis reads them; `GeometricDummies`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.shufflers.dummy_law import SCALE, binomial_dummies

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
    from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class Trials:
    """A number of messages that is the number of successes of `number` Bernoulli trials of probability `p`."""

    number: int
    p: float

    def over(self, people: int, of: int) -> Trials:
        """Return the trials of `people` people, if these trials are equally divided among `of` people."""
        return Trials(number=self.number // of * people, p=self.p)

    @property
    def law(self) -> DummyLaw:
        """The binomial distribution, with probabilities in units of 2**-64."""
        return binomial_dummies(self.number, self.p)


_LOG_TAIL = -95.0
"""Logarithm of the tail probability that a table omits."""


@dataclass(frozen=True, kw_only=True)
class GeometricDummies:
    """A geometric number of dummies: 0, 1, 2, ..., each number `ratio` times as likely as the previous one.

    One random word decides whether a further dummy is added, so `ratio` is rounded down to a multiple of 2**-64.

    Raises:
        InvalidInputError: `ratio` is outside (0, 1).

    Source: Murakami, Sei, Eriguchi 2025; docs/theory/histograms.md, Corollary 6.

    >>> GeometricDummies(ratio=0.5).mean
    1.0
    """

    ratio: float

    def __post_init__(self) -> None:
        chance = _checks.probability("ratio", self.ratio, low_open=True, high_open=True)
        object.__setattr__(self, "ratio", self._parts(chance) / SCALE)

    @staticmethod
    def _parts(chance: float) -> int:
        return int(Fraction(chance) * SCALE)

    fewest: ClassVar[int] = 0
    random: ClassVar[bool] = True

    @property
    def mean(self) -> float:
        """The expected number of dummies."""
        return self.ratio / (1 - self.ratio)

    @property
    def variance(self) -> float:
        """The variance of the number of dummies."""
        return self.ratio / (1 - self.ratio) ** 2

    @property
    def endless(self) -> float:
        """The ratio of successive probabilities; the distribution has no largest number."""
        return self.ratio

    def masses(self) -> tuple[npt.NDArray[np.float64], float]:
        """Return the probabilities of 0, 1, 2, ..., and the total probability of the omitted larger numbers."""
        last = math.ceil(_LOG_TAIL / math.log(self.ratio))
        return (1 - self.ratio) * self.ratio ** np.arange(last + 1.0), math.exp(_LOG_TAIL)

    def reached(self, chance: float) -> int:
        """Return the smallest number d such that P(number of dummies >= d) is at most `chance`."""
        number = max(math.ceil(math.log(chance) / math.log(self.ratio)), 0)
        return number if self.ratio**number <= chance else number + 1

    def draws(self, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
        """Draw `count` numbers, shape (count,): each grows by 1 as long as a random word is below the ratio."""
        numbers, left, parts = np.zeros(count, dtype=np.int64), np.arange(count), np.uint64(self._parts(self.ratio))
        while left.size:
            left = left[rng.words(count, at=left) < parts]
            numbers[left] += 1
        return numbers


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise:
    """An integer that servers add to a sum: the sum of `number` >= 0 independent discrete Laplace numbers.

    Each is the difference of two independent geometric numbers, so that x has a probability proportional to
    `ratio`**|x|. The ratio is rounded as in `GeometricDummies`.

    >>> noise = LaplaceNoise(ratio=0.5, number=2)
    >>> noise.variance, noise.added(np.ones(1), log_tail=-1.0).round(3).tolist()[8:11]
    (8.0, [0.148, 0.185, 0.148])
    """

    ratio: float
    number: int = 1
    fewest: ClassVar[int] = 0
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", GeometricDummies(ratio=self.ratio).ratio)

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        return 2 * self.number * self.ratio / (1 - self.ratio) ** 2

    def draws(self, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
        """Draw `count` integers, shape (count,)."""
        part = GeometricDummies(ratio=self.ratio)
        return sum((part.draws(count, rng) - part.draws(count, rng) for _ in range(self.number)), np.zeros(count, int))

    def reach(self, log_tail: float) -> int:
        """Return a number that the sum of the `number` first geometric numbers exceeds with P <= e**`log_tail`."""
        tilt = math.log((7 / 8 + self.ratio / 8) / self.ratio)  # of Chernoff's bound, near the pole
        return math.ceil((self.number * math.log(8) - log_tail) / tilt)

    def added(self, law: npt.NDArray[np.float64], log_tail: float) -> npt.NDArray[np.float64]:
        """Return the distribution of a sum with this noise, in a window that is longer by `reach` on each side.

        The mass outside the window is at most 2 e**`log_tail`; `doubt` bounds the relative rounding error.
        """
        if not self.number:
            return law
        from scipy.signal import lfilter  # noqa: PLC0415 - a quarter of the time that the program starts in

        total = np.pad(law, self.reach(log_tail))
        for _ in range(2 * self.number):  # upwards and downwards in turn
            total = lfilter([1 - self.ratio], [1, -self.ratio], total)[::-1]
        return total

    def doubt(self, size: int) -> float:
        """Return the relative rounding error of a distribution of `size` integers."""
        return 8e-16 * self.number * size

    def chance(self, least: int) -> float:
        """Return an upper bound on P(noise >= `least`)."""
        law = self.added(np.ones(1), -95.0)
        return float(law[law.size // 2 + least :].sum()) * (1 + self.doubt(law.size)) + 1e-41


NO_NOISE: Final = LaplaceNoise(ratio=0.5, number=0)

Count: TypeAlias = "Trials | DummyLaw | GeometricDummies | LaplaceNoise"
"""The distribution of a number of messages, or of noise; a fixed number is so many trials of probability 1."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Messages that depend on no person's value.

    Args:
        count: how many messages; from the people, the total over all honest people.
        each: whether the number is drawn for each value (or, where sums are released, for each sum). Otherwise the
            messages are drawn from the privacy blanket of the reports.
        from_people: whether people send these messages and know them; otherwise the shuffler or servers add them.
    """

    count: Count
    each: bool = False
    from_people: bool = False

    @classmethod
    def dummies(cls, number: int) -> tuple[Source, ...]:
        """Return the sources of a shuffler that adds a fixed number of dummies."""
        return (cls(count=Trials(number=number, p=1.0)),) if number else ()

    @property
    def law(self) -> DummyLaw | GeometricDummies:
        """The distribution of the number of messages."""
        return self.count.law if isinstance(self.count, Trials) else cast("DummyLaw", self.count)

    def divided(self, batches: int) -> Source:
        """Return the messages of one of `batches` batches that together hold no more than these messages.

        Each batch has an equal share (rounded down) of the trials, or of the smallest possible number of messages.
        """
        trials = self.count if isinstance(self.count, Trials | LaplaceNoise) else Trials(number=self.fewest, p=1.0)
        return replace(self, count=replace(trials, number=trials.number // batches))

    @property
    def table(self) -> DummyLaw:
        """`law`, for a number of dummies from the blanket, which is never endless."""
        return cast("DummyLaw", self.law)

    @property
    def trials(self) -> Trials:
        """The Bernoulli trials whose successes are counted; only for sources that are defined by them."""
        assert isinstance(self.count, Trials), "a source of Bernoulli trials"
        return self.count

    @property
    def fewest(self) -> int:
        """The smallest possible number of messages."""
        return self.count.number if isinstance(self.count, Trials) and self.count.p == 1 else self.law.fewest

    @property
    def random(self) -> bool:
        """Whether the number of messages is random."""
        return not (isinstance(self.count, Trials) and self.count.p == 1) and self.law.random

    def describe(self) -> str:
        """Return the messages in a few words."""
        number = "a random number of"
        if isinstance(self.count, LaplaceNoise):
            return f"{self.count.number} times discrete Laplace noise of ratio {self.count.ratio:.6g} in each sum"
        if isinstance(self.count, Trials):
            number = (
                f"{self.count.number:,}" if self.count.p == 1 else f"Bin({self.count.number:,}, {self.count.p:.6g})"
            )
        what = "messages of each value" if self.each else "dummies"
        return f"{number} {what}{' from the people themselves' if self.from_people else ''}"
