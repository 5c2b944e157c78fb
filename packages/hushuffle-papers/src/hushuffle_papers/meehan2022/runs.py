"""People of the order studies; the attack and the learner on their releases by several shufflers, repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.linalg import eigsh

from hushuffle._checks import Floats, Integers
from hushuffle.attacks.inference import (
    choose_voters,
    learned_shares,
    local_shares,
    relative_error,
    success_rates,
    vulnerable,
    without_noise,
)
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import MallowsShuffle, NoShuffle, Shuffler, UniformShuffle
from hushuffle.model import Chart, Series, Table
from hushuffle.model.groups import Groups
from hushuffle.questions import order
from hushuffle.randomness import reproducible
from hushuffle_papers.base import Request, chart
from hushuffle_papers.meehan2022.data import SocialGraph, crescents, load_census, load_graph

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
class RepeatedMeasurement:
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

    rho: RepeatedMeasurement
    by_value: tuple[RepeatedMeasurement, ...]
    error: RepeatedMeasurement
    cleared: RepeatedMeasurement

    @property
    def cells(self) -> tuple[str, ...]:
        return str(self.rho), *(f"{share.mean:.3f}" for share in self.by_value), str(self.error), str(self.cleared)


@dataclass(frozen=True, kw_only=True, eq=False)
class ShuffleStep:
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


def step(x: float, groups: Groups, reference: Integers, *, alpha: float, basis: Basis, label: str = "") -> ShuffleStep:
    """Return the Mallows shuffle that guarantees `alpha`: theta = alpha / sensitivity, exact or as published."""
    exact, published = order.kendall_sensitivity(reference, groups), order.published_sensitivity(reference, groups)
    taken = exact if basis == "exact" else published
    shuffler = MallowsShuffle(reference=reference, theta=alpha / taken if taken else np.inf)
    return ShuffleStep(x=x, basis=label or basis, exact=exact, published=published, shuffler=shuffler)


def both(x: float, groups: Groups, published: Integers, best: Integers) -> list[ShuffleStep]:
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
            rho=RepeatedMeasurement(each=tuple(row[0] for row in rows)),
            by_value=tuple(RepeatedMeasurement(each=each) for each in zip(*(row[1] for row in rows), strict=True)),
            error=RepeatedMeasurement(each=tuple(row[2] for row in rows)),
            cleared=RepeatedMeasurement(each=tuple(row[3] for row in rows)),
        )
        for name, rows in scores_by_shuffler.items()
    }


def scored(
    case: Case, steps: Sequence[ShuffleStep], repetitions: int, trees: int, request: Request, *, by: str = "label"
) -> dict[str, Score]:
    """Return the results of no shuffle, of the uniform shuffle, and of each step, whose name is its attribute `by`."""
    shufflers = {**ends(), **{getattr(each, by): each.shuffler for each in steps}}
    return run(case, shufflers, repetitions=repetitions, seed=request.seed, trees=trees, tell=request.tell)


def ends() -> dict[str, Shuffler]:
    return {LOCAL: NoShuffle(), UNIFORM: UniformShuffle()}


def band(label: str, x: Sequence[float], values: Sequence[RepeatedMeasurement]) -> Series:
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
    steps: Sequence[ShuffleStep],
    scores: Mapping[str, Score],
    *,
    y_label: str,
    figure: Callable[[Score], RepeatedMeasurement],
    log: str = "x",
) -> Chart:
    """Return a chart of one field (`figure`) of the scores against the parameter of the steps, a line per basis."""
    xs = sorted({each.x for each in steps})
    lines = [band(end, (xs[0], xs[-1]), [figure(scores[end])] * 2) for end in (LOCAL, UNIFORM)]
    for basis in dict.fromkeys(each.basis for each in steps):
        chosen = [each for each in steps if each.basis == basis]
        values = [figure(scores[each.label]) for each in chosen]
        lines.append(band(f"order-private, {basis}", [each.x for each in chosen], values))
    caption = "Mean and one standard deviation over the repetitions."
    return chart(key, title, caption, (x_label, y_label), lines, log=log)


attack_chart = partial(sweep_chart, y_label="share of vulnerable people (rho)", figure=lambda each: each.rho)
learner_chart = partial(sweep_chart, y_label="relative error (lambda)", figure=lambda each: each.error)


def table(
    key: str, title: str, case: Case, x_label: str, steps: Sequence[ShuffleStep], scores: Mapping[str, Score]
) -> Table:
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


def swept_rows(steps: Sequence[ShuffleStep], cells: Callable[[str], tuple[str, ...]]) -> list[tuple[str, ...]]:
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


_AXES: Final = 16  # coordinates of a graph that the learner uses
_ROWS: Final = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """People with one private value each; `near` has radius r*, and only the attacker knows `privileged`."""

    name: str
    values: Integers
    labels: tuple[str, ...]
    near: Groups
    within: str
    features: Floats
    privileged: Floats | None = None

    @property
    def n(self) -> int:
        return self.values.size

    @property
    def k(self) -> int:
        return len(self.labels)


def adult(folder: Path, *, people: int | None = None) -> tuple[Case, Floats]:
    frame = load_census(folder)
    frame = frame.filter(frame["split"] == "train").head(people or frame.height)
    age = frame["age"].to_numpy().astype(np.float64)
    _, status = np.unique(frame["marital_status"].to_numpy(), return_inverse=True)
    case = Case(
        name="Adult",
        values=(frame["income"] == ">50K").to_numpy().astype(np.int64),
        labels=("up to 50K", "above 50K"),
        near=order.radius_groups(age, 1),
        within="1 year of age",
        features=age[:, np.newaxis],
        privileged=np.eye(int(status.max()) + 1)[status],
    )
    return case, age


def next_in_line(line: Floats, size: int) -> Groups:
    """Return for each person the group of the `size` nearest people on a line; on ties, earlier records come first.

    >>> next_in_line(np.array([30.0, 20.0, 30.0, 40.0]), 3)[3].tolist()
    [0, 2, 3]
    """
    n = line.size
    standing = np.argsort(line, kind="stable")
    width = min(size, n)
    first = np.clip(np.arange(n) - (width - 1) // 2, 0, n - width)
    group_of = np.empty(n, dtype=np.int64)
    group_of[standing] = np.arange(n)
    members = standing[first[:, np.newaxis] + np.arange(width)]
    return Groups(offsets=np.arange(n + 1) * width, members=members.reshape(-1), n=n, group_of=group_of)


def twitch(folder: Path, *, people: int | None = None) -> tuple[Case, csr_array]:
    """Return the people of the German graph (or the first `people`), and the closeness of each pair of friends."""
    graph = load_graph(folder, language="DE")
    if people is not None:
        edges = graph.edges[(graph.edges < people).all(axis=1)]
        graph = SocialGraph(name=graph.name, edges=edges, mature=graph.mature[:people])
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    table = coo_array((np.ones(ends.shape[1], dtype=np.float32), tuple(ends)), shape=(graph.n, graph.n)).tocsr()
    case = Case(
        name="Twitch DE",
        values=graph.mature.astype(np.int64),
        labels=("not explicit", "explicit"),
        near=order.path_groups(graph.edges, n=graph.n, radius=1),
        within="1 step: friends",
        features=_places(table, min(_AXES, graph.n - 2)),
    )
    return case, closeness(table)


def closeness(table: csr_array) -> csr_array:
    """Return a matrix, shape (n, n): for each pair of friends, 1 + the number of their common friends."""
    rows = []
    for start in range(0, table.shape[0], _ROWS):
        block = table[start : start + _ROWS]
        rows.append((block @ table).multiply(block) + block)
    return csr_array(vstack(rows, format="csr"))


def closest_friends(close: csr_array, size: int) -> Groups:
    """Return each person's group: the person, and up to `size` - 1 friends with the most common friends.

    >>> table = csr_array(np.array([[0, 2, 1], [2, 0, 0], [1, 0, 0]]))
    >>> [group.tolist() for group in map(closest_friends(table, 2).__getitem__, range(3))]
    [[0, 1], [0, 1], [0, 2]]
    """
    n = close.shape[0]
    rows = np.repeat(np.arange(n), np.diff(close.indptr))
    ranked = np.lexsort((close.indices, -close.data, rows))
    place = np.arange(rows.size) - close.indptr[rows]
    nearest = ranked[place < size - 1]
    owners = np.concatenate([np.arange(n), rows[nearest]])
    members = np.concatenate([np.arange(n), close.indices[nearest]])
    by_owner = np.argsort(owners, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))])
    return Groups(offsets=offsets, members=members[by_owner].astype(np.int64), n=n, group_of=np.arange(n))


def syn(people: int, *, seed: int) -> tuple[Case, Floats, tuple[Floats, Integers]]:
    """Return generated people and their places, and places and labels of equally many people for testing."""
    trained, tested = crescents(people, seed=seed), crescents(people, seed=seed + 1)
    case = Case(
        name="Syn",
        values=trained.labels,
        labels=tuple(str(label) for label in range(8)),
        near=order.radius_groups(trained.points, 0.1),
        within="0.1 in the plane",
        features=trained.points,
    )
    return case, trained.points, (tested.points, tested.labels)


def _places(table: csr_array, axes: int) -> Floats:
    """Return coordinates of a graph, shape (n, axes): leading eigenvectors of the normalised adjacency, by degree."""
    n = table.shape[0]
    scale = 1 / np.sqrt(np.maximum(np.asarray(table.sum(axis=1)).reshape(-1), 1))
    links = table.tocoo()
    normal = coo_array((scale[links.row] * scale[links.col], (links.row, links.col)), shape=(n, n)).tocsr()
    _, vectors = eigsh(normal.astype(np.float64), k=axes, v0=np.ones(n), which="LA")
    return np.asarray(vectors * scale[:, np.newaxis], dtype=np.float64)
