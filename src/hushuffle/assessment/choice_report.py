"""What was chosen among, as a report: the deployments that meet the targets, and why others do not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hushuffle.assessment.candidates import Candidate, Miss
from hushuffle.assessment.choose import Choices
from hushuffle.model import Cell, Report, Table
from hushuffle.model.report import software

_COLUMNS = ("deployment", "best", "local epsilon", "central epsilon", "standard error")
_LEARNED = {"guessing": "guessing", "reidentification": "naming the sender"}


def choice_report(choices: Choices) -> Report:
    """Return the report of a choice; rows have the numbers of their specifications.

    >>> from hushuffle.assessment.choose import choose
    >>> wishes = {"population": {"n": 900, "k": 2}, "targets": {"delta": 1e-6, "standard_error": 0.03}}
    >>> choice_report(choose(wishes)).answers[0].partition(".")[0]
    '11 deployments meet all targets, and 6 of them are beaten by no other'
    """
    population = choices.population
    tables = [_met(choices.rows)] if choices.rows else []
    return Report(
        title=choices.title,
        key="choice",
        question=f"{population.n:,} people, {len(population.labels):,} values. {choices.asked}",
        answers=tuple(_answers(choices)),
        tables=(*tables, *([_missed(choices.missed)] if choices.missed else [])),
        software=software("polars"),
    )


def specifications(choices: Choices) -> dict[str, str]:
    """Return the specification of each row (TOML) by the name of its file."""
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
        f"{len(rows)} deployments meet all targets, and {best} of them are beaten by no other."
        if len(rows) > 1
        else "One deployment meets all targets."
    )
    yield f"First: {rows[0].sentence}."


def _met(rows: tuple[Candidate, ...]) -> Table:
    learned = [key for key in _LEARNED if any(target.key == key for target in rows[0].targets)]
    several = ["messages"] if any(row.messages > 1 for row in rows) else []
    return Table(
        key="deployments",
        title="Deployments that meet all targets",
        caption=(
            "Best are those that no other beats in all of central epsilon, local epsilon, error, messages, bits, "
            "dummies and shuffler; then by central epsilon. Central epsilon is that of the worst dataset, the error "
            "that of a share at the worst true share; messages and bits are those of one person, on average. With no "
            "local epsilon nothing is left if the shuffler fails."
        ),
        columns=(*_COLUMNS, *several, "bits", "dummies", *(_LEARNED[key] for key in learned)),
        rows=tuple(_row(place, row, learned, several=bool(several)) for place, row in enumerate(rows, start=1)),
    )


def _row(place: int, row: Candidate, learned: list[str], *, several: bool) -> tuple[Cell, ...]:
    point = row.point
    got = {target.key: target.got for target in row.targets}
    return (
        f"{place}. {row.mechanism}{''.join(f' = {name}' for name in row.also)}, {row.shuffler}",
        "yes" if row.best else "",
        "none" if math.isinf(point.local_epsilon) else point.local_epsilon,
        point.central,
        point.standard_error,
        *([row.messages] if several else []),
        row.bits,
        row.dummies,
        *(figure if (figure := got[key]) is not None else "" for key in learned),
    )


def _missed(missed: tuple[Miss, ...]) -> Table:
    behind: dict[tuple[str, str], list[str]] = {}
    for miss in missed:
        behind.setdefault((miss.search.mechanism, miss.reason), []).append(miss.search.behind)
    return Table(
        key="missed",
        title="What does not meet them",
        caption="The nearest first.",
        columns=("deployment", "why"),
        rows=tuple((f"{name}; {', '.join(shufflers)}", why) for (name, why), shufflers in behind.items()),
    )
