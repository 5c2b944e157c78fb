"""Formulas and simulations of Ladjel et al. 2021 for a scrambler, only for comparison with certified results.

`theorem_four_epsilon` and `theorem_five_epsilon` are upper bounds: those of the paper, corrected, and never below
`scrambler_epsilon`. `printed_capped_epsilon` and `printed_bennett_epsilon` return plain numbers: formulas as printed,
which are no bounds. `simulated_delta` and `simulated_epsilon` return plain numbers, too: estimates without an interval,
since few of their samples have a positive sum.

The convention is "uniform" unless stated. All use the mean over N = M + 1 + d, M ~ Bin(n - 1, sigma), of
(1/N) E[L_1 + ... + L_N]_+ as in `hushuffle.curves.published`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Literal, get_args

import numpy as np
from scipy.special import xlogy

from hushuffle import _checks
from hushuffle.curves import published
from hushuffle.curves.published import Loss
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.model import Bound
from hushuffle.model.citation import BLANKET, LADJEL
from hushuffle.numerics.binomial import CountRows, Floats
from hushuffle.numerics.roots import first_below

Inequality = Literal["hoeffding", "bennett"]

_LARGEST: Final = 60.0
"""Largest epsilon (nats) of the searches."""

_GRID: Final = np.geomspace(1e-3, _LARGEST, 120)
"""Values of epsilon at which a bound that need not decrease with epsilon is evaluated first."""

_NEGLIGIBLE: Final = 1e-9
"""Counts with a smaller probability are left out of simulations."""

_TERMS: Final = {"hoeffding": published.hoeffding, "bennett": published.bennett}


def printed_capped_epsilon(targets: int, sources: int, sigma: float, dummies: int) -> float:
    """Return the epsilon (nats) of a capped scrambler as Ladjel et al. 2021 print it: too small, no guarantee.

    The printed sum has C(d, k) in place of P(Bin(d, 1/T) >= k) for the dummies, and lacks a factor 1/(n - k). It is for
    the exclusive convention. Use `scrambler_epsilon` with a cap instead.

    Args:
        targets: number of targets T, >= 2.
        sources: number of sources n, >= 2.
        sigma: in (0, 1), exclusive convention.
        dummies: number of dummies d, 0 to n - 1.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Theorem 3, refuted; docs/theory/traffic.md, Theorem 3.

    >>> import hushuffle as hs
    >>> round(hs.traffic.published.printed_capped_epsilon(targets=3, sources=5, sigma=0.5, dummies=3), 4)
    0.4016
    >>> print(hs.traffic.scrambler_epsilon(targets=3, sources=5, sigma=0.5, dummies=3, cap=5, convention="exclusive"))
    0.5510 nats (exact)
    """
    t, n = _checks.integer("targets", targets, low=2), _checks.integer("sources", sources, low=2)
    d = _checks.integer("dummies", dummies, low=0, high=n - 1)
    rate = _checks.probability("sigma", sigma, low_open=True, high_open=True)
    k, truth, lie = np.arange(d + 1, dtype=np.float64), 1 - rate, rate / (t - 1)
    logs = _log_choose(d, d) + _log_choose(n - 1, d) + xlogy(k, truth) + xlogy(n - 1 - k, lie)
    weights = np.exp(logs - logs.max())
    shared = k * lie**2 / truth
    return math.log(float(weights @ (truth + shared)) / float(weights @ (lie + shared)))


def theorem_four_epsilon(
    targets: int, sources: int, sigma: float, dummies: int, *, delta: float, inequality: Inequality = "hoeffding"
) -> Bound:
    """Return epsilon (nats) by Theorem 4 of Ladjel et al. 2021, corrected: an upper bound, at most the local epsilon.

    Here a = e**epsilon - 1 (printed: 1 - e**epsilon), and the interval has its exact length. With "bennett", Bennett's
    inequality with the corrected factor refines the bound. sigma = 0 (no sampling) is allowed.

    Args:
        targets: number of targets T, >= 2.
        sources: number of sources n.
        sigma: probability that a source replaces its target by a random target.
        dummies: number of dummies d.
        delta: in (0, 1).
        inequality: "hoeffding" or "bennett".

    Raises:
        InvalidInputError: an argument out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Theorem 4, corrected; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> print(hs.traffic.published.theorem_four_epsilon(20, 500, 0.2, 400, delta=1e-4, inequality="bennett"))
    at most 1.111 nats (upper bound)
    """
    if inequality not in get_args(Inequality):
        _checks.reject("inequality", "hoeffding or bennett", repr(inequality))
    case = _Parameters.of(targets, sources, sigma, dummies)
    term = _TERMS[inequality]
    value = case.epsilon(lambda each, epsilon, reports: term(each.loss(epsilon), reports), delta)
    sources_ = (BLANKET.at("section 5"), LADJEL.at("Theorem 4, corrected"))
    return Bound(lower=0.0, upper=value, kind="upper", unit="nats", sources=sources_)


def theorem_five_epsilon(targets: int, sources: int, sigma: float, dummies: int, *, delta: float) -> Bound:
    """Return epsilon (nats) by Theorem 5 of Ladjel et al. 2021: Hoeffding's bound for any local randomizer.

    b = sigma (1 + e**epsilon)(e**epsilon_0 - e**-epsilon_0), a = e**epsilon - 1 (printed: 1 - e**epsilon). The interval
    length b exceeds that of target sampling, so the bound is valid, but at least as large as `theorem_four_epsilon`.

    Raises:
        InvalidInputError: an argument (as in `theorem_four_epsilon`) out of range, or sigma = 0 (no local epsilon).

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Theorem 5; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> print(hs.traffic.published.theorem_five_epsilon(20, 500, 0.9, 1000, delta=1e-4))
    at most 0.2285 nats (upper bound)
    """
    case = _Parameters.of(targets, sources, _checks.probability("sigma", sigma, low_open=True), dummies)

    def term(case: _Parameters, epsilon: float, reports: Floats) -> Floats:
        loss, half = case.loss(epsilon), case.sigma * (1 + math.exp(epsilon)) * math.sinh(case.local)
        return published.hoeffding(replace(loss, most=half, least=-half), reports)

    value = case.epsilon(term, delta)
    return Bound(lower=0.0, upper=value, kind="upper", unit="nats", sources=(LADJEL.at("Theorem 5"),))


def printed_bennett_epsilon(targets: int, sources: int, sigma: float, dummies: int, *, delta: float) -> float:
    """Return epsilon (nats) by Bennett's inequality as Ladjel et al. 2021 print it: no bound.

    The printed factor b_+/(a (m + d) ln(1 + a b_+/c)) is 1/(a (m + d)) times the correct factor. b_+ is as printed in
    Lemma 5, and a = e**epsilon - 1. Where the formula has no solution, the result is the local epsilon.

    Raises:
        InvalidInputError: an argument (as in `theorem_four_epsilon`) out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Lemmas 3 and 5, refuted; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> print(hs.traffic.scrambler_epsilon(20, 500, 0.2, 400, delta=1e-4))
    0.7180 to 0.7182 nats (certified bracket)
    >>> round(hs.traffic.published.printed_bennett_epsilon(20, 500, 0.2, 400, delta=1e-4), 4)
    0.4585
    """

    def term(case: _Parameters, epsilon: float, reports: Floats) -> Floats:
        loss = case.loss(epsilon)
        as_printed = replace(loss, most=loss.most + 2 * case.sigma * loss.drift)
        return published.bennett(as_printed, reports) / (loss.drift * reports)

    return _Parameters.of(targets, sources, sigma, dummies).epsilon(term, delta)


def simulated_delta(
    targets: int, sources: int, sigma: float, dummies: int, *, epsilon: float, samples: int = 5000, seed: int = 1
) -> float:
    """Return the simulated delta of Ladjel et al. 2021: for each N, the mean over `samples` sums L_1 + ... + L_N.

    It estimates the privacy blanket's bound, which `scrambler_epsilon` sums exactly. It is no guarantee: if delta is
    small, few samples have a positive sum, and the estimate is often 0.

    Args:
        targets: number of targets T, >= 2.
        sources: number of sources n.
        sigma: probability that a source replaces its target by a random target.
        dummies: number of dummies d.
        epsilon: in nats, >= 0.
        samples: number R of sums for each N.
        seed: seed of NumPy's generator.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021, Algorithm 2; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> hs.traffic.published.simulated_delta(20, 100, 0.2, 50, epsilon=1.0) > 0.015
    True
    """
    level = _checks.non_negative("epsilon", epsilon)
    return _Samples.of(_Parameters.of(targets, sources, sigma, dummies), samples, seed).delta(level)


def simulated_epsilon(
    targets: int, sources: int, sigma: float, dummies: int, *, delta: float, samples: int = 5000, seed: int = 1
) -> float:
    """Return the epsilon (nats) at which `simulated_delta` is `delta`, with the same samples for every epsilon.

    The result is at most the local epsilon. Arguments, Raises and Source are those of `simulated_delta`.

    >>> import hushuffle as hs
    >>> certified = hs.traffic.scrambler_epsilon(20, 100, 0.2, 50, delta=1e-2).upper
    >>> abs(hs.traffic.published.simulated_epsilon(20, 100, 0.2, 50, delta=1e-2) / certified - 1) < 0.05
    True
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    case = _Parameters.of(targets, sources, sigma, dummies)
    drawn = _Samples.of(case, samples, seed)
    low, high = 0.0, min(case.local, _LARGEST)
    if drawn.delta(high) > level:
        return case.local
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if drawn.delta(middle) <= level else (middle, high)
    return high


class _Parameters:
    def __init__(self, targets: int, sources: int, sigma: float, dummies: int) -> None:
        self.targets, self.sources, self.sigma, self.dummies = targets, sources, sigma, dummies
        self.local = TargetSampling(targets=targets, sigma=sigma).local_epsilon

    @classmethod
    def of(cls, targets: int, sources: int, sigma: float, dummies: int) -> _Parameters:
        return cls(
            _checks.integer("targets", targets, low=2),
            _checks.integer("sources", sources, low=1),
            _checks.probability("sigma", sigma),
            _checks.integer("dummies", dummies, low=0),
        )

    def loss(self, epsilon: float) -> Loss:
        lie = self.sigma / self.targets
        return Loss.of(k=self.targets, truth=1 - self.sigma + lie, lie=lie, epsilon=epsilon)

    def epsilon(self, term: Callable[[_Parameters, float, Floats], Floats], delta: float) -> float:
        """Return an epsilon at which the mean of `term` over N is at most `delta`; smaller solutions may exist."""
        level = _checks.probability("delta", delta, low_open=True, high_open=True)

        def mean(epsilon: float) -> float:
            inner = partial(term, self, epsilon)
            return published.mixed(inner, n=self.sources, weight=self.sigma, dummies=self.dummies)

        for point in _GRID[self.local > _GRID].tolist():
            if mean(point) <= level:
                return point if point == _GRID[0] else first_below(mean, level, high=point, guess=point)
        return self.local


class _Samples:
    """Sums of losses for each number N of reports: how many reports fell on the target's two values."""

    def __init__(self, case: _Parameters, reports: Floats, weights: Floats, here: Floats, there: Floats) -> None:
        self.case, self.reports, self.weights, self.here, self.there = case, reports, weights, here, there

    @classmethod
    def of(cls, case: _Parameters, samples: int, seed: int) -> _Samples:
        size = _checks.integer("samples", samples, low=1)
        rows = CountRows.of(case.sources - 1, case.sigma, step=1)
        retained = rows.mass > _NEGLIGIBLE
        reports = rows.first[retained] + 1 + case.dummies
        rng, whole = np.random.default_rng(seed), reports.astype(np.int64)[:, None]
        here = rng.binomial(whole, 1 / case.targets, size=(whole.size, size))
        there = rng.binomial(whole - here, 1 / (case.targets - 1))
        return cls(case, reports, rows.mass[retained], here.astype(np.float64), there.astype(np.float64))

    def delta(self, epsilon: float) -> float:
        case, growth = self.case, math.exp(epsilon)
        level = case.sigma * math.expm1(epsilon) * self.reports[:, None]
        pull = (1 - case.sigma) * case.targets
        sums = np.maximum(pull * (self.here - growth * self.there) - level, 0.0)
        return float(self.weights @ (sums.mean(axis=1) / self.reports))


def _log_choose(n: int, most: int) -> Floats:
    k = np.arange(most, dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(np.log(n - k) - np.log(k + 1))])
