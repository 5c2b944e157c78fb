"""Search for the levels, noise and messages of a sum that meet a target, and for the people needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from hushuffle.assessment.targets import Point
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.mechanisms.split_and_mix import SplitAndMix, people_needed
from hushuffle.model.number_grid import LARGEST
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions import dp
from hushuffle.questions.dp.calibration import number_of_people
from hushuffle.specification.sums import SumSpecification

D = TypeVar("D")

_WORTH: Final = 1.01
"""There are enough levels if rounding and noise together have at most this multiple of the error of noise alone."""

_LEAST: Final = 1e-4
"""The smallest epsilon that is tried: the noise tables for two levels support no smaller epsilon."""

_HAIR: Final = 1e-12
_HAIR_OF_ROUNDS: Final = 2e-5
_DIGITS: Final = 4
"""Number of significant digits to which a proposed epsilon is rounded up."""


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
        most = max(most, 2)
        fewest = solve(
            _levels(lambda levels: self.error(epsilon, levels, n), easiest=most, hardest=2),
            Requirement(excess=lambda error: log_excess(error, limit)),
        )
        return most if fewest is None else int(fewest.value)


def _levels(apply: Callable[[int], D], *, easiest: int, hardest: int) -> Parameter[D]:
    """Return the number of levels as a parameter."""
    return Parameter(
        name="levels", apply=lambda x: apply(int(x)), easiest=easiest, hardest=hardest, whole=True, resolution=0
    )


def _rounded(number: float, way: Callable[[float], int]) -> float:
    place = _DIGITS - 1 - math.floor(math.log10(number))
    return float(f"{way(number * 10**place)}e{-place}")


class SumCalibration:
    """The search over the sums with other levels, noise and messages for a specification."""

    def __init__(self, specification: SumSpecification, n: int) -> None:
        grid = specification.asked.grid
        assert grid is not None  # ensured by the validation of the specification
        self._specification, self._n, self._delta = specification, n, specification.wanted_delta
        self._levels = grid.levels
        self._noise = _Noise(width=grid.high - grid.low, honest=specification.sum.honest)

    def point(self, protocol: SplitAndMix) -> Point:
        """Return the protocol with its certified central epsilon."""
        noise = {"law": "discrete Laplace, of the people needed", "ratio": protocol.noise.chance}
        return Point(
            settings={
                "epsilon": protocol.epsilon,
                "levels": protocol.levels,
                "step": protocol.step,
                "noise": noise,
                "messages": protocol.messages,
                "modulus": protocol.modulus,
                "bits_per_person": protocol.bits_per_person,
                "people_needed_honest": protocol.needed,
            },
            central=dp.compose([(protocol, self._specification.times)], delta=self._delta),
            standard_error=protocol.standard_error() / protocol.n,
            protocol=protocol,
        )

    def private(self, epsilon: float) -> Point:
        """Return the most accurate sum whose central epsilon in all rounds together is at most `epsilon`."""
        times = self._specification.times
        if times == 1:
            return self.fitting(epsilon)

        least = epsilon / times
        share = Parameter(
            name="epsilon", apply=self.fitting, easiest=least, hardest=epsilon, start=least, resolution=_HAIR_OF_ROUNDS
        )
        solution = solve(share, Requirement(figure=lambda point: point.central, limit=epsilon))
        point = self.fitting(_rounded(least if solution is None else solution.value, math.floor))
        return point if point.central.upper <= epsilon else self.fitting(least)

    def fitting(self, epsilon: float) -> Point:
        """Return the sum with this epsilon, with enough levels or, if fewer, the most levels that the bits allow."""
        levels, bits = self._noise.levels(epsilon, self._n), self._specification.targets.bits
        if bits is not None:
            fitting = solve(
                _levels(lambda number: self._built(epsilon, number), easiest=2, hardest=levels),
                Requirement(excess=lambda protocol: protocol.bits_per_person - bits),
            )
            levels = levels if fitting is None else int(fitting.value)
        return self.point(self._built(epsilon, levels))

    def accurate(self, wanted: float) -> Point | None:
        """Return the sum with the smallest epsilon whose standard error is at most `wanted`; None if there is none."""
        least = self._least(wanted, LARGEST)
        point = None if least is None else self.fitting(least)
        if point is None or point.standard_error <= wanted:
            return point
        assert point.protocol.levels is not None
        more = self._least(wanted, point.protocol.levels)  # these levels also fit the bits at a larger epsilon
        return None if more is None else self.fitting(more)

    def _least(self, wanted: float, most: int) -> float | None:
        """Return the smallest epsilon, rounded up, that meets `wanted` with `most` levels; None if there is none."""

        def error(epsilon: float) -> float:
            return self._noise.error(epsilon, min(self._noise.levels(epsilon, self._n), most), self._n)

        fine = _HAIR / 10
        noise = Parameter(name="epsilon", apply=error, easiest=LARGEST_EPSILON, hardest=_LEAST, resolution=fine)
        solution = solve(noise, Requirement(excess=lambda error: log_excess(error, wanted)))
        if solution is None or solution.value == _LEAST:
            return None if solution is None else _LEAST
        return min(_rounded(solution.value * (1 - _HAIR), math.ceil), LARGEST_EPSILON)

    def people(self, epsilon: float, wanted: float) -> int | None:
        """Return the number of people needed for error `wanted` at this epsilon; None if above 10**9."""

        def beyond(n: int) -> float:
            many = max(n, 2)
            return self._noise.error(epsilon, self._noise.levels(epsilon, many), many) / wanted - 1

        solution = solve(number_of_people(self._n, lambda n: n), Requirement(excess=beyond))
        return None if solution is None else int(solution.value)

    def fewest_people(self, wanted: float) -> int | None:
        """Return the fewest people with whom the mean of the sum as written has this error; None if above 10**9.

        With more people the error is smaller.
        """
        epsilon, levels = self._specification.sum.epsilon, self._levels
        solution = solve(
            number_of_people(self._n, lambda n: max(n, 2)),
            Requirement(excess=lambda n: log_excess(self._noise.error(epsilon, levels, n), wanted)),
        )
        return None if solution is None else max(int(solution.value), 2)

    def _built(self, epsilon: float, levels: int) -> SplitAndMix:
        return self._specification.altered(
            epsilon=epsilon, delta=self._delta / self._specification.times, levels=levels
        ).build(self._n)
