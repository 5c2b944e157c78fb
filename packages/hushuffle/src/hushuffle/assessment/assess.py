"""Assess a deployment of one column: what each adversary learns, and the predicted and the measured error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hushuffle.assessment import charts as curves
from hushuffle.assessment import findings, trials, warnings
from hushuffle.assessment.chapters import NO_FIGURE, Chapter, Draft, Randomized, sent, unrun
from hushuffle.assessment.findings import change, kept_or_fresh
from hushuffle.assessment.messages import message_tables, messages_of
from hushuffle.assessment.minimum_batch import SmallestBatch, of_protocol, unreached, wanted_epsilon
from hushuffle.assessment.order.report import Order
from hushuffle.assessment.targets import Choice
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Progress, Report
from hushuffle.specification import Specification, build_adversaries
from hushuffle.specification.exposure import Column, Exposure
from hushuffle.specification.order_setup import arranged

# A verb loads only what it needs: a method imports the module that answers it.
# ruff: noqa: PLC0415


class OneColumn(Randomized):
    """One column: categories or numbers, behind any shuffler."""

    def __init__(self, specification: Specification, folder: Path) -> None:
        super().__init__(specification, "Assessment of a shuffled collection", folder)
        self.column = Column(specification, folder)

    @property
    def whole(self) -> Specification:
        return self.column.specification

    @property
    def exposure(self) -> Exposure:
        return self.column.exposure

    @cached_property
    def order(self) -> Order | None:
        """The noisy order of release, if the shuffler has one."""
        arrangement = arranged(self.whole, self.column.people, self.folder)
        return None if arrangement is None else Order(self.column, arrangement)

    @property
    def protocol(self) -> Protocol:
        return self.column.protocol if self.order is None else self.order.protocol

    @property
    def protocols(self) -> Sequence[Protocol]:
        return [self.protocol]

    def planned(self, colluders: int) -> OneColumn:
        return OneColumn(unrun(self.whole, colluders), self.folder)

    def calibrate(self, progress: Progress | None = None) -> Choice:
        from hushuffle.assessment.calibrate import CALIBRATED

        run = CALIBRATED[self.whole.shuffler.declared().calibrated]
        return run(self.whole, base_folder=self.folder, progress=progress)

    def smallest_batch(self) -> SmallestBatch:
        epsilon, exposure = wanted_epsilon(self.whole.targets.epsilon), Exposure.of(self.whole)
        protocol, reports, rounds = self.column.protocol, exposure.reports, exposure.composed
        try:
            return of_protocol(
                protocol, epsilon=epsilon, delta=self.column.delta, reports_per_person=reports, rounds=rounds
            )
        except InvalidInputError as error:
            unreached(epsilon, error.problem.hint)

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_specification

        return audit_specification(self.whole, base_folder=self.folder, **options)

    def _read(self, draft: Draft) -> None:
        people, draft.citations = self.column.people, self.protocol.randomizer.sources
        draft.population, draft.k = people.population, people.k

    def _learned(self, draft: Draft) -> None:
        adversaries = build_adversaries(self.whole)
        self._protected(draft, guessers=adversaries.guessers, linking=adversaries.linker)
        draft.findings += change(draft.questions, self.protocol, self.exposure)

    def _protected(self, draft: Draft, *, guessers: Sequence[Guesser] = (), linking: bool = False) -> None:
        delta, exposure = self.column.delta, self.exposure
        draft.findings += findings.learned(
            draft.questions, self.protocol, guessers=guessers, linking=linking, delta=delta, exposure=exposure
        )

    def _ordered(self) -> bool:
        return self.order is not None

    def _charts(self, draft: Draft) -> None:
        questions, delta = draft.questions, self.column.delta
        draft.charts += curves.privacy_charts(
            questions, self.protocol, delta=delta, central=draft.central, exposure=self.exposure
        )
        if self.exposure.total == 1:
            draft.charts += curves.guessing_charts(questions, self.protocol)

    def _messages(self, draft: Draft) -> None:
        protocol, delta = self.protocol, self.column.delta
        draft.tables += kept_or_fresh(draft.questions, protocol, delta=delta, exposure=self.exposure)
        draft.tables += message_tables(protocol, delta=delta)
        parts = [(messages_of(protocol), protocol.randomizer.layout.bits)]
        draft.facts |= sent(parts, times=self.exposure.reports * self.exposure.rounds)

    def _accuracy(self, draft: Draft) -> None:
        protocol, people = self.protocol, self.column.people
        draft.utility = draft.questions.ask(
            "accuracy",
            "The accuracy of the answers",
            lambda: trials.utility(protocol, self.whole, values=people.values, progress=draft.done),
        )
        draft.facts["standard error"] = NO_FIGURE
        if draft.utility is not None:
            draft.error = Bound.exact(trials.worst_error(protocol), unit="")
            draft.facts["standard error"] = Bound.exact(float(draft.utility.predicted.max()), unit="")

    def _answer(self, draft: Draft) -> None:
        protocol, answer = self.protocol, self.whole.population.answer
        mean = draft.questions.ask("mean", answer.topic, lambda: answer.error(protocol))
        draft.words = f"{protocol.describe(reports_per_person=self.exposure.reports)} {answer.words(mean)}".rstrip()
        draft.tables += () if mean is None else answer.tables(mean)
        draft.facts |= answer.facts(mean, protocol.n)

    def _about_rows(self, draft: Draft) -> None:
        draft.warnings += warnings.about_rows([self.whole.population], base_folder=self.folder)

    def _concerns(self, draft: Draft) -> None:
        draft.warnings += warnings.concerns(self.protocol, self.column, draft)

    chapters = (
        Chapter("reading the data", 0.0, _read),
        Chapter("what each adversary learns", 0.1, _learned, lambda one: one.order is None),
        Chapter("what each adversary learns", 0.1, lambda one, draft: one.order.write(draft), _ordered),
        Chapter("the order of release", 0.12, lambda one, draft: one.order.show(draft), _ordered, only_shown=True),
        Chapter("what happens at other sizes", 0.3, _charts, only_shown=True),
        Chapter("what if", 0.55, Randomized.what_if, only_shown=True),
        Chapter("what if", 0.6, _messages),
        Chapter("running the collection", 0.6, _accuracy),
        Chapter("running the collection", 1.0, _answer),
        Chapter("warnings", 1.0, _about_rows),
        Chapter("warnings", 1.0, _concerns),
        Chapter("the first page", 1.0, Randomized.first_page),
    )
    as_one_of_several = (
        Chapter("its guarantee", 0.0, _protected),
        Chapter("its accuracy", 0.5, _accuracy),
        Chapter("its warnings", 1.0, _concerns),
    )
    """The chapters about one of several columns."""
