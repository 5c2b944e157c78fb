"""Several reports of one person, each with coins of its own; the values may depend on each other."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.model import Bound
from hushuffle.model.citation import BRAUN, PIE, SHANNON
from hushuffle.model.prior import Prior
from hushuffle.numerics.exact import WIDE, down, log2, to_decimal, up

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol


def composed_alpha(protocol: Protocol, *, reports: int) -> Bound:
    """Return min(t alpha*, log2 n) in bits: an upper bound on what t = `reports` of one person say about who it is.

    The adversary knows that the t reports belong together. alpha* is the (upper bound of the) figure of `alpha`;
    local hashing draws a new hash for every report.

    Raises:
        InvalidInputError: reports < 1.
        UnsupportedProtocolError: the randomizer offers no law that `alpha` reads.

    Source: Murakami, Takahashi 2021, Theorem 4.3, with the exact alpha* for its bound; docs/theory/identity.md,
    Theorem 4.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(composed_alpha(survey, reports=3))
    at most 1.419 bits (upper bound)
    """
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        total = times * protocol.randomizer.law().capacity(protocol.n)[1]
    most = min(total, log2(Fraction(protocol.n)))
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=(PIE.at("Theorem 4.3"), SHANNON))


def composed_error(protocol: Protocol, *, reports: int, largest_prior: float | None = None) -> Bound:
    """Return 1 - min(1, C**t max p_U): a lower bound on the error, given t = `reports` of one person.

    C = sum_y max_x Q(y|x) over the rows that n people can hold: j mu + (k-j) nu, j = min(n, k), for randomized
    response, the same with g for k and j = min(n, k, g) for local hashing. max p_U is 1/n, the uniform prior, unless
    `largest_prior` gives it. Any dependence between the t values and the person.

    Raises:
        InvalidInputError: reports < 1, or largest_prior outside [1/n, 1].
        UnsupportedProtocolError: the randomizer offers no law that `alpha` reads.

    Source: Bayes capacity, Braun, Chatzikokolakis, Palamidessi 2009; docs/theory/identity.md, Theorem 4.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(composed_error(survey, reports=3))
    at least 0.3925 (lower bound)
    """
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        likeliest = to_decimal(Prior.of(protocol.n, largest_prior=largest_prior).largest)
        gain = WIDE.ln(to_decimal(protocol.randomizer.law().gain(protocol.n))) * times + WIDE.ln(likeliest)
        error = max(1 - WIDE.exp(min(gain, Decimal(1))), Decimal(0))
    return Bound(lower=down(error), upper=1.0, kind="lower", unit="probability", sources=(BRAUN,))
