"""The certified upper bound for k-ary randomized response: the privacy blanket, summed exactly.

The adversary is given the truthful reports of all other people. N = M + 1 + d reports remain, M ~ Bin(n-1, gamma).
Of these, S are at the target's two values a and b, and A at a. With R = 2A - S,

    delta(eps) <= E (1/N) [k theta (1 + e**eps)/2 R - (e**eps - 1)(k theta S/2 + gamma N)]_+ .

R is a sum of S fair signs, so the expectation given (S, N) is two binomial terms. Given S and R the summand is
convex and decreasing in N. So a chord over a bin of N bounds the summand from above, and N may be replaced by any
stochastically smaller number. The expectation over R increases with S and decreases with the threshold, so the
smallest and the largest S of a bin bound the expectation for the whole bin.

Source: Balle, Bell, Gascon, Nissim 2019, Theorem 5.1 (generalised); docs/theory/blanket.md, Theorem 3 and Lemma 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, FairTable, Floats, beside_traces, fair_signs, row_step

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw

_STEP: Final = 1e-4
"""Width of a bin of N, relative to its mean, if the number of dummies is random; a bin counts as its smallest N."""

_TINIEST: Final = 1e-280
"""Smallest probability from which others are computed by a recurrence."""

_NEAR: Final = 8
"""Largest distance of rows that a recurrence over all counts connects faster than direct evaluation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlanketBound:
    """Privacy-blanket bound as a table of N, the number of hidden reports, and S, how many are at the target's values.

    In cell i, low[i] <= S <= high[i], N = total[i], with probability `mass[i]`. `outside`: probability of no cell.
    """

    k: int
    theta: float
    lie: float
    low: Floats
    high: Floats
    total: Floats
    mass: Floats
    outside: float
    table: FairTable | None = None

    @classmethod
    def of(
        cls,
        *,
        k: int,
        n: int,
        truth: float,
        lie: float,
        dummies: int,
        theta: float | None = None,
        log_tail: float = LOG_TAIL,
    ) -> BlanketBound:
        """Return the bound for n people and `dummies` uniform dummies; tails of e**`log_tail` are added in full.

        >>> bound = BlanketBound.of(k=3, n=1, truth=0.5, lie=0.25, dummies=0)
        >>> round(bound.upper(0.0), 12)
        0.25
        """
        extra = dummies + 1  # reports that are always in the blanket: the dummies and the target's report
        mean = (n - 1) * k * lie
        nodes = _nodes(binomial.window(n - 1, k * lie, log_tail), mean, mean * (1 - k * lie), mean + extra)
        reach = [binomial.window(n - 1, 2 * lie, log_tail), binomial.window(extra, 2 / k, log_tail)]
        step = row_step(reach[0][0] + reach[1][0], reach[0][1] + reach[1][1])
        own = CountRows.of(n - 1, 2 * lie, step=step, log_tail=log_tail)
        side = CountRows.of(extra, 2 / k, step=step, log_tail=log_tail)
        # The smallest S of a row gives the stochastically smallest N.
        hats = own.at_most[:, None] * _hats(nodes, own.first, n - 1, min((k - 2) * lie / (1 - 2 * lie), 1.0))
        rows = own.first.size
        mass = np.zeros((rows + side.first.size - 1, nodes.size))
        for shift, weight in enumerate(side.at_most):
            mass[shift : shift + rows] += weight * hats
        low = own.first[0] + side.first[0] + step * np.arange(mass.shape[0], dtype=np.float64)
        widest = own.last[0] - own.first[0] + side.last[0] - side.first[0]
        mass *= 1 + 2 * binomial.margin(n + extra)
        gap = truth - lie if theta is None else theta
        return cls._of(mass, (low, widest, nodes + extra), k=k, theta=gap, lie=lie, log_tail=log_tail)

    @classmethod
    def random(cls, *, k: int, n: int, theta: float, lie: float, dummies: DummyLaw, log_tail: float) -> BlanketBound:
        """Return the bound for n people and a random number of dummies: S ~ Bin(N, 2/k) given N.

        >>> import hushuffle as hs
        >>> law = hs.DummyLaw.of({0: 0.5, 1: 0.5})
        >>> round(BlanketBound.random(k=3, n=1, theta=0.25, lie=0.25, dummies=law, log_tail=-95.0).upper(0.0), 9)
        0.208333333
        """
        mean, variance = (n - 1) * k * lie, (n - 1) * k * lie * (1 - k * lie) + dummies.variance
        size = mean + 1 + dummies.mean
        step = max(1, int(_STEP * size))
        people = CountRows.of(n - 1, k * lie, step=step, log_tail=log_tail)
        numbers, chances = dummies.rounded(step, up=False)
        numbers = numbers[0] + people.first[0] + 1 + step * np.arange(people.first.size + chances.size - 1.0)
        nodes = _nodes((numbers[0], numbers[-1]), size, variance, size)
        places = np.interp(numbers, nodes, np.arange(nodes.size))[:, None]
        hats = np.maximum(1 - np.abs(places - np.arange(nodes.size)), 0.0)
        weights = np.convolve(people.at_most, chances)[:, None] * hats
        first, table, doubt = binomial.mixed(numbers, 2 / k, weights, log_tail)
        wide = row_step(first, first + table.shape[1])
        rows = np.pad(table, ((0, 0), (0, -table.shape[1] % wide))).reshape(nodes.size, -1, wide).sum(axis=2)
        low = first + wide * np.arange(rows.shape[1], dtype=np.float64)
        mass = rows.T * (1 + doubt + 2 * binomial.margin(float(numbers[-1])))
        return cls._of(mass, (low, wide - 1, nodes), k=k, theta=theta, lie=lie, log_tail=log_tail)

    @classmethod
    def _of(
        cls, mass: Floats, cells: tuple[Floats, float, Floats], *, k: int, theta: float, lie: float, log_tail: float
    ) -> BlanketBound:
        """Return the bound for the masses of rows of S, of equal width, and values of N; `cells` are these three."""
        low, wide, total = cells
        keep = mass > 1e-20 * np.exp(log_tail)
        row, column = np.nonzero(keep)
        return cls(
            k=k,
            theta=theta,
            lie=lie,
            low=low[row],
            high=np.minimum(low + wide, total[-1])[row],
            total=total[column],
            mass=mass[keep],
            outside=8 * float(np.exp(log_tail)) + float(mass[~keep].sum()),
        )

    def without_traces(self, delta: float) -> BlanketBound:
        """Return a faster bound without the least probable cells; its delta is larger by at most delta/10**7."""
        keep = beside_traces(self.mass, 1e-7 * delta / self.k)
        return replace(
            self,
            low=self.low[keep],
            high=self.high[keep],
            total=self.total[keep],
            mass=self.mass[keep],
            outside=self.outside + float(self.mass[~keep].sum()) * (1 + 1e-9),
            table=None,
        )

    def tabulated(self, log_tail: float = LOG_TAIL) -> BlanketBound:
        """The same bound with tables of binomial tails above e**`log_tail`, faster from about ten epsilons on."""
        return replace(self, table=FairTable.of(self.high, above=True, log_tail=log_tail))

    @cached_property
    def _terms(self) -> tuple[Floats, Floats]:
        """Of each cell: its weight, and its threshold for R divided by (e**eps - 1)/(e**eps + 1)."""
        return self.mass / self.total, self.low + 2 * self.lie / self.theta * self.total

    def upper(self, epsilon: float) -> float:
        growth, pull = float(np.exp(epsilon)), self.k * self.theta
        excess, slope = float(np.expm1(epsilon)), pull * (1 + growth) / 2
        weight, level = self._terms
        if self.table is not None and not self.table.cancels(level := excess / (1 + growth) * level):
            each = slope * self.table.mean(weight, level)
        else:
            low, high, total = self.low, self.high, self.total
            if epsilon == 0:  # all thresholds are 0, so that cells differ in S alone
                row = np.flatnonzero(np.diff(high, prepend=-1.0))
                low, high, total, weight = low[row], high[row], total[row], np.add.reduceat(weight, row)
            common = excess * self.k * self.lie * total
            attained = pull * low + slope * (high - low)
            head = attained - common, attained + common
            value = fair_signs(high, slope, excess * pull / 2 * low + common, head)[1]
            each = float(np.sum(weight * value)) * (1 + EPS * (16 + self.mass.size))
        result = each + pull * self.outside  # no cell adds more than k theta times its probability
        gap, price = self.theta, excess * self.lie
        local = max(gap - price, 0.0) + 8 * EPS * (gap + price)
        return min(result, local, 1.0)


def _nodes(ends: tuple[float, float], mean: float, variance: float, size: float) -> Floats:
    """Increasing bin boundaries for a number of about `size` reports: narrow near the mean, wide in the tails."""
    low, high = map(float, ends)
    spread, fine = np.sqrt(variance), max(1.0, 0.004 * size)
    position, nodes = low, [low]
    while position < high:
        away = abs(position - mean) / (spread + 1)
        step = min(fine * max(1.0, (away / 6) ** 2), max(spread * max(0.7, away / 8), fine / 8))
        position = min(position + max(1.0, np.floor(step)), high)
        nodes.append(position)
    return np.array(nodes)


def _hats(nodes: Floats, own: Floats, trials: int, chance: float) -> Floats:
    """Weights of the nodes, shape (own, nodes), if chords replace a convex function of M; rounded up.

    M = own + Bin(trials - own, chance). Probability above the last node counts at the last node, and below the first
    node at the first (the caller adds the probability outside the window in full).
    """
    level, left = nodes[None, :] - own[:, None], (trials - own)[:, None]
    first = binomial.pmf(level[-1], left[-1], chance)
    step = int(own[1] - own[0]) if own.size > 1 else 1
    if step <= _NEAR and bool((first > _TINIEST).all()):
        every = np.arange(own[0], own[-1] + 1)[:, None]
        area, error = (end[::step] for end in _from_last(nodes - every, trials - every, chance, first))
    else:
        area, error = binomial.shortfall(level, left, chance)
    width = np.diff(nodes)[None, :]
    rise, noise = np.diff(area, axis=1) / width, (error[:, 1:] + error[:, :-1]) / width
    zero, full = np.zeros((own.size, 1)), np.ones((own.size, 1))
    mass = np.hstack([rise, full]) - np.hstack([zero, rise])
    rounding = np.hstack([noise, zero]) + np.hstack([zero, noise])
    rounded_up: Floats = np.clip(mass + rounding, 0.0, 1.0)
    return rounded_up


def _from_last(level: Floats, left: Floats, chance: float, first: Floats) -> tuple[Floats, Floats]:
    """Return `binomial.shortfall` if `level` and `left` fall by 1 from row to row; `first` is P(Bin = level), last row.

    From the last row up, Bin gets one more trial: P(Bin <= level) grows by (1 - chance) P(Bin = level + 1). Rounding of
    these sums of positive terms is less than a fiftieth of `margin`, against 40-digit arithmetic.
    """
    upwards, apart = level[::-1], (left - level)[-1]
    ratios = chance * (upwards + apart) / np.maximum(upwards, 1.0)
    ratios[0] = first
    mass = np.cumprod(ratios, axis=0, out=ratios)
    tail = np.vstack([binomial.lower_tail(level[-1], left[-1], chance), (chance * apart) * mass[:-1] / upwards[1:]])
    edge, drift = chance * apart * mass[::-1], (level - left * chance) * np.cumsum(tail, axis=0)[::-1]
    noise = binomial.margin(float(left.max())) + 8 * EPS
    return np.maximum(edge + drift, 0.0), noise * (edge + np.abs(drift)) + 4 * EPS * level
