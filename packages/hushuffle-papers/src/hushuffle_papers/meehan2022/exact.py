"""How much the exact sensitivity improves accuracy at equal alpha, and the effect of group sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from hushuffle._checks import Floats, Integers
from hushuffle.attacks.inference import ATTACK, accuracy
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.model import Chart, Claim, Report, Table
from hushuffle.model.groups import Groups
from hushuffle.model.report import software
from hushuffle.questions import order
from hushuffle.randomness import reproducible
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.meehan2022 import runs
from hushuffle_papers.meehan2022.attack import UNAVAILABLE
from hushuffle_papers.meehan2022.data import coarse
from hushuffle_papers.meehan2022.runs import (
    ALPHA,
    EPSILON,
    LOCAL,
    REPETITIONS,
    TREES,
    UNIFORM,
    Case,
    RepeatedMeasurement,
    Score,
    ShuffleStep,
    adult,
    closest_friends,
    next_in_line,
    syn,
    twitch,
)

Grouping = tuple[str, Groups, Mapping[str, Integers]]

_PAPER: Final = "breadth first"
_BEST: Final = "best"


@target(
    "meehan2022/figure-4-exact",
    "results with the exact sensitivity and with the published bound, for every data set",
    quick={"people": 800, "repetitions": 1, "trees": 4},
    data=("adult", "twitch_musae"),
    seconds=150,
)
def exact_study(request: Request, *, repetitions: int = 3, trees: int = TREES, people: int | None = None) -> Report:
    blocks = [
        (case, [_pair(grouping, name) for grouping in groupings for name in grouping[2]])
        for case, groupings in (_ages(request, people), _graph(request, people), _plane(request, people))
    ]
    rows: list[tuple[str | float, ...]] = []
    answers = []
    for case, pairs in blocks:
        steps = [each for pair in pairs for each in pair]
        scores = runs.scored(case, steps, repetitions, trees, request, by="basis")
        rows += [
            (case.name, end, "", "", "", "", str(scores[end].rho), "", str(scores[end].error), "")
            for end in (LOCAL, UNIFORM)
        ]
        for exact, published in pairs:
            what, name, _ = exact.basis.split("|")
            sensitivities = f"{exact.exact:,}", f"{exact.published:,}", f"{_ratio(exact):.3g}"
            ours, theirs = scores[exact.basis], scores[published.basis]
            figures = str(ours.rho), str(theirs.rho), str(ours.error), str(theirs.error)
            rows.append((case.name, what, name, *sensitivities, *figures))
        answers.append(_answer(case, pairs, scores))
    case, results = blocks[0][0], ("rho, exact", "rho, published", "lambda, exact", "lambda, published")
    return study(
        "Exact sensitivity against the published bound",
        "How much does the exact sensitivity improve privacy and learning at equal alpha?",
        *answers,
        UNAVAILABLE,
        Table(
            key="exact",
            title=f"At alpha = {ALPHA:g}: exact against published sensitivity",
            caption="Both have the same groups, order and alpha. Mean ± one standard deviation.",
            columns=("data", "groups", "order", "exact", "published", "theta ratio", *results),
            rows=tuple(rows),
        ),
        settings=(
            *runs.settings(case, repetitions=repetitions, seed=request.seed, trees=trees)[1:],
            ("r*", ", ".join(f"{case.name}: {case.within}" for case, _ in blocks)),
        ),
        citations=(ATTACK,),
        software=software("scikit-learn"),
    )


def _pair(grouping: Grouping, name: str) -> tuple[ShuffleStep, ShuffleStep]:
    what, groups, orders = grouping
    label = f"{what}|{name}"
    exact = runs.step(0, groups, orders[name], alpha=ALPHA, basis="exact", label=f"{label}|exact")
    return exact, runs.step(0, groups, orders[name], alpha=ALPHA, basis="published", label=f"{label}|published")


def _orders(groups: Groups, best: Integers) -> dict[str, Integers]:
    return {_PAPER: order.reference_order(groups, method="bfs"), _BEST: best}


def _ages(request: Request, people: int | None) -> tuple[Case, list[Grouping]]:
    case, age = adult(request.folder("adult"), people=people)
    line = runs.stands(age)
    year, hundred = order.radius_groups(age, 1), next_in_line(age, 100)
    return case, [("within 1 year", year, _orders(year, line)), ("100 next in age", hundred, _orders(hundred, line))]


def _graph(request: Request, people: int | None) -> tuple[Case, list[Grouping]]:
    case, close = twitch(request.folder("twitch_musae"), people=people)
    groupings: list[Grouping] = []
    for size in (2, 10):
        groups = closest_friends(close, size)
        groupings.append((f"up to {size} friends", groups, _orders(groups, order.reference_order(groups))))
    return case, groupings


def _plane(request: Request, people: int | None) -> tuple[Case, list[Grouping]]:
    case, places, _ = syn(people or 20_000, seed=request.seed)
    groupings: list[Grouping] = []
    for radius in (0.02, 0.04):
        groups = order.radius_groups(places, radius)
        groupings.append((f"within {radius:g}", groups, _orders(groups, order.reference_order(groups, places))))
    return case, groupings


def _ratio(each: ShuffleStep) -> float:
    return each.published / each.exact if each.exact else 1.0


def _answer(case: Case, pairs: Sequence[tuple[ShuffleStep, ShuffleStep]], scores: Mapping[str, Score]) -> str:
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


WAYS: Final = (8, 4, 2)
OWN_PUBLISHED: Final = "order of each radius, w(w+1)/2"
OWN_EXACT: Final = "order of each radius, exact"
COMMON: Final = "one order for all radii, exact"

_GOOD: Final = 0.8
_SLACK: Final = 0.02
"""Accuracies count as equal if they differ by at most this."""

Accuracies = dict[str, dict[int, RepeatedMeasurement]]


@target(
    "meehan2022/figure-5",
    "classes at three granularities",
    seconds=150,
    quick={"people": 1500, "radii": (0.02, 0.08), "repetitions": 1, "trees": 4},
)
def syn_study(
    request: Request,
    *,
    people: int = 20_000,
    radii: Sequence[float] = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08),
    repetitions: int = REPETITIONS,
    wide: float = 0.12,
    trees: int = 15,
) -> Report:
    """Return the study of generated people: `people` for training and as many for testing."""
    case, places, test = syn(people, seed=request.seed)
    request.tell("reference orders", 0.0)
    common = order.reference_order(order.radius_groups(places, wide), places)
    steps = []
    for radius in radii:
        groups = order.radius_groups(places, radius)
        own = order.reference_order(groups, places, method="bfs")
        steps.append(runs.step(radius, groups, own, alpha=ALPHA, basis="published", label=OWN_PUBLISHED))
        steps.append(runs.step(radius, groups, own, alpha=ALPHA, basis="exact", label=OWN_EXACT))
        steps.append(runs.step(radius, groups, common, alpha=ALPHA, basis="exact", label=COMMON))
    shufflers = {**runs.ends(), **{each.label: each.shuffler for each in steps}}
    accuracies = _accuracies(case, places, test, shufflers, repetitions, trees, request)
    data = f"Generated: {people:,} people to train on, {people:,} to test on."
    return study(
        "Granularity: which classes can be distinguished",
        "Does the radius of the groups determine how finely people can be classified?",
        _ends(accuracies, data),
        *(_granularity(steps, accuracies, basis, data) for basis in (OWN_PUBLISHED, OWN_EXACT, COMMON)),
        _table(steps, accuracies),
        *(_chart(basis, steps, accuracies) for basis in (COMMON, OWN_EXACT, OWN_PUBLISHED)),
        settings=(
            ("people", f"{people:,} to train on, {people:,} to test on"),
            ("local epsilon, alpha", f"{EPSILON:g}, {ALPHA:g}"),
            ("learner", f"gradient-boosted trees, {trees} rounds, one model for each granularity"),
            ("one order for all radii", f"the best order of the groups within {wide:g}"),
            ("order of each radius", "breadth first"),
            ("repetitions, seed", f"{repetitions}, {request.seed}"),
        ),
        citations=(ATTACK.at("figure 5"),),
        software=software("scikit-learn"),
    )


def _accuracies(
    case: Case,
    places: Floats,
    test: tuple[Floats, Integers],
    shufflers: Mapping[str, Shuffler],
    repetitions: int,
    trees: int,
    request: Request,
) -> Accuracies:
    randomizer = RandomizedResponse(k=case.k, epsilon=EPSILON)
    each: dict[str, dict[int, list[float]]] = {name: {ways: [] for ways in WAYS} for name in shufflers}
    for repetition in range(repetitions):
        rng = reproducible(request.seed + repetition)
        reports = randomizer.randomize(case.values, rng=rng)
        for position, (name, shuffler) in enumerate(shufflers.items()):
            request.tell(name, (repetition + position / len(shufflers)) / repetitions)
            released = shuffler.release(reports, rng=rng)
            for ways in WAYS:
                labels, truth = coarse(released, ways), coarse(test[1], ways)
                each[name][ways].append(accuracy(places, labels, at=test[0], truth=truth, trees=trees))
    return {
        name: {ways: RepeatedMeasurement(each=tuple(values)) for ways, values in by_ways.items()}
        for name, by_ways in each.items()
    }


_STAND_IN: Final = "The paper shows a picture of its data, not their distribution: this study generated its own."


def _ends(accuracies: Accuracies, data: str) -> Claim:
    local, uniform = accuracies[LOCAL], accuracies[UNIFORM]
    right = local[8].mean >= _GOOD and all(uniform[ways].mean <= 1 / ways + 0.1 for ways in WAYS)
    return claim(
        "section 5.1, Figure 5",
        "Without a shuffle all 8 classes can be distinguished, after a uniform shuffle none.",
        right,
        f"Without a shuffle the accuracy for 8 classes is {local[8]}. After a uniform shuffle it is {uniform[8]} for 8 "
        f"classes, {uniform[4]} for 4 classes and {uniform[2]} for 2 classes.",
        quote="LDP allows 8-way classification while uniform shuffling allows none.",
        data=data,
        stand_in=_STAND_IN,
    )


def _granularity(steps: Sequence[ShuffleStep], accuracies: Accuracies, basis: str, data: str) -> Claim:
    """Return the claim that the radius sets the granularity; it fails if accuracy rises with the radius."""
    chosen = [each for each in steps if each.basis == basis]
    lines = {ways: [accuracies[each.label][ways].mean for each in chosen] for ways in WAYS}
    rising = any(after > before + _SLACK for line in lines.values() for before, after in pairwise(line))
    levels = [level for finer, ways in pairwise(WAYS) for level in zip(lines[finer], lines[ways], strict=True)]
    crossed = any(fine > coarser + _SLACK for fine, coarser in levels)
    tested = partial(
        claim,
        "section 5.1, Figure 5",
        f"The radius sets the granularity: r8 < r4 < r2 ({basis}).",
        quote="The granularity of classification can be tuned by our scheme",
        data=data,
        repeats="" if basis == OWN_PUBLISHED else "meehan2022/figure-5",
    )
    if rising or crossed:
        accuracy_of = {ways: ", ".join(f"{value:.3f}" for value in lines[ways]) for ways in WAYS}
        figures = ", ".join(f"{'and ' * (ways == 2)}{accuracy_of[ways]} for {ways} classes" for ways in WAYS)
        radii = ", ".join(f"{each.x:g}" for each in chosen)
        ours = f"The accuracy at r = {radii} is {figures}."
        why = "Accuracy does not fall with the radius" if rising else "Coarse classes are distinguished worse than fine"
        return tested(None, ours, reason=f"{why}: no largest radius can be read off.")
    reach = {
        ways: max((each.x for each in chosen if accuracies[each.label][ways].mean >= _GOOD), default=0.0)
        for ways in WAYS
    }
    return tested(
        reach[8] < reach[4] < reach[2],
        f"The largest radii at which the accuracy is at least {_GOOD:.0%} are r8 = {reach[8]:g}, r4 = {reach[4]:g} and "
        f"r2 = {reach[2]:g}, for 8, 4 and 2 classes.",
        stand_in=_STAND_IN,
    )


def _chart(basis: str, steps: Sequence[ShuffleStep], accuracies: Accuracies) -> Chart:
    chosen = [each for each in steps if each.basis == basis]
    xs = [each.x for each in chosen]
    lines = [runs.band(f"{ways} classes", xs, [accuracies[each.label][ways] for each in chosen]) for ways in WAYS]
    between = "; ".join(f"{end}: {', '.join(str(accuracies[end][ways]) for ways in WAYS)}" for end in (LOCAL, UNIFORM))
    return chart(
        f"accuracy-{(COMMON, OWN_EXACT, OWN_PUBLISHED).index(basis) + 1}",
        f"Accuracy against the radius: {basis}",
        f"Mean and one standard deviation over the repetitions. {between[0].upper()}{between[1:]}.",
        ("r", "accuracy on new people"),
        lines,
        log="x",
    )


def _table(steps: Sequence[ShuffleStep], accuracies: Accuracies) -> Table:
    rows = runs.swept_rows(steps, lambda name: tuple(str(accuracies[name][ways]) for ways in WAYS))
    return Table(
        key="accuracies",
        title="Accuracy on new people",
        caption=f"Mean ± one standard deviation; guessing: {', '.join(f'{1 / ways:.3g}' for ways in WAYS)}.",
        columns=("shuffle", "r", "sensitivity", "published one", "theta", *(f"{ways} classes" for ways in WAYS)),
        rows=tuple(rows),
    )
