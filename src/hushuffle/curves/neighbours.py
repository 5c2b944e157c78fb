"""Certified lower ends for k-ary randomized response, k >= 3: explicit neighbouring datasets.

Each is the hockey-stick divergence at one dataset, so it lies below the worst one. lambda = mu/nu;
the target's value is a in one dataset and b in the other.

All others at a third value c, with S reports at a or b, R = (reports at a) - (reports at b), C at c:

    (1/n) E [(lambda - 1)(1 + e**eps)/2 R - (e**eps - 1)((lambda - 1) S/2 + n - C (1 - 1/lambda))]_+ .

All others at a, with A and B reports at a and b and ell = 1 + (B (lambda - 1) - A (1 - 1/lambda))/n
the likelihood ratio of "target at b" to "target at a":

    max(E_a [ell - e**eps]_+, E_a [1 - e**eps ell]_+).

Bins are rounded downwards: Jensen's inequality for C (the value is convex in it), ends for S and B.

Source: docs/theory/datasets.md, Corollaries 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.curves.fair_signs import positive_part
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.count_rows import CountRows

_FEW: Final = 400
"""Up to so many people every count at c is a bin of its own."""

_TRACE: Final = 1e-45
"""Cells lighter than this are dropped: a lower end may lose mass."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AllAtThird:
    """All others at a third value: masses and conditional means by (row of S, bin of C)."""

    n: int
    rise: float  # lambda - 1
    signs: Floats
    weight: Floats
    bias: Floats

    @classmethod
    def of(cls, *, n: int, truth: float, lie: float, theta: float | None = None) -> AllAtThird:
        """Tabulate the law of the counts.

        >>> round(AllAtThird.of(n=1, truth=0.5, lie=0.25).lower(0.0), 9)
        0.25
        """
        gap = truth - lie if theta is None else theta
        rise, fall = gap / lie, gap / truth
        rows = CountRows.of(n, 2 * lie)
        mass, mean = _bins(n - rows.last, min(truth / (1 - 2 * lie), 1.0), _cuts(n, truth, lie))
        weight = rows.at_least[:, None] * mass
        bias = rise / 2 * rows.last[:, None] + n - mean * fall
        keep = weight > _TRACE
        signs = np.broadcast_to(rows.first[:, None], weight.shape)
        return cls(n=n, rise=rise, signs=signs[keep], weight=weight[keep], bias=bias[keep])

    def without_traces(self, delta: float) -> AllAtThird:
        """Return the same end without the lightest cells, which lose it at most delta/10**6."""
        order = np.argsort(self.weight)
        keep = np.sort(order[np.cumsum(self.weight[order]) > 1e-6 * delta / (1 + self.rise)])
        return AllAtThird(
            n=self.n, rise=self.rise, signs=self.signs[keep], weight=self.weight[keep], bias=self.bias[keep]
        )

    def lower(self, epsilon: float) -> float:
        """Return a lower end of the divergence at epsilon."""
        slope = self.rise * (1 + float(np.exp(epsilon))) / 2
        threshold = float(np.expm1(epsilon)) * self.bias
        most = slope * self.signs
        value = positive_part(self.signs, slope, threshold, (most - threshold, most + threshold))[0]
        total = float(np.sum(self.weight * value)) / self.n
        return total * (1 - EPS * (64 + self.weight.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class AllAtFirst:
    """All others at the target's own first value: B in `rows`."""

    n: int
    truth: float
    lie: float
    theta: float
    rows: CountRows

    @classmethod
    def of(cls, *, n: int, truth: float, lie: float, theta: float | None = None) -> AllAtFirst:
        """Tabulate the law of B.

        >>> round(AllAtFirst.of(n=1, truth=0.5, lie=0.25).lower(0.0), 9)
        0.25
        """
        gap = truth - lie if theta is None else theta
        return cls(n=n, truth=truth, lie=lie, theta=gap, rows=CountRows.of(n, lie))

    def lower(self, epsilon: float) -> float:
        """Return a lower end of the divergence at epsilon, the better of both directions."""
        growth, excess = float(np.exp(epsilon)), float(np.expm1(epsilon))
        chance, slope = min(self.truth / (1 - self.lie), 1.0), self.theta / self.truth / self.n
        lift, first, last = self.theta / self.lie / self.n, self.rows.first, self.rows.last
        toward = _positive_mean(self.n - first, chance, slope=-slope, offset=first * lift - excess)
        away = _positive_mean(self.n - last, chance, slope=growth * slope, offset=-excess - growth * lift * last)
        weight = self.rows.at_least
        best = max(float(np.sum(weight * toward)), float(np.sum(weight * away)))
        return best * (1 - EPS * (64 + weight.size))


def _positive_mean(trials: Floats, chance: float, *, slope: float, offset: Floats) -> Floats:
    """Return a lower end of E[offset + slope A]_+, A ~ Bin(trials, chance), shape of `trials`."""
    mean = trials * chance
    if slope > 0:
        start = np.floor(-offset / slope) + 1
        tail = binomial.upper_tail(start, trials, chance)
        edge = np.maximum(start, 0.0) * (1 - chance) * binomial.pmf(start, trials, chance)
    else:
        stop = np.ceil(offset / -slope) - 1
        tail = binomial.lower_tail(stop, trials, chance)
        edge = -(trials - stop) * chance * binomial.pmf(stop, trials, chance)
    # E[A - mean; A in the set] is `edge`, by summation by parts.
    drift, swing = (offset + slope * mean) * tail, slope * edge
    rounding = (binomial.margin(float(np.max(trials, initial=1.0))) + 16 * EPS) * (np.abs(drift) + np.abs(swing))
    spilled = 16 * EPS * (np.abs(offset) + abs(slope) * mean) * tail
    rounded_down: Floats = np.maximum(drift + swing - rounding - spilled, 0.0)
    return rounded_down


def _cuts(n: int, truth: float, lie: float) -> Floats:
    """Return where bins of C end, in standard deviations: C matters less the smaller epsilon will be."""
    size = 8 * (truth - lie) / np.sqrt(2 * lie * n + 1)
    spacing = min(3.0, max(0.35, 0.07 / size))
    return np.concatenate([[-14.0, -11.0, -9.0, -7.5], np.arange(-6.5, 6.6, spacing), [9.0]])


def _bins(trials: Floats, chance: float, deviations: Floats) -> tuple[Floats, Floats]:
    """Return mass and mean, both rounded down, of Bin(trials, chance) in the bins between cuts, both (rows, bins)."""
    mean = (trials * chance)[:, None]
    if float(trials.max()) <= _FEW:
        inner = np.broadcast_to(np.arange(trials.max()), (trials.size, int(trials.max())))
    else:
        spread = np.sqrt(np.maximum(trials * chance * (1 - chance), 0.0))[:, None]
        inner = np.floor(mean + deviations * spread)
    inner = np.clip(inner, -1.0, trials[:, None])
    cuts = np.hstack([np.full_like(mean, -1.0), inner, trials[:, None]])
    below = binomial.lower_tail(cuts, trials[:, None], chance)
    # E[Bin - mean; Bin <= x] = -(trials - x) chance P(Bin = x)
    lever = np.where(cuts < 0, 0.0, (trials[:, None] - cuts) * chance * binomial.pmf(cuts, trials[:, None], chance))
    noise = binomial.margin(float(np.max(trials, initial=1.0)))
    mass = np.diff(below, axis=1)
    doubt = noise * (below[:, 1:] + below[:, :-1])
    safe = np.where(mass > 4 * doubt, mass, 1.0)
    shift = (lever[:, :-1] - lever[:, 1:] - noise * (lever[:, :-1] + lever[:, 1:])) / safe
    shift = shift - np.abs(shift) * doubt / safe
    point = np.clip(mean + shift - 8 * EPS * mean, np.maximum(cuts[:, :-1] + 1, 0.0), cuts[:, 1:].clip(min=0.0))
    return np.where(mass > 4 * doubt, mass - doubt, 0.0), point
