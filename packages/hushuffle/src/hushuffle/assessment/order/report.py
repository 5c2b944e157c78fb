"""The chapter on the order of a Mallows shuffle: findings, tables, charts, maps and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from hushuffle.assessment import findings
from hushuffle.assessment.chapters import Draft
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.order import findings as order_findings
from hushuffle.assessment.order.measures import Scene, measured
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import NoShuffle, UniformShuffle
from hushuffle.model import Chart, Finding, Groups, Panel, PointMap, Series, Warned, number
from hushuffle.model.bound import percent
from hushuffle.questions.order.displacement import Displacement
from hushuffle.randomness import Randomness
from hushuffle.specification import Adversaries, build_adversaries
from hushuffle.specification import order as asked
from hushuffle.specification.exposure import Column
from hushuffle.specification.order_setup import Arrangement, Source, coins

Size = TypeVar("Size", int, float)

LARGE_ALPHA: Final = 5.0
_ALPHAS: Final = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 50.0)
_RADII: Final = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
_MOST_MEMBERSHIPS: Final = 4_000_000
_MANY: Final = 100_000
MOST_SHOWN: Final = 10_000
"""The largest number of people on a map. If there are more, the map shows an evenly spaced selection."""
_NEARLY: Final = 0.9


class Order:
    """The noisy order in which a Mallows shuffle releases the reports of a column; it computes the shuffle once."""

    def __init__(self, column: Column, arrangement: Arrangement) -> None:
        self._column, self._arrangement = column, arrangement
        self.protocol: Final = column.behind(arrangement.shuffler)

    def write(self, draft: Draft) -> None:
        """Write what the reports reveal, and what their order reveals in addition."""
        arrangement, specification = self._arrangement, self._column.specification
        run, adversaries = specification.run, build_adversaries(specification)
        draft.findings += _learned(draft.questions, self.protocol, adversaries, self._column.delta)
        moved = arrangement.displacement(confidence=run.confidence, rng=coins(run.seed))
        draft.warnings += _concerns(arrangement, moved, shown=run.show_people)
        if adversaries.order is not None:
            local, household = self.protocol.randomizer.local_epsilon, adversaries.order.household
            draft.findings += order_findings.reader(arrangement, local_epsilon=local, household=household, moved=moved)

    def show(self, draft: Draft) -> None:
        """Write what is measured on the data, and the pictures."""
        arrangement, specification = self._arrangement, self._column.specification
        run, adversaries = specification.run, build_adversaries(specification)
        if run.show_people:
            people = self._column.people
            assert people.values is not None
            labels, rng = people.population.labels, coins(run.seed)
            draft.maps.append(people_map(self.protocol, arrangement, values=people.values, labels=labels, rng=rng))
        if adversaries.order is None:
            return
        preserved = draft.questions.ask(
            "order-preservation",
            "The table of what stays together",
            lambda: order_findings.groups_table(arrangement, confidence=run.confidence, rng=coins(run.seed)),
        )
        draft.tables += [] if preserved is None else [preserved]
        draft.done(0.4)
        if adversaries.order.attack is not None:
            self._attack(draft, adversaries.order.attack)
        assert isinstance(specification.shuffler, asked.MallowsShuffle)
        draft.charts += order_charts(arrangement, asked_for=specification.shuffler.groups, rng=coins(run.seed))

    def _attack(self, draft: Draft, wanted: asked.OrderAttack) -> None:
        """Write the results of the attack that the specification names."""
        from hushuffle.tables.published import load_attributes  # noqa: PLC0415 - Polars is for those who have files

        column, arrangement = self._column, self._arrangement
        people, run = column.people, column.specification.run
        assert people.values is not None
        source = Source.of(column.specification, people, column.folder)
        scene = Scene(
            values=people.values,
            labels=people.population.labels,
            near=arrangement.groups if wanted.radius is None else arrangement.within(wanted.radius),
            known=None if wanted.column is None else load_attributes(source.data, wanted.column, **source.where),
            places=arrangement.features,
        )
        done = lambda share: draft.done(0.4 + 0.6 * share)  # noqa: E731
        result = measured(self.protocol, scene, confidence=run.confidence, rng=coins(run.seed), done=done)
        draft.findings += result.findings
        draft.tables += result.tables
        draft.warnings += result.warnings


def _learned(questions: Questions, protocol: Protocol, adversaries: Adversaries, delta: float) -> Iterator[Finding]:
    """What the reports reveal, including the places of reports where they matter."""
    rows = [
        questions.ask(
            "central-dp", findings.RELEASE, lambda: order_findings.central(findings.central(protocol, delta=delta))
        ),
        findings.local(protocol),
    ]
    for adversary in adversaries.guessers:
        row = partial(order_findings.guesser, protocol, adversary)
        rows.append(questions.ask("vulnerability", adversary.phrase, row))
    if adversaries.linker:
        for question, figure in (
            ("re-identification", order_findings.identified),
            ("identity-information", order_findings.identity_information),
        ):
            rows.append(questions.ask(question, findings.LINKER, partial(figure, protocol)))
    yield from (row for row in rows if row is not None)


def _concerns(arrangement: Arrangement, moved: Displacement, *, shown: bool) -> Iterator[Warned]:
    groups, n = arrangement.groups, arrangement.n
    assert groups.group_of is not None  # every group is made from the public data of a person
    alone = int(np.count_nonzero(groups.sizes[groups.group_of] == 1))
    alpha = arrangement.alpha.upper
    if alpha > LARGE_ALPHA:
        yield Warned(
            key="large-alpha",
            sentence=f"Alpha is {number(alpha, up=True)}, above {LARGE_ALPHA:g}: the order may reveal senders.",
            advice="Use a smaller alpha in [shuffler], or smaller groups, which preserve more of the order.",
        )
    if alone:
        yield Warned(
            key="alone-in-a-group",
            sentence=(
                f"{alone:,} of {n:,} people ({percent(alone / n)}) are alone in their group: alpha does not protect "
                "them."
            ),
            advice="Use a larger radius or coarser labels, so that each group has at least two people.",
        )
    if moved.mean.lower > _NEARLY * order_findings.uniform_mean(n):
        yield Warned(
            key="nearly-uniform",
            sentence="Reports move almost as far as in a uniform shuffle: the order helps to learn little.",
            advice='Use smaller groups or a larger alpha. Or use kind = "uniform", which hides more at little loss.',
        )
    yield Warned(
        key="public-columns",
        sentence=f"The order of release reveals columns that count as public: {', '.join(arrangement.names)}.",
        advice="If one is not public, use another order: no figure of this report covers what the order reveals.",
    )
    if shown:
        yield Warned(
            key="people-shown",
            sentence="The map shows every person's true value at that person's place.",
            advice="Show this report only to the data holder. Omit run.show_people for any other report.",
        )


def order_charts(arrangement: Arrangement, *, asked_for: asked.Groups, rng: Randomness) -> tuple[Chart, ...]:
    """Displacement against alpha and, for groups of near people, alpha against the radius."""
    charts = [_displacement(arrangement, rng)]
    if radius := asked_for.radius:
        # Large radii only if memory suffices.
        members = arrangement.groups.members.size
        factors = [factor for factor in _RADII if factor <= 1 or members * factor**3 <= _MOST_MEMBERSHIPS]
        radii = [factor * radius for factor in factors]
        charts.append(_others("radius", radii, _alphas(arrangement, radii, radius, arrangement.within), here=radius))
    if size := asked_for.nearest:
        n = arrangement.n
        sizes = sorted({2, *(max(2, size // part) for part in (4, 2, 1)), *(size * times for times in (2, 4))})
        sizes = [other for other in sizes if other <= size or (other <= n and other * n <= _MOST_MEMBERSHIPS)]
        alphas = _alphas(arrangement, sizes, size, arrangement.nearest)
        charts.append(_others("people in a group", sizes, alphas, here=size))
    return tuple(charts)


def _displacement(arrangement: Arrangement, rng: Randomness) -> Chart:
    here, n, exact, published = arrangement.alpha.upper, arrangement.n, arrangement.sensitivity, arrangement.published
    alphas, samples = sorted({*_ALPHAS, here}), 5 if n <= _MANY else 2
    shuffles = {"exact sensitivity": exact}
    if published is not None and published > exact:
        shuffles["published sensitivity"] = published
    series = [
        Series.through(
            label,
            alphas,
            [
                arrangement.displacement(alpha / sensitivity, samples=samples, confidence=0.95, rng=rng).mean
                for alpha in alphas
            ],
        )
        for label, sensitivity in shuffles.items()
    ]
    caption = "A smaller alpha moves reports farther, up to a uniform shuffle, and less can be learned about places."
    if len(series) > 1:
        caption += (
            " At the same alpha, a shuffle with the exact sensitivity moves reports less than with the published one."
        )
    return Chart(
        key="displacement-against-alpha",
        title="Displacement of reports against alpha",
        caption=caption,
        x_label="alpha (nats)",
        y_label="places that a report moves, mean",
        series=(*series, Series.through("uniform shuffle", alphas, (order_findings.uniform_mean(n),) * len(alphas))),
        x_log=True,
        y_log=True,
        here=here,
    )


def _alphas(
    arrangement: Arrangement, sizes: Sequence[Size], own: Size, grouped: Callable[[Size], Groups]
) -> list[float]:
    """Alpha of the same shuffle for groups of other sizes; `own` is the size of its groups."""
    return [arrangement.alpha_of(arrangement.groups if size == own else grouped(size)).upper for size in sizes]


def _others(label: str, x: Sequence[float], alphas: Sequence[float], *, here: float) -> Chart:
    return Chart(
        key="alpha-against-groups",
        title="Alpha (loss of order privacy) of this shuffle, for smaller and larger groups",
        caption="Exact alpha against the radius of the groups: people near each other are the hardest to distinguish.",
        x_label=label,
        y_label="alpha (nats)",
        series=(Series.through("this shuffle", x, alphas),),
        y_log=min(alphas) > 0,
        here=float(here),
    )


def people_map(
    protocol: Protocol,
    arrangement: Arrangement,
    *,
    values: npt.NDArray[np.int64],
    labels: tuple[str, ...],
    rng: Randomness,
) -> PointMap:
    """Four maps of the people: true values, reports, and the reports that two shuffles release in their place.

    The groups are made from two columns. With the great-circle metric, the first column is the latitude and points up.

    Source: Meehan et al. 2022, figure 1.
    """
    places, names, n = arrangement.places, arrangement.names, protocol.n
    assert places is not None
    shown = np.arange(min(n, MOST_SHOWN)) * n // min(n, MOST_SHOWN)
    sphere = arrangement.metric == "great-circle"
    across, up = (1, 0) if sphere else (0, 1)
    x, y = (tuple(places[shown, axis].tolist()) for axis in (across, up))
    pictures = (
        ("true values", values),
        ("reports, with their senders", _released(replace(protocol, shuffler=NoShuffle()), values, rng)),
        ("released by this shuffle", _released(protocol, values, rng)),
        ("released by a uniform shuffle", _released(replace(protocol, shuffler=UniformShuffle()), values, rng)),
    )
    more = f" {shown.size:,} of {n:,} people, evenly chosen." if shown.size < n else ""
    return PointMap(
        key="people",
        title="What a release shows of places",
        caption=f"Each dot is a person's place. Its colour is the value that one run released at this place.{more}",
        x_label=names[across],
        y_label=names[up],
        labels=labels,
        panels=tuple(Panel(label=label, x=x, y=y, values=tuple(seen[shown].tolist())) for label, seen in pictures),
    )


def _released(protocol: Protocol, values: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
    return protocol.collect(values, rng=rng).reports
