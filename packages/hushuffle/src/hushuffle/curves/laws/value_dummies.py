"""Truthful reports among dummies whose number is drawn for each value: privacy curve from two independent counts.

X is the number of dummies of a value, with distribution f. A report is kept with probability `kept`. g is the
distribution of X plus the target's report, if that report is kept. If the target's value changes from a to b, the
distribution of the counts of a and b changes from g x f to f x g, with likelihood ratio u(x)/u(y), u = g/f. If all
reports are kept, the other people's values do not matter. Otherwise other people's reports at a or b hide the target as
well, so the worst datasets have all others at other values. With two values, such datasets give an upper bound only.

Sorting u gives the set where the first dataset is more probable. If rounding misplaces a point, the error is at most
the rounding error, which both bounds include.

Source: docs/theory/histograms.md, Theorem 4 and Theorem 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hushuffle.curves.base import LARGEST, PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.symmetric_pairs import AT_FIRST, AT_THIRD
from hushuffle.model import Bound, Witness
from hushuffle.model.citation import MURAKAMI
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, Floats
from hushuffle.numerics.exact import log_upwards

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw, GeometricDummies

_TINY = 5e-324
_CELLS = 512
"""Number of cells into which neighbouring counts of an explicit pair of datasets are merged."""

_RARE = 2.0**-50
"""Ratios of smaller probabilities, multiples of 2**-64, are far from those of the distribution before rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueCounts:
    """Distributions of one value's count: `without` the target's report, and with the target's report (`own`).

    Both have shape (m,) and relative errors of at most `doubt`. Counts with total probability at most `lost` are
    missing from each.
    """

    without: Floats
    own: Floats
    doubt: float = 0.0
    lost: float = 0.0

    @classmethod
    def of(cls, law: DummyLaw | GeometricDummies, *, kept: float = 1.0) -> ValueCounts:
        """A value's count distributions if its number of dummies has the distribution `law`.

        >>> import hushuffle as hs
        >>> ValueCounts.of(hs.DummyLaw.of({0: 0.5, 1: 0.5})).own.tolist()
        [0.0, 0.5, 0.5]
        """
        mass, lost = law.masses()
        return cls._among(np.append(mass, 0.0), kept, doubt=EPS * (8 + mass.size), lost=lost)

    @classmethod
    def binomial(cls, trials: int, p: float) -> ValueCounts:
        """The same if the number of dummies is Bin(trials, p); far tails are omitted."""
        low, high = binomial.window(trials, p, LOG_TAIL)
        places = np.arange(low, high + 2.0)
        mass = np.where(places <= high, binomial.pmf(places, trials, p), 0.0)
        return cls._among(mass, 1.0, doubt=binomial.margin(trials), lost=2 * math.exp(LOG_TAIL))

    @classmethod
    def _among(cls, mass: Floats, retention: float, *, doubt: float, lost: float) -> ValueCounts:
        own = retention * np.append(0.0, mass[:-1]) + (1 - retention) * mass
        there = (mass > 0) | (own > 0)
        return cls(without=mass[there], own=own[there], doubt=doubt + 4 * EPS, lost=lost)

    def with_others(self, people: int, kept: float) -> ValueCounts:
        """The same for a value that `people` other people also have."""
        low, high = binomial.window(people, kept, LOG_TAIL)
        others = binomial.pmf(np.arange(low, high + 1.0), people, kept)
        doubt = self.doubt + binomial.margin(people) + EPS * (others.size + self.without.size)
        lost = self.lost + 2 * math.exp(LOG_TAIL)
        return ValueCounts(
            without=np.convolve(self.without, others), own=np.convolve(self.own, others), doubt=doubt, lost=lost
        )

    @property
    def ratio(self) -> Floats:
        """Likelihood ratio of each count, with the target's report over without the report, shape (m,)."""
        infinite: Floats = np.full(self.own.size, np.inf)
        return np.asarray(np.divide(self.own, self.without, out=infinite, where=self.without > 0))

    @property
    def variance(self) -> float:
        """The variance of the count without the target's report."""
        places = np.arange(self.without.size)
        mean = float(self.without @ places)
        return float(self.without @ (places - mean) ** 2)

    @cached_property
    def falling(self) -> tuple[Floats, Floats, Floats]:
        """Negated ratios in ascending order, and the total probabilities of the first 0, 1, ... of these counts."""
        order = np.argsort(-self.ratio, kind="stable")
        own, without = (np.append(0.0, np.cumsum(part[order])) for part in (self.own, self.without))
        return -self.ratio[order], own, without

    def together(self) -> ValueCounts:
        """The same with adjacent counts merged, which gives lower bounds: first of all the rare counts at the ends."""
        usual = np.flatnonzero(np.minimum(self.without, self.own) >= _RARE)
        first, last = (usual[0], usual[-1]) if usual.size else (0, self.own.size - 1)
        cells = np.union1d(0, np.arange(first, last + 1, -(-self.own.size // _CELLS)))
        return ValueCounts(
            without=np.add.reduceat(self.without, cells),
            own=np.add.reduceat(self.own, cells),
            doubt=self.doubt + EPS * self.own.size,
            lost=self.lost,
        )


def divergence_between(old: ValueCounts, new: ValueCounts, epsilon: float) -> tuple[float, float]:
    """Bounds on the hockey-stick divergence of old.own x new.without from old.without x new.own.

    >>> import hushuffle as hs
    >>> counts = ValueCounts.of(hs.DummyLaw.of({0: 0.5, 1: 0.5}))
    >>> [round(end, 9) for end in divergence_between(counts, counts, 0.0)]
    [0.75, 0.75]
    """
    growth, (falling, own, without) = math.exp(epsilon), old.falling
    limit = growth * new.ratio
    noise = 2 * (old.doubt + new.doubt) + EPS * (64 + old.own.size + new.own.size)

    def sides(least: Floats) -> tuple[float, float]:
        place = np.searchsorted(falling, -least, side="left")
        return float(new.without @ own[place]), growth * float(new.own @ without[place])

    first, second = sides(limit)
    around = sum(sides(limit * (1 - 4 * noise)))
    value = first - second
    return value - noise * around, value + noise * around + 2 * (old.lost + new.lost)


STILL = ValueCounts(without=np.ones(1), own=np.ones(1))
"""A count that no value changes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OneCount(PrivacyCurve):
    """Privacy curve of one released count, which one person's value raises by 1 or not, among a number of dummies.

    `n` is the number of people (or columns). Unlike `TrueAmongEach`, no other count changes in return, unless `other`
    is given: then that count, with dummies of another distribution, falls by 1.

    >>> import hushuffle as hs
    >>> laplace = ValueCounts.of(hs.DummyLaw.discrete_laplace(center=90, scale=3.0))
    >>> print(OneCount(counts=laplace, n=1000).epsilon(1e-9))
    0.3334 nats (certified bracket)
    """

    counts: ValueCounts
    n: int
    other: ValueCounts = STILL
    exact = True
    pure = math.inf
    sources = (MURAKAMI,)

    @property
    def proof(self) -> str:  # type: ignore[override]
        return f"an exact sum over all values of {'one count' if self.other is STILL else 'two counts'}"

    @cached_property
    def certain(self) -> float:  # type: ignore[override]
        return self.lower(LARGEST)[0]

    @cached_property
    def floor(self) -> float:  # type: ignore[override]
        return self.upper(LARGEST)

    def guess(self) -> float:
        return sum(3 / math.sqrt(counts.variance + 1) for counts in {self.counts, self.other} - {STILL})

    def upper(self, epsilon: float) -> float:
        return max(min(max(high for _, high in self._both(epsilon)), 1.0), _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        (more, _), (less, _) = self._both(epsilon)
        target = (1, 0) if more >= less else (0, 1)
        return max(more, less, 0.0), Witness(family=AT_FIRST, others=(self.n - 1,), target=target)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        del log_tail  # missing events have negligible probability
        witness = Witness(family=AT_FIRST, others=(self.n - 1,), target=(1, 0))
        first, second = self.counts.together(), self.other.together()
        if self.other is STILL:
            return (DatasetPair(witness=witness, p=first.own, q=first.without, doubt=first.doubt),)
        p, q = np.outer(first.own, second.without).ravel(), np.outer(first.without, second.own).ravel()
        return (DatasetPair(witness=witness, p=p, q=q, doubt=2 * (first.doubt + second.doubt)),)

    def _both(self, epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Bounds on the divergence with the value from that without it, and of that without from that with it."""
        if self.other is not STILL:
            return divergence_between(self.counts, self.other, epsilon), divergence_between(
                self.other, self.counts, epsilon
            )
        return divergence_between(self.counts, STILL, epsilon), divergence_between(self._turned, STILL, epsilon)

    @cached_property
    def _turned(self) -> ValueCounts:
        """The two distributions exchanged; as the first of two counts, its cached sums make an evaluation fast."""
        return replace(self.counts, without=self.counts.own, own=self.counts.without)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueAmongEach(PrivacyCurve):
    """Privacy curve of n people's truthful reports, each kept with some probability, among dummies of each of k values.

    `counts` are the distributions of the count of a value that no other person has. If there are only two values,
    `held` are those of the value that all others have. If the clients draw the dummies, `coins` are the distributions
    of a value's count with these dummies.
    """

    k: int
    n: int
    counts: ValueCounts
    held: ValueCounts
    coins: ValueCounts | None = None
    pure: float = math.inf
    sources = (MURAKAMI,)
    proof = "an exact sum over all counts of the target's two values"

    @classmethod
    def of(
        cls,
        counts: ValueCounts,
        *,
        k: int,
        n: int,
        kept: float = 1.0,
        ratio: float | None = None,
        coins: ValueCounts | None = None,
    ) -> TrueAmongEach:
        """If the number of dummies is geometric on 0, 1, ..., `ratio` is that of its successive probabilities.

        >>> print(TrueAmongEach.of(ValueCounts.binomial(10**6, 4e-5), k=1000, n=10**6).epsilon(1e-6))
        1.044 nats (certified bracket)
        """
        hidden = k == 2 and kept < 1 and n > 1
        pure = math.inf
        if ratio is not None and kept < 1:
            share = Fraction(kept)
            pure = log_upwards(1 + share / ((1 - share) * Fraction(ratio)))
        held = counts.with_others(n - 1, kept) if hidden else counts
        return cls(k=k, n=n, counts=counts, held=held, coins=coins, pure=pure)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.held is self.counts

    @property
    def certain(self) -> float:  # type: ignore[override]
        return 0.0 if math.isfinite(self.pure) else self.lower(LARGEST)[0]

    @cached_property
    def floor(self) -> float:  # type: ignore[override]
        return 0.0 if math.isfinite(self.pure) else self.upper(LARGEST)

    def guess(self) -> float:
        return 6 / math.sqrt(self.counts.variance + 1)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        laws = [law for law in (self.counts, self.coins) if law is not None]
        return max(min(max(divergence_between(law, law, epsilon)[1] for law in laws), 1.0), _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        both = [(divergence_between(self.held, self.counts, epsilon)[0], (0, 1))]
        if not self.exact:
            both.append((divergence_between(self.counts, self.held, epsilon)[0], (1, 0)))
        value, target = max(both)
        return max(value, 0.0), self._witness(target)

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.lower(epsilon)[0] if self.exact and len(set(witness.target)) > 1 else 0.0

    def epsilon(self, delta: float) -> Bound:
        if 0 < delta < self.certain:
            return Bound.exact(math.inf, unit="nats", sources=self.sources, witness=self._witness((0, 1)))
        return super().epsilon(delta)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        del log_tail  # missing events have negligible probability
        old, new = self.held.together(), self.counts.together()
        p, q = np.outer(old.own, new.without).ravel(), np.outer(old.without, new.own).ravel()
        there = (p > 0) | (q > 0)
        return (DatasetPair(witness=self._witness((0, 1)), p=p[there], q=q[there], doubt=old.doubt + new.doubt),)

    def _witness(self, target: tuple[int, int]) -> Witness:
        if self.k == 2:
            return Witness(family=AT_FIRST, others=(self.n - 1,), target=target)
        return Witness(family=AT_THIRD, others=(0, 0, self.n - 1), target=target)
