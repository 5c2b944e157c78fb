"""Sums of independent privacy losses on a lattice, with certified bounds.

A round's pair of distributions (P, Q) is represented by the distribution under P of the loss ln(P/Q), on multiples of a
step. Losses of composed rounds add up. A discrete Fourier transform computes the sum for the *tilted* distribution,
with mass proportional to p e**(theta L). If theta is near the saddle point, the requested tail is the bulk of the
tilted distribution. So its rounding errors are relatively small even for a tiny delta. Bounds on rounding, aliasing and
truncation widen the result.

Source: docs/theory/sums.md, Lemma 5; Chernoff bounds; N. J. Higham 2002, section 24.1 (error of the transform).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import logsumexp

from hushuffle.errors import NumericalError
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.exact import exponential
from hushuffle.numerics.roots import halved

_REACH: Final = 75.0
"""The tilted sum is outside its window with probability at most 2 e**-75."""

_LONGEST: Final = 2**23
"""Largest length of a transform: longer ones would take gigabytes of memory."""


_HAIR: Final = 1e-10
"""Approximate relative distance between the crossing of certified bounds and that of the masses."""

_BLOCK: Final = 1 << 18
"""Largest number of products of losses and tilts that are in memory together."""

_SCAN: Final = 65
"""Number of points at which a lower bound is evaluated before refinement."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LossLattice:
    """Masses of P at the losses `step` * (`first` + i), shape (size,); `infinity` is the mass of P where Q has none.

    Lower bounds use two error bounds. `doubt` is the relative error of each mass of P, and of each mass of Q that the
    loss implies. In addition all masses may have a common factor that differs from 1 by at most `common`.
    """

    step: float
    first: int
    mass: Floats
    infinity: float = 0.0
    doubt: float = 0.0
    common: float = 0.0

    @property
    def losses(self) -> Floats:
        return self.step * (self.first + np.arange(self.mass.size, dtype=np.float64))

    @cached_property
    def support(self) -> tuple[Floats, Floats]:
        held = self.mass > 0
        return self.losses[held], np.log(self.mass[held])


Parts = Sequence[tuple[LossLattice, int]]
"""Rounds, each with the number of its repetitions; all rounds use the same step."""


def best_tilt(parts: Parts, *, delta: float | None = None, epsilon: float | None = None) -> float:
    """Return the tilt that minimizes a Chernoff bound at the given delta, or at the given epsilon.

    Bounds are valid for any tilt; a good tilt keeps rounding errors small.

    >>> coin = LossLattice(step=1.0, first=-1, mass=np.array([0.25, 0.0, 0.75]))
    >>> 0.5 < best_tilt([(coin, 100)], delta=1e-6) < 5
    True
    """
    tilts, bounds = _chernoff(parts)
    if epsilon is not None:
        return float(tilts[np.argmin(bounds - tilts * epsilon)])
    assert delta is not None
    return float(tilts[np.argmin((bounds - math.log(delta)) / tilts)])


def likely_epsilon(parts: Parts, delta: float) -> float:
    """Return the epsilon at `delta` by a Chernoff bound over some tilts: an approximation, to compare sums."""
    tilts, bounds = _chernoff(parts)
    return float(((bounds - math.log(delta)) / tilts).min())


def _chernoff(parts: Parts) -> tuple[Floats, Floats]:
    """Return tilts, and for each the logarithm of a bound on delta e**(tilt epsilon)."""
    spread = math.sqrt(sum(times * _moments(part, 0.0)[2] for part, times in parts)) or parts[0][0].step
    # Larger tilts no longer move the mass.
    tilts = np.minimum(np.geomspace(1e-3, 1e3, 90) / spread, 40 / min(part.step for part, _ in parts))
    return tilts, _cumulants(parts, tilts) + _overshoot(tilts)


def _cumulants(parts: Parts, tilts: Floats) -> Floats:
    """Return ln E[e**(tilt L)] of the sum L of all finite losses, for each tilt."""
    total = np.zeros(tilts.size)
    for part, times in parts:
        losses, log_mass = part.support
        blocks = np.array_split(tilts, math.ceil(tilts.size * losses.size / _BLOCK))
        total += times * np.concatenate([logsumexp(log_mass + block[:, None] * losses, axis=1) for block in blocks])
    return total


def _overshoot(tilt: Floats) -> Floats:
    """Return the logarithm of the maximum of e**(-tilt t) (1 - e**-t) over t >= 0."""
    return tilt * np.log(tilt) - (1 + tilt) * np.log1p(tilt)


@dataclass(frozen=True, kw_only=True, eq=False)
class LossSum:
    """The tilted distribution of a sum of losses on a window, and the error terms for bounds on delta(epsilon)."""

    step: float
    low: int
    tilted: Floats
    tilt: float
    log_scale: float  # ln E[e**(tilt L)], the factor that reverses the tilt
    noise: float  # bound on the error of one entry of `tilted`
    outside: float  # tilted mass outside the window
    relative: float  # relative error of all other steps
    infinity: float
    doubt: float
    common: float

    @classmethod
    def of(cls, parts: Parts, *, tilt: float, longest: int | None = None) -> LossSum:
        """Return the sum of the losses of all rounds, on at most `longest` lattice points (default: 2**23).

        >>> coin = LossLattice(step=1.0, first=-1, mass=np.array([0.25, 0.0, 0.75]))
        >>> both = LossSum.of([(coin, 2)], tilt=0.5)
        >>> round(both.upper(0.0), 9) == round(0.75**2 * (1 - math.exp(-2)), 9)
        True
        """
        moments = [_moments(part, tilt) for part, _ in parts]
        rounds, start = sum(times for _, times in parts), sum(times * part.first for part, times in parts)
        low, high = _window(parts, tilt, moments)
        length = 1 << max(4, (high - low).bit_length())
        if length > (longest or _LONGEST):
            message = f"the sum of {rounds:,} losses needs {length:,} lattice points. Compose fewer rounds at a time."
            raise NumericalError(message)
        levels = 8 * EPS * (math.log2(length) + 2)  # twice Higham's bound, per unit of mass
        half = length // 2 + 1
        log_size, log_reach, phase = np.zeros(half), np.zeros(half), np.zeros(half)
        fuzz = 0.0
        for (part, times), (cumulant, _, _) in zip(parts, moments, strict=True):
            log_mass = np.where(part.mass > 0, np.log(np.where(part.mass > 0, part.mass, 1.0)), -np.inf)
            exponent = log_mass + tilt * part.losses - cumulant
            folded = np.arange(part.mass.size) % length
            transform = np.fft.rfft(np.bincount(folded, weights=np.exp(exponent), minlength=length))
            size = np.maximum(np.abs(transform), 1e-300)
            log_size += times * np.log(size)
            log_reach += times * np.log(size + levels)
            phase += times * np.angle(transform)
            largest = np.abs(exponent[part.mass > 0]).max() + abs(cumulant) + tilt * np.abs(part.losses).max()
            fuzz += 4 * EPS * times * (8 + float(largest))
        product = np.exp(log_size)
        error = np.exp(log_reach) * -np.expm1(log_size - log_reach) + product * (16 * EPS * (rounds + 8) + levels)
        tilted = np.fft.irfft(exponential(log_size, phase), length)
        return cls(
            step=parts[0][0].step,
            low=low,
            tilted=np.roll(tilted, -((low - start) % length)),
            tilt=tilt,
            log_scale=sum(times * moment[0] for (_, times), moment in zip(parts, moments, strict=True)),
            noise=2 * float(error.sum()) / length,
            outside=4 * math.exp(-_REACH),
            relative=fuzz + 16 * EPS * (length + 64),
            infinity=sum(times * part.infinity for part, times in parts),
            doubt=sum(times * part.doubt for part, times in parts),
            common=sum(times * part.common for part, times in parts),
        )

    def likely(self, delta: float) -> float:
        """Return the epsilon at `delta` by a Chernoff bound; it is somewhat above the true epsilon."""
        return (self.log_scale + float(_overshoot(np.array(self.tilt))) - math.log(delta)) / self.tilt

    def epsilon_above(self, delta: float, *, high: float) -> float:
        """Return approximately the smallest epsilon at which `upper` is at most `delta`, or `high` if that is smaller.

        The caller must know that `upper` is at most `delta` at `high`; it is not evaluated there.
        """
        if self.upper(0.0) <= delta:
            return 0.0
        near = self._crossing(delta - self.infinity)
        left, candidates = near * (1 - _HAIR), [near * (1 + stretch) for stretch in (_HAIR, 1e-7, 1e-4, 0.01, 0.1, 1.0)]
        for right in candidates:
            if 0 < right < high and self.upper(right) <= delta:
                return _closer(lambda epsilon: self.upper(epsilon) <= delta, good=right, bad=left)
            left = min(right, high)
        return halved(lambda epsilon: self.upper(epsilon) <= delta, good=high, bad=0.0)

    def epsilon_below(self, delta: float) -> float:
        """Return approximately the largest epsilon at which `lower` is above `delta`; 0 if there is none."""
        near, likely = self._crossing(delta), self.likely(delta)
        candidates = [near * (1 - share) for share in (_HAIR, 1e-7, 1e-4, 0.01)]
        right = near * (1 + _HAIR)
        for left in [*candidates, *np.linspace(likely, 0.0, _SCAN).tolist()]:
            if left >= 0 and self.lower(left) > delta:
                return _closer(lambda epsilon: self.lower(epsilon) > delta, good=left, bad=right)
            right = left if left < near else likely
        return 0.0

    def _crossing(self, delta: float) -> float:
        """Return approximately the epsilon where the window's A - e**epsilon B (masses above) is `delta`; no bound."""
        losses, weight = self._points
        weight = weight * np.maximum(self.tilted, 0.0)
        above = np.cumsum(weight[::-1])[::-1]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            other = np.cumsum((weight * np.exp(-losses))[::-1])[::-1]
            value = above - np.exp(losses - self.step) * other
            place = int(np.count_nonzero(value > delta)) - 1
            crossing = float(np.log((above[place] - delta) / other[place])) if place >= 0 else -1.0
        return crossing if math.isfinite(crossing) and crossing > 0 else max(self.likely(max(delta, 1e-300)), 0.0)

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on the hockey-stick divergence of the composed pair, if the masses are exact."""
        level = epsilon * (1 - 8 * EPS)
        weight, gain, tilted = self._above(level)
        inside = float((weight * gain * (np.maximum(tilted, 0.0) + self.noise)).sum())
        total = (inside + self._beyond(level)) * (1 + self.relative) + self.infinity * (1 + 1e-12)
        return min(total, 1.0)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound on the hockey-stick divergence of the composed pair."""
        level = epsilon * (1 + 8 * EPS)
        weight, gain, tilted = self._above(level)
        inside = float((weight * gain * np.maximum(tilted - self.noise, 0.0)).sum()) * (1 - self.relative)
        chance = float((weight * (np.maximum(tilted, 0.0) + self.noise)).sum()) * (1 + self.relative)
        # A factor common to P and Q scales the divergence; other errors count for all of P(L > epsilon), below
        # which e**epsilon Q(L > epsilon) lies.
        total = math.exp(-1.01 * self.common) * (inside - self._beyond(level))
        return max(total - 2 * math.expm1(self.doubt) * chance, 0.0)

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """The losses of the window, and the factor that reverses the tilt at each."""
        losses = self.step * (self.low + np.arange(self.tilted.size, dtype=np.float64))
        return losses, np.exp(np.minimum(self.log_scale - self.tilt * losses, 700.0))

    def _above(self, epsilon: float) -> tuple[Floats, Floats, Floats]:
        """Return the factor that reverses the tilt, 1 - e**(epsilon - L), and the tilted mass, for L > epsilon."""
        start = max(math.floor(epsilon / self.step) - self.low, 0)
        losses, weight = (each[start:] for each in self._points)
        return weight, np.maximum(-np.expm1(epsilon - losses), 0.0), self.tilted[start:]

    def _beyond(self, epsilon: float) -> float:
        """Return the largest contribution of mass outside the window, or aliased into it, at losses above epsilon."""
        return self.outside * math.exp(min(self.log_scale - self.tilt * epsilon, 700.0))


def _closer(holds: Callable[[float], bool], *, good: float, bad: float) -> float:
    """Return `good` moved towards `bad` while `holds` is true, to about one part in 10**12."""
    apart = abs(good - bad) / max(good, 1e-300)
    times = math.ceil(math.log2(max(apart, 1e-12) / 1e-12))
    return halved(holds, good=good, bad=bad, times=min(times, 40))


def _moments(part: LossLattice, tilt: float) -> tuple[float, float, float]:
    """Return ln E[e**(tilt L)] and the mean and variance of the tilted distribution (finite losses only)."""
    losses, log_mass = part.support
    exponent = log_mass + tilt * losses
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    total = float(weight.sum())
    mean = float(weight @ losses) / total
    return top + math.log(total), mean, float(weight @ (losses - mean) ** 2) / total


def _window(parts: Parts, tilt: float, moments: list[tuple[float, float, float]]) -> tuple[int, int]:
    """Return lattice points beyond which the tilted sum has probability at most e**-_REACH per side (Chernoff)."""
    mean = sum(times * moment[1] for (_, times), moment in zip(parts, moments, strict=True))
    spread = math.sqrt(sum(times * moment[2] for (_, times), moment in zip(parts, moments, strict=True)))
    step = parts[0][0].step
    shares = np.geomspace(0.2, 60.0, 24) / max(spread, step)
    middle = sum(times * moment[0] for (_, times), moment in zip(parts, moments, strict=True))
    rises = (_cumulants(parts, tilt + sign * shares) - middle - sign * shares * mean for sign in (-1, 1))
    reach = [float(((rise + _REACH + 1) / shares).min()) for rise in rises]
    lowest = sum(times * part.first for part, times in parts)
    highest = sum(times * (part.first + part.mass.size - 1) for part, times in parts)
    low = max(lowest, math.floor((mean - reach[0]) / step) - 1)
    return low, max(low, min(highest, math.ceil((mean + reach[1]) / step) + 1))
