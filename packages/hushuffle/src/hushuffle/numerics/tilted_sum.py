"""Sums of independent steps in {-1, 0, 1}: point probabilities and tails at any n, with certified error.

X is a sum of independent steps in {-1, 0, 1}, in a few groups with equal distributions. Tilting by r = e**t
(probabilities times r**x) moves the mean of X to the requested tail. The trapezoidal rule on a circle of N nodes gives
the tilted distribution from its characteristic function. That function decays like a Gaussian, so only some hundred
nodes near angle 0 matter, for any number of steps. The errors are bounded:

- nodes left out: the modulus of each factor is a convex function of s = sin(angle/2)**2, so beyond the last node
  used it is at most its larger value there and at s = 1;
- aliasing: the trapezoidal rule adds probabilities a period away, bounded by Bernstein's inequality, and folds the
  tail sum back with weight r**-N;
- rounding: proportional to the number of steps, the angles that matter, and the sum of moduli.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.numerics.binomial import EPS, Floats

_DECAY: Final = 44.0
"""Nodes are used until the Gaussian bound on the characteristic function is below e**-44."""

_LARGEST: Final = 300.0
"""Largest exponent: the error of a larger scale exceeds 1 in any case."""

_REACH: Final = 26.0
"""Nodes per standard deviation of the tilted distribution: aliasing of e**-52 at the smallest tilt."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """`count` independent steps, shape (B,): +1 with probability `plus`, -1 with `minus`, else 0."""

    count: Floats
    plus: float
    minus: float = 0.0

    def tilted(self, tilt: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities of +1 and -1 under the tilt, shapes (B,)."""
        rest = 1 - self.plus - self.minus if self.minus else 1 - self.plus
        up, down = self.plus * np.exp(tilt), self.minus * np.exp(-tilt)
        return up / (rest + up + down), down / (rest + up + down)


@dataclass(frozen=True, kw_only=True, eq=False)
class TiltedSum:
    """The tilted distribution of a sum X of steps, for B cases at once."""

    tilt: Floats
    mean: Floats
    spread: Floats
    log_mass: Floats  # ln E[r**X]
    nodes: Floats  # angles, shape (B, J), or (1, J) if all cases have the same tilt
    size: Floats  # modulus of E_tilted[e**(i angle (X - mean))], with its weight, shape (B, J)
    phase: Floats  # its argument, shape (B, J)
    period: Floats  # N, the nodes on the full circle
    beyond: Floats  # largest modulus among the omitted nodes
    steps: Floats  # number of steps

    @classmethod
    def of(cls, groups: tuple[Steps, ...], tilt: Floats) -> TiltedSum:
        """Return the table of the characteristic function under the tilt > 0, shape (B,)."""
        mean, variance = moments(groups, tilt)
        spread = np.sqrt(variance)
        period = 2 * np.ceil((_REACH * spread + 64) / 2) + 1
        # Similar cases with one tilt share their nodes, so that the functions of an angle are evaluated once.
        alike = tilt.size > 0 and np.ptp(tilt) == 0 and spread.max() <= 2 * spread.min()
        shared = slice(1) if alike else slice(None)
        period = np.full_like(period, period.max()) if alike else period
        half = (period - 1) / 2
        sine = np.sqrt(np.minimum(_DECAY / (2 * np.maximum(variance, 1e-18)), 1.0))
        used = np.minimum(half, np.ceil(np.arcsin(sine) * period / np.pi) + 1)
        index = np.arange(int(used.max()) + 2, dtype=np.float64)
        nodes = np.minimum(2 * np.pi * index / period[shared, None], np.pi)
        sine2 = np.sin(nodes / 2) ** 2
        log_size, phase = np.zeros((tilt.size, index.size)), np.zeros((tilt.size, index.size))
        log_mass, at_pi = np.zeros_like(tilt), np.zeros_like(tilt)
        for steps in groups:
            up, down = (p[:, None] for p in steps.tilted(tilt[shared]))
            drift = up - down
            wide = up + down - drift**2
            inner = np.maximum(-4 * sine2 * wide + 16 * up * down * sine2**2, -1.0)
            with np.errstate(divide="ignore"):
                log_size += _times(steps.count[:, None], 0.5 * np.log1p(inner))
                at_pi += _times(steps.count, 0.5 * np.log1p(np.maximum(16 * up * down - 4 * wide, -1.0))[:, 0])
            turn = np.arctan2(drift * np.sin(nodes), 1 - 2 * (up + down) * sine2) - drift * nodes
            phase += steps.count[:, None] * turn
            growth = steps.plus * np.expm1(tilt) + (steps.minus * np.expm1(-tilt) if steps.minus else 0.0)
            log_mass = log_mass + steps.count * np.log1p(growth)
        next_size = np.take_along_axis(log_size, (used + 1).astype(np.int64)[:, None], axis=1)[:, 0]
        weight = np.where(index == 0, 1.0, 2.0) * (index <= used[:, None]) / period[:, None]
        return cls(
            tilt=tilt,
            mean=mean,
            spread=spread,
            log_mass=log_mass,
            nodes=nodes,
            size=weight * np.exp(log_size),
            phase=phase,
            period=period,
            beyond=np.where(used < half, np.exp(np.maximum(next_size, at_pi)), 0.0),
            steps=sum((steps.count for steps in groups), np.zeros_like(tilt)),
        )

    def difference(self, u: Floats, weights: tuple[float, float], b: float, doubt: float) -> tuple[Floats, Floats]:
        """Return one result of `differences`, at u."""
        return next(self.differences(u, 1, weights, b, doubt))

    def differences(
        self, first: Floats, count: int, weights: tuple[float, float], b: float, doubt: float
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield w0 P(X = u) + w1 P(X = u - 1) - b P(X > u) and a bound on its error, (B,), at `count` values of u.

        u is first, first + 1 and so on. `first` are integers, shape (B,); b >= 0; `doubt` is the absolute error of the
        weights themselves.
        """
        turn = np.exp(-1j * self.nodes)
        ratio = np.exp(-self.tilt[: self.nodes.shape[0], None]) * turn
        kernel = weights[0] + weights[1] / ratio - (b * ratio / (1 - ratio) if b > 0 else 0.0)
        terms = self.size * np.exp(1j * (self.phase - self.nodes * (first - self.mean)[:, None])) * kernel
        step = np.exp(self.tilt) if weights[1] else np.zeros_like(self.tilt)
        largest = abs(weights[0]) + abs(weights[1]) * step + (b / np.expm1(self.tilt) if b > 0 else 0.0)
        angle = np.minimum(10 / np.maximum(self.spread, 1e-9), np.pi)
        slack = EPS * (64 + 4 * count + 8 * self.steps * (angle + self.tilt))
        rounding = slack * np.abs(terms).sum(axis=1) + doubt * (1 + step) * self.size.sum(axis=1)
        for place in range(count):
            u = first + place
            scale = np.exp(np.minimum(self.log_mass - self.tilt * u, _LARGEST))
            away = np.maximum(self.period - np.abs(u - self.mean) - 2, 0.0)
            alias = 2 * np.exp(-(away**2) / (2 * (self.spread**2 + 2 * away / 3 + 1e-9)))
            value = scale * terms.real.sum(axis=1)
            error = scale * (rounding + largest * (self.beyond + alias)) + 2 * b * np.exp(-self.tilt * self.period)
            yield value, error + slack * np.abs(value)
            terms *= turn


def moments(groups: tuple[Steps, ...], tilt: Floats) -> tuple[Floats, Floats]:
    """Return the mean and variance of the sum X under the tilt, shapes (B,)."""
    mean, variance = np.zeros_like(tilt), np.zeros_like(tilt)
    for steps in groups:
        up, down = steps.tilted(tilt)
        mean = mean + steps.count * (up - down)
        variance = variance + steps.count * np.maximum(up + down - (up - down) ** 2, 0.0)
    return mean, variance


def _times(count: Floats, logarithm: Floats) -> Floats:
    """Return count * logarithm; 0 where the count is 0, even if the logarithm is infinite."""
    if np.isfinite(logarithm).all():
        return count * logarithm
    product: Floats = np.where(count > 0, count * np.where(count > 0, logarithm, 0.0), 0.0)
    return product
