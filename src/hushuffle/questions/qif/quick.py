"""Fast certified brackets of `vulnerability` for charts; they are wider than those of `vulnerability`."""

from __future__ import annotations

from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle.mechanisms.adversaries import Guesser, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound
from hushuffle.model.citation import BLANKET, QIF
from hushuffle.numerics import binomial
from hushuffle.questions.qif.blanket import shuffle_rate
from hushuffle.questions.qif.guessing import over_dummies, vulnerability
from hushuffle.questions.qif.knowledge import Knowledge, against, knowledge
from hushuffle.questions.qif.many import all_at_one, one_count

COARSE: Final = 1e-6
"""Relative error allowed in the rates; brackets are widened by twice this error."""

_BINS: Final = 8
_ROUNDING: Final = 2.0**-50
_LOG_TAIL: Final = -30.0


def quick_vulnerability(protocol: Protocol, *, adversary: Guesser) -> Bound:
    """Return `vulnerability`, or a certified bracket of it if the exact value takes long to compute.

    With k > 3 and no known value, the bounds differ by a relative 2e-6. In the worst case over known values with k > 2,
    they differ by some 10 % of V - 1/k; for `Strong()`, little noise and few people by up to 55 %. The computation
    takes 10 to 50 ms up to n = 10**6.

    Raises:
        HushuffleError: as for `vulnerability`.

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
    lower, upper = (_nobody(background), _nobody(background)) if nobody else (_lower(background), _upper(background))
    return Bound(
        lower=(lie + theta * lower) * (1 - 2 * COARSE),
        upper=min((lie + theta * upper) * (1 + 2 * COARSE), float(background.law.truth) * (1 + _ROUNDING)),
        kind="bracket",
        unit="probability",
        sources=(QIF.at("Proposition 21"),) if nobody else (QIF.at("section V"), BLANKET),
    )


def _nobody(background: Knowledge) -> float:
    """Return the rate of an adversary who knows no values, within a relative error of `COARSE`."""
    return shuffle_rate(background.others + 1, background.law.k, tolerance=COARSE)


def _upper(background: Knowledge) -> float:
    """Return E V_S(M + unknown + 1) by a few bins of M ~ Bin(m, gamma), each at its first count (see `blanket`)."""
    gamma = float(background.law.gamma)
    low, high = binomial.window(background.m, gamma, _LOG_TAIL)
    edges = np.unique(np.linspace(low, high + 1, min(_BINS, high - low + 1) + 1).astype(np.int64))
    below = binomial.lower_tail(np.append(edges[0] - 1, edges[1:] - 1), background.m, gamma)
    masses = np.maximum(np.diff(below), 0.0)
    rates = [
        shuffle_rate(int(start) + background.unknown + 1, background.law.k, tolerance=COARSE) for start in edges[:-1]
    ]
    lost = 2 * float(np.exp(_LOG_TAIL))
    return (float(masses @ np.array(rates)) + lost) * (1 + 2 * binomial.margin(background.m))


def _lower(background: Knowledge) -> float:
    """Return the largest of three rates: all others with the same value; a single count; no known values."""
    alone = all_at_one(background, COARSE) or 0.0  # the lower bound 0 if the rate takes too long
    # The worst case is not below the average over what the known people hold.
    return max(one_count(background, 0), alone, _nobody(background))
