"""The page of a report: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from hushuffle.model import Citation, Finding, Report
from hushuffle.model.claim import count
from hushuffle.report import charts, drawing, heat, maps
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.cells import CellColumn, cell_columns
from hushuffle.report.diagrams import page_diagrams
from hushuffle.report.document import INDEX, Names, folder_of
from hushuffle.report.drawing import ChartDrawing, KeyEntry
from hushuffle.report.first_page import first_page, verdict
from hushuffle.report.formatting import (
    KINDS_EXPLAINED,
    UNITS_EXPLAINED,
    BoundText,
    asked,
    attained,
    block,
    figure,
    plain,
    refusal,
)

_MOST_ROWS: Final = 200
_ESTIMATE: Final = KINDS_EXPLAINED[-1][0]
_APPROXIMATION: Final = KINDS_EXPLAINED[-2][0]


@dataclass(frozen=True, kw_only=True)
class _Row:
    question: str
    adversary: str
    sentence: str
    figure: BoundText
    style: str
    proof: str
    mentions: tuple[_Mention, ...]
    witness: str


@dataclass(frozen=True, kw_only=True)
class _PageClaim:
    """One claim of a paper; `link` leads to the study that tests it ("" on the page of that study)."""

    place: str
    quote: str
    sentence: str
    printed: str
    ours: str
    remarks: tuple[str, ...]
    verdict: str
    style: str
    target: str
    link: str


@dataclass(frozen=True, kw_only=True)
class _PageTable:
    title: str
    caption: str
    columns: tuple[CellColumn, ...]
    rows: int
    more: int


@dataclass(frozen=True, kw_only=True)
class _PageMap:
    title: str
    caption: str
    panels: tuple[tuple[str, str], ...]
    key: tuple[KeyEntry, ...]


@dataclass(frozen=True, kw_only=True)
class _Picture:
    title: str
    caption: str
    svg: str
    key: tuple[KeyEntry, ...]


@dataclass(frozen=True, kw_only=True)
class _Reference:
    """One numbered reference: the text of the work, and the places in the work that are cited."""

    number: int
    text: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Mention:
    """A citation of a numbered reference at a place in the work ("" for the whole work)."""

    number: int
    where: str


def html(report: Report) -> str:
    """Return the HTML of the page: it loads no address and needs no script, and the text is deterministic."""
    utility, population = report.utility, report.population
    reading = None if utility is None or population is None else accuracy(population, utility)
    labels = () if population is None else population.labels  # the names of the values of a witness
    shown = (row for row in report.warnings if row.key == "true-values-shown")
    certified = population is not None  # an assessment explains every certified kind, a study those that it uses
    used = {_ESTIMATE if bound.kind == "estimate" else figure(bound).kind for bound in report.bounds}
    units = dict.fromkeys(bound.unit for bound in report.bounds)
    internal = next(shown, None) if population is not None else None
    template = environment().get_template("page.html")
    ready = []
    for point_map in report.maps:
        drawn, caption = maps.draw(point_map), _tied(point_map.caption)
        panels = () if drawn is None else drawn.panels
        remark = "No point of this map is finite." if drawn is None else drawn.remark
        key = () if drawn is None else drawn.key
        ready.append(_PageMap(title=plain(point_map.title), caption=_joined(caption, remark), panels=panels, key=key))
    return template.render(
        assessment=population is not None,
        index=report.key == INDEX,
        numbers=Names.of(report).numbers,
        key=plain(report.key),
        title=plain(report.title),
        lead=_tied(report.question),
        asked="" if population is None else asked(population),
        verdict=verdict(report),
        claims=_claims(report),
        claimed=count(report.claims),
        statement=None if report.statement is None else first_page(report.statement),
        answers=[_tied(answer) for answer in report.answers],
        rows=[_row(finding, report.sources, labels) for finding in report.findings],
        unanswered=[(plain(row.topic), plain(row.question), refusal(row)) for row in report.unanswered],
        internal=None if internal is None else (_tied(internal.sentence), _tied(internal.advice)),
        warnings=[(_tied(row.sentence), _tied(row.advice)) for row in report.warnings if row is not internal],
        accuracy=reading,
        diagrams=page_diagrams(report.diagrams),
        tables=[
            _PageTable(
                title=plain(table.title),
                caption=_tied(table.caption),
                columns=cell_columns(table),
                rows=min(len(table.rows), _MOST_ROWS),
                more=max(len(table.rows) - _MOST_ROWS, 0),
            )
            for table in report.tables
        ],
        pictures=_pictures(report, reading),
        maps=ready,
        kinds=[row for row in KINDS_EXPLAINED if row[0] in used or (certified and row[0] != _APPROXIMATION)],
        units=[UNITS_EXPLAINED[unit] for unit in units if unit in UNITS_EXPLAINED],
        settings=[(plain(name), _tied(value)) for name, value in report.settings],
        specification=block(report.specification).strip("\n"),
        references=_references(report.sources),
        software=[(plain(name), plain(version)) for name, version in report.software],
    )


def _claims(report: Report) -> list[_PageClaim]:
    """Return the claims of a paper; in a report on several studies, each claim has a link to its study."""
    several = report.key == INDEX
    return [
        _PageClaim(
            place=plain(claim.place),
            quote=_tied(claim.quote),
            sentence=_tied(claim.sentence),
            printed=_tied(claim.printed),
            ours=_tied(claim.ours),
            remarks=tuple(_tied(remark) for remark in (claim.reason, claim.data) if remark),
            verdict=claim.verdict,
            style={"confirmed": "pass", "contradicted": "fail"}.get(claim.verdict, "open"),
            target=plain(claim.target) if several else "",
            link=f"{folder_of(claim.target)}/study.html" if several else "",
        )
        for claim in report.claims
    ]


def _pictures(report: Report, reading: Accuracy | None) -> list[_Picture]:
    pictures = []
    if reading is not None and report.population is not None and report.utility is not None:
        estimates = charts.shares(report.population, report.utility, reading.rows)
        if estimates is not None:
            caption = f"One run on the data. Values shown: {reading.order}." if reading.more else "One run on the data."
            pictures.append(_picture("Estimated shares", caption, estimates, "chart-0"))
    numbers = Names.of(report).numbers
    for position, chart in enumerate(report.charts, 1):
        drawn = charts.lines(chart, numbers=numbers)
        pictures.append(_picture(plain(chart.title), _tied(chart.caption), drawn, f"chart-{position}"))
    for heat_map in report.heat_maps:
        map_drawn, title, caption = heat.draw(heat_map), plain(heat_map.title), _tied(heat_map.caption)
        if map_drawn is None:
            pictures.append(_picture(title, caption, None, ""))
        else:
            pictures.append(
                _Picture(title=title, caption=_joined(caption, map_drawn.remark), svg=map_drawn.svg, key=())
            )
    return pictures


def _tied(text: str) -> str:
    """Return `text` on one line, with a non-breaking space before each percent sign."""
    return plain(text).replace(" %", "\N{NO-BREAK SPACE}%")


@cache
def environment() -> Environment:
    """Return the environment of the page templates, which escapes all values and raises an error for missing values."""
    return Environment(
        loader=PackageLoader("hushuffle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _joined(caption: str, remark: str) -> str:
    return f"{caption} {remark}".strip()


def _picture(title: str, caption: str, drawn: ChartDrawing | None, name: str) -> _Picture:
    if drawn is None:
        return _Picture(title=title, caption=f"{caption} No point of this chart is finite.", svg="", key=())
    beyond = " Lines that reach the edge of the chart continue outside it." if drawn.clipped else ""
    return _Picture(title=title, caption=f"{caption}{beyond}", svg=drawing.svg(drawn, name), key=drawn.key)


def _row(finding: Finding, citations: tuple[Citation, ...], labels: tuple[str, ...]) -> _Row:
    witness = finding.bound.witness
    return _Row(
        question=plain(finding.question),
        adversary=plain(finding.adversary),
        sentence=_tied(finding.sentence),
        figure=figure(finding.figure),
        style=finding.figure.kind,
        proof=plain(finding.proof),
        mentions=_mentions(citations, finding.bound.sources),
        witness="" if witness is None else attained(witness, labels),
    )


def _references(citations: Iterable[Citation]) -> tuple[_Reference, ...]:
    places: dict[tuple[str, str], dict[str, None]] = {}
    for citation in citations:
        places.setdefault(_work(citation), {})[plain(citation.where)] = None
    return tuple(
        _Reference(number=number, text=plain(text), places=tuple(place for place in used if place))
        for number, ((_, text), used) in enumerate(places.items(), 1)
    )


def _mentions(citations: Iterable[Citation], sources: Iterable[Citation]) -> tuple[_Mention, ...]:
    """Return the citations `sources` with their reference numbers in `_references(citations)`, each once."""
    works = list(dict.fromkeys(_work(citation) for citation in citations))
    places = (_Mention(number=works.index(_work(source)) + 1, where=plain(source.where)) for source in sources)
    return tuple(dict.fromkeys(places))


def _work(citation: Citation) -> tuple[str, str]:
    return citation.key, citation.text
