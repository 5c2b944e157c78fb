"""The distribution of a random number of dummies, with exactly implemented probabilities in units of 2**-64.

A distribution is a table of integers that sum to 2**64. One random word selects the number, without floats. The
tables are computed by integer and correctly rounded decimal arithmetic and are the same on every machine, so that a
keyed release draws the same number again. Numbers with a probability below 2**-64 do not occur.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise, repeat
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

SCALE: Final = 2**64
"""Denominator of all probabilities."""

LARGEST: Final = 10**9
"""Maximum number of dummies."""

_MOST: Final = 1 << 20
"""Largest number of possible values in a distribution of the number of dummies."""

_UNIT: Final = 1 << 160
"""The weight of the most likely number, before weights are rounded to multiples of 2**-64."""

_LEAST: Final = _UNIT >> 72
"""The distribution excludes numbers with a smaller weight."""

_DIGITS: Final = Context(prec=80)
_SUM: Final = 1e-9
_SHOWN: Final = 12

FEW: Final = 12
"""Bounds on a mean evaluate the function at every possible number of dummies, if there are at most this many."""

_EPS: Final = 2.0**-52
_CANDIDATES: Final = 33


@dataclass(frozen=True, repr=False)
class DummyLaw:
    """Distribution of the number of dummies of a scrambler, drawn anew for each release, independently of all values.

    An observer can count the released messages, so the drawn number is public; the delta of a guarantee is the mean
    over it. Constructors: `binomial`, `geometric`, `discrete_laplace`, `discrete_gaussian` and `of`.

    `numbers` are the possible numbers, ascending, shape (m,). `below` cumulates their probabilities in units of 2**-64:
    numbers[i] has probability (below[i+1] - below[i])/2**64.

    Source: docs/theory/more-and-less.md, Theorem 8 and Theorem 9.

    >>> import hushuffle as hs
    >>> law = hs.DummyLaw.binomial(trials=1000, p=0.5)
    >>> law, round(law.mean, 9), int(law.numbers[0])
    (DummyLaw.binomial(trials=1000, p=0.5), 500.0, 357)
    """

    text: str
    digest: str
    words: str = field(compare=False)
    numbers: npt.NDArray[np.int64] = field(compare=False)
    below: npt.NDArray[np.uint64] = field(compare=False)

    @classmethod
    def binomial(cls, *, trials: int, p: float) -> DummyLaw:
        """Return the distribution of the number of successes among `trials` trials of probability `p`, in (0, 1).

        Raises:
            InvalidInputError: an argument is out of range, or there are more than 2**20 different numbers.
        """
        count = _checks.integer("trials", trials, low=1, high=LARGEST)
        chance = _checks.probability("p", p, low_open=True, high_open=True)
        share = Fraction(chance)
        heads, tails = share.numerator, share.denominator - share.numerator
        mode = min(int((count + 1) * share), count)
        up = _until_faint(lambda weight, at: weight * (count - at) * heads // ((at + 1) * tails), mode, count)
        down = _until_faint(lambda weight, at: weight * at * tails // ((count - at + 1) * heads), mode, 0)
        weights = [*reversed(down), *up[1:]]
        return cls._made(
            f"binomial(trials={count}, p={chance!r})",
            f"from a binomial distribution ({count:,} trials, p = {chance:g})",
            range(mode - len(down) + 1, mode + len(up)),
            weights,
        )

    @classmethod
    def geometric(cls, *, mean: float) -> DummyLaw:
        """Return the geometric distribution on 0, 1, 2, ...: P(d) proportional to (mean/(1 + mean))**d.

        Raises:
            InvalidInputError: `mean` is not > 0 and finite, or there are more than 2**20 different numbers.
        """
        wanted = _checks.positive("mean", mean)
        share = Fraction(wanted) / (1 + Fraction(wanted))
        weights = _until_faint(lambda weight, _: weight * share.numerator // share.denominator, 0, LARGEST)
        words = "from a geometric distribution"
        return cls._made(f"geometric(mean={wanted!r})", words, range(len(weights)), weights)

    @classmethod
    def discrete_laplace(cls, *, center: int, scale: float) -> DummyLaw:
        """Return the distribution P(d) proportional to e**(-|d - center|/scale), for d from 0 to 2 center.

        Raises:
            InvalidInputError: an argument is out of range, or there are more than 2**20 different numbers.
        """
        middle = _checks.integer("center", center, low=0, high=LARGEST // 2)
        width = _checks.positive("scale", scale)
        share = int(_DIGITS.exp(_DIGITS.divide(Decimal(-1), Decimal(width))) * _UNIT)
        side = _until_faint(lambda weight, _: weight * share // _UNIT, 0, middle)
        words = f"from a discrete Laplace distribution (scale {width:g}, cut at 0 and {2 * middle:,})"
        numbers = range(middle - len(side) + 1, middle + len(side))
        text = f"discrete_laplace(center={middle}, scale={width!r})"
        return cls._made(text, words, numbers, [*reversed(side), *side[1:]])

    @classmethod
    def discrete_gaussian(cls, *, center: int, sigma: float) -> DummyLaw:
        """Return the distribution P(d) proportional to e**(-(d - center)**2/(2 sigma**2)), for d from 0 to 2 center.

        For the same standard deviation, `binomial` needs far more dummies: its mean is at least its variance.

        Raises:
            InvalidInputError: an argument is out of range, or there are more than 2**20 different numbers.

        >>> import hushuffle as hs
        >>> law = hs.DummyLaw.discrete_gaussian(center=40, sigma=4.0)
        >>> round(law.mean, 9), round(law.variance, 9)
        (40.0, 16.0)
        """
        return cls._gaussian(
            _checks.integer("center", center, low=0, high=LARGEST // 2), _checks.positive("sigma", sigma)
        )

    @classmethod
    @lru_cache(maxsize=16)
    def _gaussian(cls, middle: int, width: float) -> DummyLaw:
        """Cached: a file is checked before it is used, and many counts have the same dummies."""
        share = _DIGITS.exp(_DIGITS.divide(Decimal(-1), _DIGITS.multiply(Decimal(2), Decimal(width) ** 2)))
        powers = accumulate(repeat(int(_DIGITS.multiply(share, share) * _UNIT)), _product, initial=int(share * _UNIT))
        side = _until_faint(lambda weight, _: _product(weight, next(powers)), 0, middle)
        words = f"from a discrete Gaussian distribution (sigma {width:g}, cut at 0 and {2 * middle:,})"
        numbers = range(middle - len(side) + 1, middle + len(side))
        text = f"discrete_gaussian(center={middle}, sigma={width!r})"
        return cls._made(text, words, numbers, [*reversed(side), *side[1:]])

    @classmethod
    def of(cls, probabilities: Mapping[int, float | Fraction]) -> DummyLaw:
        """Return the distribution with the given probability of each number of dummies; they sum to 1.

        Raises:
            InvalidInputError: a probability is negative, their sum is not 1, or a number is out of range.

        >>> import hushuffle as hs
        >>> hs.DummyLaw.of({0: 0.5, 100: 0.5}).mean
        50.0
        """
        if not isinstance(probabilities, Mapping) or not probabilities:
            hint = "For example {0: 0.5, 100: 0.5}."
            _checks.reject(
                "probabilities", "a number -> probability mapping", f"<{type(probabilities).__name__}>", hint
            )
        if len(probabilities) > _MOST:
            _too_many("probabilities")
        shares: dict[int, Fraction] = {}
        for number, probability in probabilities.items():
            place = _checks.integer("probabilities", number, low=0, high=LARGEST)
            exact = isinstance(probability, Fraction) and 0 <= probability <= 1
            shares[place] = Fraction(probability if exact else _checks.probability("probabilities", probability))
        total = sum(shares.values(), Fraction(0))
        if abs(total - 1) > _SUM:
            _checks.reject("probabilities", "in all 1", f"<sum {float(total)!r}>")
        numbers = sorted(number for number, share in shares.items() if share)
        denominator = _UNIT
        weights = [int(shares[number] * denominator / total) for number in numbers]
        listed = ", ".join(f"{number}: {float(shares[number])!r}" for number in numbers[:_SHOWN])
        more = "" if len(numbers) <= _SHOWN else f", ... {len(numbers)} numbers"
        return cls._made(f"of({{{listed}{more}}})", "from a given distribution", numbers, weights, named=not more)

    @classmethod
    def _made(
        cls, text: str, words: str, numbers: Sequence[int], weights: Iterable[int], *, named: bool = True
    ) -> DummyLaw:
        """Round cumulative weights down to multiples of 2**-64; numbers with rounded probability 0 are left out."""
        sums = list(accumulate(weights))
        parts = np.array([0, *((part * SCALE // sums[-1]) for part in sums[:-1])], dtype=np.uint64)
        ends = np.append(parts[1:] > parts[:-1], True)  # the last number gets the remainder, at least 2**-64
        possible, below = np.array(numbers, dtype=np.int64)[ends], parts[ends]
        for array in (possible, below):
            array.flags.writeable = False
        digest = hashlib.sha256(possible.astype("<i8").tobytes() + below.astype("<u8").tobytes()).hexdigest()
        called = text if named else f"{text[:-1]} digest {digest[:16]})"
        return cls(text=called, digest=digest, words=words, numbers=possible, below=below)

    @property
    def parts(self) -> tuple[int, ...]:
        """The probability of each number in `numbers`, in units of 2**-64: integers that sum to 2**64."""
        starts = self.below.tolist()
        return tuple(end - start for start, end in zip(starts, [*starts[1:], SCALE], strict=True))

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probability of each number in `numbers`, shape (m,), each rounded to the nearest float."""
        shares = np.diff(self.below, append=np.uint64(0)).astype(np.float64) / 2.0**64  # the last is modulo 2**64
        shares = shares if self.random else np.ones(1)
        shares.flags.writeable = False
        return shares

    @cached_property
    def mean(self) -> float:
        """The expected number of dummies."""
        return float(self.numbers @ self.probabilities)

    @property
    def fewest(self) -> int:
        """The smallest possible number of dummies."""
        return int(self.numbers[0])

    @property
    def random(self) -> bool:
        """Whether more than one number of dummies is possible."""
        return self.numbers.size > 1

    @property
    def endless(self) -> None:
        """The ratio of successive probabilities of a distribution without a largest number; None here."""
        return None

    def masses(self) -> tuple[npt.NDArray[np.float64], float]:
        """Return the probability of each integer from the smallest to the largest number, and 0: no mass is omitted."""
        mass = np.zeros(int(self.numbers[-1] - self.numbers[0]) + 1)
        mass[self.numbers - self.numbers[0]] = self.probabilities
        return mass, 0.0

    @cached_property
    def variance(self) -> float:
        """The variance of the number of dummies."""
        return float((self.numbers - self.mean) ** 2 @ self.probabilities)

    def reached(self, chance: float) -> int:
        """Return the smallest number d such that P(number of dummies >= d) is at most `chance`.

        >>> import hushuffle as hs
        >>> hs.DummyLaw.of({0: 0.5, 4: 0.25, 9: 0.25}).reached(0.3)
        5
        """
        if chance >= 1:
            return 0
        parts = np.uint64(int(Fraction(chance) * SCALE))
        rare = np.flatnonzero(np.uint64(SCALE - 1) - self.below < parts)
        first = int(rare[0]) if rare.size else self.numbers.size
        return int(self.numbers[first - 1]) + 1

    @property
    def middle(self) -> int:
        """The median of the number of dummies."""
        return self.quantiles([0.5])[0]

    def quantiles(self, levels: Sequence[float]) -> list[int]:
        """Return the quantiles of the number of dummies at each of `levels`, in (0, 1).

        >>> import hushuffle as hs
        >>> hs.DummyLaw.of({0: 0.5, 4: 0.25, 9: 0.25}).quantiles([0.4, 0.7])
        [0, 4]
        """
        parts = np.array([int(level * SCALE) for level in levels], dtype=np.uint64)
        places = np.searchsorted(self.below, parts, side="right") - 1
        return [int(number) for number in self.numbers[places]]

    def __contains__(self, number: object) -> bool:
        return bool(np.isin(number, self.numbers))  # type: ignore[arg-type]

    def draw(self, rng: Randomness) -> int:
        """Draw a number of dummies from one random word."""
        return int(self.draws(1, rng)[0])

    def draws(self, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
        """Draw `count` numbers of dummies, shape (count,), each from one random word."""
        return self.numbers[np.searchsorted(self.below, rng.words(count), side="right") - 1]

    def describe(self) -> str:
        """Return a short description of the distribution in plain words."""
        return f"{self.words} with mean {self.mean:,.6g}"

    def __repr__(self) -> str:
        return f"DummyLaw.{self.text}"

    def chance(self, first: int, end: int) -> float:
        """Return the total probability of numbers[first] to numbers[end - 1], rounded to the nearest float."""
        stop = SCALE if end == self.numbers.size else int(self.below[end])
        return (stop - int(self.below[first])) / SCALE

    def up_to(self, numbers: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return P(number of dummies <= d) for each d in `numbers` (possible numbers), same shape."""
        places = np.searchsorted(self.numbers, np.array(numbers, dtype=np.int64)).tolist()
        return np.array([self.chance(0, place + 1) for place in places])

    def rounded(self, step: int, *, up: bool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return consecutive multiples of `step`, and the probability that a number is rounded to each, shapes (m,).

        >>> import hushuffle as hs
        >>> [part.tolist() for part in hs.DummyLaw.of({0: 0.5, 4: 0.25, 9: 0.25}).rounded(5, up=True)]
        [[0.0, 5.0, 10.0], [0.5, 0.25, 0.25]]
        """
        units = (self.numbers + (step - 1 if up else 0)) // step
        chances = np.bincount(units - units[0], weights=self.probabilities)
        return step * (units[0] + np.arange(chances.size, dtype=np.float64)), chances.astype(np.float64)

    def falling_mean(
        self, ends: Callable[[int], tuple[float, float]], *, share: float = 0.05, most: int = 32
    ) -> tuple[float, float, tuple[int, ...]]:
        """Return bounds on the mean of a decreasing function of the number of dummies, and the numbers evaluated.

        See `mean_between`. Up to 12 possible numbers are all evaluated. If there are more, evaluation stops when the
        width of the bracket is about `share` of the upper bound, or `most` numbers are evaluated.

        Args:
            ends: a function that returns certified lower and upper bounds (finite, >= 0) at a number of dummies.
            share: width of the bracket, relative to its upper bound, at which the evaluation stops.
            most: maximum number of evaluations.

        >>> import hushuffle as hs
        >>> law = hs.DummyLaw.of({0: 0.5, 100: 0.5})
        >>> law.falling_mean(lambda dummies: (1 / (1 + dummies),) * 2)[2]
        (0, 100)
        """
        values: dict[int, tuple[float, float]] = {}
        last = self.numbers.size - 1
        nodes = list(range(last + 1)) if last < FEW else [0, last]
        while True:
            values |= {place: ends(int(self.numbers[place])) for place in nodes if place not in values}
            heights = [values[place] for place in nodes]
            gaps = [
                (self._inside(left, right) * (near - far), left, right)
                for (left, right), (_, near), (_, far) in zip(pairwise(nodes), heights, heights[1:], strict=False)
            ]
            numbers = tuple(int(self.numbers[place]) for place in nodes)
            lower, upper = self.mean_between(numbers, heights)
            lost, worst = sum(gap for gap, *_ in gaps if gap > 0), sorted(gaps, reverse=True)
            if lost <= share * upper or len(nodes) >= most:
                return lower, upper, numbers
            cut = 0.0
            for gap, left, right in worst[: most - len(nodes)]:  # the intervals with half of the width
                if cut <= lost / 2:
                    nodes.append(self._cut((left, right), (values[left][1], values[right][1])))
                    cut += gap
            nodes.sort()

    def mean_between(self, numbers: Sequence[int], ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return bounds on the mean of a decreasing function of the number of dummies, from values at `numbers`.

        `numbers` are possible, ascending, and include the smallest and the largest possible number. For a number
        between two of them, the upper bound uses the value at the smaller number, the lower bound at the larger.

        >>> import hushuffle as hs
        >>> law = hs.DummyLaw.of({0: 0.25, 1: 0.5, 2: 0.25})
        >>> [round(end, 9) for end in law.mean_between((0, 2), [(1.0, 1.0), (0.0, 0.0)])]
        [0.25, 0.75]
        """
        places = np.searchsorted(self.numbers, np.array(numbers, dtype=np.int64)).tolist()
        lows, highs = np.array(ends, dtype=np.float64).T
        # The function decreases: an upper bound at one number also holds at larger numbers.
        highs, lows = np.minimum.accumulate(highs), np.maximum.accumulate(lows[::-1])[::-1]
        own = np.array([self.chance(place, place + 1) for place in places])
        between = np.array([self._inside(left, right) for left, right in pairwise(places)])
        rounding = 4 * _EPS * (len(places) + 2)
        lower = float(own @ lows + between @ lows[1:]) * (1 - rounding)
        return lower, float(own @ highs + between @ highs[:-1]) * (1 + rounding)

    def _inside(self, left: int, right: int) -> float:
        """Return the probability of the numbers strictly between two indices."""
        return self.chance(left + 1, right) if right > left + 1 else 0.0

    def _cut(self, places: tuple[int, int], heights: tuple[float, float]) -> int:
        """Return the best index to split an interval, if the function decays exponentially inside the interval."""
        left, right = places
        spread = np.linspace(left + 1, right - 1, min(_CANDIDATES, right - left - 1)).astype(np.int64)
        low, high = int(self.below[left + 1]), int(self.below[right])
        masses = np.array([low + (high - low) * i // _CANDIDATES for i in range(1, _CANDIDATES)], dtype=np.uint64)
        tried = np.unique(np.clip(np.append(spread, np.searchsorted(self.below, masses)), left + 1, right - 1))
        logs = np.log(np.maximum(heights, 1e-290))
        along = (self.numbers[tried] - self.numbers[left]) / (self.numbers[right] - self.numbers[left])
        middle = np.exp(logs[0] + along * (logs[1] - logs[0]))
        before = np.array([self._inside(left, place) for place in tried.tolist()])
        after = np.array([self._inside(place, right) for place in tried.tolist()])
        return int(tried[np.argmin(before * (heights[0] - middle) + after * (middle - heights[1]))])


def _until_faint(step: Callable[[int, int], int], start: int, end: int) -> list[int]:
    """Return weights from `start` towards `end`, each computed from the previous one, until they are too small."""
    weights, weight, way = [_UNIT], _UNIT, 1 if end >= start else -1
    for at in range(start, end, way):
        weight = step(weight, at)
        if weight < _LEAST:
            break
        weights.append(weight)
        if len(weights) > _MOST:
            _too_many("dummies")
    return weights


def _product(first: int, second: int) -> int:
    """Return the product of two fractions, each an integer in units of 1/_UNIT."""
    return first * second // _UNIT


def _too_many(name: str) -> None:
    hint = "Use a narrower distribution: the number of dummies protects, the variance does not."
    _checks.reject(name, f"a distribution with at most {_MOST:,} possible numbers", "<more>", hint)


def four_digits(width: float) -> float:
    """Return `width` rounded up to four significant digits."""
    unit = 10.0 ** (3 - math.floor(math.log10(width)))
    return math.ceil(width * unit) / unit


def laplace_center(scale: float, tail: float) -> int:
    """Return the smallest center at which a discrete Laplace distribution is cut where at most about `tail` remains."""
    return math.ceil(-scale * math.log(tail)) + 1


def gaussian_center(sigma: float, tail: float) -> int:
    """Return the smallest center at which a discrete Gaussian distribution is cut where at most `tail` remains."""
    return math.ceil(sigma * math.sqrt(-2 * math.log(tail))) + 1


@lru_cache(maxsize=128)
def binomial_dummies(trials: int, p: float) -> DummyLaw:
    """Return the distribution of the number of successes, also for p = 0 and p = 1.

    >>> binomial_dummies(5, 1.0).mean
    5.0
    """
    if p in (0.0, 1.0):
        return DummyLaw.of({round(trials * p): 1.0})
    return DummyLaw.binomial(trials=trials, p=p)
