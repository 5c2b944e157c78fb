"""Noise on the results of grouping sets: integers with a discrete Laplace distribution, sampled exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Floats, Integers
from hushuffle.plans.aggregates import GroupingQuery
from hushuffle.randomness import Randomness, secure

_UNIT: Final = 1 << 62
"""Denominator of the noise rate, whose numerator is an integer."""
_BITS: Final = 20
"""The rounding step is the power of two next to the largest value, divided by 2 to the power of this number."""
MOST_PEOPLE: Final = 1 << (53 - _BITS)
"""Sums are exact up to this number of rounding steps, and up to this number of people."""
_SIZES: Final = (1e-100, 1e100)
"""Limits on the larger absolute bound of a range, so that steps and sums do not overflow."""
_EXTREMES: Final = ("min", "max")


def noise_problem(query: GroupingQuery) -> tuple[str, str, str] | None:
    """Return the field of a query that rules out noise, the broken rule and its value; None if noise is possible."""
    extremes = [name for name in query.functions if name in _EXTREMES]
    if extremes:
        return "functions", "count, sum or avg if results have noise", ", ".join(extremes)
    if not _sums(query):
        return None
    for name in query.values:
        if name not in query.ends:
            return "ranges", f"set for {name}, since the range of one value determines the noise", "no range"
        largest = max(map(abs, query.ends[name]))
        if not _SIZES[0] <= largest <= _SIZES[1]:
            rule = f"with a larger absolute bound from {_SIZES[0]:g} to {_SIZES[1]:g} for {name}"
            return "ranges", rule, f"{largest:g}"
    return None


def share_of_set(query: GroupingQuery, epsilon: float, *, everybody: bool) -> float:
    """Return the epsilon of one grouping set's results, so that each person's results have at most `epsilon` together.

    `everybody`: each person is in every set, and the sets share `epsilon` equally; otherwise each is in one set.

    >>> import hushuffle as hs
    >>> sets = tuple(hs.plans.GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
    >>> query = hs.plans.GroupingQuery(grouping_sets=sets, partitions=4)
    >>> share_of_set(query, 1.0, everybody=True), share_of_set(query, 1.0, everybody=False)
    (0.5, 1.0)
    """
    share = Fraction(_checks.positive("epsilon", epsilon)) / (len(query.grouping_sets) if everybody else 1)
    rounded = float(share)
    return rounded if Fraction(rounded) <= share else math.nextafter(rounded, 0.0)


@dataclass(frozen=True, kw_only=True)
class ResultNoise:
    """Noise on the releases of one grouping set's nodes: on counts, and on sums if sums or averages are queried.

    Counts and the sums of each column have equal shares of `epsilon`. One replaced record changes at most two
    counts by one each, and two sums by the larger absolute bound of the range each, whether or not either record
    arrives. Values are rounded to multiples of a public step, at most 2**-19 of that bound, so sums are integers in
    units of the step. The noise is an integer with probabilities proportional to e**(-rate |x|), sampled exactly;
    the rate is rounded down.

    Args:
        query: the query with its grouping sets and functions.
        epsilon: pure epsilon (nats) of all releases of the grouping set.

    Raises:
        InvalidInputError: minima or maxima are queried, a value has no range, or epsilon is too small.

    Source: Ghosh, Roughgarden, Sundararajan 2009; docs/theory/traffic.md, Theorem 10.

    >>> import hushuffle as hs
    >>> age = hs.plans.GroupingSet(columns=("age",), sizes=(20,))
    >>> query = hs.plans.GroupingQuery(grouping_sets=(age,), values=("x",), functions=("avg",), partitions=4,
    ...     ranges=((0.0, 100.0),))
    >>> {name: round(size, 1) for name, size in hs.plans.ResultNoise(query=query, epsilon=1.0).deviations.items()}
    {'count': 5.6, 'sum(x)': 565.7}
    """

    query: GroupingQuery
    epsilon: float
    _steps: tuple[tuple[float, int], ...] = field(init=False, repr=False)
    """For each released row: its rounding step, and the rate of its noise as an integer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.positive("epsilon", self.epsilon))
        problem = noise_problem(self.query)
        if problem is not None:
            _checks.reject(*problem)
        ends = [max(map(abs, self.query.ends[name])) for name in self.query.values] if _sums(self.query) else []
        steps = [1.0, *(math.ldexp(1.0, math.frexp(end)[1] - _BITS) for end in ends)]
        most = [1, *(round(end / step) for end, step in zip(ends, steps[1:], strict=True))]
        share = Fraction(self.epsilon) / len(steps)
        rates = [noise_rate(share, 2 * size) for size in most]
        object.__setattr__(self, "_steps", tuple(zip(steps, rates, strict=True)))

    @property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of the noise on each count and on each sum, in the unit of the released number."""
        names = ["count", *(f"sum({name})" for name in self.query.values)]
        return {
            name: step / (math.sqrt(2) * math.sinh(min(rate / _UNIT / 2, 700.0)))
            for name, (step, rate) in zip(names, self._steps, strict=False)
        }

    def rounded(self, table: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Return a table whose values lie in their ranges and are multiples of their steps: their sums are exact."""
        steps = dict(zip(self.query.values, (step for step, _ in self._steps[1:]), strict=False))
        clipped = self.query.clipped(table)
        return {
            name: np.rint(values / steps[name]) * steps[name] if name in steps else values
            for name, values in clipped.items()
        }

    def release(self, numbers: Floats, *, rng: Randomness | None = None) -> Floats:
        """Return `numbers` with noise; they are laid out as `GroupStatistics.numbers`, with values already rounded.

        Values that are not released are nan: minima and maxima, and the sums if only counts are queried.
        """
        source, released = secure() if rng is None else rng, np.full(numbers.shape, np.nan)
        for row, (step, rate) in enumerate(self._steps):
            noise = discrete_laplace(rate, numbers.shape[1], rng=source)
            whole = np.rint(numbers[row] / step)
            released[row] = [(int(value) + more) * step for value, more in zip(whole.tolist(), noise, strict=True)]
        return released


def _sums(query: GroupingQuery) -> bool:
    return not {"sum", "avg"}.isdisjoint(query.functions)


def noise_rate(epsilon: float | Fraction, change: int) -> int:
    """Return the largest rate for `discrete_laplace` that hides integers which change by `change` in all.

    Raises:
        InvalidInputError: the noise of this epsilon (nats) is too large to be drawn.

    >>> noise_rate(1.0, 4) == 2**60
    True
    """
    rate = math.floor(Fraction(epsilon) / change * _UNIT)
    if not rate:
        _checks.reject("epsilon", "large enough that its noise can be drawn", float(epsilon))
    return rate


def discrete_laplace(rate: int, size: int, *, rng: Randomness) -> list[int]:
    """Return `size` integers, where x has probability proportional to e**(-|x| rate / 2**62), sampled exactly.

    Source: Canonne, Kamath, Steinke 2020 (algorithms 1 and 2).

    >>> import hushuffle as hs
    >>> discrete_laplace(2**60, 6, rng=hs.reproducible(1))
    [-6, 2, 1, 7, 6, 1]
    """
    drawn, left = [0] * size, np.arange(size)
    while left.size:
        below = rng.integers(_UNIT, left.size)
        accepted, units, negative = _falls(below, rng), _units(left.size, rng), rng.coins(1 << 63, left.size)
        for place in np.flatnonzero(accepted).tolist():
            far = (int(below[place]) + int(units[place]) * _UNIT) // rate
            drawn[left[place]] = -far if negative[place] else far
            accepted[place] = far > 0 or not negative[place]  # negative zeros are drawn again
        left = left[~accepted]
    return drawn


def _falls(numbers: Integers, rng: Randomness) -> Flags:
    """Return Bernoulli trials, each True with probability e**(-number/2**62)."""
    heads, left, turn = np.ones(numbers.size, dtype=np.bool_), np.arange(numbers.size), 1
    while left.size:
        further = (rng.integers(_UNIT, left.size) < numbers[left]) & (rng.integers(turn, left.size) == 0)
        left, turn = left[further], turn + 1
        heads[left] = ~heads[left]
    return heads


def _units(size: int, rng: Randomness) -> Integers:
    """Return the number of consecutive successes of Bernoulli trials with probability 1/e, shape (size,)."""
    units, left = np.zeros(size, dtype=np.int64), np.arange(size)
    while left.size:
        left = left[_falls(np.full(left.size, _UNIT), rng)]
        units[left] += 1
    return units
