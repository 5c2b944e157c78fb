"""Binary randomized response, shuffled: the exact hockey-stick divergence for any composition.

The others hold `ones` ones and `zeros` zeros; with d dummies the number of reported ones among
them is X = Bin(ones, mu) * Bin(zeros, nu) * Bin(d, 1/2), of pmf f. The target reports one with
probability mu (value 1) or nu (value 0), so with a = mu - e**eps nu and b = e**eps - 1

    HS_eps(value 1 || value 0) = max over u of  a f(u) - b P(X > u).

X is a sum of independent coins, so f is log-concave and the best u is the mode of the law
tilted by r = (a + b)/a, which lies within one of that law's mean (Darroch 1964): three candidates
are enough. f(u) and P(X > u) are read from the characteristic function of the tilted law by the
trapezoidal rule, some hundred nodes whatever n is. Aliasing, truncation and rounding are bounded
and added, so both ends of the result are certified up to the accuracy of elementary functions.

Source: theory.md section 1.1; J. N. Darroch 1964 (mode and mean).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import EPS, Floats

_DECAY: Final = 80.0
"""Nodes are summed until the characteristic function is below e**-80 (its bound, not its value)."""

_REACH: Final = 35.0
"""Nodes per standard deviation of the tilted law: e**-70 of aliasing at the smallest tilt."""


@dataclass(frozen=True, kw_only=True)
class Compositions:
    """Several datasets of the others: `ones` and `zeros`, shape (B,), plus `dummies` uniform reports each."""

    ones: npt.NDArray[np.float64]
    zeros: npt.NDArray[np.float64]
    dummies: int


def hockey_stick(others: Compositions, *, truth: float, lie: float, epsilon: float) -> tuple[Floats, Floats]:
    """Return certified (lower, upper) ends of HS_epsilon(value 1 || value 0), each of shape (B,).

    The other direction at `ones` ones is this one at `zeros` ones, by symmetry.

    Args:
        others: the compositions.
        truth: mu, probability of the true report.
        lie: nu = 1 - mu.
        epsilon: >= 0, in nats.

    >>> one = Compositions(ones=np.array([0.0]), zeros=np.array([0.0]), dummies=0)
    >>> hockey_stick(one, truth=0.75, lie=0.25, epsilon=0.0)[1].round(12).tolist()
    [0.5]
    """
    growth = float(np.exp(epsilon))
    a, b = truth - growth * lie, float(np.expm1(epsilon))
    if a <= 0:
        nothing = np.zeros(others.ones.shape)
        return nothing, nothing
    groups = ((others.ones, truth), (others.zeros, lie), (np.full_like(others.ones, others.dummies), 0.5))
    total = others.ones + others.zeros + others.dummies
    best = _tilted_mean(groups, np.full_like(total, np.log1p(b / a)))
    spread = np.sqrt(_tilted_variance(groups, np.full_like(total, np.log1p(b / a))))
    # The tail sum needs some tilt of its own when epsilon is small; the candidates stay those of `best`.
    tilt = np.maximum(np.log1p(b / a), 2 / (spread + 1))
    low, high = np.zeros_like(total), np.zeros_like(total)
    law = _TiltedLaw.of(groups, tilt, total)
    for shift in (-1, 0, 1, 2):
        u = np.clip(np.floor(best) + shift, 0, total)
        value, error = law.tail_difference(u, a, b, 4 * EPS * (truth + growth * lie))
        low, high = np.maximum(low, value - error), np.maximum(high, value + error)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


Groups = tuple[tuple[Floats, float], ...]


def _tilted(p: float, tilt: Floats) -> Floats:
    """Success probability of a tilted coin: p r / (1 - p + p r), r = e**tilt."""
    if p in (0.0, 1.0):
        return np.full_like(tilt, p)
    return 1 / (1 + (1 - p) / p * np.exp(-tilt))


def _tilted_mean(groups: Groups, tilt: Floats) -> Floats:
    return sum((count * _tilted(p, tilt) for count, p in groups), np.zeros_like(tilt))


def _tilted_variance(groups: Groups, tilt: Floats) -> Floats:
    terms = (count * _tilted(p, tilt) * (1 - _tilted(p, tilt)) for count, p in groups)
    return sum(terms, np.zeros_like(tilt))


@dataclass(frozen=True, kw_only=True, eq=False)
class _TiltedLaw:
    """The law of X tilted by r = e**tilt: its centred characteristic function on the nodes that matter."""

    tilt: Floats
    mean: Floats
    log_mass: Floats  # ln E[r**X]
    nodes: Floats  # angles, shape (B, J)
    transform: npt.NDArray[np.complex128]  # E_tilted[e**(i angle (X - mean))], weighted for the half circle, (B, J)
    period: Floats  # N: number of nodes on the full circle
    beyond: Floats  # what the nodes left out can add to a sum of kernels bounded by 1
    slack: Floats  # relative rounding error of one term
    alias: Floats  # tilted probability of being a period away

    @classmethod
    def of(cls, groups: Groups, tilt: Floats, total: Floats) -> _TiltedLaw:
        spread = np.sqrt(_tilted_variance(groups, tilt))
        period = 2 * np.ceil((_REACH * spread + 64) / 2) + 1
        sine = np.sqrt(np.minimum(_DECAY / (2 * np.maximum(spread, 1e-9) ** 2), 1.0))
        half = (period - 1) / 2
        used = np.minimum(half, np.ceil(2 * np.arcsin(sine) * period / (2 * np.pi)) + 1)
        index = np.arange(int(used.max()) + 1, dtype=np.float64)
        nodes = 2 * np.pi * index / period[:, None]
        inside = index <= used[:, None]
        exponent = np.zeros((total.size, index.size), dtype=np.complex128)
        log_mass = np.zeros_like(tilt)
        for count, p in groups:
            if p in (0.0, 1.0):
                log_mass = log_mass + count * p * tilt
                continue
            coin = _tilted(p, tilt)[:, None]
            sin2 = np.sin(nodes / 2) ** 2
            angle = np.arctan2(coin * np.sin(nodes), 1 - 2 * coin * sin2) - coin * nodes
            exponent += count[:, None] * (0.5 * np.log1p(-4 * coin * (1 - coin) * sin2) + 1j * angle)
            log_mass = log_mass + count * np.log1p(p * np.expm1(tilt))
        weight = np.where(inside, np.where(index == 0, 1.0, 2.0), 0.0) / period[:, None]
        reach = period - 3 * spread - 4
        typical = np.minimum(10 / np.maximum(spread, 1e-9), np.pi)
        return cls(
            tilt=tilt,
            mean=_tilted_mean(groups, tilt),
            log_mass=log_mass,
            nodes=nodes,
            transform=weight * np.exp(exponent),
            period=period,
            beyond=np.where(used < half, np.exp(-_DECAY), 0.0),
            slack=EPS * (64 + 8 * total * (typical + tilt)),
            alias=np.where(period > total, 0.0, 2 * np.exp(-(reach**2) / (2 * (spread**2 + reach / 3)))),
        )

    def tail_difference(self, u: Floats, a: float, b: float, doubt: float) -> tuple[Floats, Floats]:
        """Return a f(u) - b P(X > u) and a bound of its error, each (B,); `doubt` is the rounding in a."""
        ratio = np.exp(-self.tilt[:, None] - 1j * self.nodes)
        kernel = a - (b * ratio / (1 - ratio) if b > 0 else 0.0)
        terms = self.transform * np.exp(-1j * self.nodes * (u - self.mean)[:, None]) * kernel
        scale = np.exp(self.log_mass - self.tilt * u)
        largest = a + (b / np.expm1(self.tilt) if b > 0 else 0.0)
        value = scale * terms.real.sum(axis=1)
        rounding = self.slack * np.abs(terms).sum(axis=1) + doubt * np.abs(self.transform).sum(axis=1)
        folded = np.exp(-self.tilt * self.period)
        error = scale * (rounding + largest * (self.beyond + self.alias)) + 2 * b * folded
        return value, error + self.slack * np.abs(value)
