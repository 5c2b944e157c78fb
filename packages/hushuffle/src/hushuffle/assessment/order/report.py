"""The chapter on the order of a Mallows shuffle: findings, tables, charts, maps and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from hushuffle.assessment import findings
from hushuffle.assessment.chapters import Draft
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.order import findings as order_findings
from hushuffle.assessment.order.charts import order_charts, people_map
from hushuffle.assessment.order.measures import Scene, measured
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Finding, Warned, number
from hushuffle.model.bound import percent
from hushuffle.questions.order.displacement import Displacement
from hushuffle.specification import Adversaries, build_adversaries
from hushuffle.specification import order as asked
from hushuffle.specification.exposure import Column
from hushuffle.specification.order_setup import Arrangement, Source, coins

LARGE_ALPHA: Final = 5.0
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
        if run.show_people:
            people = self._column.people
            assert people.values is not None
            labels, rng = people.population.labels, coins(run.seed)
            draft.maps.append(people_map(self.protocol, arrangement, values=people.values, labels=labels, rng=rng))
        moved = arrangement.displacement(confidence=run.confidence, rng=coins(run.seed))
        draft.warnings += _concerns(arrangement, moved, shown=run.show_people)
        if adversaries.order is None:
            return
        local, household = self.protocol.randomizer.local_epsilon, adversaries.order.household
        draft.findings += order_findings.reader(arrangement, local_epsilon=local, household=household, moved=moved)
        draft.done(0.2)
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
