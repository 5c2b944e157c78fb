"""From targets to a sum by several messages: which levels, which noise, how many messages; or how many people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushuffle.assessment.sums import of_rounds, sum_targets
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers.settings import LARGEST_EPSILON
from hushuffle.mechanisms.split_and_mix import SplitAndMix, people_needed
from hushuffle.model import Bound, Population, Target
from hushuffle.model.number_grid import LARGEST
from hushuffle.numerics.roots import farthest, halved
from hushuffle.questions.dp.calibration import smallest_people
from hushuffle.randomness import secure
from hushuffle.specification._base import unfit
from hushuffle.specification.sums import SumSpecification

_WORTH: Final = 1.01
"""More levels are not taken once rounding and noise cost less than this many times what the noise alone costs."""

_LEAST: Final = 1e-4
"""The smallest epsilon that is tried: tables of noise hold no less with two levels."""

_HAIR: Final = 1e-12
_STEPS: Final = 50
_ROUND_STEPS: Final = 14
_DIGITS: Final = 4
"""An epsilon that is found is rounded up to so many digits, and can be copied from the page."""


@dataclass(frozen=True, kw_only=True)
class SumPoint:
    """One sum: its protocol, and the central epsilon of all rounds that is certified at the delta that is asked."""

    protocol: SplitAndMix
    central: Bound

    @property
    def error(self) -> float:
        """The standard error of the mean if all answer, for the numbers that rounding is worst for."""
        return self.protocol.standard_error() / self.protocol.n


@dataclass(frozen=True, kw_only=True)
class SumChoice:
    """What the targets allow.

    `private` is the sum of smallest error whose central epsilon is at most `epsilon`, and `accurate` that of smallest
    epsilon (rounded up to four digits) whose error is at most `standard_error`; each None where no such target is
    given, `accurate` also where no epsilon up to 40 meets it. Both have as few levels as cost one hundredth of accuracy
    at most, or fewer, where `targets.bits` or tables allow no more (`accurate` is then of an epsilon that is enough for
    these). `people` is how many it takes to meet both (None: those there are will do, or no number up to 10**9).
    `specification` is the file of the first of them that there is, and `targets` what its assessment says of them.
    """

    title: str
    population: Population
    epsilon: float | None
    delta: float
    standard_error: float | None
    written: SumPoint
    private: SumPoint | None
    accurate: SumPoint | None
    people: int | None
    specification: SumSpecification
    targets: tuple[Target, ...]

    @property
    def met(self) -> bool:
        """Whether the proposed sum meets all targets."""
        return all(target.met for target in self.targets)

    @property
    def proposed(self) -> SumPoint:
        """The sum that `specification` describes."""
        found = self.private or self.accurate
        assert found is not None  # else it was refused
        return found


def calibrate_sum(specification: SumSpecification, *, base_folder: Path = Path()) -> SumChoice:
    """Return the levels, noise and messages that meet the targets of a sum, and how many people it takes if none do.

    Numbers are not looked at: people are counted, and the error is that for the numbers that rounding is worst for.

    Raises:
        SpecificationError: neither targets.epsilon nor targets.standard_error, or one that nothing meets.
        DataError, MissingDependencyError: the data cannot be used.

    >>> from hushuffle.specification.sums import parse_sum
    >>> choice = calibrate_sum(parse_sum('''
    ...     population = { n = 10_000, kind = "number", low = 0, high = 100, levels = 11 }
    ...     sum = { epsilon = 1.0, delta = 1e-9 }
    ...     targets = { epsilon = 0.5, standard_error = 0.1 }
    ... '''))
    >>> found = choice.proposed.protocol
    >>> found.levels, found.messages, found.bits_per_person, round(choice.proposed.error, 4)
    (126, 7, 147, 0.0286)
    >>> choice.accurate.protocol.epsilon, choice.met
    (0.1429, True)
    """
    asked = specification.targets
    if asked.epsilon is None and asked.standard_error is None:
        hint = "Or targets.standard_error: the smallest epsilon with so small an error is looked for."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    people = specification.asked.read(base_folder, rng=secure())
    search = _Search(specification, people.n)
    private = None if asked.epsilon is None else search.private(asked.epsilon)
    accurate = None if asked.standard_error is None else search.accurate(asked.standard_error)
    chosen = private or accurate
    if chosen is None:
        rule = f"must be one that some epsilon up to {LARGEST_EPSILON:g} meets"
        hint = f"There are {people.n:,} people. Allow more, or ask more people."
        unfit("targets.standard_error", rule, f"{asked.standard_error:g}", hint)
    needed = None
    if private is not None and asked.standard_error is not None and private.error > asked.standard_error:
        needed = search.people(private.protocol.epsilon, asked.standard_error)
    proposed = search.altered(chosen.protocol)
    return SumChoice(
        title=specification.title or "Calibration of a sum by several messages",
        population=people.population,
        epsilon=asked.epsilon,
        delta=specification.wanted_delta,
        standard_error=asked.standard_error,
        written=search.point(specification.build(people.n)),
        private=private,
        accurate=accurate,
        people=needed,
        specification=proposed,
        targets=tuple(sum_targets(proposed, chosen.protocol)),
    )


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """What the error comes to without making tables."""

    width: float
    honest: float

    def error(self, epsilon: float, levels: int, n: int) -> float:
        """Return the standard error of the mean, rounded up a little."""
        pace = epsilon / (levels - 1)
        noise = 2 * n / max(people_needed(self.honest, n), 2) * (pace / 2 / math.sinh(pace / 2)) ** 2 / epsilon**2
        return self.width / n * math.sqrt(noise + n / 4 / (levels - 1) ** 2) * (1 + _HAIR)

    def levels(self, epsilon: float, n: int) -> int:
        """Return the fewest levels that cost no more than a hundredth of accuracy, or the most that tables hold."""
        needed = max(people_needed(self.honest, n), 2)
        # Weights of shares fall below 2**-120 where ratio**k k**(1/h - 1)/(0.88 h) does, and for k = 2**20 they must.
        depth = 120 * math.log(2) - (1 - 1 / needed) * 20 * math.log(2) - math.log(0.88 * needed)
        most = min(int(epsilon * 2**20 / max(depth, 48.01)) + 1, LARGEST)
        limit = _WORTH * self.width / n / epsilon * math.sqrt(2 * n / needed)
        if most <= 2 or self.error(epsilon, most, n) > limit:
            return max(most, 2)
        if self.error(epsilon, 2, n) <= limit:
            return 2
        return farthest(lambda levels: self.error(epsilon, levels, n) <= limit, good=most, bad=2)


def _rounded(number: float, way: Callable[[float], int]) -> float:
    place = _DIGITS - 1 - math.floor(math.log10(number))
    return float(f"{way(number * 10**place)}e{-place}")


class _Search:
    """The sums that a specification could be, for n people."""

    def __init__(self, specification: SumSpecification, n: int) -> None:
        grid = specification.asked.grid
        assert grid is not None  # a rule
        self._specification, self._n, self._delta = specification, n, specification.wanted_delta
        self._noise = _Noise(width=grid.high - grid.low, honest=specification.sum.honest)

    def altered(self, protocol: SplitAndMix) -> SumSpecification:
        """Return the file of a sum that was found."""
        assert protocol.levels is not None
        return self._specification.altered(epsilon=protocol.epsilon, delta=protocol.delta, levels=protocol.levels)

    def point(self, protocol: SplitAndMix) -> SumPoint:
        """Return what a sum gives."""
        return SumPoint(protocol=protocol, central=of_rounds(self._specification, protocol, delta=self._delta))

    def private(self, epsilon: float) -> SumPoint:
        """Return the most accurate sum that keeps this epsilon in all rounds together, to four digits."""
        times = self._specification.times
        if times == 1:
            return self.fitting(epsilon)
        most = halved(
            lambda power: self.fitting(math.exp(power)).central.upper <= epsilon,
            good=math.log(epsilon / times),
            bad=math.log(epsilon),
            times=_ROUND_STEPS,
        )
        found = self.fitting(_rounded(math.exp(most), math.floor))
        return found if found.central.upper <= epsilon else self.fitting(epsilon / times)

    def fitting(self, epsilon: float) -> SumPoint:
        """Return the sum with this epsilon: of enough levels, or of as many as the bits allow."""
        levels, bits = self._noise.levels(epsilon, self._n), self._specification.targets.bits

        def fits(number: int) -> bool:
            return bits is None or self._built(epsilon, number).bits_per_person <= bits

        if levels > 2 and not fits(levels) and fits(2):
            levels = farthest(fits, good=2, bad=levels)
        return self.point(self._built(epsilon, levels))

    def accurate(self, wanted: float) -> SumPoint | None:
        """Return the sum of smallest epsilon with so small an error of the mean; None if there is none."""
        least = self._least(wanted, LARGEST)
        found = None if least is None else self.fitting(least)
        if found is None or found.error <= wanted:
            return found
        assert found.protocol.levels is not None
        more = self._least(wanted, found.protocol.levels)  # so many fit the bits with a larger epsilon too
        return None if more is None else self.fitting(more)

    def _least(self, wanted: float, most: int) -> float | None:
        """Return the smallest epsilon that is enough with `most` levels, rounded up; None if there is none."""

        def reached(epsilon: float) -> bool:
            return self._noise.error(epsilon, min(self._noise.levels(epsilon, self._n), most), self._n) <= wanted

        if not reached(LARGEST_EPSILON):
            return None
        if reached(_LEAST):
            return _LEAST
        ends = math.log(LARGEST_EPSILON), math.log(_LEAST)
        found = math.exp(halved(lambda power: reached(math.exp(power)), good=ends[0], bad=ends[1], times=_STEPS))
        return min(_rounded(found * (1 - _HAIR), math.ceil), LARGEST_EPSILON)

    def people(self, epsilon: float, wanted: float) -> int | None:
        """Return how many people it takes for so small an error with this epsilon; None if none up to 10**9 do."""

        def beyond(n: int) -> float:
            many = max(n, 2)
            return self._noise.error(epsilon, self._noise.levels(epsilon, many), many) / wanted - 1

        try:
            return smallest_people(beyond, start=self._n, target=epsilon)[0]
        except InvalidInputError:
            return None

    def _built(self, epsilon: float, levels: int) -> SplitAndMix:
        return self._specification.altered(
            epsilon=epsilon, delta=self._delta / self._specification.times, levels=levels
        ).build(self._n)
