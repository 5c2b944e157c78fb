"""Sums of one-hot reports: bounds on delta if only the number of ones in each column is released.

Only the columns of the target's two values change, and they are independent. In the column of the old value the
target's bit is 1 with probability p in the first dataset and q in the second; in the column of the new value the two
probabilities are exchanged. Every number of other people with a column's value is evaluated, or ranges of it.

Source: docs/theory/secure-sums.md, Theorem 1, Corollary 2, Lemma 3, Theorem 4, Theorem 8 and Corollary 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from flint import arb, arb_poly

from . import coins
from .certificate import Plain
from .composed import FINE, NEITHER, Effort, Ends, Event, composed, nothing
from .ends import FAINT, alone, log

FEW = 24
"""Up to this many people and random bits in total, all values of the other people are enumerated."""

_EVENTS = 150_000
"""Largest number of pairs of sums that are enumerated for a lower bound."""

_WHAT = "sums of two columns"

Column = Sequence[Event]


class Sums:
    """The sums of all people's bits; `plain.dummies` is the number of secret fair random bits in each sum."""

    def __init__(self, plain: Plain) -> None:
        assert plain.randomizer.bits is not None
        self.given, (self.p, self.q) = plain, plain.randomizer.bits
        ones, zeros = self._column(self.p, self.q), self._column(1 - self.q, 1 - self.p)
        if self.p + self.q == 1:
            self._pair = composed([(ones, 2)], _WHAT)
        else:
            both = (ones._replace(back=zeros), 1), (zeros._replace(back=ones), 1)
            self._pair = composed(both, _WHAT)
        there = plain.named and not all(chance in {0, 1} for chance in (self.p, self.q))
        named = tuple((partial(self._named, side), 1) for side in (0, 1)) if there else ()
        self.ends = Ends(self.least, self.most, named, plain.randomizer.pure, self._pair.parts)
        self._below = composed([(self.ends, 1), (NEITHER, 1)], _WHAT, finer=FINE)

    def _column(self, truth: Fraction, lie: Fraction) -> Ends:
        """Return the bounds for one column, with the target's bit more often 1 in the first dataset."""

        def many(growths: Sequence[Any], effort: Effort) -> Sequence[Any]:
            return coins.tabulated(self.given.n - 1, self.given.dummies, (truth, lie), growths, effort)

        def most(growth: Any, effort: Effort) -> Any:
            return many([growth], effort)[0]

        return Ends(nothing, most, pure=log(truth / lie) if lie else None, many=many)

    def most(self, growth: Any, effort: Effort) -> Any:
        """Return an upper bound on delta for all values of the people."""
        if self.given.n + self.given.dummies <= FEW:
            return self._largest(growth)
        p, q = self.p, self.q
        first, second = ([a * b for a, b in product((x, 1 - x), (y, 1 - y))] for x, y in ((p, q), (q, p)))
        return arb.min(self._pair.most(growth, effort), alone(first, second, growth))

    def _largest(self, growth: Any) -> Any:
        others, best = self.given.n - 1, arb(0)
        for a in range(others + 1):
            for b in range(others - a + 1) if self.given.randomizer.k > 2 else (others - a,):
                best = arb.max(best, _divergence(self._events(0, a), self._events(1, b), growth))
        return best

    def least(self, growth: Any, effort: Effort) -> Any:
        """Return a lower bound on delta for the named datasets."""
        if not self.given.named or not self.ends.named:
            return arb(0)
        old, new = (self._events(side, self._held(side)) for side in (0, 1))
        if len(old) * len(new) <= _EVENTS:
            return _divergence(old, new, growth) - growth * 2 * self._lacking
        return self._below.least(growth, effort)

    def _held(self, side: int) -> int:
        return dict(self.given.others).get(self.given.target[side], 0)

    def _named(self, side: int, growth: Any, effort: Effort) -> tuple[Column, Any]:
        """Return the sums of the column of the target's old value (`side` 0), or of the new value."""
        del growth, effort
        return list(self._events(side, self._held(side))), self._lacking

    @property
    def _lacking(self) -> Any:
        return arb(FAINT) * (self.given.n + self.given.dummies + 4)

    def _events(self, side: int, held: int) -> Column:
        """Return the probabilities of a column's sums if `held` other people have the column's value."""
        reports, others = self.given.reports, self.given.n - self.given.reports
        groups = [(held, self.p), (others - held, self.q), (self.given.dummies, Fraction(1, 2))]
        crowd = arb_poly(coins.sum_of(groups)[1])
        ways = [_own(reports, chance) for chance in ((self.p, self.q), (self.q, self.p))[side]]
        mine, theirs = ((crowd * own).coeffs() for own in ways)
        length = max(len(mine), len(theirs))
        padded = (each + [arb(0)] * (length - len(each)) for each in (mine, theirs))
        return list(_listed(*padded))


def _own(reports: int, chance: Fraction) -> Any:
    """Return the distribution of the sum of the target's bits."""
    first, masses = coins.sum_of([(reports, chance)])
    return arb_poly([arb(0)] * first + masses)


def _listed(mine: Sequence[Any], theirs: Sequence[Any]) -> Iterator[Event]:
    for p, q in zip(mine, theirs, strict=True):
        first, second = float(p), float(q)
        loss = math.log(first / second) if first > 0 < second else math.inf if first > 0 else -math.inf
        if first > 0 or second > 0:
            yield Event(loss, p, q)


def _divergence(old: Column, new: Column, growth: Any) -> Any:
    """Return the sum of all positive gains over the pairs of sums of two independent columns."""
    total = arb(0)
    for (_, p, q), (_, r, s) in product(old, new):
        gain = p * r - growth * q * s
        if gain.upper() > 0:
            total += arb.max(gain, arb(0))
    return total
