"""Information that reports reveal about their senders: from one report, or from several reports of a person."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import BRAUN, PIE, SHANNON, VERDU
from hushuffle.model.prior import Prior
from hushuffle.numerics.exact import WIDE, down, log2, to_decimal, up

_ORDERS: Final = (1.5, 2.0, 3.0, 5.0)


def alpha(protocol: Protocol, *, order: float = 1.0) -> Bound:
    """Return alpha* in bits: the most information that a report can reveal about its sender, over all populations.

    alpha* is the supremum of I(U;Y), the mutual information of a person U (one of n) and the person's report Y, over
    all joint distributions of U and the person's value X (one of k). It is the smallest alpha for which the randomizer
    has (U, alpha)-PIE privacy. With mu, nu the probabilities that a report is the true or a given other value, it is

    - symmetric randomized response: mu log2(mu/c) + (j-1) nu log2(nu/c), j = min(n, k), c = (mu + (j-1) nu)/j. Exact;
      the float is the nearest one.
    - local hashing with g buckets: this formula for the bucket, with j = min(n, k, g). It is an upper bound, since in
      most hashes some values share a bucket; exact if none do (g at least the prime of the hash family).
    - any other finite channel: a certified bracket of width 1e-9 bits if n >= k. With fewer people than values, the
      smaller of the capacity of all rows and log2 n, an upper bound: the best n rows are not searched for.

    With an `order` a > 1 the information is Sibson's of order a, between the mean case a = 1 and the worst case
    math.inf: a/(a-1) log2 of the sum over reports y of (sum_u p_u P(y|u)**a)**(1/a), with p_u the probability of person
    u. It is exact for randomized response, an upper bound for local hashing, a bracket for other channels. With a
    uniform prior, the sender is identified with probability at most (2**alpha*/n)**((a-1)/a).

    The adversary knows how values depend on persons, sees a single pseudonymised report, and guesses its sender. The
    result is the same for every shuffler; if only sums of one-hot vectors are released, it is an upper bound. If the
    protocol has `honest` people, n counts only them, since all others reveal their reports. The result does not cover
    what several reports reveal jointly.

    Raises:
        InvalidInputError: order < 1.
        UnsupportedProtocolError: no formula applies to the randomizer.

    Source: Murakami, Takahashi 2021, Definition 3.1; Verdu 2015 (order); docs/theory/identity.md, Theorems 1, 2, 11.

    >>> import hushuffle as hs
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=1.0)
    >>> print(hs.pie.alpha(hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)))
    1.374e-07 bits (exact)
    >>> hashed = hs.LocalHashing(k=10_500_393, g=4, epsilon=1.0)
    >>> print(hs.pie.alpha(hs.Protocol(randomizer=hashed, shuffler=hs.UniformShuffle(), n=1_370_637)))
    at most 0.1703 bits (upper bound)
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> [round(hs.pie.alpha(survey, order=order).upper, 4) for order in (1, 2, float("inf"))]
    [0.4729, 0.6599, 0.8169]
    """
    _checks.of_type("protocol", protocol, Protocol)
    protocol = protocol.secret
    law = protocol.randomizer.law()
    if math.isnan(order) or order < 1:
        _checks.reject("order", "at least 1", order)
    least, most = law.capacity(protocol.n) if order == 1 else law.order_capacity(protocol.n, order)
    if protocol.reveals is Reveals.SUMS:  # no single report is visible
        least = Decimal(0)
    sources = (PIE.at("Definition 3.1"), *law.sources, *(VERDU,) * (order > 1))
    if least == most:
        return Bound.exact(float(most), unit="bits", sources=sources)
    return Bound(lower=down(least), upper=up(most), kind="bracket" if least else "upper", unit="bits", sources=sources)


def bayes_error(protocol: Protocol, *, prior: npt.ArrayLike | None = None, largest_prior: float | None = None) -> Bound:
    """Return the Bayes error: the smallest probability that an adversary names the wrong sender of a report.

    The minimum is over all classifiers of one report and all distributions of values given persons; a given population
    has at least this error. Let p_1 >= p_2 >= ... be the prior probabilities of the n people. A report is the true one
    of k values with probability mu, and each other value with probability nu. The Bayes error is one minus

    - symmetric randomized response: mu p_1 + sum_(i=2..j) max(mu p_i, nu p_1) + (k-j) nu p_1, j = min(n, k); for a
      uniform prior [j mu + (k-j) nu]/n. Exact; the float is the nearest one.
    - local hashing with g buckets: this formula with g in place of k, and j = min(n, k, g). The error is a lower bound;
      exact if no two values share a bucket.
    - any other finite channel Q: p_1 sum_y max_x Q(y|x), or, if smaller, the sum of the m largest p_i for m outputs.
      Exact (to 1e-15 for each row and column) for a uniform prior and n >= k, else a lower bound.

    The adversary knows how values depend on persons and sees a single pseudonymised report; n counts the honest people.
    The result is the same for every shuffler; if only sums of one-hot vectors are released, it is a lower bound.

    Args:
        protocol: what is collected and how.
        prior: the prior probability that each of the n honest people is the sender, shape (n,); default: uniform.
        largest_prior: an upper bound on the entries of the prior, instead of `prior`: the worst case is returned.

    Raises:
        InvalidInputError: `prior` is no distribution over n people, or `largest_prior` is outside [1/n, 1].
        UnsupportedProtocolError: no formula applies to the randomizer.

    Source: Bayes capacity, Braun, Chatzikokolakis, Palamidessi 2009; docs/theory/identity.md, Theorem 3.

    >>> import hushuffle as hs, math
    >>> incomes = hs.RandomizedResponse(k=5, epsilon=math.inf)
    >>> survey = hs.Protocol(randomizer=incomes, shuffler=hs.UniformShuffle(), n=10**8)
    >>> hs.pie.bayes_error(survey).lower, hs.pie.bayes_error(survey, largest_prior=0.01).lower
    (0.99999995, 0.95)
    """
    _checks.of_type("protocol", protocol, Protocol)
    protocol = protocol.secret
    success, attained = protocol.randomizer.law().bayes(Prior.of(protocol.n, prior=prior, largest_prior=largest_prior))
    error = 1 - success
    sources = (BRAUN, PIE.at("Section 3.4"))
    if attained and protocol.reveals is not Reveals.SUMS:
        return Bound.exact(max(float(error), 0.0), unit="probability", sources=sources)
    return Bound(lower=max(down(error), 0.0), upper=1.0, kind="lower", unit="probability", sources=sources)


def composed_alpha(protocol: Protocol, *, reports: int) -> Bound:
    """Return min(t alpha*, log2 n) in bits: an upper bound on what t = `reports` reports of one person reveal.

    The adversary knows that the t reports are of one person, one of n. alpha* is the result (or upper bound) of `alpha`
    for one report. Local hashing draws a new hash for every report.

    Raises:
        InvalidInputError: reports < 1.
        UnsupportedProtocolError: `alpha` has no formula for the randomizer.

    Source: Murakami, Takahashi 2021, Theorem 4.3, with the exact alpha*; docs/theory/identity.md, Theorem 4.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(hs.pie.composed_alpha(survey, reports=3))
    at most 1.419 bits (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    times, protocol = _checks.integer("reports", reports, low=1), protocol.secret
    with localcontext(WIDE):
        total = times * protocol.randomizer.law().capacity(protocol.n)[1]
    most = min(total, log2(Fraction(protocol.n)))
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=(PIE.at("Theorem 4.3"), SHANNON))


def composed_error(protocol: Protocol, *, reports: int, largest_prior: float | None = None) -> Bound:
    """Return a lower bound on the Bayes error from t = `reports` reports of one person.

    The Bayes error is the probability that the best guess of the sender, one of n people, is wrong. With p the
    `largest_prior` (default: 1/n, uniform) and alpha_a the `alpha` of order a, the best guess is right with probability
    at most (p 2**(t alpha_a))**((a-1)/a), and at most (t alpha_1 + 1)/log2(1/p), which is Fano's bound. The result uses
    the smallest of Fano's bound and the orders 1.5, 2, 3, 5 and infinity. For channels Q other than randomized response
    and local hashing, only infinite order is used, where 2**alpha_a is at most min(n, sum_y max_x Q(y|x)) for reports y
    and values x. The bound holds for any dependence between the t values and the person.

    Raises:
        InvalidInputError: reports < 1, or largest_prior outside [1/n, 1].
        UnsupportedProtocolError: `alpha` has no formula for the randomizer.

    Source: Braun, Chatzikokolakis, Palamidessi 2009 (infinite order); docs/theory/identity.md, Theorems 4, 6 and 11.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(hs.pie.composed_error(survey, reports=3))
    at least 0.3925 (lower bound)
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=8.0)
    >>> survey = hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)
    >>> print(hs.pie.composed_error(survey, reports=10))
    at least 0.9934 (lower bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    times, protocol = _checks.integer("reports", reports, low=1), protocol.secret
    law = protocol.randomizer.law()
    closed = law.symmetric is not None or law.bucket is not None
    with localcontext(WIDE):
        likeliest = log2(Prior.of(protocol.n, largest_prior=largest_prior).largest)
        named = [Decimal(1)]
        for order in (*_ORDERS * closed, math.inf):
            bits = times * law.order_capacity(protocol.n, order)[1] + likeliest
            named.append(Decimal(2) ** (min(bits, Decimal(0)) * (1 - 1 / Decimal(order))))
        if likeliest:
            named.append((times * law.capacity(protocol.n)[1] + 1) / -likeliest)
    return Bound(
        lower=max(down(1 - min(named)), 0.0), upper=1.0, kind="lower", unit="probability", sources=(BRAUN, VERDU)
    )


POLYANSKIY_WU = Citation(
    key="polyanskiy2017",
    text="Y. Polyanskiy, Y. Wu, Strong data-processing inequalities for channels and Bayesian networks, "
    "Convexity and Concentration (2017)",
)
ORDENTLICH_POLYANSKIY = Citation(
    key="ordentlich2022",
    text="O. Ordentlich, Y. Polyanskiy, Strong data processing constant is achieved by binary inputs, "
    "IEEE Transactions on Information Theory 68 (2022)",
)


def contraction(protocol: Protocol) -> Bound:
    """Return the contraction coefficient eta of the randomizer: I(U;Y) <= eta I(U;X) (a number without unit).

    I is mutual information, U the person, X the person's value, Y one report. The formula depends on the randomizer:

    - symmetric randomized response, true with probability mu, each other value with probability nu: (mu-nu)**2/(mu+nu).
    - local hashing: (1 - c) times the eta of the bucket's response; two values share a bucket with probability c.
    - any other finite channel Q: 1 - sum_y min_x Q(y|x), an upper bound (Doeblin).

    The first two are exact for n >= 2, as the nearest float: no smaller eta holds for all distributions of (U, X).

    Raises:
        UnsupportedProtocolError: no formula applies to the randomizer.

    Source: Ordentlich, Polyanskiy 2022, who show that two inputs suffice; docs/theory/identity.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(hs.pie.contraction(survey))
    0.5800 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    eta, smallest = protocol.randomizer.law().contraction()
    if smallest:
        return Bound.exact(float(eta), unit="", sources=(ORDENTLICH_POLYANSKIY,))
    return Bound(lower=0.0, upper=min(up(eta), 1.0), kind="upper", unit="", sources=(POLYANSKIY_WU,))


def contracted_alpha(protocol: Protocol, mutual_information: float, *, reports: int = 1) -> Bound:
    """Return an upper bound in bits on what t = `reports` reports reveal about their sender, given what values reveal.

    It is (1 - (1-eta)**t) `mutual_information`, with eta the `contraction`. `mutual_information` is I(U;X) in bits of a
    person U and the person's value X, or an upper bound on it. For t > 1 it must be I(U; X_1..X_t) of all t values
    together: each of two correlated values can be independent of the person although both together identify the person.

    Raises:
        InvalidInputError: mutual_information not finite and >= 0, or reports < 1.
        UnsupportedProtocolError: `contraction` has no formula for the randomizer.

    Source: Polyanskiy, Wu 2017; docs/theory/identity.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(hs.pie.contracted_alpha(survey, 0.1))
    at most 0.05801 bits (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    information = Fraction(_checks.non_negative("mutual_information", mutual_information))
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        retention = 1 - (1 - to_decimal(protocol.randomizer.law().contraction()[0])) ** times
        most = retention * to_decimal(information)
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=(POLYANSKIY_WU,))
