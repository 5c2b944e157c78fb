"""The dominating pair of a release: its privacy curve lies above the curve of every pair of neighbouring datasets.

h(x) = sup of sum [P - x Q]_+ over all neighbouring pairs, x = e**epsilon, is convex and decreasing. Since P and Q may
be exchanged, h(1/x) = 1 - (1 - h(x))/x. A `TabulatedCurve` holds upper bounds of h at x >= 1. The lower convex hull of
these points and their mirror images lies above h, because h lies below every chord of points above it. Such a convex
curve is the curve of a pair of distributions P and Q, with mass of Q where the curve bends. This pair may replace any
neighbouring pair when rounds are composed, even if other people's data are chosen adaptively.

Source: Zhu, Dong, Wang 2022, Theorem 10 (dominating pairs compose, adaptively); Doroshenko, Ghazi, Kamath, Kumar,
Manurangsi 2022 (chords between lattice points); docs/theory/composition.md, Lemmas 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hushuffle.curves.base import Laws, PrivacyCurve, UpperCurve, bracket, spread
from hushuffle.curves.dataset_pair import DatasetPair, inscribed
from hushuffle.model import Bound, Citation
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

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
"""Lattice step in standard deviations of a round's loss: adds 0.05**2/6 to the loss variance, 2e-4 to epsilon."""

_GROWTH: Final = 0.02
"""Relative distance between the points of evaluation beyond a few standard deviations."""

_SPARSE: Final = 6.0
"""Factor on the distances between points of an approximation."""

_FARTHEST: Final = 300.0
"""Epsilon beyond which the remaining delta counts as an infinite privacy loss."""

_LONGEST: Final = 2**24
"""Number of lattice points beyond which the remaining delta counts likewise: more would take gigabytes of memory."""

_HAIR: Final = 1e-6
"""Relative distance from its floor at which a curve counts as having reached it."""

_SPREADS: Final[WeakKeyDictionary[PrivacyCurve, float]] = WeakKeyDictionary()

_VERY_FAR: Final = 16.0
"""Standard deviation of the loss of a Gaussian pair whose total variation distance is just below 1.0 as a float."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TabulatedCurve:
    """Upper bounds `deltas` on delta at the epsilons `step` * `index` (nats); shape (points,), and index[0] is 0."""

    step: float
    index: Floats
    deltas: Floats

    @classmethod
    def of(cls, law: PrivacyCurve, *, step: float, negligible: float, sparse: float = 1.0) -> TabulatedCurve:
        """Tabulate the curve `law` at multiples of `step` (nats), from 0 until delta is at most `negligible`.

        `sparse` is a factor on the distances between points: with fewer points, the bounds are wider.

        >>> import hushuffle as hs
        >>> from hushuffle.curves.search import privacy_curve
        >>> one = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
        >>> TabulatedCurve.of(privacy_curve(one), step=0.5, negligible=1e-9).deltas.round(4).tolist()
        [0.4621, 0.2876, 0.0]
        """
        near = law.near(negligible, often=True)
        fine = max(1.0, np.floor(sparse * FINE * typical_loss(law) / step))
        return cls._read(near, near.along, step=step, negligible=negligible, fine=fine, growth=sparse * _GROWTH)

    @classmethod
    def about(cls, law: PrivacyCurve, *, step: float, negligible: float) -> TabulatedCurve:
        """Return an approximation of `of`, interpolated between a few points; its deltas are no bounds."""
        near = law.rough(negligible, law.guess())
        fine = max(1.0, np.floor(_SPARSE * FINE * _typical_loss(law, law.likely) / step))
        read = partial(map, near.likely)
        sparse = cls._read(near, read, step=step, negligible=negligible, fine=fine, growth=_SPARSE * _GROWTH)
        middle = sparse.index.size // 2
        at, depth = step * sparse.index[middle], -np.log(np.maximum(sparse.deltas, negligible * 1e-3))
        # Lower bounds approximate the upper bounds up to a factor, which is read at one point.
        depth -= min(math.log(max(near.upper(at), 1e-300)) + depth[middle], depth.min()) if at < law.pure else 0.0
        index = np.arange(sparse.index[-1] + 1)
        deltas = np.exp(-np.square(np.interp(index, sparse.index, np.sqrt(depth))))
        return cls(step=step, index=index, deltas=np.minimum(deltas, 1.0))

    @classmethod
    def _read(
        cls,
        near: PrivacyCurve,
        read: Callable[[Iterator[float]], Iterator[float]],
        *,
        step: float,
        negligible: float,
        fine: float,
        growth: float,
    ) -> TabulatedCurve:
        places, last = [0.0], float(np.ceil(near.pure / step * (1 - 4 * EPS)))

        def epsilons() -> Iterator[float]:
            # Slightly smaller than the lattice point, so that the rounded product cannot exceed it.
            while (epsilon := step * places[-1] * (1 - 4 * EPS)) < near.pure:
                yield epsilon
                index = places[-1]
                places.append(min(index + max(fine, float(np.floor(growth * index))), max(last, index + 1)))

        enough = max(negligible, near.floor * (1 + _HAIR))  # beyond its floor, delta does not fall
        deltas = list[float]()
        for delta in read(epsilons()):
            deltas.append(delta)
            place = places[len(deltas) - 1]
            if delta <= enough or step * place >= _FARTHEST or place >= _LONGEST:
                break
        else:
            deltas.append(0.0)
        return cls(step=step, index=np.array(places[: len(deltas)]), deltas=np.minimum(deltas, 1.0))

    def until(self, negligible: float) -> TabulatedCurve:
        """Drops the points after the first delta that is at most `negligible`.

        >>> curve = TabulatedCurve(step=1.0, index=np.arange(3.0), deltas=np.array([0.5, 0.1, 0.0]))
        >>> curve.until(0.2).deltas.tolist()
        [0.5, 0.1]
        """
        small = np.flatnonzero(self.deltas <= negligible)
        end = int(small[0]) + 1 if small.size else self.index.size
        return TabulatedCurve(step=self.step, index=self.index[:end], deltas=self.deltas[:end])

    def last_above(self, delta: float) -> float:
        """Largest tabulated epsilon (nats) with an upper bound above `delta`; 0 if there is none."""
        return float(self.epsilons[self.deltas > delta].max(initial=0.0)) * (1 - 1e-6)

    @property
    def epsilons(self) -> Floats:
        """In nats, shape (points,)."""
        return self.step * self.index

    def pair(self, back: TabulatedCurve | None = None) -> LossLattice:
        """The dominating pair, as the distribution of its privacy loss.

        `back` has the upper bounds for datasets in exchanged order, on the same lattice; None: the same bounds.

        >>> curve = TabulatedCurve(step=1.0, index=np.array([0.0, 1.0]), deltas=np.array([math.tanh(0.5), 0.0]))
        >>> curve.pair().mass.round(4).tolist()
        [0.2689, 0.0, 0.7311]
        """
        right, left = _Hull.of(self), _Hull.of(back or self)
        while True:
            # Remove corners that the chord between the two sides makes superfluous.
            drops = right.superfluous(left), left.superfluous(right)
            if not any(drops):
                break
            right, left = (
                side.without_first() if drop else side for side, drop in zip((right, left), drops, strict=True)
            )
        mass = np.zeros(int(left.index[-1]) + int(right.index[-1]) + 1)
        middle = int(left.index[-1])
        mass[middle - left.index] += left.bends(right)  # mass of P, which is the mirror image of Q
        mass[middle + right.index] += right.bends(left) * np.exp(self.step * right.index)
        return LossLattice(
            step=self.step,
            first=-middle,
            mass=mass * (1 + 64 * EPS),
            infinity=float(right.deltas[-1]),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Hull:
    """Corners of the lower convex hull at x >= 1 by increasing x, with the slope right of each; shape (corners,)."""

    step: float
    index: npt.NDArray[np.int64]
    deltas: Floats
    slopes: Floats

    @classmethod
    def of(cls, curve: TabulatedCurve) -> _Hull:
        growth, heights = np.exp(curve.epsilons), curve.deltas * (1 + 8 * EPS)

        def slope(left: int, right: int) -> float:
            width = float(growth[left] * np.expm1(curve.step * (curve.index[right] - curve.index[left])))
            return min(float(heights[right] - heights[left]) / width, 0.0)

        stack, slopes = [curve.index.size - 1], [0.0]
        for left in range(curve.index.size - 2, -1, -1):
            while len(stack) > 1 and slope(left, stack[-1]) >= slopes[-1]:
                stack.pop()
                slopes.pop()
            slopes.append(slope(left, stack[-1]))
            stack.append(left)
        corners = stack[::-1]
        return cls(
            step=curve.step,
            index=curve.index[corners].astype(np.int64),
            deltas=curve.deltas[corners],
            slopes=np.array(slopes[::-1]),
        )

    def chord(self, mirrored: _Hull) -> float:
        """Slope of the chord from the first corner of `mirrored`, mirrored, to this hull's first corner."""
        (right, height), (left, depth) = (
            (math.exp(self.step * int(side.index[0])), float(side.deltas[0])) for side in (self, mirrored)
        )
        if right * left == 1:  # both corners are at x = 1: any slope between those on the two sides is valid
            return -(1 - height) / 2
        return ((1 - depth) / left - (1 - height)) / (right - 1 / left)

    def superfluous(self, mirrored: _Hull) -> bool:
        """Whether the hull bends at its first corner by less than rounding errors."""
        return self.index.size > 1 and float(self.slopes[0]) - self.chord(mirrored) < _SOLID

    def without_first(self) -> _Hull:
        return replace(self, index=self.index[1:], deltas=self.deltas[1:], slopes=self.slopes[1:])

    def bends(self, mirrored: _Hull) -> Floats:
        """Increase of the slope at each corner, which is the mass of Q there; shape (corners,)."""
        bends = np.diff(self.slopes, prepend=self.chord(mirrored))
        # The mass next to the middle has an absolute rounding error: add an upper bound on that error.
        bends[0] += 8 * EPS * (bends.size + 8)
        return bends


_SOLID: Final = 1e-13
"""Smallest bend next to the middle that exceeds its rounding error; smaller bends are removed."""


def typical_loss(law: PrivacyCurve) -> float:
    """Approximate standard deviation (nats) of one round's privacy loss; only the lattice step depends on it.

    It is exact for two Gaussians with the same total variation distance, and cached as long as the curve exists.
    """
    if law not in _SPREADS:
        _SPREADS[law] = _typical_loss(law, law.upper)
    return _SPREADS[law]


def _typical_loss(law: PrivacyCurve, delta: Callable[[float], float]) -> float:
    apart = delta(0.0)
    if apart >= 1:
        return _VERY_FAR if math.isinf(law.pure) and law.upper(_FARTHEST) < 1 else law.pure
    least = 0.0 if math.isinf(law.pure) else 1e-9 * law.pure
    return float(min(max(2 * float(ndtri((1 + apart) / 2)), least), law.pure))


def common_step(laws: Sequence[tuple[PrivacyCurve, int]], *, rough: bool = False) -> float:
    """Return a lattice step (nats) that suits the loss distributions of all rounds; `rough`: of approximations.

    The step divides the largest loss (if finite) of the curve whose rounds contribute most of the loss's variance.

    >>> import hushuffle as hs
    >>> from hushuffle.curves.search import privacy_curve
    >>> one = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> round(common_step([(privacy_curve(one), 4)]), 6)
    0.05
    """
    spreads = (_typical_loss(law, law.likely) if rough else typical_loss(law) for law, _ in laws)
    scales = [min(spread, _FARTHEST) for spread in spreads]
    shares = [times * scale**2 for scale, (_, times) in zip(scales, laws, strict=True)]
    # Fine enough for the round with the smallest loss, unless the lattice of the sum would become too long.
    step = max(FINE * min(scales), 2e-5 * math.sqrt(sum(shares)))
    widest = laws[int(np.argmax(shares))][0].pure
    if math.isinf(widest):
        return step
    return widest / math.ceil(widest / step) * (1 + 16 * EPS)


_MARGIN: Final = 1e-11
"""Relative error margin: above the difference of ratios that a lattice merges, plus all rounding."""


def dominating_law(laws: Laws, *, step: float, negligible: float) -> LossLattice:
    """Loss distribution, under P, of a pair (P, Q) that dominates the composition of all rounds.

    `negligible` is approximately the total mass that may be assigned to an infinite loss.
    """
    laws = spread(laws)
    rounds = sum(times for _, times in laws)
    parts = [(TabulatedCurve.of(law, step=step, negligible=negligible / rounds).pair(), times) for law, times in laws]
    if rounds == 1:
        return parts[0][0]
    total = LossSum.of(parts, tilt=0.0)
    mass = (np.maximum(total.tilted, 0.0) + total.noise) * math.exp(total.log_scale) * (1 + total.relative)
    return LossLattice(step=step, first=total.low, mass=mass, infinity=total.infinity + total.outside)


def attained_laws(laws: Laws, *, step: float, delta: float) -> tuple[LossLattice, LossLattice]:
    """Loss distributions of the known pair of datasets with the largest epsilon, and of the swapped pair.

    Rounds without a known pair are omitted.
    """
    rounds = sum(times for _, times in laws)
    attained = [(law.datasets(log_tail=math.log(delta / rounds) - 8), times) for law, times in laws]
    attained = [(pairs, times) for pairs, times in attained if pairs]
    if not attained:
        nothing = LossLattice(step=step, first=0, mass=np.ones(1))
        return nothing, nothing
    best, lattices = -1.0, None
    for choice in range(max(len(pairs) for pairs, _ in attained)):
        chosen = [(pairs[min(choice, len(pairs) - 1)], times) for pairs, times in attained]
        ways = [
            [(inscribed(_lowered(pair), step=step), times) for pair, times in way]
            for way in (chosen, [(pair.swapped(), times) for pair, times in chosen])
        ]
        figure = max(LossSum.of(way, tilt=best_tilt(way, delta=delta)).epsilon_below(delta) for way in ways)
        if figure > best:
            best, lattices = figure, ways
    assert lattices is not None
    return _added(lattices[0]), _added(lattices[1])


def _lowered(pair: DatasetPair) -> DatasetPair:
    """Return the pair with p lowered and q raised by their errors, so that no error remains."""
    doubt, factor = pair.doubt + _MARGIN, math.exp(-1.01 * pair.common)
    p, q = np.maximum(pair.p - pair.p_error, 0.0), pair.q + pair.q_error
    p, q = p * (factor * (1 - doubt)), q * (factor * (1 + doubt))
    keep = p > 0
    return replace(pair, p=p[keep], q=q[keep], doubt=0.0, common=0.0, p_error=0.0, q_error=0.0)


def _added(parts: list[tuple[LossLattice, int]]) -> LossLattice:
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    total = LossSum.of(parts, tilt=0.0)
    mass = np.maximum(total.tilted - total.noise, 0.0) * math.exp(total.log_scale) * (1 - total.relative)
    return LossLattice(step=parts[0][0].step, first=total.low, mass=mass)


@dataclass(frozen=True, kw_only=True, eq=False)
class ImportedCurve(UpperCurve):
    """Upper bound on delta: the larger divergence of the dominating pairs `directions`; the lower bound is 0.

    >>> coin = LossLattice(step=1.0, first=-1, mass=np.array([0.25, 0.0, 0.75]))
    >>> round(ImportedCurve(directions=(coin,)).upper(0.0), 6)
    0.47409
    """

    directions: tuple[LossLattice, ...]
    sources = (DOTS,)
    proof = "imported pair of distributions that dominates every pair of neighbouring datasets"

    @property
    def pure(self) -> float:
        if any(law.infinity > 0 for law in self.directions):
            return math.inf
        return max(float(law.losses[law.mass > 0].max(initial=0.0)) for law in self.directions) * (1 + 8 * EPS)

    def guess(self) -> float:
        """Four standard deviations of the privacy loss."""
        law = self.directions[0]
        mean = float(law.mass @ law.losses)
        return 4 * math.sqrt(float(law.mass @ (law.losses - mean) ** 2)) + 1e-9

    def pure_bound(self) -> Bound:
        return bracket(0.0, self.pure, unit="nats", sources=self.sources)

    def upper(self, epsilon: float) -> float:
        ends = []
        for law in self.directions:
            above = law.losses > epsilon * (1 - 8 * EPS)
            inside = law.mass[above] @ np.maximum(-np.expm1(epsilon - law.losses[above]), 0.0)
            ends.append((float(inside) + law.infinity) * (1 + EPS * (64 + law.mass.size)))
        return min(max(ends), 1.0)
