"""What a randomizer can carry at most: Shannon and Bayes capacity.

Those of some rows of a symmetric channel are exact up to the 120 decimal digits they are computed with, so that
a capacity of 1e-7 bits (or 1e-38) keeps all its digits; callers round to floats, towards safety where the
figure is one side. The Shannon capacity of any finite channel lies between certified ends.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Bound, Channel, Citation
from hushuffle.numerics.binomial import EPS, Floats, deviance

SHANNON: Final = Citation(
    key="shannon1948",
    text="C. E. Shannon, A mathematical theory of communication, Bell System Technical Journal 27 (1948)",
)
BRAUN: Final = Citation(
    key="braun2009",
    text="C. Braun, K. Chatzikokolakis, C. Palamidessi, Quantitative notions of leakage for one-try attacks, "
    "MFPS (2009)",
)
BLAHUT: Final = Citation(
    key="blahut1972",
    text="R. E. Blahut, Computation of channel capacity and rate-distortion functions, IEEE Transactions on "
    "Information Theory 18 (1972)",
)
ARIMOTO: Final = Citation(
    key="arimoto1972",
    text="S. Arimoto, An algorithm for computing the capacity of arbitrary discrete memoryless channels, IEEE "
    "Transactions on Information Theory 18 (1972)",
)

WORK_LIMIT: Final = 100_000_000
"""Most entries looked at, all steps together, before a capacity's bracket is returned as it is: seconds."""

_FLOOR: Final = 1e-290  # of a prior, so that no input is lost for good
_LEAST: Final = 1e-300  # of an output's probability
_LONGEST: Final = 1e3

DIGITS: Final = 120
"""Decimal digits of every logarithm; thresholds on the 2**-64 scale cancel at most 40 of them."""

WIDE: Final = Context(prec=DIGITS)
"""Arithmetic of its own, so that a caller's decimal settings change nothing."""


def to_decimal(value: Fraction) -> Decimal:
    """Return `value` to 120 digits."""
    return WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))


def log2(value: Fraction) -> Decimal:
    """Return the base-2 logarithm of `value` > 0 to about 118 digits.

    >>> round(log2(Fraction(10)), 6)
    Decimal('3.321928')
    """
    return WIDE.divide(WIDE.ln(to_decimal(value)), WIDE.ln(Decimal(2)))


def shannon_capacity(law: Symmetric, *, rows: int) -> Decimal:
    """Return the capacity in bits of `rows` of the k inputs: mu log2(mu/a) + (j-1) nu log2(nu/a).

    j = rows, a = (mu + (j-1) nu)/j. The rows are used equally: every one then has the same divergence from
    the mean output (on the k - j other outputs all rows agree), which is the condition for capacity.

    Raises:
        InvalidInputError: `rows` is not from 1 to k.

    Source: C. E. Shannon 1948; docs/theory/identity.md, Theorem 1.

    >>> law = Symmetric(k=2, truth=Fraction(89, 100), lie=Fraction(11, 100))
    >>> round(shannon_capacity(law, rows=2), 4)
    Decimal('0.5001')
    """
    j = _checks.integer("rows", rows, low=1, high=law.k)
    mean = (law.truth + (j - 1) * law.lie) / j
    with localcontext(WIDE):
        truthful = to_decimal(law.truth) * log2(law.truth / mean)
        if law.lie == 0:
            return truthful
        return truthful + to_decimal((j - 1) * law.lie) * log2(law.lie / mean)


def bayes_capacity(law: Symmetric, *, rows: int) -> Fraction:
    """Return sum_y max_x Q(y|x) over `rows` of the k inputs: j mu + (k-j) nu, j = rows.

    It is the factor by which one report can multiply the chance of guessing a uniform secret.

    Raises:
        InvalidInputError: `rows` is not from 1 to k.

    Source: C. Braun, K. Chatzikokolakis, C. Palamidessi 2009; docs/theory/guessing.md, Theorem 9.

    >>> bayes_capacity(Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4)), rows=2)
    Fraction(5, 4)
    """
    j = _checks.integer("rows", rows, low=1, high=law.k)
    return j * law.truth + (law.k - j) * law.lie


def channel_capacity(channel: Channel, *, tolerance: float = 1e-9, work: int = WORK_LIMIT) -> Bound:
    """Return the Shannon capacity of a finite channel in bits, between certified ends.

    Every step of the Blahut-Arimoto algorithm has a prior p, and I(p) <= capacity <= max_x D(row x || output of
    p). Both ends are moved outward by the rounding of their sums. It stops when they are within `tolerance`
    bits, or after `work` entries: then they are further apart, and as certified.

    Raises:
        InvalidInputError: `tolerance` is not > 0.

    Source: Blahut 1972, Arimoto 1972; docs/theory/guessing.md, Theorem 9.

    >>> print(channel_capacity(Channel(matrix=[[0.89, 0.11], [0.11, 0.89]])))
    0.5001 bits (certified bracket)
    """
    aim = _checks.positive("tolerance", tolerance) * math.log(2)
    matrix = np.asarray(channel.matrix, dtype=np.float64)
    matrix = matrix[:, matrix.max(axis=0) > 0] / matrix.sum(axis=1, keepdims=True)
    inputs, outputs = matrix.shape
    rounding = EPS * (8 * (inputs + outputs) + 64)
    lower, upper = 0.0, math.log(min(inputs, outputs)) * (1 + rounding)
    prior, step, best = np.full(inputs, 1 / inputs), 1.0, -math.inf
    anchor = prior, prior
    for _ in range(max(1, work // matrix.size)):
        gains = _divergences(matrix, np.maximum(prior @ matrix, _LEAST))
        information = float(prior @ gains)
        lower = max(lower, information * (1 - rounding) - rounding)
        upper = min(upper, float(gains.max()) * (1 + rounding) + rounding)
        if upper - lower <= aim:
            break
        # Longer steps while they help, Arimoto's own when they do not: the ends hold for any prior.
        if information > best or step == 1.0:
            anchor, step = (prior, gains), min(_LONGEST, 1.5 * step if information > best else 1.0)
            best = max(best, information)
        else:
            step = 1.0
        prior = np.maximum(anchor[0] * np.exp(step * (anchor[1] - anchor[1].max())), _FLOOR)
        prior /= prior.sum()
    ends = (lower / math.log(2), upper / math.log(2))
    return Bound(lower=min(ends), upper=max(ends), kind="bracket", unit="bits", sources=(SHANNON, BLAHUT, ARIMOTO))


def _divergences(matrix: Floats, output: Floats) -> Floats:
    """Return D(row || output) in nats for each row."""
    mean = np.broadcast_to(output, matrix.shape)
    positive = matrix > 0
    return np.asarray(np.where(positive, deviance(np.where(positive, matrix, mean), mean), mean).sum(axis=1))
