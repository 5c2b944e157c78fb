"""Assess and calibrate several columns of the same people: first all columns together, then each column alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from hushuffle._checks import unsupported
from hushuffle.assessment import findings, trials, warnings
from hushuffle.assessment.assess import OneColumn
from hushuffle.assessment.chapters import NO_FIGURE, Chapter, Draft, Randomized, mechanism, sent, unrun
from hushuffle.assessment.findings import SHUFFLER
from hushuffle.assessment.messages import messages_of
from hushuffle.assessment.minimum_batch import SmallestBatch, device, released, unreached, wanted_epsilon
from hushuffle.assessment.targets import Choice, Point, targets
from hushuffle.curves.base import PrivacyCurve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Cell, Finding, Population, Progress, Report, Table, Warned, silent
from hushuffle.model.solver import Parameter, Requirement, solve
from hushuffle.numerics.exact import sum_upwards, times_upwards
from hushuffle.questions import dp
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, excess_together, number_of_people, with_local_epsilon
from hushuffle.questions.dp.certificate import of_rounds
from hushuffle.questions.dp.composition import curves_of
from hushuffle.report.formatting import attained
from hushuffle.specification import Collection, Specification, build_adversaries
from hushuffle.specification._base import unfit
from hushuffle.specification.exposure import Exposure, factor
from hushuffle.specification.population import ONE_RECORD
from hushuffle.specification.warnings import total_warnings

_ALL: Final = "Anyone who sees the releases of all columns"
_OF_THE_RUN: Final = ("true-values-shown", "fixed-seed")
"""The warnings that concern the whole run, and name no column."""


class SeveralColumns(Randomized):
    """Several columns of the same people, shuffled independently; their guarantees are composed as rounds are.

    Answers may depend on each other in any way.

    Source: docs/theory/composition.md, Theorem 3.
    """

    alone = False

    def __init__(self, collection: Collection, folder: Path) -> None:
        super().__init__(collection, "Assessment of several columns", folder)
        self.collection = collection
        self.columns = {name: OneColumn(column, folder) for name, column in collection.columns.items()}

    @cached_property
    def whole(self) -> Specification:
        return self.collection.whole

    @property
    def written(self) -> str:
        return self.collection.effective()

    @property
    def exposure(self) -> Exposure:
        return Exposure(rounds=self.collection.rounds)

    @property
    def protocols(self) -> list[Protocol]:
        return [column.protocol for column in self.columns.values()]

    def planned(self, colluders: int) -> SeveralColumns:
        columns = {name: unrun(column, colluders) for name, column in self.collection.columns.items()}
        return SeveralColumns(replace(self.collection, columns=columns), self.folder)

    def calibrate(self, progress: Progress | None = None) -> Choice:
        """Return the largest common factor for all local epsilons with which the columns together meet targets.epsilon.

        The ratios between the columns' local epsilons do not change. For a column that must be more accurate than
        others, write a larger epsilon into the file. Values in the data are not used.

        Raises:
            SpecificationError: targets.epsilon is missing, no noise meets it, or a column has no finite epsilon.
            DataError, MissingDependencyError: the data cannot be used.

        Source: docs/theory/composition.md, Theorem 3.
        """
        tell, collection, epsilon = progress or silent, self.collection, self.collection.epsilon
        if epsilon is None:
            hint = "Write the largest acceptable central epsilon of all columns, for example epsilon = 0.5."
            unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
        tell("counting people", 0.0)
        written = {}
        for name, column in self.columns.items():
            written[name] = protocol = column.protocol
            if protocol.randomizer.chosen_epsilon is None or math.isinf(protocol.randomizer.local_epsilon):
                unsupported(f"Column {name} has no finite local epsilon, so its noise cannot be scaled.")
        tell("looking for the least noise", 0.1)
        own = [protocol.randomizer.local_epsilon for protocol in written.values()]
        noise = Parameter(
            name="factor",
            apply=lambda factor: list(_scaled(written, factor).values()),
            start=1.0,
            easiest=trials.LEAST / min(own),
            hardest=LARGEST_LOCAL / max(own),
            stride=2,
        )
        solution = solve(noise, _private(collection, epsilon), tell=tell)
        if solution is None:
            rule = "must be a value that some amount of noise achieves"
            unfit("targets.epsilon", rule, "less than any", "Allow a larger one.")
        binding, factor = "epsilon", solution.value
        limit, local = (
            collection.whole.targets.local_epsilon,
            guarantees(collection, list(written.values()), central=None),
        )
        if limit is not None and limit < factor * local[-1].bound.upper:
            # The implemented local epsilon is rounded up.
            binding, factor = "local_epsilon", limit / local[-1].bound.upper * (1 - 1e-12)
        chosen = _scaled(written, factor)
        tell("comparing", 0.9)
        central = (binding == "epsilon" and solution.bound) or all_central(collection, list(chosen.values()))
        points = tuple(
            Point(
                settings={
                    "name": name,
                    "written_local_epsilon": written[name].randomizer.local_epsilon,
                    "local_epsilon": protocol.randomizer.local_epsilon,
                },
                central=dp.compose([(protocol, collection.rounds)], delta=collection.delta),
                standard_error=trials.error_of(protocol),
                protocol=protocol,
            )
            for name, protocol in chosen.items()
        )
        error, people = max(point.standard_error for point in points), max(protocol.n for protocol in chosen.values())
        tell("done", 1.0)
        return Choice(
            kind="columns",
            title=collection.title or "Calibration of several columns",
            epsilon=epsilon,
            delta=collection.delta,
            rounds=collection.rounds,
            private=Point(settings={"factor": factor}, central=central, standard_error=error),
            columns=points,
            binding=binding,
            population=Population(
                n=people, labels=tuple(chosen), source=collection.data or "no data", label_of="column"
            ),
            targets=targets(
                collection.whole,
                people=people,
                findings=guarantees(collection, list(chosen.values()), central=central),
                unanswered=(),
                error=Bound.exact(error, unit=""),
                alone=False,
            ),
        )

    def smallest_batch(self) -> SmallestBatch:
        """Return the smallest batch in which all columns together meet targets.epsilon."""
        collection, protocols = self.collection, self.protocols
        epsilon = wanted_epsilon(collection.epsilon)
        crowd = number_of_people(protocols[0].n, lambda n: [replace(protocol, n=n) for protocol in protocols])
        solution = solve(crowd, _private(collection, epsilon))
        if solution is None:
            unreached(epsilon, "Use smaller local epsilons (more noise), or allow a larger one.")
        devices = {name: device(column.protocol) for name, column in self.columns.items()}
        target = {"epsilon": epsilon, "delta": collection.delta, "reports_per_person": 1, "rounds": collection.rounds}
        names = ", ".join(devices)
        return SmallestBatch.of(
            solution,
            words=f"{len(devices):,} columns together ({names}); {protocols[0].shuffler.describe()}",
            target=target,
            parameters={"columns": devices, **target, **released(protocols[0])},
        )

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_columns  # noqa: PLC0415 - only this verb needs it

        return audit_columns(self.collection.columns, base_folder=self.folder, **options)

    def _together(self, draft: Draft) -> None:
        collection, protocols = self.collection, self.protocols
        populations, questions = [column.column.people.population for column in self.columns.values()], draft.questions
        draft.population = Population(
            n=max(population.n for population in populations),
            labels=tuple(self.columns),
            source=collection.data or "no data",
            dropped=sum(population.dropped for population in populations),
            label_of="column",
        )
        draft.k = max(len(population.labels) for population in populations)
        draft.citations = tuple(dict.fromkeys(source for each in protocols for source in each.randomizer.sources))
        central = questions.ask("central-dp", _ALL, lambda: _certified(collection, protocols))
        rows = [central, questions.ask("local-dp", SHUFFLER, lambda: _local(collection, protocols))]
        adversaries, source = build_adversaries(self.whole), f"all {len(protocols):,} columns{_rounds(collection)}"
        for name, protocol in zip(self.columns, protocols, strict=True) if adversaries.guessers else ():
            what, delta = f'your answer to "{name}"', collection.delta
            row = partial(findings.guessed, protocol, central=central, delta=delta, what=what, source=source)
            finding = questions.ask("vulnerability", findings.GUESSER, row)
            rows.append(finding and replace(finding, adversary=f"Column {name}: {finding.adversary}"))
        if adversaries.linker:
            reason = f"Re-identification needs one report per person; each person sends one in each of {source}."
            questions.refuse({"re-identification": findings.LINKER}, reason)
        draft.findings += [row for row in rows if row is not None]
        draft.warnings += total_warnings(dict(zip(self.columns, protocols, strict=True)), rounds=collection.rounds)
        sections = [column.population for column in collection.columns.values()]
        draft.warnings += warnings.about_rows(sections, base_folder=self.folder, remedy=ONE_RECORD)

    def _each(self, draft: Draft) -> None:
        parts, words, warned = {}, [], dict[Warned, None]()
        for place, (name, single) in enumerate(self.columns.items()):
            draft.done(place / len(self.columns), f"column {name}")
            parts[name] = part = single.draft(single.as_one_of_several)
            labels = single.column.people.population.labels
            draft.findings += [_named(name, row, labels) for row in part.findings]
            unanswered = [replace(row, topic=f"Column {name}: {row.topic}") for row in part.questions.unanswered]
            draft.questions.unanswered += unanswered
            words += [f"Column {name}: {single.protocol.describe()}", single.whole.population.answer.words(None)]
            warned |= dict.fromkeys(
                row if row.key in _OF_THE_RUN else replace(row, sentence=f"Column {name}: {row.sentence}")
                for row in part.warnings
            )
        draft.warnings += warned
        draft.words = " ".join(filter(None, words))
        draft.tables.append(self._table(parts))
        errors = [part.error.upper for part in parts.values() if part.error is not None]
        draft.error = Bound.exact(max(errors), unit="") if len(errors) == len(parts) else None
        kinds = dict.fromkeys(mechanism(column) for column in self.collection.columns.values())
        layouts = [(messages_of(protocol), protocol.randomizer.layout.bits) for protocol in self.protocols]
        draft.facts |= {
            "mechanism": f"{len(parts):,} columns: {', '.join(kinds)}",
            "standard error": draft.error or NO_FIGURE,
            **sent(layouts, times=self.collection.rounds),
        }

    def _table(self, parts: Mapping[str, Draft]) -> Table:
        rounds, of_rounds, collection = "", "", self.collection
        if collection.rounds > 1:
            rounds = f", {collection.rounds:,} rounds"
            of_rounds = f"; both epsilons cover all {collection.rounds:,} rounds"
        rows: list[tuple[Cell, ...]] = []
        for name, part in parts.items():
            population = self.columns[name].column.people.population
            figures = {row.question: replace(row.bound, witness=None) for row in part.findings}
            epsilons = [figures.get(question, "not known") for question in ("local-dp", "central-dp")]
            error = "not known" if part.error is None else part.error.upper
            rows.append((name, population.n, len(population.labels), *epsilons, error))
        return Table(
            key="columns",
            title="Each column",
            caption=(
                f"Central epsilon is at delta = {collection.delta:g}{of_rounds}; the standard error is the largest "
                "error of a category's share in one round."
            ),
            columns=(
                *("column", "people", "categories"),
                *(f"local epsilon{rounds}", f"central epsilon{rounds}", "standard error"),
            ),
            rows=tuple(rows),
        )

    chapters = (
        Chapter("all columns together", 0.0, _together),
        Chapter("each column", 0.1, _each),
        Chapter("what if", 0.9, Randomized.what_if, only_shown=True),
        Chapter("the first page", 1.0, Randomized.first_page),
    )


def _named(name: str, row: Finding, labels: tuple[str, ...]) -> Finding:
    """Return a finding that names its column; the witness of its lower bound names the column's categories."""
    adversary, witness = f"Column {name}: {row.adversary}", row.bound.witness
    if witness is not None:
        proof = f"{row.proof}; lower bound attained at {attained(witness, labels)}"
        row = replace(row, bound=replace(row.bound, witness=None), proof=proof)
    return replace(row, question=f"{row.question}-of-a-column", adversary=adversary)


def _rounds(collection: Collection) -> str:
    return f" in all {collection.rounds:,} rounds" if collection.rounds > 1 else ""


def _words(collection: Collection) -> str:
    return f"your answers to all {len(collection.columns):,} columns{_rounds(collection)}"


def all_central(collection: Collection, protocols: Sequence[Protocol]) -> Bound:
    """Return the central epsilon (nats) of all columns in all rounds together."""
    return dp.compose(_curves(collection.rounds, *protocols), delta=collection.delta)


def all_excess(collection: Collection, protocols: Sequence[Protocol], epsilon: float, *, rough: bool = False) -> float:
    """Return by how much delta of all columns in all rounds together exceeds that of the collection at `epsilon`."""
    return excess_together(_curves(collection.rounds, *protocols), epsilon, collection.delta, rough=rough)


@lru_cache(maxsize=16)
def _curves(rounds: int, *protocols: Protocol) -> list[tuple[PrivacyCurve, int]]:
    """Return the privacy curve of each different protocol: with it, its excess and its figure share their tables."""
    return curves_of([(protocol, rounds) for protocol in protocols])


def _private(collection: Collection, epsilon: float) -> Requirement[list[Protocol]]:
    return Requirement(
        excess=lambda protocols: all_excess(collection, protocols, epsilon),
        estimate=lambda protocols: all_excess(collection, protocols, epsilon, rough=True),
        figure=lambda protocols: all_central(collection, protocols),
        limit=epsilon,
    )


def guarantees(collection: Collection, protocols: list[Protocol], *, central: Bound | None) -> tuple[Finding, ...]:
    """Return findings on all columns together: behind the shuffler (if `central` is given), and without shuffler."""
    with_it = () if central is None else (_central(collection, central),)
    return (*with_it, _local(collection, protocols))


def _certified(collection: Collection, protocols: list[Protocol]) -> Finding:
    bound = all_central(collection, protocols)
    rounds = [(protocol, collection.rounds) for protocol in protocols]
    certificate = findings.certified(lambda: of_rounds(rounds, bound, delta=collection.delta))
    return replace(_central(collection, bound), certificate=certificate)


def _central(collection: Collection, bound: Bound) -> Finding:
    times = factor(bound.upper)
    sentence = (
        f"Whatever else they know, the releases of {_words(collection)} change the odds of any conclusion about you by "
        f"at most {times} (delta = {collection.delta:g})."
        if times
        else f"The releases make {_words(collection)} practically readable."
    )
    if math.isinf(bound.upper):
        sentence = f"No differential privacy: the releases can reveal at least one of {_words(collection)}."
    return Finding(
        question="central-dp",
        adversary=_ALL,
        sentence=sentence,
        bound=replace(bound, witness=None),
        proof="upper bound: composed dominating pairs; lower bound: composed datasets of the columns",
    )


def _local(collection: Collection, protocols: list[Protocol]) -> Finding:
    parts = [protocol.randomizer.local_epsilon for protocol in protocols]
    total = times_upwards(sum_upwards(parts), collection.rounds)
    sentence = f"If the shuffler fails, {_words(collection)} are practically readable."
    if times := factor(total):
        sentence = (
            f"Even with your name on them, {_words(collection)} change the odds of any conclusion about you by at most "
            f"{times}."
        )
    return Finding(
        question="local-dp",
        adversary=SHUFFLER,
        sentence=sentence,
        bound=Bound.exact(total, unit="nats"),
        proof="sum of the local epsilons, computed from the implemented integer thresholds and rounded up",
    )


def _scaled(written: Mapping[str, Protocol], factor: float) -> dict[str, Protocol]:
    return {
        name: with_local_epsilon(protocol, protocol.randomizer.local_epsilon * factor)
        for name, protocol in written.items()
    }
