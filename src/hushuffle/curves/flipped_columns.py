"""Central DP of shuffled columns of flipped bits (randomized Bloom filters), k >= 2 bits.

Upper end. The pool of `pooled`, with kinds of columns by how many bits they share with the pair's two logos.

Lower end. All others alike: there E[sum of n scores]_+/n without a pool is the exact divergence. With dummies the
datasets of `finite_blanket`.

Source: docs/theory/pool.md, Theorem 1 and Corollary 3; docs/theory/columns.md, Theorem 3; in small crowds
docs/theory/crowds.md, Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.curves.base import SearchedCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.finite_blanket import FiniteDivergence
from hushuffle.curves.flipped_faces import FacePools
from hushuffle.curves.flipped_pairs import OneLogo, PairFamily, Pool, dummies_kind
from hushuffle.curves.kinds import Kinds
from hushuffle.curves.mixed_sums import MixedSums
from hushuffle.curves.pooled import DEEPEST, MOST, SPARE, Spots, wanted
from hushuffle.model import Witness
from hushuffle.model.citation import BLANKET

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

WIDEST: Final = 24
"""With more bits than this there are too many kinds of columns: the plain privacy blanket is used."""

_DISTANCES: Final = 8
"""How many distances of the pair a lower end tries, spread over all."""

_SMALL: Final = 200
"""With so few columns, or too small a pool, the plain privacy blanket may be better, and is looked at too."""

_QUICK: Final = 8
"""Beyond this many bits the plain blanket takes seconds, and gains nothing."""

ROOMY: Final = 50.0
"""With fewer columns in the largest pool on average, one of half the columns is looked at too if it is empty."""

_COARSE: Final = 0.02
"""Smoothing to rank kinds by, in standard deviations of the sum."""

_CEDED: Final = 5e-4
"""Relative room above the pairs at distance k, so that close others need not be looked at."""

_EVERY: Final = 4
"""Up to so many bits a lower end tries all kinds of columns, beyond only the extreme ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FlippedColumns(SearchedCurve):
    """n columns of `width` bits, each bit flipped with probability `flip`, in uniformly random order.

    `level` is the size of divergence that the pools are made for (None: found at every epsilon); much larger ones are
    only found to be larger unless it is `thorough`. `distances` are the pairs examined, `trials` the datasets that a
    lower end tries.
    """

    width: int
    flip: Fraction
    n: int
    dummies: int
    local_epsilon: float
    blanket: FiniteDivergence
    level: float | None = None
    thorough: bool = False
    distances: tuple[int, ...] = ()
    trials: tuple[OneLogo, ...] = ()
    faces: dict[float | None, FacePools] = field(default_factory=dict)
    sources = (BLANKET,)
    proof = "pool of common reports, moduli of characteristic functions (upper bound), all others alike (lower bound)"

    @classmethod
    def of(cls, protocol: Protocol) -> FlippedColumns:
        """Return the divergence of uniformly shuffled columns.

        >>> import hushuffle as hs
        >>> flipping = hs.BitFlipping(width=2, p=0.25)
        >>> law = FlippedColumns.of(hs.Protocol(randomizer=flipping, shuffler=hs.UniformShuffle(), n=1000))
        >>> round(law.lower(0.1)[0], 4), round(law.upper(0.1), 4)
        (0.0023, 0.0023)
        """
        flipped = protocol.randomizer.law().flipped
        assert flipped is not None
        return cls(
            width=flipped.width,
            flip=flipped.flip,
            n=protocol.n,
            dummies=protocol.shuffler.dummies,
            local_epsilon=protocol.randomizer.local_epsilon,
            blanket=FiniteDivergence.of(protocol),
        )

    @property
    def pure(self) -> float:
        return self.local_epsilon

    def guess(self) -> float:
        return self.blanket.guess()

    def focus(self, delta: float) -> FlippedColumns:
        return replace(self, level=delta)

    def near(self, delta: float, *, often: bool = False) -> FlippedColumns:
        return replace(self, level=delta, thorough=often)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        if self.width > WIDEST:
            return self.blanket.blanket(epsilon)
        largest = (2 * float(self.flip)) ** self.width
        # With less than one column in the largest pool nothing is hidden by it.
        reports = self.n + self.dummies
        value = self._trials[0].family.local(epsilon) if reports * largest < 1 else self._best(epsilon)
        if self.width > _QUICK:
            return value
        if (self.n - 1) * MOST * largest < ROOMY:  # dummies are given away
            faces = FacePools(width=self.width, flip=self.flip, people=self.n - 1, level=self.level)
            value = min(value, self.faces.setdefault(self.level, faces).upper(epsilon, self.distances))
        few = self.dummies or reports <= _SMALL or wanted(value, reports - 1, SPARE / 2) > MOST * largest
        return min(value, self.blanket.blanket(epsilon)) if few else value

    def _best(self, epsilon: float) -> float:
        if self.level is not None:
            return self.pooled(epsilon, enough=1.0 if self.thorough else 2 * self.level)
        first = self.focus(DEEPEST).pooled(epsilon, enough=1.0)
        return min(first, self.focus(first).pooled(epsilon, enough=1.0))

    def likely(self, epsilon: float) -> float:
        return replace(self, distances=(self.width,)).upper(epsilon)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        if self.dummies:
            return self.blanket.lower(epsilon)
        best = max(self._trials, key=lambda trial: trial.at(epsilon, _COARSE))
        return best.lower(epsilon)

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.blanket.lower_at(witness, epsilon)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Return the pair of two opposite logos with all others at one of them, and what is worst in one round."""
        guess = self.guess()
        if self.dummies:
            return self.blanket.datasets(log_tail=log_tail)
        best = max(self.contenders(guess).trials, key=lambda trial: trial.at(guess, _COARSE))
        tried = {trial.witness: trial for trial in (self._trials[0], best)}.values()
        return tuple(pair for trial in tried for pair in trial.datasets(log_tail=log_tail))

    def contenders(self, epsilon: float) -> FlippedColumns:
        if self.dummies:
            return replace(self, distances=(self.width,), blanket=self.blanket.contenders(epsilon))
        kinds = [
            (h, w, v)
            for h in np.unique(np.linspace(1, self.width, _DISTANCES).astype(int)).tolist()
            for w in range(h + 1)
            for v in range(self.width - h + 1)
            if self.width <= _EVERY or (w in (0, h) and v == self.width - h)
        ]
        tried = [self._all_at(*kind) for kind in kinds]
        best = max(tried, key=lambda trial: trial.at(epsilon, _COARSE))
        trials = tuple({trial.witness: trial for trial in (*self._trials, best)}.values())
        return replace(self, distances=(self.width,), trials=trials)

    @cached_property
    def _trials(self) -> tuple[OneLogo, ...]:
        return self.trials or (self._all_at(self.width, 0, 0), self._all_at(self.width, self.width, 0))

    def _all_at(self, distance: int, ones: int, apart: int) -> OneLogo:
        return OneLogo.of(width=self.width, flip=self.flip, n=self.n, distance=distance, ones=ones, apart=apart)

    def pooled(self, epsilon: float, *, enough: float) -> float:
        """Return the upper end over the pairs at `distances`, or at all of them; anything once it is above `enough`."""
        worst, local, sizes, levels = 0.0, 1.0, np.zeros(1), np.full(1, -np.inf)
        for distance in self.distances or range(self.width, 0, -1):
            groups, spots = self._hidden[distance]
            if distance == self.width:
                local = groups[0].local(epsilon)  # the other pairs' are smaller: post-processing
            counts = spots.totals
            known = np.log(counts) + np.interp(counts, sizes, levels)
            sums = MixedSums(groups=groups, epsilon=epsilon, counts=spots.counts, shares=spots.shares)
            each = sums.raised(known) - np.log(counts)
            if distance == self.width:
                each = each + _CEDED
                order = np.argsort(counts)
                sizes, levels = counts[order], each[order]
            worst = max(worst, spots.mean(each, local) * (1 + 1e-9))
            if not self.distances and worst > enough:
                return local
        return min(worst, local)

    @cached_property
    def _hidden(self) -> _Hidden:
        assert self.level is not None
        return _Hidden(curve=self)


class _Hidden(dict[int, tuple[tuple[Kinds, ...], Spots]]):
    """The pairs by distance, each with its own pool, tabulated when first asked for."""

    def __init__(self, *, curve: FlippedColumns) -> None:
        super().__init__()
        self._curve = curve

    def __missing__(self, distance: int) -> tuple[tuple[Kinds, ...], Spots]:
        curve, delta = self._curve, self._curve.level or DEEPEST
        width, flip, people = curve.width, curve.flip, curve.n - 1
        others = people + curve.dummies
        pool = Pool.of(
            width=width,
            flip=flip,
            distance=distance,
            wanted=wanted(delta, others),
            enough=wanted(delta, others, SPARE / 2),
        )
        groups: list[Kinds] = []
        if people:
            groups.append(PairFamily.tabulated(width=width, flip=flip, distance=distance, pool=pool))
        if curve.dummies:
            groups.append(dummies_kind(width=width, flip=flip, distance=distance, pool=pool))
        sizes = tuple(size for size in (people, curve.dummies) if size)
        self[distance] = tuple(groups), Spots.of(sizes, pool.weight)
        return self[distance]
