"""Inference attack and learnability between no shuffle and the uniform shuffle (003, figures 4 and 8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from hushuffle.attacks.inference import ATTACK
from hushuffle.model import Chart, Report
from hushuffle.model.report import software
from hushuffle.papers.base import Request, Target
from hushuffle.papers.meehan2022.cases import Case, adult, closest_friends, next_in_line, twitch
from hushuffle.papers.meehan2022.runs import (
    ALPHA,
    LOCAL,
    REPETITIONS,
    TREES,
    UNIFORM,
    Score,
    Step,
    ends,
    run,
    settings,
    stands,
    step,
    sweep_chart,
    table,
    way,
)
from hushuffle.questions import order

PUBLISHED: Final = "as published"
EXACT: Final = "exact"
BY_SIZE: Final = "next in age"
UNAVAILABLE: Final = (
    "The hospital records of the paper (PUDF) are not available, so its panels (a) and (c) are not here."
)

_LINES: Final = (
    "lines",
    "as published: breadth-first order, theta = alpha / (w(w+1)/2); others: best order, exact sensitivity",
)
_FRIENDS: Final = (2, 3, 5, 10, 100, 5000)
_YEARS: Final = (0, 1, 5)
_AGES: Final = (3, 10, 30, 100, 300, 600)
_ALPHAS: Final = (1e2, 1e3, 1e4, 1e5, 1e6)
_YEAR_ALPHAS: Final = (1e2, 3e2, 1e3, 1e4)


def twitch_study(
    request: Request,
    *,
    sizes: Sequence[int] = _FRIENDS,
    alphas: Sequence[float] = _ALPHAS,
    repetitions: int = REPETITIONS,
    trees: int = TREES,
    people: int | None = None,
) -> Report:
    """Return the study of the graph: groups of the closest friends, then any alpha for groups of five."""
    case, close = twitch(request.folder("twitch_musae"), people=people)
    sized = []
    for size in sizes:
        groups = closest_friends(close, size)
        published, best = order.reference_order(groups, method="bfs"), order.reference_order(groups)
        sized.append(step(size, groups, published, alpha=ALPHA, basis="published", label=PUBLISHED))
        sized.append(step(size, groups, best, alpha=ALPHA, basis="exact", label=EXACT))
    groups = closest_friends(close, 5)
    best = order.reference_order(groups)
    weaker = [step(alpha, groups, best, alpha=alpha, basis="exact", label="groups of 5") for alpha in alphas]
    scores = _scores(case, (*sized, *weaker), repetitions, trees, request)
    return Report(
        key="meehan2022/figure-4",
        title="Friends: inference attack and learnability",
        question="Does an order-private shuffle lie between no shuffle and the uniform shuffle, as groups grow?",
        answers=(
            *_verdict(sized, scores, EXACT),
            *_verdict(sized, scores, PUBLISHED),
            _alpha_verdict(weaker, scores),
            _spread(case, sized[1]),
            UNAVAILABLE,
        ),
        settings=(
            *settings(case, repetitions=repetitions, seed=request.seed, trees=trees),
            ("groups", "up to r people: oneself and the friends with most friends in common"),
            _LINES,
            ("public data of the learner", "16 spectral coordinates of the graph (the paper: rows of its matrix)"),
        ),
        tables=(
            table("sizes", "At alpha = 4", case, "group size r", sized, scores),
            table("alphas", "Groups of up to 5 at larger alpha", case, "alpha", weaker, scores),
        ),
        charts=_charts(case, sized, weaker, scores),
        citations=(ATTACK.at("figure 4"),),
        software=software("scikit-learn"),
    )


def adult_study(
    request: Request,
    *,
    years: Sequence[int] = _YEARS,
    sizes: Sequence[int] = _AGES,
    alphas: Sequence[float] = _YEAR_ALPHAS,
    repetitions: int = REPETITIONS,
    trees: int = TREES,
    people: int | None = None,
) -> Report:
    """Return the study of the census: groups by age, groups of the next in age, and any alpha within one year."""
    case, age = adult(request.folder("adult"), people=people)
    line = stands(age)
    yearly = []
    for radius in years:
        groups = order.radius_groups(age, radius)
        published = order.reference_order(groups, method="bfs")
        yearly.append(step(radius, groups, published, alpha=ALPHA, basis="published", label=PUBLISHED))
        yearly.append(step(radius, groups, line, alpha=ALPHA, basis="exact", label=EXACT))
    sized = [step(size, next_in_line(age, size), line, alpha=ALPHA, basis="exact", label=BY_SIZE) for size in sizes]
    groups = order.radius_groups(age, 1)
    weaker = [step(alpha, groups, line, alpha=alpha, basis="exact", label="within 1 year") for alpha in alphas]
    scores = _scores(case, (*yearly, *sized, *weaker), repetitions, trees, request)
    return Report(
        key="meehan2022/figure-8",
        title="Ages: inference attack and learnability",
        question="Does an order-private shuffle lie between no shuffle and the uniform shuffle, as groups grow?",
        answers=(
            _trade(case, sized, scores),
            *_verdict(sized, scores, BY_SIZE),
            *_verdict(yearly, scores, EXACT),
            _direction(case, scores),
            _alpha_verdict(weaker, scores),
        ),
        settings=(
            *settings(case, repetitions=repetitions, seed=request.seed, trees=trees),
            ("groups", "within r years of age; or the r people next in age, of one age in the order of records"),
            ("privileged", "marital status"),
            _LINES,
        ),
        tables=(
            table("years", "Groups within r years, alpha = 4", case, "r (years)", yearly, scores),
            table("sizes", "Groups of the r next in age, alpha = 4", case, "group size r", sized, scores),
            table("alphas", "Groups within 1 year at larger alpha", case, "alpha", weaker, scores),
        ),
        charts=(
            _attack("years", yearly, scores, "r (years)", x_log=False),
            *_charts(case, sized, weaker, scores),
        ),
        citations=(ATTACK.at("figure 8"),),
        software=software("scikit-learn"),
    )


def _scores(case: Case, steps: Sequence[Step], repetitions: int, trees: int, request: Request) -> dict[str, Score]:
    shufflers = {**ends(), **{each.label: each.shuffler for each in steps}}
    return run(case, shufflers, repetitions=repetitions, seed=request.seed, trees=trees, tell=request.tell)


def _charts(
    case: Case, sized: Sequence[Step], weaker: Sequence[Step], scores: Mapping[str, Score]
) -> tuple[Chart, ...]:
    return (
        _rare(case, sized, scores),
        *(
            chart
            for key, steps, x_label in (("", sized, "group size r"), ("-alpha", weaker, "alpha"))
            for chart in (_attack(f"attack{key}", steps, scores, x_label), _learner(key, steps, scores, x_label))
        ),
    )


def _attack(key: str, steps: Sequence[Step], scores: Mapping[str, Score], x_label: str, *, x_log: bool = True) -> Chart:
    title, y_label = f"Vulnerable people against {x_label}", "share of vulnerable people (rho)"
    return sweep_chart(key, title, x_label, steps, scores, y_label=y_label, figure=lambda each: each.rho, x_log=x_log)


def _rare(case: Case, steps: Sequence[Step], scores: Mapping[str, Score]) -> Chart:
    rare = rarest(case)
    title = f"Vulnerable people among those {case.labels[rare]}, the rarer value"
    y_label = "share of them that is vulnerable"
    return sweep_chart(
        "attack-rare", title, "group size r", steps, scores, y_label=y_label, figure=lambda each: each.by_value[rare]
    )


def _learner(key: str, steps: Sequence[Step], scores: Mapping[str, Score], x_label: str) -> Chart:
    title, y_label = f"Error of the learner against {x_label}", "relative error (lambda)"
    name = f"learnability{key}"
    return sweep_chart(name, title, x_label, steps, scores, y_label=y_label, figure=lambda each: each.error)


def rarest(case: Case) -> int:
    """Return the value that the fewest hold."""
    return min(range(case.k), key=lambda value: int((case.values == value).sum()))


def _verdict(steps: Sequence[Step], scores: Mapping[str, Score], basis: str) -> tuple[str, ...]:
    """Say whether the steps span the way between the two ends."""
    chosen = [each for each in steps if each.basis == basis]
    first, last = chosen[0], chosen[-1]
    found = []
    for what, name in (("rho", "The share of vulnerable people"), ("error", "The learner's error")):
        ways = [way(scores[each.label], scores, what="rho" if what == "rho" else "error") for each in (first, last)]
        spans = ways[0] <= 0.5 and ways[1] >= 0.9
        start, end = (getattr(scores[name_of], what).mean for name_of in (LOCAL, UNIFORM))
        found.append(
            f"{'Confirmed' if spans else 'Contradicted'} ({basis}): {name[0].lower()}{name[1:]} goes from "
            f"{getattr(scores[first.label], what)} at r = {first.x:g} ({_percent(ways[0])} of the way from no shuffle, "
            f"{start:.3f}, to the uniform shuffle, {end:.3f}) to {getattr(scores[last.label], what)} at r = {last.x:g} "
            f"({_percent(ways[1])})."
        )
    return tuple(found)


def _percent(share: float) -> str:
    return f"{round(100 * share) + 0:d} %"


def _spread(case: Case, narrowest: Step) -> str:
    """Say why friends cannot be mixed with friends alone."""
    width = (math.isqrt(8 * narrowest.published + 1) - 1) // 2
    return (
        f"In the best order found, people of one group of up to {narrowest.x:g} stand up to {width:,} ranks of "
        f"{case.n:,} apart: they are not mixed with each other unless nearly everybody is mixed with everybody."
    )


def _direction(case: Case, scores: Mapping[str, Score]) -> str:
    """Say which way rho goes, and for whom."""
    start, end = scores[LOCAL], scores[UNIFORM]
    word = "Confirmed" if end.rho.mean < start.rho.mean else "Contradicted"
    parts = ", ".join(
        f"{before.mean:.3f} to {after.mean:.3f} of those {label}"
        for label, before, after in zip(case.labels, start.by_value, end.by_value, strict=True)
    )
    return (
        f"{word}: that a uniform shuffle leaves fewer people vulnerable. Rho goes from {start.rho.mean:.3f} to "
        f"{end.rho.mean:.3f}: {parts}. After a uniform shuffle the vote is a blind guess of the most frequent value, "
        "which is right for everybody who holds it."
    )


def _alpha_verdict(steps: Sequence[Step], scores: Mapping[str, Score]) -> str:
    ways = ", ".join(
        f"{max(0.0, 1 - way(scores[each.label], scores, what='error')):.0%} at alpha = {each.x:g}" for each in steps
    )
    return f"A larger alpha, {steps[0].basis}: the learner's error is back to that of no shuffle by {ways}."


def _trade(case: Case, steps: Sequence[Step], scores: Mapping[str, Score]) -> str:
    """Say what the largest groups that cost the learner nothing (5 % of the way) do for the rarest value."""
    rare = rarest(case)
    free = [each for each in steps if way(scores[each.label], scores, what="error") <= 0.05]
    if not free:
        return "No group size leaves the learner's error as it is without a shuffle."
    most = free[-1]
    before, after = scores[LOCAL].by_value[rare], scores[most.label].by_value[rare]
    return (
        f"{'Confirmed' if after.mean < before.mean else 'Contradicted'}: the attack is weakened at little cost to the "
        f"learner. With groups of {most.x:g} next in age the learner's error is {scores[most.label].error} "
        f"({scores[LOCAL].error} without a shuffle), and the vulnerable among those {case.labels[rare]} go from "
        f"{before} to {after}."
    )


TARGETS: Final = (
    Target(
        name="meehan2022/figure-4",
        title="inference attack and learnability on a friendship graph",
        build=twitch_study,
        data=("twitch_musae",),
        seconds=150,
    ),
    Target(
        name="meehan2022/figure-8",
        title="inference attack and learnability on a census",
        build=adult_study,
        data=("adult",),
        seconds=150,
    ),
)
