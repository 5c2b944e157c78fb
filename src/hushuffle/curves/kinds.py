"""Distributions of a report over classes: for the target's two values, and for every type of other person.

People with the same report distribution are of one type (`kind` in the code). Inside a class all likelihood ratios are
constant. `own` is the distribution of another person's report, given that it is not in the pool of common reports (see
the module `pooled`); without a pool, it is unconditional.

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
"""Rounding errors: a score is off by at most this times its `size`, a probability by this times itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinds:
    """Report distributions of the target's two values and of several types of other people, over classes of reports.

    `near` is Q_a, `far` is Q_b, and `own` the distribution of each type, shape (classes,), one type after the other.
    The classes of type i begin at `starts[i]`, shape (kinds,).
    """

    near: Floats
    far: Floats
    own: Floats
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, near: Floats, far: Floats, owns: Floats) -> Kinds:
        """Return the types whose report distributions are the rows of `owns`, shape (kinds, classes)."""
        kinds, classes = owns.shape
        return cls(
            near=np.tile(near, kinds),
            far=np.tile(far, kinds),
            own=owns.ravel(),
            starts=np.arange(kinds, dtype=np.int64) * classes,
        )

    @classmethod
    def listed(cls, parts: Sequence[tuple[Floats, Floats, Floats]]) -> Kinds:
        """Return the types in `parts`: the arrays near, far and own of each type, over classes of its own."""
        near, far, own = (np.concatenate([part[place] for part in parts]) for place in range(3))
        starts = np.cumsum([0, *(part[0].size for part in parts)])[:-1]
        return Kinds(near=near, far=far, own=own, starts=starts)

    def part(self, kind: int) -> Kinds:
        """Return the distributions for type number `kind` only."""
        inside = slice(self.starts[kind], self.starts[kind + 1] if kind + 1 < self.starts.size else None)
        return Kinds(
            near=self.near[inside], far=self.far[inside], own=self.own[inside], starts=np.zeros(1, dtype=np.int64)
        )

    def joined(self, other: Kinds) -> Kinds:
        """Return the types of this object followed by those of `other`."""
        return Kinds(
            near=np.append(self.near, other.near),
            far=np.append(self.far, other.far),
            own=np.append(self.own, other.own),
            starts=np.append(self.starts, self.near.size + other.starts),
        )

    def sums(self, terms: Floats) -> Floats:
        """Sum `terms`, shape (classes,), over the classes of each type; return the sums, shape (kinds,)."""
        return np.asarray(np.add.reduceat(terms, self.starts))

    def gain(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return Q_a - e**epsilon Q_b of each class, and the size that scales its rounding error, shapes (classes,)."""
        return gain(self.near, self.far, epsilon)

    def scores(self, epsilon: float) -> Scores:
        """Return scores (Q_a - e**epsilon Q_b)/own with probability `own`; both are 0 where only the target reports."""
        gain, size = self.gain(epsilon)
        hidden = self.own >= FAINT
        mass = np.where(hidden, self.own, 1.0)
        scores = Scores.of(np.where(hidden, gain, 0.0), np.where(hidden, size, 0.0), mass)
        return replace(scores, mass=np.where(hidden, self.own, 0.0))

    def seen(self, epsilon: float) -> Floats:
        """Return each type's divergence from reports that it (almost) never sends, rounded up, shape (kinds,)."""
        gain, size = self.gain(epsilon)
        return self.sums(np.where(self.own < FAINT, np.maximum(gain + 8 * EPS * size, 0.0), 0.0)) * (1 + 1e-12)

    def local(self, epsilon: float) -> float:
        """Return the divergence of one unshuffled report, rounded up."""
        report = self.part(0)
        return min(float(local(report.near, report.far, epsilon)), 1.0)


def gain(first: Floats, second: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Return Q_a - e**epsilon Q_b of each class, and the size that scales its rounding error."""
    return (first - second) - math.expm1(epsilon) * second, first + math.exp(epsilon) * second


def local(first: Floats, second: Floats, epsilon: float) -> Floats:
    """Return one unshuffled report's divergence: (Q_a - e**epsilon Q_b)_+ summed on the last axis, rounded up."""
    value, size = gain(first, second, epsilon)
    total: Floats = np.maximum(value + 8 * EPS * size, 0.0).sum(axis=-1) * (1 + 4 * EPS * first.shape[-1])
    return total
