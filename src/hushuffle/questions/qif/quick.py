"""The same guessers in milliseconds: certified ends that are wide enough to be cheap, for charts."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.adversaries import Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound
from hushuffle.model.citation import BLANKET, QIF
from hushuffle.numerics import binomial
from hushuffle.questions.qif.blanket import shuffle_rate
from hushuffle.questions.qif.guessing import over_dummies, vulnerability
from hushuffle.questions.qif.knowledge import Knowledge, against, knowledge
from hushuffle.questions.qif.many import largest_probability
from hushuffle.questions.qif.one_value import one_value_rate

if TYPE_CHECKING:
    from hushuffle.mechanisms.adversaries import Guesser

COARSE: Final = 1e-6
"""Relative error allowed in the rates; the ends are moved outward by twice as much."""

_BINS: Final = 8
_ROUNDING: Final = 2.0**-50
_LOG_TAIL: Final = -30.0


def quick_vulnerability(protocol: Protocol, *, adversary: Guesser) -> Bound:
    """Return `vulnerability`, or a certified bracket of it where the exact figure takes time.

    With k > 3 and nobody known the ends differ by 2e-6 of themselves. In the worst case over known people and
    k > 2 values they differ by some 10 % of V - 1/k, for `Strong()`, little noise and few people by up to 55 %.
    Some 10 to 50 ms up to n = 10**6.

    Raises:
        HushuffleError: as `vulnerability`.

    Source: docs/theory/guessing.md, Theorem 7; Balle, Bell, Gascon, Nissim 2019 (the blanket).

    >>> import hushuffle as hs
    >>> answers = hs.RandomizedResponse(k=10, epsilon=2.0)
    >>> survey = hs.Protocol(randomizer=answers, shuffler=hs.UniformShuffle(), n=10_000)
    >>> print(hs.qif.quick_vulnerability(survey, adversary=hs.Strong()))
    0.1023 to 0.1025 (certified bracket)
    """
    _checks.of_type("protocol", protocol, Protocol)
    protocol, adversary = against(protocol, adversary)
    if protocol.shuffler.dummy_law is not None:
        return over_dummies(
            protocol,
            lambda given: quick_vulnerability(given, adversary=adversary),
            least=lambda given: quick_vulnerability(given, adversary=Uninformed()),
        )
    known = knowledge(protocol, adversary)
    nobody = known.m == 0
    direct = known.law.k <= 3 if nobody else known.law.k == 2 or known.law.lie == 0 or known.known is not None
    if direct or protocol.reveals is not Reveals.MULTISET:
        return vulnerability(protocol, adversary=adversary)
    lie, theta = float(known.law.lie), float(known.law.theta)
    lower, upper = (_nobody(known), _nobody(known)) if nobody else (_lower(known), _upper(known))
    return Bound(
        lower=(lie + theta * lower) * (1 - 2 * COARSE),
        upper=min((lie + theta * upper) * (1 + 2 * COARSE), float(known.law.truth) * (1 + _ROUNDING)),
        kind="bracket",
        unit="probability",
        sources=(QIF.at("Proposition 21"),) if nobody else (QIF.at("section V"), BLANKET),
    )


def _nobody(known: Knowledge) -> float:
    """Return the rate of a guesser who knows nobody, within a relative error of `COARSE`."""
    return shuffle_rate(known.others + 1, known.law.k, tolerance=COARSE)


def _all_at_one(known: Knowledge) -> float:
    """Return the rate when all others hold one value, 0 (a lower bound like any other) if that takes too long."""
    try:
        return one_value_rate(known.m, known.law, tolerance=COARSE)
    except NumericalError:
        return 0.0


def _upper(known: Knowledge) -> float:
    """Return E V_S(M + unknown + 1) by a few bins of M ~ Bin(m, gamma), each at its first count (see `blanket`)."""
    gamma = float(known.law.gamma)
    low, high = binomial.window(known.m, gamma, _LOG_TAIL)
    edges = np.unique(np.linspace(low, high + 1, min(_BINS, high - low + 1) + 1).astype(np.int64))
    below = binomial.lower_tail(np.append(edges[0] - 1, edges[1:] - 1), known.m, gamma)
    masses = np.maximum(np.diff(below), 0.0)
    rates = [shuffle_rate(int(start) + known.unknown + 1, known.law.k, tolerance=COARSE) for start in edges[:-1]]
    lost = 2 * float(np.exp(_LOG_TAIL))
    return (float(masses @ np.array(rates)) + lost) * (1 + 2 * binomial.margin(known.m))


def _lower(known: Knowledge) -> float:
    """Return the largest of three guessers: all others at one value; one count alone; nobody known."""
    law, m = known.law, known.m
    chances = [law.truth, law.lie, Fraction(1, law.k)]
    one_count = (1 + float(largest_probability([[0, m, known.unknown]], chances)[0])) / law.k
    alone = 0.0 if known.unknown else _all_at_one(known)
    # The worst case is not below the average over what the known people hold.
    return max(one_count, alone, _nobody(known))
