"""How much of what values say about persons survives in the reports."""

from __future__ import annotations

from decimal import localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.model import Bound, Citation
from hushuffle.numerics.exact import WIDE, to_decimal, up

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

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
    """Return eta with I(U;Y) <= eta I(U;X), one report: a pure number.

    By what the randomizer offers:

    - symmetric randomized response: theta tanh(epsilon_0/2) = (mu-nu)**2/(mu+nu).
    - local hashing: (1-c) times that of its bucket, c the probability that two values share a bucket.
    - any other finite channel: 1 - sum_y min_x Q(y|x), an upper bound (Doeblin).

    The first two are exact: the smallest such constant over all laws of (U, X), n >= 2; the float is the nearest one.

    Raises:
        UnsupportedProtocolError: the randomizer offers none of these laws.

    Source: two inputs decide, Ordentlich, Polyanskiy 2022; docs/theory/identity.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(contraction(survey))
    0.5800 (exact)
    """
    eta, smallest = protocol.randomizer.law().contraction()
    if smallest:
        return Bound.exact(float(eta), unit="", sources=(ORDENTLICH_POLYANSKIY,))
    return Bound(lower=0.0, upper=min(up(eta), 1.0), kind="upper", unit="", sources=(POLYANSKIY_WU,))


def contracted_alpha(protocol: Protocol, mutual_information: float, *, reports: int = 1) -> Bound:
    """Return (1 - (1-eta)**t) I(U;X) in bits: an upper bound on I(U;Y) where I(U;X) is known.

    `mutual_information` is I(U;X) in bits, or an upper bound on it. For t = `reports` independently
    randomized reports of one person it must be I(U; X_1..X_t), of all t values together: two correlated
    values can each say nothing about the person, and together everything.

    Raises:
        InvalidInputError: mutual_information not finite and >= 0, or reports < 1.
        UnsupportedProtocolError: the randomizer offers no law that `contraction` reads.

    Source: Polyanskiy, Wu 2017; docs/theory/identity.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=9)
    >>> print(contracted_alpha(survey, 0.1))
    at most 0.05801 bits (upper bound)
    """
    known = Fraction(_checks.non_negative("mutual_information", mutual_information))
    times = _checks.integer("reports", reports, low=1)
    with localcontext(WIDE):
        kept = 1 - (1 - to_decimal(protocol.randomizer.law().contraction()[0])) ** times
        most = kept * to_decimal(known)
    return Bound(lower=0.0, upper=up(most), kind="upper", unit="bits", sources=(POLYANSKIY_WU,))
