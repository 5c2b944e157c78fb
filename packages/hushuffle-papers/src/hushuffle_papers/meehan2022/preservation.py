"""Figures 2 and 3: the trusted shuffler, and groups in a graph. Figure 7: the share of a subset that stays in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hushuffle.attacks.inference import ATTACK
from hushuffle.mechanisms.shufflers import MallowsShuffle
from hushuffle.model import Bound, Chart, Claim, Report, Series, Table
from hushuffle.model.groups import Groups
from hushuffle.questions import order
from hushuffle.questions.order.preservation import preserved_share
from hushuffle.randomness import reproducible
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.diagram import LabelRelation, drawn

DELTA: Final = 0.01
ALPHA: Final = 3.0

_PEOPLE: Final = 10_000
_OWN: Final = "The paper gives 10,000 people, alpha = 3 (b, c) and width 30; other alphas and widths are this study's."
_SHARES: Final = (0.05, 0.1, 0.25, 0.5, 0.8)
_SWEPT: Final = (30, 100)
_LINES: Final = (0.1, 0.25, 0.8)


@target(
    "meehan2022/figure-7",
    "preservation over alpha, width, subset size",
    quick={"people": 200, "samples": 60, "alphas": (1.0, 10.0), "widths": (30, 100)},
    seconds=90,
)
def preservation_study(
    request: Request,
    *,
    people: int = _PEOPLE,
    samples: int = 600,
    alphas: Sequence[float] = (1.0, 3.0, 5.0, 10.0),
    widths: Sequence[int] = (10, 30, 50, 100, 200, 400),
) -> Report:
    swept = [(alpha, width) for width in _SWEPT for alpha in alphas]
    settings = list(dict.fromkeys([*swept, *((ALPHA, width) for width in widths)]))
    bounds: dict[tuple[float, int], dict[float, Bound]] = {}
    for alpha, width in request.each(settings, "alpha {:g}, width {}"):
        sizes = [round(people * share) for share in _SHARES]
        middles = [np.arange((people - size) // 2, (people - size) // 2 + size) for size in sizes]
        shuffler = MallowsShuffle(reference=np.arange(people), theta=alpha / (width * (width + 1) / 2))
        groups = Groups.of(middles, n=people)
        shares = preserved_share(shuffler, groups, delta=DELTA, samples=samples, rng=reproducible(request.seed))
        bounds[alpha, width] = dict(zip(_SHARES, shares, strict=True))
    by_alpha = [
        Series.through(f"width {width}, a quarter", alphas, [bounds[a, width][0.25] for a in alphas])
        for width in _SWEPT
    ]
    by_width = [
        Series.through(f"{share:.0%} of all", widths, [bounds[ALPHA, w][share] for w in widths]) for share in _LINES
    ]
    by_size = [Series.through(f"width {w}", _SHARES, [bounds[ALPHA, w][share] for share in _SHARES]) for w in widths]
    return study(
        "Preservation of a subset",
        f"What share of a subset stays inside it, but with probability {DELTA:g}?",
        *(
            replace(claim, data=f"Simulated: {people:,} people, {samples:,} permutations of each kind. {_OWN}")
            for claim in _claims(by_alpha, by_width, by_size, bounds, widths)
        ),
        Table(
            key="shares",
            title="Preserved share of subsets of each size",
            caption="Each column is for one subset size, as a share of all people.",
            columns=("alpha", "width", *(f"{share:.0%}" for share in _SHARES)),
            rows=tuple((alpha, width, *shares.values()) for (alpha, width), shares in bounds.items()),
        ),
        _chart("alpha", "alpha", by_alpha, log=""),
        _chart("width", "width of the groups", by_width, log="x"),
        _chart("size", "size of the subset, of all people", by_size, log=""),
        settings=(
            ("people", f"{people:,}; subsets in the middle of the reference"),
            ("groups", "contiguous windows: exact and published sensitivity are both w(w+1)/2"),
            ("permutations", f"{samples:,} for each alpha and width (the paper: 50, too few for delta = 0.01)"),
            ("interval", "99 %, order statistics"),
            ("seed", str(request.seed)),
        ),
        citations=(ATTACK.at("figure 7 and appendix A.14.1"),),
    )


def _claims(
    by_alpha: Sequence[Series],
    by_width: Sequence[Series],
    by_size: Sequence[Series],
    bounds: dict[tuple[float, int], dict[float, Bound]],
    widths: Sequence[int],
) -> tuple[Claim, ...]:
    widest, narrow = bounds[ALPHA, widths[-1]], bounds[ALPHA, _SWEPT[0]]
    uniform = all(abs(widest[share].upper - share) <= 0.1 for share in _LINES)
    gain = narrow[0.8].upper - narrow[0.25].upper
    trends = (
        ("grows with alpha", "we see that preservation is highest for higher", by_alpha, True),
        ("falls as groups get wider", "demonstrates that preservation declines with increasing width", by_width, False),
        ("grows with the size of the subset", "preservation grows rapidly with increasing subset size", by_size, True),
    )
    return (
        *(_trend(f"Preservation {how}.", quote, lines, rising=rising) for how, quote, lines, rising in trends),
        claim(
            "Appendix A.14.1, Figure 7",
            "At large widths the shuffle is nearly uniform.",
            uniform,
            f"At width {widths[-1]} the shuffle preserves, of a subset of 10% of all people, a share of {widest[0.1]}; "
            f"of 25%, {widest[0.25]}; of 80%, {widest[0.8]}.",
            quote="For large widths, we are nearly uniformly randomly permuting, so preservation will equal the size "
            "of the subset relative to the dataset size.",
            stand_in=_OWN,
        ),
        claim(
            "Appendix A.14.1, Figure 7",
            f"At width {_SWEPT[0]} subsets much larger than a quarter gain little.",
            gain <= 0.1 if narrow[0.8].lower > narrow[0.25].upper else None,
            f"A quarter preserves {narrow[0.25]}, a subset of 80 % preserves {narrow[0.8]}.",
            quote="subset sizes much larger than a quarter of the dataset gain little in preservation",
            printed="a quarter",
            reason="Much larger is 80 %, and little at most 0.1: this study's marks.",
        ),
    )


def _trend(sentence: str, quote: str, lines: Sequence[Series], *, rising: bool) -> Claim:
    """Return the claim that every line rises (or falls); undecided if the intervals of its end points overlap."""
    holds: bool | None = True
    for line in lines:
        low, high = (line.lower, line.upper) if rising else (line.lower[::-1], line.upper[::-1])
        if any(before > after for before, after in zip(low[:-1], high[1:], strict=True)):
            holds = False
        elif high[0] >= low[-1]:
            holds = holds and None
    ends = "; ".join(f"{line.label}: {line.lower[0]:.3f} to {line.lower[-1]:.3f}" for line in lines)
    ours = f"Lower bounds from left to right: {ends}."
    overlap = "The intervals at the two ends of a line overlap, so they decide nothing."
    reason = overlap if holds is None else "How fast it changes is not tested."
    return claim("Appendix A.14.1, Figure 7", sentence, holds, ours, quote=quote, reason=reason, stand_in=_OWN)


def _chart(key: str, x_label: str, lines: Sequence[Series], *, log: str) -> Chart:
    return chart(
        key,
        f"Preserved share against {x_label}",
        f"The share that is preserved with probability at least {1 - DELTA:g}; 99 % intervals.",
        (x_label, "preserved share (eta)"),
        lines,
        log=log,
    )


_SETTING: Final = {
    "x1 to xn": (0.0, 0.0),
    "y1 to yn": (1.3, 0.0),
    "z": (2.6, 0.0),
    "public t": (1.3, 1.0),
    "analyst": (3.7, 0.0),
}
_ORDER: Final = (4, 5, 2, 3, 1)


@target("meehan2022/figure-2", "The trusted shuffler between data owners and analyst")
def setting(_request: Request) -> Report:
    came = tuple(f"y{person}" for person in _ORDER)
    release = MallowsShuffle.__name__
    lines = (
        LabelRelation("x1 to xn", "y1 to yn", "arrow", "each owner: LDP"),
        LabelRelation("y1 to yn", "z", "arrow", "trusted shuffler"),
        LabelRelation("public t", "z", "arrow", "groups"),
        LabelRelation("z", "analyst", "arrow"),
    )
    return study(
        "The trusted shuffler between data owners and analyst",
        "Who sees what?",
        "The shuffler sees the noisy reports and the public information; the analyst sees their new order only.",
        drawn("setting", "Data owners, shuffler and analyst", "z is a permutation of y.", _SETTING, lines),
        Table(
            key="parts",
            title="Parts",
            caption="The parts of the figure, and what they are in this library.",
            columns=("part", "here"),
            rows=(
                ("data owner's mechanism", "a randomizer"),
                ("trusted shuffler", release),
                ("public t", "columns of [shuffler.groups]"),
                (f"example of section 4.1: the order {' '.join(map(str, _ORDER))}", " ".join(came)),
            ),
        ),
        citations=(ATTACK.at("figure 2"),),
    )


_EDGES: Final = ((1, 2), (1, 7), (7, 8), (2, 5), (2, 6), (6, 3), (3, 4), (4, 9), (9, 10))
"""Our text has no edges: these give the two printed groups."""

_FRIENDS: Final = {
    8: (0, 1), 7: (0, 0), 1: (1, 0), 2: (2, 0), 5: (2, 1), 6: (3, 0), 3: (4, 0), 4: (4, 1), 9: (3, 1.6), 10: (4, 2),
}  # fmt: skip
_GROUPS: Final = {1: [1, 2, 5, 6, 7, 8], 2: [1, 2, 3, 5, 6, 7]}
_PRINTED_ORDERS: Final = ((1, 2, 4, 5, 7, 6, 10, 3, 8, 9), (7, 3, 4, 5, 6, 2, 1, 10, 8, 9))


@target("meehan2022/figure-3", "Groups of friends in a social network")
def friends(_request: Request) -> Report:
    near = order.path_groups(np.array(_EDGES) - 1, n=len(_FRIENDS), radius=2)
    groups = {person: (near[person - 1] + 1).tolist() for person in range(1, len(near) + 1)}  # all differ
    moved = [place for place, (one, other) in enumerate(zip(*_PRINTED_ORDERS, strict=True), start=1) if one != other]
    return study(
        "Groups of friends in a social network",
        "Which people are in the group of a person, and which orders are neighbours?",
        claim(
            "section 4.2, Figure 3",
            "Within two steps the groups of persons 1 and 2 are 1 7 8 2 5 6 and 2 1 7 5 6 3.",
            None if groups.items() >= _GROUPS.items() else False,
            f"A graph of {len(_FRIENDS)} people and {len(_EDGES)} edges has these groups.",
            quote="assuming distance metric path length and",
            reason="Our text has no edges; these are this study's.",
        ),
        claim(
            "section 4.2, Definition 4.2",
            "The two printed orders are neighbours with respect to group 1.",
            set(moved) <= set(_GROUPS[1]),
            f"They differ at places {' '.join(map(str, moved))}.",
            quote="Neighboring permutations differ only in the indices of its corresponding group",
        ),
        drawn(
            "friends",
            "A graph with the printed groups",
            "Marked: the group of person 1.",
            {str(person): place for person, place in _FRIENDS.items()},
            [LabelRelation(str(one), str(other)) for one, other in _EDGES],
            marked=tuple(map(str, _GROUPS[1])),
        ),
        Table(
            key="groups",
            title="Groups",
            caption="People at most two steps away.",
            columns=("person", "group"),
            rows=tuple((person, " ".join(map(str, group))) for person, group in groups.items()),
        ),
        citations=(ATTACK.at("figure 3"),),
    )
