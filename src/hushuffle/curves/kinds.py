"""The laws of a report by classes: for one pair of values of the target, and every kind of other person.

Inside a class all likelihood ratios are constant. `own` is the law of a report given that it is not in the pool
(see `pooled`); without a pool, that of the kind.

Source: docs/theory/pool.md, Theorem 1.
"""

from __future__ import annotations

import math
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
        return (self.near - self.far) - math.expm1(epsilon) * self.far, self.near + math.exp(epsilon) * self.far

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
        """Return the sum of (Q_a - e**epsilon Q_b)_+, rounded up: the divergence of a report that nothing hides."""
        gain, size = self.part(0).gain(epsilon)
        return min(float(np.maximum(gain + 8 * EPS * size, 0.0).sum()) * (1 + 4 * EPS * gain.size), 1.0)
