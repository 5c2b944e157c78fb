"""Central DP of shuffled columns of flipped bits (randomized Bloom filters), k >= 2 bits.

A column holds one bit position of k Bloom filters; its k bits are a bit pattern.

Upper bound. It uses a pool of common reports (see the module `pooled`). Columns are of one type if they have the same
number of bits in common with each of the target's two bit patterns.

Lower bound. All other columns have one bit pattern. Without a pool, E[sum of n scores]_+/n is the exact divergence.
With dummies the datasets of the module `finite_blanket` are used.

Source: docs/theory/pool.md, Theorem 1 and Corollary 3; docs/theory/randomizers.md, Theorem 17; in small crowds
docs/theory/crowds.md, Theorems 1, 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.curves.base import ReportCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.flipped_cover import COVERS, Cover, WeightedPools
from hushuffle.curves.laws.flipped_faces import FacePools
from hushuffle.curves.laws.flipped_pairs import CommonPool, OneLogo, PairFamily, dummies_kind
from hushuffle.curves.laws.kinds import Kinds
from hushuffle.curves.laws.mixed_sums import MixedSums
from hushuffle.curves.laws.pooled import DEEPEST, MOST, SPARE, Spots, wanted
from hushuffle.model import Witness
from hushuffle.model.citation import BLANKET

if TYPE_CHECKING:
    from hushuffle.mechanisms.release import Release

WIDEST: Final = 24
"""Largest number of bits for which all types of columns are tabulated; beyond, the plain blanket is used."""

_DISTANCES: Final = 8
"""Number of Hamming distances between the target's two bit patterns that a lower bound evaluates."""

_SMALL: Final = 200
"""Up to this many columns, or with too small a pool, the plain privacy blanket is evaluated in addition."""

_QUICK: Final = 8
"""Largest number of bits for which the plain blanket is evaluated; beyond, it takes seconds without a gain."""

ROOMY: Final = 50.0
"""Expected number of columns in the largest pool below which bounds for small crowds are evaluated as well."""

SCARCE: Final = 20.0
"""Expected number of columns in the largest pool below which all covers of `flipped_cover` are evaluated."""

_RARELY: Final = 0.15
"""Probability that a bit is flipped below which they are evaluated in larger pools as well."""

_LONELY: Final = 7.0
"""Expected number of columns in the largest pool below which bounds of `flipped_cover` are the smallest."""

LEVEL: Final = 1e-6
"""Delta for which `flipped_cover` selects references if no delta is given."""

_COARSE: Final = 0.02
"""Smoothing, in standard deviations of the sum, for the ranking of column types."""

_CEDED: Final = 5e-4
"""Relative increase of the bound at distance k, so that pairs with a nearly equal bound need no evaluation."""

_EVERY: Final = 4
"""Largest number of bits for which a lower bound evaluates all column types; beyond, only extreme types."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FlippedColumns(ReportCurve):
    """Privacy curve of n shuffled columns of `width` bits, each bit flipped with probability `flip`.

    `level` is the delta for which pools of common reports are chosen (None: searched at every epsilon). Unless
    `thorough` is set, an upper bound above twice `level` may be replaced by the larger local divergence. `distances`
    are the Hamming distances of the pairs examined (empty: all). `trials` are the datasets of a lower bound.
    """

    width: int
    flip: Fraction
    n: int
    dummies: int
    blanket: FiniteDivergence
    level: float | None = None
    thorough: bool = False
    distances: tuple[int, ...] = ()
    trials: tuple[OneLogo, ...] = ()
    faces: dict[float | None, FacePools] = field(default_factory=dict)
    weighted: dict[float, WeightedPools] = field(default_factory=dict)
    sources = (BLANKET,)
    proof = "pool of common reports, moduli of characteristic functions (upper bound), all others alike (lower bound)"

    @classmethod
    def of(cls, release: Release) -> FlippedColumns:
        """Privacy curve of uniformly shuffled columns of flipped bits.

        >>> import hushuffle as hs
        >>> from hushuffle.mechanisms.release import Release
        >>> flipping = hs.BitFlipping(width=2, p=0.25)
        >>> law = FlippedColumns.of(Release.of(hs.Protocol(randomizer=flipping, shuffler=hs.UniformShuffle(), n=1000)))
        >>> round(law.lower(0.1)[0], 4), round(law.upper(0.1), 4)
        (0.0023, 0.0023)
        """
        flipped = release.device.law().flipped
        assert flipped is not None
        return cls(
            width=flipped.width,
            flip=flipped.flip,
            n=release.n,
            dummies=release.dummies,
            local_epsilon=release.device.local_epsilon,
            blanket=FiniteDivergence.of(release),
        )

    def guess(self) -> float:
        return self.blanket.guess()

    def near(self, delta: float, *, often: bool = False) -> FlippedColumns:
        return replace(self, level=delta, thorough=often)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        if self.width > WIDEST:
            return self.blanket.blanket(epsilon)
        largest = (2 * float(self.flip)) ** self.width
        # If the largest pool holds less than one column on average, it hides nothing.
        reports = self.n + self.dummies
        value = self._trials[0].family.local(epsilon) if reports * largest < 1 else self._best(epsilon)
        if self.width > _QUICK:
            return value
        if self.small:
            enough = 1.0 if self.level is None or self.thorough or self._searched else 2 * self.level
            value = min(value, self._pools.upper(epsilon, self.distances, covers=self._covers, enough=enough))
            if self.level is not None and value <= self.level and self._pool < _LONELY:
                return value
            faces = FacePools(width=self.width, flip=self.flip, people=self.n - 1, level=self.level)
            value = min(value, self.faces.setdefault(self.level, faces).upper(epsilon, self.distances))
        affordable = self.dummies or reports <= _SMALL or wanted(value, reports - 1, SPARE / 2) > MOST * largest
        return min(value, self.blanket.blanket(epsilon)) if affordable else value

    def _best(self, epsilon: float) -> float:
        if self.level is not None:
            return self.pooled(epsilon, enough=1.0 if self.thorough else 2 * self.level)
        first = replace(self, level=DEEPEST).pooled(epsilon, enough=1.0)
        return min(first, replace(self, level=first).pooled(epsilon, enough=1.0))

    def likely(self, epsilon: float) -> float:
        return replace(self, distances=self._searched).upper(epsilon)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        if self.dummies:
            return self.blanket.lower(epsilon)
        best = max(self._trials, key=lambda trial: trial.at(epsilon, _COARSE))
        return best.lower(epsilon)

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.blanket.lower_at(witness, epsilon)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Two pairs: all others at one of two opposite patterns, and the worst pair of one round."""
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
        return replace(self, distances=self._searched, trials=trials)

    @property
    def _searched(self) -> tuple[int, ...]:
        """Hamming distances for searches: the largest, if the bound for it is likely to be the largest."""
        weighted = self.small and "weighted" in self._covers and self._pools.references(self.width, "weighted")
        return () if weighted else (self.width,)

    @property
    def _covers(self) -> tuple[Cover, ...]:
        """The covers that may have the smallest bound: with many columns in the pool, bits must be rarely flipped."""
        scarce = self._pool < SCARCE or self.flip < _RARELY
        if self.level is None:
            return ("alike",) if scarce else ()
        return COVERS if scarce else ("whole",)

    @property
    def small(self) -> bool:
        """Whether the largest pool is so small that bounds for small crowds are evaluated as well."""
        return 0 < MOST * self._pool < ROOMY

    def in_one_pool(self, epsilon: float) -> bool:
        """Return whether pools of all columns in sequence prove that delta is at most `level` at `epsilon`."""
        return self._pools.upper(epsilon, covers=("whole",)) <= self._pools.level

    @property
    def _pool(self) -> float:
        """Expected number of other columns in the largest pool; the bounds for small crowds reveal all dummies."""
        return (self.n - 1) * (2 * float(self.flip)) ** self.width

    @property
    def _pools(self) -> WeightedPools:
        pools = WeightedPools(width=self.width, flip=self.flip, people=self.n - 1, level=self.level or LEVEL)
        return self.weighted.setdefault(pools.level, pools)

    @cached_property
    def _trials(self) -> tuple[OneLogo, ...]:
        return self.trials or (self._all_at(self.width, 0, 0), self._all_at(self.width, self.width, 0))

    def _all_at(self, distance: int, ones: int, apart: int) -> OneLogo:
        return OneLogo.of(width=self.width, flip=self.flip, n=self.n, distance=distance, ones=ones, apart=apart)

    def pooled(self, epsilon: float, *, enough: float) -> float:
        """Upper bound over pairs at Hamming `distances`; above `enough` maybe the local divergence."""
        worst, local, sizes, levels = 0.0, 1.0, np.zeros(1), np.full(1, -np.inf)
        for distance in self.distances or range(self.width, 0, -1):
            groups, spots = self._hidden[distance]
            if distance == self.width:
                local = groups[0].local(epsilon)  # other pairs have a smaller local divergence: post-processing
            counts = spots.totals
            logarithms = np.log(counts) + np.interp(counts, sizes, levels)
            sums = MixedSums(groups=groups, epsilon=epsilon, counts=spots.counts, shares=spots.shares)
            each = sums.raised(logarithms) - np.log(counts)
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
    """Maps a Hamming distance to the column types and pool bins of its pairs, computed at first access."""

    def __init__(self, *, curve: FlippedColumns) -> None:
        super().__init__()
        self._curve = curve

    def __missing__(self, distance: int) -> tuple[tuple[Kinds, ...], Spots]:
        curve, delta = self._curve, self._curve.level or DEEPEST
        width, flip, people = curve.width, curve.flip, curve.n - 1
        sizes = tuple(size for size in (people, curve.dummies) if size)
        portion = 1.0
        if len(sizes) > 1:
            whole = self._outside(distance, CommonPool.none(width=width, distance=distance), portion)
            first, last = (float(kinds.sums((kinds.near - kinds.far) ** 2 / kinds.own).max()) for kinds in whole)
            # Dummies give more to the pool: the ratio of mean square scores, at most that of the least probabilities.
            portion = min(max(first / last, 1.0), (0.5 / float(flip)) ** width)
        others = people + portion * curve.dummies
        pool = CommonPool.of(
            width=width,
            flip=flip,
            distance=distance,
            wanted=wanted(delta, others),
            enough=wanted(delta, others, SPARE / 2),
        )
        chances = tuple(part * pool.weight for size, part in ((people, 1.0), (curve.dummies, portion)) if size)
        self[distance] = self._outside(distance, pool, portion), Spots.of(sizes, chances)
        return self[distance]

    def _outside(self, distance: int, pool: CommonPool, portion: float) -> tuple[Kinds, ...]:
        """Distributions of the columns outside the pool, and of dummies, which give it `portion` times as much."""
        curve = self._curve
        groups: list[Kinds] = []
        if curve.n > 1:
            groups.append(PairFamily.tabulated(width=curve.width, flip=curve.flip, distance=distance, pool=pool))
        if curve.dummies:
            groups.append(
                dummies_kind(width=curve.width, flip=curve.flip, distance=distance, pool=pool, portion=portion)
            )
        return tuple(groups)
