"""Consequences of alpha: how much odds can change, and how often an adversary can single out a household.

Order privacy with alpha (nats) means: exchanging records inside a group changes the probability of any release by a
factor of at most e**alpha. Post-processing does not increase alpha. Order privacy does not protect the values; the
randomizer's epsilon does. For at most eight people, the largest change of an adversary's odds about a value follows
by enumeration of all orders.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Channel, Finding
from hushuffle.model.bound import percent
from hushuffle.model.citation import MEEHAN
from hushuffle.model.groups import Integers
from hushuffle.numerics.exact import upwards
from hushuffle.questions.order.groups import Floats
from hushuffle.questions.order.sensitivity import DISTANCES, Distance, ranks

_STEPS: Final = 4  # floats: math.exp and two operations after it are off by less


def posterior_odds(alpha: float, *, prior_odds: float = 1.0) -> Bound:
    """Return the range of an adversary's odds, after the release, that person i has value a instead of value b.

    The range is `prior_odds`, the odds before the release, times e**-alpha to e**alpha. Exchanging records within i's
    group changes a release's probability by a factor of at most e**alpha (`alpha_for_theta`). The adversary knows each
    record outside i's group and the multiset of records inside it. The values may depend on each other in any way.

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
    """Return the range of an adversary's probability, after the release, that person i has value a.

    `prior` is this probability before the release. Exchanging records within i's group changes a release's
    probability by a factor of at most e**alpha (`alpha_for_theta`). The adversary knows every record outside i's group
    and the multiset of records inside it.

    Raises:
        InvalidInputError: alpha not finite or < 0, or prior outside [0, 1].

    Source: Meehan et al. 2022, Theorem 4.1, for a against all other values.

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

    The adversary knows all values and chooses `wanted` places of the release. The adversary wins if more than half of
    them contain records of these people. For r = `group`, k = `wanted` < r/2, local epsilon `epsilon` and `alpha` of
    the noisy order (see `alpha_for_theta`), Pr[lose] >= floor((r-k)/k) e**-(2k epsilon + alpha) Pr[win].

    The order must be drawn independently of the records, as in Mallows shuffles. For sorting by value, alpha is 0, but
    the inequality is false.

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

    Exchanging records within a group changes the probability of a release by a factor of at most e**alpha, alpha in
    nats (`alpha_for_theta`). The bound is attained if all releases are Mallows shuffles about the same reference.

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
    """Return the largest of `alphas` (nats): a bound on alpha if one of several releases is chosen at random.

    All have the same groups. Exchanges of records in a group change probabilities by a factor of at most e**alpha.

    Raises:
        InvalidInputError: no alpha, or one not finite or < 0.

    Source: Meehan et al. 2022, Lemma 2 (convexity).

    >>> import hushuffle as hs
    >>> print(hs.order.mixed_alpha([0.5, 0.25]))
    at most 0.5000 nats (upper bound)
    """
    return Bound(lower=0.0, upper=max(_alphas(alphas)), kind="upper", unit="nats", sources=(MEEHAN.at("Lemma 2"),))


def findings(alpha: float, *, epsilon: float, group: int, wanted: int) -> tuple[Finding, ...]:
    """Return sentences on a release in a noisy order: how much a belief changes, how likely a household is located.

    Exchanging reports within a group changes a release's probability by a factor of at most e**alpha.
    `epsilon` is the local epsilon, `group` the size of the smallest group, `wanted` that of the household. The second
    sentence is missing if wanted >= group/2: Theorem 4.2 of Meehan et al. 2022 then does not apply.

    Raises:
        InvalidInputError: the reasons are those of `posterior_probability` and `reidentification`.

    Source: Meehan et al. 2022, Theorems 4.1 and 4.2.

    >>> import hushuffle as hs
    >>> hs.order.findings(1.0, epsilon=0.2, group=60, wanted=4)[0].sentence.split(": ")[1]
    'a value of the person that is 50 % probable before the release is 26.89 % to 73.11 % probable after it.'
    """
    belief = posterior_probability(alpha, prior=0.5)
    statements = [
        Finding(
            question="order-inference",
            adversary="knows every report outside a person's group and the multiset of reports inside it",
            sentence="An adversary knows every report outside a person's group and the multiset of reports inside it: "
            "a value of the person that is 50 % probable before the release is "
            f"{percent(belief.lower, up=False)} to {percent(belief.upper, up=True)} probable after it.",
            bound=belief,
            proof="Theorem 4.1, exchanges inside a group",
        )
    ]
    if 2 * _checks.integer("wanted", wanted, low=1) < _checks.integer("group", group, low=1):
        chance = reidentification(alpha, epsilon=epsilon, group=group, wanted=wanted)
        people = "the report of one person" if wanted == 1 else f"more than half of the reports of {wanted} people"
        statements.append(
            Finding(
                question="order-reidentification",
                adversary="knows all values and looks for the reports of a household",
                sentence=f"An adversary who knows all values finds {people}, among the {group:,} reports of a group, "
                f"with probability at most {percent(chance.upper, up=True)}.",
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


WORK_LIMIT: Final = 200_000_000
"""Maximum number of entries to enumerate (a few seconds); larger problems are refused."""

MOST_PEOPLE: Final = 8
"""Maximum number of people whose n! orders are enumerated."""

_TOLERANCE: Final = 1e-9

Law = tuple[Integers, Floats]
"""Orders, shape (orders, n), z[j] = y[order[j]], and their probabilities, shape (orders,)."""


def mallows_law(reference: npt.ArrayLike, *, theta: float, distance: Distance = "kendall") -> Law:
    """Return the distribution of a Mallows shuffle: every order of at most eight people with its probability.

    The first array, shape (n!, n), contains the orders: reports y are released as z[j] = y[order[j]]. The second, shape
    (n!,), contains their probabilities, proportional to e**(-theta d). d is the `distance` from the identity to tau,
    the order in ranks of the reference: order[reference[i]] = reference[tau[i]].

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1 or has more than eight people, `theta` is not
            finite or is < 0, or `distance` is unknown.

    Source: Meehan et al. 2022, Algorithm 1.

    >>> import hushuffle as hs
    >>> orders, chances = hs.order.mallows_law([0, 1], theta=1.0)
    >>> orders.tolist(), chances.round(4).tolist()
    ([[0, 1], [1, 0]], [0.7311, 0.2689])
    """
    if distance not in DISTANCES:
        _checks.reject("distance", f"one of {', '.join(DISTANCES)}", repr(distance))
    noise = _checks.non_negative("theta", theta)
    rank = ranks(reference)
    n = len(rank)
    if n > MOST_PEOPLE:
        _checks.reject("reference", f"at most {MOST_PEOPLE} people", f"<{n} people>", "All n! orders are listed.")
    taus = np.array(list(itertools.permutations(range(n))), dtype=np.int64)
    orders = np.asarray(reference, dtype=np.int64)[taus[:, rank]]
    weights = np.exp(-noise * _DISTANCE[distance](taus))
    return orders, weights / weights.sum()


def inferential_loss(
    prior: npt.ArrayLike, *, channel: Channel, law: Law | None = None, group: Sequence[int] | None = None
) -> Bound:
    """Return the largest change by any release, in nats, of an adversary's log odds that a person has value a, not b.

    `prior`, shape (k,) * n, is the joint distribution of the n values. `channel` (k inputs) is every client's
    randomizer. `law` is the distribution of the order, such as `mallows_law`; None is the fixed order of the people.
    With `group`, the adversary knows the records outside the group and the multiset inside it, and the loss is over its
    members. The result is exact up to 1e-9; it is infinite if a release rules a value out.

    Raises:
        InvalidInputError: `prior` is not a distribution over n values of the channel's k inputs, `law` does not
            fit, or a member of `group` is outside 0..n-1.
        NumericalError: the enumeration needs more than 2e8 numbers.

    Source: Meehan et al. 2022, Definition A.1 and Theorem 4.1.

    >>> import hushuffle as hs
    >>> channel = hs.Channel(matrix=[[0.75, 0.25], [0.25, 0.75]])
    >>> together = [[0.5, 0.0], [0.0, 0.5]]  # two people who always agree
    >>> print(hs.order.inferential_loss(together, channel=channel))  # their reports add up: 2 ln 3
    2.197 nats (exact)
    """
    before = _prior(prior, channel)
    n, (k, m) = before.ndim, channel.matrix.shape
    orders, chances = _order_law(law, n)
    members = range(n) if group is None else sorted(set(_checks.codes("group", list(group), k=n).tolist()))
    bags = [None] if group is None else _bags(n, m, members)
    work = len(bags) * len(orders) * len(members) * k * m**n + (k * m) ** n
    if work > WORK_LIMIT:
        message = f"The enumeration has {work:.1e} numbers, above {WORK_LIMIT:.0e}. Use fewer people, values or orders."
        raise NumericalError(message)
    matrix: Floats = channel.matrix.astype(np.float64)
    total: Floats = np.ones((1, 1))
    for _ in range(n):
        total = np.kron(total, matrix).astype(np.float64)
    joint = before.reshape(-1)[:, np.newaxis] * total  # P[x, y]
    worst = 0.0
    for i in members:
        split = joint.reshape(k**i, k, -1, m**n).sum(axis=(0, 2))  # P[x_i = a, y]
        for bag in bags:
            conditional = split if bag is None else split * bag
            worst = max(worst, _largest_shift(conditional.reshape(k, *[m] * n), orders, chances))
    return Bound.exact(worst, unit="nats", sources=(MEEHAN.at("Definition A.1" if group is None else "Theorem 4.1"),))


def _largest_shift(table: Floats, orders: Integers, chances: Floats) -> float:
    """Return the largest |ln P[z|a]/P[z|b]| from `table[a, y]` = P[x_i = a, y]; values of no chance are left out."""
    rows = table.reshape(len(table), -1)
    chance = rows.sum(axis=1)
    possible = chance > 0
    if np.count_nonzero(possible) < 2:
        return 0.0
    released = np.zeros_like(table)
    for order, p in zip(orders, chances, strict=True):
        released += p * np.transpose(table, (0, *(order + 1)))  # z[j] = y[order[j]]
    given = released.reshape(len(table), -1)[possible] / chance[possible, np.newaxis]
    seen = given[:, np.any(given > 0, axis=0)]
    least = seen.min(axis=0)
    return math.inf if np.any(least == 0) else float(np.log(seen.max(axis=0) / least).max())


def _bags(n: int, m: int, members: Sequence[int]) -> list[Any]:
    """Return an indicator of the m**n datasets that agree with each possible prior knowledge of the adversary."""
    records_by_bag: dict[tuple[Any, ...], Any] = {}
    for place, records in enumerate(itertools.product(range(m), repeat=n)):
        inside = tuple(sorted(records[i] for i in members))
        outside = tuple(record for i, record in enumerate(records) if i not in members)
        records_by_bag.setdefault((inside, outside), np.zeros(m**n))[place] = 1.0
    return list(records_by_bag.values())


def _prior(prior: npt.ArrayLike, channel: Channel) -> Floats:
    array = np.asarray(prior, dtype=np.float64)
    k = channel.matrix.shape[0]
    if array.ndim == 0 or set(array.shape) != {k}:
        _checks.reject("prior", f"of shape (k,) * n with k = {k}, the channel's inputs", f"<shape {array.shape}>")
    if not bool(np.all(array >= 0)) or abs(float(array.sum()) - 1) > _TOLERANCE:
        _checks.reject("prior", "non-negative with sum 1", f"<sum {float(array.sum())!r}>")
    return array


def _order_law(law: Law | None, n: int) -> Law:
    if law is None:
        return np.arange(n)[np.newaxis], np.ones(1)
    orders, chances = np.asarray(law[0], dtype=np.int64), np.asarray(law[1], dtype=np.float64)
    if orders.ndim != 2 or not np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(n), (len(orders), 1))):
        _checks.reject("law", f"of orders of {n} people, shape (orders, {n})", f"<shape {orders.shape}>")
    if chances.shape != (len(orders),) or np.any(chances < 0) or abs(float(chances.sum()) - 1) > _TOLERANCE:
        _checks.reject("law", "with one probability for each order, sum 1", f"<shape {chances.shape}>")
    return orders, chances


def _inversions(taus: Integers) -> Integers:
    pairs = itertools.combinations(range(taus.shape[1]), 2)
    total = np.zeros(len(taus), dtype=np.int64)
    for left, right in pairs:
        total += taus[:, left] > taus[:, right]
    return total


def _moves(taus: Integers) -> Integers:
    return taus - np.arange(taus.shape[1])


_DISTANCE: Final[dict[Distance, Callable[[Integers], Integers]]] = {
    "kendall": _inversions,
    "hamming": lambda taus: np.count_nonzero(_moves(taus), axis=1),
    "footrule": lambda taus: np.abs(_moves(taus)).sum(axis=1),
    "spearman": lambda taus: (_moves(taus) ** 2).sum(axis=1),
}
