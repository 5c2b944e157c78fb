"""Privacy curves of k-ary randomized response behind a uniform shuffle: k = 2, and k >= 3."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from hushuffle.curves.base import NEAR, PrivacyCurve, ReportCurve, Start, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws import symmetric_pairs, tilted_counts
from hushuffle.curves.laws.blanket_bound import BlanketBound
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.local import local_divergence
from hushuffle.curves.laws.symmetric_dummies import HeldAlike
from hushuffle.curves.laws.symmetric_pairs import AT_FIRST, AT_THIRD, AllAtFirst, AllAtThird
from hushuffle.curves.laws.tilted_counts import AHEAD, Blocks, Compositions, SignedCounts
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Bound, Witness
from hushuffle.model.citation import BLANKET, DARROCH
from hushuffle.numerics.binomial import LOG_TAIL, Floats
from hushuffle.numerics.roots import EDGE

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw

_EVERY: Final = 1600
"""Number of people up to which every composition is evaluated; beyond, the number of blocks of compositions."""

_OFTEN: Final = 600
"""Number of blocks for curves evaluated often: increases epsilon by at most 0.5/600, in a third of the time."""

_GROUP: Final = 12
"""Number of neighbouring blocks that share a first bound."""

_BEST: Final = 2_000
"""Largest number of people for which the worst datasets of one round are also used for several rounds."""

_SOME: Final = 48
"""Approximate number of compositions of the others that a lower bound evaluates."""


_CROWD: Final = 300
"""Smallest number of people for which one table has all numbers of dummies: it ignores the count at a third value."""

_SPREAD: Final = (25.0, 4e6)
"""Variances of a random number of dummies whose distribution enters the tables of one curve."""

_SPARE: Final = 0.01
"""Share of delta by which each end of epsilon is moved: then curves at a few numbers of dummies confirm the bracket."""

_LEVEL: Final = 1e-9
"""Every delta of at least this is computed from the same tables."""

_SHORT: Final = -60.0
"""Logarithm of the probability of a tail that tables for many evaluations leave out, at the most."""

_FAR_AHEAD: Final = 0.01
"""Relative distance of the losses' deviations above which the second family of datasets is not compared."""

_TINY: Final = 5e-324
"""Smallest positive float: below the pure epsilon, delta is positive."""

Table = TypeVar("Table", AllAtThird, HeldAlike)


@dataclass(frozen=True, kw_only=True, eq=False)
class Binary(ReportCurve):
    """Privacy curve of shuffled binary randomized response, over all compositions of the other people's values.

    A composition is the number y of other people with value 1. `starts` has y for each block of compositions, shape
    (blocks,), and `doubt` is b (see `Blocks`).
    """

    law: Symmetric
    n: int
    dummies: int
    starts: Floats
    doubt: int
    sources = (DARROCH,)
    proof = "every composition of the other people, summed from its characteristic function (in blocks at large n)"

    @classmethod
    def of(cls, *, law: Symmetric, local_epsilon: float, n: int, dummies: int) -> Binary:
        block = -(-n // _EVERY)
        starts = np.arange(0, n, block, dtype=np.float64)
        return cls(law=law, local_epsilon=local_epsilon, n=n, dummies=dummies, starts=starts, doubt=block - 1)

    def guess(self) -> float:
        spread = math.sqrt(self.n * float(self.law.truth * self.law.lie) + self.dummies / 4 + 1)
        return min(self.pure / 2, 4 * float(self.law.theta) / spread)

    def upper(self, epsilon: float) -> float:
        return self._worst([(self, epsilon)])[0]

    def holds(self, epsilon: float, delta: float) -> bool:
        return self._worst([(self, epsilon)], goal=delta)[0] <= delta

    @staticmethod
    def uppers(curves: Sequence[PrivacyCurve], epsilon: float) -> list[float]:
        own = [curve for curve in curves if isinstance(curve, Binary)]
        alike = len({(curve.law, curve.blocks.starts.shape) for curve in own}) == 1 and len(own) == len(curves)
        return Binary._worst([(c, epsilon) for c in own]) if alike else [curve.upper(epsilon) for curve in curves]

    def along(self, epsilons: Iterator[float]) -> Iterator[float]:
        while several := [(self, epsilon) for epsilon in islice(epsilons, AHEAD)]:
            yield from self._worst(several)

    @staticmethod
    def _worst(cases: Sequence[tuple[Binary, float]], goal: float = 0.0) -> list[float]:
        law, pure = cases[0][0].law, cases[0][0].pure
        if all(epsilon >= pure for _, epsilon in cases):
            return [0.0] * len(cases)
        bounds = Blocks.worst([(curve.blocks, epsilon) for curve, epsilon in cases], **_chances(law), goal=goal)
        return [
            max(min(bound, local_divergence(law, epsilon)), _TINY) if epsilon < pure else 0.0
            for bound, (_, epsilon) in zip(bounds.tolist(), cases, strict=True)
        ]

    @cached_property
    def blocks(self) -> Blocks:
        """The last group may repeat the last block; the groups are single blocks if there are few."""
        starts = self.starts[:, None]
        if self.starts.size > 4 * _GROUP and self.starts.size == -(-self.n // (self.doubt + 1)):
            starts = np.pad(self.starts, (0, -self.starts.size % _GROUP), mode="edge").reshape(-1, _GROUP)
        return Blocks(n=self.n, dummies=self.dummies, starts=starts, doubt=self.doubt)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        ones = self.tried
        values, _ = _ends([self], ones, 0, epsilon)
        best = int(values.argmax())
        count = int(ones[best])
        witness = Witness(family="worst composition found", others=(self.n - 1 - count, count), target=(1, 0))
        return float(values[best]), witness

    @cached_property
    def tried(self) -> Floats:
        """Numbers of other people with value 1 that a lower bound evaluates."""
        return np.unique(np.append(self.starts[:: max(1, self.starts.size // _SOME)], self.n - 1.0))

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.lowers_at([self], witness, epsilon)[0]

    @staticmethod
    def lowers_at(curves: Sequence[PrivacyCurve], witness: Witness, epsilon: float) -> list[float]:
        own = [curve for curve in curves if isinstance(curve, Binary)]
        if len(own) < len(curves) or any(curve.law != own[0].law for curve in own):
            return [curve.lower_at(witness, epsilon) for curve in curves]
        if witness.target != (1, 0):
            return [0.0] * len(own)
        ones = np.full((len(own), 1), float(witness.others[1] if len(witness.others) > 1 else 0))
        return [float(low) for low in _ends(own, ones, 0, epsilon)[0][:, 0]]

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        if self.dummies:
            listed = symmetric_pairs.composition(self.law, self.n, 0, self.dummies, log_tail)
            return listed or symmetric_pairs.all_alike(self.law, self.n, self.dummies, log_tail)
        ends = symmetric_pairs.at_first(self.law, self.n, log_tail)
        if self.n > _BEST:
            return (ends,)
        others = self.lower(self.guess())[1].others
        ones = others[1] if len(others) > 1 else 0
        return (ends, *symmetric_pairs.composition(self.law, self.n, ones, 0, log_tail))

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        del delta
        if not often or self.starts.size <= _OFTEN:
            return self
        block = -(-self.n // _OFTEN)
        return replace(self, starts=np.arange(0, self.n, block, dtype=np.float64), doubt=block - 1)

    def place(self, delta: float, guess: float) -> tuple[float, float]:
        return self.about(delta, guess, relative=NEAR), 0.0

    def contenders(self, epsilon: float) -> PrivacyCurve:
        blocks, starts = self.blocks.starts, self.starts
        _, above = _ends([self], blocks[:, 0], blocks.shape[1] * (self.doubt + 1) - 1, epsilon)
        if blocks.shape[1] > 1:
            _, high = _ends([self], blocks[int(above.argmax())], self.doubt, epsilon)
            starts = np.unique(blocks[above >= min(float(high.max()), float(above.max()))])
            _, above = _ends([self], starts, self.doubt, epsilon)
        return replace(self, starts=np.sort(starts[np.argsort(above)[-_SOME // 2 :]]))

    def only(self, few: PrivacyCurve, epsilon: float) -> PrivacyCurve:
        return replace(self, starts=few.starts) if isinstance(few, Binary) else self.contenders(epsilon)

    def likely(self, epsilon: float) -> float:
        return self.likelies([self], epsilon)[0]

    @staticmethod
    def likelies(curves: Sequence[PrivacyCurve], epsilon: float) -> list[float]:
        own = [curve for curve in curves if isinstance(curve, Binary)]
        if len(own) < len(curves) or len({(curve.law, curve.tried.size) for curve in own}) > 1:
            return [curve.likely(epsilon) for curve in curves]
        return [float(low) for low in _ends(own, np.stack([c.tried for c in own]), 0, epsilon)[0].max(axis=1)]


def _ends(curves: Sequence[Binary], ones: Floats, doubt: int, epsilon: float) -> tuple[Floats, Floats]:
    """Both bounds for the blocks ones .. ones + doubt, in the shape of `ones`: a row for each curve, all of one law."""
    people, dummies = np.array([[curve.n, curve.dummies] for curve in curves], dtype=np.float64).T[..., None]
    zeros = np.maximum(people - 1 - ones - doubt, 0.0).reshape(ones.shape)
    others = Compositions(ones=ones, zeros=zeros, dummies=dummies.reshape(-1, *[1] * (ones.ndim - 1)))
    return tilted_counts.hockey_stick(others, **_chances(curves[0].law), epsilon=epsilon)


@lru_cache(maxsize=64)
def _blanket(law: Symmetric, n: int, dummies: int, counted: DummyLaw | None, log_tail: float) -> BlanketBound:
    """Cached: the scale of the loss and the curve for many evaluations use the same table."""
    if counted is None:
        return BlanketBound.of(k=law.k, n=n, dummies=dummies, **_chances(law), log_tail=log_tail)
    theta, lie = float(law.theta), float(law.lie)
    return BlanketBound.random(k=law.k, n=n, theta=theta, lie=lie, dummies=counted, log_tail=log_tail)


def _chances(law: Symmetric) -> dict[str, float]:
    return {"truth": float(law.truth), "lie": float(law.lie), "theta": float(law.theta)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Kary(ReportCurve):
    """Privacy curve of shuffled k-ary randomized response, k >= 3, with `dummies` uniform dummies.

    `blanket` gives upper bounds; `signed`, `third`, `first` and `alike` give lower bounds from explicit datasets. These
    are computed at first use, without cells that hardly matter at delta = `level`, or with tables for many evaluations
    (`often`). With `counted`, the number of dummies is random, and at most `dummies`; `mean` is the mean of the curves
    for each number. `general` is the curve of any finite randomizer: it needs no tables in large crowds.
    """

    law: Symmetric
    n: int
    dummies: int
    general: FiniteDivergence | None = None
    counted: DummyLaw | None = None
    mean: PrivacyCurve | None = None
    level: float | None = None
    often: bool = False
    sources = (BLANKET,)
    proof = "privacy blanket summed exactly (upper bound), explicit neighbouring datasets (lower bound)"

    @property
    def _log_tail(self) -> float:
        """Logarithm of the probability of a tail that is left out; it changes bounds on `level` by less than 1e-9."""
        if self.level is None:
            return LOG_TAIL
        rare = math.log(max(self.level / self.law.k, 1e-240)) - 25
        return min(rare, _SHORT) if self.often else rare

    @property
    def _tight(self) -> FiniteDivergence | None:
        """`general`, if its bounds are as good as those of this class: in large crowds without dummies."""
        return self.general if self.general is not None and self.general.tight and not self.dummies else None

    @cached_property
    def blanket(self) -> BlanketBound:
        whole = _blanket(self.law, self.n, self.dummies, self.counted, self._log_tail)
        whole = whole if self.level is None else whole.without_traces(self.level)
        return whole.tabulated(self._log_tail) if self.often else whole

    @cached_property
    def signed(self) -> SignedCounts:
        return SignedCounts(k=self.law.k, n=self.n, dummies=self.dummies, **_chances(self.law))

    @cached_property
    def third(self) -> AllAtThird | None:
        whole = None if self.dummies else AllAtThird.of(n=self.n, **_chances(self.law), log_tail=self._log_tail)
        return whole and self._without_traces(whole)

    @cached_property
    def first(self) -> AllAtFirst | None:
        return None if self.dummies else AllAtFirst.of(n=self.n, **_chances(self.law), log_tail=self._log_tail)

    @cached_property
    def alike(self) -> HeldAlike | None:
        if not self.dummies:
            return None
        whole = HeldAlike.of(self.law, n=self.n, dummies=self.dummies, counted=self.counted)
        return whole and self._without_traces(whole)

    def _without_traces(self, table: Table) -> Table:
        return table if self.level is None or self.often else table.without_traces(self.level)

    def within(self, delta: float, tolerance: float, guess: float | None = None) -> Bound:
        if self.general is None or self.general.sliced:
            return super().within(delta, tolerance, guess)
        return self.general.within(delta, tolerance, guess)

    def likely(self, epsilon: float) -> float:
        return self.upper(epsilon) if self.general is None or self.general.sliced else self.general.likely(epsilon)

    def searched(self, delta: float, relative: float = EDGE, start: Start | None = None) -> Bound:
        """Return the bracket; with `counted`, single numbers of dummies suffice to check it (`_SPARE`)."""
        if self._tight is not None:
            return self._tight.near(delta).searched(delta, relative, start)
        if self.counted is None or relative != EDGE:
            return super().searched(delta, relative, start)
        low, high = (super(Kary, self).searched(min(delta * (1 + spare), 1.0)) for spare in (_SPARE, -_SPARE))
        return bracket(low.lower, high.upper, unit="nats", sources=self.sources, witness=low.witness)

    def delta(self, epsilon: float) -> Bound:
        """Return the bracket of `PrivacyCurve.delta`, with tables for a delta of this size."""
        if self._tight is not None:
            return self._tight.delta(epsilon)
        if self.level is not None:
            return super().delta(epsilon)
        first = self._common.delta(epsilon)
        if (first.upper >= _LEVEL and epsilon > 0) or first.width == 0:
            return first
        first = super().delta(epsilon) if first.upper < _LEVEL else first
        better = self.near(first.upper).delta(epsilon)
        return better if better.upper <= first.upper else first

    @cached_property
    def _common(self) -> Kary:
        """The curve for all deltas of at least `_LEVEL`, whose tables are computed once."""
        return self.near(_LEVEL)

    def drawn(self, counted: DummyLaw, mean: PrivacyCurve) -> PrivacyCurve:
        most, spread = self.n + int(counted.numbers[-1]), _SPREAD[0] <= counted.variance <= _SPREAD[1]
        if self.n < _CROWD or not spread or most > 2 * (self.n + counted.fewest) or self.law.lie == 0:
            return mean
        return replace(self, dummies=most - self.n, counted=counted, mean=mean, general=None)

    def rough(self, delta: float, place: float | None = None) -> PrivacyCurve:
        sliced = self.general is None or self.general.sliced
        return super().rough(delta) if sliced or self.general is None else self.general.rough(delta, place)

    def smoother(self) -> PrivacyCurve:
        general = self.general
        return self if general is None or general.sliced or self.level is None else general.near(self.level).smoother()

    def near(self, delta: float, *, often: bool = False) -> Kary:
        return replace(self, level=delta, often=often)

    def place(self, delta: float, guess: float) -> tuple[float, float]:
        return super().place(delta, guess) if self.general is None else self.general.place(delta, guess)

    def guess(self) -> float:
        spread = math.sqrt(2 * float(self.law.lie) * self.n + 2 * self.dummies / self.law.k + 1)
        return min(self.pure / 2, 8 * float(self.law.theta) / spread)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        if self.level is None and epsilon == 0:  # a large delta, for which a short table is enough
            whole = _blanket(self.law, self.n, self.dummies, self.counted, _SHORT)
            return min(whole.upper(0.0), local_divergence(self.law, 0.0))
        value, theta = self.blanket.upper(epsilon), float(self.law.theta)
        if value >= (1 - 1e-9) * theta - math.expm1(epsilon) * float(self.law.lie):
            value = min(value, local_divergence(self.law, epsilon))
        return max(value, _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        at_third = Witness(family=AT_THIRD, others=(0, 0, self.n - 1), target=(0, 1))
        third, first = 0.0, 0.0
        if self.third is not None and self.first is not None:
            third, first = self.third.lower(epsilon), self.first.lower(epsilon)
        elif self.alike is not None:
            third, first = self.alike.lower_third(epsilon), self.alike.lower_first(epsilon)
        if max(third, first) == 0:
            return self.signed.lower(epsilon), at_third
        if third >= first:
            return third, at_third
        return first, Witness(family=AT_FIRST, others=(self.n - 1,), target=(0, 1))

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        if witness.others[2:] == (self.n - 1,) or self.n == 1:  # both orders of the datasets have the same divergence
            bound = self.alike.lower_third(epsilon) if self.alike else 0.0
            return max(bound, (self.third or self.signed).lower(epsilon))
        alone = self.alike or self.first
        if alone is None or witness.others != (self.n - 1,) or witness.target not in ((0, 1), (1, 0)):
            return 0.0
        return alone.directions(epsilon)[witness.target[0]]

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        if self.mean is not None:
            return self.mean.datasets(log_tail=log_tail)
        small = self.n <= _BEST and self.law.k > 3  # for k = 3 the count at the third value adds no information
        if self.dummies or small:
            alike = HeldAlike.of(self.law, n=self.n, dummies=self.dummies, log_tail=log_tail)
            third = None if alike is None else alike.pair_third(log_tail)
            if alike is not None and third is not None:
                return third, alike.pair_first(log_tail)
        if self.dummies:
            return symmetric_pairs.all_alike(self.law, self.n, self.dummies, log_tail)
        third = symmetric_pairs.at_third(self.law, self.n, log_tail)
        # The losses' variances have ratio (1 + nu/mu)/2; near that of the second pair, its skewness may matter.
        ahead, skew = 1 - math.sqrt((1 + float(self.law.lie / self.law.truth)) / 2), (self.n * self.law.lie) ** -0.5
        if ahead > _FAR_AHEAD + math.sqrt(-log_tail / 8) * skew:
            return (third,)
        return third, symmetric_pairs.at_first(self.law, self.n, log_tail)
