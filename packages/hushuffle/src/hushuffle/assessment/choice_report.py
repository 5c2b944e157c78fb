"""The report of `choose`: the deployments that meet the targets, and why other deployments do not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hushuffle.assessment.candidates import Candidate, Miss
from hushuffle.assessment.choose import Choices
from hushuffle.model import Cell, Report, Table
from hushuffle.model.report import software

_ORDER: Final = "by {}, Pareto-optimal rows first"
_LEARNED = {"guessing": "guessing", "reidentification": "naming the sender"}


def choice_report(choices: Choices) -> Report:
    """The report on the result of `choose`; row i describes the deployment in specification file i.

    >>> from hushuffle.assessment.choose import choose
    >>> wishes = {"population": {"n": 900, "k": 2}, "targets": {"delta": 1e-6, "standard_error": 0.03}}
    >>> choice_report(choose(wishes)).answers[0].partition(".")[0]
    '8 deployments meet all targets, and 5 of them are Pareto-optimal'
    """
    population = choices.population
    tables = [_met(choices)] if choices.rows else []
    return Report(
        title=choices.title,
        key="choice",
        question=f"{population.n:,} people, {choices.wishes.about(population)}{choices.again}. {choices.asked}",
        answers=tuple(_answers(choices)),
        tables=(*tables, *choices.repeated, *([_missed(choices.missed)] if choices.missed else [])),
        software=software("polars"),
    )


def specifications(choices: Choices) -> dict[str, str]:
    """Maps a file name to a specification (TOML), for every row of the report's table."""
    return {
        f"{place}-{row.mechanism.partition(' (')[0].replace(' ', '-')}.toml": row.specification
        for place, row in enumerate(choices.rows, start=1)
    }


def _answers(choices: Choices) -> Iterator[str]:
    rows = choices.rows
    best = sum(row.best for row in rows)
    if not rows:
        yield "Nothing meets all targets."
        yield from (advice.sentence for advice in choices.advice)
        return
    yield (
        f"{len(rows)} deployments meet all targets, and {best} of them are Pareto-optimal."
        if len(rows) > 1
        else "One deployment meets all targets."
    )
    yield f"First: {rows[0].sentence}."
    yield f"Order: {_ORDER.format(choices.order)}."
    if choices.rounds > 1:
        yield f"Central epsilon is that of all {choices.rounds:,} rounds together."
    yield from choices.wishes.notes
    yield from choices.wishes.remarks({f"row {place}": row.point.standard_error for place, row in enumerate(rows, 1)})


def _met(choices: Choices) -> Table:
    rows = choices.rows
    learned = [key for key in _LEARNED if any(target.key == key for row in rows for target in row.targets)]
    sent = ["messages"] if any(row.messages > 1 for row in rows) else []
    total = any(row.all_reports is not None for row in rows)
    local = ("local epsilon of one report", "local epsilon of all reports") if total else ("local epsilon",)
    own = ("deployment", "Pareto-optimal", *local, "central epsilon", choices.wishes.error_name)
    return Table(
        key="deployments",
        title="Deployments that meet all targets",
        caption=(
            f"Order: {_ORDER.format(choices.order)}. Criteria are central epsilon, local epsilon, error, messages, "
            "bits, dummies and shuffler. Central epsilon holds for the worst dataset; "
            f"{choices.wishes.error_words}. Messages and bits are averages for one person. Without a local epsilon, no "
            "protection remains if the shuffler fails."
        ),
        columns=(*own, *sent, "bits", "dummies", *(_LEARNED[key] for key in learned)),
        rows=tuple(_row(place, row, learned, sent=bool(sent)) for place, row in enumerate(rows, start=1)),
    )


def _row(place: int, row: Candidate, learned: list[str], *, sent: bool) -> tuple[Cell, ...]:
    point = row.point
    got = {target.key: target.got for target in row.targets}
    return (
        f"{place}. {row.mechanism}{''.join(f' = {name}' for name in row.also)}, {row.shuffler}",
        "yes" if row.best else "",
        "none" if math.isinf(point.local_epsilon) else point.local_epsilon,
        *([] if (total := row.all_reports) is None else ["none" if math.isinf(total.upper) else total]),
        point.central,
        point.standard_error,
        *([row.messages] if sent else []),
        row.bits,
        row.dummies,
        *(figure if (figure := got.get(key)) is not None else "" for key in learned),
    )


def _missed(missed: tuple[Miss, ...]) -> Table:
    behind: dict[tuple[str, str], list[str]] = {}
    for miss in missed:
        behind.setdefault((miss.search.mechanism, miss.reason), []).append(miss.search.behind)
    return Table(
        key="missed",
        title="Deployments that miss a target or limit",
        caption="The nearest first.",
        columns=("deployment", "why"),
        rows=tuple((f"{name}; {', '.join(shufflers)}", why) for (name, why), shufflers in behind.items()),
    )
