"""Sensitivity: how much an exchange of values inside a group can change an order's distance from the reference.

The distance is that of tau to the identity, where the release is z[reference[i]] = y[reference[tau[i]]];
Kendall's counts the inversions of tau, that is pairs of *items* in another order than in the reference.
With r_1 < ... < r_m the ranks of a group's members in the reference:

    footrule   F = sum_i |r_i - r_(m+1-i)|
    Kendall    m(m-1)/2 + 2 sum_w min(L_w, U_w) = F - floor(m/2), over the ranks w between members,
               L_w members below w and U_w above
    Spearman   2 sum_(i <= m/2) (n+1-2i) (r_(m+1-i) - r_i)
    Hamming    m, and 0 for m = 1

All are exact: some pair of neighbouring orders attains them. The proofs are in docs/theory/order.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, Literal, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Bound
from hushuffle.model.citation import MEEHAN, Citation
from hushuffle.model.groups import Groups, GroupsLike, Integers
from hushuffle.numerics.exact import downwards, upwards

Distance: TypeAlias = Literal["kendall", "hamming", "footrule", "spearman"]
DISTANCES: Final[tuple[Distance, ...]] = ("kendall", "hamming", "footrule", "spearman")

_EXACT: Final = Citation(
    key="order-sensitivity", text="The exact sensitivity of an order", where="docs/theory/order.md, Theorems 2 and 4"
)


def kendall_sensitivity(reference: npt.ArrayLike, groups: GroupsLike) -> int:
    """Return the exact sensitivity of Kendall's distance: its largest change if members of any one group swap ranks.

    `reference`, shape (n,), lists the person at each rank: `reference[rank] = person`. `groups` is a list of
    integer arrays, an (offsets, members) tuple, or `Groups`.

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1, or `groups` is invalid.

    Source: docs/theory/order.md, Theorem 2. Meehan et al. 2022 (Property 4) has an upper bound.

    >>> import hushuffle as hs
    >>> hs.order.kendall_sensitivity(range(101), [[0, 100]])
    199
    """
    return sensitivity(reference, groups)


def sensitivity(reference: npt.ArrayLike, groups: GroupsLike, *, distance: Distance = "kendall") -> int:
    """Return the exact sensitivity of a distance between orders, the largest over all groups (`sensitivities`).

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1, `groups` is invalid, or `distance` is unknown.

    >>> [sensitivity(range(101), [[0, 100]], distance=d) for d in ("kendall", "footrule", "spearman", "hamming")]
    [199, 200, 20000, 2]
    """
    return int(sensitivities(reference, groups, distance=distance).max())


def sensitivities(reference: npt.ArrayLike, groups: GroupsLike, *, distance: Distance = "kendall") -> Integers:
    """Return the exact sensitivity (see `kendall_sensitivity`) of a distance for each of g groups, shape (g,).

    `distance` is "kendall", "footrule", "spearman" or "hamming"; the rest is as in `kendall_sensitivity`.

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1, `groups` is invalid, or `distance` is unknown.
            For "spearman" also: n is above two million, where the integers would overflow.

    Source: docs/theory/order.md, Theorems 2 and 4.

    >>> import hushuffle as hs
    >>> hs.order.sensitivities([2, 0, 1, 3], [[0, 1], [1, 2], [0, 2, 3], [3]]).tolist()
    [1, 3, 5, 0]
    """
    if distance not in DISTANCES:
        _checks.reject("distance", f"one of {', '.join(DISTANCES)}", repr(distance))
    rank = ranks(reference)
    n = len(rank)
    members = Groups.of(groups, n=n)
    if distance == "hamming":
        return np.where(members.sizes > 1, members.sizes, 0)
    if distance == "spearman" and n > 2_000_000:  # the sum stays below n**3
        _checks.reject("n", "at most 2,000,000 for Spearman's distance", n, "Use distance='footrule'.")
    spread = _spread(rank, members, squared=distance == "spearman")
    return spread - members.sizes // 2 if distance == "kendall" else spread


def published_sensitivity(reference: npt.ArrayLike, groups: GroupsLike) -> int:
    """Return w(w+1)/2, w the `width`: an upper bound on `kendall_sensitivity`; Meehan et al. 2022 print it as exact.

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1, or `groups` is invalid.

    Source: Meehan et al. 2022, Property 4.

    >>> import hushuffle as hs
    >>> hs.order.published_sensitivity(range(101), [[0, 100]])
    5050
    """
    widest = width(reference, groups)
    return widest * (widest + 1) // 2


def width(reference: npt.ArrayLike, groups: GroupsLike) -> int:
    """Return the largest distance in ranks between two members of one group.

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1, or `groups` is invalid.

    Source: Meehan et al. 2022, section 4.4.

    >>> import hushuffle as hs
    >>> hs.order.width([0, 2, 6, 7, 5, 3, 4, 1, 8, 9], [[0, 6, 7, 1, 4, 5]])
    7
    """
    return int(widths(reference, groups).max())


def widths(reference: npt.ArrayLike, groups: GroupsLike) -> Integers:
    """Return the distance in ranks between the outermost members of each of g groups, shape (g,).

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1, or `groups` is invalid.

    >>> import hushuffle as hs
    >>> hs.order.widths([2, 0, 1, 3], [[0, 1], [1, 2], [3]]).tolist()
    [1, 2, 0]
    """
    rank = ranks(reference)
    lowest, highest = outermost(rank, Groups.of(groups, n=len(rank)))
    return highest - lowest


def ranks(reference: npt.ArrayLike) -> Integers:
    """Return the rank of each person, shape (n,): the inverse of `reference`.

    Raises:
        InvalidInputError: `reference` is not a permutation of 0..n-1.

    >>> ranks([2, 0, 1]).tolist()
    [1, 2, 0]
    """
    order = np.asarray(reference)
    people = _checks.codes("reference", order, k=max(order.size, 1))
    n = len(people)
    rank = np.full(n, -1, dtype=np.int64)
    rank[people] = np.arange(n)
    missing = int(np.count_nonzero(rank < 0))
    if missing or not n:
        _checks.reject("reference", "a permutation of 0..n-1", f"<{missing} of {n} people missing>")
    return rank


def outermost(rank: Integers, groups: Groups) -> tuple[Integers, Integers]:
    """Return the lowest and the highest rank in each group, shapes (g,).

    >>> import hushuffle as hs
    >>> [ends.tolist() for ends in outermost(np.array([1, 2, 0]), hs.Groups.of([[0, 1], [1, 2]]))]
    [[1, 0], [2, 2]]
    """
    held, first = rank[groups.members], groups.offsets[:-1]
    return np.minimum.reduceat(held, first), np.maximum.reduceat(held, first)


def _spread(rank: Integers, groups: Groups, *, squared: bool) -> Integers:
    """Return sum_i |r_i - r_(m+1-i)| of each group (`squared`: Spearman's weights), below n**3: no int64 overflow."""
    n, sizes, first = len(rank), groups.sizes, groups.offsets[:-1]
    group = np.repeat(np.arange(len(groups)), sizes)
    held = rank[groups.members] + group * n
    held.sort()  # by group, then by rank
    held -= group * n
    place = np.arange(len(held)) - first[group]
    mirrored = sizes[group] - 1 - place
    if squared:
        # The outermost places of all n, as many at either end as the group has members.
        weight = np.sign(place - mirrored) * (n - 1 - 2 * np.minimum(place, mirrored))
    else:
        weight = np.sign(place - mirrored)
    return 2 * np.add.reduceat(weight * held, first)


def alpha_for_theta(
    theta: float, *, reference: npt.ArrayLike, groups: GroupsLike, distance: Distance = "kendall"
) -> Bound:
    """Return alpha = theta * sensitivity in nats, the guarantee of a Mallows shuffle of dispersion theta for `groups`.

    Exchanging the reports within one group changes the probability of a release by a factor of at most e**alpha. theta
    may have been chosen for other groups. The result is exact (rounded up once). If theta is math.inf, no record
    moves, and alpha is infinite unless every group has one person. The other arguments are as in `sensitivities`.

    Raises:
        InvalidInputError: theta < 0, or the reasons of `sensitivity`.

    Source: Meehan et al. 2022, Property 3 and Theorem 4.4, with the exact sensitivity; docs/theory/order.md, Theorem 5.

    >>> import hushuffle as hs
    >>> print(hs.order.alpha_for_theta(0.01, reference=range(101), groups=[[0, 100]]))
    1.990 nats (exact)
    """
    hint = "theta = 0 is the uniform shuffle."
    dispersion = 0.0 if theta == 0 else _checks.positive("theta", theta, allow_infinite=True, hint=hint)
    delta = sensitivity(reference, groups, distance=distance)
    if delta == 0:
        value = 0.0
    elif math.isinf(dispersion):
        value = math.inf
    else:
        value = upwards(Fraction(dispersion) * delta)
    return Bound.exact(value, unit="nats", sources=(MEEHAN.at("Property 3"), _EXACT))


def theta_for_alpha(
    alpha: float, *, reference: npt.ArrayLike, groups: GroupsLike, distance: Distance = "kendall"
) -> float:
    """Return the largest dispersion theta of a Mallows shuffle with guarantee `alpha` (nats): alpha / sensitivity.

    Exchanging reports within a group changes a release's probability by a factor of at most e**alpha. Rounded down.

    Raises:
        InvalidInputError: alpha not finite or < 0, every group has one person (then alpha = 0 for any theta), or
            the reasons of `sensitivity`.

    Source: Meehan et al. 2022, Algorithm 1, with the exact sensitivity; docs/theory/order.md, Theorem 5.

    >>> import hushuffle as hs
    >>> hs.order.theta_for_alpha(1.0, reference=range(9), groups=[[0, 1, 2]])
    0.3333333333333333
    """
    wanted = _checks.non_negative("alpha", alpha)
    delta = sensitivity(reference, groups, distance=distance)
    if delta == 0:
        _reject_singletons()
    return downwards(Fraction(wanted) / delta)


def alpha_for_groups(
    alpha: float, *, reference: npt.ArrayLike, groups: GroupsLike, others: GroupsLike, distance: Distance = "kendall"
) -> Bound:
    """Return the guarantee alpha (nats) for groups `others` of a Mallows shuffle with guarantee `alpha` for `groups`.

    The result is alpha * sensitivity(others) / sensitivity(groups), with exact sensitivities, rounded up once. It is
    too large if the shuffle's theta was computed from `published_sensitivity`: then use `alpha_for_theta`. Exchanging
    reports within a group changes a release's probability by a factor of at most e**alpha.

    Raises:
        InvalidInputError: alpha not finite or < 0, each of `groups` has one person, or the reasons of `sensitivity`.

    Source: Meehan et al. 2022, Theorem 4.4 (whose proof prints a division for the product);
    docs/theory/order.md, Theorem 5.

    >>> import hushuffle as hs
    >>> print(hs.order.alpha_for_groups(1.0, reference=range(9), groups=[[0, 1]], others=[[0, 1, 2]]))
    3.000 nats (exact)
    """
    level = _checks.non_negative("alpha", alpha)
    delta = sensitivity(reference, groups, distance=distance)
    other = sensitivity(reference, others, distance=distance)
    if delta == 0:
        _reject_singletons()
    value = upwards(Fraction(level) * other / delta)
    return Bound.exact(value, unit="nats", sources=(MEEHAN.at("Theorem 4.4"), _EXACT))


def everybody_alpha(theta: float, *, n: int, distance: Distance = "kendall") -> Bound:
    """Return alpha (nats) of a Mallows shuffle of dispersion theta for the group of all n people.

    alpha bounds the effect of any de Finetti attack. For any prior belief and knowledge of an adversary, a release
    changes the probability that person i holds record j by a factor of at most e**alpha, up or down. e**alpha is the
    supremum of this factor over all beliefs. alpha is exact, rounded up once, and independent of the reference order.

    Raises:
        InvalidInputError: theta < 0, n < 1, or an unknown distance.

    Source: Meehan et al. 2022, appendix A.3; docs/theory/order.md, Theorem 5.

    >>> import hushuffle as hs
    >>> print(hs.order.everybody_alpha(0.001, n=100))
    4.950 nats (exact)
    """
    n = _checks.integer("n", n, low=1)
    bound = alpha_for_theta(theta, reference=range(n), groups=[range(n)], distance=distance)
    return Bound.exact(bound.upper, unit="nats", sources=(MEEHAN.at("appendix A.3"), _EXACT))


def _reject_singletons() -> NoReturn:
    hint = "If every group has one person, alpha is 0 for every theta."
    _checks.reject("groups", "groups, at least one of them of two or more people", "<every group is one person>", hint)
