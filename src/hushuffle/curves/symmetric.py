"""The divergences of k-ary randomized response: in the local model, for two values, for more."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle.curves import binary_counts, witness_loss
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.binary_counts import Compositions
from hushuffle.curves.blanket_bound import BlanketBound
from hushuffle.curves.certified_epsilon import SearchedCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.exact_loss import exact_pairs
from hushuffle.curves.neighbours import AllAtFirst, AllAtThird
from hushuffle.curves.signed_counts import SignedCounts
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Bound, Witness
from hushuffle.model.citation import BLANKET, DARROCH
from hushuffle.numerics.binomial import EPS, Floats

_EVERY: Final = 1600
"""Up to so many others every composition is evaluated; beyond, this many blocks of compositions."""

_OFTEN: Final = 600
"""Blocks of compositions of a curve evaluated often: costs at most 0.5/600 of epsilon, and a third of the time."""

_BEST: Final = 2_000
"""Up to so many people the composition that is worst in one round is tried under composition as well."""

_SOME: Final = 48
"""How many compositions a lower end tries."""


_TINY: Final = 5e-324
"""Below the pure epsilon delta is positive, however small."""

_DIGITS: Final = Context(prec=60)


def local_divergence(law: Symmetric, epsilon: float) -> float:
    """Return mu - e**epsilon nu (or 0), rounded up: the divergence of one report seen with its sender.

    >>> local_divergence(Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4)), 0.0)
    0.5
    """
    with localcontext(_DIGITS):
        truth, lie = (Decimal(part.numerator) / Decimal(part.denominator) for part in (law.truth, law.lie))
        value = truth - Decimal(epsilon).exp() * lie
        if value <= 0:
            return 0.0
        nearest = float(value)
        return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)


@dataclass(frozen=True, kw_only=True)
class Local(SearchedCurve):
    """Nothing hides the sender (or there is no noise to hide in): the randomizer's own divergence, exact."""

    law: Symmetric
    local_epsilon: float
    n: int
    exact = True
    proof = "the report is seen with its sender, so the local figure is the central one"

    @property
    def pure(self) -> float:
        return self.local_epsilon

    def upper(self, epsilon: float) -> float:
        if self.law.lie == 0:
            return 1.0
        return 0.0 if epsilon >= self.pure else local_divergence(self.law, epsilon)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return 1.0 if self.law.lie == 0 else 0.0

    def epsilon(self, delta: float) -> Bound:
        """Return ln((mu - delta)/nu), rounded up, at least 0."""
        smallest = math.inf
        if self.law.lie > 0:
            odds = (self.law.truth - Fraction(delta)) / self.law.lie - 1
            smallest = 0.0 if odds <= 0 else min(self.pure, math.log1p(odds) * (1 + 8 * EPS))
        return Bound.exact(smallest, unit="nats", witness=self.lower(0.0)[1])

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        del log_tail
        return (witness_loss.alone(self.law, self.n),)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.upper(epsilon), Witness(family="any dataset", others=(self.n - 1,), target=(0, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Binary(SearchedCurve):
    """k = 2: every composition of the others, one by one or in blocks.

    A block of compositions y .. y + b is bounded by giving the adversary the reports of the b people
    in doubt: delta_n(any of them) <= delta_{n-b}(y ones, n - 1 - y - b zeros). `starts` are the y, `doubt` is b.
    """

    law: Symmetric
    local_epsilon: float
    n: int
    dummies: int
    starts: Floats
    doubt: int
    sources = (DARROCH,)
    proof = "every composition of the other people, summed from its characteristic function (in blocks at large n)"

    @classmethod
    def of(cls, *, law: Symmetric, local_epsilon: float, n: int, dummies: int) -> Binary:
        """Cover all compositions of the n - 1 others."""
        block = -(-n // _EVERY)
        starts = np.arange(0, n, block, dtype=np.float64)
        return cls(law=law, local_epsilon=local_epsilon, n=n, dummies=dummies, starts=starts, doubt=block - 1)

    @property
    def pure(self) -> float:
        return self.local_epsilon

    def guess(self) -> float:
        spread = math.sqrt(self.n * float(self.law.truth * self.law.lie) + self.dummies / 4 + 1)
        return min(self.pure / 2, 4 * float(self.law.theta) / spread)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        value = float(self._ends(self.starts, self.doubt, epsilon)[1].max())
        return max(min(value, local_divergence(self.law, epsilon)), _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        some = self.starts[:: max(1, self.starts.size // _SOME)]
        ones = np.unique(np.concatenate([some, [self.n - 1]]))
        values = self._ends(ones, 0, epsilon)[0]
        best = int(values.argmax())
        count = int(ones[best])
        witness = Witness(family="worst composition found", others=(self.n - 1 - count, count), target=(1, 0))
        return float(values[best]), witness

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        if self.dummies:
            listed = witness_loss.composition(self.law, self.n, 0, self.dummies, log_tail)
            return listed or _all_alike(self.law, self.n, self.dummies, log_tail)
        ends = witness_loss.all_at_first(self.law, self.n, log_tail)
        if self.n > _BEST:
            return (ends,)
        others = self.lower(self.guess())[1].others
        ones = others[1] if len(others) > 1 else 0
        return (ends, *witness_loss.composition(self.law, self.n, ones, 0, log_tail))

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        if not often or self.starts.size <= _OFTEN:
            return self.focus(delta)
        block = -(-self.n // _OFTEN)
        return replace(self, starts=np.arange(0, self.n, block, dtype=np.float64), doubt=block - 1)

    def contenders(self, epsilon: float) -> SearchedCurve:
        ends = self._ends(self.starts, self.doubt, epsilon)[1]
        return replace(self, starts=np.sort(self.starts[np.argsort(ends)[-_SOME // 2 :]]))

    def _ends(self, ones: Floats, doubt: int, epsilon: float) -> tuple[Floats, Floats]:
        others = Compositions(ones=ones, zeros=np.maximum(self.n - 1 - ones - doubt, 0.0), dummies=self.dummies)
        truth, lie = float(self.law.truth), float(self.law.lie)
        return binary_counts.hockey_stick(others, truth=truth, lie=lie, epsilon=epsilon, theta=float(self.law.theta))


@dataclass(frozen=True, kw_only=True, eq=False)
class Kary(SearchedCurve):
    """k >= 3: privacy blanket above, explicit neighbouring datasets below."""

    law: Symmetric
    local_epsilon: float
    n: int
    dummies: int
    blanket: BlanketBound
    signed: SignedCounts
    third: AllAtThird | None
    first: AllAtFirst | None
    sources = (BLANKET,)
    proof = "privacy blanket summed exactly (upper bound), explicit neighbouring datasets (lower bound)"

    @classmethod
    def of(cls, *, law: Symmetric, local_epsilon: float, n: int, dummies: int) -> Kary:
        """Tabulate the blanket and the neighbours of n people (two families only without dummies)."""
        truth, lie, theta = float(law.truth), float(law.lie), float(law.theta)
        return cls(
            law=law,
            local_epsilon=local_epsilon,
            n=n,
            dummies=dummies,
            blanket=BlanketBound.of(k=law.k, n=n, truth=truth, lie=lie, dummies=dummies, theta=theta),
            signed=SignedCounts(k=law.k, n=n, truth=truth, lie=lie, dummies=dummies, theta=theta),
            third=None if dummies else AllAtThird.of(n=n, truth=truth, lie=lie, theta=theta),
            first=None if dummies else AllAtFirst.of(n=n, truth=truth, lie=lie, theta=theta),
        )

    @property
    def pure(self) -> float:
        return self.local_epsilon

    def guess(self) -> float:
        spread = math.sqrt(2 * float(self.law.lie) * self.n + 2 * self.dummies / self.law.k + 1)
        return min(self.pure / 2, 8 * float(self.law.theta) / spread)

    def focus(self, delta: float) -> SearchedCurve:
        third = self.third and self.third.without_traces(delta)
        return replace(self, blanket=self.blanket.without_traces(delta), third=third)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        return max(min(self.blanket.upper(epsilon), local_divergence(self.law, epsilon)), _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        at_third = Witness(family="all others at a third value", others=(0, 0, self.n - 1), target=(0, 1))
        if self.third is None or self.first is None:
            return self.signed.lower(epsilon), at_third
        third, first = self.third.lower(epsilon), self.first.lower(epsilon)
        if third >= first:
            return third, at_third
        return first, Witness(family="all others at the target's value", others=(self.n - 1,), target=(0, 1))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        if self.dummies:
            return _all_alike(self.law, self.n, self.dummies, log_tail)
        first = witness_loss.all_at_first(self.law, self.n, log_tail)
        return (witness_loss.all_at_third(self.law, self.n, log_tail), first)


def _all_alike(law: Symmetric, n: int, dummies: int, log_tail: float) -> tuple[DatasetPair, ...]:
    """All others at a third value, or at the target's first one, and uniform dummies."""
    k, truth, lie = law.k, float(law.truth), float(law.lie)
    rows = [np.array([truth, lie, lie, (k - 3) * lie]), np.array([lie, truth, lie, (k - 3) * lie])]
    rows.append(np.array([lie, lie, truth, (k - 3) * lie]))
    uniform = np.array([1.0, 1.0, 1.0, k - 3.0]) / k
    if k == 2:
        rows, uniform = [row[:2] for row in rows[:2]], uniform[:2]
    pairs: list[DatasetPair] = []
    for held in (2, 0) if k > 2 else (0,):
        name = "all others at a third value" if held else "all others at the target's value"
        others = (0,) * held + (n - 1,) + (0,) * (k - 1 - held)
        witness = Witness(family=name, others=others, target=(0, 1))
        pairs += exact_pairs(witness, (rows[0], rows[1]), ((n - 1, rows[held]), (dummies, uniform)), log_tail=log_tail)
    return tuple(pairs)
