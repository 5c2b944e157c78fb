"""Centroids of k-means: the nearest centroid of each point, the means of the points, and noisy means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Floats, Integers
from hushuffle.plans.plan import Release
from hushuffle.randomness import Randomness, secure

Points: TypeAlias = npt.NDArray[np.floating]
Noise = Literal["gaussian", "laplace"]

_BLOCK: Final = 1 << 22
"""Largest number of distances in memory at once."""


@dataclass(frozen=True, kw_only=True)
class CentroidNoise:
    """Noise that a centroid's compute node adds to its two results: the points' sum, and `radius` times their number.

    Devices clip points to norm at most `radius`: Euclidean for "gaussian", the sum of absolute values for
    "laplace". One replaced point changes all sums and counts together by at most 2 `radius` (Euclidean), or 4
    `radius` (sum of absolute values), also if one of the two points does not arrive. `scale` is the standard
    deviation of a Gaussian, or the b of e**(-|x|/b)/(2b) for Laplace.

    The noise consists of floating-point numbers, so the guarantee holds for the real-valued mechanism. Only a discrete
    sampler protects against an adversary who uses the last bits of a release.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Bun, Steinke 2016, proposition 1.6 (Gaussian); Dwork, McSherry, Nissim, Smith 2006 (Laplace);
    docs/theory/traffic.md, Theorem 7.

    >>> import hushuffle as hs
    >>> hs.plans.CentroidNoise(kind="gaussian", radius=10.0, scale=200.0).release(name="c", start="update").rho
    0.005
    >>> hs.plans.CentroidNoise(kind="laplace", radius=1.0, scale=8.0).release(name="c", start="update").epsilon
    0.5
    """

    kind: Noise
    radius: float
    scale: float

    def __post_init__(self) -> None:
        if self.kind not in get_args(Noise):
            _checks.reject("kind", "gaussian or laplace", self.kind)
        object.__setattr__(self, "radius", _checks.positive("radius", self.radius))
        object.__setattr__(self, "scale", _checks.positive("scale", self.scale))

    def release(self, *, name: str, start: str) -> Release:
        """Return one release of all centroids by `start`, with rho = 2 (radius/scale)^2 or epsilon = 4 radius/scale."""
        share = Fraction(self.radius) / Fraction(self.scale)
        if self.kind == "gaussian":
            return Release(name=name, start=start, rho=_upwards(2 * share * share))
        return Release(name=name, start=start, epsilon=_upwards(4 * share))

    def shorten(self, points: Points) -> Points:
        """Return `points`, shape (n, dimensions), with norms clipped to the radius."""
        norms = np.linalg.norm(points, axis=1) if self.kind == "gaussian" else np.abs(points).sum(axis=1)
        factors = np.minimum(1.0, self.radius / np.maximum(norms, 1e-300)) * (1 - 1e-6)
        return np.where(norms > self.radius, factors, 1.0).astype(points.dtype)[:, None] * points

    def draw(self, size: int, *, rng: Randomness) -> Floats:
        """Return `size` independent draws of the noise."""
        if self.kind == "laplace":
            signs = np.where(rng.coins(2**63, size), 1.0, -1.0)
            return -self.scale * signs * np.log(_uniforms(size, rng))
        pairs = (size + 1) // 2
        lengths, angles = np.sqrt(-2 * np.log(_uniforms(pairs, rng))), 2 * np.pi * _uniforms(pairs, rng)
        normal = np.concatenate([lengths * np.cos(angles), lengths * np.sin(angles)])
        return self.scale * normal[:size]


def nearest(points: Points, centroids: Points) -> Integers:
    """Return the nearest centroid of each point, shape (n,), the first on ties; `points` has shape (n, dimensions).

    >>> nearest(np.array([[0.0], [3.0], [9.0]]), np.array([[1.0], [8.0]])).tolist()
    [0, 0, 1]
    """
    if points.ndim != 2 or centroids.ndim != 2 or points.shape[1] != centroids.shape[1]:
        rule = "two matrices with as many columns, one for each dimension"
        _checks.reject("points, centroids", rule, f"<shapes {points.shape}, {centroids.shape}>")
    across = np.ascontiguousarray(centroids.T, dtype=points.dtype)
    half = (centroids.astype(np.float64) ** 2).sum(axis=1) / 2
    result = np.empty(len(points), dtype=np.int64)
    block = max(1, _BLOCK // len(centroids))
    for start in range(0, len(points), block):
        # |x - c|^2 = |x|^2 - 2 (x c - |c|^2 / 2)
        result[start : start + block] = np.argmax(points[start : start + block] @ across - half, axis=1)
    return result


def sums_and_counts(points: Points, codes: Integers, k: int, *, used: Flags | None = None) -> tuple[Floats, Floats]:
    """Return the sum, shape (k, dimensions), and number, shape (k,), of the `used` points of each of k centroids.

    >>> sums, counts = sums_and_counts(np.array([[1.0], [3.0], [9.0]]), np.array([0, 0, 1]), 2)
    >>> sums.tolist(), counts.tolist()
    ([[4.0], [9.0]], [2.0, 1.0])
    """
    rows = np.ones(len(points), dtype=np.bool_) if used is None else used
    sums = np.zeros((k, points.shape[1]))
    block = max(1, _BLOCK // points.shape[1])
    for start in range(0, len(points), block):
        part = slice(start, start + block)
        share = np.zeros((points[part].shape[0], k), dtype=points.dtype)
        share[np.arange(len(share)), codes[part]] = rows[part]
        sums += share.T @ points[part]
    return sums, np.bincount(codes[rows], minlength=k).astype(np.float64)


def means(sums: Floats, counts: Floats, previous: Points) -> Floats:
    """Return the means of the points of each centroid; a centroid without points keeps its previous place.

    >>> means(np.array([[4.0], [0.0]]), np.array([2.0, 0.0]), np.array([[1.0], [7.0]])).tolist()
    [[2.0], [7.0]]
    """
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], previous)


def noisy_means(
    sums: Floats,
    counts: Floats,
    previous: Points,
    *,
    noise: CentroidNoise,
    pooled: bool = False,
    rng: Randomness | None = None,
) -> Floats:
    """Return the new centroids from noisy sums and numbers; a centroid with a noisy number below 1 does not move.

    `sums` and `counts` are of points that `noise` has clipped. The result depends only on the noisy values, the
    radius and `previous`; its norm is at most the radius. With `pooled` it is one mean of all nodes' noisy values.

    Source: docs/theory/traffic.md, Theorem 7.

    >>> import hushuffle as hs
    >>> noise = hs.plans.CentroidNoise(kind="gaussian", radius=1.0, scale=0.01)
    >>> previous = np.zeros((1, 1))
    >>> noisy_means(np.array([[50.0]]), np.array([100.0]), previous, noise=noise,
    ...     rng=hs.reproducible(1)).round(2).tolist()
    [[0.5]]
    """
    source = secure() if rng is None else rng
    added = noise.draw(sums.size + counts.size, rng=source)
    rough = sums + added[: sums.size].reshape(sums.shape)
    numbers = counts + added[sums.size :] / noise.radius
    if pooled:
        rough, numbers = rough.sum(axis=0, keepdims=True), numbers.sum(keepdims=True)
    centroids = np.where(numbers[:, None] >= 1, rough / np.maximum(numbers, 1.0)[:, None], previous)
    return noise.shorten(centroids).astype(np.float64)


def _upwards(value: Fraction) -> float:
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def _uniforms(size: int, rng: Randomness) -> Floats:
    """Return numbers from (0, 1], multiples of 2**-53."""
    return ((rng.words(size) >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53
