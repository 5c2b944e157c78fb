"""Privacy curve of a mechanism given by an imported privacy loss distribution: upper bounds only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushuffle.curves.base import SearchedCurve, bracket
from hushuffle.curves.dominating import DOTS
from hushuffle.model import Bound, Witness
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.loss_sum import LossLattice

_NOTHING = Witness(family="no dataset", others=(), target=(0, 1))
"""Placeholder witness: the curve is an upper bound only, and no dataset is known that attains it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ImportedCurve(SearchedCurve):
    """Upper bound on delta: the larger divergence of the dominating pairs `directions`; the lower bound is 0.

    >>> coin = LossLattice(step=1.0, first=-1, mass=np.array([0.25, 0.0, 0.75]))
    >>> round(ImportedCurve(directions=(coin,)).upper(0.0), 6)
    0.47409
    """

    directions: tuple[LossLattice, ...]
    sources = (DOTS,)
    proof = "a pair of laws that dominates every pair of neighbours, as imported"

    @property
    def pure(self) -> float:
        if any(law.infinity > 0 for law in self.directions):
            return math.inf
        return max(float(law.losses[law.mass > 0].max(initial=0.0)) for law in self.directions) * (1 + 8 * EPS)

    def guess(self) -> float:
        """Return four standard deviations of the privacy loss, the epsilon at which searches start."""
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

    def lower(self, epsilon: float) -> tuple[float, Witness]:  # noqa: ARG002 - nothing is known
        return 0.0, _NOTHING
