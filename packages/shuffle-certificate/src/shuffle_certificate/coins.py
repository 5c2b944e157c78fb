"""Two values: the exact divergence for any given numbers of other people with each value.

X, the number of ones in the reports of the other people and the dummies, is a sum of independent Bernoulli trials. With
A = mu - e**epsilon nu and B = e**epsilon - 1, the divergence is the maximum over u of A P(X = u) - B P(X > u). The best
u is a mode of the distribution tilted by (A + B)/A, so it differs by at most 1 from its mean (Darroch 1964).

Source: docs/theory/two-values.md, Theorem 1, Lemmas 2 and 3, Theorem 4.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from flint import acb, arb, arb_poly

from .composed import Effort
from .ends import FAINT, ball, masses_of

MOST = 4000
"""Largest number of compositions of the other people that are evaluated."""

_FAINT = 1e-14
"""Share of delta that may be lost with faint masses in a table."""

BLOCKS = 1000
"""Largest number of ranges of compositions in a table."""

Coins = Sequence[tuple[int, Fraction]]
"""Number of Bernoulli trials for each success probability."""


def largest(people: int, at: Callable[[int, int], Any], level: Any | None) -> Any:
    """Return a ball with a number >= the divergence for each composition of `people`, given their ones and zeros.

    `at` returns the divergence, which falls with either number: at the fewest ones and zeros of a range of compositions
    it bounds all of them. The range of the largest bound is halved, until all bounds are at most `level`.
    """
    ranges = [(0.0, 0, people, at(0, 0))]
    for _ in range(MOST // 2):
        _, low, high, bound = heapq.heappop(ranges)
        if low == high or (level is not None and bound <= level):
            break
        middle = (low + high) // 2
        for first, last in ((low, middle), (middle + 1, high)):
            value = at(first, people - last)
            heapq.heappush(ranges, (-float(value.upper()), first, last, value))
    for *_, other in ranges:
        bound = arb.max(bound, other)
    return bound


def divergence(coins: Coins, truth: Fraction, growth: Any) -> Any:
    """Return a ball that contains the divergence of the releases for the target's values 1 and 0."""
    coins = [(count, chance) for count, chance in coins if count]
    up, price = ball(truth) - growth * ball(1 - truth), growth - 1
    if up.upper() <= 0:
        return arb(0)
    r = (up + price) / up
    tilted = [(count, r * ball(chance) / (1 + (r - 1) * ball(chance))) for count, chance in coins]
    grown = arb(1)
    for count, chance in coins:
        grown *= (1 + (r - 1) * ball(chance)) ** count
    mean = sum((count * chance for count, chance in tilted), arb(0))
    total = sum(count for count, _ in coins)
    middle = int(float(mean))
    places = [u for u in range(middle - 1, middle + 3) if 0 <= u <= total]
    addends = [grown * r ** (-u) * each for u, each in zip(places, _inner(tilted, r, up, price, places), strict=True)]
    best = arb(0)
    for each in addends:
        best = arb.max(best, each)
    return best


def _inner(tilted: Sequence[tuple[int, Any]], r: Any, up: Any, price: Any, places: list[int]) -> list[Any]:
    """Return up f(u) - price sum over j >= 1 of r**-j f(u + j) for each u, where f is the tilted distribution."""
    total = sum(count for count, _ in tilted)
    variance = math.fsum(count * float(p) * (1 - float(p)) for count, p in tilted)
    size, outside = total + 1, arb(0)
    reach = int(10 * math.sqrt(variance) + 60)
    if 2 * reach < total:
        size, outside = 2 * reach, _outside(tilted, reach - 4, variance)
    steps = [total - u if size == total + 1 else size // 2 for u in places]
    sums = [arb(0) for _ in places]
    least = arb(1)
    for m in range(size // 2 + 1):
        angle = 2 * arb.pi() * m / size
        turn = acb(0, angle).exp()
        value = acb(1)
        for count, p in tilted:
            value *= (1 - p + p * turn) ** count
        least = abs(value)
        if float(least.upper()) < 1e-24:
            break
        q, value = 1 / (turn * r), value * (1 if m == 0 or 2 * m == size else 2) / size
        fall = price * q / (1 - q) if price.lower() > 0 else acb(0)
        for place, u in enumerate(places):
            sums[place] += (value * turn ** (-u) * (up - fall * (1 - q ** steps[place]))).real
    else:
        least = arb(0)
    doubt = (3 * up * least + (up + price) * outside * 2).abs_upper()
    return [each + arb(0, doubt) for each in sums]


def _outside(tilted: Sequence[tuple[int, Any]], reach: int, variance: float) -> Any:
    """Return Chernoff's bound on the probability that the sum differs from its mean by more than `reach`."""
    mean = sum((count * p for count, p in tilted), arb(0))
    bound = arb(0)
    for side in (1, -1):
        s = side * min(reach / (variance + reach), 1.0)
        grown = arb(1)
        for count, p in tilted:
            grown *= (1 + p * (arb(s).exp() - 1)) ** count
        bound += grown * (-arb(s) * (mean + side * reach)).exp()
    return bound


def tabulated(
    people: int, dummies: int, chances: tuple[Fraction, Fraction], growths: Sequence[Any], effort: Effort
) -> list[Any]:
    """Return for each e**epsilon a number >= the divergence for each composition of `people`.

    The target's bit is 1 with the first of two `chances` in the first dataset, with the second one in the second. The
    people's values are divided into at most `BLOCKS` ranges of compositions; within a range, the reports of the people
    whose values vary are left out.
    """
    truth, lie = chances
    steps = [(ball(truth) - growth * ball(lie), growth - 1) for growth in growths]
    best = [arb(0) for _ in growths]
    width, faint = -(-(people + 1) // BLOCKS), float(effort.delta) * _FAINT / (people + dummies + 4)
    for ones in range(0, people + 1, width):
        effort.check("a table of the sums of two values' bits")
        zeros = max(people - ones - width + 1, 0)
        groups = [(ones, truth), (zeros, lie), (dummies, Fraction(1, 2))]
        first, masses = sum_of(groups, faint)
        above = [arb(0), *accumulate(reversed(masses))][::-1][1:]
        parts = [(count, float(p)) for count, p in groups]
        for place, (up, price) in enumerate(steps):
            if not up.upper() > 0:
                continue
            odds = 1 + float(price) / max(float(up), 1e-300)
            middle = math.fsum(count * odds * p / (1 + (odds - 1) * p) for count, p in parts) if odds < 1e300 else 1e300
            start = min(int(middle) - 1 - first, len(masses) - 1)
            for u in range(max(start, 0), min(start + 4, len(masses))):
                best[place] = arb.max(best[place], up * masses[u] - price * above[u])
    lost = arb(faint) * (people + dummies + 4)
    return [value + arb.max(up, arb(0)) * lost for value, (up, _) in zip(best, steps, strict=True)]


def sum_of(groups: Coins, faint: float = FAINT) -> tuple[int, list[Any]]:
    """Return the first count of a sum of independent Bernoulli trials that is not faint, and the masses from it on.

    The masses that are left out add up to at most `faint` for each trial, and four times more.
    """
    first, product = 0, arb_poly([1])
    for count, chance in groups:
        start, masses = masses_of(count, chance, faint)
        first, product = first + start, product * arb_poly(masses)
    return first, product.coeffs()
