"""Noise on the results of grouping sets: whole numbers with a discrete Laplace law, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.plans.aggregates import Floats, GroupingQuery, Integers, Mask
from hushuffle.randomness import Randomness, secure

_UNIT: Final = 1 << 62
"""Rates of noise are multiples of its inverse."""
_BITS: Final = 20
"""A value is rounded to a multiple of the largest one's power of two, divided by two to this power."""
MOST_PEOPLE: Final = 1 << (53 - _BITS)
"""So many steps of so many people add up without rounding."""
_SIZES: Final = (1e-100, 1e100)
"""Between these lies the larger end of a range, in absolute value: neither steps nor sums leave the numbers."""
_EXTREMES: Final = ("min", "max")


def noise_problem(query: GroupingQuery) -> tuple[str, str, str] | None:
    """Return which field of a query stands in the way of noise, the rule it breaks and what it is; None: none does."""
    extremes = [name for name in query.functions if name in _EXTREMES]
    if extremes:
        return "functions", "count, sum or avg where results are released with noise", ", ".join(extremes)
    if not _sums(query):
        return None
    for name in query.values:
        if name not in query.ends:
            return "ranges", f"given for {name}, since one person's value decides how much noise it takes", "no range"
        largest = max(map(abs, query.ends[name]))
        if not _SIZES[0] <= largest <= _SIZES[1]:
            rule = f"with a larger end from {_SIZES[0]:g} to {_SIZES[1]:g} in absolute value for {name}"
            return "ranges", rule, f"{largest:g}"
    return None


def share_of_set(query: GroupingQuery, epsilon: float, *, everybody: bool) -> float:
    """Return the epsilon of one grouping set's results, all of them together at most `epsilon` for each person.

    `everybody`: each person is in every set, and the sets share it equally; else each person is in one of them.

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
    """Noise on what the nodes of one grouping set release: the counts, and the sums if sums or averages are asked for.

    Counts and the sums of each column have equal shares of `epsilon`. One replaced record changes at most two counts
    by one each, and two sums by the larger end of the range each, whether or not either record arrives. Values are
    rounded to multiples of a public step, a 2**-19th of that end or less, so that sums are whole numbers of steps, and
    the noise is a whole number with probabilities proportional to e**(-rate |x|), drawn exactly; the rate is rounded
    down.

    Args:
        query: what is asked for.
        epsilon: pure, in nats, of all that is released of the set.

    Raises:
        InvalidInputError: least or greatest values are asked for, a value has no range, or epsilon is too small.

    Source: Ghosh, Roughgarden, Sundararajan 2009; docs/theory/traffic.md, Theorem 10.

    >>> import hushuffle as hs
    >>> age = hs.plans.GroupingSet(columns=("age",), sizes=(20,))
    >>> query = hs.plans.GroupingQuery(grouping_sets=(age,), values=("x",), functions=("avg",), partitions=4,
    ...     ranges=((0.0, 100.0),))
    >>> {name: round(size, 1) for name, size in ResultNoise(query=query, epsilon=1.0).deviations.items()}
    {'count': 5.6, 'sum(x)': 565.7}
    """

    query: GroupingQuery
    epsilon: float
    _steps: tuple[tuple[float, int], ...] = field(init=False, repr=False)
    """For each row that is released its step, and its rate in units."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _checks.positive("epsilon", self.epsilon))
        problem = noise_problem(self.query)
        if problem is not None:
            _checks.reject(*problem)
        ends = [max(map(abs, self.query.ends[name])) for name in self.query.values] if _sums(self.query) else []
        steps = [1.0, *(math.ldexp(1.0, math.frexp(end)[1] - _BITS) for end in ends)]
        most = [1, *(round(end / step) for end, step in zip(ends, steps[1:], strict=True))]
        share = Fraction(self.epsilon) / len(steps)
        rates = [math.floor(share / (2 * size) * _UNIT) for size in most]
        if not all(rates):
            _checks.reject("epsilon", "large enough for noise that can be drawn", self.epsilon)
        object.__setattr__(self, "_steps", tuple(zip(steps, rates, strict=True)))

    @property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of the noise on each count and on each sum, in the figure's unit."""
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
        """Return what is released of `numbers`, laid out as those of `GroupStatistics` and of rounded values.

        What is not released is nan: the least and greatest, and the sums if only counts are asked for.
        """
        source, released = secure() if rng is None else rng, np.full(numbers.shape, np.nan)
        for row, (step, rate) in enumerate(self._steps):
            noise = discrete_laplace(rate, numbers.shape[1], rng=source)
            whole = np.rint(numbers[row] / step)
            released[row] = [(int(value) + more) * step for value, more in zip(whole.tolist(), noise, strict=True)]
        return released


def _sums(query: GroupingQuery) -> bool:
    """Say whether sums of values are released."""
    return not {"sum", "avg"}.isdisjoint(query.functions)


def discrete_laplace(rate: int, size: int, *, rng: Randomness) -> list[int]:
    """Return `size` whole numbers, each x with probability proportional to e**(-|x| rate / 2**62): exactly.

    Source: Canonne, Kamath, Steinke 2020 (algorithms 1 and 2).

    >>> import hushuffle as hs
    >>> discrete_laplace(2**60, 6, rng=hs.reproducible(1))
    [-6, 2, 1, 7, 6, 1]
    """
    drawn, left = [0] * size, np.arange(size)
    while left.size:
        below = rng.integers(_UNIT, left.size)
        kept, units, negative = _falls(below, rng), _units(left.size, rng), rng.coins(1 << 63, left.size)
        for place in np.flatnonzero(kept).tolist():
            far = (int(below[place]) + int(units[place]) * _UNIT) // rate
            drawn[left[place]] = -far if negative[place] else far
            kept[place] = far > 0 or not negative[place]  # zero has two signs: one of them is drawn again
        left = left[~kept]
    return drawn


def _falls(numbers: Integers, rng: Randomness) -> Mask:
    """Return coins, True with probability e**(-number/2**62) each."""
    heads, left, turn = np.ones(numbers.size, dtype=np.bool_), np.arange(numbers.size), 1
    while left.size:
        further = (rng.integers(_UNIT, left.size) < numbers[left]) & (rng.integers(turn, left.size) == 0)
        left, turn = left[further], turn + 1
        heads[left] = ~heads[left]
    return heads


def _units(size: int, rng: Randomness) -> Integers:
    """Return how many coins with probability 1/e show heads in a row, shape (size,)."""
    units, left = np.zeros(size, dtype=np.int64), np.arange(size)
    while left.size:
        left = left[_falls(np.full(left.size, _UNIT), rng)]
        units[left] += 1
    return units
