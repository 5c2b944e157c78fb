"""Assemble the assessment of a Mallows shuffle: findings, tables, charts, maps and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle.assessment import findings
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.order import findings as order_findings
from hushuffle.assessment.order.charts import order_charts, people_map
from hushuffle.assessment.order.measures import Measured, Scene, measured
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Chart, Finding, PointMap, Table, Warned, number
from hushuffle.model.bound import percent
from hushuffle.questions import order
from hushuffle.questions.order.displacement import Displacement
from hushuffle.specification import Adversaries, People, Specification, build_adversaries
from hushuffle.specification import order as asked
from hushuffle.specification.order_setup import Arrangement, Source, coins

LARGE_ALPHA: Final = 5.0
_NEARLY: Final = 0.9


@dataclass(frozen=True, kw_only=True)
class OrderReport:
    """The parts of the assessment of a Mallows shuffle; `findings` are all findings of the assessment."""

    findings: tuple[Finding, ...]
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    maps: tuple[PointMap, ...] = ()
    warnings: tuple[Warned, ...] = ()


def order_report(
    questions: Questions,
    specification: Specification,
    protocol: Protocol,
    arrangement: Arrangement,
    *,
    people: People,
    base_folder: Path,
    done: Callable[[float], None],
) -> OrderReport:
    run, delta = specification.run, specification.targets.delta
    adversaries = build_adversaries(specification)
    rows = _learned(questions, protocol, adversaries, delta)
    maps = () if not run.show_people else (_map(protocol, arrangement, people, run.seed),)
    shuffler = arrangement.shuffler
    moved = order.displacement(
        n=protocol.n, theta=shuffler.theta, distance=shuffler.distance, confidence=run.confidence, rng=coins(run.seed)
    )
    concerns = list(_concerns(arrangement, moved, shown=run.show_people))
    if adversaries.order is None:
        return OrderReport(findings=rows, maps=maps, warnings=tuple(concerns))
    reader = order_findings.reader(
        arrangement, local_epsilon=protocol.randomizer.local_epsilon, household=adversaries.order.household, moved=moved
    )
    done(0.2)
    preserved = questions.ask(
        "order-preservation",
        "The table of what stays together",
        lambda: order_findings.groups_table(arrangement, confidence=run.confidence, rng=coins(run.seed)),
    )
    done(0.4)
    attack = _attack(specification, protocol, arrangement, adversaries.order, people, base_folder, done)
    assert isinstance(specification.shuffler, asked.MallowsShuffle)
    return OrderReport(
        findings=(*rows, *reader, *(attack.findings if attack else ())),
        tables=(*(() if preserved is None else (preserved,)), *(attack.tables if attack else ())),
        charts=order_charts(arrangement, asked_for=specification.shuffler.groups, rng=coins(run.seed)),
        maps=maps,
        warnings=(*concerns, *(attack.warnings if attack else ())),
    )


def _learned(questions: Questions, protocol: Protocol, adversaries: Adversaries, delta: float) -> tuple[Finding, ...]:
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
        rows.append(questions.ask("re-identification", findings.LINKER, lambda: order_findings.identified(protocol)))
        rows.append(
            questions.ask(
                "identity-information", findings.LINKER, lambda: order_findings.identity_information(protocol)
            )
        )
    return tuple(row for row in rows if row is not None)


def _map(protocol: Protocol, arrangement: Arrangement, people: People, seed: int | str) -> PointMap:
    assert people.values is not None
    return people_map(protocol, arrangement, values=people.values, labels=people.population.labels, rng=coins(seed))


def _attack(
    specification: Specification,
    protocol: Protocol,
    arrangement: Arrangement,
    adversary: asked.Order,
    people: People,
    base_folder: Path,
    done: Callable[[float], None],
) -> Measured | None:
    """The results of the attack that the specification names, if any."""
    wanted = adversary.attack
    if wanted is None:
        return None
    assert people.values is not None
    from hushuffle.tables.published import load_attributes  # noqa: PLC0415 - Polars is for those who have files

    source = Source.of(specification, people, base_folder)
    attributes = None if wanted.column is None else load_attributes(source.data, wanted.column, **source.where)
    near = arrangement.groups if wanted.radius is None else arrangement.within(wanted.radius)
    scene = Scene(
        values=people.values, labels=people.population.labels, near=near, known=attributes, places=arrangement.features
    )
    run = specification.run
    return measured(
        protocol, scene, confidence=run.confidence, rng=coins(run.seed), done=lambda share: done(0.4 + 0.6 * share)
    )


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
            sentence="Reports move almost as far as in a uniform shuffle: little can be learned about places.",
            advice='Use smaller groups or a larger alpha. Or use kind = "uniform", which hides more at the same loss.',
        )
    yield Warned(
        key="public-columns",
        sentence=f"The order of release reveals {', '.join(arrangement.names)}. Here they count as public.",
        advice="If they are not public, use another order: no figure of this report covers what the order reveals.",
    )
    if shown:
        yield Warned(
            key="people-shown",
            sentence="The map shows every person's true value at that person's place.",
            advice="Show this report only to the data holder. Omit run.show_people for any other report.",
        )
