"""Assess a deployment of one column: what each adversary learns, and the predicted and the measured error."""

from __future__ import annotations

from pathlib import Path

from hushuffle.assessment import charts as curves
from hushuffle.assessment import findings, trials, warnings
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.memoised import change, kept_or_fresh
from hushuffle.assessment.messages import adds_dummies, dummy_table, message_table, sends_more
from hushuffle.assessment.order.report import OrderReport, order_report
from hushuffle.assessment.reach.study import assess_reach
from hushuffle.assessment.scenarios import scenarios
from hushuffle.assessment.statement import statement
from hushuffle.assessment.targets import targets
from hushuffle.model import Bound, Progress, Report, silent
from hushuffle.model.report import software
from hushuffle.randomness import reproducible, secure
from hushuffle.specification import ReachPopulation, Specification, build_adversaries, build_protocol
from hushuffle.specification.order_setup import arranged


def assess(specification: Specification, *, base_folder: Path = Path(), progress: Progress | None = None) -> Report:
    """Return the report on one deployment; a question without an answer becomes a row with the reason.

    Relative paths of data are resolved against `base_folder`. Raises `SpecificationError` if the specification does not
    fit the data (for example, a probability below 1/k), and `DataError` if the data cannot be used.

    >>> from hushuffle.specification import parse
    >>> result = assess(parse('''
    ...     population = { n = 900, k = 3 }
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6 }
    ... '''))
    >>> print(result.findings[0].question, result.findings[0].bound)
    central-dp 0.1381 to 0.1383 nats (certified bracket)
    """
    tell = progress or silent
    if isinstance(specification.population, ReachPopulation):
        return assess_reach(
            specification,
            specification.population,
            base_folder=base_folder,
            tell=tell,
            software=software("polars", "cryptography"),
        )
    tell("reading the data", 0.0)
    # The same randomness as for the rest of the run chooses which records of a person are kept.
    rng = secure() if specification.run.seed == "secure" else reproducible(int(specification.run.seed))
    people = specification.population.read(base_folder, rng=rng)
    arrangement = arranged(specification, people, base_folder)
    shuffler = None if arrangement is None else arrangement.shuffler
    protocol = build_protocol(specification, n=people.n, k=people.k, shuffler=shuffler)
    tell("what each adversary learns", 0.1)
    exposure = Exposure.of(specification, k=people.k)
    questions, delta = findings.Questions(), specification.targets.delta
    if arrangement is None:
        adversaries = build_adversaries(specification)
        guessers, linking = adversaries.guessers, adversaries.linker
        rows = findings.learned(questions, protocol, guessers=guessers, linking=linking, delta=delta, exposure=exposure)
        order = OrderReport(findings=rows + change(questions, protocol, exposure))
    else:
        order = order_report(
            questions,
            specification,
            protocol,
            arrangement,
            people=people,
            base_folder=base_folder,
            done=lambda share: tell("what each adversary learns", 0.1 + 0.2 * share),
        )
    central = findings.central_bound(order.findings)
    tell("what happens at other sizes", 0.3)
    charts = (
        *order.charts,
        *curves.privacy_charts(questions, protocol, delta=delta, central=central, exposure=exposure),
        *(curves.guessing_charts(questions, protocol) if exposure.total == 1 else ()),
    )
    tell("what if", 0.55)
    cases = scenarios(
        [protocol], delta=delta, colluders=specification.statement.colluders, exposure=exposure, planned=central
    )
    comparison = kept_or_fresh(questions, protocol, delta=delta, exposure=exposure)
    tell("running the collection", 0.6)
    utility = questions.ask(
        "accuracy",
        "The accuracy of the answers",
        lambda: trials.utility(
            protocol,
            specification,
            values=people.values,
            progress=lambda share: tell("running the collection", 0.6 + 0.4 * share),
        ),
    )
    answer = specification.population.answer
    mean = questions.ask("mean", answer.topic, lambda: answer.error(protocol))
    concerns = warnings.concerns(
        protocol, people=people, specification=specification, findings=order.findings, utility=utility
    )
    repeated = warnings.about_rows([specification.population], base_folder=base_folder)
    error = None if utility is None else Bound.exact(trials.worst_error(protocol), unit="")
    tell("done", 1.0)
    return Report(
        title=specification.title or "Assessment of a shuffled collection",
        question=f"{protocol.describe(reports_per_person=exposure.reports)} {answer.words(mean)}".rstrip(),
        population=people.population,
        targets=targets(
            specification,
            people=people.population.least_people,
            findings=order.findings,
            unanswered=questions.unanswered,
            error=error,
        ),
        statement=statement(
            specification,
            population=people.population,
            reveals=protocol.shuffler.reveals,
            findings=order.findings,
            unanswered=questions.unanswered,
            scenarios=cases,
        ),
        findings=order.findings,
        utility=utility,
        charts=charts,
        warnings=(*order.warnings, *repeated, *concerns),
        specification=specification.effective(),
        software=software("polars", "cryptography"),
        citations=protocol.randomizer.sources,
        tables=(
            *order.tables,
            *comparison,
            *((message_table(protocol),) if sends_more(protocol) else ()),
            *((dummy_table(protocol, delta=specification.targets.delta),) if adds_dummies(protocol) else ()),
            *(() if mean is None else answer.tables(mean)),
        ),
        maps=order.maps,
        unanswered=tuple(questions.unanswered),
    )
