"""Compare deployments side by side: the figures of each, the targets that it meets, and differing settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle.assessment.candidates import useless
from hushuffle.assessment.chapters import NO_FIGURE, Compared
from hushuffle.assessment.deployment import opened
from hushuffle.model import Cell, Progress, Report, Table, Target, as_bound, silent
from hushuffle.model.report import software

_LAST: Final = (
    "standard error",
    "bits of a report",
    "reports of each person",
    "messages of each person",
    "bits of each person",
)
_DIFFERS: Final = "differs"
_ASKED: Final = (
    ("central-dp", "central epsilon"),
    ("local-dp", "local epsilon"),
    ("guessing", "guessing an answer"),
    ("re-identification", "naming a sender"),
)
_NUMBERS: Final = (
    "Colluders reveal their own reports to the analyst. Errors of mean and sum are standard errors over all "
    "randomness, in the unit of the numbers, for the worst numbers and if all people answer. The standard error of "
    "the other table rows is the error of the share of one level."
)
_PLACED: Final = ("mechanism", "shuffler", "delta", "rounds", "reports", *_LAST)
"""The facts whose rows have a fixed place; others follow the figures."""


def compare(files: Sequence[str | os.PathLike[str]], *, progress: Progress | None = None) -> tuple[Compared, ...]:
    """Assess several deployments; errors are predicted, collections are not run.

    If a sum is specified with a number of colluders, the other deployments are assessed with the same number.
    """
    paths = [Path(file) for file in files]
    _checks.integer("len(files)", len(paths), low=2)
    deployments = [opened(path) for path in paths]
    tell, names = progress or silent, [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [f"{place}. {name}" for place, name in enumerate(names, start=1)]
    colluders = max(deployment.colluders() for deployment in deployments)
    compared = []
    for place, deployment in enumerate(deployments):
        tell(f"assessing {names[place]}", place / len(paths))
        compared.append(deployment.compared(names[place], colluders))
    return tuple(compared)


def comparison_report(compared: Sequence[Compared]) -> Report:
    """A table of figures, and a table of the keys in which the specifications differ."""
    of_numbers = any("numbers" in one.facts for one in compared)
    return Report(
        title="Deployments compared",
        key="comparison",
        question=f"Compared: {', '.join(one.name for one in compared)}.",
        answers=tuple(
            " ".join([f"{case.name}: {_verdict(case.report.targets)}", case.report.question, *_useless(case)])
            for case in compared
        ),
        tables=(
            _table(
                "figures",
                "Figures of each deployment",
                _gives(compared),
                compared,
                caption=_NUMBERS if of_numbers else "",
            ),
            _table("targets", "Targets", _targets(compared), compared),
            *_changes(compared),
        ),
        citations=tuple(dict.fromkeys(source for one in compared for source in one.report.sources)),
        software=software("polars"),
    )


def _useless(compared: Compared) -> Iterator[str]:
    if error := as_bound(compared.facts.get("standard error")):
        yield from useless({"a share": error.upper}, compared.k)


def _verdict(targets: Sequence[Target]) -> str:
    missed = [target.topic for target in targets if not target.met]
    return f"not met: {'; '.join(missed)}." if missed else "all targets met."


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
        return row, [one.facts.get(row, NO_FIGURE) for one in compared]

    yield facts("mechanism")
    yield facts("shuffler")
    yield "people", [f"{one.report.population.n:,}" if one.report.population else NO_FIGURE for one in compared]
    yield facts("delta")
    yield facts("rounds")
    if any(one.facts.get("rounds") != "1" for one in compared):
        yield facts("reports")
    for question, words in _ASKED:
        yield words, [one.figures.get(question, NO_FIGURE) for one in compared]
    beside = [row for one in compared for row in one.facts if row not in _PLACED]
    yield from map(facts, sorted(set(beside)))
    for row in _LAST:
        yield facts(row)


def _targets(compared: Sequence[Compared]) -> Iterator[tuple[str, list[Cell]]]:
    keys = dict.fromkeys(target.key for one in compared for target in one.report.targets)
    for key in keys:
        row = [next((target for target in one.report.targets if target.key == key), None) for one in compared]
        topic = next(target.topic for target in row if target is not None)
        held = (target and f"{target.word} ({target.rule} {target.asked:.4g})" for target in row)
        yield topic.partition(",")[0], [cell or "not asked" for cell in held]


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
    title = "Different keys of the specifications"
    return [Table(key="specifications", title=title, caption="", columns=("key", *names), rows=tuple(rows))]


def _flat(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
