"""Axes of charts: their range, their ticks, and which values can be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_MARGIN = 0.05
_ENOUGH = 3


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis with values from `low` to `high`, logarithmic if `log`."""

    low: float
    high: float
    log: bool

    def clip(self, value: float) -> float:
        """Return the value on the axis that is nearest to `value`.

        >>> Scale(low=1.0, high=10.0, log=True).clip(math.inf)
        10.0
        """
        return min(max(value, self.low), self.high)

    def share(self, value: float) -> float:
        """Return the position of `value` on the axis, from 0 at `low` to 1 at `high`.

        >>> Scale(low=1.0, high=100.0, log=True).share(10.0)
        0.5
        """
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Return about `most` round numbers; on a logarithmic axis powers of ten, over few decades also 2 and 5 times.

        >>> Scale(low=90.0, high=11_000.0, log=True).ticks(6), Scale(low=0.0, high=1.0, log=False).ticks(5)
        ([100.0, 1000.0, 10000.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        """
        if not self.log:
            return steps(self.low, self.high, most)
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        decades = math.log10(self.high / self.low)
        every = math.ceil(decades / most)
        # The tick is converted from text, because 10.0 ** -6 is not the float nearest to 1e-6.
        powers = [float(f"1e{power}") for power in range(first, last + 1, every)]
        inside = [power for power in powers if self.low <= power <= self.high]
        for digits in ((2, 5), (3,)) if every == 1 and len(inside) < _ENOUGH else ():
            between = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
            finer = sorted([*inside, *(value for value in between if self.low <= value <= self.high)])
            if 1 < len(finer) <= most:
                return finer
        return inside if len(inside) > 1 else steps(self.low, self.high, most)

    def labelled(self, room: float, character: float, most: int) -> list[float]:
        """Return about `most` ticks whose labels do not overlap; `room` and `character` (width) have the same unit.

        >>> Scale(low=0.0, high=120_000.0, log=False).labelled(300, 8, 6)
        [0.0, 50000.0, 100000.0]
        """
        for count in range(most, 1, -1):
            ticks = self.ticks(count)
            half = [(len(tick(value)) + 1) * character / 2 for value in ticks]
            places = [self.share(value) * room for value in ticks]
            clear = all(
                right - left >= a + b for (left, right), (a, b) in zip(pairwise(places), pairwise(half), strict=True)
            )
            if clear and len(ticks) > 1:
                return ticks
        return self.ticks(1)


def drawable(value: float, *, log: bool) -> bool:
    """Return whether `value` can be drawn: it is finite and, on a logarithmic axis, positive."""
    return math.isfinite(value) and (value > 0 or not log)


def scale(values: Iterable[float], *, log: bool, tight: bool = False) -> Scale | None:
    """Return an axis, None if nothing is drawable; a linear axis starts at 0 if at most half of it stays empty.

    >>> scale([0.25, 1.0, math.inf], log=False, tight=True), scale([0.25, 1.0], log=False)
    (Scale(low=0.25, high=1.0, log=False), Scale(low=0.0, high=1.05, log=False))
    """
    shown = [float(value) for value in values if drawable(value, log=log)]
    if not shown:
        return None
    low, high = min(shown), max(shown)
    if log:
        if low == high:
            return Scale(low=low / 3, high=high * 3, log=True)
        margin = 1.0 if tight else (high / low) ** _MARGIN
        return Scale(low=low / margin, high=high * margin, log=True)
    if 0 < low <= high / 2 and not tight:
        low = 0.0
    if low == high:
        low, high = low - max(abs(low), 1.0) / 2, high + max(abs(high), 1.0) / 2
    margin = 0.0 if tight else (high - low) * _MARGIN
    return Scale(low=low if low == 0 else low - margin, high=high + margin, log=False)


def steps(low: float, high: float, most: int) -> list[float]:
    """Return the round numbers in [low, high], 1, 2 or 5 times a power of ten apart, at most `most` + 1 of them.

    >>> steps(0.0, 1.0, 5), steps(-3.0, 42.0, 5)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 10.0, 20.0, 30.0, 40.0])
    """
    power = math.floor(math.log10((high - low) / most))
    # Dividing by a whole number gives the float nearest to 0.2; multiplying by 10.0 ** -1 does not.
    up, down = 10 ** max(power, 0), 10 ** max(-power, 0)
    step = next(factor for factor in (1, 2, 5, 10) if factor * up / down * most >= (high - low) * (1 - 1e-9))
    every = step * up
    first, last = math.ceil(low * down / every - 1e-9), math.floor(high * down / every + 1e-9)
    return [place * every / down for place in range(first, last + 1)]


def tick(value: float) -> str:
    """Return the label of a tick: a plain number, or for very small and large numbers the form 1e-6, 1e6.

    >>> tick(12_345.5), tick(1e-6), tick(-0.2)
    ('12,345.5', '1e-6', '-0.2')
    """
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return f"{value:,.6g}"
    mantissa, _, power = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(power)}"
