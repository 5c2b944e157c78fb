"""What the exact sensitivity buys at equal alpha, on every data set (003, beside figures 4, 5 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hushuffle.attacks.inference import ATTACK
from hushuffle.model import Report, Table
from hushuffle.model.groups import Groups
from hushuffle.model.report import software
from hushuffle.papers.base import Request, Target
from hushuffle.papers.meehan2022.attack import UNAVAILABLE
from hushuffle.papers.meehan2022.cases import Case, Integers, adult, closest_friends, next_in_line, syn, twitch
from hushuffle.papers.meehan2022.runs import (
    ALPHA,
    LOCAL,
    TREES,
    UNIFORM,
    Score,
    Step,
    ends,
    run,
    settings,
    stands,
    step,
)
from hushuffle.questions import order

Grouping = tuple[str, Groups, Mapping[str, Integers]]

_REPETITIONS: Final = 3
_PAPER: Final = "breadth first"
_BEST: Final = "best"


def exact_study(
    request: Request, *, repetitions: int = _REPETITIONS, trees: int = TREES, people: int | None = None
) -> Report:
    """Return the comparison on the census, the friendship graph and generated people."""
    blocks = [
        (case, [_pair(grouping, name) for grouping in groupings for name in grouping[2]])
        for case, groupings in (_ages(request, people), _graph(request, people), _plane(request, people))
    ]
    rows: list[tuple[str | float, ...]] = []
    answers = []
    for case, pairs in blocks:
        steps = [each for pair in pairs for each in pair]
        shufflers = {**ends(), **{each.basis: each.shuffler for each in steps}}
        scores = run(case, shufflers, repetitions=repetitions, seed=request.seed, trees=trees, tell=request.tell)
        rows += [_end(case, end, scores[end]) for end in (LOCAL, UNIFORM)]
        rows += [_row(case, exact, published, scores) for exact, published in pairs]
        answers.append(_answer(case, pairs, scores))
    case = blocks[0][0]
    return Report(
        key="meehan2022/figure-4-exact",
        title="Exact sensitivity against the published bound",
        question="By how much does the exact sensitivity improve the trade-off at equal alpha?",
        answers=(*answers, UNAVAILABLE),
        settings=(
            *settings(case, repetitions=repetitions, seed=request.seed, trees=trees)[1:],
            ("r*", ", ".join(f"{case.name}: {case.within}" for case, _ in blocks)),
        ),
        tables=(
            Table(
                key="exact",
                title=f"At alpha = {ALPHA:g}: exact against published sensitivity",
                caption="Same groups, same order, same promise. Mean ± one standard deviation.",
                columns=(
                    "data",
                    "groups",
                    "order",
                    "exact",
                    "published",
                    "theta ratio",
                    "rho, exact",
                    "rho, published",
                    "lambda, exact",
                    "lambda, published",
                ),
                rows=tuple(rows),
            ),
        ),
        citations=(ATTACK,),
        software=software("scikit-learn"),
    )


def _pair(grouping: Grouping, name: str) -> tuple[Step, Step]:
    what, groups, orders = grouping
    label = f"{what}|{name}"
    exact = step(0, groups, orders[name], alpha=ALPHA, basis="exact", label=f"{label}|exact")
    return exact, step(0, groups, orders[name], alpha=ALPHA, basis="published", label=f"{label}|published")


def _orders(groups: Groups, best: Integers) -> dict[str, Integers]:
    return {_PAPER: order.reference_order(groups, method="bfs"), _BEST: best}


def _ages(request: Request, people: int | None) -> tuple[Case, list[Grouping]]:
    case, age = adult(request.folder("adult"), people=people)
    line = stands(age)
    year, hundred = order.radius_groups(age, 1), next_in_line(age, 100)
    return case, [
        ("within 1 year", year, _orders(year, line)),
        ("100 next in age", hundred, _orders(hundred, line)),
    ]


def _graph(request: Request, people: int | None) -> tuple[Case, list[Grouping]]:
    case, close = twitch(request.folder("twitch_musae"), people=people)
    found: list[Grouping] = []
    for size in (2, 10):
        groups = closest_friends(close, size)
        found.append((f"up to {size} friends", groups, _orders(groups, order.reference_order(groups))))
    return case, found


def _plane(request: Request, people: int | None) -> tuple[Case, list[Grouping]]:
    case, places, _ = syn(people or 20_000, seed=request.seed)
    found: list[Grouping] = []
    for radius in (0.02, 0.04):
        groups = order.radius_groups(places, radius)
        found.append((f"within {radius:g}", groups, _orders(groups, order.reference_order(groups, places))))
    return case, found


def _row(case: Case, exact: Step, published: Step, scores: Mapping[str, Score]) -> tuple[str | float, ...]:
    what, name, _ = exact.basis.split("|")
    ours, theirs = scores[exact.basis], scores[published.basis]
    return (
        case.name,
        what,
        name,
        f"{exact.exact:,}",
        f"{exact.published:,}",
        f"{_ratio(exact):.3g}",
        str(ours.rho),
        str(theirs.rho),
        str(ours.error),
        str(theirs.error),
    )


def _ratio(each: Step) -> float:
    return each.published / each.exact if each.exact else 1.0


def _end(case: Case, end: str, score: Score) -> tuple[str | float, ...]:
    return (case.name, end, "", "", "", "", str(score.rho), "", str(score.error), "")


def _answer(case: Case, pairs: Sequence[tuple[Step, Step]], scores: Mapping[str, Score]) -> str:
    """Say what the exact sensitivity buys at most on one data set."""
    largest = max(pairs, key=lambda pair: _ratio(pair[0]))
    gains = [scores[theirs.basis].error.mean - scores[ours.basis].error.mean for ours, theirs in pairs]
    position = max(range(len(pairs)), key=gains.__getitem__)
    ours, theirs = (scores[each.basis] for each in pairs[position])
    grown = f"theta grows {min(_ratio(pair[0]) for pair in pairs):.3g} to {_ratio(largest[0]):.3g} times"
    if gains[position] <= 2 * max(ours.error.deviation, theirs.error.deviation):
        return (
            f"{case.name}: {grown} at the same alpha, with no effect on lambda that shows: the groups fill their "
            "windows, or both shuffles are nearly uniform."
        )
    what, name, _ = pairs[position][0].basis.split("|")
    return (
        f"{case.name}: {grown} at the same alpha. The largest gain is for groups {what}, order {name}: "
        f"lambda {ours.error} for {theirs.error}, rho {ours.rho} for {theirs.rho}."
    )


TARGETS: Final = (
    Target(
        name="meehan2022/figure-4-exact",
        title="exact sensitivity against the published bound, every data set",
        build=exact_study,
        data=("adult", "twitch_musae"),
        seconds=150,
    ),
)
