"""What alpha means: how far odds can move, and how often somebody can pick out a household.

alpha, in nats, is that of (alpha, groups)-order privacy: exchanging records inside a group changes the
probability of any release by a factor of at most e**alpha. Processing the release further changes nothing of
it. It says nothing about the values themselves; the randomizer's epsilon does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from hushuffle import _checks
from hushuffle.model import Bound, Finding
from hushuffle.questions.order._rounding import MEEHAN, lowered, raised, up


def posterior_odds(alpha: float, *, prior_odds: float = 1.0) -> Bound:
    """Return the range of the odds that x_i = a rather than b after the release: prior odds times e**-alpha..e**alpha.

    `prior_odds` are those of somebody who knows every record outside i's group and the bag of records inside
    it; the release tells them the order. Any belief about how people's values depend on each other.

    Raises:
        InvalidInputError: alpha or prior_odds not finite or < 0.

    Source: Meehan et al. 2022, Theorem 4.1; docs/theory/order.md, Theorem 6.

    >>> import hushuffle as hs
    >>> print(hs.order.posterior_odds(1.0, prior_odds=0.5))
    0.1839 to 1.360 (certified bracket)
    """
    known, odds = _checks.non_negative("alpha", alpha), _checks.non_negative("prior_odds", prior_odds)
    factor = _exp(known)
    most = 0.0 if odds == 0 else raised(odds * factor)
    least = lowered(odds / factor)
    return Bound(lower=least, upper=most, kind="bracket", unit="", sources=(MEEHAN.at("Theorem 4.1"),))


def posterior_probability(alpha: float, *, prior: float) -> Bound:
    """Return the range of the probability that x_i = a after the release, from `prior` before it.

    Who it is that believes, and what they know: as `posterior_odds`. Without an order (alpha = 0) it stays.

    Raises:
        InvalidInputError: alpha not finite or < 0, or prior outside [0, 1].

    Source: Meehan et al. 2022, Theorem 4.1, a against everything else.

    >>> import hushuffle as hs
    >>> print(hs.order.posterior_probability(1.0, prior=0.5))
    0.2689 to 0.7311 (certified bracket)
    """
    known, before = _checks.non_negative("alpha", alpha), _checks.probability("prior", prior)
    kept, factor = 1 - before, _exp(known)
    if before in (0, 1):
        least = most = before
    else:
        least = lowered(before / (before + kept * factor))
        most = min(1.0, raised(1 / (1 + kept / before / factor)))
    return Bound(lower=least, upper=most, kind="bracket", unit="probability", sources=(MEEHAN.at("Theorem 4.1"),))


def reidentification(alpha: float, *, epsilon: float, group: int, wanted: int) -> Bound:
    """Return an upper bound on the chance to pick out the records of `wanted` people of a group of `group`.

    Somebody who knows all values names as many places of the release as people are `wanted`, and wins if more
    than half of those places hold records of these people. With r = `group`, k = `wanted` < r/2 and local
    `epsilon`, Pr[lose] >= floor((r-k)/k) e**-(2k epsilon + alpha) Pr[win].

    Only for shuffles that draw the order without looking at the records, as the Mallows shuffles do: sorting
    the records has alpha = 0, and the inequality fails for it.

    Raises:
        InvalidInputError: alpha not finite or < 0, epsilon < 0, or not 1 <= wanted < group/2.

    Source: Meehan et al. 2022, Theorem 4.2, with this condition; docs/theory/order.md, Theorem 7.

    >>> import hushuffle as hs
    >>> print(hs.order.reidentification(0.5, epsilon=0.2, group=60, wanted=4))
    at most 0.3685 (upper bound)
    """
    known = _checks.non_negative("alpha", alpha)
    local = 0.0 if epsilon == 0 else _checks.positive("epsilon", epsilon, allow_infinite=True)
    size = _checks.integer("group", group, low=3)
    hint = "Choose larger groups, or look for fewer people."
    few = _checks.integer("wanted", wanted, low=1, high=(size - 1) // 2, hint=hint)
    losing = lowered((size - few) // few * math.exp(-raised(2 * few * local + known)))
    most = min(1.0, raised(1 / (1 + losing)))
    return Bound(lower=0.0, upper=most, kind="upper", unit="probability", sources=(MEEHAN.at("Theorem 4.2"),))


def composed_alpha(alphas: Iterable[float]) -> Bound:
    """Return the sum of `alphas`: the alpha of releasing them all, each with coins of its own. One set of groups.

    An upper bound; attained when all are Mallows shuffles about one reference.

    Raises:
        InvalidInputError: no alpha, or one not finite or < 0.

    Source: Meehan et al. 2022, Theorem A.2; docs/theory/order.md, Theorem 5.

    >>> import hushuffle as hs
    >>> print(hs.order.composed_alpha([0.5, 0.25]))
    at most 0.7500 nats (upper bound)
    """
    total = up(sum(map(Fraction, _alphas(alphas)), Fraction(0)))
    return Bound(lower=0.0, upper=total, kind="upper", unit="nats", sources=(MEEHAN.at("Theorem A.2"),))


def mixed_alpha(alphas: Iterable[float]) -> Bound:
    """Return the largest of `alphas`: the alpha of releasing by one of them, chosen by coins. One set of groups.

    Raises:
        InvalidInputError: no alpha, or one not finite or < 0.

    Source: Meehan et al. 2022, Lemma 2 (convexity).

    >>> import hushuffle as hs
    >>> print(hs.order.mixed_alpha([0.5, 0.25]))
    at most 0.5000 nats (upper bound)
    """
    most = max(_alphas(alphas))
    return Bound(lower=0.0, upper=most, kind="upper", unit="nats", sources=(MEEHAN.at("Lemma 2"),))


def findings(alpha: float, *, epsilon: float, group: int, wanted: int) -> tuple[Finding, ...]:
    """Return what `alpha` means in plain sentences: belief about a value, and picking out a household.

    `group` is the size of the smallest group considered, `wanted` that of the household; the second sentence is
    left out where the group is too small for Theorem 4.2 (wanted >= group/2).

    Raises:
        InvalidInputError: as `posterior_probability` and `reidentification`.

    Source: Meehan et al. 2022, Theorems 4.1 and 4.2.

    >>> import hushuffle as hs
    >>> hs.order.findings(1.0, epsilon=0.2, group=60, wanted=4)[0].sentence.split(", ")[1]
    'the order moves a belief of 50 % to at most 73.2 %.'
    """
    belief = posterior_probability(alpha, prior=0.5)
    said = [
        Finding(
            question="order-inference",
            adversary="knows every report outside a person's group and the bag of reports inside it",
            sentence=(
                "For somebody who knows every report outside a person's group and the bag of reports inside it, "
                f"the order moves a belief of 50 % to at most {_percent(belief.upper)}."
            ),
            bound=belief,
            proof="Theorem 4.1, exchanges inside a group",
        )
    ]
    if 2 * _checks.integer("wanted", wanted, low=1) < _checks.integer("group", group, low=1):
        chance = reidentification(alpha, epsilon=epsilon, group=group, wanted=wanted)
        people = "1 person" if wanted == 1 else f"{wanted} people"
        said.append(
            Finding(
                question="order-reidentification",
                adversary="knows all values and looks for some people's reports",
                sentence=(
                    f"Somebody who knows all values finds most of the reports of {people} in a group of {group:,} "
                    f"with probability at most {_percent(chance.upper)}."
                ),
                bound=chance,
                proof="Theorem 4.2, for orders drawn independently of the reports",
            )
        )
    return tuple(said)


def _alphas(alphas: Iterable[float]) -> list[float]:
    known = [_checks.non_negative("alphas", alpha) for alpha in alphas]
    if not known:
        _checks.reject("alphas", "at least one number", "<none>")
    return known


def _exp(alpha: float) -> float:
    """Return a float >= e**alpha (up to the roundings that the callers cover), infinity beyond the largest."""
    return math.exp(alpha) if alpha < 709 else math.inf


def _percent(probability: float) -> str:
    return f"{math.ceil(1000 * probability) / 10:g} %"
