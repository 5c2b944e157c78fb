"""Extend bounds on a privacy curve at some epsilons to certified bounds at all epsilons, and on derived figures.

With x = e**epsilon the curve h is convex and decreasing, h(0) = 1, h' >= -1 and h(1/x) = 1 - (1 - h(x))/x. So h lies
below every chord of upper bounds. Lower bounds extend by lines. To the right of a point, the line starts at the point's
lower bound and has the slope of the chord from an upper bound further left to that lower bound. To the left of a point,
the line has the slope of the chord from the lower bound to an upper bound further right. The trade-off curve follows by
duality: the smallest false negative rate at a false positive rate a is f(a) = sup_x 1 - h(x) - x a.

Source: docs/theory/curves.md, Lemma 1; Dong, Roth, Su 2022, Proposition 6 (duality).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import ndtri

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.normal_pair import shift_between

_HAIR: Final = 1e-12
"""Relative margin, larger than all rounding errors of interpolation."""

_TRACE: Final = 1e-15
"""Absolute margin for rounding errors of probabilities near 1."""

_DIGITS: Final = 1e-9
"""Relative error of the computed shift between two Gaussians."""

Ends = tuple[Floats, Floats]


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownCurve:
    """`lower` <= delta <= `upper` at increasing `epsilons` (nats) from 0 on, all shape (points,)."""

    epsilons: Floats
    lower: Floats
    upper: Floats

    def delta(self, epsilons: Floats) -> Ends:
        """Lower and upper bounds on delta at `epsilons` >= 0, same shape.

        >>> known = KnownCurve(epsilons=np.array([0.0, 1.0]), lower=np.array([0.4, 0.0]), upper=np.array([0.5, 0.0]))
        >>> [ends.round(3).tolist() for ends in known.delta(np.array([0.0, 0.5, 2.0]))]
        [[0.4, 0.162, 0.0], [0.462, 0.288, 0.0]]
        """
        (low_x, low), (high_x, high) = self._below, self._above
        least = _between(low_x, low, np.expm1(epsilons * (1 + 8 * EPS))) * (1 - _HAIR)
        most = np.minimum(_between(high_x, high, np.expm1(epsilons * (1 - 8 * EPS))) * (1 + _HAIR), 1.0)
        return np.minimum(least, most), most

    def epsilon(self, deltas: Floats) -> Ends:
        """Lower and upper bounds on epsilon (nats); the upper bounds may be infinite."""
        (low_x, low), (high_x, high) = self._below, self._above
        least = np.log1p(_crossing(low_x, low, deltas)) * (1 - _HAIR)
        most = np.log1p(_crossing(high_x, high, deltas)) * (1 + _HAIR)
        most = np.where(deltas < high[-1], np.inf, most)
        return np.minimum(np.maximum(least, 0.0), most), np.maximum(most, 0.0)

    def false_negatives(self, false_positives: Floats) -> Ends:
        """Lower and upper bounds on the smallest false negative rate, at rates in [0, 1]."""
        ends = []
        for line, side in ((self._above, -1), (self._below, 1)):
            corner = _hull(*line)
            x, y = (part[corner] for part in line)
            slopes = np.diff(y) / np.diff(x)  # increasing, from at most -1 to 0
            place = np.searchsorted(slopes, -false_positives)
            ends.append(1 - y[place] - (1 + x[place]) * false_positives + side * _TRACE)
        most = np.clip(ends[1], 0.0, 1 - false_positives)
        return np.clip(ends[0], 0.0, most), most

    def gaussians(self, last: float) -> tuple[float, float]:
        """Return (low, high): the curves of mu-GDP with mu = low and mu = high bound this curve on [0, `last`] nats."""
        (low_x, low), (high_x, high) = self._below, self._above
        end = float(np.expm1(last))
        inside = (low_x >= 0) & (low_x <= end)
        places = np.append(low_x[inside], end)
        values = np.append(low[inside], _between(low_x, low, np.array([end]))) * (1 - _HAIR)
        below = float(shift_between(np.log1p(places), values).min()) * (1 - _DIGITS)
        chords = (high_x[1:] > 0) & (high_x[:-1] < end)
        slopes = -(np.diff(high) / np.diff(high_x))[chords]
        hits = np.minimum(high[:-1][chords] + (1 + high_x[:-1][chords]) * slopes, 1.0)
        steps = shift_between(np.log1p(high_x[1:][chords]), high[:-1][chords])
        with np.errstate(invalid="ignore"):
            above = float(np.fmin(ndtri(hits) - ndtri(slopes), steps).max(initial=0.0))
        return below, max(above * (1 + _DIGITS), below)

    def least_gaussian(self, last: float, *, delta: float = 0.0) -> tuple[float, float]:
        """Return bounds on the least mu whose mu-GDP curve is above this one where it exceeds `delta`, up to `last`."""
        low_x, low = self._below
        inside = (low_x >= 0) & (low_x <= float(np.expm1(last))) & (low > delta)
        above = self.gaussians(last)[1]
        below = shift_between(np.log1p(low_x[inside]), low[inside] * (1 - _HAIR)).max(initial=0.0)
        return min(float(below) * (1 - _DIGITS), above), above

    def loss(self, delta: float) -> float:
        """Return a privacy loss (nats) exceeded with probability at most `delta`, under either dataset of any pair.

        P(L > t) <= h(e**s)/(1 - e**(s - t)) for every s < t.
        """
        small = self.upper < delta
        if not bool(small.any()):
            return float(np.inf)
        losses = self.epsilons[small] - np.log1p(-self.upper[small] / delta)
        return float(losses.min()) * (1 + _HAIR)

    @cached_property
    def _both(self) -> tuple[Floats, Floats, Floats]:
        """Return x - 1 from x = 0 on, and lower and upper bounds on h, with the mirror images of the points."""
        levels, falls = self.epsilons[:0:-1], np.exp(-self.epsilons[:0:-1])
        low = np.maximum.accumulate(self.lower[::-1])[::-1]
        high = np.minimum.accumulate(self.upper)

        def mirrored(ends: Floats) -> Floats:
            return (np.expm1(levels) + ends[:0:-1]) * falls

        x = np.concatenate([[-1.0], np.expm1(-levels), np.expm1(self.epsilons)])
        least = np.concatenate([[1.0], mirrored(low) * (1 - 4 * EPS), low])
        return x, least, np.concatenate([[1.0], np.minimum(mirrored(high) * (1 + 4 * EPS), 1.0), high])

    @cached_property
    def _above(self) -> tuple[Floats, Floats]:
        """Corners (x - 1, h) of the lower convex hull of the upper bounds, which lies above the curve."""
        x, _, high = self._both
        corner = _hull(x, high)
        return x[corner], high[corner]

    @cached_property
    def _below(self) -> tuple[Floats, Floats]:
        """Corners (x - 1, h) of a decreasing polygonal line below the curve, shape (corners,) each."""
        x, low, high = self._both
        gaps = x[None, :] - x[:, None]
        later, doubt = gaps > 0, 4 * EPS * (1 + np.abs(x))
        with np.errstate(divide="ignore", invalid="ignore"):
            falls = (low * (1 - 4 * EPS))[:, None] - high[None, :]
            right = np.where(later, falls / (gaps + doubt[None, :]), 0.0).max(axis=1)
            rises = (high * (1 + 4 * EPS))[None, :] - low[:, None]
            room = -gaps - doubt[:, None]
            left = np.where((room > 0) & ~later, np.maximum(rises, 0.0) / room, 1.0).min(axis=1)
        # The curve is convex, so a bound on its slope at a point holds at all points further right (left).
        right = np.maximum.accumulate(np.maximum(right, 0.0)[::-1])[::-1]
        left = np.minimum.accumulate(np.minimum(left, 1.0))
        low, steps = low.copy(), np.diff(x)
        for place in range(low.size - 2, -1, -1):
            low[place] = max(low[place], low[place + 1] + right[place + 1] * steps[place] * (1 - 4 * EPS))
        for place in range(low.size - 1):
            low[place + 1] = max(
                low[place + 1], low[place] * (1 - 4 * EPS) - left[place] * steps[place] * (1 + 4 * EPS)
            )
        corners_x, corners_y = [x[:1]], [low[:1]]
        meet, height = _meeting((x[:-1], low[:-1], left[:-1]), (x[1:], low[1:], right[1:]))
        corners_x.append(np.column_stack([meet, x[1:]]).ravel())
        corners_y.append(np.column_stack([height, low[1:]]).ravel())
        # Beyond the last point the line continues to 0 with the slope before that point.
        corners_x.append(x[-1:] + (low[-1:] / left[-1:] if left[-1] > 0 else 0.0))
        corners_y.append(np.zeros(1))
        return np.concatenate(corners_x), np.minimum.accumulate(np.concatenate(corners_y))


def _meeting(first: tuple[Floats, Floats, Floats], second: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats]:
    """Where two lines (x, y, steepness) meet: one falls right of `first`, the other rises left of `second`."""
    (x, y, steep), (end, last, flat) = first, second
    differ = steep > flat
    fall = np.where(differ, steep - flat, 1.0)
    meet = np.clip(x + (y - last - flat * (end - x)) / fall, x, end)
    meet = np.where(differ, meet, end)
    return meet, np.minimum(last + flat * (end - meet), y)


def _hull(x: Floats, y: Floats) -> list[int]:
    """Indices of the corners of the lower convex hull; x is nondecreasing, y decides at ties."""
    corners: list[int] = []
    for place in range(x.size):
        if corners and x[place] == x[corners[-1]]:
            corners.pop()
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (y[b] - y[a]) * (x[place] - x[a]) < (y[place] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(place)
    return corners


def _between(x: Floats, y: Floats, at: Floats) -> Floats:
    """Values, at places `at`, of the decreasing polygonal line through the points (x, y)."""
    right = np.clip(np.searchsorted(x, at), 1, x.size - 1)
    gap = np.where(x[right] > x[right - 1], x[right] - x[right - 1], 1.0)
    share = np.clip((x[right] - at) / gap, 0.0, 1.0)
    heights: Floats = y[right] + (y[right - 1] - y[right]) * share
    return heights


def _crossing(x: Floats, y: Floats, level: Floats) -> Floats:
    """The x at which the decreasing line through the points reaches height `level`; else its last x."""
    right = np.clip(y.size - np.searchsorted(y[::-1], level, side="right"), 1, y.size - 1)
    fall = np.where(y[right - 1] > y[right], y[right - 1] - y[right], 1.0)
    share = np.clip((level - y[right]) / fall, 0.0, 1.0)
    points: Floats = x[right] - (x[right] - x[right - 1]) * share
    return points
