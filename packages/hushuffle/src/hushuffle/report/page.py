"""The page of a report, one self-contained HTML file, and its first page as Markdown (`dpia.md`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from hushuffle.model import Citation, Report, number
from hushuffle.model.claim import count
from hushuffle.model.statement import shown
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.cells import cell_columns
from hushuffle.report.charts import shares
from hushuffle.report.diagrams import inline
from hushuffle.report.document import INDEX, Names, folder_of
from hushuffle.report.figures import Picture, maps, of_chart, pictures
from hushuffle.report.formatting import KINDS_EXPLAINED, UNITS_EXPLAINED, asked, attained, block, figure, plain, refusal

_MOST_ROWS: Final = 200
_ESTIMATE: Final = KINDS_EXPLAINED[-1][0]
_APPROXIMATION: Final = KINDS_EXPLAINED[-2][0]


def html(report: Report) -> str:
    """Return the HTML of the page: it loads no address and needs no script, and the text is deterministic."""
    utility, population, sources = report.utility, report.population, report.sources
    assessment = population is not None  # an assessment explains every certified kind, a study those that it uses
    used = {_ESTIMATE if bound.kind == "estimate" else figure(bound).kind for bound in report.bounds}
    units = dict.fromkeys(bound.unit for bound in report.bounds)
    internal = (row for row in report.warnings if assessment and row.key == "true-values-shown")
    reading = None if utility is None or population is None else accuracy(population, utility)
    return (
        environment()
        .get_template("page.html")
        .render(
            report=report,
            assessment=assessment,
            index=report.key == INDEX,
            numbers=Names.of(report).numbers,
            asked="" if population is None else asked(population),
            summary=count(report.claims),
            labels=() if population is None else population.labels,
            internal=next(internal, None),
            accuracy=reading,
            most_rows=_MOST_ROWS,
            pictures=[*_estimates(report, reading), *pictures(report)],
            maps=list(maps(report)),
            kinds=[row for row in KINDS_EXPLAINED if row[0] in used or (assessment and row[0] != _APPROXIMATION)],
            units=[UNITS_EXPLAINED[unit] for unit in units if unit in UNITS_EXPLAINED],
            references=references(sources),
            mentions=lambda cited: mentions(sources, cited),
        )
    )


def dpia(report: Report) -> str:
    """Return the Markdown text of `dpia.md`, for a data protection impact assessment; "" without a first page."""
    if report.statement is None:
        return ""
    return environment().overlay(autoescape=False, finalize=_safe).get_template("dpia.md").render(report=report)


def _estimates(report: Report, reading: Accuracy | None) -> Iterator[Picture]:
    if reading is not None and report.population is not None and report.utility is not None:
        drawn = shares(report.population, report.utility, reading.rows)
        if drawn is not None:
            caption = f"One run on the data. Values shown: {reading.order}." if reading.more else "One run on the data."
            yield of_chart("estimates", "Estimated shares", caption, drawn)


@cache
def environment() -> Environment:
    """Return the environment of the page templates: every text is put on one line and escaped."""
    templates = Environment(
        loader=PackageLoader("hushuffle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_tied,
    )
    templates.filters.update(attained=attained, block=block, cells=cell_columns, figure=figure, folder=folder_of)
    templates.filters.update(inline=inline, number=number, refusal=refusal, shown=shown)
    return templates


def _tied(value: Any) -> Any:
    """Return a text on one line, with a non-breaking space before each percent sign; HTML stays as it is."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return plain(value).replace(" %", "\N{NO-BREAK SPACE}%")


def _safe(value: Any) -> Any:
    r"""Return a text on one line, escaped so that Markdown renders it unchanged; marked text stays as it is.

    >>> _safe("a|b <b>*x*")
    'a\\|b \\<b\\>\\*x\\*'
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", plain(value))


def references(citations: Iterable[Citation]) -> dict[tuple[str, str], list[str]]:
    """Return the cited works (key and text), numbered by their order, each with the places in it that are cited."""
    works: dict[tuple[str, str], dict[str, None]] = {}
    for citation in citations:
        works.setdefault((citation.key, citation.text), {})[citation.where] = None
    return {work: [place for place in places if place] for work, places in works.items()}


def mentions(citations: Iterable[Citation], sources: Iterable[Citation]) -> list[tuple[int, str]]:
    """Return the number of the work of each source in `references(citations)` and the place in it, each once."""
    works = list(references(citations))
    return list(dict.fromkeys((works.index((one.key, one.text)) + 1, one.where) for one in sources))
