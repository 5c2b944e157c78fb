"""Calibrate a sum by several messages: compute levels, noise, messages per person, and the people needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushuffle.assessment.sums import of_rounds, sum_targets
from hushuffle.assessment.targets import Proposal
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.mechanisms.split_and_mix import SplitAndMix, people_needed
from hushuffle.model import Bound, Population, Target
from hushuffle.model.number_grid import LARGEST
from hushuffle.numerics.roots import farthest, halved
from hushuffle.questions.dp.calibration import smallest_people
from hushuffle.randomness import secure
from hushuffle.specification._base import unfit
from hushuffle.specification.sums import SumSpecification

_WORTH: Final = 1.01
"""There are enough levels if rounding and noise together have at most this multiple of the error of noise alone."""

_LEAST: Final = 1e-4
"""The smallest epsilon that is tried: the noise tables for two levels support no smaller epsilon."""

_HAIR: Final = 1e-12
_STEPS: Final = 50
_ROUND_STEPS: Final = 14
_DIGITS: Final = 4
"""Number of significant digits to which a proposed epsilon is rounded up."""


@dataclass(frozen=True, kw_only=True)
class SumPoint:
    """One configuration of a sum: the protocol, and the certified central epsilon of all rounds at `delta`."""

    protocol: SplitAndMix
    central: Bound

    @property
    def error(self) -> float:
        """The standard error of the mean if all people answer, for the numbers with the largest rounding error."""
        return self.protocol.standard_error() / self.protocol.n


@dataclass(frozen=True, kw_only=True)
class SumChoice(Proposal):
    """The result of the calibration of a sum by several messages: the configurations that the targets allow.

    `private` is the sum with the smallest error whose central epsilon is at most `epsilon`. `accurate` is the sum with
    the smallest epsilon (rounded up to four digits) whose error is at most `standard_error`. Each is None without its
    target; `accurate` is also None if no epsilon up to 40 meets the target. `private` and `accurate` have the fewest
    levels that increase the error by at most one hundredth, or fewer levels if `targets.bits` or tables require it (the
    epsilon of `accurate` allows for that). `people` is the number needed to meet both targets (None: the present number
    suffices, or no number up to 10**9 does). `specification` is the file for `private` or, without it, for `accurate`,
    and `targets` are the targets of its assessment.
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
    def proposed(self) -> SumPoint:
        """The sum that `specification` describes."""
        point = self.private or self.accurate
        assert point is not None  # without any sum, calibration raises an error
        return point


def calibrate_sum(specification: SumSpecification, *, base_folder: Path = Path()) -> SumChoice:
    """Return the levels, noise and messages that meet the targets of a sum, or how many people are needed if none do.

    Numbers in the data are not used: only people are counted. The error is that for the numbers with the largest
    rounding error.

    Raises:
        SpecificationError: neither targets.epsilon nor targets.standard_error is set, or no sum meets a target.
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
    targets = specification.targets
    if targets.epsilon is None and targets.standard_error is None:
        hint = "Or set targets.standard_error to search for the smallest epsilon with this error."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    people = specification.asked.read(base_folder, rng=secure())
    search = _Search(specification, people.n)
    private = None if targets.epsilon is None else search.private(targets.epsilon)
    accurate = None if targets.standard_error is None else search.accurate(targets.standard_error)
    chosen = private or accurate
    if chosen is None:
        rule = f"must be a value that some epsilon up to {LARGEST_EPSILON:g} achieves"
        hint = f"With {people.n:,} people: allow a larger error, or ask more people."
        unfit("targets.standard_error", rule, f"{targets.standard_error:g}", hint)
    needed = None
    if private is not None and targets.standard_error is not None and private.error > targets.standard_error:
        needed = search.people(private.protocol.epsilon, targets.standard_error)
    proposed = search.altered(chosen.protocol)
    return SumChoice(
        title=specification.title or "Calibration of a sum by several messages",
        population=people.population,
        epsilon=targets.epsilon,
        delta=specification.wanted_delta,
        standard_error=targets.standard_error,
        written=search.point(specification.build(people.n)),
        private=private,
        accurate=accurate,
        people=needed,
        specification=proposed,
        targets=tuple(sum_targets(proposed, chosen.protocol)),
    )


@dataclass(frozen=True, kw_only=True)
class _Noise:
    """Computes the error of a sum without the tables of noise."""

    width: float
    honest: float

    def error(self, epsilon: float, levels: int, n: int) -> float:
        """Return an upper bound on the standard error of the mean, slightly above the exact error."""
        pace = epsilon / (levels - 1)
        noise = 2 * n / max(people_needed(self.honest, n), 2) * (pace / 2 / math.sinh(pace / 2)) ** 2 / epsilon**2
        return self.width / n * math.sqrt(noise + n / 4 / (levels - 1) ** 2) * (1 + _HAIR)

    def levels(self, epsilon: float, n: int) -> int:
        """Return the fewest levels whose rounding adds at most 1 % to the error, or the most that tables support."""
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
    """The search over the sums with other levels, noise and messages for a specification."""

    def __init__(self, specification: SumSpecification, n: int) -> None:
        grid = specification.asked.grid
        assert grid is not None  # ensured by the validation of the specification
        self._specification, self._n, self._delta = specification, n, specification.wanted_delta
        self._noise = _Noise(width=grid.high - grid.low, honest=specification.sum.honest)

    def altered(self, protocol: SplitAndMix) -> SumSpecification:
        """Return the specification changed to the levels, noise and messages of `protocol`."""
        assert protocol.levels is not None
        return self._specification.altered(epsilon=protocol.epsilon, delta=protocol.delta, levels=protocol.levels)

    def point(self, protocol: SplitAndMix) -> SumPoint:
        """Return the protocol with its certified central epsilon."""
        return SumPoint(protocol=protocol, central=of_rounds(self._specification, protocol, delta=self._delta))

    def private(self, epsilon: float) -> SumPoint:
        """Return the most accurate sum whose central epsilon in all rounds together is at most `epsilon`."""
        times = self._specification.times
        if times == 1:
            return self.fitting(epsilon)

        def meets(power: float) -> bool:
            return self.fitting(math.exp(power)).central.upper <= epsilon

        most = halved(meets, good=math.log(epsilon / times), bad=math.log(epsilon), times=_ROUND_STEPS)
        point = self.fitting(_rounded(math.exp(most), math.floor))
        return point if point.central.upper <= epsilon else self.fitting(epsilon / times)

    def fitting(self, epsilon: float) -> SumPoint:
        """Return the sum with this epsilon, with enough levels or, if fewer, the most levels that the bits allow."""
        levels, bits = self._noise.levels(epsilon, self._n), self._specification.targets.bits

        def fits(number: int) -> bool:
            return bits is None or self._built(epsilon, number).bits_per_person <= bits

        if levels > 2 and not fits(levels) and fits(2):
            levels = farthest(fits, good=2, bad=levels)
        return self.point(self._built(epsilon, levels))

    def accurate(self, wanted: float) -> SumPoint | None:
        """Return the sum with the smallest epsilon whose standard error is at most `wanted`; None if there is none."""
        least = self._least(wanted, LARGEST)
        point = None if least is None else self.fitting(least)
        if point is None or point.error <= wanted:
            return point
        assert point.protocol.levels is not None
        more = self._least(wanted, point.protocol.levels)  # these levels also fit the bits at a larger epsilon
        return None if more is None else self.fitting(more)

    def _least(self, wanted: float, most: int) -> float | None:
        """Return the smallest epsilon, rounded up, that meets `wanted` with `most` levels; None if there is none."""

        def reached(epsilon: float) -> bool:
            return self._noise.error(epsilon, min(self._noise.levels(epsilon, self._n), most), self._n) <= wanted

        if not reached(LARGEST_EPSILON):
            return None
        if reached(_LEAST):
            return _LEAST
        ends = math.log(LARGEST_EPSILON), math.log(_LEAST)
        root = math.exp(halved(lambda power: reached(math.exp(power)), good=ends[0], bad=ends[1], times=_STEPS))
        return min(_rounded(root * (1 - _HAIR), math.ceil), LARGEST_EPSILON)

    def people(self, epsilon: float, wanted: float) -> int | None:
        """Return the number of people needed for error `wanted` at this epsilon; None if above 10**9."""

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
