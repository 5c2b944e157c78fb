"""Assess a reach study (with Bloom filters): what its release reveals about people, and the accuracy of the reach."""

from __future__ import annotations

from pathlib import Path

from hushuffle.assessment.findings import Questions, central_bound
from hushuffle.assessment.reach import charts as reach_charts
from hushuffle.assessment.reach import privacy as reach_privacy
from hushuffle.assessment.reach import trials as reach_trials
from hushuffle.assessment.reach import warnings as reach_warnings
from hushuffle.assessment.reach.privacy import Design
from hushuffle.assessment.statement import statement
from hushuffle.assessment.targets import targets
from hushuffle.estimation.reach import WHANG
from hushuffle.model import Bound, Progress, Report, number
from hushuffle.specification import ReachPopulation, Specification


def assess_reach(
    specification: Specification,
    population: ReachPopulation,
    *,
    base_folder: Path,
    tell: Progress,
    software: tuple[tuple[str, str], ...],
) -> Report:
    tell("reading the audiences", 0.0)
    audiences = population.meet(base_folder)
    tell("looking for the flip probability", 0.1)
    p, delta = population.flips(specification.randomizer, specification.targets), specification.targets.delta
    design = Design(names=population.names, bits=population.bits, hashes=population.hashes, p=p, delta=delta)
    tell("what each adversary learns", 0.15)
    questions = Questions()
    findings = reach_privacy.findings(questions, design)
    privacy = questions.ask("privacy", "The table of guarantees by change", lambda: reach_privacy.table(design))
    tell("running the study", 0.25)
    figures = reach_trials.figures(
        audiences, design, run=specification.run, progress=lambda share: tell("running the study", 0.25 + 0.3 * share)
    )
    tell("what happens with other designs", 0.55)
    charts = reach_charts.charts(
        questions, audiences, design, progress=lambda share: tell("other designs", 0.55 + 0.45 * share)
    )
    written = specification.model_copy(
        update={"randomizer": specification.randomizer.model_copy(update={"p": design.p})}
    )
    target = specification.targets.standard_error
    relative = reach_trials.relative_error(figures)
    result = Report(
        title=specification.title or "Assessment of a reach study",
        question=describe(design),
        population=audiences.population,
        targets=targets(
            specification,
            people=audiences.population.n,
            findings=findings,
            unanswered=questions.unanswered,
            error=None if relative is None else Bound.exact(relative, unit=""),
        ),
        statement=statement(
            written,
            population=audiences.population,
            reveals=design.protocol.shuffler.reveals,
            findings=findings,
            unanswered=questions.unanswered,
            scenarios=(),
        ),
        findings=findings,
        utility=None,
        charts=charts,
        warnings=reach_warnings.concerns(
            design, audiences=audiences, figures=figures, specification=specification, central=central_bound(findings)
        ),
        specification=written.effective(),
        software=software,
        citations=(WHANG,),
        tables=(
            reach_trials.table(figures, design, target=target, confidence=specification.run.confidence),
            *(() if privacy is None else (privacy,)),
        ),
        unanswered=tuple(questions.unanswered),
    )
    tell("done", 1.0)
    return result


def describe(design: Design) -> str:
    hashes = "one hash function" if design.hashes == 1 else f"{design.hashes} hash functions"
    size = f"{design.bits:,} bits"
    filters = f"One Bloom filter of {size}" if design.filters == 1 else f"{design.filters} Bloom filters of {size} each"
    return (
        f"{filters} ({hashes}): every bit is flipped with probability "
        f"{number(design.p)}, and the columns of all filters are released in random order."
    )
