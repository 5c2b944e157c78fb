"""Figures 4 and 8: inference attack and learnability, for shuffles between no shuffle and the uniform shuffle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from hushuffle.attacks.inference import ATTACK
from hushuffle.model import Chart, Claim, Report
from hushuffle.model.report import software
from hushuffle.questions import order
from hushuffle_papers.base import Request, claim, study, target
from hushuffle_papers.meehan2022 import runs
from hushuffle_papers.meehan2022.runs import (
    ALPHA,
    EXACT,
    LOCAL,
    PUBLISHED,
    REPETITIONS,
    TREES,
    UNIFORM,
    Case,
    Score,
    ShuffleStep,
    adult,
    closest_friends,
    next_in_line,
    twitch,
)

BY_SIZE: Final = "next in age"
UNAVAILABLE: Final = (
    "The hospital records of the paper (PUDF) are not here; meehan2022/figure-4-hospitals has its panels (a) and (c) "
    "on generated ones."
)

_LINES: Final = (
    "lines",
    "as published: breadth-first order, theta = alpha / (w(w+1)/2); others: best order, exact sensitivity",
)
_SIZE: Final = "group size r"


@target(
    "meehan2022/figure-4",
    "inference attack and learnability on a friendship graph",
    quick={"people": 800, "sizes": (2, 200), "alphas": (4.0, 1e6), "repetitions": 1, "trees": 4},
    data=("twitch_musae",),
    seconds=150,
)
def twitch_study(
    request: Request,
    *,
    sizes: Sequence[int] = (2, 3, 5, 10, 100, 5000),
    alphas: Sequence[float] = (1e2, 1e3, 1e4, 1e5, 1e6),
    repetitions: int = REPETITIONS,
    trees: int = TREES,
    people: int | None = None,
) -> Report:
    case, close = twitch(request.folder("twitch_musae"), people=people)
    sized: list[ShuffleStep] = []
    for size in sizes:
        groups = closest_friends(close, size)
        published, best = order.reference_order(groups, method="bfs"), order.reference_order(groups)
        sized += runs.both(size, groups, published, best)
    groups = closest_friends(close, 5)
    best = order.reference_order(groups)
    weaker = [runs.step(alpha, groups, best, alpha=alpha, basis="exact", label="groups of 5") for alpha in alphas]
    scores = runs.scored(case, (*sized, *weaker), repetitions, trees, request)
    width = (math.isqrt(8 * sized[1].published + 1) - 1) // 2
    return study(
        "Friends: inference attack and learnability",
        "Do the results of an order-private shuffle move from no shuffle to a uniform one as groups grow?",
        *spans(sized, scores, PUBLISHED, figures=("4b", "4d"), data=_people(case), stand_in=_OWN_GROUPS),
        *spans(sized, scores, EXACT, figures=("4b", "4d"), data=_people(case), stand_in=_OWN_GROUPS, repeats=SPANS),
        alpha_verdict(weaker, scores),
        f"In the best order found, people of one group of up to {sized[1].x:g} stand up to {width:,} ranks of "
        f"{case.n:,} apart: they are not mixed with each other unless nearly everybody is mixed with everybody.",
        UNAVAILABLE,
        runs.table("sizes", "At alpha = 4", case, _SIZE, sized, scores),
        runs.table("alphas", "Groups of up to 5 at larger alpha", case, "alpha", weaker, scores),
        *_charts(case, sized, weaker, scores),
        settings=(
            *runs.settings(case, repetitions=repetitions, seed=request.seed, trees=trees),
            ("groups", "up to r people: oneself and the friends with most friends in common"),
            _LINES,
            ("public data of the learner", "16 spectral coordinates of the graph (the paper: rows of its matrix)"),
        ),
        citations=(ATTACK.at("figure 4"),),
        software=software("scikit-learn"),
    )


@target(
    "meehan2022/figure-8",
    "inference attack and learnability on a census",
    quick={"people": 800, "years": (1, 80), "sizes": (2, 300), "alphas": (4.0, 1e6), "repetitions": 1, "trees": 4},
    data=("adult",),
    seconds=150,
)
def adult_study(
    request: Request,
    *,
    years: Sequence[int] = (0, 1, 5),
    sizes: Sequence[int] = (3, 10, 30, 100, 300, 600),
    alphas: Sequence[float] = (1e2, 3e2, 1e3, 1e4),
    repetitions: int = REPETITIONS,
    trees: int = TREES,
    people: int | None = None,
) -> Report:
    case, age = adult(request.folder("adult"), people=people)
    line = runs.stands(age)
    yearly: list[ShuffleStep] = []
    for radius in years:
        groups = order.radius_groups(age, radius)
        yearly += runs.both(radius, groups, order.reference_order(groups, method="bfs"), line)
    sized = [
        runs.step(size, next_in_line(age, size), line, alpha=ALPHA, basis="exact", label=BY_SIZE) for size in sizes
    ]
    groups = order.radius_groups(age, 1)
    weaker = [runs.step(alpha, groups, line, alpha=alpha, basis="exact", label="within 1 year") for alpha in alphas]
    scores = runs.scored(case, (*yearly, *sized, *weaker), repetitions, trees, request)
    start, end = scores[LOCAL], scores[UNIFORM]
    parts = ", and ".join(
        f"from {before.mean:.3f} to {after.mean:.3f} of the people {label}"
        for label, before, after in zip(case.labels, start.by_value, end.by_value, strict=True)
    )
    return study(
        "Ages: inference attack and learnability",
        "Do the results of an order-private shuffle move from no shuffle to a uniform one as groups grow?",
        *spans(yearly, scores, EXACT, figures=("8a", "8c"), data=_people(case), stand_in=_OWN_RADIUS, repeats=SPANS),
        *spans(sized, scores, BY_SIZE, figures=("8a", "8c"), data=_people(case), stand_in=_OWN_SIZES, repeats=SPANS),
        *_reduces(case, yearly, scores),
        _trade(case, sized, scores),
        claim(
            "section 5.1, Figure 8a",
            "A uniform shuffle leaves fewer people vulnerable than none.",
            end.rho.mean < start.rho.mean,
            f"The share of vulnerable people goes from {start.rho.mean:.3f} to {end.rho.mean:.3f}: {parts}.",
            quote=_SPANNED["rho"],
            reason="After a uniform shuffle the vote is a blind guess of the most frequent value, which is right for "
            "everybody who holds it.",
            data=_people(case),
            stand_in=_OWN_RADIUS,
        ),
        alpha_verdict(weaker, scores),
        runs.table("years", "Groups within r years, alpha = 4", case, "r (years)", yearly, scores),
        runs.table("sizes", "Groups of the r people nearest in age, alpha = 4", case, _SIZE, sized, scores),
        runs.table("alphas", "Groups within 1 year at larger alpha", case, "alpha", weaker, scores),
        runs.attack_chart("years", "Vulnerable people against r (years)", "r (years)", yearly, scores, log=""),
        *_charts(case, sized, weaker, scores),
        settings=(
            *runs.settings(case, repetitions=repetitions, seed=request.seed, trees=trees),
            ("groups", "all people at most r years apart; or the r people nearest in age (on ties, earlier records)"),
            ("privileged", "marital status"),
            _LINES,
        ),
        citations=(ATTACK.at("figure 8"),),
        software=software("scikit-learn"),
    )


def _charts(
    case: Case, sized: Sequence[ShuffleStep], weaker: Sequence[ShuffleStep], scores: Mapping[str, Score]
) -> tuple[Chart, ...]:
    rare = rarest(case)
    title = f"Vulnerable people among those {case.labels[rare]}, the rarer value"
    y_label = "share of them that is vulnerable"
    charts = [
        runs.sweep_chart(
            "attack-rare", title, _SIZE, sized, scores, y_label=y_label, figure=lambda each: each.by_value[rare]
        )
    ]
    for key, steps, x in (("", sized, _SIZE), ("-alpha", weaker, "alpha")):
        charts.append(runs.attack_chart(f"attack{key}", f"Vulnerable people against {x}", x, steps, scores))
        charts.append(runs.learner_chart(f"learnability{key}", f"Error of the learner against {x}", x, steps, scores))
    return tuple(charts)


def rarest(case: Case) -> int:
    return min(range(case.k), key=lambda value: int((case.values == value).sum()))


SPANS: Final = "meehan2022/figure-4"
"""The study whose claims about spans are repeated by the other studies."""

_OWN_GROUPS: Final = (
    "The paper gives neither the attacker's radius nor the rule for groups; this study chose both. By its footnote 4 "
    "the smallest groups need not give the result of no shuffle."
)
_OWN_RADIUS: Final = "The paper does not give the attacker's radius r*. This study uses 1 year of age."
_OWN_SIZES: Final = "The paper's groups are by years of age, and it does not give r*. This study uses 1 year."
_BACK: Final = 0.1
"""A curve counts as rising if it falls nowhere by more than this share of its range."""


def _people(case: Case) -> str:
    return f"{case.name}: {case.n:,} people."


def spans(
    steps: Sequence[ShuffleStep],
    scores: Mapping[str, Score],
    basis: str,
    *,
    figures: tuple[str, str],
    data: str,
    stand_in: str,
    repeats: str = "",
) -> tuple[Claim, ...]:
    """Return claims that the shuffles of the steps cover the range between no shuffle and the uniform shuffle."""
    chosen = [each for each in steps if each.basis == basis]
    first, last = chosen[0], chosen[-1]
    intervals = []
    names = (("rho", "The share of vulnerable people"), ("error", "The learner's error"))
    for (what, name), figure in zip(names, figures, strict=True):
        ways = [runs.way(scores[each.label], scores, what="rho" if what == "rho" else "error") for each in chosen]
        rising = all(after >= before - _BACK for before, after in pairwise(ways))
        spans = (rising and ways[0] <= 0.5 and ways[-1] >= 0.9) if len(ways) > 1 else None
        start, end = (getattr(scores[name_of], what).mean for name_of in (LOCAL, UNIFORM))
        intervals.append(
            claim(
                f"section 5.1, Figure {figure}",
                f"{name} goes from that of no shuffle to that of the uniform one as groups grow ({basis}).",
                spans,
                f"The {'share' if what == 'rho' else what} goes from {getattr(scores[first.label], what)} at r = "
                f"{first.x:g} ({_percent(ways[0])} of the way from no shuffle, {start:.3f}, to the uniform shuffle, "
                f"{end:.3f}) to {getattr(scores[last.label], what)} at r = {last.x:g} ({_percent(ways[-1])})."
                + " The smallest groups already shuffle nearly uniformly."
                * (ways[0] >= 0.9),
                quote=_SPANNED[what],
                data=data,
                stand_in=stand_in,
                repeats=repeats,
            )
        )
    return tuple(intervals)


_SPANNED: Final = {
    "rho": "for our scheme varies from that of LDP … (minimum privacy) to uniform shuffle (maximum privacy) with "
    "increasing … thereby spanning the entire privacy spectrum",
    "error": "varies from that of LDP (maximum learnability) to that of uniform shuffle (minimum learnability) with "
    "increasing",
}


def _reduces(case: Case, steps: Sequence[ShuffleStep], scores: Mapping[str, Score]) -> tuple[Claim, ...]:
    """Return the paper's claims about groups within one year: fewer vulnerable people at no cost to the learner."""
    near = {each.basis: scores[each.label] for each in steps if each.x == 1}
    if not near:
        return ()
    local, within, exact = scores[LOCAL], near[PUBLISHED], near[EXACT]
    factor, other = (local.rho.mean / score.rho.mean for score in (within, exact))
    same = abs(within.error.mean - local.error.mean) <= 2 * max(within.error.deviation, local.error.deviation)
    return (
        claim(
            "section 5.1, Figure 8c",
            "Groups within 1 year reduce the share of vulnerable people by a factor of 1.7, the learner's error as "
            "before.",
            same and factor >= 1.6,  # rounded up, 1.7
            f"The factor is {factor:.2f}{', so the share rises' * (factor < 1)}. The learner's error is {within.error}"
            f"{', but' if not same else ','} {local.error} without a shuffle. With the best order and the exact "
            f"sensitivity the factor is {other:.2f}, the error {exact.error}.",
            quote="for Adult our scheme reduces … by 1.7X … at the same … as that of LDP",
            printed="1.7",
            data=_people(case),
            stand_in=_OWN_RADIUS,
        ),
    )


def _percent(share: float) -> str:
    return f"{round(100 * share) + 0:d} %"


def alpha_verdict(steps: Sequence[ShuffleStep], scores: Mapping[str, Score]) -> str:
    """Return a sentence on how close a larger alpha brings the learner's error to that without a shuffle."""
    ways = ", ".join(
        f"{max(0.0, 1 - runs.way(scores[each.label], scores, what='error')):.0%} at alpha = {each.x:g}"
        for each in steps
    )
    return f"A larger alpha ({steps[0].basis}) moves the learner's error back to that of no shuffle by {ways}."


def _trade(case: Case, steps: Sequence[ShuffleStep], scores: Mapping[str, Score]) -> Claim:
    """Return the effect on the rarest value of the largest groups that cost the learner nothing (5 % of the range)."""
    rare = rarest(case)
    free = [each for each in steps if runs.way(scores[each.label], scores, what="error") <= 0.05]
    sentence = "The attack is weakened at little cost to the learner."
    quote = "can thwart specific inference attacks while retaining some meaningful data learnability"
    weakened = partial(claim, "abstract", sentence, quote=quote, data=_people(case))
    if not free:
        nothing = "No group size leaves the learner's error as it is without a shuffle."
        return weakened(None, nothing, reason=nothing)
    most = free[-1]
    before, after = scores[LOCAL].by_value[rare], scores[most.label].by_value[rare]
    weaker = scores[most.label].rho.mean < scores[LOCAL].rho.mean
    return weakened(
        weaker,
        f"With groups of {most.x:g} next in age the learner's error is {scores[most.label].error} "
        f"({scores[LOCAL].error} without a shuffle), and the share of vulnerable people among those "
        f"{case.labels[rare]} goes from {before} to {after}. Of all people it goes from {scores[LOCAL].rho} to "
        f"{scores[most.label].rho}.",
        reason=""
        if weaker
        else "The attack fails for the rarer value, but succeeds for more people in all: the vote turns to the most "
        "frequent value. Groups are the largest that cost the learner at most 5 % of the range.",
        stand_in=_OWN_SIZES,
    )
