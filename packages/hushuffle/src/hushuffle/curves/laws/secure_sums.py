"""Secure aggregation of one-hot encodings: privacy curves if only the sums of all people's bit vectors are released.

A vector has one bit (column) for each value. A replaced value changes two columns, that of the old value and that of
the new value, and columns are independent given the values. In the old value's column, the target's bit is 1 with
probability `own` in the first dataset and `raised` in the second. In the new value's column these probabilities are
exchanged. The sum of the others' bits is Bin(y, own) + Bin(n - 1 - y, raised), where y other people have the column's
value. The servers add secret fair random bits, or discrete Laplace noise, to each column.

Upper bound. The curve of one column does not depend on the other column (see `Column`). One dominating pair covers a
column for all y. This pair and the same pair in exchanged order, composed, dominate the two columns. For few people all
pairs of y are evaluated instead.

Lower bound. It uses explicit values of all other people; if there are many sums, neighbouring sums are merged.

Source: docs/theory/secure-sums.md, Theorem 1, Corollary 2, Lemma 3 and Theorem 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import numpy as np

from hushuffle.curves.base import PrivacyCurve, ReportCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws import tilted_counts
from hushuffle.curves.laws.kinds import local
from hushuffle.curves.laws.noisy_column import NoisyColumn
from hushuffle.curves.laws.tilted_counts import AHEAD, Blocks, Compositions
from hushuffle.curves.pairs.dominating import DOMINATING, DOTS, TabulatedCurve, common_step
from hushuffle.mechanisms.shufflers import NO_NOISE, LaplaceNoise
from hushuffle.model import Bound, Citation, Witness
from hushuffle.model.citation import DARROCH
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, Floats, margin
from hushuffle.numerics.exact import log_upwards
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import OneHot

_EVERY: Final = 24
"""Up to this many people and random bits in total, all compositions of the other people's values are evaluated."""

_COARSE: Final = 40
_SPLIT: Final = 20
"""A column's compositions are divided into `_COARSE` blocks; each block that may be worst into `_SPLIT` blocks.

These blocks increase epsilon by at most 0.5/(40 * 20) of its value.
"""

_CELLS: Final = 512
"""Number of cells into which neighbouring sums of a column are merged for a lower bound."""

_INSIDE: Final = 400
"""Largest number of people for which a lower bound also evaluates others spread over both values."""

_ALIKE: Final = 2_000
"""Largest number of vectors of the target for which datasets are evaluated."""

_RARE: Final = Fraction(1, 10**7)
"""Flip probability below which a bit is taken to hide nothing."""

_HAIR: Final = 1e-6
"""Relative margin, larger than the effect on a divergence of rounding a flip probability of at least `_RARE`."""

_CUT: Final = 1e-3
"""Share of a divergence that the dominating pairs may assign to an infinite privacy loss."""

_LEAST: Final = 1e-100
"""Smallest probability down to which dominating pairs are tabulated."""

_RANGES: Final = (300, 30, 6)
"""With two values, the number of others with one of them is in a range that ends at this part of all others."""

_TINY: Final = 5e-324

_SPARSE, _WIDE = 2.0, 0.003
"""Factor on the distances between the points of a table for brackets that may be wider by at least `_WIDE`."""

_TABLES: Final[WeakKeyDictionary[PrivacyCurve, tuple[tuple[float, float], float, TabulatedCurve]]] = WeakKeyDictionary()
"""The last table of a column's curve, its lattice step and `sparse`, and the delta until which it reaches."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Column(PrivacyCurve):
    """Privacy curve of one column, the sum of one bit of each of n people, in one order of the two datasets.

    In the first dataset the target has the column's value, in the second another value. The bit is 1 with probability
    `truth` for people with the column's value, and with probability `lie` for other people. The reversed order is this
    curve for the complemented bits, with truth 1 - lie and lie 1 - truth. Of the others, `least` to `most` (None: all)
    people's bits are 1 with probability `truth`.
    """

    truth: Fraction
    lie: Fraction
    n: int
    coins: int = 0
    least: int = 0
    most: int | None = None
    sources = (DARROCH,)
    proof = "every composition of the other people, summed from its characteristic function (in blocks at large n)"

    @property
    def _stop(self) -> int:
        return self.n if self.most is None else self.most + 1

    @cached_property
    def pure(self) -> float:
        return log_upwards(self.truth / self.lie) if self.lie else math.inf

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on delta over all y.

        >>> column = Column(truth=Fraction(3, 4), lie=Fraction(1, 4), n=1000)
        >>> round(column.lower(0.1)[0], 5), round(column.upper(0.1), 5)
        (5e-05, 5e-05)
        """
        return next(self.along(iter([epsilon])))

    def along(self, epsilons: Iterator[float]) -> Iterator[float]:
        truth, lie = float(self.truth), float(self.lie)
        chances = np.array([truth, float(1 - self.truth)]), np.array([lie, float(1 - self.lie)])
        while several := list(islice(epsilons, AHEAD)):
            alone = [float(local(*chances, epsilon)) for epsilon in several]
            if 1 - self.truth < _RARE and not self.coins:
                yield from alone
                continue
            cases = [(self._blocks, epsilon) for epsilon in several]
            bounds = Blocks.worst(cases, truth=truth, lie=lie, theta=float(self.truth - self.lie)) * (1 + _HAIR)
            for epsilon, high, most in zip(several, bounds.tolist(), alone, strict=True):
                yield 0.0 if epsilon >= self.pure else max(min(high, most), _TINY)

    @cached_property
    def _blocks(self) -> Blocks:
        block = -(-(self._stop - self.least) // _COARSE)
        fine = -(-block // _SPLIT)
        starts = np.arange(self.least, self._stop, block)[:, None] + np.arange(0, block, fine)
        return Blocks(n=self.n, dummies=self.coins, starts=np.minimum(starts, self._stop - 1.0), doubt=fine - 1)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        starts = np.arange(self.least, self._stop, -(-(self._stop - self.least) // _COARSE))
        others = Compositions(ones=1.0 * starts, zeros=self.n - 1.0 - starts, dummies=self.coins)
        truth, lie, gap = float(self.truth), float(self.lie), float(self.truth - self.lie)
        low, _ = tilted_counts.hockey_stick(others, truth=truth, lie=lie, epsilon=epsilon, theta=gap)
        ones = int(starts[low.argmax()])
        return float(low.max()), Witness(family="one column", others=(self.n - 1 - ones, ones), target=(1, 0))


@dataclass(frozen=True, kw_only=True, eq=False)
class SecureSums(ReportCurve):
    """Privacy curve of the sums of n people's randomized one-hot vectors, if only the k sums are released.

    `law` has the two probabilities of every bit; `old` and `new` are the curves of a column in the two orders of
    datasets, tabulated as dominating pairs for a delta of about `level` (None: searched) in `cache`. Without `noise`,
    the pure epsilon is that of one report, since the sums may be n in one column and 0 in the other.
    """

    law: OneHot
    n: int
    old: PrivacyCurve
    new: PrivacyCurve
    coins: int = 0
    noise: LaplaceNoise = NO_NOISE
    revealing = True
    level: float | None = None
    sparse: float = 1.0
    cache: dict[float, list[tuple[LossLattice, LossLattice]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, law: OneHot, *, n: int, local_epsilon: float, coins: int = 0, noise: LaplaceNoise = NO_NOISE
    ) -> SecureSums:
        """The curve of n people; the servers add `coins` secret fair random bits and `noise` to each column.

        >>> import hushuffle as hs
        >>> encoding = hs.UnaryEncoding(k=4, epsilon=2.0, encoding="symmetric")
        >>> print(SecureSums.of(encoding.law().one_hot, n=1000, local_epsilon=2.0).epsilon(1e-6))
        0.1811 to 0.1814 nats (certified bracket)
        """
        old = _column(law.own, law.raised, n, coins, noise)
        new = old if law.own + law.raised == 1 else _column(1 - law.raised, 1 - law.own, n, coins, noise)
        return cls(law=law, n=n, local_epsilon=local_epsilon, old=old, new=new, coins=coins, noise=noise)

    @property
    def pure(self) -> float:
        return min(self.local_epsilon, (self.old.pure + self.new.pure) * (1 + EPS))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether all compositions of the other people's values are evaluated."""
        return self.n + self.coins <= _EVERY and not self.noise.number

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return DARROCH, DOMINATING.at("Theorem 10"), DOTS

    @property
    def proof(self) -> str:  # type: ignore[override]
        if self.exact:
            return "every composition of the other people"
        return "dominating pairs of the two columns composed (upper bound), explicit datasets (lower bound)"

    @property
    def certain(self) -> float:  # type: ignore[override]
        """Largest probability, over all datasets, that the sums reveal the target's bit in a column."""
        if math.isfinite(self.pure) or self.coins:
            return 0.0
        return float(self.law.own if self.law.raised == 0 else 1 - self.law.raised)

    def guess(self) -> float:
        apart = float(self.law.own - self.law.raised)
        spread = min(chance * (1 - chance) for chance in (float(self.law.own), float(self.law.raised)))
        return min(self.pure / 2, 6 * apart / math.sqrt(self.n * spread + self.coins / 4 + self.noise.variance + 1))

    def near(self, delta: float, *, often: bool = False) -> SecureSums:
        del often
        return replace(self, level=delta)

    def within(self, delta: float, tolerance: float, guess: float | None = None) -> Bound:
        law = replace(self, sparse=_SPARSE, cache={}) if tolerance >= _WIDE else self
        return super(SecureSums, law).within(delta, tolerance, guess)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        if self.exact:
            return max(*(pair.at_most(epsilon) for pair in self._pairs), _TINY)
        # One unshuffled report has at least this divergence.
        truthful, raised = ((float(chance), float(1 - chance)) for chance in (self.law.own, self.law.raised))
        first, second = np.outer(truthful, raised).ravel(), np.outer(raised, truthful).ravel()
        bound, negligible = float(local(first, second, epsilon)), 1e-9 if self.level is None else _CUT * self.level
        before = math.inf
        while bound < 1 or self.coins or self.noise.number:
            if negligible not in self.cache:
                step = common_step([(self.old, 1), (self.new, 1)])
                self.cache[negligible] = [
                    way for part in self._parts() for way in _ways(part, step, negligible, self.sparse)
                ]
            ways = [[(pair, 1) for pair in pairs] for pairs in self.cache[negligible]]
            worst = max(LossSum.of(way, tilt=best_tilt(way, epsilon=epsilon)).upper(epsilon) for way in ways)
            bound, missing = min(bound, worst), max(sum(pair.infinity for pair, _ in way) for way in ways)
            # If no refinement lowers the mass at infinity, the values are revealed with that probability.
            enough = missing <= 10 * _CUT * bound or missing > before / 2 or negligible < _LEAST
            if self.level is not None or enough:
                return max(bound, _TINY)
            negligible, before = negligible * 1e-9, missing
        return 1.0

    def _parts(self) -> list[tuple[PrivacyCurve, ...]]:
        """Curves of the first column in both orders, and of the second, for ranges of the number y of the first value.

        If there are two values, n - 1 - y others have the second. Then y is at most n - 1 - y, without loss of
        generality. Otherwise one range holds all numbers.
        """
        old, new = self.old, self.new
        if self.law.k > 2 or old is new or not isinstance(old, Column) or not isinstance(new, Column):
            return [(old, new, old, new)]
        others = self.n - 1
        cuts = sorted({0, *(others // part for part in _RANGES), others // 2 + 1})
        ranges = [(start, stop - 1) for start, stop in pairwise(cuts)]
        parts = list[tuple[PrivacyCurve, ...]]()
        for least, most in ranges:
            low, high = (least, most), (others - most, others - least)
            columns = ((old, low), (new, high), (old, high), (new, low))
            parts.append(tuple(replace(curve, least=first, most=last) for curve, (first, last) in columns))
        return parts

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return max(((pair.divergence(epsilon), pair.witness) for pair in self._pairs), key=lambda end: end[0])

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """The pair with the largest divergence in one round at a typical epsilon."""
        del log_tail
        guess = self.guess()
        return (max(self._pairs, key=lambda pair: pair.divergence(guess)),)

    @cached_property
    def _pairs(self) -> tuple[DatasetPair, ...]:
        pairs = [self._pair(*held) for held in self._held(self.n - 1)]
        return tuple(way for pair in pairs for way in (pair, pair.swapped()))

    def alike(self, reports: int, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Pairs of datasets: all `reports` vectors of the target have one value, or all have another.

        There are n vectors in total. The tuple is empty if `reports` is too large for a fast computation.
        """
        del log_tail
        if reports > _ALIKE:
            return ()
        return tuple(self._pair(*held, reports=reports) for held in self._held(self.n - reports))

    def _held(self, others: int) -> Iterator[tuple[int, int]]:
        """Numbers of others with the first and the second value: all combinations, or the likely worst."""
        levels: Sequence[int] = range(others + 1) if self.exact else (0, others)
        if not self.exact and self.n <= _INSIDE:
            levels = tuple(round(others * share) for share in (0, 1 / 4, 1 / 2, 3 / 4, 1))
        for first in levels:
            for second in levels if self.law.k > 2 else (others - first,):
                # Exchanging the two columns gives the datasets in the other order.
                if first >= second and first + second <= others:
                    yield first, second

    def _pair(self, first: int, second: int, *, reports: int = 1) -> DatasetPair:
        others = self.n - reports
        (old, old_missing), (new, new_missing) = (self._column(held, others) for held in (first, second))
        ones = np.arange(reports + 1.0)
        truthful, raised = (binomial.pmf(ones, reports, float(chance)) for chance in (self.law.own, self.law.raised))
        together = _towards_the_middle if self.noise.number else _together
        p = np.outer(together(np.convolve(old, truthful)), together(np.convolve(new, raised))).ravel()
        q = np.outer(together(np.convolve(old, raised)), together(np.convolve(new, truthful))).ravel()
        # Probability that an event of several sums of both columns lacks; doubled to cover rounding.
        events = -(-(old.size + reports) // _CELLS) * -(-(new.size + reports) // _CELLS)
        events *= 16 if self.noise.number else 1  # a cell of `_towards_the_middle` has up to 4 times as many sums
        most, more = float(old.max()), float(new.max())
        missing = 2 * events * (old_missing * more + new_missing * most + old_missing * new_missing)
        there = p + q > 0
        witness = Witness(family="explicit others", others=(first, second, others - first - second), target=(0, 1))
        doubt = 4 * margin(self.n) + 2 * (margin(self.coins) + margin(reports))
        doubt += (64 + old.size + new.size + 2 * reports) * EPS + self.noise.doubt(old.size + new.size)
        return DatasetPair(witness=witness, p=p[there], q=q[there], doubt=doubt, p_error=missing, q_error=missing)

    def _column(self, held: int, others: int) -> tuple[Floats, float]:
        """Distribution of the others' sum in one column, in a window, and its largest error at any sum."""
        truthful, raised = float(self.law.own), float(self.law.raised)
        groups = (held, truthful), (others - held, raised), (self.coins, 0.5)
        law, missing = binomial.window_sum(groups, LOG_TAIL)
        return self.noise.added(law, LOG_TAIL), missing + 2 * self.noise.number * math.exp(LOG_TAIL)


@lru_cache(maxsize=8)
def _column(truth: Fraction, lie: Fraction, n: int, coins: int, noise: LaplaceNoise) -> PrivacyCurve:
    """Cached: all curves of a protocol share the tables of its columns."""
    quiet = Column(truth=truth, lie=lie, n=n, coins=coins)
    return NoisyColumn(truth=truth, lie=lie, n=n, coins=coins, noise=noise, quiet=quiet) if noise.number else quiet


def _ways(
    part: tuple[PrivacyCurve, ...], step: float, negligible: float, sparse: float
) -> Iterator[tuple[LossLattice, LossLattice]]:
    """The pairs of the two columns whose product dominates, in each order of the datasets; see `SecureSums._parts`."""
    old, new, other_old, other_new = (_table(curve, step, negligible, sparse) for curve in part)
    yield old.pair(new), other_new.pair(other_old)
    if part[0] is not part[2]:
        yield new.pair(old), other_old.pair(other_new)


def _table(curve: PrivacyCurve, step: float, negligible: float, sparse: float) -> TabulatedCurve:
    held = _TABLES.get(curve)
    if held is None or held[0] != (step, sparse) or held[1] > negligible:
        table = TabulatedCurve.of(curve, step=step, negligible=negligible, sparse=sparse)
        _TABLES[curve] = held = (step, sparse), negligible, table
    return held[2].until(negligible)


def _towards_the_middle(law: Floats) -> Floats:
    """Merge neighbouring sums, fewer near the middle, since the likelihood ratio is nearly constant in both tails."""
    middle, places = (law.size - 1) / 2, np.linspace(-1, 1, _CELLS)
    starts = np.unique(np.append(0, np.ceil(middle + middle * places**3).astype(int)))
    return np.asarray(np.add.reduceat(law, starts))


def _together(law: Floats) -> Floats:
    return np.asarray(np.add.reduceat(law, np.arange(0, law.size, -(-law.size // _CELLS))))
