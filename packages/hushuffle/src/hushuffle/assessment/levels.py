"""Compute the number of levels for rounded numbers that gives the most accurate mean under a central guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hushuffle import _checks
from hushuffle.estimation.numbers import mean_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RoundedResponse
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.questions import dp

LADDER: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclass(frozen=True, kw_only=True)
class BestLevels:
    """The most accurate `protocol` of all protocols that were tried, and the worst-case standard error of its mean.

    `tried` maps each tried number of levels to the standard error. Every tried protocol has the largest local epsilon
    whose certified central epsilon is at most the requested central epsilon.
    """

    protocol: Protocol
    error: float
    tried: Mapping[int, float]

    @property
    def levels(self) -> int:
        """Number of levels."""
        return self.protocol.randomizer.inputs


def best_levels(*, n: int, epsilon: float, delta: float, low: float = 0.0, high: float = 1.0) -> BestLevels:
    """Return the number of levels and the local epsilon that give the most accurate mean at this central epsilon.

    Few levels are coarse: stochastic rounding adds a variance of up to a quarter of a squared step. With many levels,
    fewer reports are truthful. The best number of levels grows about as (n epsilon**2)**(1/3) (Balle, Bell, Gascon,
    Nissim 2019). Errors are standard errors of the mean for the worst numbers, and the guarantee is certified. The
    search tries widely spaced numbers of levels, then those between the best and its neighbours. The result is optimal
    if the error first falls and then rises with the number of levels; this is assumed, not proven.

    Args:
        n: number of people.
        epsilon: central epsilon in nats.
        delta: the delta of the guarantee, in (0, 1).
        low: the smallest number; public.
        high: the largest number; public.

    Raises:
        InvalidInputError: an argument is out of range, or no local epsilon meets `epsilon`.

    Source: docs/theory/numbers.md, Theorem 4.

    >>> import hushuffle as hs
    >>> best = hs.best_levels(n=100, epsilon=1.0, delta=1e-3)
    >>> best.levels, round(best.error, 4), round(best.protocol.randomizer.local_epsilon, 2)
    (3, 0.0436, 2.27)
    """
    people = _checks.integer("n", n, low=2)
    protocols: dict[int, Protocol] = {}

    def error(levels: int) -> float:
        response = RoundedResponse(levels=levels, epsilon=1.0, low=low, high=high)
        start = Protocol(randomizer=response, shuffler=UniformShuffle(), n=people)
        calibrated = dp.calibrate(start, parameter="epsilon", epsilon=epsilon, delta=delta).protocol
        protocols[levels] = calibrated
        return mean_error(calibrated, grid=response.grid)

    errors = tried_levels(error)
    best = min(errors, key=lambda levels: errors[levels])
    return BestLevels(protocol=protocols[best], error=errors[best], tried=errors)


def tried_levels(error: Callable[[int], float], *, most: int = LADDER[-1]) -> dict[int, float]:
    """Return the error for each number of levels, up to `most`, that a search for the smallest error tries.

    The search tries widely spaced numbers of levels, then those between the best and its neighbours. The result has the
    best number if the error first falls and then rises with the number of levels.

    >>> errors = tried_levels(lambda levels: (levels - 11) ** 2)
    >>> min(errors, key=errors.get), len(errors)
    (11, 11)
    """
    tried: dict[int, float] = {}

    def of(levels: int) -> float:
        if levels not in tried:
            tried[levels] = error(levels)
        return tried[levels]

    ladder = [levels for levels in LADDER if levels <= most]
    for place, levels in enumerate(ladder):
        if place > 1 and of(levels) > of(ladder[place - 1]) > of(ladder[place - 2]):
            break
    best = min(tried, key=lambda levels: tried[levels])
    below = max((levels for levels in tried if levels < best), default=best)
    above = min((levels for levels in tried if levels > best), default=best)
    while above - below > 2:
        middle = (below + best) // 2 if best - below > above - best else (best + above) // 2
        if middle in (below, best):
            middle = best + 1 if above - best > 1 else best - 1
        if of(middle) < of(best):
            below, above, best = (best, above, middle) if middle > best else (below, best, middle)
        elif middle > best:
            above = middle
        else:
            below = middle
    return {levels: tried[levels] for levels in sorted(tried)}
