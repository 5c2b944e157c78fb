"""A deployment of groups of people with different randomizers behind one shuffler: its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NoReturn

from hushuffle.assessment import findings
from hushuffle.assessment.chapters import NO_FIGURE, Chapter, Draft, Randomized, sent
from hushuffle.assessment.minimum_batch import SmallestBatch
from hushuffle.assessment.targets import Choice
from hushuffle.assessment.trials import worst_error
from hushuffle.assessment.warnings import about_rows
from hushuffle.estimation.readout import ByGroups
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Cell, Progress, Report, Table, number
from hushuffle.questions import dp
from hushuffle.specification import People, Specification
from hushuffle.specification._base import unfit
from hushuffle.specification.mixed import GroupBatches, MixedSpecification
from hushuffle.specification.warnings import weighted_warnings

_ONE_RANDOMIZER: Final = "People use different randomizers. The central epsilon of all groups together limits this too."
_UNANSWERED: Final = {
    "vulnerability": "Guessing a person's answer",
    "re-identification": "Naming the sender of a report",
}
_PUBLIC: Final = " The group of each person is public, and does not depend on the answer."


def _refuse(command: str, reason: str) -> NoReturn:
    unfit("groups", f"must be left out for {command}", "groups of people with different randomizers", reason)


class MixedGroups(Randomized):
    """Groups of people with different randomizers; the figures of the first page are those of all people."""

    protocols: Sequence[Protocol] = ()

    def __init__(self, specification: MixedSpecification, folder: Path) -> None:
        super().__init__(specification, "Assessment of groups with different randomizers", folder)
        self.specification = specification

    @cached_property
    def whole(self) -> Specification:
        return self.specification.shared

    @property
    def written(self) -> str:
        return self.specification.effective()

    @cached_property
    def people(self) -> People:
        return self.whole.population.read(self.folder)

    @cached_property
    def protocol(self) -> MixedProtocol:
        counts = [group.people or 0 for group in self.specification.groups]
        if self.specification.group_column is not None:
            records = GroupBatches(self.specification, self.folder)
            for _ in records:
                pass
            counts = records.people
        return self.specification.build(counts, self.people.k)

    def planned(self, colluders: int) -> MixedGroups:  # noqa: ARG002 - no figure depends on them
        return self

    def central_with(self, colluders: int, draft: Draft) -> Cell:  # noqa: ARG002
        return NO_FIGURE

    def calibrate(self, progress: Progress | None = None) -> Choice:  # noqa: ARG002
        _refuse(
            "calibrate", "Each group has an epsilon, so no single epsilon solves the targets. Compare files instead."
        )

    def smallest_batch(self) -> SmallestBatch:
        _refuse("minimum-batch", "The figure depends on the number of people in each group. Assess several numbers.")

    def audit(self, **options: Any) -> Report:  # noqa: ARG002
        _refuse("audit", "The tests cover one randomizer. Audit one file per group.")

    def _learned(self, draft: Draft) -> None:
        population, protocol, delta = self.people.population, self.protocol, self.whole.targets.delta
        draft.population, draft.k, draft.words = population, self.people.k, protocol.describe()
        questions, citations = draft.questions, [source for _, each in protocol.groups for source in each.sources]
        rows = (
            questions.ask("central-dp", findings.RELEASE, lambda: findings.central(protocol, delta=delta)),
            questions.ask("local-dp", findings.SHUFFLER, lambda: findings.local(protocol)),
        )
        draft.findings += [row for row in rows if row is not None]
        draft.citations = tuple(dict.fromkeys(citations))
        questions.refuse(_UNANSWERED, _ONE_RANDOMIZER)

    def _groups(self, draft: Draft) -> None:
        protocol, delta, read = self.protocol, self.whole.targets.delta, ByGroups.of(self.protocol.groups)
        rows = []
        for place, (named, (people, randomizer)) in enumerate(
            zip(self.specification.groups, protocol.groups, strict=True)
        ):
            central: Bound | None = None
            if people:
                central = draft.questions.ask(
                    f"central-dp of group {place + 1}",
                    f"Central epsilon of group {named.name}",
                    partial(dp.epsilon, protocol.member(place), delta=delta),
                )
            local = Bound.exact(randomizer.local_epsilon, unit="nats")
            rows.append((named.name, people, local, central or NO_FIGURE, read.weights[place]))
        draft.tables.append(
            Table(
                key="groups",
                title="Groups",
                caption=(
                    f"Epsilons in nats, for the people of the group; central epsilon at delta = {delta:g}. An estimate "
                    "is a weighted mean of the groups' shares. If answers differ between groups, its expectation "
                    f"differs from the share among all people by up to {number(read.bias, up=True)}."
                ),
                columns=("group", "people", "local epsilon", "central epsilon", "weight in the estimate"),
                rows=tuple(rows),
            )
        )
        draft.error = Bound(lower=0.0, upper=worst_error(protocol), kind="upper", unit="")
        draft.facts |= sent([(1, protocol.groups[0][1].layout.bits)], times=1)
        draft.facts["standard error"] = draft.error

    def _concerns(self, draft: Draft) -> None:
        draft.warnings += self.people.warnings
        draft.warnings += about_rows([self.whole.population], base_folder=self.folder)
        draft.warnings += weighted_warnings(self.protocol)

    def _first(self, draft: Draft) -> None:
        self.first_page(draft)
        assert draft.statement is not None  # of the line above
        draft.statement = replace(draft.statement, unit=draft.statement.unit + _PUBLIC)

    chapters = (
        Chapter("reading the data", 0.0, lambda mixed, _: mixed.people),
        Chapter("what each adversary learns", 0.1, _learned),
        Chapter("the groups", 0.5, _groups),
        Chapter("warnings", 1.0, _concerns),
        Chapter("the first page", 1.0, _first),
    )
