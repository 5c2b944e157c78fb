"""The facts of a deployment that a comparison shows in addition to its figures, by the name of the row."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hushuffle.assessment.assess import assess
from hushuffle.assessment.columns import assess_columns
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.messages import messages_of
from hushuffle.assessment.sums import assess_sum
from hushuffle.assessment.targets import GUESSES, strongest
from hushuffle.mechanisms.shufflers import Reveals, UniformShuffle
from hushuffle.model import Bound, Cell, Report
from hushuffle.specification import Collection, Specification, build_protocol
from hushuffle.specification.sums import SumSpecification

NO_FIGURE: Final = "no figure"
COLLUDING: Final = "central epsilon, {:,} colluders"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A compared deployment: file name, specification as tables, assessment, and `facts` by row name.

    `k` is the largest number of values of one answer.
    """

    name: str
    plain: Mapping[str, Any]
    report: Report
    facts: Mapping[str, Cell]
    k: int

    @property
    def figures(self) -> dict[str, Bound]:
        """By question; "guessing" is the success rate of the most successful adversary."""
        findings = self.report.findings
        figures = {one.question: one.figure for one in findings if one.question not in GUESSES}
        guessed = strongest(findings)
        return figures if guessed is None else {**figures, "guessing": guessed}


def of_reach(name: str, specification: Specification, folder: Path, colluders: int) -> Compared:
    """Compare a deployment whose people send no reports."""
    report = assess(_unrun(specification, colluders), base_folder=folder)
    shared = _shared(specification, report, colluders)
    return Compared(name=name, plain=specification.plain(), report=report, facts=shared, k=1)


def of_column(name: str, specification: Specification, folder: Path, colluders: int) -> Compared:
    report = assess(_unrun(specification, colluders), base_folder=folder)
    facts, population = _shared(specification, report, colluders), report.population
    assert population is not None
    k = len(population.labels)
    # Neither what a person sends nor the errors depend on the order of release.
    ordered = specification.shuffler.reveals is Reveals.NOISY_ORDER
    protocol = build_protocol(specification, n=population.n, k=k, shuffler=UniformShuffle() if ordered else None)
    bits, messages = protocol.randomizer.layout.bits, messages_of(protocol)
    facts |= _sent(bits, messages, times=specification.population.most * (specification.rounds or 1))
    answer, refused = specification.population.answer, any(row.question == "mean" for row in report.unanswered)
    facts |= answer.facts(None if refused else answer.error(protocol), population.n)
    return Compared(name=name, plain=specification.plain(), report=report, facts=facts, k=k)


def of_columns(name: str, collection: Collection, folder: Path, colluders: int) -> Compared:
    alone = {each: _unrun(one, colluders) for each, one in collection.columns.items()}
    report = assess_columns(replace(collection, columns=alone), base_folder=folder)
    whole, rows = collection.whole, next(table for table in report.tables if table.key == "columns").rows
    people, sizes = ([int(str(row[place])) for row in rows] for place in (1, 2))
    errors = [row[-1] for row in rows]
    largest = max((error for error in errors if isinstance(error, float)), default=0.0)
    estimable = all(isinstance(error, float) for error in errors)
    shapes = zip(collection.columns.values(), people, sizes, strict=True)
    protocols = [build_protocol(column, n=n, k=k) for column, n, k in shapes]
    sent = [messages_of(protocol) for protocol in protocols]
    bits = sum(each * protocol.randomizer.layout.bits for each, protocol in zip(sent, protocols, strict=True))
    mechanisms = dict.fromkeys(_mechanism(one) for one in collection.columns.values())
    facts: dict[str, Cell] = {
        **_shared(whole, report, colluders),
        "mechanism": f"{len(rows):,} columns: {', '.join(mechanisms)}",
        "standard error": Bound.exact(largest, unit="") if estimable else NO_FIGURE,
        "reports of each person": f"{len(rows) * collection.rounds:,}",
        "messages of each person": f"{sum(sent) * collection.rounds:.4g}",
        "bits of each person": f"{bits * collection.rounds:.4g}",
    }
    plain = tomllib.loads(collection.effective())
    plain["columns"] = {column["name"]: column for column in plain["columns"]}
    return Compared(name=name, plain=plain, report=report, facts=facts, k=max(sizes))


def of_sum(name: str, specification: SumSpecification, folder: Path, colluders: int) -> Compared:
    report = assess_sum(specification, base_folder=folder)
    assert report.population is not None
    protocol = specification.build(report.population.n)
    facts: dict[str, Cell] = {
        "mechanism": "sum by several messages",
        "shuffler": "uniform",
        "delta": f"{specification.delta:g}",
        **_rounds(specification.times, Exposure(rounds=specification.times)),
        **specification.asked.answer.facts(protocol.standard_error() / protocol.n, protocol.n),
        **_sent(protocol.bits_per_message, protocol.messages, times=specification.times),
    }
    if colluders:
        spared = colluders <= protocol.n - protocol.needed
        facts[COLLUDING.format(colluders)] = report.findings[0].bound if spared else "no guarantee"
    return Compared(name=name, plain=specification.plain(), report=report, facts=facts, k=protocol.grid.levels)


def _unrun(specification: Specification, colluders: int) -> Specification:
    """Return the specification without runs on the data, and with this number of colluders (0: its own)."""
    changed: dict[str, Any] = {"run": specification.run.model_copy(update={"repetitions": 0})}
    if colluders:
        changed["statement"] = specification.statement.model_copy(update={"colluders": colluders})
    return specification.model_copy(update=changed)


def _shared(specification: Specification, report: Report, colluders: int) -> dict[str, Cell]:
    error: Cell = NO_FIGURE
    if report.utility is not None:
        error = Bound.exact(float(report.utility.predicted.max()), unit="")
    facts: dict[str, Cell] = {
        "mechanism": _mechanism(specification),
        "shuffler": specification.shuffler.kind,
        "delta": f"{specification.targets.delta:g}",
        **_rounds(specification.rounds or 1, Exposure.of(specification)),
        "standard error": error,
    }
    if colluders and report.statement is not None:
        central = next((one.central for one in report.statement.scenarios if one.key == "colluders"), None)
        facts[COLLUDING.format(colluders)] = NO_FIGURE if central is None else central
    return facts


def _mechanism(specification: Specification) -> str:
    given = specification.randomizer.model_dump(exclude_none=True)
    words = [word for key, word in given.items() if isinstance(word, str) and key not in ("kind", "file")]
    return " ".join([specification.randomizer.kind, *words])


def _rounds(rounds: int, exposure: Exposure) -> dict[str, Cell]:
    """The number of rounds, and whether the reports of several rounds are fresh."""
    if rounds == 1:
        return {"rounds": "1", "reports": "one round"}
    reports = f"memoized, value {exposure.stays}" if exposure.memoised else "fresh in every round"
    return {"rounds": f"{rounds:,}", "reports": reports}


def _sent(bits: float, messages: float, *, times: int) -> dict[str, Cell]:
    """What a person sends in all rounds together: `times` reports, their messages and bits."""
    return {
        "bits of a report": f"{bits:.4g}",
        "reports of each person": f"{times:,}",
        "messages of each person": f"{times * messages:.4g}",
        "bits of each person": f"{times * bits * messages:.4g}",
    }
