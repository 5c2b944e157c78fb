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

import numpy as np

from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, FairTable, Floats, beside_traces, fair_signs, row_step


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
        nodes = _nodes(n - 1, k * lie, extra, log_tail)
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
        high = np.minimum(low + widest, n - 1 + extra)
        keep = mass > 1e-20 * np.exp(log_tail)
        row, column = np.nonzero(keep)
        return cls(
            k=k,
            theta=truth - lie if theta is None else theta,
            lie=lie,
            low=low[row],
            high=high[row],
            total=nodes[column] + extra,
            mass=mass[keep] * (1 + 2 * binomial.margin(n + extra)),
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

    def tabulated(self) -> BlanketBound:
        """The same bound with tables of binomial tails, faster from about ten epsilons on."""
        return replace(self, table=FairTable.of(self.high))

    @cached_property
    def _terms(self) -> tuple[Floats, Floats]:
        """Of each cell: its weight, and its threshold for R divided by (e**eps - 1)/(e**eps + 1)."""
        return self.mass / self.total, self.low + 2 * self.lie / self.theta * self.total

    def upper(self, epsilon: float) -> float:
        growth, pull = float(np.exp(epsilon)), self.k * self.theta
        excess, slope = float(np.expm1(epsilon)), pull * (1 + growth) / 2
        weight, level = self._terms
        if self.table is not None and not self.table.cancels(level := excess / (1 + growth) * level):
            each = slope * self.table.mean(weight, level, above=True)
        else:
            common = excess * self.k * self.lie * self.total
            attained = pull * self.low + slope * (self.high - self.low)
            head = attained - common, attained + common
            value = fair_signs(self.high, slope, excess * pull / 2 * self.low + common, head)[1]
            each = float(np.sum(weight * value)) * (1 + EPS * (16 + weight.size))
        result = each + pull * self.outside  # no cell adds more than k theta times its probability
        gap, price = self.theta, excess * self.lie
        local = max(gap - price, 0.0) + 8 * EPS * (gap + price)
        return min(result, local, 1.0)


def _nodes(trials: int, chance: float, extra: int, log_tail: float) -> Floats:
    """Increasing bin boundaries for M ~ Bin(trials, chance): narrow near the mean, wide in the tails."""
    low, high = binomial.window(trials, chance, log_tail)
    mean, spread = trials * chance, np.sqrt(trials * chance * (1 - chance))
    fine = max(1.0, 0.004 * (mean + extra))
    position, nodes = float(low), [float(low)]
    while position < high:
        away = abs(position - mean) / (spread + 1)
        step = min(fine * max(1.0, (away / 6) ** 2), max(spread * max(0.7, away / 8), fine / 8))
        position = min(position + max(1.0, np.floor(step)), float(high))
        nodes.append(position)
    return np.array(nodes)


def _hats(nodes: Floats, own: Floats, trials: int, chance: float) -> Floats:
    """Weights of the nodes, shape (own, nodes), if chords replace a convex function of M; rounded up.

    M = own + Bin(trials - own, chance). Probability above the last node counts at the last node, and below the first
    node at the first (the caller adds the probability outside the window in full).
    """
    level, left = nodes[None, :] - own[:, None], (trials - own)[:, None]
    area, error = binomial.shortfall(level, left, chance)
    width = np.diff(nodes)[None, :]
    rise, noise = np.diff(area, axis=1) / width, (error[:, 1:] + error[:, :-1]) / width
    zero, full = np.zeros((own.size, 1)), np.ones((own.size, 1))
    mass = np.hstack([rise, full]) - np.hstack([zero, rise])
    rounding = np.hstack([noise, zero]) + np.hstack([zero, noise])
    rounded_up: Floats = np.clip(mass + rounding, 0.0, 1.0)
    return rounded_up
