"""The largest E[sum of N scores]_+ when each of the N terms may follow any one of several laws.

For any tilt t > 0, and a Gaussian Z of standard deviation tau added (see `score_sums`),

    E[S]_+ <= (1/period) sum over nodes u of |phi(t + iu)| |transform of Z|/(t**2 + u**2) + (nodes left out),

where |phi| is the product of the terms' |phi_c|: log-linear in how many terms follow which law. So the bound is
a convex function of these shares, and its maximum is where all terms follow the same law. That is all there is
to check. The same goes, linearly, for what scores exceed a cap by:
[S]_+ <= [sum of min(X, cap)]_+ + sum of (X - cap)_+.

Source: docs/theory/sums.md, Lemmas 1 and 2; docs/theory/pool.md, Lemma 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import erfcx

from hushuffle.curves.flipped_pairs import NOISE, PairFamily
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.score_sums import Nodes, Scores, Transform

_LAST: Final = 9.0
"""Nodes reach to u = 9/tau, where the Gaussian has e**-40.5."""

_SMOOTH: Final = 0.08
"""tau times t: smoothing costs the factor e**(0.08**2/2)."""

_FIRST: Final = 24
"""Nodes that are looked at to see whether a kind matters at all."""

_SAFE: Final = 300.0
"""Largest tilt times score: far beyond, exponentials would overflow."""

_TILTS: Final = np.geomspace(0.02, 200.0, 120)
"""Tilts to choose from, over the standard deviation of the sum."""

_LEAST: Final = 1e-9 - 1
"""E[e**(t X)] is taken to be at least 1e-9: below, a kind does not matter."""

_TRACE: Final = 1e-14
"""Classes that together weigh less than this, tilted, are counted as a doubt."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedSums:
    """E[sum of N scores]_+ for several N, shape (G,), of one target pair at one epsilon.

    Term laws are the kinds of `family`; the tilt is chosen for its two `corners`, which differ from the target in
    all bits but the h, and from a, or b, in all of these.
    """

    family: PairFamily
    corners: PairFamily
    epsilon: float
    counts: Floats

    @classmethod
    def of(cls, family: PairFamily, epsilon: float, counts: Floats) -> MixedSums:
        """Return the sums of `counts` terms.

        >>> from fractions import Fraction
        >>> from hushuffle.curves.flipped_pairs import Pool
        >>> pair = PairFamily.of(width=2, flip=Fraction(1, 4), distance=2, pool=Pool.none(width=2, distance=2))
        >>> sums = MixedSums.of(pair, 0.3, np.array([100.0]))
        >>> (np.exp(sums.raised(np.array([-np.inf]))) / 100).round(4).tolist()  # all terms alike: 0.0111
        [0.0115]
        """
        corners = family.both(family.corner(0), family.corner(family.distance))
        return cls(family=family, corners=corners, epsilon=epsilon, counts=counts)

    def raised(self, known: Floats) -> Floats:
        """Return the logarithms of upper ends over all compositions, or those `known` where they are larger, (G,)."""
        best = np.full(self.counts.shape, np.inf)
        for tilt, cap in self.tuned():
            best = np.minimum(best, np.maximum(known, self._over_all(tilt, cap, known)))
            if bool((best <= known).all()):
                break
        return best

    def tuned(self) -> list[tuple[float, float]]:
        """Return tilts and caps to try, what seems best for the corners first."""
        found = []
        for cap in self._caps():
            tilts, guess = self._guessed(cap)
            choice = int(guess.argmin())
            beyond = float(self.counts[0]) * float(self._excess(self.corners, cap).max())
            found.append((math.exp(min(float(guess[choice]), 700.0)) + beyond, float(tilts[choice]), cap))
        return [(tilt, cap) for _, tilt, cap in sorted(found)]

    def _over_all(self, tilt: float, cap: float, known: Floats) -> Floats:
        """Return the logarithms of the bound with this tilt and cap, exact only where it is above `known`, (G,)."""
        nodes = _nodes(tilt, self._spread(self.corners, tilt, cap))
        beyond = self.counts * float(self._excess(self.family, cap).max())
        # What is allowed without mattering: the sums of capped scores that `known` leaves room for.
        allowed = _log(np.exp(np.minimum(known, 700.0)) - beyond)
        simple = self._simple(cap, nodes)
        worst = np.full(self.counts.shape, -np.inf)
        for kind in np.argsort(-simple[:, 0]).tolist():
            value = simple[kind]
            for used in (_FIRST, nodes.angles.size):
                if bool((value > np.maximum(allowed, worst)).any()):
                    value = np.minimum(value, self._close(self.family.part(kind), cap, nodes, used))
            worst = np.maximum(worst, value)
        total: Floats = np.logaddexp(worst, _log(beyond)) + 8 * EPS
        return total

    @cached_property
    def _corner_scores(self) -> Scores:
        return self.corners.scores(self.epsilon)

    @cached_property
    def _scores(self) -> Scores:
        return self.family.scores(self.epsilon)

    def _caps(self) -> tuple[float, ...]:
        """Return caps to try: a score above the drift of all the others decides the sign alone."""
        count = float(self.counts[0])
        drift = count * math.expm1(self.epsilon)
        more = 2 * math.sqrt(count * float(self.corners.sums(self.corners.own * self._corner_scores.value**2).max()))
        largest = float(self._corner_scores.value.max())
        return (*(cap for cap in (drift, drift + more) if 0 < cap < largest), math.inf)

    def _guessed(self, cap: float) -> tuple[Floats, Floats]:
        """Return tilts, and guesses of the logarithm of the bound at the corners as if sums were Gaussian."""
        value, count, corners = np.minimum(self._corner_scores.value, cap), float(self.counts[0]), self.corners
        tilts = _TILTS / math.sqrt(count * float(corners.sums(corners.own * value**2).max()))
        tilts = tilts[tilts * float(value.max()) <= _SAFE][:, None]
        grown = np.expm1(tilts * value)
        excess = np.maximum(np.add.reduceat(corners.own * grown, corners.starts, axis=1), _LEAST)
        second = np.add.reduceat(corners.own * (grown + 1) * value**2, corners.starts, axis=1) / (1 + excess)
        guess = count * np.log1p(excess) + np.log(erfcx(tilts * np.sqrt(count * second / 2)) / (2 * tilts))
        return tilts[:, 0], guess.max(axis=1)

    def _spread(self, family: PairFamily, tilt: float, cap: float) -> float:
        """Return the largest standard deviation of the tilted sum of a kind."""
        value = np.minimum(family.scores(self.epsilon).value, cap)
        mass = family.own * np.exp(tilt * value)
        total = family.sums(mass)
        variance = family.sums(mass * value**2) / total - (family.sums(mass * value) / total) ** 2
        return math.sqrt(float(self.counts[0]) * max(float(variance.max()), 0.0))

    def _excess(self, family: PairFamily, cap: float) -> Floats:
        """Return E[X - cap]_+ of each kind, rounded up, shape (kinds,)."""
        if math.isinf(cap):
            return np.zeros(family.starts.size)
        scores = family.scores(self.epsilon)
        over = np.where(scores.value > cap, scores.value - cap + NOISE * scores.size, 0.0)
        return family.sums(family.own * over) * (1 + 2 * NOISE)

    def _simple(self, cap: float, nodes: Nodes) -> Floats:
        """Return logarithms of an upper end for each kind, shape (kinds, G): no modulus is above its value at u = 0."""
        family, scores = self.family, _capped(self._scores, cap)
        grown = np.expm1(nodes.tilt * scores.value)
        reach = nodes.tilt * scores.size
        noise = NOISE * family.sums(family.own * (np.abs(grown) + (grown + 1) * reach * (1 + reach)))
        excess = np.maximum(family.sums(family.own * grown), _LEAST)
        weights, tail = _kernel(nodes)
        each = np.log1p(excess) + noise / (1 + excess) + 4 * EPS
        result: Floats = each[:, None] * self.counts + math.log(float(weights.sum()) + tail) + 64 * EPS
        return result

    def _close(self, kind: PairFamily, cap: float, nodes: Nodes, used: int) -> Floats:
        """Return logarithms of the upper end for one kind from its moduli on the first `used` nodes, shape (G,)."""
        weights, tail = _kernel(nodes)
        few = replace(nodes, angles=nodes.angles[:used])
        scores, doubt = _without_traces(_capped(kind.scores(self.epsilon), cap), nodes.tilt)
        transform = Transform.of(scores, few)
        transform = replace(transform, doubt=transform.doubt + doubt)
        found = []
        for count in self.counts.tolist():
            value, error = transform.power(count)
            inside = float(weights[:used] @ (np.abs(value) + error)) + float(weights[used:].sum()) + tail
            found.append(count * (transform.log_mass + transform.slack + doubt) + math.log(inside) + 64 * EPS)
        return np.array(found)


def _nodes(tilt: float, spread: float) -> Nodes:
    """Return nodes for all kinds: the same for all of them, or the bound would not be convex in the shares."""
    tau, period = _SMOOTH / tilt, max(12 / tilt, 8 * min(spread, 8 / tilt))
    last = math.ceil(_LAST * period / (2 * math.pi * tau))
    return Nodes(tilt=tilt, tau=tau, period=period, angles=np.arange(last + 1.0) * (2 * math.pi / period))


def _kernel(nodes: Nodes) -> tuple[Floats, float]:
    """Return the weights of the moduli, shape (J,), and a bound of what the nodes left out can add."""
    weights = nodes.weights * np.abs(nodes.smooth()) / np.abs(nodes.line) ** 2 * (1 + 64 * EPS)
    last = float(nodes.angles[-1])
    gaussian = math.exp(nodes.tau**2 / 2 * (nodes.tilt**2 - last**2))
    return weights, gaussian / (math.pi * nodes.tau**2 * last**3)


def _capped(scores: Scores, cap: float) -> Scores:
    return replace(scores, value=np.minimum(scores.value, cap))


def _without_traces(scores: Scores, tilt: float) -> tuple[Scores, float]:
    """Return the scores without the classes that hardly matter (they then count as 0), and what that can change.

    The second figure bounds the error of phi on the line of this tilt, over its value at u = 0.
    """
    part = scores.mass * (np.exp(tilt * scores.value) + 1)
    order = np.argsort(part)
    total = float((scores.mass * np.exp(tilt * scores.value)).sum())
    dropped = order[np.cumsum(part[order]) <= _TRACE * total]
    keep = np.ones(part.size, dtype=np.bool_)
    keep[dropped] = False
    left = Scores(value=scores.value[keep], size=scores.size[keep], mass=scores.mass[keep])
    return left, 1.01 * float(part[dropped].sum()) / total


def _log(value: Floats) -> Floats:
    return np.log(np.maximum(value, 1e-300))
