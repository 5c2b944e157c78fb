"""Output probabilities of an explicit pair of neighbouring datasets, which give lower bounds, also under composition.

Merging events, or adding noise that does not depend on the target, is post-processing. Both only decrease the
divergence, so lower bounds stay valid.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushuffle.model import Witness
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.loss_sum import LossLattice

_HAIR: Final = 1e-12
"""Log-ratios that differ by at most this (nats) are taken to be equal; it counts as an error of the masses."""

_BIN: Final = 0.001
"""Width of the bins of log-ratios, in standard deviations, if it is between 1/16 and 1/2 of a lattice step."""

_MANY: Final = 1 << 14
"""Number of events up to which the bins are 1/16 of a lattice step."""

_WINDOW: Final = 2**21
"""Largest number of lattice points on each side of 0: 32 MB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DatasetPair:
    """Probabilities of the same output events under two neighbouring datasets, `p` and `q`, shape (events,).

    Each probability has a relative error of at most `doubt` and an absolute error of at most `p_error` or `q_error`.
    In addition, all of p and q may be wrong by the same factor, between e**-common and e**common. `mirrored`: whether
    the two datasets are exchanged if two values are, so that both orders have the same divergences.
    """

    witness: Witness
    p: Floats
    q: Floats
    doubt: float = 0.0
    common: float = 0.0
    mirrored: bool = False
    p_error: Floats | float = 0.0
    q_error: Floats | float = 0.0

    def swapped(self) -> DatasetPair:
        first, second = self.witness.target
        witness = Witness(family=self.witness.family, others=self.witness.others, target=(second, first))
        return replace(self, witness=witness, p=self.q, q=self.p, p_error=self.q_error, q_error=self.p_error)

    def divergence(self, epsilon: float) -> float:
        """Return a lower bound on the hockey-stick divergence, sum [p - e**epsilon q]_+, rounded down.

        >>> witness = Witness(family="alone", others=(0, 0), target=(0, 1))
        >>> pair = DatasetPair(witness=witness, p=np.array([0.75, 0.25]), q=np.array([0.25, 0.75]))
        >>> round(pair.divergence(0.0), 9)
        0.5
        """
        least = (self.p - self.p_error) * math.exp(-self.doubt)
        most = (self.q + self.q_error) * math.exp(self.doubt + epsilon * (1 + 8 * EPS))
        above = least > most
        total = float((least - most)[above].sum()) * math.exp(-self.common)
        return max(total * (1 - EPS * (16 + least.size)) - 4 * EPS * float(least[above].sum()), 0.0)

    def at_most(self, epsilon: float) -> float:
        """Return an upper bound on sum [p - e**epsilon q]_+, rounded up; valid only if no event of the pair is missing.

        >>> witness = Witness(family="alone", others=(0, 0), target=(0, 1))
        >>> pair = DatasetPair(witness=witness, p=np.array([0.75, 0.25]), q=np.array([0.25, 0.75]))
        >>> round(pair.at_most(0.0), 9)
        0.5
        """
        most = (self.p + self.p_error) * math.exp(self.doubt)
        least = (self.q - self.q_error) * math.exp(epsilon * (1 - 8 * EPS) - self.doubt)
        above = most > least
        total = float((most - least)[above].sum()) * (1 + EPS * (16 + most.size)) + 4 * EPS * float(most[above].sum())
        return min(total * math.exp(self.common), 1.0)


def inscribed(pair: DatasetPair, *, step: float) -> LossLattice:
    """Return the privacy loss distribution, on a lattice, of a pair that `pair` dominates; it gives lower bounds.

    The dominated pair's trade-off curve consists of chords, with slopes e**(step m), of the curve of `pair`. Events are
    sorted by decreasing likelihood ratio and merged (the last event in part) until the ratio of the merged event is on
    the lattice. The likelihood ratio of a remainder off the lattice is rounded down.

    >>> witness = Witness(family="alone", others=(0, 0), target=(0, 1))
    >>> pair = DatasetPair(witness=witness, p=np.array([0.6, 0.4]), q=np.array([0.4, 0.6]), doubt=0.0)
    >>> lattice = inscribed(pair, step=math.log(1.5))
    >>> lattice.mass.round(6).tolist(), lattice.first
    ([0.4, 0.0, 0.6], -1)
    """
    p, q = _by_ratio(pair, step)
    ratios = np.log(p / q)
    # A ratio that rounding leaves just below a lattice point belongs to it.
    places = np.floor((ratios + _HAIR) / step)
    events = p, q, places, np.exp(step * places), ratios - step * places <= _HAIR
    masses: defaultdict[int, float] = defaultdict(float)
    place, slope, gained, lost = 0, 1.0, 0.0, 0.0
    for each_p, each_q, own, growth, sharp in zip(*(each.tolist() for each in events), strict=True):
        left_p, left_q = each_p, each_q
        while True:
            if lost == 0:
                place, slope = int(own), growth
                if sharp:
                    masses[place] += left_p
                    break
            excess, deficit = gained - slope * lost, slope * left_q - left_p
            if excess >= deficit:
                gained, lost = gained + left_p, lost + left_q
                break
            share = max(excess, 0.0) / deficit
            masses[place] += gained + share * left_p
            left_p, left_q, gained, lost = (1 - share) * left_p, (1 - share) * left_q, 0.0, 0.0
    if lost > 0:
        masses[place] += min(gained, slope * lost)
    # A ratio above the window counts as the window's largest, one below is dropped: both lower the divergence.
    window = {place: mass for place, mass in masses.items() if place >= -_WINDOW}
    first = min(min(window, default=0), _WINDOW)
    mass = np.zeros(min(max(window, default=0), _WINDOW) - first + 1)
    for place, each in window.items():
        mass[min(place, _WINDOW) - first] += each
    return LossLattice(step=step, first=first, mass=mass, doubt=pair.doubt + 4 * _HAIR, common=pair.common)


def _by_ratio(pair: DatasetPair, step: float) -> tuple[Floats, Floats]:
    """Return p and q of the events by decreasing ln(p/q), merging events whose ln(p/q) share a bin."""
    least, most = pair.p - pair.p_error, pair.q + pair.q_error
    sound = (least > 0) & (most > 0)
    p, q = least[sound], most[sound]
    ratios = np.log(p / q)
    wide = _BIN * math.sqrt(float(np.sum(p * ratios**2)) / float(p.sum())) if p.size > _MANY else 0.0
    ratios = -np.floor(ratios / min(max(wide, step / 16), step / 2))
    event = ratios - ratios.min(initial=math.inf)
    if float(event.max(initial=0.0)) < _WINDOW:
        event = event.astype(np.int64)
    else:  # only the ratios that occur: there may be billions of bins between the extremes
        _, event = np.unique(ratios, return_inverse=True)
    first, second = (np.bincount(event, mass).astype(np.float64) for mass in (p, q))
    return first[second > 0], second[second > 0]
