"""Between theta, the dispersion of a Mallows shuffle, and alpha, what it promises about the order.

alpha = theta times the exact sensitivity, on both sides. The figure is that of the worst records: all different.
Records that repeat hide more of the order, never less, so it holds for them as an upper bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NoReturn

import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Bound
from hushuffle.model.groups import GroupsLike
from hushuffle.questions.order._rounding import down, up
from hushuffle.questions.order._sources import EXACT, MEEHAN
from hushuffle.questions.order.sensitivity import Distance, sensitivity


def alpha_for_theta(
    theta: float, *, reference: npt.ArrayLike, groups: GroupsLike, distance: Distance = "kendall"
) -> Bound:
    """Return alpha = theta * sensitivity in nats, for any groups: those that theta was chosen for, or others.

    Exact (rounded up once). `theta` may be math.inf, which leaves the order as it is: alpha is infinite then,
    unless every group is one person.

    Raises:
        InvalidInputError: theta < 0, or as `sensitivity`.

    Source: seed 003, Property 3 and Theorem 4.4, with the exact sensitivity; theory.md section 5.

    >>> print(alpha_for_theta(0.01, reference=range(101), groups=[[0, 100]]))
    1.990 nats (exact)
    """
    known = _theta(theta)
    delta = sensitivity(reference, groups, distance=distance)
    if delta == 0:
        value = 0.0
    elif math.isinf(known):
        value = math.inf
    else:
        value = up(Fraction(known) * delta)
    return Bound.exact(value, unit="nats", sources=(MEEHAN.at("Property 3"), EXACT))


def theta_for_alpha(
    alpha: float, *, reference: npt.ArrayLike, groups: GroupsLike, distance: Distance = "kendall"
) -> float:
    """Return the largest theta that keeps `alpha` nats for `groups`: alpha / sensitivity, rounded down.

    Raises:
        InvalidInputError: alpha not finite or < 0, every group is one person (then any theta keeps alpha = 0), or
            as `sensitivity`.

    Source: seed 003, Algorithm 1, with the exact sensitivity; theory.md section 5.

    >>> theta_for_alpha(1.0, reference=range(9), groups=[[0, 1, 2]])
    0.3333333333333333
    """
    wanted = _checks.non_negative("alpha", alpha)
    delta = sensitivity(reference, groups, distance=distance)
    if delta == 0:
        _reject_singletons()
    return down(Fraction(wanted) / delta)


def alpha_for_groups(
    alpha: float,
    *,
    reference: npt.ArrayLike,
    groups: GroupsLike,
    others: GroupsLike,
    distance: Distance = "kendall",
) -> Bound:
    """Return what a shuffle made for `alpha` and `groups` promises for `others`: alpha * sensitivity' / sensitivity.

    Exact (rounded up once), with the exact sensitivity of both. If theta was alpha over the *published*
    sensitivity, this says too much: use `alpha_for_theta`.

    Raises:
        InvalidInputError: alpha not finite or < 0, every one of `groups` is one person, or as `sensitivity`.

    Source: seed 003, Theorem 4.4 (whose proof prints a division for the product); theory.md section 5.

    >>> print(alpha_for_groups(1.0, reference=range(9), groups=[[0, 1]], others=[[0, 1, 2]]))
    3.000 nats (exact)
    """
    known = _checks.non_negative("alpha", alpha)
    delta = sensitivity(reference, groups, distance=distance)
    other = sensitivity(reference, others, distance=distance)
    if delta == 0:
        _reject_singletons()
    value = up(Fraction(known) * other / delta)
    return Bound.exact(value, unit="nats", sources=(MEEHAN.at("Theorem 4.4"), EXACT))


def everybody_alpha(theta: float, *, n: int, distance: Distance = "kendall") -> Bound:
    """Return alpha of the group of all n people, in nats: no de Finetti attack moves any belief by more.

    Whatever somebody believes about who holds which record, and whatever else they know, a release changes the
    probability that person i holds record j by a factor of at most e**alpha, in either direction. Exact
    (rounded up once): for some belief the factor comes as near to e**alpha as one likes. It does not depend on
    the reference.

    Raises:
        InvalidInputError: theta < 0, n < 1, or an unknown distance.

    Source: seed 003, appendix A.3; docs/explanation/order-privacy.md.

    >>> print(everybody_alpha(0.001, n=100))
    4.950 nats (exact)
    """
    n = _checks.integer("n", n, low=1)
    bound = alpha_for_theta(theta, reference=range(n), groups=[range(n)], distance=distance)
    return Bound.exact(bound.upper, unit="nats", sources=(MEEHAN.at("appendix A.3"), EXACT))


def _theta(theta: float) -> float:
    if theta == 0:
        return 0.0
    return _checks.positive("theta", theta, allow_infinite=True, hint="theta = 0 is the uniform shuffle.")


def _reject_singletons() -> NoReturn:
    hint = "No order is protected then: any theta keeps alpha = 0."
    _checks.reject("groups", "such that one holds two people or more", "<every group is one person>", hint)
