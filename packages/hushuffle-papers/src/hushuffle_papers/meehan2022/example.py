"""Appendix A: the worked example of Algorithm 1 (figure 6), and a de Finetti attack on shuffled reports."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import Floats
from hushuffle.attacks.inference import ATTACK
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.model import Report, Series, Table
from hushuffle.questions import order
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.diagram import LabelRelation, drawn

PRINTED: Final = (5, 2, 3, 8, 4, 1, 6, 7)
"""The reference order, person by rank: group 5 as listed, then 1 and 6 as in the release, and 7 as stated."""

DRAWN: Final = (3, 2, 5, 4, 8, 1, 7, 6)
"""The permutation that the example draws."""

RELEASED: Final = (1, 2, 5, 8, 3, 7, 6, 4)
"""For each person's place, the person whose report it holds in the release, as printed."""

EDGES: Final = ((5, 2), (5, 3), (5, 8), (5, 4), (3, 8), (4, 7), (2, 1), (3, 6))
"""Pairs of neighbours. The text gives the groups of 4, 5 and 8; the neighbours of 1 and 6 are our choice."""

_PLACES: Final = {
    5: (1.5, 1), 2: (0.5, 0.5), 3: (1.5, 0), 8: (2.5, 0.6), 4: (2.5, 1.5), 1: (0, 1.2), 6: (2.5, 0), 7: (3.4, 1.9),
}  # fmt: skip


@target("meehan2022/figure-6", "Algorithm 1 step by step")
def example(_request: Request) -> Report:
    groups = {person: neighbours(person) for person in sorted(PRINTED)}
    members = [[other - 1 for other in group] for group in groups.values()]
    printed = [person - 1 for person in PRINTED]
    wide = dict(zip(groups, order.widths(printed, members).tolist(), strict=True))
    exact = dict(zip(groups, order.sensitivities(printed, members).tolist(), strict=True))
    delta, bound = order.kendall_sensitivity(printed, members), order.published_sensitivity(printed, members)
    best = order.reference_order(members, method="best")
    least = order.kendall_sensitivity(best, members)
    most = max(order.sensitivities(printed, [*map(list, combinations(range(len(PRINTED)), 5))]))
    came = released(DRAWN)
    return study(
        "Algorithm 1 on eight people, step by step",
        "How do groups determine a reference order, a dispersion and a shuffled release?",
        claim(
            "Appendix A.10, figure 6 (b)",
            "A breadth-first search from person 5, who has the largest group, gives the order 5 2 3 8 4 1 6 7.",
            None if is_breadth_first(PRINTED) else False,
            "It is such an order for the groups of this study: everybody comes in the turn of their first neighbour.",
            quote="is then constructed by following a BFS traversal",
            reason="Our copy lacks the figure: the order is that of the example's release. The text gives three of the "
            "eight groups; the others are chosen so that this order fits.",
        ),
        claim(
            "Appendix A.10",
            "The width of group 5 is 4, as small as it can be, that of group 4 is 7, the largest possible.",
            wide[5] == len(groups[5]) - 1 and wide[4] == len(PRINTED) - 1,
            f"The widths are {wide[5]} and {wide[4]}.",
            quote="the width of the largest group … is as small as it can be … is the maximum possible",
            printed="4 and 7",
        ),
        claim(
            "Appendix A.10",
            "The sensitivity is 28.",
            delta == bound,
            f"{bound} is an upper bound. With the groups of this study the sensitivity is {delta}, so that theta = "
            f"alpha/{delta} is private, too.",
            quote="With the reference permutation in place, we compute the sensitivity: … =28",
            printed="28",
            reason="The text's theta = alpha/28 is private, with more randomness than needed: the published formula "
            "counts the whole window of a group as the group. Group 4, which the text gives, has 13 by itself. The "
            f"largest group has 5 people, and no group of 5 in this order has more than {most}.",
        ),
        claim(
            "Appendix A.10",
            "Drawing 3 2 5 4 8 1 7 6 releases y1 y2 y5 y8 y3 y7 y6 y4.",
            came == RELEASED,
            f"The release is {_reports(came)}: the place of the person of a rank gets the report of who was drawn "
            "for that rank.",
            quote="Then, the released … is given as … [y1y2y5y8y3y7y6y4]",
            printed=_reports(RELEASED),
            reason="Our copy lacks the order of reference: ranks 1 to 5 are group 5 as listed, the text gives rank 8, "
            "and this release places persons 1 and 6.",
        ),
        f"Another order does better: {_people(best + 1)} has a sensitivity of {least}, and theta = alpha/{least} "
        "at the same alpha.",
        f"At alpha = 1 the mean number of pairs out of order is {_mean(bound):.1f} of 28 with theta = 1/{bound}, "
        f"{_mean(delta):.1f} with theta = 1/{delta}, {_mean(least):.1f} with theta = 1/{least}; it is 14 after a "
        "uniform shuffle.",
        Table(
            key="groups",
            title="Groups in the printed order of reference",
            caption="Width: ranks between the outermost members. Sensitivity: pairs that an exchange can reverse.",
            columns=("person", "group", "width", "sensitivity, published", "sensitivity, exact"),
            rows=tuple(
                (person, _people(group), wide[person], wide[person] * (wide[person] + 1) // 2, exact[person])
                for person, group in groups.items()
            ),
        ),
        Table(
            key="release",
            title="From the permutation to the release",
            caption="The place of the person of each rank gets the report of the person drawn for that rank.",
            columns=("rank", "person in the reference", "person drawn", "the place of person", "gets the report"),
            rows=tuple(
                (rank, person, other, person, f"y{other}")
                for rank, (person, other) in enumerate(zip(PRINTED, DRAWN, strict=True), start=1)
            ),
        ),
        drawn(
            "groups",
            "Who is near whom",
            "A person's group is the person and everybody linked to it; 5 has the largest.",
            {str(person): place for person, place in _PLACES.items()},
            [LabelRelation(str(one), str(other)) for one, other in EDGES],
            marked=("5",),
        ),
        drawn(
            "reference",
            "The order of reference",
            "Breadth first from 5.",
            {str(person): (0.4 * rank, 0) for rank, person in enumerate(PRINTED)},
            [LabelRelation(str(one), str(other), "arrow") for one, other in pairwise(PRINTED)],
            marked=("5",),
        ),
        settings=(("people", "8"), ("ties of persons 1 and 6", "ours (2-1, 3-6): the text does not give them")),
        citations=(ATTACK.at("appendix A.10, figure 6"),),
    )


def neighbours(person: int) -> tuple[int, ...]:
    """Return the group of a person: the person and the neighbours in the example's graph.

    >>> neighbours(4), neighbours(8)
    ((4, 5, 7), (3, 5, 8))
    """
    return tuple(sorted({person, *(one + other - person for one, other in EDGES if person in (one, other))}))


def is_breadth_first(people: Sequence[int]) -> bool:
    """Return whether the order is a breadth-first order: sorted by each person's first visited neighbour.

    >>> is_breadth_first(PRINTED), is_breadth_first((5, 2, 3, 8, 4, 7, 1, 6))
    (True, False)
    """
    place = {person: rank for rank, person in enumerate(people)}
    earliest = [min(place[other] for other in neighbours(person)) for person in people[1:]]
    return earliest == sorted(earliest) and all(
        before < place[person] for before, person in zip(earliest, people[1:], strict=True)
    )


def released(drawn_people: Sequence[int]) -> tuple[int, ...]:
    """Return for each person's place the person whose report is released there: z[reference[rank]] = y[drawn[rank]].

    >>> released(PRINTED)
    (1, 2, 3, 4, 5, 6, 7, 8)
    """
    held = dict(zip(PRINTED, drawn_people, strict=True))
    return tuple(held[person] for person in sorted(held))


def _mean(delta: int) -> float:
    return order.mean_inversions(len(PRINTED), theta=float(Fraction(1, delta)))


def _people(group: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    return " ".join(map(str, group))


def _reports(people: Sequence[int]) -> str:
    return " ".join(f"y{person}" for person in people)


CLASSES: Final = (0, 0, 0, 1, 1, 1)
"""Public information t about each person."""

_EPSILON: Final = 2.0
_RATES: Final = tuple(rate / 10 for rate in range(1, 10))
_ALPHAS: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_PRIORS: Final = (0.5, 0.1, 0.01, 1e-4, 1e-8)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """`right`: share of right guesses; `moved` (nats): largest |ln| of P[sender | release] / P[sender | multiset]."""

    right: float
    moved: float


@target("meehan2022/property-1", "A de Finetti attack", seconds=2)
def beliefs(_request: Request) -> Report:
    n, half = len(CLASSES), len(CLASSES) // 2
    whole, parts = [list(range(n))], [list(range(half)), list(range(half, n))]
    reference = list(range(n))
    channel: Floats = RandomizedResponse(k=2, epsilon=_EPSILON).channel().matrix.astype(np.float64)
    thetas = {
        "everybody": [order.theta_for_alpha(alpha, reference=reference, groups=whole) for alpha in _ALPHAS],
        "own class": [order.theta_for_alpha(alpha, reference=reference, groups=parts) for alpha in _ALPHAS],
    }
    results = {name: [attack(CLASSES, theta, channel) for theta in each] for name, each in thetas.items()}
    ends = attack(CLASSES, 0.0, channel), attack(CLASSES, math.inf, channel)
    moved = [each.moved for each in results["everybody"]]
    held = all(most <= alpha + 1e-9 for most, alpha in zip(moved, _ALPHAS, strict=True))
    broken = _largest([each.moved for each in results["own class"]])
    theta = order.theta_for_alpha(1.0, reference=reference, groups=whole)
    shifts = [shift(theta, n, prior) for prior in _PRIORS]
    return study(
        "A de Finetti attack on shuffled reports",
        "What does the order of reports reveal to an adversary who infers from it how values depend on a class?",
        claim(
            "Appendix A.3, Property 1",
            "If one group holds all people, no belief about their values moves by more than a factor of e^alpha.",
            held,
            f"The attacker's beliefs move by at most {_largest(moved):.2f} alpha, alpha from {_ALPHAS[1]:g} to "
            f"{_ALPHAS[-1]:g}.",
            quote="is sufficient for thwarting any de Finetti attack … on individuals",
            reason="The proof covers every prior: the likelihoods of all orders differ by at most a factor of e^alpha, "
            "and by Bayes' theorem so do beliefs before and after. This attacker is an example.",
            data=f"{n} people, two classes, every release enumerated.",
        ),
        claim(
            "Appendix A.3, Property 2",
            "Without that group some belief moves further.",
            broken > 1,
            f"With groups of one class each, beliefs move by up to {broken:.2f} alpha.",
            quote="is necessary to block all de Finetti attacks",
            reason="With a prior near 0 on one of two orders the paper's proof covers every shuffle (next claim).",
            data=f"{n} people, two classes, every release enumerated.",
        ),
        claim(
            "Appendix A.3, proof of Property 2",
            "A prior of one half on each of two orders violates (7): some belief moves by e^alpha.",
            shifts[0] > 1 - 1e-9,
            f"A belief moves by e^{shifts[0]:.3f} at most at alpha = 1; a prior of {_PRIORS[-1]:g} on one of them "
            f"moves it by e^{shifts[-1]:.3f}, so that the property holds.",
            quote="failing to prevent de Finetti attacks against this bimodal prior",
        ),
        f"From reports with their senders, the adversary names {ends[1].right:.3f} of the values right, from the "
        f"bag of reports and the classes alone {ends[0].right:.3f}. The order of a shuffle with alpha = "
        f"{_ALPHAS[2]:g} for everybody adds {results['everybody'][2].right - ends[0].right:.4f}, with the same "
        f"alpha for each class {results['own class'][2].right - ends[0].right:.4f}.",
        chart(
            "right",
            "Share of values guessed right",
            "The best adversary, by enumeration; horizontal lines: the uniform shuffle, and no shuffle.",
            ("alpha (nats)", "share of values named right"),
            (
                *(
                    Series.through(f"groups: {name}", _ALPHAS, [each.right for each in attacks])
                    for name, attacks in results.items()
                ),
                Series.through("uniform shuffle", _ALPHAS, [ends[0].right] * len(_ALPHAS)),
                Series.through("no shuffle", _ALPHAS, [ends[1].right] * len(_ALPHAS)),
            ),
        ),
        Table(
            key="beliefs",
            title="Largest change of a belief by the release",
            caption="The largest |ln| of the ratio of beliefs about a sender after and before the release (nats).",
            columns=("alpha", "right, everybody", "moved, everybody", "right, own class", "moved, own class"),
            rows=tuple(
                (alpha, shared.right, shared.moved, separate.right, separate.moved)
                for alpha, shared, separate in zip(_ALPHAS, results["everybody"], results["own class"], strict=True)
            ),
        ),
        Table(
            key="priors",
            title="Largest change of a belief with two possible orders",
            caption="Change of ln of a belief at alpha = 1 if only an order and its reverse are possible, in nats.",
            columns=("prior of one order", "a belief moves by"),
            rows=tuple(zip(_PRIORS, shifts, strict=True)),
        ),
        settings=(
            ("people", f"{n}, in the order of reference: {half} of one class, then {n - half} of another"),
            ("values", "two; values are independent with an unknown rate for each class, uniform over 0.1 ... 0.9"),
            ("reports", f"randomized response, epsilon = {_EPSILON:g}"),
            ("attacker", "knows classes, rates' prior, mechanism, sees the release; the best guess of each value"),
        ),
        citations=(ATTACK.at("appendix A.3, Properties 1 and 2"),),
    )


def _largest(moved: Sequence[float]) -> float:
    return max(most / alpha for most, alpha in zip(moved, _ALPHAS, strict=True) if alpha)


def attack(classes: Sequence[int], theta: float, channel: Floats) -> Attack:
    """Return the attacker's success against a Mallows shuffle about the order of the people, by enumeration.

    >>> attack((0, 1), 0.0, np.eye(2)).moved  # a uniform shuffle says no more than the bag of reports
    0.0
    """
    n = len(classes)
    if theta == math.inf:
        orders, chances = np.arange(n)[np.newaxis], np.ones(1)
    else:
        orders, chances = order.mallows_law(range(n), theta=theta)
    values = _prior(classes)
    reports = _reported(values, channel)
    right, moved = 0.0, 0.0
    for person in range(n):
        seen = _released(np.stack([_with(reports, person, y) for y in (0, 1)]), orders, chances)
        moved = max(moved, _moved(seen))
        joint = np.stack([_reported(_with(values, person, x), channel) for x in (0, 1)])
        right += float(_released(joint, orders, chances).max(axis=0).sum()) / n
    return Attack(right=right, moved=moved)


def shift(theta: float, n: int, prior: float) -> float:
    """Return the largest change of a log belief (nats) for two orders: one of probability `prior`, and its reverse.

    >>> round(shift(0.1, 3, 0.5), 4), round(shift(0.1, 3, 1e-9), 4)
    (0.1612, 0.3)
    """
    growth = math.exp(theta * n * (n - 1) / 2)
    return max(
        abs(math.log(odds / (1 + belief * (odds - 1))))
        for belief in (prior, 1 - prior)
        for odds in (growth, 1 / growth)
    )


def _prior(classes: Sequence[int]) -> Floats:
    """Return the joint distribution of the values, shape (2,) * n: each class has its own rate, uniform."""
    n = len(classes)
    law = np.ones((2,) * n)
    for values in itertools.product((0, 1), repeat=n):
        for name in set(classes):
            ones = [value for value, each in zip(values, classes, strict=True) if each == name]
            law[values] *= math.fsum(math.prod(r if v else 1 - r for v in ones) for r in _RATES) / len(_RATES)
    return law


def _with(law: Floats, person: int, value: int) -> Floats:
    part = np.zeros_like(law)
    np.moveaxis(part, person, 0)[value] = np.moveaxis(law, person, 0)[value]
    return part


def _reported(law: Floats, channel: Floats) -> Floats:
    for person in range(law.ndim):
        law = np.moveaxis(np.tensordot(law, channel, axes=(person, 0)), -1, person)
    return law


def _released(tables: Floats, orders: npt.NDArray[np.int64], chances: Floats) -> Floats:
    """Return the distribution of the release for each of the `tables` of reports: z[j] = y[order[j]]."""
    total = np.zeros_like(tables)
    for each, chance in zip(orders, chances, strict=True):
        total += chance * np.transpose(tables, (0, *(each + 1)))
    return total


def _moved(seen: Floats) -> float:
    """Return the largest |ln| of P[y | release] divided by P[y | bag], from seen[y, release]."""
    ones = np.indices(seen.shape[1:]).sum(axis=0)
    worst = 0.0
    for bag in range(seen.ndim):
        inside = seen[:, ones == bag]
        before = inside.sum(axis=1) / inside.sum()
        after = inside / inside.sum(axis=0)
        for belief, earlier in zip(after, before, strict=True):
            if earlier > 0:
                with np.errstate(divide="ignore"):
                    worst = max(worst, float(np.abs(np.log(belief / earlier)).max()))
    return worst if worst > 1e-12 else 0.0
