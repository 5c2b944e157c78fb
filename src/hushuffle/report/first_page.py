"""The first page of a report: the verdict, and the statement of an assessment, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hushuffle.model import Report, Scenario, Statement, Target, Translation, number
from hushuffle.model.statement import shown
from hushuffle.report.formatting import Figure, figure, plain


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One target as text: the limit, the figure (None: no figure, for the given `reason`), and pass or fail."""

    topic: str
    asked: str
    got: Figure | None
    reason: str
    word: str
    style: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict: all targets, one sentence that sums up the targets, and whether the status is "met"."""

    sentence: str
    met: bool
    targets: tuple[Judged, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table "What if" as text; `remark` is the reason if a figure is missing."""

    words: str
    central: str
    error: str
    remark: str


@dataclass(frozen=True, kw_only=True)
class FirstPage:
    """The statement of an assessment as text; `anonymity` has each question with its answer and a figure, if any."""

    claim: str
    unit: str
    threats: tuple[str, ...]
    assumptions: tuple[tuple[str, str], ...]
    cases: tuple[Case, ...]
    respondents: tuple[str, ...]
    anonymity: tuple[tuple[str, str, Figure | None], ...]
    unprotected: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    responsible: tuple[tuple[str, str], ...] = ()
    translations: tuple[Translation, ...] = ()

    @property
    def unwritten(self) -> str:
        """The missing keys of [statement] about who is responsible."""
        return ", ".join(name.lower().replace(" ", "_") for name, value in self.responsible if not value)


def verdict(report: Report) -> Verdict | None:
    """Return the verdict on all targets of a report; None without targets."""
    first = report.headline
    if first is None:
        return None
    met = first.status == "met"
    return Verdict(sentence=plain(first.sentence), met=met, targets=tuple(map(_judged, report.targets)))


def first_page(statement: Statement) -> FirstPage:
    """Return the statement as text."""
    return FirstPage(
        claim=plain(statement.claim),
        unit=plain(statement.unit),
        threats=tuple(map(plain, statement.threats)),
        assumptions=tuple((plain(row.sentence), plain(row.vouched)) for row in statement.assumptions),
        cases=_cases(statement.scenarios),
        respondents=tuple(map(plain, statement.respondents)),
        anonymity=tuple(
            (plain(row.question), plain(row.sentence), None if row.bound is None else figure(row.bound))
            for row in statement.anonymity
        ),
        unprotected=tuple(map(plain, statement.unprotected)),
        facts=tuple((plain(name), plain(value)) for name, value in statement.facts),
        responsible=tuple((name, plain(value)) for name, value in statement.responsible),
        translations=tuple(replace(row, sentences=tuple(map(plain, row.sentences))) for row in statement.translations),
    )


def _judged(target: Target) -> Judged:
    return Judged(
        topic=plain(target.topic),
        asked=f"{'must be ' if target.check else ''}{target.rule} {shown(target.asked)}",
        got=None if target.got is None else figure(target.got),
        reason=plain(target.reason),
        word=target.word,
        style="pass" if target.met else "fail",
    )


def _cases(scenarios: Sequence[Scenario]) -> tuple[Case, ...]:
    return tuple(
        Case(
            words=plain(row.case),
            central="" if row.central is None else figure(row.central).value.removesuffix(" nats"),
            error="" if row.standard_error is None else number(row.standard_error, up=True, digits=3),
            remark=plain(row.remark),
        )
        for row in scenarios
    )
