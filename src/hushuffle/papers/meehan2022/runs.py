"""Run the attack and the learner on the releases of several shufflers, in several repetitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from hushuffle.attacks.inference import choose_voters, success_rates, vulnerable
from hushuffle.attacks.learnability import learned_shares, local_shares, relative_error, without_noise
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import MallowsShuffle, NoShuffle, Shuffler, UniformShuffle
from hushuffle.model import Chart, Series, Table
from hushuffle.model.groups import Groups
from hushuffle.papers.base import Request
from hushuffle.papers.meehan2022.cases import Case, Floats, Integers
from hushuffle.questions import order
from hushuffle.randomness import reproducible

EPSILON: Final = 2.5
ALPHA: Final = 4.0
VOTES: Final = 25
DRAWS: Final = 50
REPETITIONS: Final = 10
TREES: Final = 50
LOCAL: Final = "no shuffle"
UNIFORM: Final = "uniform shuffle"
PUBLISHED: Final = "as published"
EXACT: Final = "exact"
Basis = Literal["exact", "published"]


@dataclass(frozen=True, kw_only=True)
class Measured:
    each: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.each))

    @property
    def deviation(self) -> float:
        return float(np.std(self.each, ddof=1)) if len(self.each) > 1 else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f}"


@dataclass(frozen=True, kw_only=True)
class Score:
    """`rho` and `by_value` are shares of vulnerable people; `error` and `cleared` (without the noise) are lambda."""

    rho: Measured
    by_value: tuple[Measured, ...]
    error: Measured
    cleared: Measured

    @property
    def cells(self) -> tuple[str, ...]:
        return str(self.rho), *(f"{share.mean:.3f}" for share in self.by_value), str(self.error), str(self.cleared)


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One order-preserving shuffle: its parameter on the axis, the type of sensitivity, and the shuffler."""

    x: float
    basis: str
    exact: int
    published: int
    shuffler: MallowsShuffle

    @property
    def label(self) -> str:
        """A name that is unique among the steps of a sweep."""
        return f"{self.basis} {self.x:g}"


def step(x: float, groups: Groups, reference: Integers, *, alpha: float, basis: Basis, label: str = "") -> Step:
    """Return the Mallows shuffle that guarantees `alpha`: theta = alpha / sensitivity, exact or as published."""
    exact, published = order.kendall_sensitivity(reference, groups), order.published_sensitivity(reference, groups)
    taken = exact if basis == "exact" else published
    shuffler = MallowsShuffle(reference=reference, theta=alpha / taken if taken else np.inf)
    return Step(x=x, basis=label or basis, exact=exact, published=published, shuffler=shuffler)


def both(x: float, groups: Groups, published: Integers, best: Integers) -> list[Step]:
    """Return two shuffles that guarantee `ALPHA`: by the `published` sensitivity, and by the exact one."""
    return [
        step(x, groups, published, alpha=ALPHA, basis="published", label=PUBLISHED),
        step(x, groups, best, alpha=ALPHA, basis="exact", label=EXACT),
    ]


def run(
    case: Case,
    shufflers: Mapping[str, Shuffler],
    *,
    repetitions: int = REPETITIONS,
    seed: int = 1,
    draws: int = DRAWS,
    trees: int = TREES,
    tell: Callable[[str, float], None] = lambda _what, _share: None,
) -> dict[str, Score]:
    """Return each shuffler's results; a repetition applies one permutation to all `draws`, as in the paper."""
    randomizer = RandomizedResponse(k=case.k, epsilon=EPSILON)
    law = randomizer.law()
    truth, lie = float(law.truth), float(law.lie)
    target = local_shares(case.values, case.near, k=case.k)
    scores_by_shuffler: dict[str, list[tuple[float, list[float], float, float]]] = {name: [] for name in shufflers}
    for repetition in range(repetitions):
        rng = reproducible(seed + repetition)
        voters = choose_voters(case.near, case.privileged, size=VOTES, seed=seed + repetition)
        reports = randomizer.randomize(np.repeat(case.values, draws), rng=rng).reshape(case.n, draws)
        for position, (name, shuffler) in enumerate(shufflers.items()):
            tell(f"{case.name}: {name}", (repetition + position / len(shufflers)) / repetitions)
            released = shuffler.release(reports, rng=rng)
            hit = vulnerable(success_rates(released, case.values, voters, k=case.k, seed=seed + repetition))
            shares = learned_shares(case.features, released[:, 0], k=case.k, trees=trees, seed=seed)
            cleared = without_noise(shares, truth=truth, lie=lie)
            by_value = [float(hit[case.values == value].mean()) for value in range(case.k)]
            figures = float(hit.mean()), by_value, relative_error(shares, target), relative_error(cleared, target)
            scores_by_shuffler[name].append(figures)
    return {
        name: Score(
            rho=Measured(each=tuple(row[0] for row in rows)),
            by_value=tuple(Measured(each=each) for each in zip(*(row[1] for row in rows), strict=True)),
            error=Measured(each=tuple(row[2] for row in rows)),
            cleared=Measured(each=tuple(row[3] for row in rows)),
        )
        for name, rows in scores_by_shuffler.items()
    }


def scored(
    case: Case, steps: Sequence[Step], repetitions: int, trees: int, request: Request, *, by: str = "label"
) -> dict[str, Score]:
    """Return the results of no shuffle, of the uniform shuffle, and of each step, whose name is its attribute `by`."""
    shufflers = {**ends(), **{getattr(each, by): each.shuffler for each in steps}}
    return run(case, shufflers, repetitions=repetitions, seed=request.seed, trees=trees, tell=request.tell)


def ends() -> dict[str, Shuffler]:
    return {LOCAL: NoShuffle(), UNIFORM: UniformShuffle()}


def band(label: str, x: Sequence[float], values: Sequence[Measured]) -> Series:
    return Series(
        label=label,
        x=tuple(float(place) for place in x),
        lower=tuple(value.mean - value.deviation for value in values),
        upper=tuple(value.mean + value.deviation for value in values),
    )


def sweep_chart(
    key: str,
    title: str,
    x_label: str,
    steps: Sequence[Step],
    scores: Mapping[str, Score],
    *,
    y_label: str,
    figure: Callable[[Score], Measured],
    x_log: bool = True,
) -> Chart:
    """Return a chart of one field (`figure`) of the scores against the parameter of the steps, a line per basis."""
    xs = sorted({each.x for each in steps})
    lines = [band(end, (xs[0], xs[-1]), [figure(scores[end])] * 2) for end in (LOCAL, UNIFORM)]
    for basis in dict.fromkeys(each.basis for each in steps):
        chosen = [each for each in steps if each.basis == basis]
        values = [figure(scores[each.label]) for each in chosen]
        lines.append(band(f"order-private, {basis}", [each.x for each in chosen], values))
    return Chart(
        key=key,
        title=title,
        caption="Mean and one standard deviation over the repetitions.",
        x_label=x_label,
        y_label=y_label,
        series=tuple(lines),
        x_log=x_log,
    )


def attack_chart(
    key: str, title: str, x_label: str, steps: Sequence[Step], scores: Mapping[str, Score], *, x_log: bool = True
) -> Chart:
    y_label = "share of vulnerable people (rho)"
    return sweep_chart(key, title, x_label, steps, scores, y_label=y_label, figure=lambda each: each.rho, x_log=x_log)


def learner_chart(
    key: str, title: str, x_label: str, steps: Sequence[Step], scores: Mapping[str, Score], *, x_log: bool = True
) -> Chart:
    y_label = "relative error (lambda)"
    return sweep_chart(key, title, x_label, steps, scores, y_label=y_label, figure=lambda each: each.error, x_log=x_log)


def table(key: str, title: str, case: Case, x_label: str, steps: Sequence[Step], scores: Mapping[str, Score]) -> Table:
    rows = swept_rows(steps, lambda name: scores[name].cells)
    rho = [f"rho, {label}" for label in case.labels] if case.k == 2 else []
    columns = ("shuffle", x_label, "sensitivity", "published one", "theta", "rho", *rho, "lambda", "lambda, cleared")
    return Table(
        key=key,
        title=title,
        caption="Mean ± one standard deviation over the repetitions. Cleared: the learner removes the noise.",
        columns=columns,
        rows=tuple(row if case.k == 2 else (*row[:6], *row[-2:]) for row in rows),
    )


def swept_rows(steps: Sequence[Step], cells: Callable[[str], tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return a row for no shuffle, the uniform shuffle and each step; its last `cells` are those of its name."""
    rows = [(end, "", "", "", "", *cells(end)) for end in (LOCAL, UNIFORM)]
    for each in steps:
        sensitivities = f"{each.exact:,}", f"{each.published:,}", f"{each.shuffler.theta:.3g}"
        rows.append((f"order-private, {each.basis}", f"{each.x:g}", *sensitivities, *cells(each.label)))
    return rows


def way(score: Score, ends_of: Mapping[str, Score], *, what: Literal["rho", "error"]) -> float:
    """Return the position of a score between no shuffle (0) and the uniform shuffle (1)."""
    start, end = getattr(ends_of[LOCAL], what).mean, getattr(ends_of[UNIFORM], what).mean
    return float((getattr(score, what).mean - start) / (end - start)) if end != start else 0.0


def settings(case: Case, *, repetitions: int, seed: int, trees: int = TREES) -> tuple[tuple[str, str], ...]:
    return (
        ("people", f"{case.name}: {case.n:,}"),
        ("local epsilon, alpha", f"{EPSILON:g}, {ALPHA:g}"),
        ("votes", f"{VOTES} others within r* = {case.within}; ties drawn"),
        ("draws", f"{DRAWS} of the noise to each permutation; vulnerable: right in at least 90 % of them"),
        ("learner", f"gradient-boosted trees ({trees} rounds), Platt scaling in 3 folds, one release"),
        ("lambda", "mean total variation over that of the uniform guess; truth: shares within r*"),
        ("repetitions, seed", f"{repetitions}, {seed}"),
    )


def stands(values: Floats) -> Integers:
    """Return the order of people by their positions on a line."""
    return np.argsort(values, kind="stable").astype(np.int64)
