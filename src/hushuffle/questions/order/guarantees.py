"""Consequences of alpha: how much odds can change, and how often an adversary can single out a household.

Order privacy with alpha (nats) means: exchanging records inside a group changes the probability of any release by a
factor of at most e**alpha. Post-processing does not increase alpha. Order privacy does not protect the values; the
randomizer's epsilon does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from hushuffle import _checks
from hushuffle.model import Bound, Finding
from hushuffle.model.citation import MEEHAN
from hushuffle.numerics.exact import upwards

_STEPS: Final = 4  # floats: math.exp and two operations after it are off by less


def posterior_odds(alpha: float, *, prior_odds: float = 1.0) -> Bound:
    """Return the range of the posterior odds of x_i = a against x_i = b: `prior_odds` times e**-alpha to e**alpha.

    `prior_odds` are an adversary's odds before the release. The adversary knows every record outside i's group and the
    multiset of records inside it. The values may depend on each other in any way.

    Raises:
        InvalidInputError: alpha or prior_odds not finite or < 0.

    Source: Meehan et al. 2022, Theorem 4.1; docs/theory/order.md, Theorem 6.

    >>> import hushuffle as hs
    >>> print(hs.order.posterior_odds(1.0, prior_odds=0.5))
    0.1839 to 1.360 (certified bracket)
    """
    level, odds = _checks.non_negative("alpha", alpha), _checks.non_negative("prior_odds", prior_odds)
    factor = _exp(level)
    most = 0.0 if odds == 0 else _raised(odds * factor)
    least = _lowered(odds / factor)
    return Bound(lower=least, upper=most, kind="bracket", unit="", sources=(MEEHAN.at("Theorem 4.1"),))


def posterior_probability(alpha: float, *, prior: float) -> Bound:
    """Return the range of the probability that x_i = a after the release, from `prior` before it.

    The adversary is that of `posterior_odds`. At alpha = 0 the probability does not change.

    Raises:
        InvalidInputError: alpha not finite or < 0, or prior outside [0, 1].

    Source: Meehan et al. 2022, Theorem 4.1, for x_i = a against x_i != a.

    >>> import hushuffle as hs
    >>> print(hs.order.posterior_probability(1.0, prior=0.5))
    0.2689 to 0.7311 (certified bracket)
    """
    level, before = _checks.non_negative("alpha", alpha), _checks.probability("prior", prior)
    complement, factor = 1 - before, _exp(level)
    if before in (0, 1):
        least = most = before
    else:
        least = _lowered(before / (before + complement * factor))
        most = min(1.0, _raised(1 / (1 + complement / before / factor)))
    return Bound(lower=least, upper=most, kind="bracket", unit="probability", sources=(MEEHAN.at("Theorem 4.1"),))


def reidentification(alpha: float, *, epsilon: float, group: int, wanted: int) -> Bound:
    """Return an upper bound on the probability that an adversary locates the records of `wanted` people in a group.

    An adversary who knows all values names `wanted` places of the release. The adversary wins if more than half of them
    contain records of these people. With group size r = `group`, k = `wanted` < r/2 and local epsilon `epsilon`,
    Pr[lose] >= floor((r-k)/k) e**-(2k epsilon + alpha) Pr[win].

    The order must be drawn independently of the records, as in Mallows shuffles. The inequality fails for sorting,
    which has alpha = 0.

    Raises:
        InvalidInputError: alpha not finite or < 0, epsilon < 0, or not 1 <= wanted < group/2.

    Source: Meehan et al. 2022, Theorem 4.2, with this condition; docs/theory/order.md, Theorem 7.

    >>> import hushuffle as hs
    >>> print(hs.order.reidentification(0.5, epsilon=0.2, group=60, wanted=4))
    at most 0.3685 (upper bound)
    """
    level = _checks.non_negative("alpha", alpha)
    local = 0.0 if epsilon == 0 else _checks.positive("epsilon", epsilon, allow_infinite=True)
    size = _checks.integer("group", group, low=3)
    hint = "Use larger groups or a smaller household."
    household = _checks.integer("wanted", wanted, low=1, high=(size - 1) // 2, hint=hint)
    losing = _lowered((size - household) // household * math.exp(-_raised(2 * household * local + level)))
    most = min(1.0, _raised(1 / (1 + losing)))
    return Bound(lower=0.0, upper=most, kind="upper", unit="probability", sources=(MEEHAN.at("Theorem 4.2"),))


def composed_alpha(alphas: Iterable[float]) -> Bound:
    """Return the sum of `alphas`: an upper bound on alpha of several independent releases with the same groups.

    The bound is attained if all releases are Mallows shuffles about the same reference.

    Raises:
        InvalidInputError: no alpha, or one not finite or < 0.

    Source: Meehan et al. 2022, Theorem A.2; docs/theory/order.md, Theorem 5.

    >>> import hushuffle as hs
    >>> print(hs.order.composed_alpha([0.5, 0.25]))
    at most 0.7500 nats (upper bound)
    """
    total = upwards(sum(map(Fraction, _alphas(alphas)), Fraction(0)))
    return Bound(lower=0.0, upper=total, kind="upper", unit="nats", sources=(MEEHAN.at("Theorem A.2"),))


def mixed_alpha(alphas: Iterable[float]) -> Bound:
    """Return the largest of `alphas`: a bound on alpha of a randomly chosen release, if all have the same groups.

    Raises:
        InvalidInputError: no alpha, or one not finite or < 0.

    Source: Meehan et al. 2022, Lemma 2 (convexity).

    >>> import hushuffle as hs
    >>> print(hs.order.mixed_alpha([0.5, 0.25]))
    at most 0.5000 nats (upper bound)
    """
    return Bound(lower=0.0, upper=max(_alphas(alphas)), kind="upper", unit="nats", sources=(MEEHAN.at("Lemma 2"),))


def findings(alpha: float, *, epsilon: float, group: int, wanted: int) -> tuple[Finding, ...]:
    """Return sentences about `alpha`: how much a belief can change, and how likely a household's records are located.

    `group` is the size of the smallest group, and `wanted` is the size of the household. The second sentence is missing
    if wanted >= group/2, since Theorem 4.2 then does not apply.

    Raises:
        InvalidInputError: as `posterior_probability` and `reidentification`.

    Source: Meehan et al. 2022, Theorems 4.1 and 4.2.

    >>> import hushuffle as hs
    >>> hs.order.findings(1.0, epsilon=0.2, group=60, wanted=4)[0].sentence.split(": ")[1]
    'the order moves a belief of 50 % to at most 73.2 %.'
    """
    belief = posterior_probability(alpha, prior=0.5)
    statements = [
        Finding(
            question="order-inference",
            adversary="knows every report outside a person's group and the multiset of reports inside it",
            sentence="An adversary knows every report outside a person's group and the multiset of reports inside it: "
            f"the order moves a belief of 50 % to at most {_percent(belief.upper)}.",
            bound=belief,
            proof="Theorem 4.1, exchanges inside a group",
        )
    ]
    if 2 * _checks.integer("wanted", wanted, low=1) < _checks.integer("group", group, low=1):
        chance = reidentification(alpha, epsilon=epsilon, group=group, wanted=wanted)
        people = "1 person" if wanted == 1 else f"{wanted} people"
        statements.append(
            Finding(
                question="order-reidentification",
                adversary="knows all values and looks for the reports of a household",
                sentence=f"An adversary who knows all values finds most of the reports of {people} in a group of "
                f"{group:,} with probability at most {_percent(chance.upper)}.",
                bound=chance,
                proof="Theorem 4.2, for orders drawn independently of the reports",
            )
        )
    return tuple(statements)


def _alphas(alphas: Iterable[float]) -> list[float]:
    levels = [_checks.non_negative("alphas", alpha) for alpha in alphas]
    if not levels:
        _checks.reject("alphas", "at least one number", "<none>")
    return levels


def _exp(alpha: float) -> float:
    """Return a float >= e**alpha (up to the roundings that the callers cover), infinity beyond the largest."""
    return math.exp(alpha) if alpha < 709 else math.inf


def _percent(probability: float) -> str:
    return f"{math.ceil(1000 * probability) / 10:g} %"


def _raised(value: float) -> float:
    """Return a float slightly above `value` >= 0, to allow for the rounding errors in `value`.

    >>> 0 < _raised(1.0) - 1.0 < 1e-15
    True
    """
    for _ in range(_STEPS):
        value = math.nextafter(value, math.inf)
    return value


def _lowered(value: float) -> float:
    """Return a float slightly below `value` >= 0 but at least 0, to allow for the rounding errors in `value`.

    >>> 0 < 1.0 - _lowered(1.0) < 1e-15
    True
    """
    for _ in range(_STEPS):
        value = math.nextafter(value, 0.0)
    return value
