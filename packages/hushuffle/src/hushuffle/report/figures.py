"""Files with each picture of a report (SVG and PNG) and with the numbers of pictures and tables (CSV and Parquet)."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hushuffle.model import Report, Table, as_bound
from hushuffle.report import charts, heat
from hushuffle.report.diagrams import inline
from hushuffle.report.document import Names
from hushuffle.report.drawing import FONT_SIZE, WIDTH, ChartDrawing, KeyEntry, short, stroke, text
from hushuffle.report.formatting import plain
from hushuffle.report.maps import draw

if TYPE_CHECKING:
    import polars as pl

_VIEW: Final = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_LINE: Final = 18
_TITLE_COLUMNS: Final = 52
_MARGIN: Final = 10
_SWATCH: Final = 32
_SCALE: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawn picture: panels as (label, inline SVG), none if nothing can be drawn, and the legend."""

    key: str
    title: str
    caption: str
    panels: tuple[tuple[str, str], ...] = ()
    legend: tuple[KeyEntry, ...] = ()


def of_chart(key: str, title: str, caption: str, drawn: ChartDrawing | None) -> Picture:
    if drawn is None:
        return Picture(key=key, title=title, caption=f"{caption} No point of this chart is finite.")
    beyond = " Lines that reach the edge of the chart continue outside it." if drawn.clipped else ""
    return Picture(key=key, title=title, caption=f"{caption}{beyond}", panels=(("", drawn.svg),), legend=drawn.key)


def pictures(report: Report) -> Iterator[Picture]:
    """Yield the charts and the heat maps."""
    numbers = Names.of(report).numbers
    for chart in report.charts:
        yield of_chart(chart.key, chart.title, chart.caption, charts.lines(chart, numbers=numbers))
    for each in report.heat_maps:
        cells = heat.draw(each)
        remark = "No point of this chart is finite." if cells is None else cells.remark
        panels = () if cells is None else (("", cells.svg),)
        yield Picture(key=each.key, title=each.title, caption=f"{each.caption} {remark}", panels=panels)


def maps(report: Report) -> Iterator[Picture]:
    """Yield the maps of points."""
    for each in report.maps:
        drawn, caption = draw(each), f"{each.caption} No point of this map is finite."
        if drawn is None:
            yield Picture(key=each.key, title=each.title, caption=caption)
        else:
            caption = f"{each.caption} {drawn.remark}"
            yield Picture(key=each.key, title=each.title, caption=caption, panels=drawn.panels, legend=drawn.key)


def figure_files(report: Report) -> dict[str, bytes]:
    """Return figure-KEY.svg, .png, .csv, .parquet and table-KEY.csv, .parquet; a `Bound` takes three columns."""
    import polars as pl  # noqa: PLC0415 - slow to load
    import vl_convert  # noqa: PLC0415 - slow to load

    files: dict[str, bytes] = {}
    for name, picture in _drawn(report):
        whole = _whole(picture)
        files |= {f"{name}.svg": whole.encode(), f"{name}.png": vl_convert.svg_to_png(whole, scale=_SCALE)}
    for name, columns in _numbers(report):
        table: pl.DataFrame = pl.DataFrame({key: pl.Series(values, strict=False) for key, values in columns.items()})
        parquet = io.BytesIO()
        table.write_parquet(parquet)
        files |= {f"{name}.csv": table.write_csv().encode(), f"{name}.parquet": parquet.getvalue()}
    return files


def _drawn(report: Report) -> Iterator[tuple[str, Picture]]:
    taken = set[str]()
    diagrams = (
        Picture(key=each.key, title=each.title, caption=each.caption, panels=(("", inline(each, "d")),))
        for each in report.diagrams
    )
    for picture in (*pictures(report), *maps(report), *diagrams):
        if picture.panels:
            yield _name("figure", picture.key, taken), picture


def _numbers(report: Report) -> Iterator[tuple[str, Mapping[str, Sequence[Any]]]]:
    taken = set[str]()
    for chart in report.charts:
        points = [
            (series.label, *point)
            for series in chart.series
            for point in zip(series.x, series.lower, series.upper, strict=True)
        ]
        yield _name("figure", chart.key, taken), _columns(("series", "x", "lower", "upper"), points)
    for heat_map in report.heat_maps:
        cells = [
            (row, column, value)
            for row, values in zip(heat_map.y, heat_map.values, strict=True)
            for column, value in zip(heat_map.x, values, strict=True)
        ]
        yield _name("figure", heat_map.key, taken), _columns(("row", "column", "value"), cells)
    for point_map in report.maps:
        places = [
            (panel.label, x, y, point_map.labels[value])
            for panel in point_map.panels
            for x, y, value in zip(panel.x, panel.y, panel.values, strict=True)
        ]
        yield _name("figure", point_map.key, taken), _columns(("panel", "x", "y", "value"), places)
    for table in report.tables:
        yield _name("table", table.key, taken), _of_table(table)


def _name(kind: str, key: str, taken: set[str]) -> str:
    base = f"{kind}-{re.sub(r'[^a-z0-9.]+', '-', key.lower()).strip('-')}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _of_table(table: Table) -> dict[str, list[Any]]:
    data: dict[str, list[Any]] = {}
    for place, heading in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        name = heading if heading not in data else f"{heading} ({place + 1})"
        if any(as_bound(cell) for cell in cells):
            ends = [_ends(cell) for cell in cells]
            data |= {f"{name}, {part}": [end[i] for end in ends] for i, part in enumerate(("lower", "upper", "kind"))}
        elif any(isinstance(cell, str) for cell in cells):
            data[name] = [str(cell) for cell in cells]
        else:
            whole = all(isinstance(cell, int) for cell in cells)
            data[name] = cells if whole else [float(str(cell)) for cell in cells]
    return data


def _ends(cell: object) -> tuple[float | None, float | None, str]:
    if bound := as_bound(cell):
        return bound.lower, bound.upper, bound.kind
    return (None, None, cell) if isinstance(cell, str) else (float(str(cell)), float(str(cell)), "number")


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _whole(picture: Picture) -> str:
    parts, y = [], 0.0
    for line in textwrap.wrap(plain(picture.title), _TITLE_COLUMNS):
        y += _LINE
        parts.append(text(0, y, line))
    below, x = y + _LINE / 2, 0.0
    bottom = below
    for label, inner in picture.panels:
        top = below
        if label:
            parts.append(text(x, top + FONT_SIZE, label))
            top += _LINE
        match = _VIEW.search(inner)
        assert match is not None
        width, height = float(match[1]), float(match[2])
        parts.append(inner.replace("<svg ", f'<svg x="{short(x)}" y="{short(top)}" {_box(width, height)} ', 1))
        x, bottom = x + width + 2 * _MARGIN, max(bottom, top + height)
    for entry in picture.legend:
        bottom += _LINE
        parts += [*_swatch(entry, bottom - FONT_SIZE / 3), text(_SWATCH + 8, bottom, entry.text)]
    width, height = max(x - 2 * _MARGIN, WIDTH), bottom + _LINE / 2
    box = f"{-_MARGIN} 0 {short(width + 2 * _MARGIN)} {short(height)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {_box(width + 2 * _MARGIN, height)} '
        f'font-family="sans-serif"><rect x="{-_MARGIN}" width="100%" height="100%" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )


def _box(width: float, height: float) -> str:
    return f'width="{short(width)}" height="{short(height)}"'


def _swatch(entry: KeyEntry, y: float) -> Iterable[str]:
    if entry.mark == "dot":
        return [f'<circle cx="{_SWATCH / 2}" cy="{short(y)}" r="5" fill="{entry.color}"/>']
    return [stroke(f"M0 {short(y)}H{_SWATCH}", entry.color, 3, dash=entry.dash)]
