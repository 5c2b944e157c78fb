"""Certified bounds on the probability of a right guess for mechanisms other than randomized response.

Upper bound: the smallest that applies of four. (1) For one unshuffled report. (2) If each report supports a set of
values: for an adversary who also sees which reports of known people are truthful. (3) Else, or for sums: from central
DP. (4) If the mechanism has a matrix: from the counts of the reports (`shuffled`). Lower bound: from these counts, or
the success of an uninformed adversary, if each dummy supports a fixed number of values. Other priors and gains use all
but the second.

Source: docs/theory/guessing.md, Theorems 10 to 12, 14 to 16; K. Joag-Dev, F. Proschan 1983.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from hushuffle import _checks
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser, Strong
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation
from hushuffle.model.bound import Kind
from hushuffle.model.citation import BLANKET, BRAUN, QIF
from hushuffle.model.prior import Prior
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.questions.qif.blanket import bins
from hushuffle.questions.qif.gain import Numbers, Table, distribution, posterior_vulnerability, prior_vulnerability
from hushuffle.questions.qif.knowledge import against, known_others
from hushuffle.questions.qif.shuffled import Release

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import Support
    from hushuffle.model import Histogram

NEGATIVE: Final = Citation(
    key="joagdev1983",
    text="K. Joag-Dev, F. Proschan, Negative association of random variables with applications, "
    "Annals of Statistics 11 (1983)",
)

_LOG_TAIL: Final = -80.0
_POINTS: Final = 2_000
"""Maximum number of evaluated counts; larger ranges are divided into steps, evaluated at the conservative side."""

_TRIED: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.2, 3.2, 4.5, 6.5)
"""Values of epsilon (nats) at which the central delta is evaluated."""

_NEGLIGIBLE: Final = 1e-6
"""A smaller delta hardly changes the probability of a right guess."""

_ROUNDING: Final = 2.0**-40


def guess_bound(protocol: Protocol, *, known: int, composition: Histogram | None, tolerance: float = 0.0) -> Bound:
    """Return bounds on the success of an adversary who knows `known` people, with values `composition` if given.

    If supported values alone give a relative width below `tolerance`, the counts of the reports are not evaluated.
    """
    law, k = protocol.randomizer.law(), protocol.randomizer.inputs
    # Naming a value among k is naming a person among k people with different values.
    success, attained = law.bayes(Prior.of(k))
    if protocol.reveals is Reveals.SENDERS and attained:
        return Bound.exact(float(success), unit="probability", sources=(BRAUN,))
    upper, lower, sources = float(success), 1 / k, [BRAUN]
    # Other shufflers reveal at most the unshuffled reports; sums reveal at most how often each report occurs.
    hidden, support = protocol.reveals in (Reveals.MULTISET, Reveals.SUMS), law.support
    if hidden and support is not None:
        upper = min(upper, _supporting(protocol, support, known))
        if support.disjoint and (known == 0 or composition is None):
            lower = max(lower, _nobody_known(protocol, support))
            sources.append(NEGATIVE)
    release, uniform = None if upper < (1 + tolerance) * lower else Release.of(protocol), np.full(k, 1 / k)
    ends = release.ends(uniform, np.eye(k), shares=uniform, known=(known, composition)) if release else None
    if ends and ends[0] == ends[1]:
        return Bound.exact(min(1.0, max(1 / k, ends[0])), unit="probability", sources=(QIF.at("Definition 2"),))
    if hidden:
        sources.insert(1, BLANKET)
        if support is None or protocol.reveals is Reveals.SUMS:
            upper = min(upper, _central(protocol))
    upper = min(1.0, upper * (1 + _ROUNDING))
    if ends:
        lower, upper = max(lower, ends[0]), min(upper, ends[1])
        sources.append(QIF.at("Definition 2"))
    kind: Kind = "bracket" if lower > 1 / k else "upper"
    return Bound(lower=min(lower, upper), upper=upper, kind=kind, unit="probability", sources=tuple(sources))


def _central(protocol: Protocol) -> float:
    """Return the minimum of (e**epsilon + (k - 1) delta(epsilon))/k over the values in `_TRIED`."""
    curve, k = privacy_curve(protocol).near(_NEGLIGIBLE, often=True), protocol.randomizer.inputs
    lower, floors = 1.0, []
    for epsilon in _TRIED:
        lower = curve.lower(epsilon)[0] if lower > _NEGLIGIBLE else 0.0
        floors.append((math.exp(epsilon) + (k - 1) * lower, epsilon))
    best = float(k)
    for floor, epsilon in sorted(floors):
        if floor < best:  # otherwise the level cannot improve the bound
            best = min(best, math.exp(epsilon) + (k - 1) * curve.upper(epsilon))
    return best / k


def gain_vulnerability(
    protocol: Protocol, *, gain: Table, frequencies: Numbers, adversary: Guesser | None = None
) -> Bound:
    """Return an adversary's expected gain from a guess of one value, for a given prior.

    It is exact (relative error below 1e-12) without a shuffler. It is also exact if `adversary` knows no value and all
    possible histograms of the reports can be enumerated. Otherwise it is a certified bracket behind `UniformShuffle`
    and `Scrambler` for mechanisms with a matrix, and an upper bound for other shufflers and mechanisms.

    Args:
        protocol: the collection, with any mechanism.
        gain: gain of guess w when the value is x, shape (guesses, k): `identity_gain(k)`, `tries_gain`,
            `distance_gain`, or other numbers.
        frequencies: the adversary's prior probability of each value, shape (k,), sum 1.
        adversary: what it knows about the others (default: `Strong()`, the worst case over all other values). Values
            that it does not know have the prior `frequencies`, independently.

    Raises:
        InvalidInputError: `frequencies` is not a distribution over the k values, or a shape does not fit.
        UnsupportedProtocolError: the mechanism has no explicit matrix and no central guarantee.

    Source: docs/theory/guessing.md, Theorems 12, 14 to 16.

    >>> import hushuffle as hs
    >>> channel = hs.MatrixRandomizer([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> survey = hs.Protocol(randomizer=channel, shuffler=hs.UniformShuffle(), n=500)
    >>> near = [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]
    >>> print(hs.qif.gain_vulnerability(survey, gain=near, frequencies=[0.3, 0.3, 0.4], adversary=hs.Uninformed()))
    0.6500 gain (exact)
    >>> print(hs.qif.gain_vulnerability(survey, gain=near, frequencies=[0.3, 0.3, 0.4]))
    0.6500 to 0.6501 gain (certified bracket)
    """
    _checks.of_type("protocol", protocol, Protocol)
    prior = distribution(frequencies, name="frequencies")
    if prior.size != protocol.randomizer.inputs:
        _checks.reject("frequencies", f"{protocol.randomizer.inputs} probabilities", prior.size)
    before = float(prior_vulnerability(prior, gain))
    table = np.array(gain, dtype=np.float64)
    least, most = float(table.min()), float(table.max())
    honest, guesser = against(protocol, Strong() if adversary is None else adversary)
    others_known = known_others(honest, guesser)
    ends: list[float] = []
    refusal: UnsupportedProtocolError | None = None
    try:
        ends.append(float(posterior_vulnerability(protocol.randomizer.channel(), prior, gain)))
    except UnsupportedProtocolError as error:
        refusal = error
    if protocol.shuffler.reveals is Reveals.SENDERS:
        if refusal is not None:
            raise refusal
        return Bound.exact(ends[0], unit="gain", sources=(BRAUN,))
    shares, release = prior.astype(np.float64), Release.of(honest)
    counted = release.ends(shares, table, shares=shares, known=others_known) if release else (-math.inf, math.inf)
    if counted[0] == counted[1]:
        return Bound.exact(max(before, counted[0]), unit="gain", sources=(QIF.at("Definition 2"),))
    try:
        curve, spread = privacy_curve(protocol), (most - least) * (1 - float(prior.max()))
        ends += [least + math.exp(e) * (before - least) + spread * curve.upper(e) for e in _TRIED]
    except UnsupportedProtocolError:
        if refusal is not None:
            raise
    slack = _ROUNDING * max(abs(least), abs(most))
    upper = max(before, min(most, min(ends) + slack, counted[1]))
    lower = min(upper, max(before, counted[0]))
    kind: Kind = "bracket" if counted[0] > -math.inf else "upper"
    return Bound(lower=lower, upper=upper, kind=kind, unit="gain", sources=(BRAUN, BLANKET, QIF.at("Definition 2")))


def _supporting(protocol: Protocol, support: Support, revealed: int) -> float:
    """Return (1 - theta)/k + theta E[max_x h_x/(k s N)] if the adversary sees which known reports are truthful."""
    k, truthful, extra = protocol.randomizer.inputs, support.told, protocol.shuffler.dummies
    others = protocol.n - 1
    # If the report of a uniform value is not distributed like a dummy, all others are treated as known.
    reveal = revealed if support.disjoint else others
    starts, _, masses, lost = bins(reveal, 1 - truthful, k) if reveal else (np.zeros(1), np.zeros(1), np.ones(1), 0.0)
    rate = float(masses @ _fullest(starts + (others - reveal + extra + 1), support.dummy, k)) + lost
    return (1 - truthful) / k + truthful * min(1.0, rate * (1 + 2 * binomial.margin(reveal)))


def _fullest(reports: Floats, chance: float, k: int) -> Floats:
    """Return an upper bound on E[max_x h_x]/(k s N), h_x ~ Bin(N, s), for each number N of reports, k >= 2.

    For every j, max_x h_x <= j + sum_x [h_x - j]_+. The best j, with P(h > j) = 1/k, is near that of a normal h.
    """
    if chance == 0:  # no dummy supports a value, so the true value is visible
        return np.ones(reports.size)
    mean, far = reports[:, None] * chance, float(ndtri(1 - 1 / k))
    near = mean + far * np.sqrt(mean * (1 - chance)) + (1 - 2 * chance) / 6 * (far**2 - 1)
    j = np.clip(np.floor(near) + np.arange(-2.0, 3.0), 0.0, reports[:, None])
    tail = binomial.upper_tail(j + 1, reports[:, None], chance)
    edge = (j + 1) * (1 - chance) * binomial.pmf(j + 1, reports[:, None], chance)
    slack = binomial.margin(float(reports.max())) * (edge + np.abs(mean - j) * tail) + 16 * EPS * (mean + j) * tail
    best = (j + k * (edge + (mean - j) * tail + slack)).min(axis=1)
    return np.asarray(np.minimum(1.0, best / (k * mean[:, 0]) * (1 + 8 * EPS)))


def _nobody_known(protocol: Protocol, support: Support) -> float:
    """Return (1 - theta)/k + theta E[max_x h_x/(k s N)] rounded down, with N = n + dummies.

    h_x ~ Bin(N, s) are negatively associated: E[max_x h_x] >= sum_j (1 - P(h <= j)**k). Terms with j < N s count as 1.
    """
    k, reports, chance = protocol.randomizer.inputs, protocol.n + protocol.shuffler.dummies, support.dummy
    if chance == 0:
        return (1 - support.told) / k
    low, high = binomial.window(reports, chance, _LOG_TAIL)
    step = max(1, (high - low) // _POINTS)
    last = np.arange(low, high + step, step, dtype=np.float64) + step - 1  # j in steps; beyond the last the rest is 0
    slack, terms = binomial.margin(reports) + k * reports * math.exp(_LOG_TAIL), np.ones(last.size)
    away = last >= reports * chance * (1 - _ROUNDING)  # the fullest is not below the mean
    with np.errstate(divide="ignore"):  # the maximum is then certain to be larger
        terms[away] = -np.expm1(k * np.log1p(-np.minimum(binomial.upper_tail(last[away] + 1, reports, chance), 1.0)))
    lower = (low + step * float(terms.sum()) * (1 - slack) - slack) / float(k * Fraction(chance) * reports)
    return ((1 - support.told) / k + support.told * lower) * (1 - _ROUNDING)
