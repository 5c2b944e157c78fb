"""Published upper bounds on central differential privacy, each in a correct version, for comparison.

`dp.epsilon` and `dp.delta` are at most as large, up to rounding, so guarantees do not need these bounds. All functions
return a `Bound` of kind "upper" for one shuffled collection. Relation: replace one person's value, n fixed. No returned
epsilon exceeds the local epsilon, which is also an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final
from typing import Protocol as TypingProtocol

from hushuffle import _checks
from hushuffle._checks import unsupported
from hushuffle.curves import published
from hushuffle.curves.published import Loss
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Citation, notebook
from hushuffle.model.citation import BLANKET, LADJEL
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.roots import first_below
from hushuffle.questions.dp.central import epsilon as certified_epsilon

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
"""An upper bound on delta at an epsilon > 0."""


class _Published(TypingProtocol):
    def __call__(self, protocol: Protocol, *, delta: float) -> Bound: ...


def hoeffding_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return an upper bound on delta from the privacy blanket and Hoeffding's inequality (k-ary randomized response).

    It holds for every n, with dummies. Ladjel et al. 2021 print 1 - e**epsilon in place of e**epsilon - 1, and a wider
    interval than the length k theta (1 + e**epsilon) that suffices (theta as in `RandomizedResponse`).

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: not k-ary randomized response, or no shuffler.

    Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.hoeffding_delta(survey, epsilon=0.05))
    at most 0.001117 (upper bound)
    """
    return _delta(_blanket_law(protocol, published.hoeffding), epsilon, _HOEFFDING)


def hoeffding_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `hoeffding_delta` is `delta`. Raises and Source are as for `hoeffding_delta`.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.hoeffding_epsilon(survey, delta=1e-6))
    at most 0.09718 nats (upper bound)
    """
    return _epsilon(_blanket_law(protocol, published.hoeffding), protocol, delta, _HOEFFDING)


def bennett_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return an upper bound on delta from the privacy blanket and Bennett's inequality (k-ary randomized response).

    It is valid for every n, dummies included. For losses L <= b_+ with mean -a and second moment c, Bennett's factor is
    b_+/ln(1 + a b_+/c). Ladjel et al. 2021 divide it by a N, N the number of blanket reports: this is no upper bound.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: not k-ary randomized response, or no shuffler.

    Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 6.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.bennett_delta(survey, epsilon=0.05))
    at most 1.581e-05 (upper bound)
    """
    return _delta(_blanket_law(protocol, published.bennett), epsilon, _BENNETT)


def bennett_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `bennett_delta` is `delta`. Raises and Source are as for `bennett_delta`.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.bennett_epsilon(survey, delta=1e-6))
    at most 0.06044 nats (upper bound)
    """
    return _epsilon(_blanket_law(protocol, published.bennett), protocol, delta, _BENNETT)


def any_randomizer_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return an upper bound on delta for every randomizer with local epsilon_0, by a blanket of weight e**-epsilon_0.

    The blanket is the report distribution of one of the two compared values; the sum uses the worst ratio of the two
    distributions. The bound is valid for every n. The adversary is assumed to know which reports are dummies.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: there is no shuffler, or no noise.

    Source: Balle, Bell, Gascon, Nissim 2019, section 5; docs/theory/blanket.md, Theorem 7.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.any_randomizer_delta(survey, epsilon=0.1))
    at most 3.437e-05 (upper bound)
    """
    return _delta(_generic_law(protocol, published.any_randomizer), epsilon, (BLANKET.at("section 5"),))


def any_randomizer_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `any_randomizer_delta` is `delta`. See that function for Raises and Source.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.any_randomizer_epsilon(survey, delta=1e-6))
    at most 0.1364 nats (upper bound)
    """
    return _epsilon(_generic_law(protocol, published.any_randomizer), protocol, delta, (BLANKET.at("section 5"),))


def clones_delta(protocol: Protocol, *, epsilon: float) -> Bound:
    """Return an upper bound on delta for every randomizer with local epsilon epsilon_0, by the method of clones.

    Each other person's report is a clone of the target's report on the first or the second value, each with probability
    e**-epsilon_0/2. The divergence of the resulting two distributions is summed exactly. This is the reduction of 2021.
    The reduction of 2023 assumes more clones; it is below the true delta for k-ary randomized response with k >= 4, and
    is not offered.

    Raises:
        InvalidInputError: epsilon not finite, or < 0.
        UnsupportedProtocolError: there is no shuffler, or no noise.

    Source: Feldman, McMillan, Talwar 2021, section 3; docs/explanation/errata.md.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.clones_delta(survey, epsilon=0.05))
    at most 1.166e-04 (upper bound)
    """
    return _delta(_generic_law(protocol, published.clones), epsilon, (CLONES.at("section 3"),))


def clones_epsilon(protocol: Protocol, *, delta: float) -> Bound:
    """Return the epsilon (nats) at which `clones_delta` is `delta`. Raises and Source are as for `clones_delta`.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.clones_epsilon(survey, delta=1e-6))
    at most 0.08170 nats (upper bound)
    """
    return _epsilon(_generic_law(protocol, published.clones), protocol, delta, (CLONES.at("section 3"),))


def clones_closed_form(protocol: Protocol, *, delta: float) -> Bound:
    """Return epsilon (nats) by the closed form of the method of clones.

    With epsilon_0 the local epsilon, it is ln(1 + tanh(epsilon_0/2) (8 sqrt(e**epsilon_0 ln(4/delta)/n) + 8
    e**epsilon_0/n)) if epsilon_0 <= ln(n/(16 ln(2/delta))), else epsilon_0. The result is returned only if it is at
    least the certified upper bound of this protocol.

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: there is no shuffler, no noise, or no certified epsilon.
        NumericalError: the closed form is below the certified upper bound (never observed).

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.clones_closed_form(survey, delta=1e-6))
    at most 0.3052 nats (upper bound)
    """
    return _closed_form(published.clones_closed_form, protocol, delta, (CLONES.at("Theorem 3.1"),))


def stronger_clones_closed_form(protocol: Protocol, *, delta: float) -> Bound:
    """Return epsilon (nats) by the closed form of stronger privacy amplification.

    ln(1 + (e**epsilon_0 - 1)(4 sqrt(2 ln(4/delta)/((e**epsilon_0 + 1) n)) + 4/n)), for
    epsilon_0 <= ln(n/(8 ln(2/delta)) - 1); elsewhere the local epsilon. The pair of distributions in its proof
    understates some divergences (docs/explanation/errata.md), but the closed form was an upper bound in all
    tested cases. It is returned only if it is at least the certified upper bound of this protocol.

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: there is no shuffler, no noise, or no certified epsilon.
        NumericalError: the closed form is below the certified upper bound (never observed).

    Source: Feldman, McMillan, Talwar 2023, section 3.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.stronger_clones_closed_form(survey, delta=1e-6))
    at most 0.2380 nats (upper bound)
    """
    return _closed_form(published.stronger_clones_closed_form, protocol, delta, (STRONGER_CLONES.at("section 3"),))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Epsilon (nats) of a protocol at one `delta`: the certified bracket, and each published bound by name.

    `refused` maps the names of published bounds that do not apply to this protocol to the reason.
    """

    delta: float
    certified: Bound
    published: Mapping[str, Bound]
    refused: Mapping[str, str]

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Rows of name, epsilon, and its ratio to the certified upper bound, in ascending order."""
        figures = sorted(self.published.items(), key=lambda row: row[1].upper)
        ratios = [(name, str(bound), f"{bound.upper / self.certified.upper:.2f}") for name, bound in figures]
        refused = [(name, f"no figure: {reason}", "") for name, reason in self.refused.items()]
        return (("certified (dp.epsilon)", str(self.certified), "1.00"), *ratios, *refused)

    def __str__(self) -> str:
        width = max(len(name) for name, *_ in self.rows)
        return "\n".join(
            f"{name:{width}}  {epsilon}{f'  x {ratio}' if ratio else ''}" for name, epsilon, ratio in self.rows
        )

    def _repr_html_(self) -> str:
        return notebook.table(("bound", f"epsilon at delta = {self.delta:g}", "times the certified one"), self.rows)


def compare(protocol: Protocol, *, delta: float) -> Comparison:
    """Return the certified epsilon (nats) of a protocol and every published bound that applies to the protocol.

    Raises:
        InvalidInputError: delta not in (0, 1).
        UnsupportedProtocolError: there is no shuffler, no noise, or no certified figure.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.published.compare(survey, delta=1e-6))
    certified (dp.epsilon)        0.05113 to 0.05114 nats (certified bracket)  x 1.00
    Bennett                       at most 0.06044 nats (upper bound)  x 1.18
    clones, summed exactly        at most 0.08170 nats (upper bound)  x 1.60
    Hoeffding                     at most 0.09718 nats (upper bound)  x 1.90
    any randomizer                at most 0.1364 nats (upper bound)  x 2.67
    stronger clones, closed form  at most 0.2380 nats (upper bound)  x 4.65
    clones, closed form           at most 0.3052 nats (upper bound)  x 5.97
    """
    _checks.of_type("protocol", protocol, Protocol)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    _local(protocol)
    figures: dict[str, Bound] = {}
    refused: dict[str, str] = {}
    for name, bound in _PUBLISHED.items():
        try:
            figures[name] = bound(protocol, delta=level)
        except (UnsupportedProtocolError, NumericalError) as error:
            refused[name] = str(error)
    return Comparison(
        delta=level, certified=certified_epsilon(protocol, delta=level), published=figures, refused=refused
    )


def _blanket_law(protocol: Protocol, term: Callable[[Loss, Floats], Floats]) -> Law:
    _checks.of_type("protocol", protocol, Protocol)
    law, protocol = symmetric_law(protocol.randomizer, for_what="This published bound"), protocol.secret
    _local(protocol)
    k, truth, lie = law.k, float(law.truth), float(law.lie)

    def delta(epsilon: float) -> float:
        loss = Loss.of(k=k, truth=truth, lie=lie, epsilon=epsilon)
        dummies = protocol.shuffler.dummies
        return published.mixed(partial(term, loss), n=protocol.n, weight=k * lie, dummies=dummies)

    return delta


def _generic_law(protocol: Protocol, term: Callable[[float, float, Floats], Floats]) -> Law:
    _checks.of_type("protocol", protocol, Protocol)
    local = _local(protocol)

    def delta(epsilon: float) -> float:
        return published.mixed(partial(term, local, epsilon), n=protocol.n, weight=math.exp(-local), dummies=0)

    return delta


def _local(protocol: Protocol) -> float:
    """Return epsilon_0 after checking that the published bounds apply to the protocol."""
    if protocol.reveals is not Reveals.MULTISET:
        unsupported(f"Published bounds hold only for a uniform shuffle; here {protocol.shuffler.describe()}.")
    if math.isinf(protocol.randomizer.local_epsilon):
        unsupported("Published bounds need a finite local epsilon: without noise, shuffling gives no protection.")
    return protocol.randomizer.local_epsilon


def _delta(law: Law, epsilon: float, sources: tuple[Citation, ...]) -> Bound:
    level = _checks.non_negative("epsilon", epsilon)
    value = law(level) if level > 0 else 1.0  # at 0 the formulas divide by 0 and give no bound below 1
    return Bound(lower=0.0, upper=value, kind="upper", unit="probability", sources=sources)


def _epsilon(law: Law, protocol: Protocol, delta: float, sources: tuple[Citation, ...]) -> Bound:
    level, high = _checks.probability("delta", delta, low_open=True, high_open=True), protocol.randomizer.local_epsilon
    start = 1e-9 * high
    value = start if law(start) <= level else first_below(law, level, high=high, guess=high / 4)
    return Bound(lower=0.0, upper=value, kind="upper", unit="nats", sources=sources)


def _closed_form(
    formula: Callable[[int, float, float], float | None],
    protocol: Protocol,
    delta: float,
    sources: tuple[Citation, ...],
) -> Bound:
    _checks.of_type("protocol", protocol, Protocol)
    level, local = _checks.probability("delta", delta, low_open=True, high_open=True), _local(protocol)
    published = formula(protocol.n, local, level)
    value = local if published is None else min(published, local)
    if privacy_curve(protocol).upper(value) > level:
        message = f"the published epsilon {value:g} lies below the certified upper bound. Use dp.epsilon."
        raise NumericalError(message)
    return Bound(lower=0.0, upper=value, kind="upper", unit="nats", sources=sources)


_PUBLISHED: Final[Mapping[str, _Published]] = {
    "Hoeffding": hoeffding_epsilon,
    "Bennett": bennett_epsilon,
    "clones, summed exactly": clones_epsilon,
    "clones, closed form": clones_closed_form,
    "stronger clones, closed form": stronger_clones_closed_form,
    "any randomizer": any_randomizer_epsilon,
}
