"""The published bounds of the paper that defined PIE privacy, with misprints corrected."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from hushuffle import _checks
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Symmetric, symmetric_law
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE
from hushuffle.model.prior import largest_probability
from hushuffle.numerics.exact import WIDE, down, log2, to_decimal, up

CUFF_YU = Citation(
    key="cuff2016", text="P. Cuff, L. Yu, Differential privacy as a mutual information constraint, CCS (2016)"
)
FANO = Citation(
    key="han1994",
    text="T. S. Han, S. Verdu, Generalizing the Fano inequality, IEEE Transactions on Information Theory 40 (1994)",
)


def ldp_alpha(protocol: Protocol) -> Bound:
    """Return an upper bound in bits on alpha*, the most information that a report can reveal about its sender.

    It is min(eps log2 e, eps**2 log2 e, log2 n, log2 k) for n people, k values and local epsilon eps, for any local
    randomizer. It is loose, since it uses only eps (compare `rr_alpha` and `alpha`).

    Source: Murakami, Takahashi 2021, Proposition 4.1; Cuff, Yu 2016.

    >>> import hushuffle as hs
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=1.0)
    >>> print(hs.pie.published.ldp_alpha(hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)))
    at most 1.443 bits (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    most = log2(Fraction(people_who_differ(protocol)))
    local = protocol.randomizer.local_epsilon
    if not math.isinf(local):
        epsilon = Fraction(local)
        with localcontext(WIDE) as context:
            nats = to_decimal(min(epsilon, epsilon**2))
            most = min(most, nats / context.ln(to_decimal(Fraction(2))))
    sources = (PIE.at("Proposition 4.1"), CUFF_YU.at("Lemma 1"))
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=sources)


def rr_alpha(protocol: Protocol, *, reports: int = 1) -> Bound:
    """Return an upper bound in bits on what t = `reports` reports of randomized response reveal about their sender.

    It is t (mu - nu) log2 min(n, k) for n people and k values: a report is the true value with probability mu, and each
    other value with probability nu. For t > 1 the reports of the person are randomized independently.

    Raises:
        InvalidInputError: reports < 1.
        UnsupportedProtocolError: the randomizer does not treat all values alike.

    Source: Murakami, Takahashi 2021, Theorems 4.2 and 4.3.

    >>> import hushuffle as hs
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=1.0)
    >>> print(hs.pie.published.rr_alpha(hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)))
    at most 3.337e-06 bits (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    law = symmetric_law(protocol.randomizer, for_what="Theorem 4.2")
    return _theta_alpha(law, protocol, reports, "Theorem 4.2", "Theorem 4.3")


def hashing_alpha(protocol: Protocol, *, reports: int = 1) -> Bound:
    """Return an upper bound in bits on what t = `reports` reports of local hashing reveal about their sender.

    It is t (mu - nu) log2 min(n, k) for n people and k values: a report shows the true bucket with probability mu, and
    each other bucket with probability nu. For t > 1 every report of the person has its own hash.

    Raises:
        InvalidInputError: reports < 1.
        UnsupportedProtocolError: the randomizer does not report a randomized bucket.

    Source: Murakami, Takahashi 2021, Theorems 4.4 and 4.5.

    >>> import hushuffle as hs
    >>> places = hs.LocalHashing(k=10_500_393, g=10**8, epsilon=10.0)
    >>> print(hs.pie.published.hashing_alpha(hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)))
    at most 0.004490 bits (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    law = protocol.randomizer.law().bucket
    if law is None:
        _checks.unsupported(
            f"The bound for local hashing needs a public hash, and {type(protocol.randomizer).__name__} has none."
        )
    return _theta_alpha(law, protocol, reports, "Theorem 4.4", "Theorem 4.5")


def published_alpha(protocol: Protocol, *, reports: int = 1) -> Bound:
    """Return the smallest published upper bound in bits on what `reports` reports of a person reveal about the person.

    Raises:
        InvalidInputError: reports < 1.

    Source: Murakami, Takahashi 2021, Proposition 4.1 and Theorems 4.2 to 4.5.

    >>> import hushuffle as hs
    >>> hashed = hs.LocalHashing(k=1000, g=4, epsilon=1.0)
    >>> print(hs.pie.published.published_alpha(hs.Protocol(randomizer=hashed, shuffler=hs.UniformShuffle(), n=500)))
    at most 1.443 bits (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    times = _checks.integer("reports", reports, low=1)
    bounds = [ldp_alpha(protocol)] if times == 1 else []
    law = protocol.randomizer.law()
    if law.symmetric is not None:
        bounds.append(rr_alpha(protocol, reports=times))
    if law.bucket is not None:
        bounds.append(hashing_alpha(protocol, reports=times))
    if not bounds:
        _checks.unsupported(f"The paper has no bound for several reports of {type(protocol.randomizer).__name__}.")
    return min(bounds, key=lambda bound: bound.upper)


def _theta_alpha(law: Symmetric, protocol: Protocol, reports: int, single: str, several: str) -> Bound:
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        most = times * to_decimal(law.theta) * log2(Fraction(people_who_differ(protocol)))
    sources = (PIE.at(single if times == 1 else several),)
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=sources)


def people_who_differ(protocol: Protocol) -> int:
    """Return min(n, k): the largest number of different values that n honest people can have."""
    return min(protocol.secret.n, protocol.randomizer.inputs)


def fano_error(alpha_bits: float, n: int, *, largest_prior: float | None = None) -> Bound:
    """Return Fano's lower bound on the probability that an adversary names the wrong sender of a report.

    It is 1 - (`alpha_bits` + 1)/log2(1/p), or 0 if negative. `alpha_bits` is an upper bound in bits on what the report
    reveals about its sender, one of n people. p is `largest_prior`, by default 1/n (uniform prior). Equation (11) of
    Murakami, Takahashi 2021 has log2(p) in the denominator: the wrong sign.

    Raises:
        InvalidInputError: alpha_bits not finite and >= 0, n < 1, or largest_prior outside [1/n, 1].

    Source: Murakami, Takahashi 2021, Corollary 3.9; Han, Verdu 1994; docs/theory/identity.md, Theorem 6.

    >>> import hushuffle as hs
    >>> import math
    >>> print(hs.pie.published.fano_error(math.log2(5), 10**8))
    at least 0.8750 (lower bound)
    """
    bits = to_decimal(Fraction(_checks.non_negative("alpha_bits", alpha_bits)))
    secret = _prior_bits(n, largest_prior)
    with localcontext(WIDE):
        error = 1 - (bits + 1) / secret if secret > bits + 1 else to_decimal(Fraction(0))
    sources = (PIE.at("Corollary 3.9 (sign of (11) corrected)"), FANO)
    return Bound(lower=down(error), upper=1.0, kind="lower", unit="probability", sources=sources)


def alpha_for_error(bayes_error: float, n: int, *, largest_prior: float | None = None) -> float:
    """Return the largest information of a report about its sender, in bits, with `fano_error` >= `bayes_error`.

    The result, rounded down, is (1 - bayes_error) log2(1/p) - 1, with p the `largest_prior` of a person, by default
    1/n. The example after Corollary 3.9 of Murakami, Takahashi 2021 prints 2.07 and 6.21 for the two cases below. These
    numbers are in nats, although the paper's alpha is in bits.

    Raises:
        InvalidInputError: an argument out of range, or an error that this bound does not reach at any alpha.

    Source: Murakami, Takahashi 2021, Corollary 3.9 (units corrected); docs/theory/identity.md, Theorem 6.

    >>> import hushuffle as hs
    >>> round(hs.pie.published.alpha_for_error(0.8, 10**6), 2), round(hs.pie.published.alpha_for_error(0.5, 10**6), 2)
    (2.99, 8.97)
    """
    wanted = _checks.probability("bayes_error", bayes_error)
    secret = _prior_bits(n, largest_prior)
    with localcontext(WIDE):
        bits = (1 - to_decimal(Fraction(wanted))) * secret - 1
    if bits < 0:
        hint = "Uniform reports (alpha = 0) have this bound. The function `epsilon_for_error` is exact."
        limit = max(0.0, 1 - 1 / float(secret)) if secret else 0.0
        _checks.reject("bayes_error", f"at most 1 - 1/log2(1/largest prior) = {limit:.6g}", wanted, hint)
    return down(bits)


def _prior_bits(n: int, largest_prior: float | None) -> Decimal:
    """Return log2(1/max p_U) >= 0, the min-entropy (bits) of the person before any report."""
    people = _checks.integer("n", n, low=1)
    if largest_prior is None:
        return log2(Fraction(people))
    return log2(1 / largest_probability(people, largest_prior))
