"""The page of a report: one self-contained file of HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from hushuffle.model import Citation, Finding, PointMap, Report, Table
from hushuffle.model.claim import count
from hushuffle.report import charts, drawing, heat, maps
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.cells import CellColumn, cell_columns
from hushuffle.report.diagrams import page_diagrams
from hushuffle.report.document import INDEX, Names, folder_of
from hushuffle.report.drawing import Drawing, KeyEntry
from hushuffle.report.first_page import first_page, verdict
from hushuffle.report.formatting import (
    KINDS_EXPLAINED,
    UNITS_EXPLAINED,
    Figure,
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
    """One row of the table of findings."""

    question: str
    adversary: str
    sentence: str
    figure: Figure
    style: str
    proof: str
    mentions: tuple[_Mention, ...]
    witness: str


@dataclass(frozen=True, kw_only=True)
class _PageClaim:
    """One claim of a paper; `link` leads from the page of several studies to the one that tests it ("" in that)."""

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
    """A table ready for the page: `rows` of it are shown, `more` are not."""

    title: str
    caption: str
    columns: tuple[CellColumn, ...]
    rows: int
    more: int


@dataclass(frozen=True, kw_only=True)
class _PageMap:
    """A map ready for the page: its panels as (label, picture)."""

    title: str
    caption: str
    panels: tuple[tuple[str, str], ...]
    key: tuple[KeyEntry, ...]


@dataclass(frozen=True, kw_only=True)
class _Picture:
    """One chart of a page; `svg` is "" if there was nothing to draw."""

    title: str
    caption: str
    svg: str
    key: tuple[KeyEntry, ...]


@dataclass(frozen=True, kw_only=True)
class _Reference:
    """One numbered work: its text and the places in it that were used."""

    number: int
    text: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Mention:
    """A reference to a work at one place in it ("" if the work as a whole)."""

    number: int
    where: str


def html(report: Report) -> str:
    """Return the page: no address is loaded, no script needed; the same report, the same text."""
    utility, population = report.utility, report.population
    reading = None if utility is None or population is None else accuracy(population, utility)
    shown = (row for row in report.warnings if row.key == "true-values-shown")
    internal = next(shown, None) if population is not None else None
    return _template().render(
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
        rows=_rows(report.findings, report.sources, () if population is None else population.labels),
        unanswered=[(plain(row.topic), plain(row.question), refusal(row)) for row in report.unanswered],
        internal=None if internal is None else (_tied(internal.sentence), _tied(internal.advice)),
        warnings=[(_tied(row.sentence), _tied(row.advice)) for row in report.warnings if row is not internal],
        accuracy=reading,
        diagrams=page_diagrams(report.diagrams),
        tables=_tables(report.tables),
        pictures=_pictures(report, reading),
        maps=_point_maps(report.maps),
        kinds=_kinds(report),
        units=_units_explained(bound.unit for bound in report.bounds),
        settings=[(plain(name), _tied(value)) for name, value in report.settings],
        specification=block(report.specification).strip("\n"),
        references=_references(report.sources),
        software=[(plain(name), plain(version)) for name, version in report.software],
    )


def _claims(report: Report) -> list[_PageClaim]:
    """Return the claims of a paper; those of several studies each with the way to its study."""
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
    """Return the estimated shares, the charts and the heat maps."""
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
    for made in report.heat_maps:
        map_drawn, title, caption = heat.draw(made), plain(made.title), _tied(made.caption)
        if map_drawn is None:
            pictures.append(_picture(title, caption, None, ""))
        else:
            pictures.append(
                _Picture(title=title, caption=_joined(caption, map_drawn.remark), svg=map_drawn.svg, key=())
            )
    return pictures


def _kinds(report: Report) -> list[tuple[str, str]]:
    """Return what the kinds of figures mean: an assessment explains all that are claims, a study those that it has."""
    used = {_ESTIMATE if bound.kind == "estimate" else figure(bound).kind for bound in report.bounds}
    every = report.population is not None
    return [row for row in KINDS_EXPLAINED if row[0] in used or (every and row[0] != _APPROXIMATION)]


def _tied(text: str) -> str:
    """Return `text` on one line, a percentage never broken before its sign."""
    return plain(text).replace(" %", "\N{NO-BREAK SPACE}%")


@cache
def _template() -> Template:
    """Return the template: everything is escaped, nothing may be missing."""
    environment = Environment(
        loader=PackageLoader("hushuffle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def _rows(findings: Iterable[Finding], citations: tuple[Citation, ...], labels: tuple[str, ...]) -> list[_Row]:
    """Return the rows of the table of findings; `labels` name the values of a witness."""
    return [_row(finding, citations, labels) for finding in findings]


def _tables(made: Iterable[Table]) -> list[_PageTable]:
    """Return the tables, of each the first `_MOST_ROWS` rows."""
    return [
        _PageTable(
            title=plain(table.title),
            caption=_tied(table.caption),
            columns=cell_columns(table),
            rows=min(len(table.rows), _MOST_ROWS),
            more=max(len(table.rows) - _MOST_ROWS, 0),
        )
        for table in made
    ]


def _point_maps(made: Iterable[PointMap]) -> list[_PageMap]:
    """Return the maps, drawn."""
    ready = []
    for point_map in made:
        drawn, caption = maps.draw(point_map), _tied(point_map.caption)
        panels = () if drawn is None else drawn.panels
        remark = "No point of this map is finite." if drawn is None else drawn.remark
        key = () if drawn is None else drawn.key
        ready.append(_PageMap(title=plain(point_map.title), caption=_joined(caption, remark), panels=panels, key=key))
    return ready


def _joined(caption: str, remark: str) -> str:
    """Return a caption with a remark, which may be empty."""
    return f"{caption} {remark}".strip()


def _units_explained(units: Iterable[str]) -> list[str]:
    """Return what the `units` mean, each once, those that need words."""
    return [UNITS_EXPLAINED[unit] for unit in dict.fromkeys(units) if unit in UNITS_EXPLAINED]


def _picture(title: str, caption: str, drawn: Drawing | None, name: str) -> _Picture:
    """Return the picture of what was drawn; ids in it start with `name`."""
    if drawn is None:
        return _Picture(title=title, caption=f"{caption} No point of this chart is finite.", svg="", key=())
    beyond = " What reaches the edge of the picture goes on beyond it." if drawn.clipped else ""
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
    """Return the works of `citations`, numbered from 1 in order of use."""
    places: dict[tuple[str, str], dict[str, None]] = {}
    for citation in citations:
        places.setdefault(_work(citation), {})[plain(citation.where)] = None
    return tuple(
        _Reference(number=number, text=plain(text), places=tuple(place for place in used if place))
        for number, ((_, text), used) in enumerate(places.items(), 1)
    )


def _mentions(citations: Iterable[Citation], sources: Iterable[Citation]) -> tuple[_Mention, ...]:
    """Return where `sources` stand among `_references(citations)`, each once."""
    works = list(dict.fromkeys(_work(citation) for citation in citations))
    places = (_Mention(number=works.index(_work(source)) + 1, where=plain(source.where)) for source in sources)
    return tuple(dict.fromkeys(places))


def _work(citation: Citation) -> tuple[str, str]:
    return citation.key, citation.text
