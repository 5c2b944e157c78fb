"""Several reports of one person, each with coins of its own; the values may depend on each other."""

from __future__ import annotations

from decimal import localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.analysis.pie._rounding import down, up
from hushuffle.analysis.pie.exact import CAPACITY, ONE_TRY, rows, symmetric_law
from hushuffle.laws.capacity import WIDE, bayes_capacity, log2, shannon_capacity, to_decimal
from hushuffle.model import Bound
from hushuffle.model.citation import PIE

if TYPE_CHECKING:
    from hushuffle.protocol import Protocol


def composed_alpha(protocol: Protocol, *, reports: int) -> Bound:
    """Return min(t alpha*, log2 n) in bits: an upper bound on what t = `reports` of one person say about who it is.

    The adversary knows that the t reports belong together.

    Raises:
        InvalidInputError: reports < 1.
        UnsupportedProtocolError: the randomizer has no symmetric law.

    Source: Murakami, Takahashi 2021, Theorem 4.3, with the exact alpha* for its bound; theory.md section 4.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(composed_alpha(survey, reports=3))
    at most 1.419 bits (upper bound)
    """
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        total = times * shannon_capacity(symmetric_law(protocol), rows=rows(protocol))
    most = min(total, log2(Fraction(protocol.n)))
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=(PIE.at("Theorem 4.3"), CAPACITY))


def composed_error(protocol: Protocol, *, reports: int) -> Bound:
    """Return 1 - min(1, [j mu + (k-j) nu]**t / n): a lower bound on the error, given t = `reports` of one person.

    Uniform prior on the n people, j = min(n, k), any dependence between the t values and the person.

    Raises:
        InvalidInputError: reports < 1.
        UnsupportedProtocolError: the randomizer has no symmetric law.

    Source: Bayes capacity, Braun, Chatzikokolakis, Palamidessi 2009; theory.md section 4.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(composed_error(survey, reports=3))
    at least 0.3925 (lower bound)
    """
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        success = to_decimal(bayes_capacity(symmetric_law(protocol), rows=rows(protocol))) ** times / protocol.n
        error = max(1 - success, to_decimal(Fraction(0)))
    return Bound(lower=down(error), upper=1.0, kind="lower", unit="probability", sources=(ONE_TRY,))
