"""`study.html`: one self-contained page."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle.model import Study
from hushuffle.report import heat, lines, maps
from hushuffle.report.cells import CellColumn, cell_columns
from hushuffle.report.formatting import KINDS_EXPLAINED, figure, plain
from hushuffle.report.html_parts import Picture, picture, rows, template, tied, units_explained
from hushuffle.report.references import references
from hushuffle.report.study_document import refuse_nan
from hushuffle.report.styling import KeyEntry

_NUMBERS = "study.json"
MOST_ROWS = 200
_ESTIMATE = KINDS_EXPLAINED[-1][0]


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A table ready for the page: `rows` of it are shown, `more` are not."""

    title: str
    caption: str
    columns: tuple[CellColumn, ...]
    rows: int
    more: int


@dataclass(frozen=True, kw_only=True)
class _Map:
    """A map ready for the page: its panels as (label, picture)."""

    title: str
    caption: str
    panels: tuple[tuple[str, str], ...]
    key: tuple[KeyEntry, ...]


def study_html(study: Study) -> str:
    """Return the page: no address is loaded, no script needed; the same study, the same text.

    Raises:
        InvalidInputError: a number of the study is nan.
    """
    refuse_nan(study)
    used = {_ESTIMATE if bound.kind == "estimate" else figure(bound).kind for bound in study.bounds}
    return template("study.html").render(
        key=plain(study.key),
        title=plain(study.title),
        question=tied(study.question),
        answers=[tied(answer) for answer in study.answers],
        warnings=[(tied(warned.sentence), tied(warned.advice)) for warned in study.warnings],
        rows=rows(study.findings, study.sources, ()),
        pictures=[*_charts(study), *_heat_maps(study)],
        maps=_maps(study),
        tables=_tables(study),
        kinds=[(kind, meaning) for kind, meaning in KINDS_EXPLAINED if kind in used],
        units=units_explained(bound.unit for bound in study.bounds),
        settings=[(plain(name), tied(value)) for name, value in study.settings],
        references=references(study.sources),
        software=[(plain(name), plain(version)) for name, version in study.software],
    )


def _charts(study: Study) -> list[Picture]:
    return [
        picture(plain(chart.title), tied(chart.caption), lines.draw(chart, numbers=_NUMBERS), f"chart-{position}")
        for position, chart in enumerate(study.charts)
    ]


def _heat_maps(study: Study) -> list[Picture]:
    pictures = []
    for made in study.heat_maps:
        drawn, title, caption = heat.draw(made), plain(made.title), tied(made.caption)
        if drawn is None:
            pictures.append(picture(title, caption, None, ""))
        else:
            pictures.append(Picture(title=title, caption=_joined(caption, drawn.remark), svg=drawn.svg, key=()))
    return pictures


def _maps(study: Study) -> list[_Map]:
    made = []
    for point_map in study.maps:
        drawn, caption = maps.draw(point_map), tied(point_map.caption)
        panels = () if drawn is None else drawn.panels
        remark = "No point of this map is finite." if drawn is None else drawn.remark
        key = () if drawn is None else drawn.key
        made.append(_Map(title=plain(point_map.title), caption=_joined(caption, remark), panels=panels, key=key))
    return made


def _tables(study: Study) -> list[_Table]:
    return [
        _Table(
            title=plain(table.title),
            caption=tied(table.caption),
            columns=cell_columns(table),
            rows=min(len(table.rows), MOST_ROWS),
            more=max(len(table.rows) - MOST_ROWS, 0),
        )
        for table in study.tables
    ]


def _joined(caption: str, remark: str) -> str:
    return f"{caption} {remark}".strip()
