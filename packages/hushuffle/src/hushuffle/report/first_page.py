"""The first page of a report: the verdict, and the statement of an assessment, as text and as Markdown (`dpia.md`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hushuffle.model import Report, Statement, Translation, number
from hushuffle.model.statement import shown
from hushuffle.report.formatting import BoundText, figure, plain


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One target as text: the limit, the figure (None: no figure, for the given `reason`), and pass or fail."""

    topic: str
    asked: str
    got: BoundText | None
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
class WhatIfRow:
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
    cases: tuple[WhatIfRow, ...]
    respondents: tuple[str, ...]
    anonymity: tuple[tuple[str, str, BoundText | None], ...]
    unprotected: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    responsible: tuple[tuple[str, str], ...] = ()
    translations: tuple[Translation, ...] = ()

    @property
    def unwritten(self) -> str:
        """The missing keys of [statement] about who is responsible."""
        return ", ".join(name.lower().replace(" ", "_") for name, value in self.responsible if not value)


def verdict(report: Report) -> Verdict | None:
    first = report.headline
    if first is None:
        return None
    targets = tuple(
        Judged(
            topic=plain(target.topic),
            asked=f"{'must be ' if target.check else ''}{target.rule} {shown(target.asked)}",
            got=None if target.got is None else figure(target.got),
            reason=plain(target.reason),
            word=target.word,
            style="pass" if target.met else "fail",
        )
        for target in report.targets
    )
    return Verdict(sentence=plain(first.sentence), met=first.status == "met", targets=targets)


def first_page(statement: Statement) -> FirstPage:
    return FirstPage(
        claim=plain(statement.claim),
        unit=plain(statement.unit),
        threats=tuple(map(plain, statement.threats)),
        assumptions=tuple((plain(row.sentence), plain(row.vouched)) for row in statement.assumptions),
        cases=tuple(
            WhatIfRow(
                words=plain(row.case),
                central="" if row.central is None else figure(row.central).value.removesuffix(" nats"),
                error="" if row.standard_error is None else number(row.standard_error, up=True, digits=3),
                remark=plain(row.remark),
            )
            for row in statement.scenarios
        ),
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


def dpia(report: Report) -> str:
    """Return the Markdown text of `dpia.md`, for a data protection impact assessment; "" without a first page."""
    return "\n".join(_lines(report)) + "\n" if report.statement is not None else ""


def _lines(report: Report) -> Iterator[str]:
    assert report.statement is not None
    page, judged = first_page(report.statement), verdict(report)
    yield f"# {_safe(report.title)}"
    yield from ("", "Input for a data protection impact assessment. It covers the design, not the software.")
    yield from _heading("Who is responsible")
    yield from _rows(("", ""), [(name, value or "**not written yet**") for name, value in page.responsible], marks=True)
    if judged is not None:
        yield from _heading("Verdict")
        yield from (f"**{_safe(judged.sentence)}**", "")
        got = [
            (row.topic, row.asked, row.reason if row.got is None else f"{row.got.value} ({row.got.kind})", row.word)
            for row in judged.targets
        ]
        yield from _rows(("Target", "Limit", "Result", "Verdict"), got)
    yield from _heading("Claim")
    yield from (_safe(page.claim), "", f"Unit of privacy: {_safe(page.unit)}", "", *_points(page.threats))
    yield from _heading("Assumptions, and who confirms them")
    yield from _rows(
        ("Assumption, not proven", "Confirmed by"),
        [(sentence, vouched or "not yet confirmed") for sentence, vouched in page.assumptions],
    )
    if page.cases:
        yield from _heading("What if")
        yield from _rows(
            ("Case", "Epsilon, proven (nats)", "Standard error"),
            [(case.words, case.central or case.remark, case.error or "not known") for case in page.cases],
        )
    yield from _heading("Three questions about anonymity")
    yield from _points(f"{question} {answer}" for question, answer, _ in page.anonymity)
    yield from _heading("Not protected, or not analysed")
    yield from _points(page.unprotected)
    for row in page.translations:
        yield from _heading(f"For the people who are asked ({row.language})")
        yield f"> {' '.join(map(_safe, row.sentences))}"
    yield from _heading("This document")
    yield from _points(f"{name}: {value}" for name, value in page.facts)


def _heading(words: str) -> Iterator[str]:
    yield from ("", f"## {words}", "")


def _points(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield f"- {_safe(sentence)}"


def _rows(names: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, marks: bool = False) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(cell if marks and cell.startswith('**not') else _safe(cell) for cell in row)} |"


def _safe(text: str) -> str:
    r"""Return `text` on one line, escaped so that Markdown renders it unchanged.

    >>> _safe("a|b <b>*x*")
    'a\\|b \\<b\\>\\*x\\*'
    """
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", plain(text))
