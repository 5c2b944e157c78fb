"""Published upper bounds on delta(epsilon) after shuffling, corrected where necessary: for comparison only.

Each bound is E_N[f(N)], N = M + 1 + dummies, M ~ Bin(n - 1, weight). M is the number of other people whose report is
drawn from a common distribution (the blanket). Each f decreases with N, so several consecutive N count as the smallest
of them. With L the loss of one report of the blanket, E L = -(e**epsilon - 1) =: -a,

    delta(epsilon) <= E (1/N) E[L_1 + ... + L_N]_+ .

Hoeffding, L in an interval of length b:     E[sum]_+ <= b**2/(4a) exp(-2 N a**2/b**2).
Bennett, L <= b_+, c = E[L**2], u = a b_+/c:  E[sum]_+ <= b_+/ln(1 + u) exp(-N (c/b_+**2) ((1 + u) ln(1 + u) - u)).

Both bounds follow from E[sum]_+ = integral of P(sum > t) over t > 0. Bennett's uses P(sum > t) <=
e**(-st) E[e**(sL)]**N at s = ln(1 + u)/b_+. Ladjel et al. 2021 print Bennett's factor with a further 1/(a N); that
expression is not an upper bound.

Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, LOG_TAIL, CountRows, Floats

_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Distribution of the loss L of one blanket report of k-ary randomized response, which has three values.

    L is `most` with probability 1/k (the report is the target's first value), `least` with probability 1/k (its second
    value), and `middle` otherwise. `drift` is -E[L], `square` is E[L**2].
    """

    most: float
    least: float
    middle: float
    drift: float
    square: float

    @classmethod
    def of(cls, *, k: int, truth: float, lie: float, epsilon: float) -> Loss:
        """Distribution of the loss L at `epsilon`.

        >>> loss = Loss.of(k=20, truth=0.81, lie=0.01, epsilon=1.0)
        >>> round(loss.most, 3), round(loss.least, 3), round(loss.square, 3)
        (15.656, -43.836, 108.443)
        """
        growth, gamma, pull = math.exp(epsilon), k * lie, k * (truth - lie)
        middle = gamma * -math.expm1(epsilon)
        most, least = middle + pull, middle - growth * pull
        square = (most**2 + least**2 + (k - 2) * middle**2) / k
        return cls(most=most, least=least, middle=middle, drift=math.expm1(epsilon), square=square)


def hoeffding(loss: Loss, reports: Floats) -> Floats:
    """Hoeffding's upper bound on (1/N) E[L_1 + ... + L_N]_+ for each N in the array `reports`.

    >>> loss = Loss.of(k=20, truth=0.81, lie=0.01, epsilon=1.0)
    >>> round(50 * float(hoeffding(loss, np.array([50.0]))[0]), 1)
    473.7
    """
    spread = loss.most - loss.least
    return spread**2 / (4 * loss.drift * reports) * np.exp(-2 * reports * (loss.drift / spread) ** 2)


def bennett(loss: Loss, reports: Floats) -> Floats:
    """Bennett's upper bound on (1/N) E[L_1 + ... + L_N]_+ for each N in the array `reports`.

    >>> loss = Loss.of(k=20, truth=0.81, lie=0.01, epsilon=1.0)
    >>> round(50 * float(bennett(loss, np.array([50.0]))[0]), 1)
    37.6
    """
    if loss.most <= 0:
        return np.zeros_like(reports)
    u = loss.drift * loss.most / loss.square
    rate = loss.square / loss.most**2 * ((1 + u) * math.log1p(u) - u)
    return loss.most / (math.log1p(u) * reports) * np.exp(-reports * rate)


def clones(local_epsilon: float, epsilon: float, reports: Floats) -> Floats:
    """Return, for each N in `reports`, the divergence of binary randomized response among N - 1 fair bits, rounded up.

    Two values' report distributions of an epsilon_0-private randomizer are a post-processing of those of binary
    randomized response. Another person's report is a clone of the first value's report with probability
    e**-epsilon_0/2, and a clone of the second value's report with the same probability.

    >>> round(float(clones(1.0, 0.0, np.array([1.0]))[0]), 6) == round(math.tanh(0.5), 6)
    True
    """
    lie = 1 / (1 + math.exp(local_epsilon))
    rate = 2 * (1 - lie) * -math.expm1(epsilon - local_epsilon)
    swing = 2 * math.tanh(local_epsilon / 2) * (1 + math.exp(epsilon))
    return _mean_above(reports, 0.5, rate=rate, swing=swing)


def any_randomizer(local_epsilon: float, epsilon: float, reports: Floats) -> Floats:
    """Return the largest (1/N) E[L_1 + ... + L_N]_+ of any epsilon_0-private randomizer, rounded up.

    The blanket is one of the target's two report distributions, with weight e**-epsilon_0. L = 1 - e**epsilon r; r
    is the likelihood ratio of the two distributions, E r = 1, e**-epsilon_0 <= r <= e**epsilon_0. The positive part is
    convex in each r, so the worst distribution of r has only the smallest and the largest value of r.

    >>> round(float(any_randomizer(1.0, 0.0, np.array([1.0]))[0]), 6) == round(math.tanh(0.5), 6)
    True
    """
    rate, swing = -math.expm1(epsilon - local_epsilon), 2 * math.exp(epsilon) * math.sinh(local_epsilon)
    return _mean_above(reports, 1 / (1 + math.exp(local_epsilon)), rate=rate, swing=swing)


def _mean_above(reports: Floats, chance: float, *, rate: float, swing: float) -> Floats:
    """(1/N) E[rate N - swing H]_+, H ~ Bin(N, chance), N = `reports`, rounded up."""
    if rate <= 0:
        return np.zeros_like(reports)
    level = reports * (rate / swing)
    whole = np.floor(level)
    value, error = binomial.shortfall(whole, reports, chance)
    below = binomial.lower_tail(whole, reports, chance)
    slack = binomial.margin(float(reports.max())) * (level - whole) + 16 * EPS * level
    rounded_up: Floats = swing * (value + error + (level - whole + slack) * below) / reports * _ROUND_UP
    return rounded_up


def mixed(term: Callable[[Floats], Floats], *, n: int, weight: float, dummies: int) -> float:
    """Upper bound on E term(M + 1 + dummies), M ~ Bin(n - 1, weight), at most 1; `term` must be decreasing."""
    rows = CountRows.of(n - 1, weight)
    values = term(rows.first + 1 + dummies)
    most = float(term(np.array([1.0 + dummies]))[0])
    total = float(rows.at_most @ values) * (1 + EPS * (64 + values.size)) * _ROUND_UP
    return min(total + 2 * math.exp(LOG_TAIL) * most, 1.0)


def clones_closed_form(n: int, local_epsilon: float, delta: float) -> float | None:
    """Return epsilon (nats) by the closed form of "hiding among the clones"; None where the theorem does not apply.

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    >>> round(clones_closed_form(10**6, 1.0, 1e-6), 4)
    0.0235
    """
    if local_epsilon > math.log(n / (16 * math.log(2 / delta))):
        return None
    growth = math.exp(local_epsilon)
    inside = 8 * math.sqrt(growth * math.log(4 / delta) / n) + 8 * growth / n
    return math.log1p(math.tanh(local_epsilon / 2) * inside) * _ROUND_UP


def stronger_clones_closed_form(n: int, local_epsilon: float, delta: float) -> float | None:
    """Return epsilon (nats) by the closed form of "stronger privacy amplification"; None where it does not apply.

    Source: Feldman, McMillan, Talwar 2023 (arXiv 2208.04591), section 3.

    >>> round(stronger_clones_closed_form(10**6, 1.0, 1e-6), 4)
    0.0195
    """
    room = n / (8 * math.log(2 / delta)) - 1
    if room <= 0 or local_epsilon > math.log(room):
        return None
    inside = 4 * math.sqrt(2 * math.log(4 / delta) / ((math.exp(local_epsilon) + 1) * n)) + 4 / n
    return math.log1p(math.expm1(local_epsilon) * inside) * _ROUND_UP
