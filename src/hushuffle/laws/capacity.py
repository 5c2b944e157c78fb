"""What a randomizer can carry at most: Shannon and Bayes capacity of some rows of a symmetric channel.

Both are exact up to the 120 decimal digits they are computed with, so that a capacity of 1e-7 bits
(or 1e-38) keeps all its digits; callers round to floats, towards safety where the figure is one side.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

from hushuffle import _checks
from hushuffle.randomizers import Symmetric

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

    Source: C. E. Shannon 1948; theory.md section 4.

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

    Source: C. Braun, K. Chatzikokolakis, C. Palamidessi 2009; theory.md sections 3 and 4.

    >>> bayes_capacity(Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4)), rows=2)
    Fraction(5, 4)
    """
    j = _checks.integer("rows", rows, low=1, high=law.k)
    return j * law.truth + (law.k - j) * law.lie
