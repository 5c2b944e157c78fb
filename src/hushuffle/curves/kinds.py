"""The laws of a report by classes: for one pair of values of the target, and every kind of other person.

Inside a class all likelihood ratios are constant. `own` is the law of a report given that it is not in the pool
(see `pooled`); without a pool, that of the kind.

Source: docs/theory/pool.md, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.score_sums import FAINT, Scores

NOISE: Final = 24 * EPS
"""Relative error of a score, in units of its `size`, and of a mass."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinds:
    """Q_a and Q_b, `near` and `far`, and the kinds' own laws, shape (classes,), one kind after the other.

    Kind i has the classes from `starts[i]` on, shape (kinds,).
    """

    near: Floats
    far: Floats
    own: Floats
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, near: Floats, far: Floats, owns: Floats) -> Kinds:
        """Return the kinds whose laws are the rows of `owns`, shape (kinds, classes)."""
        kinds, classes = owns.shape
        return cls(
            near=np.tile(near, kinds),
            far=np.tile(far, kinds),
            own=owns.ravel(),
            starts=np.arange(kinds, dtype=np.int64) * classes,
        )

    @classmethod
    def listed(cls, parts: Sequence[tuple[Floats, Floats, Floats]]) -> Kinds:
        """Return the kinds whose classes are listed one by one: near, far and own of each."""
        near, far, own = (np.concatenate([part[place] for part in parts]) for place in range(3))
        starts = np.cumsum([0, *(part[0].size for part in parts)])[:-1]
        return Kinds(near=near, far=far, own=own, starts=starts)

    def part(self, kind: int) -> Kinds:
        """Return the same with one kind only."""
        inside = slice(self.starts[kind], self.starts[kind + 1] if kind + 1 < self.starts.size else None)
        return Kinds(
            near=self.near[inside], far=self.far[inside], own=self.own[inside], starts=np.zeros(1, dtype=np.int64)
        )

    def joined(self, other: Kinds) -> Kinds:
        """Return the kinds of both."""
        return Kinds(
            near=np.append(self.near, other.near),
            far=np.append(self.far, other.far),
            own=np.append(self.own, other.own),
            starts=np.append(self.starts, self.near.size + other.starts),
        )

    def sums(self, terms: Floats) -> Floats:
        """Return the sum of `terms`, shape (classes,), over each kind's classes, shape (kinds,)."""
        return np.asarray(np.add.reduceat(terms, self.starts))

    def gain(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return Q_a - e**epsilon Q_b, and the size that its rounding is relative to, shapes (classes,)."""
        return gain(self.near, self.far, epsilon)

    def scores(self, epsilon: float) -> Scores:
        """Return (Q_a - e**epsilon Q_b)/own with mass `own`; 0 where a report shows that it is the target's."""
        gain, size = self.gain(epsilon)
        hidden = self.own >= FAINT
        mass = np.where(hidden, self.own, 1.0)
        scores = Scores.of(np.where(hidden, gain, 0.0), np.where(hidden, size, 0.0), mass)
        return replace(scores, mass=np.where(hidden, self.own, 0.0))

    def seen(self, epsilon: float) -> Floats:
        """Return the divergence of the target's report among those that a kind (hardly) ever gives, shape (kinds,)."""
        gain, size = self.gain(epsilon)
        return self.sums(np.where(self.own < FAINT, np.maximum(gain + 8 * EPS * size, 0.0), 0.0)) * (1 + 1e-12)

    def local(self, epsilon: float) -> float:
        """Return the divergence of a report that nothing hides, rounded up."""
        one = self.part(0)
        return min(float(local(one.near, one.far, epsilon)), 1.0)


def gain(first: Floats, second: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return Q_a - e**epsilon Q_b by class, and the size that its rounding is relative to."""
    return (first - second) - math.expm1(epsilon) * second, first + math.exp(epsilon) * second


def local(first: Floats, second: Floats, epsilon: float) -> Floats:
    """Return sum of (Q_a - e**epsilon Q_b)_+ over the last axis, rounded up: the divergence of a report in the open."""
    value, size = gain(first, second, epsilon)
    total: Floats = np.maximum(value + 8 * EPS * size, 0.0).sum(axis=-1) * (1 + 4 * EPS * first.shape[-1])
    return total
