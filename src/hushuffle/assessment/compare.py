"""Several deployments side by side: what each gives, what differs, and which targets each meets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle.assessment.assess import assess
from hushuffle.assessment.targets import GUESSES, strongest
from hushuffle.model import Bound, Cell, Progress, Report, Table, Target, silent
from hushuffle.model.report import software
from hushuffle.specification import ReachPopulation, Specification, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.reading import load_collection

_NONE: Final = "no figure"
_DIFFERS: Final = "differs"
_ASKED: Final = (
    ("central-dp", "central epsilon"),
    ("local-dp", "local epsilon"),
    ("guessing", "guessing an answer"),
    ("re-identification", "naming a sender"),
)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One deployment: the name of its file, its specification, and its assessment."""

    name: str
    specification: Specification
    report: Report

    @property
    def bits(self) -> float | None:
        """The bits of one report; None in a reach study."""
        population = self.report.population
        if population is None or isinstance(self.specification.population, ReachPopulation):
            return None
        return self.specification.randomizer.build(len(population.labels)).layout.bits

    @property
    def messages(self) -> float | None:
        """How many messages a person sends; None in a reach study."""
        population, specification = self.report.population, self.specification
        if population is None or isinstance(specification.population, ReachPopulation):
            return None
        if specification.shuffler.kind == "mallows":
            return 1.0
        protocol = build_protocol(specification, n=population.n, k=len(population.labels))
        return 1 + protocol.shuffler.own_messages

    @property
    def figures(self) -> dict[str, Bound]:
        """What is learned, by question; "guessing" is that of the strongest adversary who guesses."""
        findings = self.report.findings
        found = {one.question: one.figure for one in findings if one.question not in GUESSES}
        guessed = strongest(findings)
        return found if guessed is None else {**found, "guessing": guessed}


def compare(files: Sequence[str | os.PathLike[str]], *, progress: Progress | None = None) -> tuple[Compared, ...]:
    """Assess several deployments, each of one column; errors are predicted, the collections are not run.

    Args:
        files: the names of two TOML files or more.
        progress: told what is going on.

    Raises:
        InvalidInputError: fewer than two files.
        SpecificationError: a file is wrong, or has several columns.
        DataError, MissingDependencyError: the data cannot be used.
    """
    paths = [Path(file) for file in files]
    _checks.integer("len(files)", len(paths), low=2)
    read = [(path, _one(path)) for path in paths]
    tell, names, found = progress or silent, _names(paths), []
    for place, (path, specification) in enumerate(read):
        tell(f"assessing {names[place]}", place / len(read))
        run = specification.run.model_copy(update={"repetitions": 0})
        made = assess(specification.model_copy(update={"run": run}), base_folder=path.parent)
        found.append(Compared(name=names[place], specification=specification, report=made))
    return tuple(found)


def comparison_report(compared: Sequence[Compared]) -> Report:
    """Return one table of what the deployments give, and one of what their specifications say differently."""
    return Report(
        title="Deployments compared",
        key="comparison",
        question=f"Compared: {', '.join(one.name for one in compared)}.",
        answers=tuple(f"{one.name}: {_verdict(one.report.targets)} {one.report.question}" for one in compared),
        tables=(
            _table("figures", "What each gives", _gives(compared), compared),
            _table("targets", "Targets", _targets(compared), compared),
            *_changes(compared),
        ),
        citations=tuple(dict.fromkeys(source for one in compared for source in one.report.sources)),
        software=software("polars"),
    )


def _one(path: Path) -> Specification:
    collection = load_collection(path)
    if collection.several:
        hint = "Compare files of one column; assess says what several come to together."
        unfit("columns", "must not be several in a comparison", f"{len(collection.columns)}", hint, where=str(path))
    return collection.columns[""]


def _names(paths: Sequence[Path]) -> list[str]:
    """Return short names that tell the files apart."""
    names = [path.stem for path in paths]
    return names if len(set(names)) == len(names) else [f"{place}. {name}" for place, name in enumerate(names, start=1)]


def _verdict(targets: Sequence[Target]) -> str:
    missed = [target.topic for target in targets if not target.met]
    return f"not met: {'; '.join(missed)}." if missed else "all targets met."


def _table(key: str, title: str, rows: Iterator[tuple[str, list[Cell]]], compared: Sequence[Compared]) -> Table:
    """Return a table with a column for each deployment, whose last column marks the rows that differ."""
    return Table(
        key=key,
        title=title,
        caption="",
        columns=("", *(one.name for one in compared), "differs"),
        rows=tuple((name, *cells, _DIFFERS if _different(cells) else "") for name, cells in rows),
    )


def _different(cells: Sequence[Any]) -> bool:
    return any(cell != cells[0] for cell in cells)


def _gives(compared: Sequence[Compared]) -> Iterator[tuple[str, list[Cell]]]:
    yield "mechanism", [_mechanism(one.specification) for one in compared]
    yield "shuffler", [one.specification.shuffler.kind for one in compared]
    yield "people", [f"{one.report.population.n:,}" if one.report.population else _NONE for one in compared]
    for question, words in _ASKED:
        yield words, [one.figures.get(question, _NONE) for one in compared]
    yield "standard error", [_error(one.report) for one in compared]
    yield "bits of a report", [_NONE if one.bits is None else f"{one.bits:.4g}" for one in compared]
    yield "messages of each person", [_NONE if one.messages is None else f"{one.messages:.4g}" for one in compared]


def _mechanism(specification: Specification) -> str:
    given = specification.randomizer.model_dump(exclude_none=True)
    words = [word for key, word in given.items() if isinstance(word, str) and key not in ("kind", "file")]
    return " ".join([specification.randomizer.kind, *words])


def _error(report: Report) -> Cell:
    return _NONE if report.utility is None else Bound.exact(float(report.utility.predicted.max()), unit="")


def _targets(compared: Sequence[Compared]) -> Iterator[tuple[str, list[Cell]]]:
    keys = dict.fromkeys(target.key for one in compared for target in one.report.targets)
    for key in keys:
        found = [next((target for target in one.report.targets if target.key == key), None) for one in compared]
        topic = next(target.topic for target in found if target is not None)
        yield topic.partition(",")[0], [_held(target) for target in found]


def _held(target: Target | None) -> str:
    return "not asked" if target is None else f"{target.word} ({target.rule} {target.asked:.4g})"


def _changes(compared: Sequence[Compared]) -> list[Table]:
    """Return the keys of the specifications whose values differ, as a table, if there are any."""
    plain = [dict(_flat(one.specification.plain())) for one in compared]
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
