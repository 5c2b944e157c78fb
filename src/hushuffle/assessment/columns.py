"""Assess and calibrate several columns of the same people: first all columns together, then each column alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from hushuffle._checks import unsupported
from hushuffle.assessment import findings, trials, warnings
from hushuffle.assessment.exposure import Exposure, factor
from hushuffle.assessment.findings import SHUFFLER, Questions
from hushuffle.assessment.scenarios import scenarios
from hushuffle.assessment.statement import statement
from hushuffle.assessment.targets import Choice, Point, targets
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Finding, Population, Progress, Report, Table, Unanswered, Utility, Warned, silent
from hushuffle.model.report import software
from hushuffle.model.solver import Parameter, Requirement, solve
from hushuffle.numerics.exact import sum_upwards, times_upwards
from hushuffle.questions import dp
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, with_local_epsilon
from hushuffle.questions.dp.certificate import of_rounds
from hushuffle.report.formatting import attained
from hushuffle.specification import Collection, Specification, build_adversaries, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.warnings import ONE_RECORD, total_warnings

_ALL: Final = "Anyone who sees the releases of all columns"
_OF_THE_RUN: Final = ("true-values-shown", "fixed-seed")
"""The warnings that concern the whole run, and name no column."""


@dataclass(frozen=True, kw_only=True)
class _Column:
    """The name, the protocol and the results of one column."""

    name: str
    protocol: Protocol
    population: Population
    findings: tuple[Finding, ...]
    unanswered: tuple[Unanswered, ...]
    warnings: tuple[Warned, ...]
    utility: Utility | None
    words: str

    @property
    def error(self) -> float | None:
        """The standard error of an estimated share at the worst true share, the largest over all categories."""
        return None if self.utility is None else trials.worst_error(self.protocol)


def assess_columns(collection: Collection, *, base_folder: Path = Path(), progress: Progress | None = None) -> Report:
    """Return the guarantee of all columns of a collection together, then that of each column, and the accuracy.

    The guarantees are composed as rounds with the same people; answers may depend on each other in any way.

    Args:
        collection: two columns or more, as `hushuffle.specification.load_collection` reads them.
        base_folder: the folder against which relative paths of data are resolved.
        progress: receives the current step and the share of the work that is done.

    Raises:
        DataError, MissingDependencyError: the data cannot be used.
        SpecificationError: a column does not fit the data.

    Source: docs/theory/composition.md, Theorem 3.
    """
    tell = progress or silent
    columns = []
    for place, (name, specification) in enumerate(collection.columns.items()):
        tell(f"column {name}", place / (len(collection.columns) + 1))
        columns.append(_assessed(name, specification, base_folder))
    tell("all columns together", len(columns) / (len(columns) + 1))
    questions, whole, protocols = Questions(), collection.whole, [column.protocol for column in columns]
    together = [
        questions.ask("central-dp", _ALL, lambda: _certified(collection, protocols)),
        questions.ask("local-dp", SHUFFLER, lambda: _local(collection, protocols)),
    ]
    adversaries, several = build_adversaries(whole), f"all {len(columns):,} columns{_rounds(collection)}"
    if adversaries.guessers:
        for column in columns:
            what, delta = f'your answer to "{column.name}"', collection.delta
            row = partial(
                findings.guessed, column.protocol, central=together[0], delta=delta, what=what, source=several
            )
            finding = questions.ask("vulnerability", findings.GUESSER, row)
            together.append(finding and replace(finding, adversary=f"{column.name}: {finding.adversary}"))
    if adversaries.linker:
        reason = f"Re-identification needs one report per person; each person sends one in each of {several}."
        questions.unanswered.append(Unanswered(question="re-identification", topic=findings.LINKER, reason=reason))
    total = tuple(row for row in together if row is not None)
    unanswered = (*questions.unanswered, *(row for column in columns for row in column.unanswered))
    rows = (*total, *(row for column in columns for row in column.findings))
    errors = [column.error for column in columns]
    worst = None if None in errors else Bound.exact(max(error for error in errors if error is not None), unit="")
    people = max(column.population.n for column in columns)
    population = Population(
        n=people,
        labels=tuple(collection.columns),
        source=collection.data or "no data",
        dropped=sum(column.population.dropped for column in columns),
        label_of="column",
    )
    tell("what if", 0.9)
    cases = scenarios(
        protocols,
        delta=collection.delta,
        colluders=whole.statement.colluders,
        exposure=Exposure(rounds=collection.rounds),
        planned=findings.central_bound(total),
    )
    tell("done", 1.0)
    return Report(
        title=collection.title or "Assessment of several columns",
        question=" ".join(f"{column.name}: {column.words}" for column in columns),
        population=population,
        targets=targets(whole, people=people, findings=rows, unanswered=unanswered, error=worst, alone=False),
        statement=statement(
            whole,
            population=population,
            reveals=protocols[0].shuffler.reveals,
            findings=rows,
            unanswered=unanswered,
            scenarios=cases,
            written=collection.effective(),
        ),
        findings=rows,
        unanswered=unanswered,
        tables=(_table(collection, columns),),
        warnings=(
            *total_warnings(protocols, rounds=collection.rounds),
            *warnings.about_rows(
                [each.population for each in collection.columns.values()], base_folder=base_folder, remedy=ONE_RECORD
            ),
            *dict.fromkeys(warned for column in columns for warned in column.warnings),
        ),
        specification=collection.effective(),
        software=software("polars", "cryptography"),
        citations=tuple(dict.fromkeys(source for column in columns for source in column.protocol.randomizer.sources)),
    )


def _assessed(name: str, specification: Specification, base_folder: Path) -> _Column:
    population, delta, exposure = specification.population, specification.targets.delta, Exposure.of(specification)
    people = population.read(base_folder)
    protocol = build_protocol(specification, n=people.n, k=people.k)
    questions = Questions()
    rows = findings.learned(questions, protocol, guessers=(), linking=False, delta=delta, exposure=exposure)
    utility = questions.ask(
        "accuracy",
        "The accuracy of the answers",
        lambda: trials.utility(protocol, specification, values=people.values, progress=lambda _: None),
    )
    concerns = warnings.concerns(protocol, people=people, specification=specification, findings=rows, utility=utility)
    return _Column(
        name=name,
        protocol=protocol,
        population=people.population,
        findings=tuple(_named(name, row, people.population.labels) for row in rows),
        unanswered=tuple(replace(row, topic=f"{name}: {row.topic}") for row in questions.unanswered),
        warnings=tuple(
            warned if warned.key in _OF_THE_RUN else replace(warned, sentence=f"{name}: {warned.sentence}")
            for warned in concerns
        ),
        utility=utility,
        words=f"{protocol.describe()} {population.answer.words(None)}".rstrip(),
    )


def _named(name: str, row: Finding, labels: tuple[str, ...]) -> Finding:
    """Return a finding that names its column; the witness of its lower bound names the column's categories."""
    adversary, witness = f"{name}: {row.adversary}", row.bound.witness
    if witness is not None:
        proof = f"{row.proof}; lower bound attained at {attained(witness, labels)}"
        row = replace(row, bound=replace(row.bound, witness=None), proof=proof)
    return replace(row, question=f"{row.question}-of-a-column", adversary=adversary)


def _rounds(collection: Collection) -> str:
    return f" in all {collection.rounds:,} rounds" if collection.rounds > 1 else ""


def _words(collection: Collection) -> str:
    return f"your answers to all {len(collection.columns):,} columns{_rounds(collection)}"


def all_central(collection: Collection, protocols: list[Protocol]) -> Bound:
    """Return the central epsilon (nats) of all columns in all rounds together."""
    return dp.compose([(protocol, collection.rounds) for protocol in protocols], delta=collection.delta)


def guarantees(collection: Collection, protocols: list[Protocol], *, central: Bound | None) -> tuple[Finding, ...]:
    """Return findings on all columns together: behind the shuffler (if `central` is given), and without shuffler."""
    with_it = () if central is None else (_central(collection, central),)
    return (*with_it, _local(collection, protocols))


def _certified(collection: Collection, protocols: list[Protocol]) -> Finding:
    bound = all_central(collection, protocols)
    finding, rounds = _central(collection, bound), [(protocol, collection.rounds) for protocol in protocols]
    try:
        return replace(finding, certificate=of_rounds(rounds, bound, delta=collection.delta))
    except UnsupportedProtocolError:
        return finding


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


def _table(collection: Collection, columns: list[_Column]) -> Table:
    def figure(column: _Column, question: str) -> Bound | str:
        bounds = (row.bound for row in column.findings if row.question == f"{question}-of-a-column")
        return next(bounds, "not known")

    rounds, of_rounds = "", ""
    if collection.rounds > 1:
        rounds = f", {collection.rounds:,} rounds"
        of_rounds = f"; both epsilons cover all {collection.rounds:,} rounds"
    epsilons = (f"local epsilon{rounds}", f"central epsilon{rounds}")
    return Table(
        key="columns",
        title="Each column",
        caption=(
            f"Central epsilon is at delta = {collection.delta:g}{of_rounds}; the standard error is the largest error "
            "of a category's share in one round."
        ),
        columns=("column", "people", "categories", *epsilons, "standard error"),
        rows=tuple(
            (
                column.name,
                column.population.n,
                len(column.population.labels),
                figure(column, "local-dp"),
                figure(column, "central-dp"),
                "not known" if column.error is None else column.error,
            )
            for column in columns
        ),
    )


def calibrate_columns(
    collection: Collection, *, base_folder: Path = Path(), progress: Progress | None = None
) -> Choice:
    """Return the largest common factor for all local epsilons with which the columns together meet targets.epsilon.

    The ratios between the columns' local epsilons do not change. For a column that must be more accurate than others,
    write a larger epsilon into the file. Values in the data are not used.

    Raises:
        SpecificationError: targets.epsilon is missing, no noise meets it, or a column has no finite epsilon.
        DataError, MissingDependencyError: the data cannot be used.

    Source: docs/theory/composition.md, Theorem 3.
    """
    tell = progress or silent
    epsilon = collection.epsilon
    if epsilon is None:
        hint = "Write the largest acceptable central epsilon of all columns, for example epsilon = 0.5."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    tell("counting people", 0.0)
    written = {name: _protocol(collection, name, base_folder) for name in collection.columns}
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
    private = Requirement[list[Protocol]](figure=lambda scaled: all_central(collection, scaled), limit=epsilon)
    solution = solve(noise, private, tell=tell)
    if solution is None:
        rule = "must be a value that some amount of noise achieves"
        unfit("targets.epsilon", rule, "less than any", "Allow a larger one.")
    binding, factor = "epsilon", solution.value
    limit, local = collection.whole.targets.local_epsilon, guarantees(collection, list(written.values()), central=None)
    if limit is not None and limit < factor * local[-1].bound.upper:
        # The implemented local epsilon is rounded up.
        binding, factor = "local_epsilon", limit / local[-1].bound.upper * (1 - 1e-12)
    chosen = _scaled(written, factor)
    tell("comparing", 0.9)
    central = all_central(collection, list(chosen.values()))
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
        population=Population(n=people, labels=tuple(chosen), source=collection.data or "no data", label_of="column"),
        targets=targets(
            collection.whole,
            people=people,
            findings=guarantees(collection, list(chosen.values()), central=central),
            unanswered=(),
            error=Bound.exact(error, unit=""),
            alone=False,
        ),
    )


def _protocol(collection: Collection, name: str, base_folder: Path) -> Protocol:
    specification = collection.columns[name]
    people = specification.population.read(base_folder)
    protocol = build_protocol(specification, n=people.n, k=people.k)
    if protocol.randomizer.chosen_epsilon is None or math.isinf(protocol.randomizer.local_epsilon):
        unsupported(f"Column {name} has no finite local epsilon, so its noise cannot be scaled.")
    return protocol


def _scaled(written: Mapping[str, Protocol], factor: float) -> dict[str, Protocol]:
    return {
        name: with_local_epsilon(protocol, protocol.randomizer.local_epsilon * factor)
        for name, protocol in written.items()
    }
