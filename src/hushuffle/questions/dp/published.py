"""Published upper bounds of central differential privacy, each in a version that holds: to compare with.

None of them is needed for a guarantee: `dp.epsilon` and `dp.delta` are never worse but for rounding. All are
`Bound`s of kind "upper", for one shuffled collection, relation: replace one person's value, n fixed. No
figure exceeds the local epsilon, which holds as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from hushuffle import _checks
from hushuffle.curves import published
from hushuffle.curves.divergence import divergence
from hushuffle.curves.published import Loss
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import BLANKET, LADJEL
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.roots import crossing

CLONES: Final = Citation(
    key="feldman2021",
    text="V. Feldman, A. McMillan, K. Talwar, Hiding among the clones: a simple and nearly optimal analysis of privacy "
    "amplification by shuffling, FOCS (2021)",
)
STRONGER_CLONES: Final = Citation(
    key="feldman2023",
    text="V. Feldman, A. McMillan, K. Talwar, Stronger privacy amplification by shuffling for Renyi and approximate "
    "differential privacy, SODA (2023)",
)

_HOEFFDING: Final = (BLANKET.at("section 5"), LADJEL.at("Theorem 4, corrected"))
_BENNETT: Final = (BLANKET.at("section 5"), LADJEL.at("Theorem 4, refined and corrected"))

Law = Callable[[float], float]
"""An upper bound of delta at an epsilon > 0."""


def hoeffding_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return the privacy blanket's delta by Hoeffding's inequality (k-ary randomized response).

    Valid for every n, dummies included. Ladjel et al. 2021 print a = 1 - e**epsilon for e**epsilon - 1, and a wider
    interval than the length b = k theta (1 + e**epsilon) that suffices.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: the law is not that of k-ary randomized response, or nothing shuffles.

    Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.hoeffding_delta(survey, epsilon=0.05))
    at most 0.001117 (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _delta(_blanket_law(protocol, published.hoeffding), epsilon, _HOEFFDING)


def hoeffding_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `hoeffding_delta` is `delta`. Raises and Source as there.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.hoeffding_epsilon(survey, delta=1e-6))
    at most 0.09718 nats (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _epsilon(_blanket_law(protocol, published.hoeffding), protocol, delta, _HOEFFDING)


def bennett_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return the privacy blanket's delta by Bennett's inequality (k-ary randomized response).

    Valid for every n, dummies included, with the raw second moment c = E[L**2] and the factor
    b_+/ln(1 + a b_+/c). As printed by Ladjel et al. 2021, with b_+/(a (m + d) ln(1 + a b_+/c)), it is no upper bound.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: the law is not that of k-ary randomized response, or nothing shuffles.

    Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.bennett_delta(survey, epsilon=0.05))
    at most 1.581e-05 (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _delta(_blanket_law(protocol, published.bennett), epsilon, _BENNETT)


def bennett_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `bennett_delta` is `delta`. Raises and Source as there.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.bennett_epsilon(survey, delta=1e-6))
    at most 0.06044 nats (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _epsilon(_blanket_law(protocol, published.bennett), protocol, delta, _BENNETT)


def any_randomizer_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return a delta that holds for every randomizer of this local epsilon, by a blanket of weight e**-epsilon_0.

    One of the two rows in question serves as the blanket; the worst ratio of the rows is summed exactly.
    Valid for every n; dummies are given to the adversary.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: nothing shuffles, or no noise.

    Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 7.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.any_randomizer_delta(survey, epsilon=0.1))
    at most 3.437e-05 (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _delta(_generic_law(protocol, published.any_randomizer), epsilon, (BLANKET.at("section 5"),))


def any_randomizer_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `any_randomizer_delta` is `delta`. Raises and Source as there.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.any_randomizer_epsilon(survey, delta=1e-6))
    at most 0.1364 nats (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _epsilon(_generic_law(protocol, published.any_randomizer), protocol, delta, (BLANKET.at("section 5"),))


def clones_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return a delta that holds for every randomizer of this local epsilon, hiding among clones.

    Each other person is a clone of one or the other of the target's two reports with probability
    e**-epsilon_0/2 each; the resulting pair of laws is summed exactly. This is the first version of the reduction.
    The second one, which raises the number of clones and hides whether the target's own report
    fell elsewhere, is below the truth for k-ary randomized response with k >= 4, and not offered.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: nothing shuffles, or no noise.

    Source: Feldman, McMillan, Talwar 2021, section 3; docs/theory/blanket.md, Remark 8.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.clones_delta(survey, epsilon=0.05))
    at most 1.166e-04 (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _delta(_generic_law(protocol, published.clones), epsilon, (CLONES.at("section 3"),))


def clones_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `clones_delta` is `delta`. Raises and Source as there.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.clones_epsilon(survey, delta=1e-6))
    at most 0.08170 nats (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _epsilon(_generic_law(protocol, published.clones), protocol, delta, (CLONES.at("section 3"),))


def clones_closed_form(protocol: Protocol, *, delta: float) -> Bound:
    """Return epsilon (nats) by the closed form of hiding among the clones.

    ln(1 + tanh(epsilon_0/2) (8 sqrt(e**epsilon_0 ln(4/delta)/n) + 8 e**epsilon_0/n)), for
    epsilon_0 <= ln(n/(16 ln(2/delta))); elsewhere the local epsilon. Before it is returned it is
    held against the certified upper bound of this protocol.

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: nothing shuffles, no noise, or no certified figure to hold it against.
        NumericalError: it lies below the certified upper bound (never seen).

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.clones_closed_form(survey, delta=1e-6))
    at most 0.3052 nats (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _closed_form(published.clones_closed_form, protocol, delta, (CLONES.at("Theorem 3.1"),))


def stronger_clones_closed_form(protocol: Protocol, *, delta: float) -> Bound:
    """Return epsilon (nats) by the closed form of stronger privacy amplification.

    ln(1 + (e**epsilon_0 - 1)(4 sqrt(2 ln(4/delta)/((e**epsilon_0 + 1) n)) + 4/n)), for
    epsilon_0 <= ln(n/(8 ln(2/delta)) - 1); elsewhere the local epsilon. The pair of laws that its proof goes through
    understates some divergences (docs/theory/blanket.md, Remark 8); the closed form is loose enough in all cases
    tried, and is returned only where the certified upper bound of this protocol confirms it.

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: nothing shuffles, no noise, or no certified figure to hold it against.
        NumericalError: it lies below the certified upper bound (never seen).

    Source: Feldman, McMillan, Talwar 2023, section 3.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.stronger_clones_closed_form(survey, delta=1e-6))
    at most 0.2380 nats (upper bound)
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _closed_form(published.stronger_clones_closed_form, protocol, delta, (STRONGER_CLONES.at("section 3"),))


def _blanket_law(protocol: Protocol, term: Callable[[Loss, Floats], Floats]) -> Law:
    law, protocol = symmetric_law(protocol.randomizer, for_what="This published bound"), protocol.secret
    _local(protocol)
    k, truth, lie = law.k, float(law.truth), float(law.lie)

    def delta(epsilon: float) -> float:
        loss = Loss.of(k=k, truth=truth, lie=lie, epsilon=epsilon)
        dummies = protocol.shuffler.dummies
        return published.mixed(partial(term, loss), n=protocol.n, weight=k * lie, dummies=dummies)

    return delta


def _generic_law(protocol: Protocol, term: Callable[[float, float, Floats], Floats]) -> Law:
    local = _local(protocol)

    def delta(epsilon: float) -> float:
        return published.mixed(partial(term, local, epsilon), n=protocol.n, weight=math.exp(-local), dummies=0)

    return delta


def _local(protocol: Protocol) -> float:
    """Return epsilon_0 of a protocol that these bounds speak about."""
    if protocol.reveals is not Reveals.MULTISET:
        message = f"Published bounds are about a uniform shuffle; here {protocol.shuffler.describe()}."
        raise UnsupportedProtocolError(message)
    if math.isinf(protocol.randomizer.local_epsilon):
        message = "Published bounds need a finite local epsilon: without noise shuffling protects nobody."
        raise UnsupportedProtocolError(message)
    return protocol.randomizer.local_epsilon


def _delta(law: Law, epsilon: float, sources: tuple[Citation, ...]) -> Bound:
    level = _checks.non_negative("epsilon", epsilon)
    value = law(level) if level > 0 else 1.0  # at 0 some divide by 0; none has anything to say there
    return Bound(lower=0.0, upper=value, kind="upper", unit="probability", sources=sources)


def _epsilon(law: Law, protocol: Protocol, delta: float, sources: tuple[Citation, ...]) -> Bound:
    level, high = _checks.probability("delta", delta, low_open=True, high_open=True), protocol.randomizer.local_epsilon
    start = 1e-9 * high
    value = start if law(start) <= level else crossing(law, level, high=high, guess=high / 4)[1]
    return Bound(lower=0.0, upper=value, kind="upper", unit="nats", sources=sources)


def _closed_form(
    formula: Callable[[int, float, float], float | None],
    protocol: Protocol,
    delta: float,
    sources: tuple[Citation, ...],
) -> Bound:
    level, local = _checks.probability("delta", delta, low_open=True, high_open=True), _local(protocol)
    found = formula(protocol.n, local, level)
    value = local if found is None else min(found, local)
    if divergence(protocol).upper(value) > level:
        message = f"the published epsilon {value:g} lies below the certified upper bound. Use dp.epsilon."
        raise NumericalError(message)
    return Bound(lower=0.0, upper=value, kind="upper", unit="nats", sources=sources)
