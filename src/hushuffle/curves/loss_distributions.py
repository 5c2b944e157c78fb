"""Privacy loss distributions of other accountants: import as an upper bound, export of an upper and a lower bound.

The pessimistic distribution composes the dominating pairs of all rounds. Its privacy curve is the same in both orders
of the datasets. The optimistic distributions belong to explicit datasets, the same in all rounds, in both orders. The
first dataset's probabilities are lowered, and the second's raised, by their errors. Losses are rounded down.

Source: docs/theory/curves.md, Lemma 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushuffle.curves.base import Laws, SearchedCurve, bracket, spread
from hushuffle.curves.dataset_pair import DatasetPair, inscribed
from hushuffle.curves.dominating import DOTS, TabulatedCurve
from hushuffle.model import Bound, Witness
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

_MARGIN: Final = 1e-11
"""Relative error margin: above the difference of ratios that a lattice merges, plus all rounding."""


def dominating_law(laws: Laws, *, step: float, negligible: float) -> LossLattice:
    """Return the privacy loss distribution of a pair (P, Q) that dominates the composition of all rounds, under P.

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
    """Return the privacy loss distributions of an explicit pair of neighbouring datasets, and of the swapped pair.

    Of all known pairs, the one with the largest epsilon at `delta` is chosen. Rounds without a known pair are omitted.
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
