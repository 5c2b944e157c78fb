"""What the pages of an assessment and of a study share: findings, pictures, the template."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from hushuffle.model import Citation, Finding, PointMap, Table
from hushuffle.report import drawing, maps
from hushuffle.report.cells import CellColumn, cell_columns
from hushuffle.report.formatting import UNITS_EXPLAINED, Figure, attained, figure, plain
from hushuffle.report.references import Mention, mentions
from hushuffle.report.styling import Drawing, KeyEntry

MOST_ROWS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table of findings."""

    question: str
    adversary: str
    sentence: str
    figure: Figure
    style: str
    proof: str
    mentions: tuple[Mention, ...]
    witness: str


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table ready for the page: `rows` of it are shown, `more` are not."""

    title: str
    caption: str
    columns: tuple[CellColumn, ...]
    rows: int
    more: int


@dataclass(frozen=True, kw_only=True)
class PageMap:
    """A map ready for the page: its panels as (label, picture)."""

    title: str
    caption: str
    panels: tuple[tuple[str, str], ...]
    key: tuple[KeyEntry, ...]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One chart of a page; `svg` is "" if there was nothing to draw."""

    title: str
    caption: str
    svg: str
    key: tuple[KeyEntry, ...]


def tied(text: str) -> str:
    """Return `text` on one line, a percentage never broken before its sign."""
    return plain(text).replace(" %", "\N{NO-BREAK SPACE}%")


@cache
def template(name: str) -> Template:
    """Return the template `name`: everything is escaped, nothing may be missing."""
    environment = Environment(
        loader=PackageLoader("hushuffle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def rows(findings: Iterable[Finding], citations: tuple[Citation, ...], labels: tuple[str, ...]) -> list[Row]:
    """Return the rows of the table of findings; `labels` name the values of a witness."""
    return [_row(finding, citations, labels) for finding in findings]


def tables(made: Iterable[Table]) -> list[PageTable]:
    """Return the tables, of each the first `MOST_ROWS` rows."""
    return [
        PageTable(
            title=plain(table.title),
            caption=tied(table.caption),
            columns=cell_columns(table),
            rows=min(len(table.rows), MOST_ROWS),
            more=max(len(table.rows) - MOST_ROWS, 0),
        )
        for table in made
    ]


def point_maps(made: Iterable[PointMap]) -> list[PageMap]:
    """Return the maps, drawn."""
    ready = []
    for point_map in made:
        drawn, caption = maps.draw(point_map), tied(point_map.caption)
        panels = () if drawn is None else drawn.panels
        remark = "No point of this map is finite." if drawn is None else drawn.remark
        key = () if drawn is None else drawn.key
        ready.append(PageMap(title=plain(point_map.title), caption=joined(caption, remark), panels=panels, key=key))
    return ready


def joined(caption: str, remark: str) -> str:
    """Return a caption with a remark, which may be empty."""
    return f"{caption} {remark}".strip()


def units_explained(units: Iterable[str]) -> list[str]:
    """Return what the `units` mean, each once, those that need words."""
    return [UNITS_EXPLAINED[unit] for unit in dict.fromkeys(units) if unit in UNITS_EXPLAINED]


def picture(title: str, caption: str, drawn: Drawing | None, name: str) -> Picture:
    """Return the picture of what was drawn; ids in it start with `name`."""
    if drawn is None:
        return Picture(title=title, caption=f"{caption} No point of this chart is finite.", svg="", key=())
    beyond = " What reaches the edge of the picture goes on beyond it." if drawn.clipped else ""
    return Picture(title=title, caption=f"{caption}{beyond}", svg=drawing.svg(drawn, name), key=drawn.key)


def _row(finding: Finding, citations: tuple[Citation, ...], labels: tuple[str, ...]) -> Row:
    witness = finding.bound.witness
    return Row(
        question=plain(finding.question),
        adversary=plain(finding.adversary),
        sentence=tied(finding.sentence),
        figure=figure(finding.bound),
        style=finding.bound.kind,
        proof=plain(finding.proof),
        mentions=mentions(citations, finding.bound.sources),
        witness="" if witness is None else attained(witness, labels),
    )
