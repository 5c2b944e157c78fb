"""The probability that an adversary guesses the target's value after the release, or a fast bracket of it for charts.

Every adversary here has a uniform prior over the k values of the target, observes the release and guesses
once. A symmetric randomizer reports the truth with probability theta and a uniform value otherwise. So after a
shuffle V = nu + theta G, where G is the probability to guess the value of a target whose report is truthful.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle.mechanisms.adversaries import Guesser, Informed, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import DummyLaw, Reveals
from hushuffle.model import Bound, Histogram, Kind, Witness
from hushuffle.model.citation import BLANKET, DARROCH, QIF, Citation
from hushuffle.numerics import binomial
from hushuffle.questions.qif import many
from hushuffle.questions.qif.blanket import shuffle_rate
from hushuffle.questions.qif.bounds import guess_bound
from hushuffle.questions.qif.knowledge import (
    QUESTION,
    Knowledge,
    Rates,
    against,
    knowledge,
    known_others,
    symmetric_law,
)

_UNIT: Final = "probability"
_ROUNDING: Final = 2.0**-50


def vulnerability(protocol: Protocol, *, adversary: Guesser | None = None) -> Bound:
    """Return the probability V that `adversary` (default: `Uninformed()`) guesses the target's value.

    For randomized response, V is exact (relative error below 1e-12) without a shuffler and for the uninformed
    adversary. For two values V is exact, with one exception: the worst case over more than 100,000 known people, if the
    number of known people or the number of unknown reports is odd. For more values V is exact if few people are known
    or all known people have one value. Otherwise V is a certified bracket. In all tested cases the bounds on V - 1/k,
    for k values, differed by less than 25 % (k = 3), 12 % (k = 5) and 2 % (k = 20) for `Strong()`; by less than 51 %,
    16 % and 3 % for `Informed(m=...)`; and by a factor 3.3 for given histograms of many people with several values.

    For other mechanisms, V is exact without a shuffler, and for the uninformed adversary if all possible histograms of
    reports can be enumerated. Otherwise it is a certified bracket if the mechanism has a matrix or its reports are sets
    (`SubsetSelection`), else an upper bound. Dummies are uniform reports; if their number is random, V is the mean over
    this number. The computation takes a few seconds at most, up to n = 10**9.

    Args:
        protocol: the collection.
        adversary: `Uninformed()`, `Strong(others=...)` or `Informed(m=..., known=...)`. Without a histogram of the
            known people the result is the worst case over their values, given as the witness. If the protocol has
            `honest` people, the known people are among these, and all others collude with the adversary.

    Raises:
        InvalidInputError: the adversary's histogram does not fit the protocol.
        UnsupportedProtocolError: randomized response with a shuffler that reveals a noisy order; or a
            mechanism whose matrix is too large.
        NumericalError: n, above 10**9, is too large for the mean largest count of k values (`max_load`).

    Source: Jurado et al. 2023, Theorems 17 and 19, Propositions 15, 20, 21, section V; docs/theory/guessing.md,
    Theorems 4 to 7.

    >>> import hushuffle as hs
    >>> voters = hs.RandomizedResponse.from_truth_probability(k=2, p=0.8)
    >>> survey = hs.Protocol(randomizer=voters, shuffler=hs.UniformShuffle(), n=201)
    >>> print(hs.qif.vulnerability(survey, adversary=hs.Strong(others=hs.Histogram(counts=[200, 0]))))
    0.5211 (exact)
    >>> print(hs.qif.vulnerability(survey))
    0.5169 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    protocol, guesser = against(protocol, Uninformed() if adversary is None else adversary)
    if protocol.shuffler.dummy_law is not None:
        return _drawn(protocol, protocol.shuffler.dummy_law, guesser)
    if protocol.randomizer.law().symmetric is None:
        m, composition = known_others(protocol, guesser)
        return guess_bound(protocol, known=m, composition=composition)
    background = knowledge(protocol, guesser)
    if protocol.reveals is Reveals.SENDERS:
        return Bound.exact(float(background.law.truth), unit=_UNIT, sources=(QIF.at("Proposition 15"),))
    _check_uniform(protocol.reveals)
    return _shuffled(background)


def over_dummies(
    protocol: Protocol,
    figure: Callable[[Protocol], Bound],
    *,
    least: Callable[[Protocol], Bound] | None = None,
    floor: float | None = None,
) -> Bound:
    """Return the mean success over a random number of dummies, which the adversary can count.

    `figure`: success for a fixed number. `least`: a lower bound if known values are the same for all numbers.
    `floor`: success without a release (default 1/k).

    Source: docs/theory/more-and-less.md, Theorem 10.
    """
    law = protocol.shuffler.dummy_law
    assert law is not None
    blind = prior(protocol).lower if floor is None else floor
    figures: list[Bound] = []

    def ends(dummies: int) -> tuple[float, float]:
        given = protocol.with_dummies(dummies)
        figures.append(figure(given))
        low = figures[-1] if least is None else least(given)
        return max(low.lower - blind, 0.0), max(figures[-1].upper - blind, 0.0)

    lower, upper, numbers = law.falling_mean(ends)
    lower, upper = (blind + lower) * (1 - _ROUNDING), min((blind + upper) * (1 + _ROUNDING), 1.0)
    sources = figures[0].sources
    exact = least is None and len(numbers) == law.numbers.size and all(one.kind == "exact" for one in figures)
    if exact:
        return Bound.exact(upper, unit=_UNIT, sources=sources)
    kind: Kind = "bracket" if lower > blind else "upper"
    return Bound(lower=lower, upper=upper, kind=kind, unit=_UNIT, sources=sources)


def _drawn(protocol: Protocol, law: DummyLaw, guesser: Guesser) -> Bound:
    witness = vulnerability(protocol.with_dummies(law.middle), adversary=guesser).witness
    if witness is None:
        m, composition = known_others(protocol, guesser)
        # The worst values of known people may differ between numbers of dummies; the mean over values does not.
        worst = m > 0 and composition is None
        return over_dummies(
            protocol, lambda given: vulnerability(given, adversary=guesser), least=vulnerability if worst else None
        )
    counts = np.zeros(protocol.randomizer.inputs, dtype=np.int64)
    counts[: len(witness.others)] = witness.others
    informed = Informed(m=int(counts.sum()), known=Histogram(counts=counts))
    bound = over_dummies(
        protocol,
        lambda given: vulnerability(given, adversary=guesser),
        least=lambda given: vulnerability(given, adversary=informed),
    )
    return replace(bound, witness=witness)


def prior(protocol: Protocol) -> Bound:
    """Return 1/k, the probability to guess the target's value without the release.

    Source: Jurado et al. 2023, Proposition 14.

    >>> import hushuffle as hs
    >>> print(hs.qif.prior(hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=1.0), shuffler=hs.NoShuffle(),
    ...     n=3)))
    0.2000 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return Bound.exact(1 / protocol.randomizer.inputs, unit=_UNIT, sources=(QIF.at("Proposition 14"),))


def guarantee_vulnerability(k: int, *, epsilon: float, delta: float) -> Bound:
    """Return an upper bound on a right guess among k values, from any central guarantee (also of several reports).

    Source: docs/theory/guessing.md, Theorem 13.

    >>> print(guarantee_vulnerability(6, epsilon=0.0, delta=0.0))
    at most 0.1667 (upper bound)
    """
    wrong = (k - 1) * math.exp(-epsilon)
    # (e**epsilon + (k - 1) delta) / (e**epsilon + k - 1), without overflow, rounded upwards
    right = min((1 + wrong * delta) / (1 + wrong) * (1 + 4 * _ROUNDING), 1.0)
    return Bound(lower=0.0, upper=right, kind="upper", unit=_UNIT)


def asymptotic_vulnerability(protocol: Protocol) -> float:
    """Return an approximation of `vulnerability` for the uninformed adversary after a shuffle. It is not a bound.

    For N reports of k values, N >> k ln k, it is nu + theta (1/k + sqrt(2 ln k/(N k))): a report is the true value with
    probability nu + theta, each other value with probability nu. For few people it may exceed 1. It can be too low or
    too high: its error is 14 % at N = k = 1000 without noise.

    Raises:
        UnsupportedProtocolError: no symmetric randomizer, or no uniform shuffle.

    Source: Jurado et al. 2023, Theorem 22; Raab and Steger 1998.

    >>> import hushuffle as hs
    >>> open_ballot = hs.RandomizedResponse(k=100, epsilon=float("inf"))
    >>> round(hs.qif.asymptotic_vulnerability(hs.Protocol(randomizer=open_ballot, shuffler=hs.UniformShuffle(),
    ...     n=5000)), 5)
    0.01429
    """
    _checks.of_type("protocol", protocol, Protocol)
    law = symmetric_law(protocol)
    _check_uniform(protocol.reveals)
    reports = protocol.n + protocol.shuffler.dummies
    return float(law.lie) + float(law.theta) * (1 / law.k + math.sqrt(2 * math.log(law.k) / (reports * law.k)))


def _check_uniform(reveals: Reveals) -> None:
    if reveals is not Reveals.MULTISET:
        _checks.unsupported(f"{QUESTION} needs a shuffler that reveals the multiset, not the {reveals.value}.")


def _shuffled(background: Knowledge) -> Bound:
    rates = many.rates_of_two(background) if background.law.k == 2 else many.rates(background)
    lie, theta, truth = float(background.law.lie), float(background.law.theta), float(background.law.truth)
    witness = _witness(background, rates)
    if rates.lower == rates.upper:
        value = min(lie + theta * rates.upper, truth)
        return Bound.exact(value, unit=_UNIT, sources=_sources(background, exact=True), witness=witness)
    lower = (lie + theta * rates.lower) * (1 - _ROUNDING)
    upper = min(lie + theta * rates.upper, truth) * (1 + _ROUNDING)
    sources = _sources(background, exact=False)
    return Bound(lower=lower, upper=upper, kind="bracket", unit=_UNIT, sources=sources, witness=witness)


def _witness(background: Knowledge, rates: Rates) -> Witness | None:
    if rates.known is None or background.m == 0:
        return None
    exact = rates.lower == rates.upper
    family = "the worst values of the known people" if exact else "values of the known people at the lower bound"
    return Witness(family=family, others=rates.known, target=(0, 1))


def _sources(background: Knowledge, *, exact: bool) -> tuple[Citation, ...]:
    if background.m == 0:
        return (QIF.at("Theorem 19" if background.law.k == 2 else "Proposition 21"),)
    if background.law.k == 2:
        return (QIF.at("section V"), DARROCH)
    return (QIF.at("section V"),) if exact else (QIF.at("section V"), BLANKET)


COARSE: Final = 1e-6
"""Relative error allowed in the rates; brackets are widened by twice this error."""

_BINS: Final = 8
_LOG_TAIL: Final = -30.0


def quick_vulnerability(protocol: Protocol, *, adversary: Guesser) -> Bound:
    """Return `vulnerability`, or a certified bracket of it if the exact value takes long to compute.

    With k > 3 and no known value, the bounds differ by a relative 2e-6. In the worst case over known values with k > 2,
    they differ by about 10 % of V - 1/k, with V the vulnerability; for `Strong()`, little noise and few people by up to
    55 %. The computation takes 10 to 50 ms up to n = 10**6.

    Raises:
        HushuffleError: as for `vulnerability`.

    Source: docs/theory/guessing.md, Theorem 7; Balle, Bell, Gascon, Nissim 2019 (the blanket).

    >>> import hushuffle as hs
    >>> answers = hs.RandomizedResponse(k=10, epsilon=2.0)
    >>> survey = hs.Protocol(randomizer=answers, shuffler=hs.UniformShuffle(), n=10_000)
    >>> print(hs.qif.quick_vulnerability(survey, adversary=hs.Strong()))
    0.1023 to 0.1025 (certified bracket)
    """
    return vulnerability_within(protocol, adversary=adversary, tolerance=0.0)


def vulnerability_within(protocol: Protocol, *, adversary: Guesser, tolerance: float) -> Bound:
    """Return `quick_vulnerability`, for every mechanism, but without slow bounds if quick ones are near each other.

    These differ by less than `tolerance` V; for a random number of dummies, by about 0.05 V if `tolerance` > 0.
    """
    _checks.of_type("protocol", protocol, Protocol)
    protocol, adversary = against(protocol, adversary)
    drawn = protocol.shuffler.dummy_law is not None
    if protocol.randomizer.law().symmetric is None:
        if drawn:
            return vulnerability(protocol, adversary=adversary)
        m, composition = known_others(protocol, adversary)
        return guess_bound(protocol, known=m, composition=composition, tolerance=tolerance)
    if drawn:
        return over_dummies(
            protocol,
            lambda given: quick_vulnerability(given, adversary=adversary),
            least=lambda given: quick_vulnerability(given, adversary=Uninformed()),
            floor=0.0 if tolerance else None,
        )
    background = knowledge(protocol, adversary)
    nobody = background.m == 0
    direct = (
        background.law.k <= 3
        if nobody
        else background.law.k == 2 or background.law.lie == 0 or background.known is not None
    )
    if direct or protocol.reveals is not Reveals.MULTISET:
        return vulnerability(protocol, adversary=adversary)
    lie, theta = float(background.law.lie), float(background.law.theta)
    lower = upper = shuffle_rate(background.others + 1, background.law.k, tolerance=COARSE)  # if no value is known
    if not nobody:
        # The worst case is not below the average over what the known people hold.
        lower, upper = max(many.one_count(background, 0), lower), _upper(background)
        if lie + theta * upper > (1 + tolerance) * (lie + theta * lower):
            lower = max(lower, many.all_at_one(background, COARSE) or 0.0)  # None if the rate takes too long
    return Bound(
        lower=(lie + theta * lower) * (1 - 2 * COARSE),
        upper=min((lie + theta * upper) * (1 + 2 * COARSE), float(background.law.truth) * (1 + _ROUNDING)),
        kind="bracket",
        unit="probability",
        sources=(QIF.at("Proposition 21"),) if nobody else (QIF.at("section V"), BLANKET),
    )


def _upper(background: Knowledge) -> float:
    """Return E V_S(M + unknown + 1) by a few bins of M ~ Bin(m, gamma), each at its first count (see `blanket`)."""
    gamma = float(background.law.gamma)
    low, high = binomial.window(background.m, gamma, _LOG_TAIL)
    # One bin raises V - 1/k by a relative 9/sqrt(M).
    many = min(_BINS, high - low + 1, math.ceil(4_500 / math.sqrt(low + 1)))
    edges = np.unique(np.linspace(low, high + 1, many + 1).astype(np.int64))
    below = binomial.lower_tail(np.append(edges[0] - 1, edges[1:] - 1), background.m, gamma)
    masses = np.maximum(np.diff(below), 0.0)
    rates = [
        shuffle_rate(int(start) + background.unknown + 1, background.law.k, tolerance=COARSE) for start in edges[:-1]
    ]
    lost = 2 * float(np.exp(_LOG_TAIL))
    return (float(masses @ np.array(rates)) + lost) * (1 + 2 * binomial.margin(background.m))
