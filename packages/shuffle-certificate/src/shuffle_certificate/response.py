"""Randomized response with three or more values and few people: bounds on delta by sums over all counts of reports.

Source: docs/theory/blanket.md, Theorem 3; docs/theory/datasets.md (all others with the same value).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, arb_poly

from .ends import FAINT, ball, masses_of

FEW = 1500
"""Up to this many reports, all counts are enumerated."""


class Response:
    """Randomized response of the target and `people` others, with dummies; true values have probability `truth`."""

    def __init__(self, *, k: int, truth: Fraction, people: int, dummies: int) -> None:
        self.k, self.truth, self.people, self.dummies = k, truth, people, dummies
        self.lie = (1 - truth) / (k - 1)
        self._tails: dict[int, tuple[int, list[Any]]] = {}
        self._known: dict[tuple[int, Fraction], tuple[int, list[Any]]] = {}

    def above(self, growth: Any) -> Any:
        """Return a ball that contains the privacy blanket's upper bound on delta over all datasets."""
        n, covered = self.people + 1, self.k * self.lie
        pull, own = ball(self.k * (self.truth - self.lie)), ball(covered)
        first, masses = masses_of(n if not self.dummies else self.people, covered)
        total, included = arb(0), arb(0)
        for number, mass in enumerate(masses, first):
            included += mass
            reports = number + (1 + self.dummies if self.dummies else 0)
            if not reports:
                continue
            weight = mass / reports if self.dummies else mass / (n * own)
            low, signs = self._binomial(reports, Fraction(2, self.k))
            inner = arb(0)
            for s, chance in enumerate(signs, low):
                price = pull * growth * s + own * (growth - 1) * reports
                inner += chance * self._fair(s, pull * (1 + growth), price)
            total += weight * inner
        left_out = (2 - included - 1) + arb(FAINT) * (n + self.dummies + 1) ** 2
        return total + pull * left_out.abs_upper()

    def below(self, growth: Any, *, third: bool, swapped: bool) -> Any:
        """Return a ball with a number <= delta if all other people have the same value c.

        c is neither of the target's two values (`third`), the target's second value (`swapped`), or its first value.
        Given C reports of value c, the m other reports are uniform over the other values.
        """
        held = self._held()
        total, nu, mu = arb(0), ball(self.lie), ball(self.truth)
        theta, others = mu - nu, self.people + self.dummies
        for c in range(others + 1):
            at, before, m = held[c], held[c - 1] if c else arb(0), others + 1 - c
            if float(at) + float(before) < FAINT:
                continue
            bend, even = theta * at * (self.k - 1) / m, nu * (self.k - 1) * at
            if third:
                if not bend.lower() > 0:
                    continue
                price = (growth - 1) * (even + nu * before)
                low, signs = self._binomial(m, Fraction(2, self.k - 1))
                for s, chance in enumerate(signs, low):
                    total += chance * self._fair(s, bend * (1 + growth), bend * growth * s + price)
            else:
                here, there = even + mu * before, even + nu * before
                total += self._other(m, bend, here, there, growth, swapped=swapped)
        if not third and not swapped:  # all reports show the value of the others
            total += arb.max(held[others] * (mu - growth * nu), arb(0))
        return total

    def _other(self, m: int, bend: Any, here: Any, there: Any, growth: Any, *, swapped: bool) -> Any:
        """Return E [P - growth P']_+ over B ~ Bin(m, 1/(k-1)); P' (P if swapped) grows by `bend` with each success."""
        low, masses = self._binomial(m, Fraction(1, self.k - 1))
        total = arb(0)
        for b, chance in enumerate(masses, low):
            moved = there + bend * b
            gain = moved - growth * here if swapped else here - growth * moved
            if gain.lower() > 0:
                total += chance * gain
        return total

    def _binomial(self, trials: int, chance: Fraction) -> tuple[int, list[Any]]:
        """Return `masses_of` for these arguments, cached."""
        if (trials, chance) not in self._known:
            self._known[trials, chance] = masses_of(trials, chance)
        return self._known[trials, chance]

    def _held(self) -> list[Any]:
        """Return the distribution of the number of reports of the value c, from other people and dummies."""
        parts = []
        for count, chance in ((self.people, self.truth), (self.dummies, Fraction(1, self.k))):
            first, masses = masses_of(count, chance)
            parts.append(arb_poly([arb(0)] * first + masses))
        whole = parts[0] * parts[1]
        return [whole[c] for c in range(self.people + self.dummies + 1)]

    def _fair(self, s: int, slope: Any, price: Any) -> Any:
        """Return a ball that contains E [slope A - price]_+, where A is Bin(s, 1/2); slope > 0."""
        level = price / slope
        if level.lower() >= s:
            return arb(0)
        if level.upper() <= 0:
            return slope * s / 2 - price
        cut = level.floor().unique_fmpz()
        starts = [int(cut) + 1] if cut is not None else [round(float(level)), round(float(level)) + 1]
        values = [slope * s / 2 * self._tail(s - 1, a - 1) - price * self._tail(s, a) for a in starts]
        return values[0] if len(values) == 1 else values[0].union(values[1])

    def _tail(self, s: int, least: int) -> Any:
        """Return P(Bin(s, 1/2) >= least)."""
        if least <= 0:
            return arb(1)
        if least > s:
            return arb(0)
        if s not in self._tails:
            first, masses = masses_of(s, Fraction(1, 2))
            sums, total = list[Any](), arb(FAINT / 2, FAINT / 2) * (s + 1)
            for mass in reversed(masses):
                total += mass
                sums.append(total)
            self._tails[s] = first, sums[::-1]
        first, sums = self._tails[s]
        if least < first:
            return 1 - arb(FAINT / 2, FAINT / 2) * (s + 1)
        return sums[least - first] if least - first < len(sums) else arb(FAINT / 2, FAINT / 2) * (s + 1)
