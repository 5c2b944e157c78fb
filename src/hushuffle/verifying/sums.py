"""Sums of independent scores in ball arithmetic, on which every check rests.

V = S + Z, S a sum of independent scores, Z an independent normal number of standard deviation tau. With w = t + iu,
t > 0, and nodes u = 2 pi m/L, the trapezoidal rule for (1/2 pi) integral E e**(wV)/w**2 du gives exactly

    sum over all integers m of e**(t m L) E[V - m L]_+ ,

all of whose terms are positive; with 1/w in place of 1/w**2 the same with P(V > m L). And E[S]_+ <= E[V]_+ since [.]_+
is convex. Every number here is a ball that holds the true one; floats only choose t, L and tau,
for which any values are valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flint import acb, arb

Float = Callable[[float], float]

_CUT = 6.5
"""Nodes end where the transform of the normal variable is e**(-21)."""

_ALIASES = 45.0
"""Aliasing terms are about e**-45 relative to the wanted quantity."""

_MOST = 600_000
"""Largest number of nodes that are evaluated."""

_FRESH = 48
"""This many consecutive nodes are each computed from the node before."""

_FARTHEST = 700.0
"""Largest exponent whose exponential a float can represent."""


@dataclass(frozen=True)
class Scores:
    """Scores `x` with masses `p`, both balls; the masses need not sum to 1."""

    x: Sequence[Any]
    p: Sequence[Any]

    def log_mean(self, t: float, *, whole: bool = True) -> float:
        """Return approximately ln E e**(t x); infinity if it is too large for floats."""
        try:
            grown = [
                (float(p), math.expm1(t * float(x)) if whole else math.exp(t * float(x)))
                for x, p in zip(self.x, self.p, strict=True)
            ]
            total = math.fsum(p * g for p, g in grown)
            return math.log1p(total) if whole else math.log(total)
        except (OverflowError, ValueError):
            return math.inf

    def variance(self, t: float) -> float:
        """Return approximately the variance of the score under the distribution tilted by t."""
        weights = [float(p) * math.exp(min(t * float(x), _FARTHEST)) for x, p in zip(self.x, self.p, strict=True)]
        whole = math.fsum(weights)
        mean = math.fsum(w * float(x) for w, x in zip(weights, self.x, strict=True)) / whole
        return math.fsum(w * (float(x) - mean) ** 2 for w, x in zip(weights, self.x, strict=True)) / whole


class Transform:
    """The transform E e**(wx) of some scores at the nodes w = t + i h m, m = 0, 1, ..., computed in sequence."""

    def __init__(self, scores: Scores, t: float, h: float) -> None:
        live = [(x, p) for x, p in zip(scores.x, scores.p, strict=True) if not p.is_zero()]
        self._starts = [((arb(t) * x).exp() * p, arb(h) * x) for x, p in live]
        self._turns = [acb(0, angle).exp() for _, angle in self._starts]
        self._terms: list[Any] = []
        self._node = 0

    def here(self) -> Any:
        """Return the value at this node, and move to the next node."""
        if self._node % _FRESH:
            self._terms = [term * turn for term, turn in zip(self._terms, self._turns, strict=True)]
        else:  # a rotated ball grows by a factor of up to the square root of 2
            self._terms = [acb(0, angle * self._node).exp() * size for size, angle in self._starts]
        self._node += 1
        return sum(self._terms, acb(0))


@dataclass(frozen=True)
class Grid:
    """Nodes t + i h m, m = 0 .. count - 1, and the standard deviation tau of the normal variable."""

    t: float
    h: float
    tau: float
    count: int

    @classmethod
    def of(cls, t: float, log_mean: float, spread: float, fineness: float) -> Grid:
        """Return the nodes for a sum of this spread (under the tilted distribution); tau = 1/(t fineness).

        Raises:
            OverflowError: there are too many.
        """
        length = max(16.0 * spread, (_ALIASES + max(-log_mean, 0.0)) / t)
        tau, h = 1 / (t * fineness), 2 * math.pi / length
        count = (_CUT + math.log(fineness) / 3) / (tau * h)
        if not count < _MOST:
            message = f"more than {_MOST:,} nodes"
            raise OverflowError(message)
        return cls(t=t, h=h, tau=tau, count=math.ceil(count) + 1)

    def normal(self, m: int) -> tuple[Any, Any]:
        """Return w at node m, and the transform of the normal variable there."""
        w = acb(self.t, arb(self.h) * m)
        return w, (w * w * arb(self.tau) ** 2 / 2).exp()

    @property
    def beyond(self) -> Any:
        """Return a bound on the transform of the normal variable beyond the last node, and u at that node."""
        last = arb(self.h) * (self.count - 1)
        return ((arb(self.t) ** 2 - last**2) * arb(self.tau) ** 2 / 2).exp(), last

    @property
    def length(self) -> Any:
        """The period L: the distance between aliases."""
        return 2 * arb.pi() / arb(self.h)


def positive_part(value: Callable[[int], Any], at_start: Any, grid: Grid) -> Any:
    """Return a ball with a number >= E[S]_+; use its upper bound.

    `value(m)` is E e**(wS) at node m, asked for in order, `at_start` the same at m = 0, or more.
    """
    total = acb(0)
    for m in range(grid.count):
        w, normal = grid.normal(m)
        term = value(m) * normal / (w * w)
        total += term / 2 if m == 0 else term
    size, last = grid.beyond
    return total.real * arb(grid.h) / arb.pi() + (at_start * size / last / arb.pi()).abs_upper()


def moduli(values: Callable[[int], Sequence[Any]], at_start: Sequence[Any], grid: Grid) -> list[Any]:
    """Return upper bounds on E[S]_+ for several sums at once, with moduli in place of transforms.

    At every node a modulus is log-linear in the numbers of scores of each distribution, so it is largest if all
    scores have the same distribution."""
    totals = [arb(0) for _ in at_start]
    for m in range(grid.count):
        w, normal = grid.normal(m)
        weight = abs(normal) / abs(w) ** 2 / (2 if m == 0 else 1)
        totals = [total + value * weight for total, value in zip(totals, values(m), strict=True)]
    size, last = grid.beyond
    scale, rest = arb(grid.h) / arb.pi(), size / last / arb.pi()
    return [total * scale + start * rest for total, start in zip(totals, at_start, strict=True)]


def exceeds(value: Callable[[int], Any], at_start: Any, above: tuple[float, Any], grid: Grid) -> Any:
    """Return a ball with a number <= P(V > 0) - c Q(V > 0); use its lower bound.

    `value(m)` is E_P e**(wS) - c E_Q e**(wS) at node m, `at_start` the sum of both at m = 0, or more; `above` is a
    tilt s > t and E_P e**(sS) there, or more.
    """
    total = acb(0)
    for m in range(grid.count):
        w, normal = grid.normal(m)
        term = value(m) * normal / w
        total += term / 2 if m == 0 else term
    size, last = grid.beyond
    left_out = at_start * size / (arb(grid.tau) * last) ** 2 / arb.pi()
    s, mean = above
    q = (-(arb(s) - arb(grid.t)) * grid.length).exp()
    r = (-arb(grid.t) * grid.length).exp()
    folded = mean * (arb(s) ** 2 * arb(grid.tau) ** 2 / 2).exp() * q / (1 - q) + r / (1 - r)
    return total.real * arb(grid.h) / arb.pi() - left_out.abs_upper() - folded.abs_upper()


def least(function: Float, low: float, high: float) -> float:
    """Return approximately the minimizer of a function of t between two positive numbers, by ternary search in ln t.

    >>> round(least(lambda t: (t - 2) ** 2, 0.1, 50.0), 4)
    2.0
    """
    a, b = math.log(low), math.log(high)
    for _ in range(90):
        left, right = a + (b - a) / 3, b - (b - a) / 3
        first, second = function(math.exp(left)), function(math.exp(right))
        if first <= second:
            b = right
        else:
            a = left
    return math.exp((a + b) / 2)
