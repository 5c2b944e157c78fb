"""The worst delta(epsilon) curve of one release, tabulated, and the pair of laws that dominates all neighbours.

h(x) = sup of sum [P - x Q]_+ over all neighbouring pairs, x = e**epsilon, is convex and falls, and since
neighbours are neighbours both ways, h(1/x) = 1 - (1 - h(x))/x. A `TabulatedCurve` holds upper ends of h at x >= 1. The
lower convex hull of these points and their mirror images lies above h: h lies below every chord of points above
it. A convex curve of this kind is the curve of a pair of laws, with mass of Q where it bends, and that pair
may stand for any neighbouring pair when rounds are composed, even if others' data are chosen adaptively.

Source: Zhu, Dong, Wang 2022, Theorem 10 (dominating pairs compose, adaptively);
Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022 (chords between lattice points); docs/theory/composition.md, Lemmas
1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hushuffle.curves.base import PrivacyCurve
from hushuffle.model import Citation
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.loss_sum import LossLattice

DOMINATING: Final = Citation(
    key="zhu2022",
    text="Y. Zhu, J. Dong, Y.-X. Wang, Optimal accounting of differential privacy via characteristic function, "
    "AISTATS (2022)",
)
DOTS: Final = Citation(
    key="doroshenko2022",
    text="V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, Connect the dots: tighter discrete "
    "approximations of privacy loss distributions, PoPETs (2022)",
)

FINE: Final = 0.05
"""Lattice step in standard deviations of a round's loss: adds 0.05**2/6 to its variance, 2e-4 to epsilon."""

_GROWTH: Final = 0.02
"""Beyond a few standard deviations the curve is evaluated at points growing by this share."""

_FARTHEST: Final = 300.0
"""What is left beyond this epsilon counts as a loss at infinity."""

_SPREADS: Final[WeakKeyDictionary[PrivacyCurve, float]] = WeakKeyDictionary()

_VERY_FAR: Final = 16.0
"""Standard deviation of the loss of a Gaussian pair whose total variation is 1 but for the last bit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TabulatedCurve:
    """Upper ends `deltas` of h at epsilons `step` * `index`, both shape (points,); index[0] is 0."""

    step: float
    index: Floats
    deltas: Floats

    @classmethod
    def of(cls, law: PrivacyCurve, *, step: float, negligible: float) -> TabulatedCurve:
        """Evaluate the curve from epsilon = 0 until it falls to `negligible` (nats; probability).

        >>> import hushuffle as hs
        >>> from hushuffle.curves.divergence import divergence
        >>> one = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
        >>> TabulatedCurve.of(divergence(one), step=0.5, negligible=1e-9).deltas.round(4).tolist()
        [0.4621, 0.2876, 0.0]
        """
        near, spread = law.near(negligible, often=True), typical_loss(law)
        fine, index, deltas = max(1.0, np.floor(FINE * spread / step)), 0.0, [near.upper(0.0)]
        places, last = [index], float(np.ceil(law.pure / step * (1 - 4 * EPS)))
        while deltas[-1] > negligible and step * index < _FARTHEST:
            index = min(index + max(fine, float(np.floor(_GROWTH * index))), max(last, index + 1))
            # A hair to the left, so that the rounded product cannot lie beyond the lattice point.
            epsilon = step * index * (1 - 4 * EPS)
            places.append(index)
            deltas.append(0.0 if epsilon >= law.pure else near.upper(epsilon))
        return cls(step=step, index=np.array(places), deltas=np.minimum(deltas, 1.0))

    def until(self, negligible: float) -> TabulatedCurve:
        """Return the curve only until it first falls to `negligible`.

        >>> curve = TabulatedCurve(step=1.0, index=np.arange(3.0), deltas=np.array([0.5, 0.1, 0.0]))
        >>> curve.until(0.2).deltas.tolist()
        [0.5, 0.1]
        """
        small = np.flatnonzero(self.deltas <= negligible)
        end = int(small[0]) + 1 if small.size else self.index.size
        return TabulatedCurve(step=self.step, index=self.index[:end], deltas=self.deltas[:end])

    def last_above(self, delta: float) -> float:
        """Return the last known epsilon (nats) at which the curve is above `delta`, 0 if there is none."""
        return float(self.epsilons[self.deltas > delta].max(initial=0.0)) * (1 - 1e-6)

    @property
    def epsilons(self) -> Floats:
        """Return where the curve is known, in nats, shape (points,)."""
        return self.step * self.index

    def pair(self, back: TabulatedCurve | None = None) -> LossLattice:
        """Return the dominating pair, as the law of its privacy loss.

        `back` has upper ends of all pairs the other way round, on the same lattice; None: the same as these.

        >>> curve = TabulatedCurve(step=1.0, index=np.array([0.0, 1.0]), deltas=np.array([math.tanh(0.5), 0.0]))
        >>> curve.pair().mass.round(4).tolist()
        [0.2689, 0.0, 0.7311]
        """
        right, left = _Hull.of(self), _Hull.of(back or self)
        while True:
            # Corners that the chord between the two sides makes superfluous go.
            drops = right.superfluous(left), left.superfluous(right)
            if not any(drops):
                break
            right, left = (
                side.without_first() if drop else side for side, drop in zip((right, left), drops, strict=True)
            )
        mass = np.zeros(int(left.index[-1]) + int(right.index[-1]) + 1)
        middle = int(left.index[-1])
        mass[middle - left.index] += left.bends(right)  # of P, as the mirror image of Q
        mass[middle + right.index] += right.bends(left) * np.exp(self.step * right.index)
        return LossLattice(
            step=self.step,
            first=-middle,
            mass=mass * (1 + 64 * EPS),
            infinity=float(right.deltas[-1]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Hull:
    """Corners of the lower hull at x >= 1, from the left, and the slope to the right of each, shapes (corners,)."""

    step: float
    index: npt.NDArray[np.int64]
    deltas: Floats
    slopes: Floats

    @classmethod
    def of(cls, curve: TabulatedCurve) -> _Hull:
        """Return the hull of a curve's points."""
        growth, heights = np.exp(curve.epsilons), curve.deltas * (1 + 8 * EPS)

        def slope(left: int, right: int) -> float:
            width = float(growth[left] * np.expm1(curve.step * (curve.index[right] - curve.index[left])))
            return min(float(heights[right] - heights[left]) / width, 0.0)

        kept, slopes = [curve.index.size - 1], [0.0]
        for left in range(curve.index.size - 2, -1, -1):
            while len(kept) > 1 and slope(left, kept[-1]) >= slopes[-1]:
                kept.pop()
                slopes.pop()
            slopes.append(slope(left, kept[-1]))
            kept.append(left)
        corners = kept[::-1]
        return cls(
            step=curve.step,
            index=curve.index[corners].astype(np.int64),
            deltas=curve.deltas[corners],
            slopes=np.array(slopes[::-1]),
        )

    def chord(self, mirrored: _Hull) -> float:
        """Return the slope of the chord from the mirror image of the other hull's first corner to the first corner."""
        (right, height), (left, depth) = (
            (math.exp(self.step * int(side.index[0])), float(side.deltas[0])) for side in (self, mirrored)
        )
        if right * left == 1:  # one point: any line between the slopes to its sides
            return -(1 - height) / 2
        return ((1 - depth) / left - (1 - height)) / (right - 1 / left)

    def superfluous(self, mirrored: _Hull) -> bool:
        """Whether the first corner hardly bends the hull."""
        return self.index.size > 1 and float(self.slopes[0]) - self.chord(mirrored) < _SOLID

    def without_first(self) -> _Hull:
        """Return the hull without its first corner."""
        return replace(self, index=self.index[1:], deltas=self.deltas[1:], slopes=self.slopes[1:])

    def bends(self, mirrored: _Hull) -> Floats:
        """Return how much the slope rises at each corner: the mass of Q there."""
        bends = np.diff(self.slopes, prepend=self.chord(mirrored))
        # The masses next to the middle are only known absolutely: this much more covers the rounding.
        bends[0] += 8 * EPS * (bends.size + 8)
        return bends


_SOLID: Final = 1e-13
"""A bend next to the middle smaller than its rounding error is not kept."""


def typical_loss(law: PrivacyCurve) -> float:
    """Return about the standard deviation of one round's loss: that of a Gaussian pair as far apart in total variation.

    Only the choice of lattices depends on it. Kept as long as the law is: lattices are chosen several times.
    """
    if law not in _SPREADS:
        _SPREADS[law] = _typical_loss(law)
    return _SPREADS[law]


def _typical_loss(law: PrivacyCurve) -> float:
    apart = law.upper(0.0)
    if apart >= 1:
        return _VERY_FAR if math.isinf(law.pure) and law.upper(_FARTHEST) < 1 else law.pure
    least = 0.0 if math.isinf(law.pure) else 1e-9 * law.pure
    return float(min(max(2 * float(ndtri((1 + apart) / 2)), least), law.pure))


def common_step(laws: Sequence[tuple[PrivacyCurve, int]]) -> float:
    """Return a lattice step (nats) that suits all rounds together.

    Where a law's largest loss is not much larger than its typical one, the largest loss (of the round with most
    of the variance) is on the lattice.

    >>> import hushuffle as hs
    >>> from hushuffle.curves.divergence import divergence
    >>> one = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> round(common_step([(divergence(one), 4)]), 6)
    0.05
    """
    scales = [min(typical_loss(law), _FARTHEST) for law, _ in laws]
    shares = [times * scale**2 for scale, (_, times) in zip(scales, laws, strict=True)]
    # As fine as the smallest round deserves, unless the lattice of the sum would become too long.
    step = max(FINE * min(scales), 2e-5 * math.sqrt(sum(shares)))
    widest = laws[int(np.argmax(shares))][0].pure
    if math.isinf(widest):
        return step
    return widest / math.ceil(widest / step) * (1 + 16 * EPS)
