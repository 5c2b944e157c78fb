"""The exact figures for one report of symmetric randomized response."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hushuffle.laws.capacity import bayes_capacity, shannon_capacity
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE
from hushuffle.randomizers import HasSymmetricLaw, Symmetric, require

if TYPE_CHECKING:
    from hushuffle.protocol import Protocol

CAPACITY = Citation(
    key="shannon1948",
    text="C. E. Shannon, A mathematical theory of communication, Bell System Technical Journal 27 (1948)",
)
ONE_TRY = Citation(
    key="braun2009",
    text="C. Braun, K. Chatzikokolakis, C. Palamidessi, Quantitative notions of leakage for one-try attacks, "
    "MFPS (2009)",
)


def symmetric_law(protocol: Protocol) -> Symmetric:
    """Return mu and nu of the protocol's randomizer, or refuse."""
    return require(protocol.randomizer, HasSymmetricLaw, for_what="Re-identification (PIE)").symmetric_law()


def rows(protocol: Protocol) -> int:
    """Return j = min(n, k): how many of the k values n people can hold at once."""
    return min(protocol.n, protocol.randomizer.inputs)


def alpha(protocol: Protocol) -> Bound:
    """Return alpha* in bits: the most one report can say about whose it is, for the worst population.

    alpha* = sup I(U;Y) over every joint law of person U (n people) and value X, every prior on U included
    = mu log2(mu/a) + (j-1) nu log2(nu/a), j = min(n, k), a = (mu + (j-1) nu)/j. It is attained: exact, and
    no smaller alpha gives (U, alpha)-PIE privacy. The float is the nearest one.

    The adversary knows how values depend on persons, sees the reports pseudonymised, each on its own, and
    wants to know whose one is. A shuffler is such a pseudonymisation; which one does not matter here. What the
    reports say jointly, about one person or by elimination, is another question.

    Raises:
        UnsupportedProtocolError: the randomizer has no symmetric law.

    Source: Murakami, Takahashi 2021, Definition 3.1; theory.md section 4.

    >>> import hushuffle as hs
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=1.0)
    >>> print(alpha(hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)))
    1.374e-07 bits (exact)
    """
    most = shannon_capacity(symmetric_law(protocol), rows=rows(protocol))
    return Bound.exact(float(most), unit="bits", sources=(PIE.at("Definition 3.1"), CAPACITY))


def bayes_error(protocol: Protocol) -> Bound:
    """Return the least probability that a guess whose report this is, is wrong: 1 - [j mu + (k-j) nu]/n.

    Exact, as the minimum over every law of values given persons, of the error of the best classifier, for one
    report and a uniform prior on the n people; a concrete population can only do better (a larger error).
    j = min(n, k). The float is the nearest one.

    The adversary is that of `alpha`: each report on its own, whose is it? No shuffler changes the figure.

    Raises:
        UnsupportedProtocolError: the randomizer has no symmetric law.

    Source: Bayes capacity, Braun, Chatzikokolakis, Palamidessi 2009; theory.md section 4.

    >>> import hushuffle as hs, math
    >>> incomes = hs.RandomizedResponse(k=5, epsilon=math.inf)
    >>> bayes_error(hs.Protocol(randomizer=incomes, shuffler=hs.UniformShuffle(), n=10**8)).lower
    0.99999995
    """
    error = 1 - success(protocol)
    return Bound.exact(float(error), unit="probability", sources=(ONE_TRY, PIE.at("Section 3.4")))


def success(protocol: Protocol) -> Fraction:
    """Return [j mu + (k-j) nu]/n, the best chance of naming the person behind one report, as a rational."""
    return bayes_capacity(symmetric_law(protocol), rows=rows(protocol)) / protocol.n
