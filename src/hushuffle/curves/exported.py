"""Laws of the privacy loss on a lattice, for other accountants: one that dominates, or one that is attained.

Pessimistic: the dominating pairs of the rounds, added up. The curve is symmetric, so one law stands for both
directions. Optimistic: explicit datasets, the same in all rounds of a protocol, each way round; masses are lowered and
those of the other dataset raised by all that is known of their errors, and what does not reach a lattice point
is left out.

Source: docs/theory/curves.md, Lemma 6.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from hushuffle.curves.base import Laws, spread
from hushuffle.curves.dataset_pair import DatasetPair, inscribed
from hushuffle.curves.dominating import TabulatedCurve
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

_MARGIN: Final = 1e-11
"""Relative: more than the ratios that a lattice takes to be equal differ by, and the rounding on the way."""


def dominating_law(laws: Laws, *, step: float, negligible: float) -> LossLattice:
    """Return a law, under P, of the loss of a pair that dominates all rounds together.

    `negligible` is about the mass that may be put at infinity, in all.
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
    """Return laws of the loss, under P and the other way round, that explicit datasets attain, best at about `delta`.

    Rounds without known datasets are left out.
    """
    rounds = sum(times for _, times in laws)
    known = [(law.datasets(log_tail=math.log(delta / rounds) - 8), times) for law, times in laws]
    known = [(pairs, times) for pairs, times in known if pairs]
    if not known:
        nothing = LossLattice(step=step, first=0, mass=np.ones(1))
        return nothing, nothing
    best, found = -1.0, None
    for choice in range(max(len(pairs) for pairs, _ in known)):
        chosen = [(pairs[min(choice, len(pairs) - 1)], times) for pairs, times in known]
        ways = [
            [(inscribed(_lowered(pair), step=step), times) for pair, times in way]
            for way in (chosen, [(pair.swapped(), times) for pair, times in chosen])
        ]
        figure = max(LossSum.of(way, tilt=best_tilt(way, delta=delta)).epsilon_below(delta) for way in ways)
        if figure > best:
            best, found = figure, ways
    assert found is not None
    return _added(found[0]), _added(found[1])


def _lowered(pair: DatasetPair) -> DatasetPair:
    """Return the pair with p at its lowest and q at its highest."""
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
