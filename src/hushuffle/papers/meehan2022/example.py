"""The worked example of Algorithm 1 (appendix A.10, figure 6), step by step, compared with the exact sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np

from hushuffle.attacks.inference import ATTACK
from hushuffle.model import Report, Table
from hushuffle.papers.base import Request, Target, claim
from hushuffle.papers.diagram import Line, drawn
from hushuffle.questions import order

PRINTED: Final = (5, 2, 3, 8, 4, 1, 6, 7)
"""The printed reference order: person by rank."""

DRAWN: Final = (3, 2, 5, 4, 8, 1, 7, 6)
"""The permutation that the example draws."""

RELEASED: Final = (1, 2, 5, 8, 3, 7, 6, 4)
"""For each person's place, the person whose report it holds in the release, as printed."""

EDGES: Final = ((5, 2), (5, 3), (5, 8), (5, 4), (3, 8), (4, 7), (2, 1), (3, 6))
"""Pairs of neighbours. The text gives the groups of 4, 5 and 8; the neighbours of 1 and 6 are our choice."""

_PLACES: Final = {
    5: (1.5, 1), 2: (0.5, 0.5), 3: (1.5, 0), 8: (2.5, 0.6), 4: (2.5, 1.5), 1: (0, 1.2), 6: (2.5, 0), 7: (3.4, 1.9),
}  # fmt: skip


def example(_request: Request) -> Report:
    groups = {person: neighbours(person) for person in sorted(PRINTED)}
    members = [[other - 1 for other in group] for group in groups.values()]
    printed = [person - 1 for person in PRINTED]
    wide = dict(zip(groups, order.widths(printed, members).tolist(), strict=True))
    exact = dict(zip(groups, order.sensitivities(printed, members).tolist(), strict=True))
    delta, bound = order.kendall_sensitivity(printed, members), order.published_sensitivity(printed, members)
    best = order.reference_order(members, method="best")
    least = order.kendall_sensitivity(best, members)
    came = released(DRAWN)
    return Report(
        key="meehan2022/figure-6",
        title="Algorithm 1 on eight people, step by step",
        question="How do groups determine a reference order, a dispersion and a shuffled release?",
        claims=(
            claim(
                "Appendix A.10, figure 6 (b)",
                "A breadth-first search from person 5, who has the largest group, gives the order 5 2 3 8 4 1 6 7.",
                is_breadth_first(PRINTED),
                "In the printed order everybody comes in the turn of their first neighbour.",
                quote="is then constructed by following a BFS traversal",
                reason="The text gives three of the eight groups; the others are chosen so that they agree with it.",
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
                "The sensitivity is 28, so that theta = alpha/28.",
                delta == bound,
                f"{bound} is an upper bound. The sensitivity is {delta}, so that theta = alpha/{delta}.",
                quote="we compute the sensitivity: … =28",
                printed="28",
                reason="The published formula counts the whole window of a group as the group. Group 4, which the text "
                "gives, has 13 by itself; any other group has a width of 6 at most, so that none reaches 28.",
            ),
            claim(
                "Appendix A.10",
                "Drawing 3 2 5 4 8 1 7 6 releases y1 y2 y5 y8 y3 y7 y6 y4.",
                came == RELEASED,
                f"The release is {_reports(came)}: the place of the person of a rank gets the report of who was drawn "
                "for that rank.",
                quote="Then, the released … is given as … [y1y2y5y8y3y7y6y4]",
                printed=_reports(RELEASED),
            ),
        ),
        answers=(
            f"Another order does better: {_people(best + 1)} has a sensitivity of {least}, and theta = alpha/{least} "
            "at the same alpha.",
            f"At alpha = 1 the mean number of pairs out of order is {_mean(bound):.1f} of 28 with theta = 1/{bound}, "
            f"{_mean(delta):.1f} with theta = 1/{delta}, {_mean(least):.1f} with theta = 1/{least}; it is 14 after a "
            "uniform shuffle.",
        ),
        settings=(("people", "8"), ("ties of persons 1 and 6", "ours (2-1, 3-6): the text does not give them")),
        tables=(
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
        ),
        diagrams=(
            drawn(
                "groups",
                "Who is near whom",
                "A person's group is the person and everybody linked to it; 5 has the largest.",
                {str(person): place for person, place in _PLACES.items()},
                [Line(start=str(one), end=str(other)) for one, other in EDGES],
                marked=("5",),
            ),
            drawn(
                "reference",
                "The order of reference",
                "Breadth first from 5.",
                {str(person): (0.4 * rank, 0) for rank, person in enumerate(PRINTED)},
                [Line(start=str(one), end=str(other), kind="arrow") for one, other in pairwise(PRINTED)],
                marked=("5",),
            ),
        ),
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


TARGETS: Final = (Target(name="meehan2022/figure-6", title="Algorithm 1 step by step", build=example),)
