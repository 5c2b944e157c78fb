"""Compare deployments side by side: the figures of each, the targets that it meets, and differing settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle.assessment.assess import assess
from hushuffle.assessment.choice_report import useless
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.sums import assess_sum
from hushuffle.assessment.targets import GUESSES, strongest
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.model import Bound, Cell, NumberGrid, Progress, Report, Table, Target, silent
from hushuffle.model.report import software
from hushuffle.specification import ReachPopulation, Specification, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.sums import SumSpecification, load_deployment

_LAST: Final = (
    "standard error",
    "bits of a report",
    "reports of each person",
    "messages of each person",
    "bits of each person",
)
_NONE: Final = "no figure"
_DIFFERS: Final = "differs"
_ASKED: Final = (
    ("central-dp", "central epsilon"),
    ("local-dp", "local epsilon"),
    ("guessing", "guessing an answer"),
    ("re-identification", "naming a sender"),
)
_OF_NUMBERS: Final = ("numbers", "standard error of the mean", "standard error of the sum")
_COLLUDING: Final = "central epsilon, {:,} colluders"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A compared deployment: file name, specification as tables, assessment, and `facts` by row name."""

    name: str
    plain: Mapping[str, Any]
    report: Report
    facts: Mapping[str, Cell]

    @property
    def figures(self) -> dict[str, Bound]:
        """By question; "guessing" is the success rate of the most successful adversary."""
        findings = self.report.findings
        figures = {one.question: one.figure for one in findings if one.question not in GUESSES}
        guessed = strongest(findings)
        return figures if guessed is None else {**figures, "guessing": guessed}


def compare(files: Sequence[str | os.PathLike[str]], *, progress: Progress | None = None) -> tuple[Compared, ...]:
    """Assess several deployments, each of one column or of one sum; errors are predicted, collections are not run.

    If a sum is specified with a number of colluders, the other deployments are assessed with the same number.
    """
    paths = [Path(file) for file in files]
    _checks.integer("len(files)", len(paths), low=2)
    read = [(path, _one(path)) for path in paths]
    tell, names = progress or silent, _names(paths)
    sums = [(path, one) for path, one in read if isinstance(one, SumSpecification)]
    sizes = {path: one.asked.read(path.parent).n for path, one in sums}
    colluders = max((sizes[path] - one.build(sizes[path]).needed for path, one in sums), default=0)
    compared = []
    for place, (path, specification) in enumerate(read):
        tell(f"assessing {names[place]}", place / len(read))
        if isinstance(specification, SumSpecification):
            compared.append(_of_sum(names[place], specification, path.parent, colluders))
        else:
            compared.append(_of_column(names[place], specification, path.parent, colluders))
    return tuple(compared)


def _of_column(name: str, specification: Specification, folder: Path, colluders: int) -> Compared:
    changed: dict[str, Any] = {"run": specification.run.model_copy(update={"repetitions": 0})}
    if colluders:
        changed["statement"] = specification.statement.model_copy(update={"colluders": colluders})
    report = assess(specification.model_copy(update=changed), base_folder=folder)
    error = _NONE if report.utility is None else Bound.exact(float(report.utility.predicted.max()), unit="")
    facts: dict[str, Cell] = {
        "mechanism": _mechanism(specification),
        "shuffler": specification.shuffler.kind,
        "delta": f"{specification.targets.delta:g}",
        **_rounds(specification.rounds or 1, Exposure.of(specification)),
        "standard error": error,
    }
    population, of_mean = report.population, next((one for one in report.tables if one.key == "mean-of-numbers"), None)
    if colluders and report.statement is not None:
        central = next((one.central for one in report.statement.scenarios if one.key == "colluders"), None)
        facts[_COLLUDING.format(colluders)] = _NONE if central is None else central
    if population is not None and not isinstance(specification.population, ReachPopulation):
        bits, messages = specification.randomizer.build(len(population.labels)).layout.bits, 1.0
        if specification.shuffler.reveals is not Reveals.NOISY_ORDER:
            protocol = build_protocol(specification, n=population.n, k=len(population.labels))
            messages = 1 + protocol.shuffler.own_messages
        facts |= _sent(bits, messages, times=specification.population.most * (specification.rounds or 1))
        if specification.population.grid is not None:
            facts["numbers"] = _numbers(specification.population.grid)
        if of_mean is not None:
            mean_error = of_mean.rows[0][1]
            assert isinstance(mean_error, float)
            facts |= _errors(mean_error, population.n)
    return Compared(name=name, plain=specification.plain(), report=report, facts=facts)


def _of_sum(name: str, specification: SumSpecification, folder: Path, colluders: int) -> Compared:
    report = assess_sum(specification, base_folder=folder)
    assert report.population is not None
    protocol, grid = specification.build(report.population.n), specification.asked.grid
    assert grid is not None  # ensured by the validation of the specification
    facts: dict[str, Cell] = {
        "mechanism": "sum by several messages",
        "shuffler": "uniform",
        "delta": f"{specification.delta:g}",
        "numbers": _numbers(grid),
        **_rounds(specification.times, Exposure(rounds=specification.times)),
        **_errors(protocol.standard_error() / protocol.n, protocol.n),
        **_sent(protocol.bits_per_message, protocol.messages, times=specification.times),
    }
    if colluders:
        spared = colluders <= protocol.n - protocol.needed
        facts[_COLLUDING.format(colluders)] = report.findings[0].bound if spared else "no guarantee"
    return Compared(name=name, plain=specification.plain(), report=report, facts=facts)


def _rounds(rounds: int, exposure: Exposure) -> dict[str, Cell]:
    """The number of rounds, and whether the reports of several rounds are fresh."""
    if rounds == 1:
        return {"rounds": "1", "reports": "one round"}
    reports = f"memoized, value {exposure.stays}" if exposure.memoised else "fresh in every round"
    return {"rounds": f"{rounds:,}", "reports": reports}


def _numbers(grid: NumberGrid) -> str:
    return f"{grid.low:g} to {grid.high:g}, {grid.levels:,} levels"


def _sent(bits: float, messages: float, *, times: int) -> dict[str, Cell]:
    """What a person sends in all rounds together: `times` reports, their messages and bits."""
    return {
        "bits of a report": f"{bits:.4g}",
        "reports of each person": f"{times:,}",
        "messages of each person": f"{times * messages:.4g}",
        "bits of each person": f"{times * bits * messages:.4g}",
    }


def _errors(of_mean: float, n: int) -> dict[str, Cell]:
    """Standard errors of the mean and the sum, in the unit of the numbers."""
    errors = {"mean": of_mean, "sum": of_mean * n}
    return {
        f"standard error of the {name}": Bound(lower=0.0, upper=error, kind="upper", unit="")
        for name, error in errors.items()
    }


def comparison_report(compared: Sequence[Compared]) -> Report:
    """A table of figures, and a table of the keys in which the specifications differ."""
    return Report(
        title="Deployments compared",
        key="comparison",
        question=f"Compared: {', '.join(one.name for one in compared)}.",
        answers=tuple(
            " ".join([f"{case.name}: {_verdict(case.report.targets)}", case.report.question, *_useless(case)])
            for case in compared
        ),
        tables=(
            _table("figures", "What each gives", _gives(compared), compared, caption=_caption(compared)),
            _table("targets", "Targets", _targets(compared), compared),
            *_changes(compared),
        ),
        citations=tuple(dict.fromkeys(source for one in compared for source in one.report.sources)),
        software=software("polars"),
    )


def _useless(compared: Compared) -> Iterator[str]:
    population, error = compared.report.population, compared.facts.get("standard error")
    if population is not None and isinstance(error, Bound):
        yield from useless({"a share": error.upper}, len(population.labels))


def _one(path: Path) -> Specification | SumSpecification:
    collection = load_deployment(path)
    if isinstance(collection, SumSpecification):
        return collection
    if collection.several:
        hint = "Compare specifications of one column each. For several columns together, run assess."
        unfit("columns", "must be one column in a comparison", f"{len(collection.columns)}", hint, where=str(path))
    return collection.columns[""]


def _names(paths: Sequence[Path]) -> list[str]:
    names = [path.stem for path in paths]
    return names if len(set(names)) == len(names) else [f"{place}. {name}" for place, name in enumerate(names, start=1)]


def _verdict(targets: Sequence[Target]) -> str:
    missed = [target.topic for target in targets if not target.met]
    return f"not met: {'; '.join(missed)}." if missed else "all targets met."


def _caption(compared: Sequence[Compared]) -> str:
    if not any("numbers" in one.facts for one in compared):
        return ""
    return (
        "Colluders reveal their own reports to the analyst. Errors of mean and sum are standard errors over all "
        "randomness, in the unit of the numbers, for the worst numbers and if all people answer. The standard error of "
        "the other table rows is the error of the share of one level."
    )


def _table(
    key: str, title: str, rows: Iterator[tuple[str, list[Cell]]], compared: Sequence[Compared], *, caption: str = ""
) -> Table:
    """One column for each deployment; the last column marks rows whose values differ."""
    return Table(
        key=key,
        title=title,
        caption=caption,
        columns=("", *(one.name for one in compared), "differs"),
        rows=tuple((name, *cells, _DIFFERS if _different(cells) else "") for name, cells in rows),
    )


def _different(cells: Sequence[Any]) -> bool:
    return any(cell != cells[0] for cell in cells)


def _gives(compared: Sequence[Compared]) -> Iterator[tuple[str, list[Cell]]]:
    def facts(row: str) -> tuple[str, list[Cell]]:
        return row, [one.facts.get(row, _NONE) for one in compared]

    yield facts("mechanism")
    yield facts("shuffler")
    yield "people", [f"{one.report.population.n:,}" if one.report.population else _NONE for one in compared]
    yield facts("delta")
    yield facts("rounds")
    if any(one.facts.get("rounds") != "1" for one in compared):
        yield facts("reports")
    for question, words in _ASKED:
        yield words, [one.figures.get(question, _NONE) for one in compared]
    beside = [row for one in compared for row in one.facts if row in _OF_NUMBERS or row.startswith("central epsilon")]
    yield from map(facts, sorted(set(beside)))
    for row in _LAST:
        yield facts(row)


def _mechanism(specification: Specification) -> str:
    given = specification.randomizer.model_dump(exclude_none=True)
    words = [word for key, word in given.items() if isinstance(word, str) and key not in ("kind", "file")]
    return " ".join([specification.randomizer.kind, *words])


def _targets(compared: Sequence[Compared]) -> Iterator[tuple[str, list[Cell]]]:
    keys = dict.fromkeys(target.key for one in compared for target in one.report.targets)
    for key in keys:
        row = [next((target for target in one.report.targets if target.key == key), None) for one in compared]
        topic = next(target.topic for target in row if target is not None)
        yield topic.partition(",")[0], [_held(target) for target in row]


def _held(target: Target | None) -> str:
    return "not asked" if target is None else f"{target.word} ({target.rule} {target.asked:.4g})"


def _changes(compared: Sequence[Compared]) -> list[Table]:
    """The specification keys whose values differ; no table if the specifications are equal."""
    plain = [dict(_flat(one.plain)) for one in compared]
    keys = sorted({key for one in plain for key in one})
    rows = [
        (key, *(str(one.get(key, "")) for one in plain)) for key in keys if _different([one.get(key) for one in plain])
    ]
    if not rows:
        return []
    names = tuple(one.name for one in compared)
    title = "What the specifications say differently"
    return [Table(key="specifications", title=title, caption="", columns=("key", *names), rows=tuple(rows))]


def _flat(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
