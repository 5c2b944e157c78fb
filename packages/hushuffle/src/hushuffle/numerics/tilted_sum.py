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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.exact import exponential, turn_parts

_DECAY: Final = 44.0
"""Nodes are used until the Gaussian bound on the characteristic function is below e**-44."""

_LARGEST: Final = 300.0
"""Largest exponent: the error of a larger scale exceeds 1 in any case."""

_REACH: Final = 26.0
"""Nodes per standard deviation of the tilted distribution: aliasing of e**-52 at the smallest tilt."""


_FAINT: Final = -1e4
"""Logarithm of a modulus in place of -infinity."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """`count` independent steps, shape (R, M): +1 with probability `plus`, -1 with `minus`, else 0."""

    count: Floats
    plus: float
    minus: float = 0.0

    def tilted(self, tilt: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities of +1 and -1 under the tilt, in its shape."""
        rest = 1 - self.plus - self.minus if self.minus else 1 - self.plus
        up, down = self.plus * np.exp(tilt), self.minus * np.exp(-tilt)
        return up / (rest + up + down), down / (rest + up + down)


@dataclass(frozen=True, kw_only=True, eq=False)
class TiltedSum:
    """The tilted distribution of a sum X of steps, for R rows of M cases; the cases of a row have one tilt and nodes.

    Arrays whose shape is not stated have shape (R, M).
    """

    tilt: Floats  # shape (R, 1)
    mean: Floats
    spread: Floats
    log_mass: Floats  # ln E[r**X]
    nodes: Floats  # angles, shape (R, J)
    size: Floats  # modulus of E_tilted[e**(i angle (X - mean))], with its weight, shape (R, M, J)
    phase: Floats  # its argument, shape (R, M, J)
    period: Floats  # N, the nodes on the full circle, shape (R, 1)
    beyond: Floats  # largest modulus among the omitted nodes
    steps: Floats  # number of steps

    @classmethod
    def of(cls, groups: Sequence[Steps], tilt: Floats) -> TiltedSum:
        """Return the table of the characteristic function under the tilt > 0, shape (R, 1)."""
        mean, variance = moments(groups, tilt)
        spread, least = np.sqrt(variance), variance.min(axis=1, keepdims=True)
        period = 2 * np.ceil((_REACH * spread.max(axis=1, keepdims=True) + 64) / 2) + 1
        half = (period - 1) / 2
        sine = np.sqrt(np.minimum(_DECAY / (2 * np.maximum(least, 1e-18)), 1.0))
        used = np.minimum(half, np.ceil(np.arcsin(sine) * period / np.pi) + 1)
        index = np.arange(int(used.max()) + 2, dtype=np.float64)
        nodes = np.minimum(2 * np.pi * index / period, np.pi)
        away, sines = turn_parts(nodes)
        sine2 = away / 2
        logs, turns, growths = [], [], []
        for steps in groups:
            up, down = steps.tilted(tilt)
            drift = up - down
            wide = up + down - drift**2
            inner = np.hstack([16 * up * down * sine2**2 - 4 * sine2 * wide, 16 * up * down - 4 * wide])
            with np.errstate(divide="ignore"):
                logs.append(np.maximum(0.5 * np.log1p(np.maximum(inner, -1.0)), _FAINT))
            turns.append(np.arctan2(drift * sines, 1 - 2 * (up + down) * sine2) - drift * nodes)
            growths.append(steps.plus * np.expm1(tilt) + (steps.minus * np.expm1(-tilt) if steps.minus else 0.0))
        counts = np.stack([steps.count for steps in groups], axis=-1)
        log_size = counts @ np.stack(logs, axis=1)
        last = log_size[np.arange(tilt.size), :, (used[:, 0] + 1).astype(np.int64)]
        weight = np.where(index == 0, 1.0, 2.0) * (index <= used) / period
        return cls(
            tilt=tilt,
            mean=mean,
            spread=spread,
            log_mass=(counts @ np.log1p(np.stack(growths, axis=1)))[..., 0],
            nodes=nodes,
            size=weight[:, None] * np.exp(log_size[..., :-1]),
            phase=counts @ np.stack(turns, axis=1),
            period=period,
            beyond=np.where(used < half, np.exp(np.maximum(last, log_size[..., -1])), 0.0),
            steps=counts.sum(axis=-1),
        )

    def differences(
        self, first: Floats, count: int, weights: tuple[Floats | float, float], b: Floats | float, doubt: Floats | float
    ) -> tuple[Floats, Floats]:
        """Return w0 P(X = u) + w1 P(X = u - 1) - b P(X > u) and bounds on the errors, shape (R, M, count).

        u is first, first + 1 and so on. `first` are integers, shape (R, M); b >= 0; `doubt` is the absolute error of
        the weights. w0, b and `doubt` are numbers, or have shape (R, 1).
        """
        places, tilt, period = np.arange(count), self.tilt[..., None], self.period[..., None]
        mean, spread = self.mean[..., None], self.spread[..., None]
        turn = exponential(0.0, -self.nodes)
        ratio = np.exp(-self.tilt) * turn
        kernel = weights[0] + weights[1] / ratio - b * (ratio / (1 - ratio))
        kernels = kernel[..., None] * turn[..., None] ** places
        away, sine = turn_parts(self.phase - self.nodes[:, None] * (first[..., None] - mean))
        value = (self.size * (1 - away)) @ kernels.real - (self.size * sine) @ kernels.imag
        step = np.exp(self.tilt) if weights[1] else np.zeros_like(self.tilt)
        largest = np.abs(weights[0]) + abs(weights[1]) * step + b / np.expm1(self.tilt)
        angle = np.minimum(10 / np.maximum(self.spread, 1e-9), np.pi)
        slack = EPS * (64 + 4 * count + 8 * self.steps * (angle + self.tilt))
        rounding = slack * (self.size @ np.abs(kernel)[..., None])[..., 0] + doubt * (1 + step) * self.size.sum(axis=-1)
        u = first[..., None] + places
        scale = np.exp(np.minimum(self.log_mass[..., None] - tilt * u, _LARGEST))
        away = np.maximum(period - np.abs(u - mean) - 2, 0.0)
        alias = 2 * np.exp(-(away**2) / (2 * (spread**2 + 2 * away / 3 + 1e-9)))
        error = scale * ((rounding + largest * self.beyond)[..., None] + largest[..., None] * alias)
        value = value * scale
        return value, error + 2 * (b * np.exp(-self.tilt * self.period))[..., None] + slack[..., None] * np.abs(value)


def moments(groups: Sequence[Steps], tilt: Floats) -> tuple[Floats, Floats]:
    """Return the mean and variance of the sum X, shapes (R, M), under a tilt of shape (R, M) or (R, 1)."""
    mean, variance = np.zeros_like(groups[0].count), np.zeros_like(groups[0].count)
    for steps in groups:
        up, down = steps.tilted(tilt)
        mean += steps.count * (up - down)
        variance += steps.count * np.maximum(up + down - (up - down) ** 2, 0.0)
    return mean, variance
