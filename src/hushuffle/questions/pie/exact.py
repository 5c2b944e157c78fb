"""One report: how much it can say about whose it is, and how often the best guess is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from hushuffle.model import Bound
from hushuffle.model.citation import BRAUN, PIE
from hushuffle.model.prior import Prior
from hushuffle.numerics.exact import down, up

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol


def alpha(protocol: Protocol) -> Bound:
    """Return alpha* in bits: the most one report can say about whose it is, for the worst population.

    alpha* = sup I(U;Y) over every joint law of person U (n people) and value X, every prior on U included: no
    smaller alpha gives (U, alpha)-PIE privacy. By what the randomizer offers:

    - symmetric randomized response: mu log2(mu/a) + (j-1) nu log2(nu/a), j = min(n, k), a = (mu + (j-1) nu)/j.
      Exact; the float is the nearest one.
    - local hashing with g buckets: the same for the bucket, j = min(n, k, g). An upper bound, since in most hashes
      some values share a bucket; exact where none do (g at least the prime of the hash family).
    - any other finite channel: between certified ends 1e-9 bits apart if n >= k. With fewer people than values the
      best n rows are not looked for, and the capacity of all rows (and log2 n) is an upper bound.

    The adversary knows how values depend on persons, sees the reports pseudonymised, each on its own, and
    wants to know whose one is. A shuffler is such a pseudonymisation; which one does not matter here. What the
    reports say jointly, about one person or by elimination, is another question.

    Raises:
        UnsupportedProtocolError: the randomizer offers none of these laws.

    Source: Murakami, Takahashi 2021, Definition 3.1; docs/theory/identity.md, Theorems 1 and 2.

    >>> import hushuffle as hs
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=1.0)
    >>> print(alpha(hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)))
    1.374e-07 bits (exact)
    >>> hashed = hs.LocalHashing(k=10_500_393, g=4, epsilon=1.0)
    >>> print(alpha(hs.Protocol(randomizer=hashed, shuffler=hs.UniformShuffle(), n=1_370_637)))
    at most 0.1703 bits (upper bound)
    """
    law = protocol.randomizer.law()
    least, most = law.capacity(protocol.n)
    sources = (PIE.at("Definition 3.1"), *law.sources)
    if least == most:
        return Bound.exact(float(most), unit="bits", sources=sources)
    return Bound(lower=down(least), upper=up(most), kind="bracket" if least else "upper", unit="bits", sources=sources)


def bayes_error(protocol: Protocol, *, prior: npt.ArrayLike | None = None, largest_prior: float | None = None) -> Bound:
    """Return the least probability that a guess whose report this is, is wrong.

    The minimum over every law of values given persons of the error of the best classifier, for one report; a
    concrete population can only do better (a larger error). It is one minus, with p_1 >= p_2 >= ... the prior:

    - symmetric randomized response: mu p_1 + sum_(i=2..j) max(mu p_i, nu p_1) + (k-j) nu p_1, j = min(n, k); for a
      uniform prior [j mu + (k-j) nu]/n. Exact; the float is the nearest one.
    - local hashing with g buckets: the same with g for k and j = min(n, k, g). A lower bound; exact where no two
      values share a bucket.
    - any other finite channel: p_1 sum_y max_x Q(y|x), and at most the sum of as many p_i as there are outputs.
      Exact (to 1e-15 for each row and column) for a uniform prior and n >= k, else a lower bound.

    The adversary is that of `alpha`: each report on its own, whose is it? No shuffler changes the figure.

    Args:
        protocol: what is collected and how.
        prior: how likely each person is to be the sender before the report is seen, shape (n,); default uniform.
        largest_prior: instead of `prior`, only its largest entry: the worst case over all priors below it.

    Raises:
        InvalidInputError: `prior` is no distribution over n people, or `largest_prior` is outside [1/n, 1].
        UnsupportedProtocolError: the randomizer offers none of these laws.

    Source: Bayes capacity, Braun, Chatzikokolakis, Palamidessi 2009; docs/theory/identity.md, Theorem 3.

    >>> import hushuffle as hs, math
    >>> incomes = hs.RandomizedResponse(k=5, epsilon=math.inf)
    >>> survey = hs.Protocol(randomizer=incomes, shuffler=hs.UniformShuffle(), n=10**8)
    >>> bayes_error(survey).lower, bayes_error(survey, largest_prior=0.01).lower
    (0.99999995, 0.95)
    """
    success, attained = protocol.randomizer.law().bayes(Prior.of(protocol.n, prior=prior, largest_prior=largest_prior))
    error = 1 - success
    sources = (BRAUN, PIE.at("Section 3.4"))
    if attained:
        return Bound.exact(max(float(error), 0.0), unit="probability", sources=sources)
    return Bound(lower=max(down(error), 0.0), upper=1.0, kind="lower", unit="probability", sources=sources)
