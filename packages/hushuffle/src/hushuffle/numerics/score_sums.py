"""Bounds on sums of independent scores by their characteristic function, for any finite randomizer.

V = S + Z, where S is the sum of scores and Z a centred Gaussian of standard deviation tau. With K the
log moment generating function of V and any t > 0,

    E[V]_+    = (1/2 pi) integral of e**K(t+iu) / (t+iu)**2 du,
    P(V > 0)  = (1/2 pi) integral of e**K(t+iu) / (t+iu) du.

- The transform of Z decays fast, so few nodes (values of u) suffice. Adding Z is valid: E[S]_+ <= E[S + Z]_+ (Jensen),
  and P(S + Z > 0) is the power of the randomized test that accepts with probability Phi(S/tau).
- The trapezoidal rule with step 2 pi/period gives sum_m e**(t m period) E[V - m period]_+, or the same sum of
  P(V > m period). All terms are >= 0, so an upper bound may include the terms m != 0; for a lower bound they are
  bounded (Chernoff) and subtracted.
- e**(-tau**2 u**2/2) bounds the contribution of nodes beyond the last, and sums of moduli bound the rounding errors.
- Most nodes between do not matter either. For the transform phi of a probability distribution, sqrt(1 - |phi(u)|**2) is
  the norm of e**(iuX) - 1 up to a factor, X a difference of two scores, so it changes by at most the standard deviation
  of the score times the step (`Nodes.thinned`).

Source: docs/theory/sums.md, Lemmas 1 to 3 and 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.exact import exponential, log1p_parts, turn_parts

Complex = npt.NDArray[np.complex128]

_LAST: Final = 9.0
"""Nodes reach to u = 9/tau, where the Gaussian's transform is e**-40.5."""

WIDE: Final = 16.0
"""Smallest number of standard deviations of the tilted sum in one period."""

NOISE: Final = 24 * EPS
"""Relative error allowance for each score, mass and elementary function."""

_BLOCK: Final = 16
"""Number of neighbouring nodes that are left out together."""

_CELLS: Final = 1 << 16
"""Number of powers of transforms that are computed together."""

_SINGLE: Final = 64
_WIDER: Final = 0.04
"""Nodes of damped sums are evaluated singly up to the first number, then in blocks that grow by this fraction."""

_ROWS: Final = 8
"""Number of powers of a transform above which products of powers replace them."""

_SMALL: Final = 45.0
"""Nodes are left out if the modulus of the product of transforms is below e**-45 there."""

_SAME: Final = 1e-13
"""Scores that differ by less than this, relatively, are replaced by the larger score."""

_MOST: Final = 50_000
"""Largest number of nodes: smoothing is increased to stay below it."""

_FEW: Final = 2_000
_COARSE: Final = 0.015
"""With smoothing of at least this, results serve only to rank alternatives."""

_DEEP: Final = 40.0
"""Number of standard deviations (tilt times spread) beyond which divergences are below e**-800."""

FAINT: Final = 1e-270
"""Reports with a smaller probability are left out: a score divided by it exceeds the range of floats."""

_FARTHEST: Final = 1e280
"""Scores below minus this are raised to it: the sum is negative long before."""

_HOPELESS: Final = 1e30
"""Scores below minus this times the largest sum of all others are raised to it."""


class _TooWideError(ArithmeticError):
    """Raised if the scores span more decades than floats can resolve: only the trivial bound is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportScores:
    """The score of one report: `value[v]` with probability `mass[v]`, shapes (V,); 0 with the remaining probability.

    The rounding error of value[v] is relative to `size[v]` >= |value[v]|.
    """

    value: Floats
    size: Floats
    mass: Floats

    @classmethod
    def of(cls, gain: Floats, size: Floats, mass: Floats) -> ReportScores:
        """Return the scores gain/mass, raised to at least -1e280; `mass` must be at least FAINT and gains at most 2.

        >>> ReportScores.of(np.array([1.0, -1e200]), np.array([2.0, 1e200]), np.array([1e-200, 1e-200])).value.tolist()
        [1e+200, -1e+280]
        """
        with np.errstate(over="ignore"):
            value, reach = gain / mass, size / mass
        return cls(value=np.maximum(value, -_FARTHEST), size=np.minimum(reach, _FARTHEST), mass=mass)

    def merged(self) -> ReportScores:
        """Return the scores after merging values that are equal up to rounding, each group at its largest value.

        >>> ReportScores(value=np.array([1.0, -1.0, 1.0]), size=np.ones(3), mass=np.ones(3) / 4).merged().mass.tolist()
        [0.25, 0.5]
        """
        order, begins = self.ties()
        return ReportScores(
            value=np.maximum.reduceat(self.value[order], begins),
            size=np.maximum.reduceat(self.size[order], begins),
            mass=np.add.reduceat(self.mass[order], begins),
        )

    def ties(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the order that sorts the scores, and where groups of nearly equal scores start in this order."""
        order = np.argsort(self.value)
        value, size = self.value[order], self.size[order]
        return order, np.append(0, 1 + np.flatnonzero(np.diff(value) > _SAME * (size[1:] + size[:-1])))

    def tamed(self, count: float) -> ReportScores:
        """Raise extremely negative scores; any sum of at most `count` scores that is positive is unchanged."""
        floor = -_HOPELESS * count * float(self.value.max())
        low = self.value < floor
        return replace(self, value=np.where(low, floor, self.value), size=np.where(low, -floor, self.size))

    def scaled(self) -> tuple[ReportScores, float]:
        """Return the scores divided by a power of 2, so that the largest is near 1, and this power.

        In this unit, squares and exponentials neither overflow nor vanish; the rounding errors do not depend on it.
        """
        # Scores far below their own rounding error need no better unit.
        largest = max(float(np.abs(self.value).max()), 1e-40 * float(self.size.max()))
        unit = 2.0 ** math.frexp(largest)[1]
        return replace(self, value=self.value / unit, size=self.size / unit), unit

    def excess(self, tilt: float) -> tuple[float, float]:
        """Return E[e**(tilt score)] - 1 and a bound on its rounding error."""
        grown = np.expm1(tilt * self.value)
        noise = self.mass * (np.abs(grown) + (grown + 1) * tilt * self.size * (1 + tilt * self.size))
        return float(self.mass @ grown), NOISE * float(noise.sum())

    def saddle(self) -> float:
        """Return t >= 0 at which the tilted score has mean 0; 0 if the mean is not negative or no score is positive.

        >>> one = ReportScores(value=np.array([1.0, -1.0]), size=np.ones(2), mass=np.array([0.2, 0.8]))
        >>> round(one.saddle(), 6)
        0.693147
        """
        weights = self.mass * self.value
        drift = -float(weights[self.value < 0].sum())
        best = int(np.argmax(self.value))
        if float(weights.sum()) >= 0 or weights[best] <= 0:
            return 0.0
        # Here the largest score alone outweighs the whole negative part.
        low, high = 0.0, float(np.log(drift / weights[best]) / self.value[best])
        middle = high = max(high, 1e-300)
        for _ in range(60):
            tilted = weights * np.exp(middle * self.value)
            mean, slope = float(tilted.sum()), float(tilted @ self.value)
            low, high = (low, middle) if mean > 0 else (middle, high)
            newton = middle - mean / slope if slope > 0 else low
            if abs(newton - middle) <= 1e-12 * middle:
                break
            middle = newton if low < newton < high else (low + high) / 2
        return middle

    def variance(self, tilt: float) -> float:
        """Return the second moment of the score under the distribution tilted by `tilt`."""
        total = 1 + self.excess(tilt)[0]
        if not total > 0:
            raise _TooWideError
        return float((self.mass * self.value**2) @ np.exp(tilt * self.value)) / total


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes:
    """Nodes tilt + iu of the integral for one sum, u = `angles` = 2 pi j/period, shape (J,); Z has deviation `tau`.

    `skipped` of the nodes up to the last are left out: the product of transforms is below e**-45 there.
    """

    tilt: float
    tau: float
    period: float
    angles: Floats
    skipped: int = 0

    @classmethod
    def of(cls, scores: ReportScores, count: float, smoothing: float) -> Nodes:
        """Return nodes for a sum of about `count` scores; `smoothing` is tau in standard deviations of the sum."""
        saddle = scores.saddle()
        spread = float(np.sqrt(count * scores.variance(saddle)))
        # If the saddle point is 0, a rare huge score must not overflow; any tilt gives a valid bound.
        tilt = max(saddle, min(1 / spread, 500 / float(np.abs(scores.value).max())))
        spread = float(np.sqrt(count * scores.variance(tilt)))
        own = tilt * spread
        tau = min(smoothing * spread, 10 * smoothing / tilt)
        period = max(WIDE, own / 2 + 30 / own) * spread + 8 * float(scores.value.max())
        most = _MOST if smoothing < _COARSE else _FEW
        tau = max(tau, _LAST * period / (2 * np.pi * most))
        if not (tau > 0 and math.isfinite(period / tau)):
            raise _TooWideError
        last = -1 if own > _DEEP else int(np.ceil(_LAST * period / (2 * np.pi * tau)))
        return cls(tilt=tilt, tau=tau, period=period, angles=np.arange(last + 1.0) * (2 * math.pi / period))

    def thinned(self, *groups: tuple[ReportScores, float]) -> Nodes:
        """Leave out nodes at which a product of transforms is negligible; `groups` are scores with their numbers.

        The last node stays. Source: docs/theory/sums.md, Lemma 7.
        """
        blocks = self.angles.size // _BLOCK - 1
        if blocks < _BLOCK:
            return self
        starts = _BLOCK * np.arange(blocks)
        middles = replace(self, angles=(self.angles[starts] + self.angles[starts + _BLOCK - 1]) / 2)
        radius = float(self.angles[_BLOCK - 1]) / 2
        squares, reach = np.zeros(blocks), 0.0
        for scores, count in groups:
            transform = ScoreTransform.of(scores, middles)
            modulus = np.minimum(transform.exponent.real + transform.doubt, 0.0)
            squares -= count * np.expm1(2 * modulus)
            reach += count * scores.variance(self.tilt) * radius**2
        away = np.sqrt(squares) * (1 - 1e-9) - math.sqrt(reach) * (1 + 1e-9)
        matter = np.ones(self.angles.size, dtype=np.bool_)
        matter[: blocks * _BLOCK] = np.repeat(away < math.sqrt(2 * _SMALL), _BLOCK)
        return replace(self, angles=self.angles[matter], skipped=int(matter.size - matter.sum()))

    @property
    def deep(self) -> bool:
        """Whether a positive sum is so improbable that a Chernoff bound suffices; there are then no nodes."""
        return self.angles.size == 0

    @property
    def weights(self) -> Floats:
        """Trapezoidal weights of the half line u >= 0, doubled for u > 0 and divided by 2 pi, shape (J,)."""
        return np.where(self.angles == 0, 1.0, 2.0) / self.period

    @property
    def line(self) -> Complex:
        """Return z = tilt + i angle, shape (J,)."""
        return np.asarray(self.tilt + 1j * self.angles, dtype=np.complex128)

    def smooth(self) -> Complex:
        return np.asarray(np.exp(self.tau**2 / 2 * self.line**2))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTransform:
    """E[e**(z score)] at the nodes: e**`log_mass` (the value at the tilt) times e**`exponent`, shape (J,).

    `doubt` bounds the error of e**`exponent`, and `slack` bounds the error of `log_mass`.
    """

    log_mass: float
    exponent: Complex
    doubt: Floats
    slack: float

    @classmethod
    def of(cls, scores: ReportScores, nodes: Nodes) -> ScoreTransform:
        excess, noise = scores.excess(nodes.tilt)
        if not 1 + excess > 0:
            raise _TooWideError
        tilted = scores.mass * np.exp(nodes.tilt * scores.value) / max(1 + excess, 1e-300)
        away, sine = turn_parts(np.outer(nodes.angles, scores.value))
        size, angle = log1p_parts(-away @ tilted, sine @ tilted)
        doubt = tilted @ (scores.size * (1 + nodes.tilt * scores.size))
        return cls(
            log_mass=float(np.log1p(excess)),
            exponent=np.asarray(size + 1j * angle),
            doubt=NOISE * (EPS + nodes.angles * doubt),
            slack=noise / (1 + excess) + 4 * EPS * abs(float(np.log1p(excess))),
        )

    def power(self, count: float | Floats) -> tuple[Complex, Floats]:
        """Return (e**`exponent`)**count and a bound on its error, shapes (..., J) for counts of shape (..., 1)."""
        modulus = np.maximum(np.exp(self.exponent.real), self.doubt)
        # |x + e|**count - |x|**count <= count e (|x| + e)**(count - 1)
        logarithm = np.log(count * self.doubt) + (count - 1) * (np.log(modulus) + self.doubt / modulus)
        rounding = 4 * EPS * (1 + count * np.abs(self.exponent))
        value = exponential(count * self.exponent.real, count * self.exponent.imag)
        return value, np.exp(np.minimum(logarithm, 1.0)) + rounding * np.abs(value)


def positive_part(scores: ReportScores, counts: Floats, weights: Floats, *, smoothing: float) -> float:
    """Return an upper bound on sum_j weights[j] E[sum of counts[j] scores]_+, weights >= 0; inf without a bound.

    >>> one = ReportScores(value=np.array([1.0, -1.0]), size=np.ones(2), mass=np.array([0.5, 0.5]))
    >>> 0.5 < positive_part(one, np.array([2.0]), np.array([1.0]), smoothing=0.01) < 0.51
    True
    """
    if not bool(np.any(scores.value > 0)):
        rounding = np.maximum(scores.value + NOISE * scores.size, 0.0)
        return float((scores.mass @ rounding) * (weights @ counts)) * (1 + EPS * (16 + counts.size))
    scores = scores.tamed(float(counts.max()))
    # A score above the cap makes the sum positive for any other scores: its excess adds linearly.
    least = float((scores.size * NOISE - scores.value).max())
    cap = float(counts.max()) * max(least, 0.0) * (1 + 8 * EPS)
    over = scores.value > cap
    above = float(scores.mass @ np.where(over, scores.value - cap + NOISE * scores.size, 0.0)) * (1 + NOISE)
    capped = replace(scores, value=np.minimum(scores.value, cap), size=np.where(over, cap, scores.size))
    total = _in_any_unit(capped, counts, weights, smoothing) if cap > 0 else 0.0
    return float((total + weights @ counts * above) * (1 + EPS * (16 + counts.size))) + 1e-300


def _in_any_unit(scores: ReportScores, counts: Floats, weights: Floats, smoothing: float) -> float:
    """Return the bound of `_smoothed`, in a unit in which floats represent the scores; inf if there is no such unit."""
    scores, unit = scores.scaled()
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            total = unit * _smoothed(scores, counts, weights, smoothing)
    except ArithmeticError:  # no unit suits scores that span so many decades
        return math.inf
    return math.inf if math.isnan(total) else total


def _smoothed(scores: ReportScores, counts: Floats, weights: Floats, smoothing: float) -> float:
    """Return sum_j weights[j] E[sum of counts[j] scores + Z]_+, rounded up."""
    nodes = Nodes.of(scores, float(weights @ counts / weights.sum()), smoothing)
    if nodes.deep:
        excess, noise = scores.excess(nodes.tilt)
        if not 1 + excess > 0:
            raise _TooWideError
        # s_+ <= e**(t s)/(e t)
        logarithm = counts * (np.log1p(excess) + noise / (1 + excess) + EPS) - 1 - np.log(nodes.tilt)
        return float(weights @ np.exp(np.minimum(logarithm, 600.0)))  # values far above 1 need no accuracy
    nodes = nodes.thinned((scores, float(counts.min())))
    transform, kernel = ScoreTransform.of(scores, nodes), nodes.smooth() / nodes.line**2
    size, tail, share = np.abs(kernel), beyond(nodes, power=2), nodes.weights
    logarithms = counts * (transform.log_mass + transform.slack)
    if float(logarithms.max()) > 700:  # all scores are within rounding error: the bound is trivial
        return math.inf
    # Powers of evenly spaced counts are products: counts[a * width + b] = counts[a * width] + (counts[b] - counts[0]).
    even = counts.size > _ROWS and np.ptp(np.diff(counts)) == 0 and counts[0] < counts[1]
    width = math.isqrt(counts.size) if even else 1
    more, more_error = np.ones((1, share.size), dtype=np.complex128), np.zeros((1, share.size))
    if even:
        more, more_error = transform.power((counts[:width] - counts[0])[:, None])
    weighed = share * size * (1 + EPS * share.size)
    rows = []
    for part in range(0, counts.size, stride := width * max(1, _CELLS // share.size)):
        value, error = transform.power(counts[part : part + stride : width, None])
        weighted = value * (share * kernel)
        terms = _products(weighted, more) if even else weighted.real.sum(axis=1, keepdims=True)
        wrong = (error * weighed) @ (np.abs(more) + more_error).T
        wrong += (np.abs(value) * weighed) @ (more_error + 64 * EPS * np.abs(more)).T
        rows.append(np.maximum(terms + wrong + tail, 0.0).ravel())
    raised = np.concatenate(rows)[: counts.size]
    raised = np.exp(logarithms) * raised * (1 + 32 * EPS)
    # If no score occurs, the sum is 0, but smoothing contributes E[Z]_+.
    nothing, touched = max(1 - float(scores.mass.sum()) - 1e-13, 0.0), nodes.tau / np.sqrt(2 * np.pi)
    return float(weights @ np.maximum(raised - nothing**counts * touched * (1 - 1e-12), 0.0))


def _products(left: Complex, right: Complex) -> Floats:
    """Return the real part of `left` times `right` transposed; its rounding error barely grows with their length."""
    blocks = [left[:, at : at + 32] @ right[:, at : at + 32].T for at in range(0, left.shape[1], 32)]
    return np.asarray(np.stack(blocks, axis=-1).real.sum(axis=-1))


def beyond(nodes: Nodes, *, power: int) -> float:
    """Return a bound on the contribution of the omitted nodes, if the integrand is a Gaussian divided by u**power."""
    last, top = float(nodes.angles[-1]), nodes.tau**2 / 2 * nodes.tilt**2
    after = math.exp(top - nodes.tau**2 / 2 * last**2) / (math.pi * nodes.tau**2 * last ** (power + 1))
    return after + nodes.skipped * math.exp(top - _SMALL) * 2 / (nodes.period * nodes.tilt**power)


def log_damped(tilt: float, variances: Floats, widths: Floats, *, blur: float) -> Floats:
    """Return logarithms of upper bounds on E[S]_+ / E[e**(tilt S)], for sums S of independent scores, shape (B,).

    Probabilities are multiplied by e**(tilt score). `variances`, shape (B, W), sums mass squared times variance of each
    score's part inside an interval no wider than `widths`; columns are alternatives. `blur` is tau times the tilt.
    Source: docs/theory/pool.md, Lemma 8.

    >>> log_damped(1.0, np.array([[0.0], [9.0]]), np.array([[0.1], [0.1]]), blur=0.2).round(2).tolist()
    [-0.83, -2.09]
    """
    nodes, weights, tail = _damped_nodes(blur)
    damping, single = np.zeros((variances.shape[0], weights.size)), min(_SINGLE, weights.size)
    for variance, width in zip(variances.T, np.maximum(widths, 1e-9 / tilt).T, strict=True):
        sine = np.sin(np.minimum(np.multiply.outer(width, tilt / 2 * nodes), np.pi))
        # The sine rises, then falls, so in a block it is at least the smaller value at both ends.
        least = np.hstack([sine[:, :single], np.minimum(sine[:, single:-1], sine[:, single + 1 :])])
        np.maximum(damping, 2 * (np.maximum(variance, 0.0) / width**2)[:, None] * least**2, out=damping)
    return np.asarray(np.log(np.exp(-damping) @ weights + tail) - math.log(tilt) + 1e-12)


@lru_cache(maxsize=8)
def _damped_nodes(blur: float) -> tuple[Floats, Floats, float]:
    """Return the first node (u/t) of each block and the last of all, the blocks' weights, and what other nodes add."""
    nodes = 0.2 * np.arange(math.ceil(13 / blur) + 1.0)
    gaussian = np.exp(blur**2 / 2 * (1 - nodes**2))
    weights = np.where(nodes == 0, 0.1, 0.2) / np.pi * gaussian / (1 + nodes**2)
    tail = float(gaussian[-1]) / (np.pi * blur**2 * float(nodes[-1]) ** 3)
    growing = np.geomspace(_SINGLE, nodes.size, max(2, round(math.log(nodes.size / _SINGLE) / _WIDER)))
    begins = np.unique(np.minimum(np.append(np.arange(_SINGLE), growing[:-1]), nodes.size - 1)).astype(np.int64)
    return np.append(nodes[begins], nodes[-1]), np.add.reduceat(weights, begins), tail
