"""Privacy curves of releases that reveal senders: exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.curves.base import ReportCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.pairs.exact_loss import exact_pairs
from hushuffle.mechanisms.randomizers import Symmetric, ValueLaws
from hushuffle.model import Bound, Witness
from hushuffle.numerics.binomial import EPS

if TYPE_CHECKING:
    from hushuffle.mechanisms.release import Release

_DIGITS: Final = Context(prec=60)


def local_divergence(law: Symmetric, epsilon: float) -> float:
    """Divergence of one report seen with its sender, max(truth - e**epsilon lie, 0), rounded up.

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
class Local(ReportCurve):
    """Privacy curve of k-ary randomized response if senders are revealed or there is no noise: exact."""

    law: Symmetric
    n: int
    exact = True
    proof = "the report is seen with its sender, so the local figure is the central one"

    def upper(self, epsilon: float) -> float:
        if self.law.lie == 0:
            return 1.0
        return 0.0 if epsilon >= self.pure else local_divergence(self.law, epsilon)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return 1.0 if self.law.lie == 0 else 0.0

    def epsilon(self, delta: float) -> Bound:
        """Return ln((mu - delta)/nu), at least 0, rounded up."""
        smallest = math.inf
        if self.law.lie > 0:
            odds = (self.law.truth - Fraction(delta)) / self.law.lie - 1
            smallest = 0.0 if odds <= 0 else min(self.pure, math.log1p(odds) * (1 + 8 * EPS))
        return Bound.exact(smallest, unit="nats", witness=self.lower(0.0)[1])

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        del log_tail
        law, n = self.law, self.n
        truth, lie, rest = float(law.truth), float(law.lie), (law.k - 2) * float(law.lie)
        others = (n - 1,) + (0,) * (law.k - 1)
        p, q = np.array([lie, truth, rest]), np.array([truth, lie, rest])
        keep = p > 0
        pair = DatasetPair(
            witness=Witness(family="any dataset", others=others, target=(1, 0)), p=p[keep], q=q[keep], doubt=8 * EPS
        )
        return (pair,)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.upper(epsilon), Witness(family="any dataset", others=(self.n - 1,), target=(0, 1))

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        del witness  # every pair of datasets attains the bound
        return self.upper(epsilon) * (1 - EPS)


@dataclass(frozen=True, kw_only=True, eq=False)
class FiniteLocal(ReportCurve):
    """Privacy curve of any finite randomizer if senders are revealed; exact up to rounding.

    delta(eps) is the maximum, over pairs of values a and b, of sum_y [Q(y|a) - e**eps Q(y|b)]_+.
    """

    laws: tuple[ValueLaws, ...]
    n: int
    exact = True
    proof = "the report is seen with its sender, so the local figure is the central one"

    @classmethod
    def of(cls, release: Release) -> FiniteLocal:
        """Privacy curve of a release that reveals the senders.

        >>> import hushuffle as hs
        >>> from hushuffle.mechanisms.release import Release
        >>> from hushuffle.mechanisms.randomizers import BitFlipping
        >>> columns = hs.Protocol(randomizer=BitFlipping(width=2, p=0.25), shuffler=hs.NoShuffle(), n=9)
        >>> round(FiniteLocal.of(Release.of(columns)).upper(1.0), 6)
        0.392607
        """
        laws = release.device.law().pairs()
        return cls(laws=laws, local_epsilon=release.device.local_epsilon, n=release.n)

    @property
    def certain(self) -> float:  # type: ignore[override]
        return certain(self.laws, self.pure)

    def guess(self) -> float:
        return self.pure / 4 if math.isfinite(self.pure) else 1.0

    def upper(self, epsilon: float) -> float:
        return 0.0 if epsilon >= self.pure else self._worst(epsilon, 1)[0]

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        value, *place = self._worst(epsilon, -1)
        return 0.0 if epsilon >= self.pure else value, self._witness(*place)

    def _witness(self, i: int, a: int, b: int) -> Witness:
        labels = self.laws[i].labels
        return Witness(family="any dataset", others=(self.n - 1,), target=(labels[a], labels[b]))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """The pairs that are worst in one round at epsilon = 0 and at a typical epsilon."""
        pairs: list[DatasetPair] = []
        for i, a, b in dict.fromkeys(self._worst(level, -1)[1:] for level in (0.0, self.guess())):
            rows = self.laws[i].rows
            pairs += exact_pairs(self._witness(i, a, b), (rows[a], rows[b]), (), log_tail=log_tail)
        return tuple(pairs)

    def _worst(self, epsilon: float, side: int) -> tuple[float, int, int, int]:
        """Largest divergence, rounded up (`side` = 1) or down (-1), and the indices of its pair."""
        divergences = []
        for i, law in enumerate(self.laws):
            for a, b in law.pairs:
                first, second = law.rows[a], law.rows[b]
                rounding = side * 8 * EPS * (first + np.exp(epsilon) * second)
                gain = (first - second) - np.expm1(epsilon) * second + rounding
                divergences.append((min(float(np.maximum(gain, 0.0).sum()), 1.0), i, a, b))
        return max(divergences)


def certain(laws: tuple[ValueLaws, ...], pure: float) -> float:
    """Largest probability of reports that another value never sends; 0 if the pure epsilon is finite."""
    if math.isfinite(pure):  # a probability that floats round to 0 is not certain to be 0
        return 0.0
    chances = [float(law.rows[a][law.rows[b] == 0].sum()) for law in laws for a, b in law.pairs]
    return max(chances) * (1 - 64 * EPS)
