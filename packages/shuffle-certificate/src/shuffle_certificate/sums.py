"""Bounds on sums of independent scores in ball arithmetic, for all checks.

V = S + Z, where S is a sum of independent scores and Z an independent normal number of standard deviation tau. With
w = t + iu, t > 0, and nodes u = 2 pi m/L, the trapezoidal rule for (1/2 pi) integral E e**(wV)/w**2 du gives exactly

    sum over all integers m of e**(t m L) E[V - m L]_+ ,

and all terms are positive. With 1/w in place of 1/w**2, it gives the same sum with P(V > m L). E[S]_+ <= E[V]_+, since
[.]_+ is convex. Every number is a ball that contains the true number; floats only choose t, L and tau, and any choice
of these is valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flint import acb, arb

Float = Callable[[float], float]

_CUT = 6.5
"""The quadrature ends at the node where the transform of the normal variable is e**(-21)."""

_ALIASES = 45.0
"""Aliasing terms are about e**-45 times the computed quantity."""

_MOST = 600_000
"""Largest number of quadrature nodes."""

_FRESH = 48
"""This number of consecutive nodes is computed recursively, each from the node before."""

_FARTHEST = 700.0
"""Largest exponent whose exponential a float can represent."""


@dataclass(frozen=True)
class Scores:
    """Scores `x` with probabilities `p`, all of them balls; the probabilities need not sum to 1."""

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
        """Return approximately the variance of a score under its distribution tilted by t."""
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
    """Nodes w = t + i h m, m = 0 .. count - 1, and the standard deviation tau of the normal number Z."""

    t: float
    h: float
    tau: float
    count: int

    @classmethod
    def of(cls, t: float, log_mean: float, spread: float, fineness: float) -> Grid:
        """Return the nodes for a sum with standard deviation `spread` (when tilted by t); tau = 1/(t fineness).

        Raises:
            OverflowError: too many nodes are necessary.
        """
        length = max(16.0 * spread, (_ALIASES + max(-log_mean, 0.0)) / t)
        tau, h = 1 / (t * fineness), 2 * math.pi / length
        count = (_CUT + math.log(fineness) / 3) / (tau * h)
        if not count < _MOST:
            message = f"more than {_MOST:,} nodes"
            raise OverflowError(message)
        return cls(t=t, h=h, tau=tau, count=math.ceil(count) + 1)

    def normal(self, m: int) -> tuple[Any, Any]:
        """Return w at node m, and the transform of the normal number Z at this node."""
        w = acb(self.t, arb(self.h) * m)
        return w, (w * w * arb(self.tau) ** 2 / 2).exp()

    @property
    def beyond(self) -> Any:
        """Return a bound on the transform of Z beyond the last node, and u at the last node."""
        last = arb(self.h) * (self.count - 1)
        return ((arb(self.t) ** 2 - last**2) * arb(self.tau) ** 2 / 2).exp(), last

    @property
    def length(self) -> Any:
        """The period L: the distance between aliases."""
        return 2 * arb.pi() / arb(self.h)


def positive_part(value: Callable[[int], Any], at_start: Any, grid: Grid) -> Any:
    """Return a ball whose upper bound is at least E[S]_+.

    `value(m)` returns E e**(wS) at node m, and is called in order; `at_start` is an upper bound on its value at m = 0.
    """
    total = acb(0)
    for m in range(grid.count):
        w, normal = grid.normal(m)
        term = value(m) * normal / (w * w)
        total += term / 2 if m == 0 else term
    size, last = grid.beyond
    return total.real * arb(grid.h) / arb.pi() + (at_start * size / last / arb.pi()).abs_upper()


def moduli(values: Callable[[int], Sequence[Any]], at_start: Sequence[Any], grid: Grid) -> list[Any]:
    """Return upper bounds on E[S]_+ for several sums S, from the moduli of their transforms.

    At every node the logarithm of a modulus is linear in the numbers of scores of each distribution, so it is largest
    if all scores have the same distribution."""
    totals = [arb(0) for _ in at_start]
    for m in range(grid.count):
        w, normal = grid.normal(m)
        weight = abs(normal) / abs(w) ** 2 / (2 if m == 0 else 1)
        totals = [total + value * weight for total, value in zip(totals, values(m), strict=True)]
    size, last = grid.beyond
    scale, rest = arb(grid.h) / arb.pi(), size / last / arb.pi()
    return [total * scale + start * rest for total, start in zip(totals, at_start, strict=True)]


def exceeds(value: Callable[[int], Any], at_start: Any, above: tuple[float, Any], grid: Grid) -> Any:
    """Return a ball whose lower bound is at most P(V > 0) - c Q(V > 0).

    `value(m)` returns E_P e**(wS) - c E_Q e**(wS) at node m. `at_start` is an upper bound on E_P e**(wS) +
    c E_Q e**(wS) at m = 0. `above` is a tilt s > t with an upper bound on E_P e**(sS).
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
    """Return approximately the minimizer of `function` between two positive numbers, by ternary search on a log scale.

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
