"""`dpia.md`: the first page of an assessment as Markdown, for a data protection impact assessment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hushuffle.model import Report
from hushuffle.report.first_page import first_page, verdict
from hushuffle.report.formatting import plain


def dpia(report: Report) -> str:
    """Return the Markdown text of `dpia.md`; "" for a report without a first page."""
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
        yield from _rows(("Target", "Asked", "Got", "Verdict"), got)
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
